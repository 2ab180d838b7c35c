#!/bin/sh
# Counts instructions per delivered data segment and compares them with instructions.toml.
# Counts, not times: they are the same on a busy machine. Exit 1 when a ceiling is exceeded.
#   instructions.sh [NAME...]   these yardsticks only
set -eu
here=$(cd "$(dirname "$0")" && pwd)
cd "$here/.."

if ! command -v valgrind >/dev/null; then
    sudo=$([ "$(id -u)" = 0 ] || echo sudo)
    $sudo apt-get update -qq
    $sudo apt-get install -y -qq --no-install-recommends valgrind >/dev/null
fi
# With the features that the whole workspace asks for, as CI builds the rooms' tests.
cargo build --release --quiet --workspace --bin yardstick
exec "${CARGO_TARGET_DIR:-target}/release/yardstick" --guard "$here/instructions.toml" "$@"
