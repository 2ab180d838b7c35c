#!/bin/bash
# What large studies take: processor time and the largest resident set of each command, as docs/speed.md has them.
#   scale.sh [PROGRAM]   by default target/release/sojourn
set -euo pipefail
cd "$(dirname "$0")/.."
program=$(realpath "${1:-target/release/sojourn}")
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT
cd "$work"

# study NAME DURATION STEP [RATES RTTS]: a flow over a link, of as many rates and round-trip times; or two flows.
study() {
    printf 'schema = 1\ntitle = "%s"\n[scenario]\nduration = "%s"\nstep = "%s"\n[scenario.path]\nrate = "10Mbps"\nrtt = "20ms"\nqueue = "pfifo limit 50"\n' "$1" "$2" "$3"
    printf '[[scenario.flow]]\nname = "cubic"\napp = "bulk"\ncca = "cubic"\n'
    if [ $# -lt 5 ]; then
        printf '[[scenario.flow]]\nname = "bbr"\napp = "bulk"\ncca = "bbr"\n'
    else
        printf '[factors]\n"path.rate" = [%s]\n"path.rtt" = [%s]\n' \
            "$(seq -s, 1000 $((999 + $4)) | sed 's/[0-9]\+/"&kbps"/g')" "$(seq -s, 10 $((9 + $5)) | sed 's/[0-9]\+/"&ms"/g')"
        printf '[[claim]]\nid = "c"\ntext = "something arrives"\nexpect = "goodput(cubic) > 0 Mbps"\n'
    fi
}
# take WHAT COMMAND...
take() {
    local what=$1; shift
    "$(type -P time)" -f '%U %S %M' -o taken "$@" >/dev/null 2>said || { cat said; exit 1; }
    tail -1 taken | awk -v what="$what" '{ printf "%-34s %7.1f s  %7.1f MiB\n", what, $1 + $2, $3 / 1024 }'
}

study "dry" 1s 500ms 250 400 > dry.toml
take "dry run, 100 000 scenarios" "$program" run dry.toml --dry-run
for runs in 1000 5000 20000; do
    study "runs" 1s 500ms $((runs / 100)) 100 > runs.toml
    take "$runs runs" "$program" run runs.toml --out "runs-$runs" --no-report --jobs 1
    take "report of $runs scenarios" "$program" report "runs-$runs"
    printf '%-34s %20s MB\n' "its page" "$(stat -c %s "runs-$runs/report.html" | awk "{ printf \"%.1f\", \$1 / 1e6 }")"
done
study "long" 3600s 10ms > long.toml
take "an hour at a step of 10 ms" "$program" run long.toml --out long --no-report --jobs 1
