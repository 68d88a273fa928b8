#!/usr/bin/env python3
"""Measures what a report of a large run costs: time, size of the page, peak memory.

    tools/report_cost.py [--tokload PATH] [--requests N] [--keep DIRECTORY]

Simulates N requests (1 million) in four levels, and makes a page, a table, all charts, a card and a page under another SLO,
which reads all records. The page has to be there within 5 s and to stay below 5 MB, or the exit code is 1. Needs Python 3.10
and a release build. The simulation takes half a minute of CPU and 130 bytes of disk for each request.
"""

import argparse
import os
import pathlib
import subprocess
import sys
import tempfile
import time

SECONDS_MAX = 5.0
BYTES_MAX = 5e6
LEVELS = ("8", "16", "32", "64")


def timed(words, folder):
    """Runs a command to its end: wall time and processor time in s, peak memory in MB."""
    begun = time.monotonic()
    process = subprocess.Popen(words, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    said = process.stderr.read()
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        sys.exit(f"{' '.join(words)}: exit code {process.returncode}: {said.strip()}")
    return time.monotonic() - begun, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tokload", default="target/release/tokload")
    parser.add_argument("--requests", type=int, default=1_000_000)
    parser.add_argument("--keep")
    options = parser.parse_args()
    tokload = str(pathlib.Path(options.tokload).resolve())
    with tempfile.TemporaryDirectory() as place:
        folder = pathlib.Path(options.keep or place)
        folder.mkdir(parents=True, exist_ok=True)
        each = max(1, options.requests // len(LEVELS))
        run = [tokload, "simulate", "-c", ",".join(LEVELS), "--num-prompts", str(each), "--random-output-len", "16",
               "--slots", "64", "--noise", "0.1", "--goodput", "ttft:500", "--seed", "1", "--output-file", "run.json",
               "--force", "--quiet"]
        commands = {
            f"simulate {each * len(LEVELS)} requests": run,
            "report, page": [tokload, "report", "run.json", "--output", "run.html"],
            "report, table": [tokload, "report", "run.json"],
            "report, page, another SLO": [tokload, "report", "run.json", "--goodput", "ttft:200", "--output", "other.html"],
            "report --charts": [tokload, "report", "run.json", "--charts", "charts"],
            "share": [tokload, "share", "run.json"],
        }
        print(f"{'':32} {'wall s':>8} {'CPU s':>8} {'peak MB':>8}")
        page_s = 0.0
        for name, words in commands.items():
            wall_s, cpu_s, peak_mb = timed(words, folder)
            if name == "report, page":
                page_s = wall_s
            print(f"{name:32} {wall_s:8.2f} {cpu_s:8.2f} {peak_mb:8.1f}")
        page_bytes = (folder / "run.html").stat().st_size
        print(f"the page has {page_bytes / 1e6:.2f} MB")
    if page_s > SECONDS_MAX or page_bytes > BYTES_MAX:
        sys.exit(f"more than {SECONDS_MAX:.0f} s or {BYTES_MAX / 1e6:.0f} MB")


if __name__ == "__main__":
    main()
