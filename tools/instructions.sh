#!/bin/sh
# Instructions per event of the pure path (HTTP framing, event stream, JSON, exchange, tally), one line per path,
# compared with the counts of the last commit in tools/instructions.txt. Fails if any grew by more than 3 %.
#
#   tools/instructions.sh            compare
#   tools/instructions.sh --update   write the counts of this tree to tools/instructions.txt
#
# Unlike times, instruction counts are the same in every run: benches/instructions.rs does a fixed amount of work
# under callgrind, once with few events and once with many, and the difference of the two counts divided by the
# difference of the events is free of start-up, of the first allocations and of the end. What is left to vary is what
# the counts are labelled with: the compiler, and the vector instructions by which libraries choose their loops
# (valgrind offers those of the machine below it). Counts with another label are not compared, and a line says so;
# whoever changes the toolchain updates the file.
#
# FEATURES names features to build with, which change nothing that is counted: whoever has built with them builds once.
#
# Needs valgrind (apt-get install valgrind).

set -eu
cd "$(dirname "$0")/.."

limit_percent=3
few=2000
many=12000
stored=tools/instructions.txt

command -v valgrind >/dev/null || { echo "instructions: valgrind is missing: apt-get install valgrind" >&2; exit 2; }

built=$(cargo bench --quiet --features "${FEATURES:-}" --no-run --bench instructions --message-format=json)
program=$(printf '%s\n' "$built" | sed -n 's/.*"name":"instructions".*"executable":"\([^"]*\)".*/\1/p' | tail -n 1)
[ -x "$program" ] || { echo "instructions: the program was not built" >&2; exit 2; }

# Instructions that path $1 takes for $2 events, in an empty environment: its size would move the stack.
count() {
    env -i valgrind --tool=callgrind --callgrind-out-file=/dev/null "$program" "$1" "$2" 2>&1 >/dev/null |
        sed -n 's/.*Collected : \([0-9]*\).*/\1/p'
}

measured=$(mktemp)
trap 'rm -f "$measured"' EXIT
listed=$(env -i valgrind -q --tool=none "$program")
{
    rustc --version
    printf '%s\n' "$listed" | sed -n 's/^simd //p'
    for path in $(printf '%s\n' "$listed" | sed -n 's/^path //p'); do
        low=$(count "$path" "$few")
        high=$(count "$path" "$many")
        [ -n "$low" ] && [ -n "$high" ] || { echo "instructions: valgrind gave no count for $path" >&2; exit 2; }
        awk -v p="$path" -v d=$((high - low)) -v n=$((many - few)) 'BEGIN { printf "%s %.1f\n", p, d / n }'
    done
} >"$measured"

if [ "${1:-}" = "--update" ]; then
    cp "$measured" "$stored"
    cat "$stored"
    exit 0
fi

if [ ! -f "$stored" ]; then
    sed 1,2d "$measured"
    echo "instructions: nothing to compare with: tools/instructions.sh --update writes $stored" >&2
    exit 2
fi
if [ "$(head -n 2 "$measured")" != "$(head -n 2 "$stored")" ]; then
    sed 1,2d "$measured"
    echo "instructions: not compared: counted with $(head -n 2 "$measured" | paste -sd ' '), stored are those of" \
        "$(head -n 2 "$stored" | paste -sd ' ')"
    exit 0
fi

awk -v limit="$limit_percent" '
    FNR <= 2 { next }
    NR == FNR { before[$1] = $2; next }
    !($1 in before) { printf "%-30s %8.1f per event, new\n", $1, $2; next }
    {
        grown = 100 * ($2 / before[$1] - 1)
        over = grown > limit
        bad += over
        printf "%-30s %8.1f per event, %+.1f %%%s\n", $1, $2, grown, over ? ": over the limit" : ""
        delete before[$1]
    }
    END {
        for (path in before) { printf "%s is gone\n", path; bad++ }
        if (bad) printf "instructions: grown by more than %s %%, or gone: tools/instructions.sh --update accepts it\n", limit
        exit bad > 0
    }
' "$stored" "$measured"
