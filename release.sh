#!/usr/bin/env bash
# Builds a release from a tag into dist/: static binaries with man pages and completions, wheels, the source of the Python package, the
# site, and SHA256SUMS. `bash release.sh v0.1.0`; any other commit is built too, and named after it. docs/release.md says
# what it needs and what of it has been tried.
#
# PARTS="binaries wheels site" chooses; TARGETS="x86_64 aarch64" likewise.
set -euo pipefail
cd "$(dirname "$0")"
root=$PWD
ref=${1:?bash release.sh TAG}
parts=${PARTS:-binaries wheels site}
targets=${TARGETS:-x86_64 aarch64}
work=$root/target/release-work
dist=$root/dist

fail() {
    echo "release: $*" >&2
    exit 1
}
[ "$(uname -sm)" = "Linux x86_64" ] || fail "it builds on Linux x86_64 only"
commit=$(git rev-parse --verify --quiet "$ref^{commit}") || fail "no tag or commit is named '$ref'"

# The source as the tag has it, and nothing else.
mkdir -p "$work" "$dist"
if [ -d "$work/source" ]; then
    git -C "$work/source" checkout --quiet --detach "$commit"
else
    git worktree prune
    git worktree add --quiet --detach "$work/source" "$commit"
fi
cd "$work/source"
version=$(sed -n 's/^version = "\(.*\)"$/\1/p' Cargo.toml | head -1)
case $ref in
v[0-9]*) [ "$ref" = "v$version" ] || fail "the tag is $ref, but Cargo.toml has version $version" ;;
*) version=$version-g$(git rev-parse --short "$commit") ;;
esac
SOURCE_DATE_EPOCH=$(git show -s --format=%ct "$commit")
export SOURCE_DATE_EPOCH
rm -rf "${dist:?}"/*

# Zig is a C compiler that brings the C libraries of all targets, and links for them.
tools=$work/tools
[ -x "$tools/bin/python" ] || python3 -m venv "$tools"
"$tools/bin/python" -m pip install --quiet 'ziglang==0.17.1' 'cargo-zigbuild==0.24.1' 'maturin==1.16.0'
export PATH=$tools/bin:$PATH

# What this compiler has no library for is built from the library's source, which takes a compiler that comes with it.
has_library() {
    [ -d "$(rustc --print sysroot)/lib/rustlib/$1/lib" ]
}
# prepare TARGET: sets `library` to the options that build the library, and what else cargo needs.
prepare() {
    unset RUSTC RUSTC_BOOTSTRAP RUSTFLAGS
    library=()
    has_library "$1" && return
    bash tests/targets/install.sh "$root/target/targets/rust" || fail "no library for $1, and Debian has no rustc-web here"
    export RUSTC=$root/target/targets/rust/rustc RUSTC_BOOTSTRAP=1
    library=(-Z build-std=std,panic_unwind)
    # The objects that begin and end a program are Zig's, too.
    case $1 in *-musl) export RUSTFLAGS="-C link-self-contained=no" ;; esac
}

export CARGO_TARGET_DIR=$root/target/targets CARGO_PROFILE_RELEASE_STRIP=symbols CARGO_PROFILE_RELEASE_DEBUG=false

# pack NAME: a folder of $work as an archive that depends on its files alone.
pack() {
    tar -C "$work" --sort=name --owner=0 --group=0 --numeric-owner --mtime="@$SOURCE_DATE_EPOCH" -cf - "$1" |
        gzip -9n >"$dist/$1.tar.gz"
    rm -rf "${work:?}/$1"
}

# run PROCESSOR COMMAND…: a program for that processor.
run() {
    local processor=$1
    shift
    case $processor in
    x86_64) "$@" ;;
    *) "qemu-$processor" "$@" ;;
    esac
}

binaries() {
    local processor program folder tables seen=
    for processor in $targets; do
        prepare "$processor-unknown-linux-musl"
        cargo zigbuild --locked --release "${library[@]}" --target "$processor-unknown-linux-musl" -p sojourn
        program=$CARGO_TARGET_DIR/$processor-unknown-linux-musl/release/sojourn
        ! readelf -l "$program" | grep -q INTERP || fail "$program is not static"
        folder=sojourn-$version-$processor-linux
        rm -rf "${work:?}/$folder"
        mkdir -p "$work/$folder/completions"
        cp "$program" LICENSE-MIT LICENSE-APACHE README.md CHANGELOG.md "$work/$folder"
        if [ "$processor" != x86_64 ] && ! command -v "qemu-$processor" >/dev/null; then
            echo "release: qemu-$processor is not here, so $folder was not run and has no man pages" >&2
        else
            run "$processor" "$program" --quiet man --out "$work/$folder/man/man1"
            for shell in bash zsh fish; do
                run "$processor" "$program" completions "$shell" >"$work/$folder/completions/sojourn.$shell"
            done
            # Every processor must compute the same runs.
            rm -rf "$work/run"
            run "$processor" "$program" --quiet run examples/dsl.toml --seeds 1 --shorten 5s --no-report --out "$work/run" >"$work/claims" || [ $? -eq 1 ]
            tables=$(cd "$work/run" && sha256sum runs.parquet series.parquet delays.parquet)
            [ "${seen:=$tables}" = "$tables" ] || fail "$processor computes other runs than the first processor"
        fi
        pack "$folder"
    done
}

wheels() {
    local processor
    for processor in $targets; do
        prepare "$processor-unknown-linux-gnu"
        maturin build --quiet --locked --release --zig "${library[@]}" --target "$processor-unknown-linux-gnu" --out "$dist"
    done
    maturin sdist --out "$dist"
    local wheel
    for wheel in "$dist"/*.whl; do
        [ "$(stat -c %s "$wheel")" -lt 15000000 ] || fail "$wheel is larger than 15 MB"
    done
}

site() {
    command -v mdbook >/dev/null || [ -x "$tools/bin/mdbook" ] ||
        cargo install --quiet --locked mdbook --version 0.5.4 --no-default-features --features search --root "$tools"
    CARGO_TARGET_DIR=$work python3 docs/site.py --build "$work/sojourn-$version-site"
    pack "sojourn-$version-site"
}

for part in $parts; do
    case $part in
    binaries | wheels | site) "$part" ;;
    *) fail "no part is named '$part' (allowed: binaries, wheels, site)" ;;
    esac
done
cd "$dist"
sha256sum -- * >SHA256SUMS
ls -l "$dist"
