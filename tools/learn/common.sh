# What the experiments share; to be read by them, not run. Plain sh and awk; numbers come from `tokload report --format csv`.
#
# TOKLOAD names the program (else the one in target/release, else the one in PATH), PICTURES where charts go.

set -eu
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
if [ -z "${TOKLOAD:-}" ]; then
    TOKLOAD=$root/target/release/tokload
    [ -x "$TOKLOAD" ] || TOKLOAD=$(command -v tokload) ||
        { echo "there is no tokload: build it by cargo build --release, or set TOKLOAD" >&2; exit 2; }
fi
case $TOKLOAD in */*) TOKLOAD=$(cd "$(dirname "$TOKLOAD")" && pwd)/$(basename "$TOKLOAD") ;; esac
PICTURES=${PICTURES:-$here/pictures}
case $PICTURES in /*) ;; *) PICTURES=$PWD/$PICTURES ;; esac
mkdir -p "$PICTURES"
work=$(mktemp -d)
server=
failed=0
seed=1
# The server is ours alone, and so is the folder: whatever ends the script takes both away.
trap '[ -z "$server" ] || kill "$server" 2>/dev/null || true; rm -rf "$work"' EXIT
trap 'exit 130' INT TERM
cd "$work"

# title TEXT
title() { printf '\n== %s\n' "$1"; }

# simulate NAME OPTIONS...: a run in virtual time, the same on every machine, saved as NAME.json
simulate() {
    name=$1; shift
    "$TOKLOAD" simulate "$@" --seed "$seed" --quiet --output-file "$name.json" > "$name.txt" 2>&1 || { cat "$name.txt"; exit 2; }
}

# mock OPTIONS...: starts the mock server on a free port, whose address is then in $url
mock() {
    "$TOKLOAD" mock-server --port 0 "$@" > /dev/null 2> mock.txt &
    server=$!
    tries=0
    until url=$(sed -n 's/.*\(http:[0-9a-z.:/]*[0-9]\).*/\1/p' mock.txt | head -n 1) && [ -n "$url" ]; do
        tries=$((tries + 1))
        [ "$tries" -lt 100 ] || { echo "the mock server does not start:" >&2; cat mock.txt >&2; exit 2; }
        sleep 0.1
    done
}

# measure NAME OPTIONS...: a run against the mock server, in real time
measure() {
    name=$1; shift
    "$TOKLOAD" run --base-url "$url" "$@" --seed "$seed" --quiet --output-file "$name.json" > "$name.txt" 2>&1 ||
        { cat "$name.txt"; exit 2; }
}

# in_time NAME: whether tokload found its own clock in time, without which a check in real time checks the machine
in_time() {
    if grep -q -E 'late_client|receive_lag|loop_lag|coalesced|client_cpu|cpu_steal|cpu_throttled' "$1.txt"; then
        echo "  skipped: this machine is too busy for real time, by tokload's own findings"
        return 1
    fi
}

# lengths FILE KEY REQUESTS N...: a plan of one user with a level for each length N of KEY, input_words or output_tokens
lengths() {
    file=$1; key=$2; requests=$3; shift 3
    for n in "$@"; do
        printf '[[levels]]\nwarmups = 1\nload = { users = 1 }\nstop = { units = %s }\nsizes = { %s = %s }\n' \
            "$requests" "$key" "$n"
    done > "$file"
}

# table NAME: the levels of a run as CSV, one line each. Commas within the name of a load become semicolons, so that awk can
# part columns; of levels with failures the line that counts them is taken.
table() {
    [ -f "$1.csv" ] || "$TOKLOAD" report "$1.json" --format csv |
        sed 's/^\([0-9]*\),"\([^",]*\), \([^"]*\)"/\1,\2; \3/' |
        awk -F, 'NR == 1 || $3 == "" && $4 == "all"' > "$1.csv"
    cat "$1.csv"
}

# show NAME COLUMN...: some columns of a run, to be looked at
show() {
    name=$1; shift
    table "$name" | awk -F, -v wanted="label,$(printf '%s,' "$@")" '
        NR == 1 { n = split(wanted, names, ",") - 1; for (i = 1; i <= NF; i++) at[$i] = i }
        {
            for (i = 1; i <= n; i++) {
                cell = $(at[names[i]])
                if (NR > 1 && i > 1) cell = sprintf("%.5g", cell)
                printf i == 1 ? "  %-28s" : " %12s", cell
            }
            print ""
        }'
}

# value NAME LEVEL COLUMN: a number of level LEVEL, from 1
value() {
    table "$1" | awk -F, -v level="$2" -v column="$3" '
        NR == 1 { for (i = 1; i <= NF; i++) if ($i == column) at = i; if (!at) exit 3 }
        NR == level + 1 { printf "%.7g\n", $at }'
}

# holds TEXT CONDITION: says whether CONDITION, an expression of awk, holds, with TEXT
holds() {
    if awk "BEGIN { exit !($2) }"; then
        printf '  ok      %s\n' "$1"
    else
        printf '  FAILED  %s   (%s)\n' "$1" "$2"
        failed=1
    fi
}

# picture CHART NAME RUN...: keeps the chart of that name of the runs as NAME.svg
picture() {
    chart=$1; kept=$2; shift 2
    runs=
    for run in "$@"; do runs="$runs $run.json"; done
    # Names of runs have no spaces.
    # shellcheck disable=SC2086
    "$TOKLOAD" report $runs --charts charts > /dev/null
    cp "charts/$chart.svg" "$PICTURES/$kept.svg"
}

# end: the exit code
end() {
    [ "$failed" -eq 0 ] || echo "  at least one relation does not hold"
    exit "$failed"
}
