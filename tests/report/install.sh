#!/bin/sh
# Installs what the tests of reports need and this machine has not, by package name. Needs root.
set -eu
missing=""
command -v chromium >/dev/null || missing="$missing chromium fonts-dejavu-core"
command -v tshark >/dev/null || missing="$missing tshark"
command -v flent >/dev/null || missing="$missing flent"
command -v node >/dev/null || missing="$missing nodejs"
command -v npm >/dev/null || missing="$missing npm"
# The system's, which flent runs in.
/usr/bin/python3 -c "import matplotlib" 2>/dev/null || missing="$missing python3-matplotlib"
if [ -n "$missing" ]; then
    apt-get update -q
    DEBIAN_FRONTEND=noninteractive apt-get install -qy --no-install-recommends $missing
fi
