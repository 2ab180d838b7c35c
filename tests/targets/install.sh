#!/usr/bin/env bash
# Unpacks a compiler with its library's source from Debian's packages into the folder named, so that
# the library can be built for any target; nothing is installed. Then `FOLDER/rustc` compiles.
set -euo pipefail
folder=$1
[ ! -x "$folder/rustc" ] || exit 0
mkdir -p "$folder/packages/partial"
folder=$(cd "$folder" && pwd)
cd "$folder"
# Packages that it needs and this machine has stay where they are.
apt-get install -y -qq --no-install-recommends --download-only \
    -o Dir::Cache::archives="$folder/packages" -o Debug::NoLocking=1 \
    rustc-web rust-web-src >/dev/null
for package in packages/*.deb; do
    dpkg -x "$package" .
done
rm -r packages
# Where cargo looks for it.
mkdir -p usr/lib/rustlib/src
ln -sfn "$(echo "$folder"/usr/src/rustc-*)" usr/lib/rustlib/src/rust
cat >rustc <<END
#!/bin/sh
LD_LIBRARY_PATH=$folder/usr/lib/x86_64-linux-gnu exec $folder/usr/bin/rustc "\$@"
END
chmod +x rustc
