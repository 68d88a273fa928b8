#!/bin/sh
# Decode: each further token costs the same, so that ITL is constant and E2E grows with the length of the answer.
. "$(dirname "$0")/common.sh"
title "2. decode: E2E and ITL against the length of the answer (mock server, real time)"

mock --ttft 50 --itl 10
lengths plan.toml output_tokens 6 20 40 60 80 100 120
measure decode -f plan.toml
show decode "ITL ms p50" "TPOT ms p50" "E2E ms p50"

level=1
for n in 20 40 60 80 100 120; do
    itl=$(value decode $level "ITL ms p50"); e2e=$(value decode $level "E2E ms p50")
    holds "$n tokens: ITL p50 $itl ms is 10 within 3 %" "$itl > 9.7 && $itl < 10.3"
    holds "$n tokens: E2E p50 $e2e ms is 50 + 10 (n - 1) within 3 % and 5 ms" \
        "($e2e - (50 + 10 * ($n - 1)))^2 <= (5 + 0.03 * (50 + 10 * ($n - 1)))^2"
    level=$((level + 1))
done

picture e2e-load 2-decode-e2e decode
picture tpot-load 2-decode-tpot decode
end
