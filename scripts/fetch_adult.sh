#!/usr/bin/env bash
# Fetches the census income data (UCI Adult, Becker & Kohavi 1996, CC BY 4.0), raw, and checks that they are the files
# that the configs were measured with.
# Usage: scripts/fetch_adult.sh [FOLDER]     (default: data/adult in the repository)
# Needs: curl, unzip, sha256sum; 6 MB
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
folder=${1:-$here/data/adult}
source=https://archive.ics.uci.edu/static/public/2/adult.zip

check() {
  (cd "$folder" && sha256sum --check --quiet) <<'SUMS'
5b00264637dbfec36bdeaab5676b0b309ff9eb788d63554ca0a249491c86603d  adult.data
a2a9044bc167a35b2361efbabec64e89d69ce82d9790d2980119aac5fd7e9c05  adult.test
SUMS
}

for tool in curl unzip; do
  command -v "$tool" > /dev/null || { echo "fetch_adult.sh: $tool is missing; install it: apt-get install $tool" >&2; exit 1; }
done
mkdir -p "$folder"
if [[ ! -f $folder/adult.data || ! -f $folder/adult.test ]]; then
  archive=$(mktemp)
  trap 'rm -f "$archive"' EXIT
  curl --fail --silent --show-error --location --output "$archive" "$source"
  unzip -q -o "$archive" adult.data adult.test -d "$folder"
fi
check
echo "$folder: adult.data and adult.test are there"
