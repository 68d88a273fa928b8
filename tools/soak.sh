#!/usr/bin/env bash
# A soak: 2000 events a second for half an hour against the mock, whose memory must stay flat; then a run that is killed at
# a random moment, of which all but the last second must be reported. SOAK_SECONDS=120 is the short form.
#
#   cargo build --release && tools/soak.sh
#   SOAK_SECONDS=120 TOKLOAD=target/debug/tokload tools/soak.sh
set -euo pipefail
cd "$(dirname "$0")/.."
tokload=$(realpath "${TOKLOAD:-target/release/tokload}")
seconds=${SOAK_SECONDS:-1800}
[ -x "$tokload" ] || { echo "$tokload is missing: build it by cargo build --release, or name another by TOKLOAD" >&2; exit 2; }
[ "$seconds" -ge 40 ] || { echo "SOAK_SECONDS=$seconds is too short: give 40 or more" >&2; exit 2; }
work=$(mktemp -d)
mock='' run=''
finish() {
  for process in $run $mock; do kill "$process" 2>/dev/null || true; done
  rm -rf "$work"
}
trap finish EXIT
export TOKLOAD_STATE_DIR=$work/state

"$tokload" mock-server --port 0 --ttft 50 --itl 10 >"$work/mock.log" 2>&1 &
mock=$!
for _ in $(seq 200); do
  url=$(grep -om1 'http://[0-9.:]*' "$work/mock.log" || true)
  [ -n "$url" ] && break
  sleep 0.05
done
[ -n "$url" ] || { echo "the mock did not start:" >&2; cat "$work/mock.log" >&2; exit 1; }

# A slice is kept for good, as a few KiB: fewer of them where they are short.
slices=$((seconds < 600 ? 10 : 30))
# 20 requests a second of 100 tokens each.
load=(run --base-url "$url" --request-rate 20 --output-len 100 --input-len 50 --slice-duration "$((seconds / slices))"
  --no-server-metrics --quiet)

echo "soaking for $seconds s at 2000 events a second"
"$tokload" "${load[@]}" --duration "$seconds" --output-file "$work/soak.json" >"$work/soak.log" 2>&1 &
run=$!
while kill -0 "$run" 2>/dev/null; do
  # What is written while it ends is no part of the run.
  awk '/^VmRSS/ { print $2 }' "/proc/$run/status" 2>/dev/null >>"$work/rss" || true
  sleep 1
done
wait "$run" || { echo "the run failed:" >&2; cat "$work/soak.log" >&2; exit 1; }
run=''

python3 - "$work/rss" "$work/soak.json" "$seconds" <<'PYTHON'
import json, sys
rss = [int(line) for line in open(sys.argv[1]) if line.strip()]
seconds = int(sys.argv[3])
# The start fills buffers, connections and, with the first values of each kind, histograms, which in a short run takes half of
# it; the end reads the records. The parts compared lie between.
rss = rss[seconds // 2 if seconds < 600 else 20 : seconds]
part = len(rss) // 4
first, last = (sum(some) / part for some in (rss[:part], rss[-part:]))
level = json.load(open(sys.argv[2]))["levels"][0]
ok, failed = level["counts"]["ok"], level["counts"]["failed"]
events = level["distributions"]["itl"]["n"] + ok
window = level["rates"]["window"]["span_s"]
change = 100 * (last / first - 1)
print(f"events: {events / window:.0f} a second, {ok} requests, {failed} failed, {len(level['slices']['rows'])} slices")
print(f"memory: {first / 1024:.2f} MiB in the first part, {last / 1024:.2f} MiB in the last ({change:+.2f} %)")
drifting = [one["figure"] for one in level["slices"]["drift"] if one["drifts"]]
print("drift:", ", ".join(drifting) or "none")
if failed or abs(change) > 2 or events / window < 1800:
    sys.exit("not flat, or not what was asked for")
PYTHON

# From 4 to 12 s, in milliseconds.
moment=$((4000 + RANDOM % 8000))
"$tokload" "${load[@]}" --duration 600 --output-file "$work/killed.json" >"$work/killed.log" 2>&1 &
run=$!
sleep "$(printf '%d.%03d' $((moment / 1000)) $((moment % 1000)))"
kill -KILL "$run"
wait "$run" 2>/dev/null || true
run=''
"$tokload" report "$work/killed.json" --format json >"$work/report.json"
python3 - "$work/report.json" "$moment" <<'PYTHON'
import json, sys
run = json.load(open(sys.argv[1]))
level, cut, moment = run["levels"][0], run["cut"], int(sys.argv[2]) / 1000
t0 = level["span"]["t0_ns"] / 1e9
print(f"killed {moment:.3f} s after its start: {level['counts']['ok']} requests are reported, the last ended at "
      f"{cut['until_s']:.3f} s ({moment - cut['until_s']:.3f} s before), {level['distributions']['itl']['n']} gaps")
# At 20 a second one ends every 50 ms.
if moment - cut["until_s"] > 1:
    sys.exit("more than the last second is lost")
PYTHON
echo "soak: passed"
