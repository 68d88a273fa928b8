#!/usr/bin/env python3
"""End-to-end test: tokload against a real llama.cpp server with a tiny model, on loopback.

    tools/e2e.py [--tokload target/release/tokload] [--dir target/llama]

Closed loops of 1 and 4 users and an open loop of 5 requests per second. No request may fail; every record must hold
the tokens that were asked for, counted by the server's usage; and what the records add up to must be what the server
counted itself, in /metrics, but for the one short request that goes before each run. Then users who
go away from long answers: the server must have its slots back, and answer as before. Then each other API that the
server has, the same way, and embeddings, for which it is started anew. Where prompts are made by tokens, the server must
count exactly what was asked for. Long prompts must be sent when they are due, to the mock server, and its capacity must
be found. A quick look must tell how many requests the server works on at once, whatever number it was started with.
Standard library only. Where the packaged server cannot run, one line says so and the status is 0.
"""

import argparse
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request

import long_prompts

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
# The request before a run asks for this many tokens.
PROBE_TOKENS = 2
RUNS = [
    ("closed loop, 1 user", ["--max-concurrency", "1", "--num-prompts", "24"], 24),
    ("closed loop, 4 users", ["--max-concurrency", "4", "--num-prompts", "64"], 64),
    ("open loop, 5 requests/s", ["--request-rate", "5", "--duration", "8"], None),
]
# Other APIs, and whether answers can be asked on past the end that the model makes.
APIS = [("openai", True), ("llama.cpp", True), ("messages", False), ("responses", False)]
INPUT, OUTPUT = 32, 48
# Answers that take several times as long as users wait who go away, s.
LONG, PATIENCE = 800, 0.1
# Lengths that the server must count exactly; its slots hold 4096.
EXACT = [1, 17, 512, 4000]
# Long prompts, requests per second, seconds.
LONG_PROMPTS = 32_000, 10, 5
# The limits and the time of a quick look: limits so wide that loads far beyond the slots are tried.
QUICK_LIMITS = ["ttft:500", "tpot:50"]
QUICK_S = 30
# The seed comes again in every run of this script, and nobody need be told.
os.environ["TOKLOAD_STATE_DIR"] = ""

problems = []


def check(what, holds):
    if not holds:
        problems.append(what)
        print(f"  FAILED: {what}")


def counters(port):
    """What the server has counted: (prompt tokens, output tokens)."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
        text = answer.read().decode()
    value = {name: float(number) for name, number in re.findall(r"^llamacpp:(\w+) (\S+)$", text, re.M)}
    prompt = value["prompt_tokens_total"] + value["prompt_tokens_cached_total"]
    return round(prompt), round(value["tokens_predicted_total"])


def settled(port):
    """The counters once they stand still: the server counts a request shortly after its last byte."""
    last = counters(port)
    for _ in range(50):
        time.sleep(0.1)
        now = counters(port)
        if now == last:
            return now
        last = now
    return last


def tokload(binary, *words):
    done = subprocess.run([binary, *words], capture_output=True, text=True, timeout=120)
    return done.returncode, done.stdout, done.stderr


def numbers(table):
    """All but what to do next and where it was saved."""
    return table.partition("\nnext:\n")[0].strip()


def one(binary, port, folder, name, load, expected):
    print(name)
    saved = os.path.join(folder, re.sub(r"\W+", "-", name) + ".json")
    before = settled(port)
    status, table, said = tokload(
        binary, "run", "--base-url", f"http://127.0.0.1:{port}", "--output-file", saved, "--save-detailed",
        "--random-input-len", str(INPUT), "--random-output-len", str(OUTPUT), "--num-warmups", "2", "--seed", "7", *load,
    )
    after = settled(port)
    print("".join(f"  {line}\n" for line in table.splitlines()), end="")
    check(f"the exit code is 0, not {status}: {said.strip()}", status == 0)
    check("standard error has no panic", "panicked" not in said)
    if status != 0:
        return None

    with open(saved.removesuffix(".json") + ".jsonl") as lines:
        records = [json.loads(line) for line in lines]
    measured = [record for record in records if record["phase"] == "measured"]
    check("there are two warm-ups", len(records) - len(measured) == 2)
    check(f"there are {expected} requests, not {len(measured)}", expected in (None, len(measured)))
    check("there are requests", measured)
    check("no request failed", all(record["outcome"] == "ok" for record in records))
    check("every answer is as long as asked", all(record["output_tokens"] == OUTPUT for record in records))
    check("tokens are the server's count", all(record["output_source"] == "usage" for record in records))
    check("every prompt is counted", all(record["prompt_source"] == "usage" for record in records))
    in_order = ("start_ms", "sent_ms", "byte_ms", "first_ms", "last_ms", "end_ms")
    for record in records:
        times = [record[key] for key in in_order]
        check(f"the times of request {record['index']} are in order: {times}", times == sorted(times))

    output = sum(record["output_tokens"] for record in records)
    check(f"the server counts {after[1] - before[1]} output tokens, the records {output} and {PROBE_TOKENS} more",
          after[1] - before[1] == output + PROBE_TOKENS)
    # In this model's vocabulary each word of a prompt is one token; the chat template adds the same to all.
    template = {record["prompt_tokens"] - INPUT for record in measured}
    check(f"prompts have {INPUT} tokens and the template's, not more by {template}",
          len(template) == 1 and 0 < min(template) < 32)
    probe = after[0] - before[0] - sum(record["prompt_tokens"] for record in records)
    check(f"the prompts differ by one short one, not by {probe} tokens", 0 < probe < 32)

    with open(saved) as file:
        run = json.load(file)
    level = run["levels"][0]
    check("the run file counts them all", level["counts"]["ok"] == len(measured) and level["counts"]["failed"] == 0)
    status, again, said = tokload(binary, "report", saved)
    check(f"the report's exit code is 0, not {status}: {said.strip()}", status == 0)
    check("the report shows the same numbers", "E2E ms" in table and numbers(again) == numbers(table))
    return probe


def gone(port):
    """Whether no slot of the server works, a second after the last user has gone at the latest."""
    for _ in range(20):
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
            if re.search(r"^llamacpp:requests_processing 0$", answer.read().decode(), re.M):
                return True
        time.sleep(0.05)
    return False


def aborts(binary, port, folder):
    """A fifth of the users go away after a tenth of a second."""
    print("users who go away")
    saved = os.path.join(folder, "aborts.json")
    before = settled(port)
    status, table, said = tokload(
        binary, "run", "--base-url", f"http://127.0.0.1:{port}", "--output-file", saved, "--save-detailed",
        "--random-input-len", str(INPUT), "--random-output-len", str(LONG), "--num-warmups", "0", "--seed", "7",
        "--max-concurrency", "4", "--num-prompts", "40", "--goodput", "none",
        "--request-cancellation-rate", "20", "--request-cancellation-delay", str(PATIENCE),
    )
    check("the server has its slots back", gone(port))
    after = settled(port)
    print("".join(f"  {line}\n" for line in table.splitlines()), end="")
    check(f"the exit code is 0, not {status}: {said.strip()}", status == 0)
    if status != 0:
        return
    with open(saved.removesuffix(".json") + ".jsonl") as lines:
        records = [json.loads(line) for line in lines]
    left = [record for record in records if record["outcome"] == "cancelled"]
    stayed = [record for record in records if record["outcome"] == "ok"]
    check(f"40 requests ended one way or the other: {len(left)} and {len(stayed)}", len(left) + len(stayed) == 40)
    check("some went away", len(left) > 2)
    check("whoever stayed has the whole answer", all(record["output_tokens"] == LONG for record in stayed))
    late = [record["end_ms"] - record["sent_ms"] - PATIENCE * 1000 for record in left]
    check(f"nobody leaves early, nor 50 ms late: {late}", all(0 <= ms < 50 for ms in late))
    with open(saved) as file:
        counts = json.load(file)["levels"][0]["counts"]
    wasted = sum(record["output_tokens"] or 0 for record in left)
    check(f"the run file counts them alike: {counts}", (
        counts["ok"], counts["failed"], counts["cancelled"], counts.get("cancelled_tokens", 0),
        counts.get("cancelled_after_first", 0),
    ) == (len(stayed), 0, len(left), wasted, sum(record["events"] > 0 for record in left)))
    check("it is said below the table", f"{len(left)} of 40 requests were cancelled" in " ".join(table.split()))
    # What was made for those who left is little more than what they saw: at most some tokens were on their way.
    made = after[1] - before[1] - PROBE_TOKENS - len(stayed) * LONG
    check(f"the server stopped: {made} tokens made for those who left, who saw {wasted}",
          made <= wasted + 64 * len(left))


def records_of(binary, port, folder, api, options):
    """The records of a short run, and what the server counted meanwhile."""
    print(api)
    saved = os.path.join(folder, f"{api}.json")
    before = settled(port)
    status, table, said = tokload(
        binary, "run", "--base-url", f"http://127.0.0.1:{port}", "--backend", api, "--output-file", saved,
        "--save-detailed", "--random-input-len", str(INPUT), "--max-concurrency", "4", "--num-prompts", "32",
        "--num-warmups", "2", "--seed", "7", *options,
    )
    after = settled(port)
    print("".join(f"  {line}\n" for line in table.splitlines()[:8]), end="")
    check(f"{api}: the exit code is 0, not {status}: {said.strip()}", status == 0)
    if status != 0:
        return [], (0, 0)
    with open(saved.removesuffix(".json") + ".jsonl") as lines:
        records = [json.loads(line) for line in lines]
    check(f"{api}: there are 34 records, not {len(records)}", len(records) == 34)
    return records, (after[0] - before[0], after[1] - before[1])


def other_api(binary, port, folder, api, is_fixed):
    options = ["--random-output-len", str(OUTPUT)]
    records, (prompt, output) = records_of(binary, port, folder, api, options)
    if not records:
        return
    outcomes = {record["outcome"] for record in records}
    # Where the model may end at once, it sometimes says nothing.
    check(f"{api}: no request failed: {outcomes}", outcomes <= ({"ok"} if is_fixed else {"ok", "empty"}))
    check(f"{api}: there are answers", "ok" in outcomes)
    check(f"{api}: tokens are the server's count",
          all(record["output_source"] == record["prompt_source"] == "usage" for record in records))
    if is_fixed:
        check(f"{api}: every answer is as long as asked", all(record["output_tokens"] == OUTPUT for record in records))
    made = sum(record["output_tokens"] for record in records)
    check(f"{api}: the server counts {output} output tokens, the records {made} and at most {PROBE_TOKENS} more",
          0 < output - made <= PROBE_TOKENS)
    probe = prompt - sum(record["prompt_tokens"] for record in records)
    check(f"{api}: the prompts differ by one short one, not by {probe} tokens", 0 < probe < 32)


def conversations(binary, port, folder):
    """Three turns each, with the live answers: prompts grow, and the server's own cache finds what was said."""
    print("conversations")
    saved = os.path.join(folder, "conversations.json")
    status, table, said = tokload(
        binary, "run", "--base-url", f"http://127.0.0.1:{port}", "--output-file", saved, "--save-detailed",
        "--random-input-len", "40", "--per-turn-input-len", "20", "--random-output-len", "16", "--multi-turn",
        "--multi-turn-num-turns", "3", "--multi-turn-delay-ms", "20", "--max-concurrency", "2", "--num-prompts", "6",
        "--num-warmups", "0", "--seed", "7",
    )
    print("".join(f"  {line}\n" for line in table.splitlines()), end="")
    check(f"conversations: the exit code is 0, not {status}: {said.strip()}", status == 0)
    if status != 0:
        return
    with open(saved) as file:
        level = json.load(file)["levels"][0]
    check("conversations: all are finished", level["sessions"]["finished"] == 6)
    turns = level["turns"]
    check("conversations: every turn is answered", [turn["counts"]["ok"] for turn in turns] == [6, 6, 6])
    prompts = [turn["tokens"]["prompt"] for turn in turns]
    # Twenty words more, and an answer whose tokens may be cut in other places when they are read again.
    check(f"conversations: prompts grow: {prompts}", prompts[0] + 6 * 20 < prompts[1] and prompts[1] + 6 * 20 < prompts[2])
    cached = [turn["tokens"]["cached"] for turn in turns]
    if None not in cached:
        check(f"conversations: the cache finds the turns before: {cached} of {prompts}",
              cached[1] >= prompts[0] * 0.8 and cached[2] >= prompts[1] * 0.8)


def embeddings(binary, port, folder):
    records, _ = records_of(binary, port, folder, "openai-embeddings", [])
    check("embeddings: no request failed", all(record["outcome"] == "ok" for record in records))
    check("embeddings: prompts are counted",
          all(record["prompt_source"] == "usage" and record["prompt_tokens"] >= INPUT for record in records))


def exact(binary, port, folder, api, options):
    """Prompts of exactly so many tokens; returns what the server's template adds to them."""
    added = set()
    for tokens in EXACT:
        saved = os.path.join(folder, "exact.json")
        status, _, said = tokload(
            binary, "run", "--base-url", f"http://127.0.0.1:{port}", "--backend", api, "--output-file", saved, "--force",
            "--save-detailed", "--random-input-len", str(tokens), "--random-output-len", "2", "--max-concurrency", "1",
            "--num-prompts", "6", "--num-warmups", "1", *options,
        )
        check(f"{api} {options}: the exit code is 0, not {status}: {said.strip()}", status == 0)
        if status != 0:
            continue
        with open(saved.removesuffix(".json") + ".jsonl") as lines:
            counted = {json.loads(line)["prompt_tokens"] for line in lines}
        print(f"  {api} {' '.join(options)}: {tokens} tokens asked for, {counted} counted")
        check(f"{api} {options}: all prompts of {tokens} tokens have the same number, not {counted}", len(counted) == 1)
        added |= {count - tokens for count in counted}
    check(f"{api} {options}: the same comes to prompts of all lengths, not {added}", len(added) == 1)
    return added


def exact_lengths(binary, port, folder):
    for api in ["openai", "llama.cpp"]:
        for options in [["--calibrate"], ["--calibrate", "--tokenize-prompt"]]:
            check(f"{api} {options}: prompts have the tokens asked for", exact(binary, port, folder, api, options) == {0})
    template = exact(binary, port, folder, "openai-chat", ["--calibrate"])
    check(f"a chat template adds something, not {template}", all(0 < count < 32 for count in template))


def long_ones(binary):
    tokens, rate, seconds = LONG_PROMPTS
    print(f"{rate} prompts of {tokens} tokens a second, to the mock server")
    # The tail of how late sends are is a matter of the machine, and of tools/long_prompts.py on an idle one.
    seen = long_prompts.measure(binary, tokens, rate, seconds)
    print(f"  {json.dumps(seen)}")
    for problem in long_prompts.wrong(seen, tokens):
        check(f"long prompts: {problem}", False)


def capacity(binary):
    """TTFT is 80 ms for each request in flight and may be 360 ms: four requests at once, found through sockets as in a
    simulation (tests/it/find_capacity.rs)."""
    print("the capacity of the mock server")
    server, url = long_prompts.start_mock(binary, "--ttft", "0", "--itl", "1", "--ttft-per-in-flight", "80")
    try:
        words = [binary, "find-capacity", "--base-url", url, "--goodput", "ttft:360", "--num-prompts", "44",
                 "--random-output-len", "2", "--no-save", "--format", "json", "--quiet"]
        run = subprocess.run(words, stdout=subprocess.PIPE, text=True)
    finally:
        server.send_signal(signal.SIGINT)
        server.communicate()
    answer = json.loads(run.stdout)["capacity"]["answer"] if run.returncode == 0 else {}
    print(f"  {json.dumps(answer)}")
    check(f"the capacity is 4, not {answer}", (answer.get("low"), answer.get("high")) == (4.0, 5.0))


def quick(binary, port, folder, slots):
    """A quick look names the slots of the server, and never others. A machine that is busy with other things may keep it
    from naming any; then it has a second try."""
    print(f"a quick look at {slots} slots")
    saved = os.path.join(folder, f"quick-{slots}.json")
    for _ in range(2):
        began = time.monotonic()
        status, _, said = tokload(
            binary, "quick", "--base-url", f"http://127.0.0.1:{port}", "--goodput", *QUICK_LIMITS, "--max-time",
            str(QUICK_S), "--output-file", saved, "--force", "--format", "json", "--quiet",
        )
        took = time.monotonic() - began
        # 1: on a machine that is busy enough not even one user has what the limits are.
        check(f"quick: the exit code is 0 or 1, not {status}: {said.strip()}", status in (0, 1))
        check(f"quick: it takes {QUICK_S} s at most, not {took:.1f} s", took <= QUICK_S)
        if status not in (0, 1):
            return
        with open(saved) as file:
            capacity = json.load(file)["capacity"]
        named = (capacity.get("slots") or {}).get("slots")
        answer = {key: capacity["answer"][key] for key in ("low", "high", "ending")}
        print(f"  {named} slots, {json.dumps(answer)}, {took:.1f} s")
        check(f"quick: {slots} slots are not {named}", named in (None, slots))
        if named is not None:
            break
    check(f"quick: {slots} slots are named", named == slots)
    status, table, said = tokload(binary, "report", saved)
    check(f"quick: the report's exit code is 0, not {status}: {said.strip()}", status == 0)
    words = f"works on about {slots} request"
    check("quick: the report says so, and what to turn", words in " ".join(table.split()) and "--parallel" in table)


def with_server(folder, options, use):
    """Starts the server, hands its port to `use` and stops it; says whether this machine can run it."""
    started = subprocess.run([os.path.join(ROOT, "tools/llama_cpp.sh"), folder, *options], stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE, text=True)
    if started.returncode == 3:
        print(f"skipped: {started.stderr.strip()}")
        return False
    sys.stderr.write(started.stderr)
    if started.returncode != 0:
        sys.exit("the llama.cpp server did not start")
    pid, port = map(int, started.stdout.split())
    try:
        use(port)
    finally:
        os.kill(pid, signal.SIGTERM)
    return True


def main():
    options = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    options.add_argument("--tokload", default=os.path.join(ROOT, "target/release/tokload"))
    options.add_argument("--dir", default=os.path.join(ROOT, "target/llama"), help="where the server is kept")
    asked = options.parse_args()
    long_ones(asked.tokload)
    capacity(asked.tokload)
    with tempfile.TemporaryDirectory() as folder:
        def generate(port):
            probes = {one(asked.tokload, port, folder, *run) for run in RUNS}
            check("the short request before a run is always the same", len(probes) == 1)
            aborts(asked.tokload, port, folder)
            # As if nothing had been.
            name, load, expected = RUNS[1]
            one(asked.tokload, port, folder, f"{name}, again", load, expected)
            for api, is_fixed in APIS:
                other_api(asked.tokload, port, folder, api, is_fixed)
            conversations(asked.tokload, port, folder)
            exact_lengths(asked.tokload, port, folder)

        if not with_server(asked.dir, [], generate):
            return finish()
        with_server(asked.dir, ["--embeddings", "--pooling", "mean"],
                    lambda port: embeddings(asked.tokload, port, folder))
        for slots in [1, 2, 4]:
            with_server(asked.dir, ["--parallel", str(slots)],
                        lambda port, slots=slots: quick(asked.tokload, port, folder, slots))
    finish()


def finish():
    if problems:
        sys.exit(f"end-to-end test: {len(problems)} checks failed")
    print("end-to-end test: passed")


if __name__ == "__main__":
    main()
