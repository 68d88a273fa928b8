#!/bin/sh
# Decode: each further token costs the same, so that ITL is constant and E2E grows with the length of the answer.
. "$(dirname "$0")/common.sh"
title "2. decode: E2E and ITL against the length of the answer"

# check NAME PER_CENT: the relations of a run, with so much room for time that is real
check() {
    show "$1" itl_p50_ms tpot_p50_ms e2e_p50_ms
    level=1
    for n in 20 40 60 80 100 120; do
        itl=$(value "$1" $level itl_p50_ms); e2e=$(value "$1" $level e2e_p50_ms)
        holds "$n tokens: ITL p50 $itl ms is 10 within $2 %" "($itl / 10 - 1)^2 <= ($2 / 100)^2"
        holds "$n tokens: E2E p50 $e2e ms is 50 + 10 (n - 1) within $2 %" \
            "($e2e / (50 + 10 * ($n - 1)) - 1)^2 <= ($2 / 100)^2"
        level=$((level + 1))
    done
}

lengths plan.toml output_tokens 6 20 40 60 80 100 120
echo "  virtual time"
simulate decode -f plan.toml --ttft 50 --itl 10
check decode 0.1
echo "  real time"
mock --ttft 50 --itl 10
measure real -f plan.toml
if in_time real; then check real 5; fi

picture e2e-load 2-decode-e2e decode
picture tpot-load 2-decode-tpot decode
end
