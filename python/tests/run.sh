#!/usr/bin/env bash
# Builds the Python package as cargo builds the tests, and tests it: its types, its doctests and python/tests,
# in an environment under target/. With `gallery` it runs the pages of docs/gallery instead.
set -euo pipefail
cd "$(dirname "$0")/../.."
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$PWD/target}
export VIRTUAL_ENV=$CARGO_TARGET_DIR/python
[ -x "$VIRTUAL_ENV/bin/python" ] || python3 -m venv "$VIRTUAL_ENV"
"$VIRTUAL_ENV/bin/python" -m pip install --quiet --requirement python/tests/requirements.txt
"$VIRTUAL_ENV/bin/maturin" develop --quiet --profile dev
[ "${1:-}" != gallery ] || exec "$VIRTUAL_ENV/bin/python" docs/gallery/run.py
# The command, whose folders and texts the package must give, too, as `cargo test --workspace` has built it.
cargo build --quiet --workspace --bin sojourn
"$VIRTUAL_ENV/bin/mypy"
# Brings its own copy of Node, which has to be there.
"$VIRTUAL_ENV/bin/pyright" --pythonpath "$VIRTUAL_ENV/bin/python"
"$VIRTUAL_ENV/bin/python" -m mypy.stubtest sojourn._native --allowlist python/tests/stubtest.txt
"$VIRTUAL_ENV/bin/python" -m pytest --quiet python/tests python/sojourn --doctest-modules \
    --ignore python/tests/cluster
