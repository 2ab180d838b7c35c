#!/bin/sh
# Opens reports in a real browser and exports in the tools they are for. Installs what is missing
# (Debian packages, npm packages into a folder of its own). Leaves screenshots in $OUT to be looked at.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
OUT=${OUT:-$root/target/report-tests}
mkdir -p "$OUT"

missing=""
command -v chromium >/dev/null || missing="$missing chromium fonts-dejavu-core"
command -v tshark >/dev/null || missing="$missing tshark"
command -v flent >/dev/null || missing="$missing flent"
python3 -c "import matplotlib" 2>/dev/null || missing="$missing python3-matplotlib"
if [ -n "$missing" ]; then
    # Not as root, or with a prompt, this fails with apt's own words.
    apt-get update -q && DEBIAN_FRONTEND=noninteractive apt-get install -qy --no-install-recommends $missing
fi
if [ ! -d "$OUT/node_modules/axe-core" ] || [ ! -d "$OUT/node_modules/playwright-core" ]; then
    cp "$here/package.json" "$OUT/"
    (cd "$OUT" && npm install --no-audit --no-fund)
fi

cd "${CARGO_ROOT:-$root}"
cargo run -q -p sojourn-report --example specimen "$OUT/pages"
cargo run -q -p sojourn-report --example capture "$root/studies/home-router" "$OUT/capture"
cp "$here/browser.mjs" "$OUT/"
(cd "$OUT" && node browser.mjs pages shots)
python3 "$here/tools.py" "$OUT/pages" "$OUT/capture"
