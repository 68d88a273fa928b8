"""Load generators: what each can take part in, how it is started, and what is read from its own report.

A report is a dict of numbers under common names, None or absent where the tool does not have them:
    ttft_p50 ttft_p99    time to first token, ms; ttft_late_*: of requests begun after the opening second
    tpot_p50 tpot_p99    mean gap of a request, ms
    itl_p50 itl_p99      gaps pooled over all requests, ms
    seconds              how long its load took
    requests_s           requests per second
    planned_s            when each request was to be sent, on any clock
    delay_p50 delay_p99  how late its sends were by its own account, ms
    cpu_s                CPU time from the first request on
and the same with `kernel_` before them, by the stamps of the kernel.
"""

import json
import os
import shlex
import shutil
from dataclasses import dataclass, field
from typing import Callable

import server
from stats import rank

MODEL = "ref-model"


@dataclass(frozen=True)
class Load:
    """What a tool is asked to do."""

    streams: int = 1
    requests: int = 1
    tokens: int = 1
    prompt: int = 32  # words of a prompt
    rate: float = 0.0  # Poisson arrivals per second, instead of a closed loop
    seconds: float = 1.0  # about how long it takes, for tools that cannot count
    streaming: bool = True
    stamps: bool = False  # the drain-only client stamps its reads, and reports are wanted with records
    seed: int = 1


@dataclass(frozen=True)
class Started:
    """One start of a tool: where it sends, its own empty folder, and what is in `local` for tools that look for files."""

    load: Load
    base: str
    folder: str
    local: str

    def file(self, *names):
        return os.path.join(self.folder, *names)


@dataclass(frozen=True)
class Tool:
    """A load generator. `argv` follows its command; `read` gets (Started, standard output)."""

    name: str
    variable: str  # environment variable that holds its command
    program: tuple  # the command if that is on PATH; () if it has no program of its own
    argv: Callable
    read: Callable
    takes: frozenset = frozenset({"stream", "rate"})
    firehose_tokens: int = 2000
    env: Callable = lambda _: {}
    command: tuple = field(default=())

    def found(self, named):
        """The same tool with its command; None where it is not installed."""
        given = named.get(self.name) or os.environ.get(self.variable, "")
        words = shlex.split(given)
        if words:
            # A tool runs in a folder of its own.
            words[0] = os.path.abspath(words[0]) if os.path.dirname(words[0]) else shutil.which(words[0])
            if not words[0] or not os.access(words[0], os.X_OK):
                raise SystemExit(f"{self.name}: `{given}` is no program that can be run")
        elif self.program and (path := shutil.which(self.program[0])):
            words = [path, *self.program[1:]]
        if not words:
            return None
        return Tool(**{**self.__dict__, "command": tuple(words)})

    def size(self):
        """Bytes of its binary; None for a script."""
        path = os.path.realpath(self.command[0])
        with open(path, "rb") as file:
            return (
                os.path.getsize(path) if file.read(4) == b"\x7fELF" and "python" not in os.path.basename(path) else None
            )


# ---- tokload --------------------------------------------------------------------------------------------------------
def tokload_argv(*more):
    def argv(s):
        load = s.load
        words = [
            "run",
            "--base-url",
            s.base,
            "--workers",
            1,
            "--quiet",
            "--output-file",
            s.file("run.json"),
            "--num-warmups",
            0,
            "--goodput",
            "none",
            "--seed",
            load.seed,
            "--random-input-len",
            load.prompt,
            "--random-output-len",
            load.tokens,
            "--num-prompts",
            load.requests,
        ]
        words += ["--request-rate", load.rate] if load.rate else ["--max-concurrency", load.streams]
        words += [] if load.streaming else ["--no-streaming", "--num-dataset-entries", 1]
        words += ["--save-detailed"] if load.stamps else []
        return [*words, *more]

    return argv


def tokload_env(s):
    return {"TOKLOAD_STATE_DIR": s.folder}


def tokload_read(s, _out):
    with open(s.file("run.json")) as file:
        level = json.load(file)["levels"][0]
    if level["counts"]["ok"] != s.load.requests:
        raise ValueError(f"{level['counts']['ok']} of {s.load.requests} requests were answered")
    found = {"seconds": (level["span"]["t2_ns"] - level["span"]["t0_ns"]) / 1e9}
    found["requests_s"] = s.load.requests / found["seconds"]
    for share in ("p50", "p99"):
        for metric in ("ttft", "tpot", "itl"):
            for prefix, name in (("", metric), ("kernel_", metric + "_kernel")):
                distribution = level["distributions"].get(name)
                if distribution:
                    found[f"{prefix}{metric}_{share}"] = server.ms(distribution["quantiles"].get(share))
        for error in level["self_check"]["client_error"]:
            if (error["metric"], error["quantile"]) == ("tpot", share):
                found[f"kernel_tpot_{share}"] = server.ms(error["kernel_ns"])
        delay = level["self_check"]["schedule_delay"]
        found[f"delay_{share}"] = server.ms(delay[share + "_ns"]) if delay else None
    if s.load.stamps:
        with open(s.file("run.jsonl")) as lines:
            found |= tokload_records([json.loads(line) for line in lines])
    return found


def tokload_records(records):
    """What only single requests show: the plan, and TTFT after the opening second."""
    found = {"planned_s": [record["plan_ms"] / 1e3 for record in records]}
    began = min(record["start_ms"] for record in records)
    late = [record for record in records if record["start_ms"] - began >= server.OPENING_NS / 1e6]
    for prefix, first in (("", "first_ms"), ("kernel_", "kernel_first_ms")):
        values = [record[first] - record["start_ms"] for record in late if record.get(first) is not None]
        for share in (50, 99):
            found[f"{prefix}ttft_late_p{share}"] = rank(values, share / 100)
    return found


def variants(tokload, text):
    """tokload's engines and stamps, as far as the help of this build has them."""
    ways = {"io_uring": ["--driver", "io_uring"], "epoll": ["--driver", "epoll"]} if "--driver" in text else {}
    if "--runtime" in text:
        ways |= {f"runtime {name}": ["--runtime", name] for name in runtimes(text)}
    stamps = {"kernel": "both", "user": "user"}
    return [
        Tool(
            **{
                **tokload.__dict__,
                "name": f"tokload, {way}, {name} stamps",
                "argv": tokload_argv(*words, "--timestamps", stamp),
            }
        )
        for way, words in ways.items()
        for name, stamp in stamps.items()
    ]


def runtimes(text):
    """The names in `--runtime`'s line of the help, as in `--runtime <a|b>` or `a, b or c (default: a)`."""
    after = " ".join(text.split("--runtime", 1)[1].split("--", 1)[0].split())
    listed = after.split(":", 1)[1] if ":" in after.split("(default")[0] else after.split(">", 1)[-1]
    names = listed.split("(default")[0].replace(" or ", ",").split(",")
    return [name.strip() for name in names if name.strip().replace("_", "").isalnum() and name.strip() != "auto"]


# ---- the drain-only client ------------------------------------------------------------------------------------------
def drain_argv(s):
    load = s.load
    words = ["--port", s.base.rpartition(":")[2], "--max-tokens", load.tokens, "--requests", load.requests]
    if load.rate:
        # Connections for what is under way at once, and then some.
        return [*words, "-c", load.streams, "--rate", load.rate, "--seed", load.seed, "--sends", s.file("sends.csv")]
    return [*words, "-c", load.streams, "--stamp", int(load.stamps), "--plain", int(not load.streaming)]


def drain_read(s, out):
    said = json.loads(out)
    if said["finished"] != s.load.requests:
        raise ValueError(f"{said['finished']} of {s.load.requests} requests were answered")
    found = {key: said.get(key) for key in said if key.startswith(("ttft", "tpot", "itl"))}
    found |= {
        "seconds": said["seconds"],
        "requests_s": said["finished"] / said["seconds"],
        "cpu_s": said["cpu_user_s"] + said["cpu_sys_s"],
    }
    if s.load.rate:
        with open(s.file("sends.csv")) as lines:
            sends = [tuple(map(int, line.split(","))) for line in list(lines)[1:]]
        late = [sent - planned for planned, sent in sends]
        found |= {
            "planned_s": [planned / 1e9 for planned, _ in sends],
            "delay_p50": server.ms(rank(late, 0.5)),
            "delay_p99": server.ms(rank(late, 0.99)),
        }
    return found


OWN = [
    Tool("drain", "DRAIN", (), drain_argv, drain_read, frozenset({"stream", "rate", "plain"}), 200_000),
    Tool(
        "tokload",
        "TOKLOAD",
        ("tokload",),
        tokload_argv(),
        tokload_read,
        frozenset({"stream", "rate", "plain"}),
        200_000,
        tokload_env,
    ),
]
