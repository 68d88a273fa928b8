#!/bin/sh
# Prefill: a prompt has to be computed before the first token can come, so that TTFT grows with its length, and TPOT does not.
# On the mock server with steps that cost 10 ms, 0.5 ms for each sequence and 0.05 ms for each token of a prompt.
. "$(dirname "$0")/common.sh"
title "1. prefill: TTFT against the length of the prompt (mock server, real time)"

mock --model-preset course
lengths plan.toml input_words 15 500 1000 1500 2000 2500 3000
measure prefill -f plan.toml --random-output-len 20
show prefill "TTFT ms p50" "TPOT ms p50"

level=1
for n in 500 1000 1500 2000 2500 3000; do
    ttft=$(value prefill $level "TTFT ms p50")
    holds "$n tokens: TTFT p50 $ttft ms is 10.5 + 0.05 n within 4 % and 2 ms" \
        "($ttft - (10.5 + 0.05 * $n))^2 <= (2 + 0.04 * (10.5 + 0.05 * $n))^2"
    level=$((level + 1))
done
slope=$(awk "BEGIN { print ($(value prefill 6 "TTFT ms p50") - $(value prefill 1 "TTFT ms p50")) / 2500 }")
holds "each token of a prompt costs $slope ms, 0.05 within 5 %" "$slope > 0.0475 && $slope < 0.0525"
short=$(value prefill 1 "TPOT ms p50"); long=$(value prefill 6 "TPOT ms p50")
holds "TPOT does not know the prompt: $short ms and $long ms" "$long / $short > 0.95 && $long / $short < 1.05"

picture ttft-load 1-prefill-ttft prefill
end
