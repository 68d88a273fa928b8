#!/usr/bin/env python3
"""Each API that tokload speaks, against each real server that has it: vLLM, NVIDIA Dynamo, llama.cpp.

    tools/dialects.py [vllm] [vllm-embeddings] [dynamo] [llama.cpp] [router] [--url URL] [--tokload target/release/tokload]

All of them by default, one after the other, on loopback, with a model whose answers have no end of their own
(tools/real_servers.py, which says what is installed; some minutes and 7 GB at first, so this is no part of a check).
`router` is SGLang's, before llama.cpp or before Dynamo. --url takes a server that runs already, of the one kind named.

Of each API: several users and streams, where every request must succeed, every answer be as long as asked by the
server's own count, have TTFT, TPOT and a reason for its end, and what the records add up to be what the server's
/metrics counted, but for the short request that goes before each run. Answers that a stop text ends. Conversations of
three turns with the live answers. Prompts of exactly so many tokens (--calibrate), to which only the server's template
may add, always the same. A table at the end. Standard library only.
"""

import argparse
import collections
import contextlib
import json
import os
import re
import subprocess
import sys
import tempfile
import time
import urllib.request

import real_servers

ROOT = real_servers.ROOT
INPUT, OUTPUT, USERS, REQUESTS, WARMUPS = 32, 24, 4, 32, 2
# The request before a run asks for this many tokens.
PROBE_TOKENS = 2
EXACT = [1, 17, 700]
TURNS, SESSIONS = 3, 6
# What ends an answer early, by API.
STOPS = {
    "openai-chat": {"stop": ["a"], "ignore_eos": False},
    "openai": {"stop": ["a"], "ignore_eos": False},
    "messages": {"stop_sequences": ["a"]},
}

# apis: what it has, and of these which stop at texts. counts: its counters of prompt and output tokens; those of one
# kind are added up. tokenizes: it has /tokenize, so that prompts have exactly the tokens asked for in any vocabulary.
Kind = collections.namedtuple("Kind", "start apis stops counts tokenizes")
LLAMA_COUNTS = (("llamacpp:prompt_tokens_total", "llamacpp:prompt_tokens_cached_total"),
                ("llamacpp:tokens_predicted_total",))
KINDS = {
    "vllm": Kind(real_servers.vllm, ["openai-chat", "openai", "responses", "messages"],
                 ["openai-chat", "openai", "messages"],
                 (("vllm:prompt_tokens_total",), ("vllm:generation_tokens_total",)), True),
    "vllm-embeddings": Kind(lambda folder: real_servers.vllm(folder, pooling=True), ["openai-embeddings"], [],
                            (("vllm:prompt_tokens_total",), ()), True),
    "dynamo": Kind(real_servers.dynamo, ["openai-chat", "openai", "responses"], [],
                   (("dynamo_frontend_input_sequence_tokens_sum",), ("dynamo_frontend_output_tokens_total",)),
                   False),
    "llama.cpp": Kind(real_servers.llama_cpp, ["openai-chat", "openai", "responses", "messages", "llama.cpp"],
                      ["openai-chat", "openai", "messages"], LLAMA_COUNTS, True),
    "router": Kind(real_servers.routed, ["openai-chat", "openai", "responses"], [], None, False),
}
Row = collections.namedtuple("Row", "server api run requests prompt output ttft tpot result")


class Bench:
    """One server that runs, and what was found of it."""

    def __init__(self, tokload, name, url, folder):
        self.tokload, self.name, self.url, self.folder = tokload, name, url, folder
        self.counts = KINDS[name].counts
        self.rows, self.problems = [], []

    def counted(self):
        """(prompt, output) tokens that the server has counted, once its counters stand still."""
        if self.counts is None:
            return None
        last = None
        for _ in range(50):
            with urllib.request.urlopen(f"{self.url}/metrics", timeout=10) as answer:
                lines = answer.read().decode().splitlines()
            now = tuple(round(sum(float(line.split()[-1]) for line in lines
                                  if re.split(r"[{ ]", line, maxsplit=1)[0] in names)) for names in self.counts)
            if now == last:
                return now
            last = now
            time.sleep(0.3)
        return last

    def records(self, api, run, options):
        """The level and the records of a run, what the server counted meanwhile, and the problems so far."""
        self.found, saved = [], os.path.join(self.folder, f"{self.name}-{api}-{run.replace(' ', '-')}.json")
        before = self.counted()
        words = [self.tokload, "run", "--base-url", self.url, "--backend", api, "--output-file", saved, "--force",
                 "--save-detailed", "--seed", "7", "--ready-check-timeout-sec", "0", *options]
        done = subprocess.run(words, capture_output=True, text=True, timeout=300, stdin=subprocess.DEVNULL,
                              env={**os.environ, "TOKLOAD_STATE_DIR": ""})
        self.check(f"the exit code is {done.returncode}: {done.stderr.strip()[-600:]}", done.returncode == 0)
        self.check("standard error has no panic", "panicked" not in done.stderr)
        if done.returncode != 0:
            return None, [], None
        after = self.counted()
        with open(saved) as file:
            run = json.load(file)
        self.plan, level = run["plan"], run["levels"][0]
        with open(saved.removesuffix(".json") + ".jsonl") as lines:
            records = [json.loads(line) for line in lines]
        counted = None if after is None else (after[0] - before[0], after[1] - before[1])
        return level, records, counted

    def check(self, what, holds):
        if not holds:
            self.found.append(what)

    def note(self, api, run, records, extra=""):
        """A row of the table, and the end of a run."""
        def spread(key):
            values = sorted(record[key] for record in records if record[key] is not None)
            return f"{values[len(values) // 2]:.1f}" if values else "-"

        def span(key):
            values = {record[key] for record in records}
            known = sorted(value for value in values if value is not None)
            return "-" if not known else f"{known[0]}" if len(known) == 1 else f"{known[0]}-{known[-1]}"

        result = "ok" if not self.found else f"{len(self.found)} FAILED"
        self.rows.append(Row(self.name, api, run, len(records), span("prompt_tokens"), span("output_tokens"),
                             spread("ttft_ms"), spread("tpot_ms"), f"{result}{extra}"))
        for what in self.found:
            print(f"  FAILED: {self.name}, {api}, {run}: {what}")
        self.problems += self.found
        print(f"{self.name}, {api}, {run}: {result}", flush=True)

    def every_record(self, records):
        """What holds of every request of every run."""
        bad = {(record["outcome"], record["kind"], record["status"]) for record in records} - {("ok", "none", 200)}
        self.check(f"every request succeeds, not {bad}", not bad)
        records = [record for record in records if record["outcome"] == "ok"]
        for key in ("prompt_source", "output_source"):
            sources = {record[key] for record in records}
            self.check(f"{key} is the server's usage, not {sources}", sources == {"usage"})
        remarks = {remark for record in records for remark in record["remarks"]}
        odd = remarks & {"no_finish_reason", "no_terminal_marker", "no_terminal_chunk", "protocol_error_after_end"}
        self.check(f"every answer ends as its API says, not with {odd}", not odd)
        for key in ("ttft_ms", "ttfa_ms", "e2e_ms"):
            self.check(f"every request has {key}", all(record[key] is not None for record in records))
        longer = [record for record in records if record["output_tokens"] > 1 and record["events"] > 1]
        self.check("every longer answer has TPOT", all(record["tpot_ms"] is not None for record in longer))
        for record in records:
            times = [record[key] for key in ("start_ms", "sent_ms", "byte_ms", "first_ms", "last_ms", "end_ms")]
            self.check(f"the times of request {record['index']} are in order: {times}", times == sorted(times))

    def sums(self, records, counted, probe_tokens):
        """The records add up to what the server counted, but for the short request before the run."""
        if counted is None:
            return
        prompt = counted[0] - sum(record["prompt_tokens"] or 0 for record in records)
        self.check(f"the server counted {prompt} prompt tokens more than the records, not those of one short request",
                   0 < prompt < 64)
        output = counted[1] - sum(record["output_tokens"] or 0 for record in records)
        self.check(f"the server counted {output} output tokens more than the records, not 1 to {probe_tokens}",
                   output == 0 if probe_tokens == 0 else 0 < output <= probe_tokens)

    def streams(self, api):
        level, records, counted = self.records(api, "streams", [
            "--max-concurrency", str(USERS), "--num-prompts", str(REQUESTS), "--num-warmups", str(WARMUPS),
            "--random-input-len", str(INPUT), "--random-output-len", str(OUTPUT),
        ])
        if level:
            self.every_record(records)
            self.check(f"there are {len(records)} records", len(records) == REQUESTS + WARMUPS)
            self.check(f"the run file counts {level['counts']}", (level["counts"]["ok"], level["counts"]["failed"]) ==
                       (REQUESTS, 0))
            lengths = collections.Counter(record["output_tokens"] for record in records)
            self.check(f"every answer has {OUTPUT} tokens, not {dict(lengths)}", set(lengths) == {OUTPUT})
            # Not each token: on a busy machine vLLM joins those that wait to be sent.
            events = min(record["events"] for record in records)
            self.check(f"answers come in pieces: {events} at least", events > 1)
            self.sums(records, counted, PROBE_TOKENS)
        self.note(api, "streams", records)

    def stopped(self, api):
        level, records, counted = self.records(api, "stop text", [
            "--max-concurrency", str(USERS), "--num-prompts", str(REQUESTS), "--num-warmups", "0",
            "--random-input-len", str(INPUT), "--random-output-len", str(OUTPUT), "--extra-body", json.dumps(STOPS[api]),
        ])
        if level:
            # An answer whose first letters are the text that ends it is empty, and no success.
            empty = [record for record in records if (record["outcome"], record["kind"]) == ("empty", "none")]
            full = [record for record in records if record not in empty]
            self.every_record(full)
            self.check(f"{len(full)} answers are not empty", len(full) > REQUESTS / 2)
            early = [record for record in full if record["output_tokens"] < OUTPUT]
            self.check(f"{len(early)} answers end early", len(early) > REQUESTS / 2)
            self.sums(records, counted, PROBE_TOKENS)
        self.note(api, "stop text", records)

    def conversations(self, api):
        level, records, counted = self.records(api, "conversations", [
            "--multi-turn", "--multi-turn-num-turns", str(TURNS), "--multi-turn-delay-ms", "20",
            "--random-input-len", "160", "--per-turn-input-len", "20", "--random-output-len", "16",
            "--max-concurrency", "2", "--num-prompts", str(SESSIONS), "--num-warmups", "0",
        ])
        cached = ""
        if level:
            self.every_record(records)
            self.check(f"all conversations are finished: {level['sessions']}", level["sessions"]["finished"] == SESSIONS)
            turns = level.get("turns") or []
            counts = [turn["counts"]["ok"] for turn in turns]
            self.check(f"every turn is answered: {counts}", counts == [SESSIONS] * TURNS)
            prompts = [turn["tokens"]["prompt"] for turn in turns]
            # Twenty words more, and an answer whose tokens may be cut in other places when they are read again.
            self.check(f"prompts grow by what is added and what was answered: {prompts}", all(
                after - before > SESSIONS * 26 for before, after in zip(prompts, prompts[1:])))
            shares = [turn["tokens"]["cached"] for turn in turns]
            if None not in shares:
                cached = f", cached {shares} of {prompts}"
                # Blocks of a cache have up to 128 tokens, and the first turn more than one of them.
                self.check(f"the cache finds the turns before: {shares}", all(
                    found >= SESSIONS * 128 for found in shares[1:]))
            self.sums(records, counted, PROBE_TOKENS)
        self.note(api, "conversations", records, cached)

    def exact(self, api):
        """Prompts of so many tokens. Without /tokenize words have so many on average: exactly one in this vocabulary, but
        for the first of a text without a template, which has no blank before it."""
        is_exact = KINDS[self.name].tokenizes or api != "openai"
        added, every, found, told = set(), [], [], set()
        for tokens in EXACT:
            level, records, _ = self.records(api, f"exact {tokens}", [
                "--calibrate", "--random-input-len", str(tokens), "--random-output-len", "2", "--max-concurrency", "1",
                "--num-prompts", "6", "--num-warmups", "1",
            ])
            every += records
            if level:
                self.every_record(records)
                added |= {record["prompt_tokens"] - tokens for record in records
                          if record["phase"] == "measured" or KINDS[self.name].tokenizes}
                told.add(self.plan["workload"]["tokens"]["found"].get("template", 0))
            found += self.found
        self.found = found
        if is_exact:
            self.check(f"the same comes to prompts of all lengths, as is said: {added}, {told}",
                       len(added) == 1 and added == told)
        else:
            self.check(f"prompts are some tokens off at most, not by {added}", all(abs(off) <= 8 for off in added))
        self.note(api, "exact prompts", every, f", template {added or '-'}")

    def embeddings(self, api):
        level, records, counted = self.records(api, "embeddings", [
            "--max-concurrency", str(USERS), "--num-prompts", str(REQUESTS), "--num-warmups", str(WARMUPS),
            "--random-input-len", str(INPUT),
        ])
        if level:
            bad = {(record["outcome"], record["kind"]) for record in records} - {("ok", "none")}
            self.check(f"every request succeeds, not {bad}", not bad and len(records) == REQUESTS + WARMUPS)
            self.check("prompts are counted by the server", all(
                record["prompt_source"] == "usage" and record["prompt_tokens"] >= INPUT for record in records))
            if counted:
                probe = counted[0] - sum(record["prompt_tokens"] for record in records)
                self.check(f"the server counted {probe} prompt tokens more than the records", 0 < probe < 64)
        self.note(api, "embeddings", records)

    def every_api(self):
        for api in KINDS[self.name].apis:
            if api == "openai-embeddings":
                self.embeddings(api)
                continue
            self.streams(api)
            if api in KINDS[self.name].stops:
                self.stopped(api)
            self.conversations(api)
            self.exact(api)


def table(rows):
    lines = [Row._fields, *(tuple(map(str, row)) for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(Row._fields))]
    for line in lines:
        print("  ".join(word.ljust(width) for word, width in zip(line, widths)).rstrip())


def main():
    options = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    options.add_argument("servers", nargs="*", metavar="server", help=f"of {', '.join(KINDS)}; all by default")
    options.add_argument("--url", help="a server of the one kind named that runs already")
    options.add_argument("--tokload", default=os.path.join(ROOT, "target/release/tokload"))
    options.add_argument("--dir", default=os.path.join(ROOT, "target/servers"), help="where the servers are kept")
    options.add_argument("--keep", help="a folder for the results, which are thrown away otherwise")
    asked = options.parse_args()
    names = asked.servers or list(KINDS)
    if unknown := set(names) - set(KINDS):
        options.error(f"no server {', '.join(sorted(unknown))}; there are {', '.join(KINDS)}")
    if asked.url and len(names) != 1:
        options.error("--url takes the name of one server")
    rows, problems = [], []
    with tempfile.TemporaryDirectory() as temporary:
        if asked.keep:
            os.makedirs(asked.keep, exist_ok=True)
        for name in names:
            with contextlib.nullcontext(asked.url) if asked.url else KINDS[name].start(asked.dir) as url:
                if url is None:
                    print(f"{name}: skipped")
                    continue
                bench = Bench(asked.tokload, name, url, asked.keep or temporary)
                bench.every_api()
                rows += bench.rows
                problems += bench.problems
    table(rows)
    if problems:
        sys.exit(f"{len(problems)} checks failed")
    print("all checks passed")


if __name__ == "__main__":
    main()
