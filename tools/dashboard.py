#!/usr/bin/env python3
"""The dashboard in a terminal of each size, what it costs, and that it delays no request.

    tools/dashboard.py [--program target/release/tokload] [--seconds 20] [--pairs 8] [--show]

Starts `tokload mock-server` and a run with `--ui dashboard` in a tmux of its own, looks at the screen in the middle of the
run (with --show prints it), and stops the run by its key. The program must be built with `--features dashboard`. Fails
unless the screen has what belongs on it, the terminal is an ordinary one afterwards, the result is saved, and the thread
that draws took less than 1 % of a core (/proc/PID/task/TID/schedstat).

Then an open loop of 200 requests/s runs for 10 s in turns with the dashboard and without, --pairs times; the schedule delay
and the loop lag of both are printed, and a line each tells of the pairs. Neither may be later at the p99 with the dashboard
in so many pairs that chance would do it less than once in a hundred times. On a machine that is busy otherwise both are
noise, and the tool then says little: the p99 without the dashboard tells.
"""

import argparse
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
import time

SIZES = ((80, 24), (160, 50), (50, 12))
PORT = 8350
CPU_SHARE_MAX = 0.01
CHANCE_MIN = 0.01
SAID = ("tokload", "level 1 of 1, 8 users", "s left", "level so far", " TTFT ", " E2E ", " ok ", " client p99: send delay")
SAID_WIDE = ("in flight 8", "requests/s ", "tokens/s ", "TTFT p50 ", "TTFT p99 ", "last 10 s")


def tmux(name, *words):
    done = subprocess.run(["tmux", "-L", name, *words], capture_output=True, text=True, check=True, timeout=30)
    return done.stdout


def drawing_thread(program):
    """Process and thread that draws, of the tokload that runs under `program` with a dashboard."""
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as line:
                if program.encode() not in line.read().split(b"\0"):
                    continue
            for tid in os.listdir(f"/proc/{pid}/task"):
                with open(f"/proc/{pid}/task/{tid}/comm") as comm:
                    if comm.read().strip() == "dashboard":
                        return f"/proc/{pid}/task/{tid}/schedstat"
        except OSError:
            continue
    return None


def cpu_ns(schedstat):
    with open(schedstat) as line:
        return int(line.read().split()[0])


def watched(asked, size, folder):
    width, height = size
    name = f"tokload-dashboard-{os.getpid()}-{width}"  # a server that is ending takes no new session
    saved = os.path.join(folder, f"{width}x{height}.json")
    # A second name for the program, by which its process is told from all others.
    program = os.path.join(folder, f"tokload-{width}x{height}")
    os.symlink(os.path.abspath(asked.program), program)
    run = (f"{program} run --base-url http://127.0.0.1:{PORT} --max-concurrency 8 --random-output-len 32 --duration 300 "
           f"--ui dashboard --output-file {saved}")
    tmux(name, "-f", "/dev/null", "new-session", "-d", "-x", str(width), "-y", str(height), "env PS1='$ ' sh")
    try:
        tmux(name, "send-keys", run, "Enter")
        until = time.monotonic() + 20
        while (thread := drawing_thread(program)) is None and time.monotonic() < until:
            time.sleep(0.1)
        if thread is None:
            return [f"{width}x{height}: no dashboard came up:\n{tmux(name, 'capture-pane', '-p')}"]
        time.sleep(2)
        before, began = cpu_ns(thread), time.monotonic()
        time.sleep(asked.seconds)
        share = (cpu_ns(thread) - before) / 1e9 / (time.monotonic() - began)
        screen = tmux(name, "capture-pane", "-p")
        tmux(name, "send-keys", "q")
        until = time.monotonic() + 20
        while os.path.exists(os.path.dirname(thread)) and time.monotonic() < until:
            time.sleep(0.1)
        tmux(name, "send-keys", "echo ended: $?", "Enter")
        time.sleep(0.5)
        after = tmux(name, "capture-pane", "-p", "-S", "-200")
    finally:
        tmux(name, "kill-server")
    if asked.show:
        print(screen)
    print(f"{width}x{height}: the dashboard took {100 * share:.2f} % of a core")
    wanted = SAID + (SAID_WIDE if height >= 24 else ())
    faults = [f"{width}x{height}: no {said!r} on the screen:\n{screen}" for said in wanted if said not in screen]
    if "level so far" in after or "ended: 130" not in after or "interrupted" not in after:
        faults.append(f"{width}x{height}: the terminal is not as it was, or the result is not there:\n{after}")
    if not os.path.exists(saved) or not json.load(open(saved))["interrupted"]:
        faults.append(f"{width}x{height}: nothing was saved")
    if share >= CPU_SHARE_MAX:
        faults.append(f"{width}x{height}: that is more than {100 * CPU_SHARE_MAX:.0f} %")
    return faults


def delays(asked, ui, name, folder):
    """The p99 of schedule delay and of loop lag of one run, us; with the dashboard it has a terminal of tmux."""
    saved = os.path.join(folder, f"{name}.json")
    words = [os.path.abspath(asked.program), "run", "--base-url", f"http://127.0.0.1:{PORT}", "--request-rate", "200",
             "--num-prompts", "2000", "--random-output-len", "16", "--ui", ui, "--output-file", saved]
    socket = f"tokload-delays-{os.getpid()}-{name}"
    tmux(socket, "-f", "/dev/null", "new-session", "-d", "-x", "160", "-y", "50", " ".join(words))
    until = time.monotonic() + 60
    while not os.path.exists(saved) and time.monotonic() < until:
        time.sleep(0.2)
    subprocess.run(["tmux", "-L", socket, "kill-server"], capture_output=True, timeout=30)
    with open(saved) as file:
        check = json.load(file)["levels"][0]["self_check"]
    return {part: check[part]["p99_ns"] / 1e3 for part in ("schedule_delay", "loop_lag")}


def compared(asked, folder):
    with_it, without = [], []
    for pair in range(asked.pairs):
        # Which comes first changes, so that a machine that grows slower is no difference.
        order = (("dashboard", with_it), ("none", without))
        for ui, runs in order if pair % 2 else reversed(order):
            runs.append(delays(asked, ui, f"{ui}-{pair}", folder))
    faults = []
    for part in ("schedule_delay", "loop_lag") if asked.pairs else ():
        pairs = [(a[part], b[part]) for a, b in zip(with_it, without)]
        later = sum(a > b for a, b in pairs)
        chance = sum(math.comb(len(pairs), k) for k in range(later, len(pairs) + 1)) / 2 ** len(pairs)
        a, b = (statistics.median(side) for side in zip(*pairs))
        print(f"{part} p99, medians of {len(pairs)} runs: {a:.0f} us with the dashboard, {b:.0f} us without; "
              f"later with it in {later} of {len(pairs)} pairs (chance of as many or more: {chance:.2f})")
        if chance < CHANCE_MIN:
            faults.append(f"{part} is later with the dashboard")
    return faults


def main():
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("--program", default="target/release/tokload")
    asked.add_argument("--seconds", type=float, default=20)
    asked.add_argument("--pairs", type=int, default=8)
    asked.add_argument("--show", action="store_true")
    asked = asked.parse_args()
    server = subprocess.Popen([asked.program, "mock-server", "--port", str(PORT), "--slots", "64"],
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        with tempfile.TemporaryDirectory() as folder:
            faults = [fault for size in SIZES for fault in watched(asked, size, folder)] + compared(asked, folder)
    finally:
        server.terminate()
        server.wait()
    print("\n".join(faults) or "all is well")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
