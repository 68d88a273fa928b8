"""What the measuring scripts share: the server and the drain-only client of bench/, and how programs are run.

Server and client have a core each and, for root, real-time priority (SCHED_FIFO), so that other work on the machine
does not get between; each measurement says how many cores everything else used meanwhile. Under that priority the
server waits with its timer, since the kernel throttles a real-time loop that never sleeps. Standard library only.
"""

import argparse
import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "bench"))

import server as bench_server
from machine import busy_s, peak_kib, raise_descriptor_limit
from stats import rank

__all__ = ["peak_kib", "raise_descriptor_limit", "rank"]

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
CLIENT_CORE, SERVER_CORE = "0", "1"
REAL_TIME = os.geteuid() == 0 and shutil.which("chrt") is not None
TIMER = "fd" if REAL_TIME else "busy"
# Every event of the reference server is one token.
TTFT_US, ITL_US, TOKENS = 200_000, 20_000, 64
REQUEST_S = (TTFT_US + (TOKENS - 1) * ITL_US) / 1e6


def options(description):
    """The options that all measuring scripts take."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--tokload", default=os.path.join(ROOT, "target/release/tokload"))
    parser.add_argument("--turns", type=int, default=3, help="how often each client has its turn; default 3")
    return parser


def build():
    """Compiles the reference server and the drain-only client, unless that was done; (server, client)."""
    return bench_server.built("reference"), bench_server.built("drain")


def need(binary):
    if not os.path.exists(binary):
        sys.exit(f"{binary} is not there: build it with `cargo build --release`, or name another with --tokload")


def pinned(core, argv, real_time=True):
    """`argv` on one core, for root before all other work: at real-time priority, or only as the nicest to itself."""
    priority = ["chrt", "--fifo", "20"] if REAL_TIME and real_time else ["nice", "-n", "-19"] if REAL_TIME else []
    return [*priority, "taskset", "-c", core, *map(str, argv)]


class Server:
    """A server on the server core, with a port of its own. `stop` gives what it printed at its end, as JSON."""

    def __init__(self, argv, port, ready):
        self.base = f"http://127.0.0.1:{port}"
        self.process = subprocess.Popen(pinned(SERVER_CORE, argv), stdout=subprocess.PIPE,
                                        stderr=subprocess.DEVNULL, text=True)
        for _ in range(100):
            with contextlib.suppress(OSError), urllib.request.urlopen(self.base + ready, timeout=5):
                return
            time.sleep(0.05)
        sys.exit(f"{argv[0]} does not answer on port {port}")

    def cpu_s(self):
        with open(f"/proc/{self.process.pid}/stat") as stat:
            fields = stat.read().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        return json.loads(self.process.communicate(timeout=120)[0])


def reference_server(binary, port, *words, ttft_us=TTFT_US, itl_us=ITL_US):
    argv = [binary, "--port", port, "--timer", TIMER, "--role", "first", "--ttft", ttft_us, "--itl", itl_us, *words]
    return Server(argv, port, "/health")


class Finished:
    """A client that has ended: its output, CPU time, peak memory, and what others used meanwhile (in cores)."""

    def __init__(self, argv, server, limit_s=180, real_time=True):
        busy, served, start = busy_s(), server.cpu_s(), time.monotonic()
        # Files, not pipes: reading a pipe would wake this script on the measured cores.
        with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
            process = subprocess.Popen(pinned(CLIENT_CORE, argv, real_time), stdout=out, stderr=err)
            self.peak_kib = 0
            while True:
                pid, status, usage = os.wait4(process.pid, os.WNOHANG)
                if pid:
                    break
                self.peak_kib = max(self.peak_kib, peak_kib(process.pid))
                if time.monotonic() - start > limit_s:
                    process.kill()
                time.sleep(0.1)
            process.returncode = os.waitstatus_to_exitcode(status)
            self.status = process.returncode
            self.wall_s = time.monotonic() - start
            self.cpu_s = usage.ru_utime + usage.ru_stime
            out.seek(0)
            err.seek(0)
            self.out, self.err = out.read(), err.read()
        spent = busy_s() - busy - self.cpu_s - (server.cpu_s() - served)
        self.others = max(0.0, spent / self.wall_s)


def tokload(binary, server, words, detailed=False, limit_s=180, real_time=True):
    """Runs `tokload run` on one core; (Finished, with its records if `detailed`, and the run file)."""
    with tempfile.TemporaryDirectory() as folder:
        saved = os.path.join(folder, "run.json")
        argv = [binary, "run", "--base-url", server.base, "--workers", "1", "--quiet", "--output-file", saved,
                "--num-warmups", "0", "--goodput", "none", *(["--save-detailed"] if detailed else []), *words]
        done = Finished(argv, server, limit_s, real_time)
        if done.status != 0:
            sys.exit(f"tokload ended with {done.status}: {done.err.strip()}\n{done.out}")
        with open(saved) as file:
            run = json.load(file)
        if detailed:
            with open(os.path.join(folder, "run.jsonl")) as lines:
                done.records = [json.loads(line) for line in lines]
    return done, run


def drain(binary, server, words):
    """Runs the drain-only client; (Finished, its report)."""
    port = server.base.rpartition(":")[2]
    done = Finished([binary, "--port", port, *words], server)
    if done.status != 0:
        sys.exit(f"the drain-only client ended with {done.status}: {done.err.strip()}")
    return done, json.loads(done.out)


def table(head, rows):
    """Aligned columns, numbers to the right."""
    cells = [head, *[[str(cell) for cell in row] for row in rows]]
    widths = [max(len(row[at]) for row in cells) for at in range(len(head))]
    for row in cells:
        print("  ".join(cell.rjust(width) if at else cell.ljust(width)
                        for at, (cell, width) in enumerate(zip(row, widths))).rstrip())


def busy_note(others, judged="the best of the turns"):
    print(f"\nOther work on this machine used {min(others):.2f} to {max(others):.2f} cores during the turns; "
          f"judged is {judged}.")
