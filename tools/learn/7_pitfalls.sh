#!/bin/sh
# Pitfalls: three ways to a good number that nobody will ever see again.
. "$(dirname "$0")/common.sh"
title "7. pitfalls (virtual time)"

echo "  a cache that was filled by the test itself: prompts that share 90 % of their words"
simulate unique -c 4 --num-prompts 400 --random-input-len 1000 --random-output-len 50 --prefix-cache
simulate shared -c 4 --num-prompts 400 --random-input-len 100 --random-prefix-len 900 --random-output-len 50 --prefix-cache
a=$(value unique 1 ttft_p50_ms); b=$(value shared 1 ttft_p50_ms)
holds "TTFT p50 is $a ms for prompts of their own and $b ms for prompts that begin alike" "$b < 0.5 * $a"

echo "  a server that refuses: what is left over is quick"
for queue in 1000000 2; do
    simulate "queue$queue" --request-rate 30 --num-prompts 2000 --random-output-len 50 --queue-max $queue --goodput ttft:500
done
all=$(value queue1000000 1 ttft_p50_ms); kept=$(value queue2 1 ttft_p50_ms); lost=$(value queue2 1 failed)
holds "beyond capacity TTFT p50 is $all ms; with a queue of 2 it is $kept ms" "$kept < 0.1 * $all"
holds "and $lost of 2000 requests failed, which only the count of failures tells" "$lost > 500"

echo "  too few requests: the p99 of 30 is the slowest of 30"
for seed in 1 2 3 4 5 6; do
    for n in 30 3000; do
        simulate "few$n-$seed" --request-rate 10 --num-prompts $n --random-input-len 200 --random-output-len 50
        value "few$n-$seed" 1 ttft_p99_ms >> "p99-of-$n"
    done
done
least() { sort -n "$1" | head -n 1; }
most() { sort -n "$1" | tail -n 1; }
low=$(least p99-of-30); high=$(most p99-of-30)
sure_low=$(least p99-of-3000); sure_high=$(most p99-of-3000)
holds "six runs of 30 requests say p99 is $low to $high ms" "$high > 1.3 * $low"
holds "six of 3000, closer together: $sure_low to $sure_high ms" "$sure_high / $sure_low < $high / $low"

picture ttft-nines 7-pitfalls-cache unique shared
picture requests-time 7-pitfalls-refused queue2
end
