#!/bin/sh
# Prefill: a prompt has to be computed before the first token can come, so that TTFT grows with its length, and TPOT does not.
# In virtual time, then in real time on the mock server, with steps that cost 10 ms, 0.5 ms for each sequence and 0.05 ms for each token of a prompt.
. "$(dirname "$0")/common.sh"
title "1. prefill: TTFT against the length of the prompt"

# check NAME PER_CENT: the relations of a run, with so much room for time that is real
check() {
    show "$1" ttft_p50_ms tpot_p50_ms
    level=1
    for n in 500 1000 1500 2000 2500 3000; do
        ttft=$(value "$1" $level ttft_p50_ms)
        holds "$n tokens: TTFT p50 $ttft ms is 10.5 + 0.05 n within $2 %" \
            "($ttft / (10.5 + 0.05 * $n) - 1)^2 <= ($2 / 100)^2"
        level=$((level + 1))
    done
    slope=$(awk "BEGIN { print ($(value "$1" 6 ttft_p50_ms) - $(value "$1" 1 ttft_p50_ms)) / 2500 }")
    holds "each token of a prompt costs $slope ms, 0.05 within $2 %" "($slope / 0.05 - 1)^2 <= ($2 / 100)^2"
    short=$(value "$1" 1 tpot_p50_ms); long=$(value "$1" 6 tpot_p50_ms)
    holds "TPOT does not know the prompt: $short ms and $long ms" "($long / $short - 1)^2 <= ($2 / 100)^2"
}

lengths plan.toml input_words 15 500 1000 1500 2000 2500 3000
echo "  virtual time"
simulate prefill -f plan.toml --random-output-len 20
check prefill 0.1
echo "  real time"
mock --model-preset course
measure real -f plan.toml --random-output-len 20
if in_time real; then check real 5; fi

picture ttft-load 1-prefill-ttft prefill
end
