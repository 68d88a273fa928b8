#!/usr/bin/env python3
"""The dashboard in a terminal of each size, and what it costs.

    tools/dashboard.py [--program target/release/tokload] [--seconds 20] [--show]

Starts `tokload mock-server` and a run with `--ui dashboard` in a tmux of its own, looks at the screen in the middle of the
run (with --show prints it), and stops the run by its key. The program must be built with `--features dashboard`. Fails
unless the screen has what belongs on it, the terminal is an ordinary one afterwards, the result is saved, and the thread
that draws took less than 1 % of a core (/proc/PID/task/TID/schedstat).
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time

SIZES = ((80, 24), (160, 50), (50, 12))
PORT = 8350
CPU_SHARE_MAX = 0.01
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
    name = f"tokload-dashboard-{os.getpid()}"
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


def main():
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("--program", default="target/release/tokload")
    asked.add_argument("--seconds", type=float, default=20)
    asked.add_argument("--show", action="store_true")
    asked = asked.parse_args()
    server = subprocess.Popen([asked.program, "mock-server", "--port", str(PORT), "--slots", "8"],
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        with tempfile.TemporaryDirectory() as folder:
            faults = [fault for size in SIZES for fault in watched(asked, size, folder)]
    finally:
        server.terminate()
        server.wait()
    print("\n".join(faults) or "all is well")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
