"""Other load generators: how each is started and its report is read. tools.py has the names of what is read.

Written for the versions that README.md lists. A report in another form makes the row say what was missed.
"""

import glob
import json

from tools import MODEL, Tool

# A plain request of tools that send one body.
BODY = json.dumps(
    {"model": MODEL, "messages": [{"role": "user", "content": "hello"}], "stream": False, "max_tokens": 1},
    separators=(",", ":"),
)


def at(tree, *path):
    """A value deep in JSON objects; None where any step is absent."""
    for name in path:
        tree = tree.get(name) if isinstance(tree, dict) else None
    return tree


def ms_of_s(seconds):
    return None if seconds is None else seconds * 1e3


def loaded(path):
    with open(path) as file:
        return json.load(file)


def only(pattern, but=""):
    """The one file of a pattern, without those whose names hold `but`."""
    found = sorted(path for path in glob.glob(pattern, recursive=True) if not but or but not in path)
    if not found:
        raise ValueError(f"no report at {pattern}")
    return found[0]


def offline(s):
    """Tokenizers and prompts come from `local`, never from a hub."""
    return {"HF_HOME": f"{s.local}/hf", "HF_HUB_OFFLINE": "1", "HF_TOKEN": "none"}


def loop(s, rate, streams, *more_of_rate):
    return [rate, s.load.rate, *more_of_rate] if s.load.rate else [streams, s.load.streams]


# ---- servebench -----------------------------------------------------------------------------------------------------
def servebench_argv(s):
    return [
        "run",
        "--url",
        s.base + "/v1",
        "--model",
        MODEL,
        "--num-requests",
        s.load.requests,
        "--output-len",
        s.load.tokens,
        "--input-len",
        s.load.prompt,
        "--warmup",
        0,
        "--no-gpu",
        "--seed",
        s.load.seed,
        "--out",
        s.file("r.json"),
        *loop(s, "--rate", "--concurrency"),
    ]


def servebench_read(s, _out):
    level = loaded(s.file("r.json"))["levels"][0]
    found = {
        f"{metric}_{share}": ms_of_s(at(level, "summary", metric, share))
        for metric in ("ttft", "itl", "tpot")
        for share in ("p50", "p99")
    }
    return found | {"seconds": level.get("duration"), "delay_p99": level.get("client_lag_p99_ms")}


# ---- vLLM: Python and Rust ------------------------------------------------------------------------------------------
def vllm_argv(s):
    return [
        "--backend",
        "openai-chat",
        "--base-url",
        s.base,
        "--endpoint",
        "/v1/chat/completions",
        "--model",
        MODEL,
        "--tokenizer",
        f"{s.local}/tok",
        "--dataset-name",
        "random",
        "--random-input-len",
        s.load.prompt,
        "--random-output-len",
        s.load.tokens,
        "--num-prompts",
        s.load.requests,
        "--ignore-eos",
        "--seed",
        s.load.seed,
        "--save-result",
        "--result-filename",
        s.file("r.json"),
        "--percentile-metrics",
        "ttft,tpot,itl,e2el",
        "--metric-percentiles",
        "50,99",
        "--disable-tqdm",
        *loop(s, "--request-rate", "--max-concurrency"),
    ]


def vllm_read(s, _out):
    said = loaded(s.file("r.json"))
    found = {
        f"{metric}_p{share}": said.get(f"p{share}_{metric}_ms")
        for metric in ("ttft", "itl", "tpot")
        for share in (50, 99)
    }
    return found | {"seconds": said["duration"], "requests_s": said["request_throughput"]}


# ---- SGLang: Python and Rust ----------------------------------------------------------------------------------------
def sglang_argv(s):
    return [
        "--backend",
        "sglang-oai-chat",
        "--base-url",
        s.base,
        "--model",
        MODEL,
        "--tokenizer",
        f"{s.local}/tok",
        "--dataset-name",
        "random-ids",
        "--random-input-len",
        s.load.prompt,
        "--random-output-len",
        s.load.tokens,
        "--random-range-ratio",
        1,
        "--num-prompts",
        s.load.requests,
        "--warmup-requests",
        0,
        "--seed",
        s.load.seed,
        "--output-file",
        s.file("r.json"),
        "--disable-tqdm",
        *loop(s, "--request-rate", "--max-concurrency"),
    ]


def sglang_rust_argv(s):
    return [*sglang_argv(s), "--worker-threads", 1]


def sglang_read(s, _out):
    with open(s.file("r.json")) as lines:
        said = json.loads(lines.read().splitlines()[-1])
    found = {
        f"{metric}_{share}": said.get(f"{name}_{metric}_ms")
        for metric in ("ttft", "itl", "tpot")
        for share, name in (("p50", "median"), ("p99", "p99"))
    }
    return found | {"seconds": said["duration"], "requests_s": said["request_throughput"]}


# ---- aiperf: its inter chunk latency is the ITL of the others, its inter token latency their TPOT -----------------------
def aiperf_argv(s):
    return [
        "profile",
        "-m",
        MODEL,
        "--endpoint-type",
        "chat",
        "--streaming",
        "--url",
        s.base,
        "--tokenizer",
        "local/tok",
        "--isl",
        s.load.prompt,
        "--osl",
        s.load.tokens,
        "--request-count",
        s.load.requests,
        "--artifact-dir",
        s.folder,
        "--ui",
        "none",
        "--no-gpu-telemetry",
        "--no-server-metrics",
        "--random-seed",
        s.load.seed,
        *loop(s, "--request-rate", "--concurrency", "--arrival-pattern", "poisson"),
    ]


def aiperf_read(s, _out):
    said = loaded(s.file("profile_export_aiperf.json"))
    names = {"ttft": "time_to_first_token", "tpot": "inter_token_latency", "itl": "inter_chunk_latency"}
    found = {f"{metric}_{share}": at(said, name, share) for metric, name in names.items() for share in ("p50", "p99")}
    return found | {
        "seconds": at(said, "benchmark_duration", "avg"),
        "requests_s": at(said, "request_throughput", "avg"),
    }


# ---- guidellm: its inter token latency is a mean of a request ---------------------------------------------------------
def guidellm_argv(s):
    profile = f"kind=poisson,rate={s.load.rate}" if s.load.rate else f"kind=concurrent,streams={s.load.streams}"
    return [
        "run",
        "--backend",
        f"kind=openai_http,target={s.base},model={MODEL},request_format=/v1/chat/completions",
        "--data",
        f"kind=synthetic_text,prompt_tokens={s.load.prompt},output_tokens={s.load.tokens}",
        "--tokenizer",
        f"kind=huggingface_auto,model={s.local}/tok",
        "--constraint",
        f"kind=max_requests,count={s.load.requests}",
        "--profile",
        profile,
        "--output",
        f"kind=json,path={s.file('r.json')}",
        "--disable-console",
    ]


def guidellm_read(s, _out):
    bench = loaded(s.file("r.json"))["benchmarks"][0]
    names = {"ttft": "time_to_first_token_ms", "tpot": "inter_token_latency_ms"}
    found = {
        f"{metric}_{share}": at(bench, "metrics", name, "successful", "percentiles", share)
        for metric, name in names.items()
        for share in ("p50", "p99")
    }
    return found | {
        "seconds": bench.get("duration"),
        "requests_s": at(bench, "metrics", "requests_per_second", "successful", "mean"),
    }


# ---- genai-bench ------------------------------------------------------------------------------------------------------
def genai_argv(s):
    return [
        "benchmark",
        "--api-backend",
        "openai",
        "--api-base",
        s.base,
        "--api-key",
        "x",
        "--api-model-name",
        MODEL,
        "--model-tokenizer",
        f"{s.local}/tok",
        "--task",
        "text-to-text",
        "--max-time-per-run",
        1,
        "--max-requests-per-run",
        s.load.requests,
        "--num-concurrency",
        s.load.streams,
        "--traffic-scenario",
        f"D({s.load.prompt},{s.load.tokens})",
        "--experiment-base-dir",
        s.folder,
        "--experiment-folder-name",
        "g",
    ]


def genai_read(s, _out):
    said = loaded(only(s.file("g", "*.json"), but="metadata"))["aggregated_metrics"]
    found = {
        f"{metric}_{share}": ms_of_s(at(said, "stats", metric, share))
        for metric in ("ttft", "tpot")
        for share in ("p50", "p99")
    }
    return found | {"seconds": said["run_duration"], "requests_s": said["requests_per_second"]}


# ---- llmnop -----------------------------------------------------------------------------------------------------------
def llmnop_argv(s):
    return [
        "--url",
        s.base + "/v1",
        "-m",
        MODEL,
        "--api-key",
        "x",
        "--tokenizer",
        "local/tok",
        "--input-tokens",
        s.load.prompt,
        "--output-cap",
        s.load.tokens,
        "-n",
        s.load.requests,
        "-c",
        s.load.streams,
        "--format",
        "none",
        "--results-dir",
        s.folder,
    ]


def llmnop_read(s, _out):
    said = loaded(only(s.file("*", "summary.json")))
    names = {"ttft": "ttft_ms", "tpot": "mean_inter_event_latency_ms"}
    found = {
        f"{metric}_{share}": at(said, "metrics", name, share)
        for metric, name in names.items()
        for share in ("p50", "p99")
    }
    return found | {
        "seconds": said["measurement_duration_ms"] / 1e3,
        "requests_s": said.get("completed_requests_per_second"),
    }


# ---- inference-benchmarker: by time, not by number of requests ----------------------------------------------------------
def inference_benchmarker_argv(s):
    def tokens(n):
        return f"num_tokens={n},min_tokens={n},max_tokens={n},variance=0"

    return [
        "--tokenizer-name",
        "local/tok",
        "--model-name",
        MODEL,
        "--url",
        s.base,
        "--no-console",
        "--warmup",
        "3s",
        "--duration",
        f"{max(s.load.seconds, 6):.0f}s",
        "--prompt-options",
        tokens(s.load.prompt),
        "--decode-options",
        tokens(s.load.tokens),
        "--max-vus",
        s.load.streams,
        "--dataset",
        "local/prompts",
        "--dataset-file",
        "prompts.json",
        "--run-id",
        "r",
        *(["--benchmark-kind", "rate", "--rates", s.load.rate] if s.load.rate else ["--benchmark-kind", "throughput"]),
    ]


def inference_benchmarker_read(s, _out):
    runs = loaded(only(s.file("**", "*.json")))["results"]
    said = next(run for run in runs if run["id"] != "warmup")
    names = {"ttft": "time_to_first_token_ms", "tpot": "inter_token_latency_ms"}
    found = {f"{metric}_{share}": at(said, name, share) for metric, name in names.items() for share in ("p50", "p99")}
    return found | {"seconds": said.get("duration_ms", 0) / 1e3, "requests_s": said.get("successful_request_rate")}


# ---- plain HTTP -------------------------------------------------------------------------------------------------------
def oha_argv(s):
    return [
        "-n",
        s.load.requests,
        "-c",
        s.load.streams,
        "--no-tui",
        "--output-format",
        "json",
        "-m",
        "POST",
        "-T",
        "application/json",
        "-d",
        BODY,
        s.base + "/v1/chat/completions",
    ]


def oha_read(_s, out):
    said = json.loads(out)["summary"]
    return {"seconds": said["total"], "requests_s": said["requestsPerSec"]}


def wrk_argv(s):
    script = s.file("post.lua")
    with open(script, "w") as file:
        file.write(f'wrk.method = "POST"\nwrk.headers["content-type"] = "application/json"\nwrk.body = [[{BODY}]]\n')
    return [
        "-t",
        1,
        "-c",
        s.load.streams,
        "-d",
        f"{max(1, round(s.load.seconds))}s",
        "-s",
        script,
        s.base + "/v1/chat/completions",
    ]


def wrk_read(_s, out):
    found = {}
    for line in out.splitlines():
        words = line.split()
        if line.startswith("Requests/sec:"):
            found["requests_s"] = float(words[1])
        if "requests in" in line:
            number = words[3].rstrip(",")
            unit = number.lstrip("0123456789.")
            found["seconds"] = float(number[: len(number) - len(unit)]) * {"ms": 1e-3, "s": 1, "m": 60}[unit]
    if "requests_s" not in found:
        raise ValueError("no line `Requests/sec`")
    return found


STREAM, PLAIN = frozenset({"stream"}), frozenset({"plain"})
BOTH = frozenset({"stream", "rate"})
PEERS = [
    Tool("vllm-rs", "VLLM_RS", ("vllm-bench",), vllm_argv, vllm_read, BOTH, 10_000, offline),
    Tool("vllm", "VLLM_BENCH", ("vllm", "bench", "serve"), vllm_argv, vllm_read, BOTH, 2000, offline),
    Tool("sglang-rs", "SGLANG_RS", ("sglang-bench",), sglang_rust_argv, sglang_read, BOTH, 10_000, offline),
    Tool("sglang", "SGLANG_BENCH", (), sglang_argv, sglang_read, BOTH, 2000, offline),
    Tool("llmnop", "LLMNOP", ("llmnop",), llmnop_argv, llmnop_read, STREAM, 10_000, offline),
    Tool(
        "inference-benchmarker",
        "INFERENCE_BENCHMARKER",
        ("inference-benchmarker",),
        inference_benchmarker_argv,
        inference_benchmarker_read,
        BOTH,
        10_000,
        offline,
    ),
    Tool("servebench", "SERVEBENCH", ("servebench",), servebench_argv, servebench_read, BOTH, 2000, offline),
    Tool("aiperf", "AIPERF", ("aiperf",), aiperf_argv, aiperf_read, BOTH, 2000, offline),
    Tool("guidellm", "GUIDELLM", ("guidellm",), guidellm_argv, guidellm_read, BOTH, 2000, offline),
    Tool("genai-bench", "GENAI_BENCH", ("genai-bench",), genai_argv, genai_read, STREAM, 2000, offline),
    Tool("wrk", "WRK", ("wrk",), wrk_argv, wrk_read, PLAIN),
    Tool("oha", "OHA", ("oha",), oha_argv, oha_read, PLAIN),
]
