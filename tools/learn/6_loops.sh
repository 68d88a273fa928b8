#!/bin/sh
# Closed against open loop: users who wait for their answers ask nothing while the server stands still, and so see nothing of it.
. "$(dirname "$0")/common.sh"
title "6. closed against open loop: a standstill of 4 s in 40 s (virtual time)"

# Answers of 50 ms. One user gets 18 requests/s of such a server over the 40 s, which is what the open loop then asks for.
like="--duration 40 --random-output-len 1 --num-warmups 0 --ttft 50 --itl 0 --freeze 20:4"
# Options have no spaces of their own.
# shellcheck disable=SC2086
simulate closed -c 1 $like
# shellcheck disable=SC2086
simulate open --request-rate 18 --arrival-pattern constant $like
show closed ok req_s e2e_p50_ms e2e_p99_ms
show open ok req_s e2e_p50_ms e2e_p99_ms

n=$(value closed 1 ok); closed=$(value closed 1 e2e_p99_ms); open=$(value open 1 e2e_p99_ms)
holds "one of $n requests of the closed loop met the standstill: its p99 is $closed ms" "$closed < 60"
holds "whoever comes at a rate met it for a tenth of the time: p99 $open ms" "$open > 3000 && $open < 4200"
half=$(value open 1 e2e_p50_ms)
holds "the median knows of neither: $half ms" "$half < 60"

picture e2e-nines 6-loops-e2e closed open
end
