# What: assertions for the end-to-end scripts: run a command, then say what its exit code, stdout and stderr must be.
# Usage: source it, then  run COMMAND…; expect_exit 0; expect_stdout TEXT; …
# Needs: a working folder that may hold the files stdout and stderr.

fail() {
    echo "FAILED in line ${BASH_LINENO[${#BASH_LINENO[@]} - 2]}: $*" >&2
    echo "command: ${last_command[*]:-}" >&2
    echo "--- exit ${last_exit:-}; stdout:" >&2
    head -c 2000 stdout >&2
    echo "--- stderr:" >&2
    head -c 2000 stderr >&2
    exit 1
}

run() {
    last_command=("$@")
    last_exit=0
    "$@" > stdout 2> stderr < /dev/null || last_exit=$?
}

expect_exit() { [[ $last_exit == "$1" ]] || fail "exit $last_exit, expected $1"; }
expect_stdout() { [[ $(cat stdout) == "$1" ]] || fail "stdout is not: $1"; }
expect_stderr() { [[ $(cat stderr) == "$1" ]] || fail "stderr is not: $1"; }
expect_stderr_lines() { [[ $(wc -l < stderr) == "$1" ]] || fail "stderr has not $1 lines"; }
expect_in_stdout() { grep -qF -- "$1" stdout || fail "stdout has no: $1"; }
expect_in_stderr() { grep -qF -- "$1" stderr || fail "stderr has no: $1"; }
