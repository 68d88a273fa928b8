#!/usr/bin/env python3
"""Whether two runs sent the same: requests planned and ended, bodies, and planned times, level by level.

    tools/same_plan.py ONE.json OTHER.json

Beside each lies ONE.csv, its requests as `tokload report ONE.json --export csv-records=ONE.csv` writes them. Planned
times of a closed loop follow from answers and are not compared.
"""
import csv
import json
import sys

TOLERANCE_MS = 1e-6


def planned(name):
    with open(name.removesuffix(".json") + ".csv", newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["phase"] == "measured"]
    return sorted((int(row["level"]), int(row["index"]), float(row["plan_ms"])) for row in rows)


def main():
    one, other = sys.argv[1:3]
    runs = [json.load(open(name)) for name in (one, other)]
    levels = [run["levels"] for run in runs]
    assert len(levels[0]) == len(levels[1]), "the number of levels"
    for a, b in zip(*levels):
        label = a["label"]
        for key in ("planned", "ok", "failed"):
            assert a["counts"][key] == b["counts"][key], f"{label}: {key}: {a['counts'][key]} and {b['counts'][key]}"
        assert a["bodies"] == b["bodies"], f"{label}: the bodies differ"
    requests = [planned(name) for name in (one, other)]
    assert [r[:2] for r in requests[0]] == [r[:2] for r in requests[1]], "the requests differ"
    if all(level["setting"]["load"].get("users") is None for level in levels[0]):
        apart = max(abs(a[2] - b[2]) for a, b in zip(*requests))
        assert apart <= TOLERANCE_MS, f"planned times differ by up to {apart} ms"
        print(f"{len(requests[0])} requests, planned times within {apart} ms")


if __name__ == "__main__":
    main()
