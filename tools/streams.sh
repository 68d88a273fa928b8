#!/usr/bin/env bash
# Many streams at once: STREAMS (95 000) of one event in ten seconds each, over PROCESSES (6) of one mpirun line against as
# many mock servers on addresses of their own (127.0.0.2 on), all complete and merged into one result; then as many
# as one process may hold by its limit on descriptors. Says what the streams cost in memory, and first which limit of the
# machine stands in the way, if one does. Needs mpirun (Debian: openmpi-bin), curl and python3; about five minutes on two
# cores. Everything that was started is stopped, by its process id.
#
#     tools/streams.sh [TOKLOAD]        the program, target/release/tokload unless named
set -u
cd "$(dirname "$0")/.." || exit 2
tokload=$(realpath "${1:-target/release/tokload}") || exit 2
streams=${STREAMS:-95000}
processes=${PROCESSES:-6}
tokens=${TOKENS:-9}
port=18450
for program in mpirun curl python3; do
    command -v "$program" >/dev/null || { echo "$program is missing: apt-get install openmpi-bin curl python3"; exit 2; }
done

# --- limits ----------------------------------------------------------------------------------------------------------
each=$(((streams + processes - 1) / processes))
descriptors=$(ulimit -Hn)
missing=0
lack() { echo "MISSING $*"; missing=1; }
if [ "$descriptors" != unlimited ]; then
    [ $((each + 200)) -le "$descriptors" ] ||
        lack "descriptors: $each streams a process need ulimit -n $((each + 200)), it is $descriptors; take $(((streams + descriptors - 201) / (descriptors - 200))) PROCESSES"
fi
read -r low high </proc/sys/net/ipv4/ip_local_port_range
[ "$each" -le $((high - low + 1)) ] ||
    lack "ports: $each connections go to one address, net.ipv4.ip_local_port_range has $((high - low + 1))"
[ $((2 * streams + 10000)) -le "$(cat /proc/sys/fs/file-max)" ] || lack "open files of the machine: fs.file-max"
# User memory at both ends, and some 12 KiB of the kernel for the two sockets of a stream.
need=$((streams * 28 + 200000))
free=$(awk '/MemAvailable/ { print $2 }' /proc/meminfo)
[ "$need" -le "$free" ] || lack "memory: about $((need / 1024)) MiB, $((free / 1024)) MiB are available"
[ "$missing" = 0 ] || exit 1
ulimit -n "$descriptors"

dir=$(mktemp -d "${TMPDIR:-/tmp}/tokload-streams.XXXXXX")
export TOKLOAD_STATE_DIR=$dir/memory
pids=()
failed=0
stop() {
    for pid in "${pids[@]}"; do kill "$pid" 2>/dev/null; done
    for pid in "${pids[@]}"; do
        for _ in $(seq 50); do kill -0 "$pid" 2>/dev/null || break; sleep 0.1; done
        kill -9 "$pid" 2>/dev/null
    done
    if [ "$failed" = 0 ]; then rm -rf "$dir"; else echo "files are left in $dir"; fi
}
trap stop EXIT
trap 'exit 130' INT TERM
point() {
    local name=$1
    shift
    if "$@"; then echo "PASS $name"; else echo "FAIL $name"; failed=1; fi
}

# --- servers ---------------------------------------------------------------------------------------------------------
urls=()
for ((i = 0; i < processes; i++)); do
    address=127.0.0.$((i + 2))
    "$tokload" mock-server --host "$address" --port $port --ttft 10000 --itl 10000 --workers 1 >"$dir/mock-$i.out" 2>&1 &
    pids+=($!)
    urls+=(--base-url "http://$address:$port")
    for _ in $(seq 100); do curl -sf "http://$address:$port/v1/models" >/dev/null && break; sleep 0.1; done
done
mocks=("${pids[@]}")
options=(--random-input-len 4 --random-output-len "$tokens" --num-warmups 0 --seed 1 --no-progress-timeout 120
    --first-token-timeout 180 --request-timeout-seconds 0 --workers 1 --no-cpu-affinity --no-server-metrics)

# --- what a stream costs ---------------------------------------------------------------------------------------------
resident() { # resident PID...: KiB in memory of all of them together
    local all=0 pid of
    for pid in "$@"; do
        of=$(awk '/VmRSS/ { print $2 }' "/proc/$pid/status" 2>/dev/null)
        all=$((all + ${of:-0}))
    done
    echo $all
}
# All are open from the last start on until the first answer ends; what is done with the result afterwards is not theirs.
held_s=$((10 + each * ${SPREAD:-1000} / 1000000 + 20))
watch() { # watch N FILE PID...: least and most that they have in memory until all streams are open
    local n=$1 file=$2 least most now i
    shift 2
    least=$(resident "$@")
    most=$least
    for ((i = 0; i < 2 * held_s; i++)); do
        now=$(resident "$@")
        [ "$now" -gt "$most" ] && most=$now
        echo "$least $most $n" >"$file"
        sleep 0.5
    done
}
cost() { # cost FILE WHAT: says it; fails above 8 KiB a stream
    read -r least most n <"$1"
    awk -v l="$least" -v m="$most" -v n="$n" -v what="$2" 'BEGIN {
        kib = (m - l) / n
        printf "     %s: %.2f KiB a stream (%d streams, %.1f MiB before them, %.1f MiB at most)\n", what, kib, n, l / 1024, m / 1024
        exit kib > 8
    }'
}
complete() { # complete FILE N: all streams ended well, and all were open at once
    python3 - "$1" "$2" <<'END'
import json, sys
run, n = json.load(open(sys.argv[1])), int(sys.argv[2])
[level] = run["levels"]
counts, most = level["counts"], level["in_flight"]["max"]
shares = run["merged"]["of"] if run.get("merged") else 1
print(f"     {counts['ok']} of {n} ended well, {counts['failed']} failed, {most} at once, {shares} processes")
sys.exit(not (counts["ok"] == counts["planned"] == n and most == n))
END
}

# --- all of them -----------------------------------------------------------------------------------------------------
# As far apart as the two cores need to open them: the first answer lasts until the last has begun.
many() {
    timeout 600 mpirun --allow-run-as-root --oversubscribe --bind-to none -n "$processes" --wdir "$dir" "$tokload" run \
        "${urls[@]}" "${options[@]}" --max-concurrency "$streams" --num-prompts "$streams" \
        --start-spread "${SPREAD:-1000}" --output-file many.json >"$dir/many.out" 2>&1 &
    local all=$! clients=()
    for _ in $(seq 300); do
        mapfile -t clients < <(sed -n 's/.*"pid":\([0-9]*\).*/\1/p' "$dir"/many.gathering/*.share-*.json 2>/dev/null | sort -u)
        [ "${#clients[@]}" -eq "$processes" ] && break
        sleep 0.05
    done
    watch "$streams" "$dir/clients" "${clients[@]}" &
    local watching=$!
    watch "$streams" "$dir/mocks" "${mocks[@]}" &
    local watching_mocks=$!
    wait $all
    local rc=$?
    kill $watching $watching_mocks 2>/dev/null
    wait $watching $watching_mocks 2>/dev/null
    [ $rc = 0 ] || tail -n 20 "$dir/many.out"
    return $rc
}
point "$streams streams from $processes processes of one mpirun" many
point "all complete, all at once, in one result" complete "$dir/many.json" "$streams"
point "at most 8 KiB a stream in the clients" cost "$dir/clients" "the clients"
cost "$dir/mocks" "the mock servers" || true

# --- one process -----------------------------------------------------------------------------------------------------
one=$((descriptors == 20000 ? 18000 : descriptors - 2000))
[ "$one" -le "${ONE_MAX:-18000}" ] || one=${ONE_MAX:-18000}
alone() {
    "$tokload" run "${urls[@]:0:4}" "${options[@]}" --max-concurrency "$one" --num-prompts "$one" \
        --start-spread "${SPREAD:-1000}" --output-file "$dir/one.json" >"$dir/one.out" 2>&1 &
    local all=$!
    pids+=($all)
    sleep 0.3
    watch "$one" "$dir/alone" $all
    wait $all
    local rc=$?
    [ $rc = 0 ] || tail -n 20 "$dir/one.out"
    return $rc
}
point "$one streams in one process, whose limit is $descriptors descriptors" alone
point "all complete, all at once" complete "$dir/one.json" "$one"
point "at most 8 KiB a stream" cost "$dir/alone" "the client"
exit $failed
