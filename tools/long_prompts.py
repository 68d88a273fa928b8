#!/usr/bin/env python3
"""Whether long prompts are sent when they are due, and what they take: tokload against its own mock server.

    tools/long_prompts.py [--tokload target/release/tokload] [--tokens 128000] [--rate 10] [--seconds 10] [--turns 3]

Prompts are made by tokens (--calibrate) and sent at a constant rate, while answers of 64 tokens come in. Printed are how
late sends were begun (the metric `schedule_delay`), how long one took until the kernel had all of it, how late arriving
bytes were read, and the most memory that tokload held. What else the machine does can only make sends later: a turn
within the bounds is enough, and where it may, tokload runs at real-time priority. Standard library only.
"""

import argparse
import json
import os
import re
import signal
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
# Sends are late beyond this. What is written ahead is 4 MiB per thread; the rest are buffers and tables.
DELAY_MS_P99, RSS_MIB = 1.0, 128


def rank(values, share):
    """Nearest rank."""
    values = sorted(values)
    return values[max(1, -(-len(values) * round(share * 1000) // 1000)) - 1]


def at_real_time():
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
    except OSError:
        # Only a privileged user may; then it is as quick as the machine lets it be.
        pass


def start_mock(tokload, *times):
    """A mock server with room for long prompts and these times: the process and its URL."""
    times = times or ("--ttft", "50", "--itl", "10")
    words = [tokload, "mock-server", "--port", "0", "--max-model-len", "4000000", *times]
    server = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    line = server.stdout.readline()
    url = re.search(r"http://\S+?:\d+", line)
    if not url:
        server.kill()
        sys.exit(f"the mock server says: {line.strip()}")
    return server, url.group(0)


def measure(tokload, tokens, rate, seconds):
    """Runs it once; a dictionary of what was seen."""
    server, url = start_mock(tokload)
    try:
        with tempfile.TemporaryDirectory() as folder:
            saved = os.path.join(folder, "run.json")
            words = [tokload, "run", "--base-url", url, "--backend", "openai", "--calibrate", "--request-rate", str(rate),
                     "--arrival-pattern", "constant", "--duration", str(seconds), "--random-input-len", str(tokens),
                     "--random-output-len", "64", "--num-warmups", "1", "--output-file", saved, "--save-detailed",
                     "--no-progress"]
            environment = {**os.environ, "TOKLOAD_STATE_DIR": ""}
            process = subprocess.Popen(words, preexec_fn=at_real_time, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                                       env=environment)
            said = process.stderr.read()
            _, status, used = os.wait4(process.pid, 0)
            if status != 0:
                sys.exit(f"tokload ended with {status}: {said.strip()}")
            with open(saved) as file:
                run = json.load(file)
            with open(saved.removesuffix(".json") + ".jsonl") as lines:
                records = [json.loads(line) for line in lines]
    finally:
        server.send_signal(signal.SIGINT)
        server.communicate()
    measured = [record for record in records if record["phase"] == "measured"]
    delays = [record["schedule_delay_ms"] for record in measured]
    sending = [record["sent_ms"] - record["start_ms"] for record in measured]
    lag = run["levels"][0]["self_check"]["receive_lag"] or {}
    return {
        "requests": len(measured),
        "failed": sum(record["outcome"] != "ok" for record in measured),
        "tokens": sorted({record["prompt_tokens"] for record in measured}),
        "delay_ms": {"p50": rank(delays, 0.5), "p99": rank(delays, 0.99), "max": max(delays)},
        "sending_ms": {"p50": rank(sending, 0.5), "max": max(sending)},
        "receive_lag_ms": {name: (lag.get(f"{name}_ns") or 0) / 1e6 for name in ("p50", "p99", "max")},
        "rss_mib": used.ru_maxrss / 1024,
    }


def wrong(seen, tokens):
    """What is not as it must be on any machine, however busy with other things: a sentence each."""
    found = []
    if seen["failed"]:
        found.append(f"{seen['failed']} requests failed")
    if seen["tokens"] != [tokens]:
        found.append(f"prompts have {seen['tokens']} tokens, not {tokens}")
    if seen["delay_ms"]["p50"] > DELAY_MS_P99:
        found.append(f"half of the sends are {seen['delay_ms']['p50']:.2f} ms late or more: prompts are made when they are due")
    if seen["rss_mib"] > RSS_MIB:
        found.append(f"it takes {seen['rss_mib']:.0f} MiB, more than {RSS_MIB}")
    return found


def problems(seen, tokens):
    """What is not as it must be on a machine that does nothing else."""
    found = wrong(seen, tokens)
    if seen["delay_ms"]["p99"] > DELAY_MS_P99:
        found.append(f"sends are {seen['delay_ms']['p99']:.2f} ms late at the 99th percentile, more than {DELAY_MS_P99}")
    return found


def best(tokload, tokens, rate, seconds, turns):
    """The first turn within the bounds, or the last one, with what is wrong with it."""
    for _ in range(turns):
        seen = measure(tokload, tokens, rate, seconds)
        found = problems(seen, tokens)
        if not found:
            break
    return seen, found


def main():
    options = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    options.add_argument("--tokload", default=os.path.join(ROOT, "target/release/tokload"))
    options.add_argument("--tokens", type=int, default=128_000)
    options.add_argument("--rate", type=float, default=10)
    options.add_argument("--seconds", type=float, default=10)
    options.add_argument("--turns", type=int, default=3, help="tries until one is within the bounds")
    asked = options.parse_args()
    seen, found = best(asked.tokload, asked.tokens, asked.rate, asked.seconds, asked.turns)
    print(json.dumps(seen, indent=1))
    if found:
        sys.exit("; ".join(found))


if __name__ == "__main__":
    main()
