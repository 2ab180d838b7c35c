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
cargo build --release --quiet -p sojourn-benches
program=${CARGO_TARGET_DIR:-target}/release/yardstick
counted=$(mktemp)
trap 'rm -f "$counted"' EXIT

# Prints instructions and segments of yardstick $1 over $2 simulated seconds.
count() {
    segments=$(valgrind --tool=callgrind --callgrind-out-file=/dev/null --log-file="$counted" \
        "$program" --count --seconds "$2" "$1" | awk '{ print $2 }')
    awk -v segments="$segments" '/Collected/ { print $NF, segments }' "$counted"
}

# A line for each yardstick: name, shorter and longer time, ceiling, goal.
table=$(awk '
    /^\[/ { name = substr($1, 2, length($1) - 2) }
    /^seconds/ { gsub(/[][,]/, " "); short = $3; long = $4 }
    /^ceiling/ { ceiling = $3 }
    /^goal/ { print name, short, long, ceiling, $3 }
' "$here/instructions.toml")

status=0
printf '%-16s %12s %9s %9s\n' yardstick instructions ceiling goal
while read -r name short long ceiling goal; do
    [ $# -eq 0 ] || case " $* " in *" $name "*) ;; *) continue ;; esac
    figure=$({ count "$name" "$short"; count "$name" "$long"; } |
        awk 'NR == 1 { i = $1; s = $2 } NR == 2 { printf "%.0f", ($1 - i) / ($2 - s) }')
    verdict=
    if [ "$figure" -gt "$ceiling" ]; then
        verdict='  too many'
        status=1
    elif [ $((figure * 106)) -lt $((ceiling * 100)) ]; then
        verdict="  the ceiling can come down to $((figure * 103 / 100))"
    fi
    if [ "$figure" -gt "$goal" ]; then
        verdict="$verdict  the goal is not reached"
    fi
    printf '%-16s %12s %9s %9s%s\n' "$name" "$figure" "$ceiling" "$goal" "$verdict"
done <<TABLE
$table
TABLE
exit $status
