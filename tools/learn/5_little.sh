#!/bin/sh
# Little's law: requests in flight = requests per second * time in flight, whatever the server, the load or the order.
. "$(dirname "$0")/common.sh"
title "5. Little's law: L = lambda W, and N = lambda (W + Z) with users who think (virtual time)"

simulate little --request-rate 3,6,9,12 --duration 600 --random-input-len 200 --random-output-len 50
"$TOKLOAD" report little.json --explain > little.explained
# X W = 3.02/s * 750.0 ms = 2.26. Counted: L = 2.26 on average, 9 at most.
tr -s ' \n' '  ' < little.explained | grep -o 'X W = [0-9.]*/s \* [0-9.]* ms = [0-9.]*\. Counted: L = [0-9.]*' |
    sed 's/X W = \([0-9.]*\).s . \([0-9.]*\) ms = [0-9.]*\. Counted: L = \([0-9.]*\)/\1 \2 \3/' > laws
holds "each of the four loads has its law" "$(wc -l < laws) == 4"
while read -r lambda w counted; do
    product=$(awk "BEGIN { printf \"%.3f\", $lambda * $w / 1000 }")
    holds "lambda W = $lambda/s * $w ms = $product, counted L = $counted, within 1 %" \
        "($product / $counted - 1)^2 <= 0.01^2"
done < laws

# A server of fixed times: 200 ms, then 49 gaps of 20 ms, is W = 1.18 s; Z is 1 s.
simulate users -c 2,4,8,16 --think-time 1 --ttft 200 --itl 20 --duration 300 --random-output-len 50
show users req_s e2e_p50_ms
level=1
for n in 2 4 8 16; do
    lambda=$(value users $level req_s); w=$(value users $level e2e_p50_ms)
    holds "N = $n: lambda (W + Z) = $lambda ($w ms + 1 s), within 1 %" "($lambda * ($w / 1000 + 1) / $n - 1)^2 <= 0.01^2"
    level=$((level + 1))
done

picture in-flight-time 5-little-in-flight little
end
