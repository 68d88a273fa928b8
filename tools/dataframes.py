#!/usr/bin/env python3
"""The README's lines for pandas and Polars, run as they stand there, and held against `tokload report --format json`.

    tools/dataframes.py [--tokload target/release/tokload] [--dir target/dataframes]

A simulated sweep with records as JSON lines is read by every example of the section "From Python", each in an interpreter
of its own in a virtual environment with both packages, which is made in --dir and kept there. What the examples have read
must be what the report says. Installing the packages takes longer than all the rest; standard library only beside them.
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PACKAGES = ["pandas", "polars"]
SWEEP = ["--max-concurrency", "1,4,16,32", "--num-prompts", "100", "--seed", "7", "--save-detailed"]

# What is looked at behind each example; `report` is what the program says, `near` compares numbers.
LEVELS_PANDAS = """
assert list(table.index) == [level["label"] for level in report]
for level in report:
    row = table.loc[level["label"]]
    near(row["rates.window.req_s"], level["rates"]["window"]["req_s"])
    near(row["rates.window.out_tok_s"], level["rates"]["window"]["out_tok_s"])
    for quantile in "p50", "p99":
        near(row[f"distributions.ttft.quantiles.{quantile}"], level["distributions"]["ttft"]["quantiles"][quantile])
    near(row["goodput.attainment"], level["goodput"]["attainment"])
"""
LEVELS_POLARS = """
assert levels["load"].to_list() == [level["label"] for level in report]
for row, level in zip(levels.iter_rows(named=True), report):
    near(row["req_s"], level["rates"]["window"]["req_s"])
    near(row["out_tok_s"], level["rates"]["window"]["out_tok_s"])
    near(row["ttft_ms_p50"] * 1e6, level["distributions"]["ttft"]["quantiles"]["p50"])
    near(row["attainment"], level["goodput"]["attainment"])
"""
# Warm-up requests are in the file and in no count. Means are the same whatever a percentile is interpolated by.
REQUESTS_PANDAS = """
for level in report:
    own = measured[measured["label"] == level["label"]]
    assert len(own) == level["counts"]["planned"]
    near(own["ttft_ms"].mean() * 1e6, level["distributions"]["ttft"]["mean"])
"""
REQUESTS_POLARS = """
for level in report:
    own = requests.filter((pl.col("phase") == "measured") & (pl.col("label") == level["label"]))
    assert own.height == level["counts"]["planned"]
    near(own["ttft_ms"].mean() * 1e6, level["distributions"]["ttft"]["mean"])
"""
CHECKS = [LEVELS_PANDAS, LEVELS_POLARS, REQUESTS_PANDAS, REQUESTS_POLARS]
PREAMBLE = """
import json as _json
report = _json.load(open("report.json"))["levels"]
assert len(report) == 4
def near(a, b):
    assert abs(a - b) <= 1e-9 * abs(b), (a, b)
"""


def examples():
    """The Python blocks of the README's section."""
    with open(os.path.join(ROOT, "README.md")) as file:
        section = re.search(r"^#### From Python\n(.*?)^####", file.read(), re.M | re.S)
    if not section:
        sys.exit("README.md has no section 'From Python'")
    return re.findall(r"^```python\n(.*?)^```", section.group(1), re.M | re.S)


def interpreter(directory):
    python = os.path.join(directory, "bin", "python")
    if not os.path.exists(python):
        subprocess.run([sys.executable, "-m", "venv", directory], check=True, timeout=300)
    has = subprocess.run([python, "-c", "import " + ",".join(PACKAGES)], capture_output=True, timeout=120)
    if has.returncode:
        install = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *PACKAGES]
        subprocess.run(install, check=True, timeout=900)
    return python


def main():
    parser = argparse.ArgumentParser(description="The README's lines for pandas and Polars, run and checked.")
    parser.add_argument("--tokload", default=os.path.join(ROOT, "target/release/tokload"))
    parser.add_argument("--dir", default=os.path.join(ROOT, "target/dataframes"))
    options = parser.parse_args()
    tokload = os.path.abspath(options.tokload)
    blocks = examples()
    if len(blocks) != len(CHECKS):
        sys.exit(f"the README has {len(blocks)} examples, and {len(CHECKS)} are checked")
    python = interpreter(os.path.abspath(options.dir))
    with tempfile.TemporaryDirectory() as work:
        ran = {"cwd": work, "check": True, "timeout": 120}
        simulate = [tokload, "simulate", *SWEEP, "--output-file", "run.json", "--quiet"]
        subprocess.run(simulate, stdout=subprocess.DEVNULL, **ran)
        with open(os.path.join(work, "report.json"), "w") as file:
            subprocess.run([tokload, "report", "run.json", "--format", "json"], stdout=file, **ran)
        for number, (block, check) in enumerate(zip(blocks, CHECKS), start=1):
            print(f"example {number}", flush=True)
            subprocess.run([python, "-c", block + PREAMBLE + check], **ran)
    print(f"{len(blocks)} examples read what the report says")


if __name__ == "__main__":
    main()
