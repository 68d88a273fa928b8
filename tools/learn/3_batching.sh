#!/bin/sh
# Batching: users who are served together share the fixed cost of each step, until all slots are taken; then they wait.
. "$(dirname "$0")/common.sh"
title "3. batching and slots: what each further user brings and costs (virtual time)"

simulate batching -c 1,2,4,8,12,16,20,24,32,48 --duration 120 --random-input-len 200 --random-output-len 50
show batching out_tok_s tpot_p50_ms ttft_p50_ms ttft_p99_ms

one=$(value batching 1 out_tok_s); full=$(value batching 6 out_tok_s); last=$(value batching 10 out_tok_s)
holds "16 users get $full tok/s, more than 7 times the $one of one" "$full > 7 * $one"
holds "48 users get $last tok/s, no more than 5 % above those of 16" "$last < 1.05 * $full && $last > 0.95 * $full"
tpot_one=$(value batching 1 tpot_p50_ms); tpot=$(value batching 6 tpot_p50_ms)
holds "a step of one sequence is 10.5 ms: TPOT p50 $tpot_one ms" "$tpot_one > 10.4 && $tpot_one < 10.6"
holds "one of 16 is 18 ms, and others' prompts come between: TPOT p50 $tpot ms" "$tpot >= 17.9 && $tpot < 22"
ttft=$(value batching 6 ttft_p50_ms); queued=$(value batching 10 ttft_p50_ms)
tpot_last=$(value batching 10 tpot_p50_ms)
holds "whoever has no slot waits before the first token: TTFT p50 $ttft ms, with 48 users $queued ms" "$queued > 5 * $ttft"
holds "and not between tokens: TPOT p50 $tpot_last ms" "$tpot_last < 1.1 * $tpot"
said=$("$TOKLOAD" report batching.json | tr '\n' ' ' | grep -o 'knee at [0-9]* users' || true)
holds "tokload says so: $said" "\"$said\" == \"knee at 16 users\""

picture throughput-load 3-batching-throughput batching
picture ttft-load 3-batching-ttft batching
picture tpot-load 3-batching-tpot batching
end
