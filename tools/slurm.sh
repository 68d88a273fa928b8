#!/usr/bin/env bash
# One run dealt to processes by a real Slurm and by Open MPI: the merged result against that of one process, and what
# becomes of a process that is killed and of what it had measured. Needs slurmctld, slurmd, munged, mpirun and curl
# (Debian: apt-get install slurm-wlm munge openmpi-bin) and root. Two nodes run on this machine, with their files in a
# folder of their own; everything that was started is stopped, by its process id. Ends with a line per point, and fails if
# one of them does.
#
#     tools/slurm.sh [TOKLOAD]          the program, target/release/tokload unless named
set -u
cd "$(dirname "$0")/.." || exit 2
tokload=$(realpath "${1:-target/release/tokload}") || exit 2
here=$PWD
for program in slurmctld slurmd munged srun mpirun curl python3; do
    command -v "$program" >/dev/null || PATH=$PATH:/usr/sbin command -v "$program" >/dev/null ||
        { echo "$program is missing: apt-get install slurm-wlm munge openmpi-bin curl python3"; exit 2; }
done
PATH=$PATH:/usr/sbin
[ "$(id -u)" = 0 ] || { echo "slurmd starts its tasks as their users: run this as root"; exit 2; }

dir=$(mktemp -d "${TMPDIR:-/tmp}/tokload-slurm.XXXXXX") && chmod 755 "$dir"
export TOKLOAD_STATE_DIR=$dir/memory
pids=()
failed=0

stop() {
    for ((i = ${#pids[@]} - 1; i >= 0; i--)); do
        kill "${pids[i]}" 2>/dev/null
        for _ in $(seq 50); do kill -0 "${pids[i]}" 2>/dev/null || break; sleep 0.1; done
        kill -9 "${pids[i]}" 2>/dev/null
    done
    if [ "$failed" = 0 ]; then rm -rf "$dir"; else echo "files are left in $dir"; fi
}
trap stop EXIT
trap 'exit 130' INT TERM

point() { # point NAME COMMAND...: says whether the command held
    local name=$1
    shift
    if "$@" >>"$dir/points.log" 2>&1; then echo "PASS $name"; else echo "FAIL $name"; failed=1; fi
}

# --- two nodes -------------------------------------------------------------------------------------------------------
host=$(hostname -s)
mkdir -p "$dir/state"
dd if=/dev/urandom of="$dir/munge.key" bs=64 count=1 2>/dev/null && chmod 600 "$dir/munge.key"
munged --foreground --force --socket="$dir/munge.socket" --key-file="$dir/munge.key" --pid-file="$dir/munged.pid" \
    --log-file="$dir/munged.log" --seed-file="$dir/munged.seed" --num-threads=2 >"$dir/munged.out" 2>&1 &
pids+=($!)
cat >"$dir/slurm.conf" <<END
ClusterName=lab
SlurmctldHost=$host(127.0.0.1)
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket=$dir/munge.socket
StateSaveLocation=$dir/state
SlurmdSpoolDir=$dir/spool.%n
SlurmctldPidFile=$dir/ctld.pid
SlurmdPidFile=$dir/d.%n.pid
SlurmctldPort=16817
ProctrackType=proctrack/pgid
TaskPlugin=task/affinity
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
MpiDefault=none
ReturnToService=2
SlurmctldLogFile=$dir/ctld.log
SlurmdLogFile=$dir/d.%n.log
AccountingStorageType=accounting_storage/none
JobAcctGatherType=jobacct_gather/none
NodeName=n[1-2] NodeHostname=$host NodeAddr=127.0.0.1 Port=[16821-16822] CPUs=2 State=UNKNOWN
PartitionName=all Nodes=n[1-2] Default=YES OverSubscribe=FORCE:4 State=UP
END
export SLURM_CONF=$dir/slurm.conf
for _ in $(seq 50); do [ -S "$dir/munge.socket" ] && break; sleep 0.1; done
slurmctld -D >"$dir/ctld.out" 2>&1 &
pids+=($!)
sleep 1
for node in n1 n2; do
    slurmd -D -N "$node" >"$dir/$node.out" 2>&1 &
    pids+=($!)
done
nodes_up() { for _ in $(seq 150); do [ "$(sinfo -h -t idle -o %D 2>/dev/null)" = 2 ] && return; sleep 0.2; done; return 1; }
point "two nodes of Slurm are up" nodes_up
[ "$failed" = 0 ] || { tail -n 5 "$dir"/*.out "$dir"/*.log; exit 1; }

# --- a server, and what one process makes of it ----------------------------------------------------------------------
port=18431
"$tokload" mock-server --port $port --ttft 20 --itl 4 >"$dir/mock.out" 2>&1 &
pids+=($!)
for _ in $(seq 100); do curl -sf "http://127.0.0.1:$port/v1/models" >/dev/null && break; sleep 0.1; done
open="run --base-url http://127.0.0.1:$port --request-rate 40 --num-prompts 240 --seed 7 --random-input-len 16
    --random-output-len 8 --no-progress"
closed="run --base-url http://127.0.0.1:$port --max-concurrency 6,10 --num-prompts 120 --seed 7 --random-input-len 16
    --random-output-len 8 --no-progress"
whole() { env -i PATH="$PATH" HOME="$dir" TOKLOAD_STATE_DIR="$dir/memory" "$tokload" "$@"; }
in_job() { SLURM_CONF=$dir/slurm.conf timeout 120 srun -N 2 -n 4 --chdir="$dir" "$tokload" "$@"; }
in_mpi() {
    local more=()
    [ "$1" = --enable-recovery ] && { more=("$1"); shift; }
    timeout 120 mpirun --allow-run-as-root --oversubscribe "${more[@]}" -n 4 --wdir "$dir" "$tokload" "$@"
}
same() { # same ONE MERGED: counts, bodies and planned times, level by level
    for run in "$1" "$2"; do
        "$tokload" report "$run" --export csv-records="${run%.json}.csv" --force >/dev/null || return 1
    done
    python3 "$here/tools/same_plan.py" "$1" "$2"
}
cd "$dir" || exit 2
# shellcheck disable=SC2086
{
    point "one process, open loop" whole $open --output-file one.json
    point "one process, closed loop" whole $closed --output-file one-closed.json
    point "srun -N 2 -n 4, open loop" in_job $open --output-file srun.json
    point "its result is that of one process: counts, bodies, planned times" same one.json srun.json
    point "srun -N 2 -n 4, closed loop of two levels" in_job $closed --output-file srun-closed.json
    point "its counts and bodies are those of one process" same one-closed.json srun-closed.json
    point "mpirun -n 4, open loop" in_mpi $open --output-file mpi.json
    point "its result is that of one process: counts, bodies, planned times" same one.json mpi.json
}
alone_in_a_shell() { # what salloc gives a shell is no step of several
    salloc -N 2 -n 4 bash -c "\"$tokload\" $1 --output-file shell.json" && [ -e shell.json ]
}
point "a shell of salloc makes the whole run" alone_in_a_shell "$(echo $open)"
refused() { in_job find-capacity --base-url http://127.0.0.1:$port --goodput ttft:500 2>&1 | grep -q "srun -n 1"; }
point "find-capacity in four processes is refused" refused

# --- a process that is killed ----------------------------------------------------------------------------------------
killed() { # killed LAUNCHER NAME: kills the process of share 3 in the middle of the run
    local launcher=$1 name=$2 pid
    # shellcheck disable=SC2086
    $launcher run --base-url http://127.0.0.1:$port --request-rate 40 --duration 12s --seed 7 --random-input-len 16 \
        --random-output-len 8 --no-progress --num-warmups 0 --output-file "$name.json" >"$name.out" 2>&1 &
    local all=$!
    for _ in $(seq 200); do
        pid=$(sed -n 's/.*"pid":\([0-9]*\).*"stage":"running".*/\1/p' "$name".gathering/*.share-3.json 2>/dev/null)
        [ -n "$pid" ] && break
        sleep 0.1
    done
    [ -n "$pid" ] || return 1
    sleep 5
    kill -9 "$pid"
    wait $all
    [ ! -e "$name.json" ] && [ ! -e "$name.share-3-of-4.json" ]
}
is_named() { # the missing share, with its last sign of life
    "$tokload" merge "$1".share-*-of-4.json --output-file "$1.json" 2>&1 | tee "$1.said" |
        grep -q "1 of 4 shares are missing (3).*share 3 (process [0-9]* on .*) last wrote at" && [ ! -e "$1.json" ]
}
is_accepted() { # with the load that was offered
    "$tokload" merge "$1".share-*-of-4.json --allow-missing --output-file "$1.json" >"$1.table" || return 1
    python3 - "$1.json" <<'END'
import json, sys
run = json.load(open(sys.argv[1]))
assert run["merged"]["missing"] == [3], run["merged"]["missing"]
rules = [finding["rule"] for finding in run["findings"]]
assert "shares_missing" in rules, rules
level = run["levels"][0]
assert "3 of 4 shares: 30/s" in level["label"], level["label"]
print(level["label"], level["counts"])
END
}
is_merged() { # what the killed process had measured, with the others: no law is broken, no rate is off
    local files
    files=$(printf "$1.share-%d-of-4.json " 1 2 3 4)
    # shellcheck disable=SC2086
    "$tokload" merge $files --output-file "$1-with.json" >"$1-with.table" || return 1
    python3 - "$1-with.json" <<'END'
import json, sys
run = json.load(open(sys.argv[1]))
level = run["levels"][0]
rules = [finding["rule"] for finding in run["findings"] + level["findings"]]
assert not {"little_mismatch", "realised_rate_off", "shares_missing"} & set(rules), rules
assert any("share 3 was cut" in note for note in run["merged"]["notes"]), run["merged"]["notes"]
window_s = (level["window"]["end_ns"] - level["window"]["start_ns"]) / 1e9
assert 1 < window_s < 10, window_s
print(window_s, level["counts"])
END
}
point "srun: share 3 of 4 is killed, the others save theirs" killed in_job killed
point "merge names it and its last sign of life" is_named killed
point "what it had measured is merged with the others" is_merged killed
point "merge --allow-missing takes the load that was offered" is_accepted killed
# Without --enable-recovery mpirun ends all when one of its processes ends by a signal.
point "mpirun: share 3 of 4 is killed, the others save theirs" killed "in_mpi --enable-recovery" killed-mpi
point "merge names it and its last sign of life" is_named killed-mpi
point "what it had measured is merged with the others" is_merged killed-mpi
point "merge --allow-missing takes the load that was offered" is_accepted killed-mpi
exit $failed
