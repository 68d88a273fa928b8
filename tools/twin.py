#!/usr/bin/env python3
"""Whether a simulated server and the same model behind a socket give the same numbers, and how fast simulating is.

    tools/twin.py [--workers 1] [agree] [fit] [speed] [repeat] [all]

agree: a sweep is run against `tokload mock-server` and simulated; medians are compared. Once with users who think for
a few ms, so that requests come in the middle of a step in both, and once with users who do not, whose next request
leaves at the end of a step: over a network it comes just after the next one has begun. With --workers 2 the mock
server has two threads, which share the model and, here, a core.
fit: a server is estimated from a measured sweep, and what it gives at numbers of users that were not measured is
compared with what is measured there.
speed: tokens simulated per second, and memory.
repeat: the same command gives the same levels and the same records, byte for byte.
"""

import argparse
import contextlib
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
import time

import reference

MODEL = ["--model-preset", "course"]
# The larger of the two is allowed.
AGREE_MS, AGREE_SHARE = 0.5, 0.01
FIT_SHARE = 0.05
TOKENS_PER_S = 1_000_000
INPUT, OUTPUT = 100, 32
AGREE_S = 6
# A step of a single sequence takes 10.5 ms: 3 ms is well within every step, and users who begin 20 ms apart do not end
# together, which would leave the server idle and let the first of them to come back start a step alone.
USERS = {
    "thinking": ["--think-time", "0.003", "--start-spread", "20000"],
    "at once": [],
}
FIT_USERS, FIT_UNSEEN = (1, 2, 4, 8, 16, 32), (12, 24)
FIT_ANSWERS = 12
SPEED = {
    "1 user": (False, ["-c", "1", "--num-prompts", "20000"]),
    "16 users": (True, ["-c", "16", "--num-prompts", "40000"]),
    "10000 users, one replica": (True, ["-c", "10000", "--num-prompts", "40000", "--slots", "inf",
                                        "--per-sequence-ms", "0.001"]),
    "16000 users, 1000 replicas": (True, ["-c", "16000", "--num-prompts", "64000", "--replicas", "1000"]),
    "5000 requests/s, 1000 replicas": (True, ["--request-rate", "5000", "--num-prompts", "40000", "--replicas",
                                              "1000", "--router", "least-loaded"]),
}


class Mock(reference.Server):
    """`tokload mock-server` on a free port."""

    def __init__(self, asked):
        words = [asked.tokload, "mock-server", "--port", "0", "--workers", asked.workers, *MODEL]
        argv = reference.pinned(reference.SERVER_CORE, words)
        self.process = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        said = self.process.stderr.readline()
        address = re.search(r"http://\S+:\d+", said)
        if address is None:
            self.process.kill()
            sys.exit(f"the mock server does not say where it listens: {said.strip()}")
        self.base = address.group()


class Simulation:
    """A finished `tokload simulate`: its run file, the bytes of its records, wall time and peak memory."""

    def __init__(self, binary, words, save=True):
        with tempfile.TemporaryDirectory() as folder:
            saved = os.path.join(folder, "run.json")
            output = ["--output-file", saved] if save else ["--no-save", "--format", "json"]
            argv = [binary, "simulate", "--quiet", "--goodput", "none", *output, *words]
            with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
                start = time.monotonic()
                process = subprocess.Popen(argv, stdout=out, stderr=err)
                # Not from wait4: what it says of a child is at least this script's own memory.
                self.peak_kib = 0
                while process.poll() is None:
                    self.peak_kib = max(self.peak_kib, reference.peak_kib(process.pid))
                    time.sleep(0.002)
                self.wall_s = time.monotonic() - start
                out.seek(0)
                err.seek(0)
                text = out.read()
                if process.returncode != 0:
                    sys.exit(f"{shlex.join(argv)} ended with {process.returncode}: {err.read().strip()}")
            if save:
                with open(saved) as file:
                    text = file.read()
            self.run = json.loads(text)
            self.records = b""
            with contextlib.suppress(FileNotFoundError), open(os.path.join(folder, "run.records"), "rb") as file:
                self.records = file.read()


def measure(asked, words):
    """`words` against a fresh mock server; (run file, cores that others used meanwhile)."""
    server = Mock(asked)
    try:
        done, run = reference.tokload(asked.tokload, server, words, limit_s=300)
    finally:
        if server.process.poll() is None:
            server.stop()
    return run, done.others


def sizes():
    return ["--random-input-len", str(INPUT), "--random-output-len", str(OUTPUT)]


def median_ms(level, metric):
    return level["distributions"][metric]["quantiles"]["p50"] / 1e6


def same_load(label, measured, simulated):
    """Levels of one load are only worth comparing if the requests were the same, and all ended well."""
    for name, level in (("measured", measured), ("simulated", simulated)):
        ok, failed = level["counts"]["ok"], level["counts"]["failed"]
        if failed or not ok:
            sys.exit(f"{label}, {name}: {failed} requests failed, {ok} did not")
    each = [(level["tokens"]["prompt"] / level["counts"]["ok"], level["tokens"]["output"] / level["counts"]["ok"])
            for level in (measured, simulated)]
    if each[0] != each[1]:
        sys.exit(f"{label}: {each[0]} prompt and output tokens per request measured, {each[1]} simulated")


def agree(asked):
    rows, passed, others = [], True, []
    for kind, words in USERS.items():
        print(f"users {kind}: {4 * AGREE_S + 6} s", file=sys.stderr)
        plan = ["--max-concurrency", "1,4,16,64", "--num-prompts", "192", "--duration", str(AGREE_S), "--seed", "1",
                *sizes(), *words]
        run, busy = measure(asked, plan)
        others.append(busy)
        twin = Simulation(asked.tokload, [*MODEL, "--num-warmups", "0", *plan]).run
        for real, virtual in zip(run["levels"], twin["levels"], strict=True):
            users = real["setting"]["load"]["users"]
            same_load(f"{users} users {kind}", real, virtual)
            for metric in ("ttft", "tpot", "e2e"):
                said, told = median_ms(real, metric), median_ms(virtual, metric)
                limit = max(AGREE_MS, AGREE_SHARE * said)
                holds = abs(told - said) <= limit
                passed &= holds
                rows.append([kind, users, real["counts"]["ok"], virtual["counts"]["ok"], metric.upper(),
                             f"{said:.3f}", f"{told:.3f}", f"{told - said:+.3f}", f"{limit:.2f}",
                             "PASS" if holds else "FAIL"])
    print("medians, ms")
    reference.table(["users", "", "requests", "simulated", "", "measured", "simulated", "difference", "bound", ""],
                    rows)
    reference.busy_note(others, "the only turn")
    return passed


def sweep(users):
    """The plan of one level; every user gives some answers, so that beginning and end do not weigh much."""
    return ["--max-concurrency", str(users), "--num-prompts", str(FIT_ANSWERS * users), "--seed", "2"]


def estimated(binary, run):
    """What --fit says of a run: (its text, the words of the command that it prints, without its levels)."""
    with tempfile.TemporaryDirectory() as folder:
        saved = os.path.join(folder, "run.json")
        with open(saved, "w") as file:
            json.dump(run, file)
        done = subprocess.run([binary, "simulate", "--fit", saved], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"--fit ended with {done.returncode}: {done.stderr.strip()}")
    command = shlex.split(done.stdout.rsplit("next:", 1)[1])
    at = command.index("--max-concurrency")
    return done.stdout.rsplit("next:", 1)[0].strip(), command[2:at] + command[at + 2:]


def fit(asked):
    print(f"{len(FIT_USERS)} levels for the fit and {len(FIT_UNSEEN)} others: about 60 s", file=sys.stderr)
    runs = [measure(asked, [*sizes(), *sweep(users)]) for users in (*FIT_USERS, *FIT_UNSEEN)]
    known, unseen = runs[:len(FIT_USERS)], runs[len(FIT_USERS):]
    # One run file of all levels: each has requests by its users, which one run cannot order.
    run = known[0][0]
    run["levels"] = [level for other, _ in known for level in other["levels"]]
    text, server = estimated(asked.tokload, run)
    print(f"{text}\n")
    rows, passed = [], True
    for users, (real, _) in zip(FIT_UNSEEN, unseen, strict=True):
        real = real["levels"][0]
        virtual = Simulation(asked.tokload, [*server, "--num-warmups", "0", *sweep(users)]).run["levels"][0]
        same_load(f"{users} users", real, virtual)
        pairs = [("output tok/s", *(level["rates"]["window"]["out_tok_s"] for level in (real, virtual)))]
        pairs += [(f"{metric.upper()} ms", median_ms(real, metric), median_ms(virtual, metric))
                  for metric in ("tpot", "e2e")]
        for what, said, told in pairs:
            error = told / said - 1
            holds = abs(error) <= FIT_SHARE
            passed &= holds
            rows.append([users, what, f"{said:.2f}", f"{told:.2f}", f"{error * 100:+.2f}", f"{FIT_SHARE * 100:.0f}",
                         "PASS" if holds else "FAIL"])
    print("the fitted server at numbers of users that it was not fitted to")
    reference.table(["users", "", "measured", "predicted", "error %", "bound", ""], rows)
    reference.busy_note([busy for _, busy in runs], "the only turn")
    return passed


def speed(asked):
    rows, passed = [], True
    for name, (bounded, words) in SPEED.items():
        done = Simulation(asked.tokload, [*MODEL, "--num-warmups", "0", "--random-input-len", "16",
                                          "--random-output-len", "64", *words], save=False)
        level = done.run["levels"][0]
        if level["counts"]["failed"]:
            sys.exit(f"{name}: {level['counts']['failed']} requests failed")
        tokens = level["tokens"]["output"]
        span = level["span"]
        holds = not bounded or tokens / done.wall_s >= TOKENS_PER_S
        passed &= holds
        rows.append([name, tokens, f"{(span['t2_ns'] - span['t0_ns']) / 1e9:.1f}", f"{done.wall_s:.2f}",
                     f"{tokens / done.wall_s / 1e6:.2f}", f"{done.peak_kib / 1024:.0f}",
                     f"{TOKENS_PER_S / 1e6:.0f}" if bounded else "",
                     ("PASS" if holds else "FAIL") if bounded else ""])
    print("simulated tokens; wall time with start and report")
    reference.table(["", "tokens", "simulated s", "wall s", "M tokens/s", "peak MiB", "bound", ""], rows)
    return passed


def repeat(asked):
    plans = {
        "closed loop": ["--max-concurrency", "1,16,64", "--num-prompts", "400"],
        "open loop, noise, 3 replicas": ["--request-rate", "20,60", "--num-prompts", "400", "--noise", "0.2",
                                         "--replicas", "3"],
    }
    rows, passed = [], True
    for name, words in plans.items():
        once, again, other = (Simulation(asked.tokload, [*MODEL, "--seed", seed, *sizes(), *words]) for seed in "778")
        # With another seed something must differ, or nothing was compared. Prompts do, but no time shows it without
        # a draw.
        drawn = "--noise" not in words or once.records != other.records
        levels = json.dumps(once.run["levels"]) == json.dumps(again.run["levels"])
        records = bool(once.records) and once.records == again.records
        holds = levels and records and drawn
        passed &= holds
        rows.append([name, "same" if levels else "differ", len(once.records), "same" if records else "differ",
                     "differ" if once.records != other.records else "same", "PASS" if holds else "FAIL"])
    print("the same command twice")
    reference.table(["", "levels", "bytes of records", "records", "with another seed", ""], rows)
    return passed


def main():
    checks = {"agree": agree, "fit": fit, "speed": speed, "repeat": repeat}
    options = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    options.add_argument("--tokload", default=os.path.join(reference.ROOT, "target/release/tokload"))
    options.add_argument("--workers", type=int, default=1, help="threads of the mock server; default 1")
    options.add_argument("checks", nargs="*", help=f"of {', '.join(checks)}, all; default all")
    asked = options.parse_args()
    unknown = set(asked.checks) - set(checks) - {"all"}
    if unknown:
        options.error(f"unknown: {', '.join(sorted(unknown))}; choose from {', '.join(checks)}, all")
    reference.need(asked.tokload)
    wanted = checks if not asked.checks or "all" in asked.checks else asked.checks
    passed = []
    for name in wanted:
        if passed:
            print()
        passed.append(checks[name](asked))
    sys.exit(0 if all(passed) else 1)


if __name__ == "__main__":
    main()
