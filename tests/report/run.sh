#!/bin/sh
# Opens reports in a real browser and exports in the tools they are for. Installs what is missing
# (Debian packages, and two npm packages into a folder of its own). Leaves screenshots in
# $OUT/shots to be looked at.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
OUT=${OUT:-$root/target/report-tests}
mkdir -p "$OUT"

"$here/install.sh"
if ! cmp -s "$here/package.json" "$OUT/package.json" || [ ! -d "$OUT/node_modules" ]; then
    cp "$here/package.json" "$OUT/"
    (cd "$OUT" && npm install --no-audit --no-fund --no-package-lock)
fi

cd "$root"
# As `cargo test --workspace` has built them already.
cargo build -q --profile test --workspace --bin sojourn --example specimen --example capture
built=${CARGO_TARGET_DIR:-$root/target}/debug
"$built/examples/specimen" "$OUT/pages"
"$built/examples/capture" studies/wifi6-aqm "$OUT/capture"
# The shipped studies, as a reader gets them, only shorter. They end with 1 where a claim fails, and with 3 where this machine
# has no guest kernel, or no right to make networks.
for study in studies/*/; do
    name=$(basename "$study")
    rm -rf "$OUT/studies/$name"
    ended=0
    "$built/sojourn" run "$study" --shorten 4s --seeds 1 --out "$OUT/studies/$name" > "$OUT/$name.txt" ||
        ended=$?
    if [ "$ended" -eq 3 ] && grep -qE '^engine.*"(kernel|live)' "$study/study.toml"; then
        echo "skipped: $name"
        rm -rf "$OUT/studies/$name"
    elif [ "$ended" -gt 1 ]; then
        exit "$ended"
    fi
done
cp "$here/browser.mjs" "$OUT/"
(cd "$OUT" && node browser.mjs pages studies shots)
python3 "$here/tools.py" "$OUT/pages" "$OUT/capture"
