#!/bin/sh
# The tail bends first: on the way to saturation p99 leaves long before p50 does, and before throughput says anything.
. "$(dirname "$0")/common.sh"
title "4. the knee of p99: Poisson arrivals up to saturation at 15 requests/s (virtual time)"

simulate tail --request-rate 2,4,6,8,10,11,12,13,14 --duration 600 --random-input-len 200 --random-output-len 50 \
    --goodput ttft:500
show tail req_s ttft_p50_ms ttft_p99_ms attainment

low50=$(value tail 1 ttft_p50_ms); low99=$(value tail 1 ttft_p99_ms)
mid50=$(value tail 7 ttft_p50_ms); mid99=$(value tail 7 ttft_p99_ms)
high50=$(value tail 9 ttft_p50_ms); high99=$(value tail 9 ttft_p99_ms)
sent=$(value tail 9 req_s)
holds "from 2 to 12 requests/s p50 grows less than 3 times: $low50 to $mid50 ms" "$mid50 < 3 * $low50"
holds "p99 grows more than 6 times: $low99 to $mid99 ms" "$mid99 > 6 * $low99"
holds "at 14 requests/s p99 is $high99 ms, p50 $high50 ms" "$high99 > 2 * $mid99"
holds "while throughput still follows the load: $sent requests/s" "$sent > 13.3 && $sent < 14.7"
percent() { awk "BEGIN { printf \"%.1f\", 100 * $1 }"; }
good=$(percent "$(value tail 5 attainment)"); bad=$(percent "$(value tail 9 attainment)")
holds "of TTFT <= 500 ms $good % are left at 10 requests/s, $bad % at 14" "$good > 99 && $bad < 97"

picture ttft-load 4-tail-ttft tail
picture requests-load 4-tail-goodput tail
end
