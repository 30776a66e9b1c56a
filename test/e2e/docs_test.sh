#!/usr/bin/env bash
# What: does what a page of the documentation says: runs its commands, in order, and looks for the output that it shows.
# Usage: docs_test.sh PATH_TO_LOCKSTEP PAGE.md [TAG…]
# Needs: mpirun; works in a temporary folder, which holds a small exp.toml and the checkout's scripts to begin with.
#
# Fenced blocks of the page, by what stands behind the three backticks:
#   sh              commands for bash, from its own start, with lockstep on the PATH; none may fail
#   sh TAG          the same, where TAG is among the arguments; else left out
#   toml FILE       a file
#   text output     lines that the block of commands before it must print to stdout, in this order; … stands for anything
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/assertions.sh"
source "$(dirname "${BASH_SOURCE[0]}")/training.sh"
lockstep=$(realpath "$1")
page=$(realpath "$2")
shift 2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/bin" "$work/blocks" "$work/page"
ln -s "$lockstep" "$work/bin/lockstep"
unset "${!LOCKSTEP_@}"
export PATH="$work/bin:$PATH" OMPI_MCA_rmaps_base_oversubscribe=1
ln -s "$(dirname "$(dirname "$page")")/scripts" "$work/page/scripts"
cd "$work/page"
small_config > exp.toml

# Each block becomes a file NUMBER.KIND, its kind in the first line.
awk -v folder="$work/blocks" '
    /^```/ && open { open = 0; close(file); next }
    /^```/ { open = 1; file = sprintf("%s/%03d", folder, ++count); print substr($0, 4) > file; next }
    open { print > file }
    END { if (open) exit 1 }' "$page" || fail "$page: a block is not closed"

# The lines that a page shows, each somewhere behind the one before.
expect_shown() {
    local shown pattern
    exec 3< printed
    while IFS= read -r shown; do
        pattern=$(sed 's/[]\[*?\\]/\\&/g; s/…/*/g' <<< "$shown")
        for (( ; ; )); do
            IFS= read -r line <&3 || fail "$(basename "$page") shows, and nothing printed: $shown
$(cat printed)"
            # shellcheck disable=SC2053 # the pattern is one
            [[ $line != $pattern ]] || break
        done
    done
    exec 3<&-
}

shopt -s nullglob
blocks=0
: > printed
for block in "$work"/blocks/*; do
    read -r kind tag < "$block" || true
    tail -n +2 "$block" > "$block.body"
    case "$kind ${tag:-}" in
        "toml "?*) cp "$block.body" "$tag" ;;
        "text output") expect_shown < "$block.body" ;;
        "sh "*)
            if [[ -n ${tag:-} && " $* " != *" $tag "* ]]; then continue; fi
            run timeout 200 bash -euo pipefail "$block.body"
            [[ $last_exit == 0 ]] || { cat "$block.body" >&2; fail "$(basename "$page"): a block of commands ends with $last_exit"; }
            mv stdout printed
            blocks=$((blocks + 1))
            ;;
    esac
done
((blocks > 0)) || fail "$page has no commands"
