#!/usr/bin/env python3
"""What a slow client does to the numbers, and what kernel stamps and the error budget make of it.

    tools/slowed.py [--streams 64] [--waves 3] [--turns 1]

tokload wastes time on purpose between two turns of its loop (the hidden option --client-burn) while a reference server
keeps the truth. For each way of being slow the table has TTFT and ITL p99 by user stamps and by kernel stamps, and how
far each is from the truth. Where a stall makes several events come in one read their gaps are known in sum only: then
the truth must lie in the interval that the result gives, and the result must say how many gaps that concerns.
"""

import csv
import os
import sys
import tempfile

import reference
from reference import TOKENS, rank

PORT = 8350
# Burn, gap between tokens in us, what is said of it.
CASES = [
    ("", 20_000, "not slowed"),
    ("2", 20_000, "2 ms in every turn"),
    ("50@1", 200_000, "50 ms once per second"),
    ("50@1", 20_000, "50 ms once per second"),
]
BOUND_MS = 0.5


def turn(asked, refserver, burn, itl_us):
    """Runs one case; (the level, the truth as p99 in ms)."""
    with tempfile.TemporaryDirectory() as folder:
        dump = os.path.join(folder, "dump.csv")
        server = reference.reference_server(refserver, PORT, "--dump", dump, itl_us=itl_us)
        words = ["--max-concurrency", str(asked.streams), "--num-prompts", str(asked.streams * asked.waves),
                 "--random-input-len", "32", "--random-output-len", str(TOKENS), "--timestamps", "both"]
        if burn:
            words += ["--client-burn", burn]
        # Wasting time at real-time priority would be throttled by the kernel, which is another story.
        done, run = reference.tokload(asked.tokload, server, words, real_time=False)
        counted = server.stop()
        with open(dump) as file:
            rows = [row for row in csv.DictReader(file) if int(row["tokens"]) == TOKENS]
    ttft = [(int(row["t_first_ns"]) - int(row["t_req_ns"])) / 1e6 for row in rows]
    return run["levels"][0], {"TTFT": rank(ttft, 0.99), "ITL": counted["itl"]["p99"] / 1e3}, done.others


def judge(label, burn, itl_us, level, truth):
    rows, passed = [], True
    distributions, check = level["distributions"], level["self_check"]
    if check["timestamps"] != "both":
        sys.exit(f"no kernel stamps here: {check['timestamps_why_not']}")
    for metric in ("TTFT", "ITL"):
        by_user = distributions[metric.lower()]["quantiles"]["p99"] / 1e6
        kernel = distributions[metric.lower() + "_kernel"]
        by_kernel = kernel["quantiles"]["p99"] / 1e6
        said = next(e["error_ns"] / 1e6 for e in check["client_error"]
                    if e["metric"] == metric.lower() and e["quantile"] == "p99")
        bounds = kernel.get("bounds")
        interval = ""
        holds = abs(by_kernel - truth[metric]) <= BOUND_MS
        if metric == "ITL" and bounds:
            low, high = (bounds[side]["p99"] / 1e6 for side in ("low", "high"))
            interval = f"{low:.2f} to {high:.2f}, {bounds['joined']} of {kernel['n']} gaps"
            # Where the stall is longer than a gap nobody can know more than the interval.
            if burn and float(burn.split("@")[0]) * 1e3 > itl_us:
                holds = low - BOUND_MS <= truth[metric] <= high + BOUND_MS and bounds["joined"] > 0
        passed &= holds
        rows.append([label, f"{itl_us // 1000}", metric, f"{truth[metric]:.2f}", f"{by_user:.2f}",
                     f"{by_user - truth[metric]:+.2f}", f"{said:.2f}", f"{by_kernel:.2f}",
                     f"{by_kernel - truth[metric]:+.2f}", interval, "PASS" if holds else "FAIL"])
    return rows, passed


def main():
    options = reference.options(__doc__.split("\n")[0])
    options.set_defaults(turns=1)
    options.add_argument("--streams", type=int, default=64)
    options.add_argument("--waves", type=int, default=3, help="requests of each stream; default 3")
    asked = options.parse_args()
    reference.need(asked.tokload)
    refserver, _ = reference.build()
    reference.raise_descriptor_limit()
    rows, passed, others = [], True, []
    for burn, itl_us, label in CASES:
        for _ in range(asked.turns):
            print(f"{label}, {itl_us // 1000} ms between tokens", file=sys.stderr)
            level, truth, other = turn(asked, refserver, burn, itl_us)
            judged, holds = judge(label, burn, itl_us, level, truth)
            rows += judged
            passed &= holds
            others.append(other)
    print("p99 in ms")
    reference.table(["client", "ITL", "metric", "true", "by user", "error", "error said", "by kernel", "error",
                     "between", ""], rows)
    reference.busy_note(others, "each turn")
    print("`error said`: the client's error as the result states it. `between`: what the gaps of events that came in\n"
          "one read allow; nothing is spread over them.")
    sys.exit(0 if passed else 1)


if __name__ == "__main__":
    main()
