#!/usr/bin/env python3
"""Four replicas on sockets, equal ones and one that is slower: what a run says of them.

    tools/fleet.py [--program target/release/tokload] [--seeds 20] [--slower 5]

Starts four `tokload mock-server`, 8 slots each with noise in their steps, and asks them in turns, 60 requests/s in all, as
tests/it/fleet.rs does without sockets. Fails if a finding about replicas comes up in more than 2 of 20 seeds although they
are equal, or if the third one, 1.5 times slower, is not named as the only one, with how many times slower, in each run.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile

PORT = 8360
OF_REPLICAS = ("replica_slow", "replica_failing", "share_uneven")


def servers(program, seed, speeds):
    started = []
    for place, speed in enumerate(speeds):
        words = ["mock-server", "--port", str(PORT + place), "--slots", "8", "--base-ms", "12", "--per-sequence-ms", "1",
                 "--per-prefill-token-ms", "0.5", "--noise", "0.3", "--speeds", str(speed), "--seed", str(seed * 7 + place)]
        server = subprocess.Popen([program, *words], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        started.append(server)
        while (line := server.stderr.readline()) and "mock server on" not in line:
            pass
    return started


def found(asked, seed, speeds, folder):
    """The findings about replicas, each as its rule and its evidence."""
    started = servers(asked.program, seed, speeds)
    saved = os.path.join(folder, f"{seed}.json")
    try:
        urls = [word for place in range(len(speeds)) for word in ("--base-url", f"http://127.0.0.1:{PORT + place}")]
        words = ["run", *urls, "--request-rate", "60", "--num-prompts", "600", "--random-input-len", "8",
                 "--random-output-len", "8", "--seed", str(seed), "--output-file", saved, "--force"]
        done = subprocess.run([asked.program, *words], capture_output=True, text=True, timeout=120)
        if done.returncode not in (0, 1):
            sys.exit(f"tokload run ended with {done.returncode}: {done.stderr}")
    finally:
        for server in started:
            server.terminate()
        for server in started:
            server.communicate()
    with open(saved) as file:
        level = json.load(file)["levels"][0]
    return [(one["rule"], one["evidence"]) for one in level["findings"] if one["rule"] in OF_REPLICAS]


def main():
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("--program", default="target/release/tokload")
    asked.add_argument("--seeds", type=int, default=20)
    asked.add_argument("--slower", type=int, default=5)
    asked = asked.parse_args()
    faults, alarms = [], 0
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(1, asked.seeds + 1):
            said = found(asked, seed, (1, 1, 1, 1), folder)
            alarms += bool(said)
            print(f"equal, seed {seed}: {said or 'nothing'}", flush=True)
        for seed in range(1, asked.slower + 1):
            said = found(asked, seed, (1, 1, round(1 / 1.5, 4), 1), folder)
            print(f"one slower, seed {seed}: {said or 'nothing'}", flush=True)
            named = [evidence for rule, evidence in said if rule == "replica_slow"]
            times = re.search(r":8362 is ([\d.]+) times slower", named[0]) if len(named) == 1 else None
            if times is None or not 1.3 <= float(times[1]) <= 2.0:
                faults.append(f"seed {seed}: the slower one is not named, or others are")
    if alarms > asked.seeds / 10:
        faults.append(f"equal replicas were called different in {alarms} of {asked.seeds} runs")
    print("\n".join(faults) or f"all is well: {alarms} of {asked.seeds} with equal ones, {asked.slower} of {asked.slower} found")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
