#!/usr/bin/env bash
# The same scenarios must give the same digests on this machine with all optimisation and without debug
# assertions, on one with words of 32 bits and in WebAssembly; and the rooms behind the wall must compile
# for a processor of another kind, where there is no standard library at all.
set -euo pipefail
cd "$(dirname "$0")/../.."

skip() {
    echo "skipped: $*"
    exit 0
}

folder=$PWD/target/targets
built=${CARGO_TARGET_DIR:-target}
mkdir -p "$folder"
# As `cargo test --workspace` has built it.
cargo build --quiet --workspace --bin sojourn-targets
"$built/debug/sojourn-targets" >"$folder/here.txt"
scenarios=$(wc -l <"$folder/here.txt")

compare() {
    diff "$folder/here.txt" "$folder/$1.txt" >&2 || {
        echo "targets: $1 (right) differs from this machine's debug build" >&2
        exit 1
    }
    echo "targets: $1 has the digests of this machine's debug build"
}

cargo build --quiet --release --workspace --bin sojourn-targets
"$built/release/sojourn-targets" >"$folder/release.txt"
compare release

[ "$(uname -sm)" = "Linux x86_64" ] || skip "the compiler is unpacked from packages for Linux x86_64"
command -v apt-get >/dev/null || skip "the compiler comes from Debian's packages"

bash tests/targets/install.sh "$folder/rust" || skip "Debian has no rustc-web here"
host=$(rustc -vV | sed -n 's/^host: //p')
lld=$(rustc --print sysroot)/lib/rustlib/$host/bin/rust-lld

# Builds the library too, for which a compiler asks to be told that it is not a released one. The runs take a second, so
# they need no more optimisation than makes the build short.
elsewhere() {
    local verb=$1 target=$2 library=$3
    shift 3
    # Where it is a file, a probe of the compiler reads what others threw away.
    [ -c /dev/null ] || : >/dev/null
    RUSTC=$folder/rust/rustc RUSTC_BOOTSTRAP=1 CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_LINKER=$lld \
        CARGO_PROFILE_DEV_OPT_LEVEL=1 cargo "$verb" --quiet --target "$target" -Zbuild-std="$library" --target-dir "$folder" "$@"
}

node=$(command -v node) || skip "WebAssembly runs in Node, which is not here"
elsewhere rustc wasm32-unknown-unknown std,panic_abort -p sojourn-targets --lib --crate-type cdylib
"$node" tests/targets/wasm.mjs "$folder/wasm32-unknown-unknown/debug/sojourn_targets.wasm" \
    "$scenarios" >"$folder/wasm32.txt"
compare wasm32

elsewhere build i686-unknown-linux-gnu std -p sojourn-targets
"$folder/i686-unknown-linux-gnu/debug/sojourn-targets" >"$folder/i686.txt"
compare i686

elsewhere check aarch64-unknown-linux-gnu core,alloc -p sojourn-sim -p sojourn-fluid -p sojourn-metrics
echo "targets: the walled rooms compile for aarch64 without the standard library"
