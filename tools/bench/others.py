"""Measures that are not of paced streams: firehose, requests without streaming, arrivals at a rate, start and memory."""

from dataclasses import replace

from stats import gaps, ks_critical, ks_exponential, ks_two, median, rank
from tables import NONE, failed, named, number, ratio, spread, table
from paced import own
from tools import Load
from turns import Case

# ---- firehose -------------------------------------------------------------------------------------------------------
FIREHOSE_STREAMS = 16
FIREHOSE_HEAD = [
    "tool",
    "events",
    "events/s by its own clock",
    "ns CPU/event",
    "events per CPU s",
    "x drain (CPU)",
    "x best peer (CPU)",
    "others",
]


def firehose(bench):
    tools = bench.those_that("stream")

    def load(tool, turn):
        tokens = tool.firehose_tokens // (4 if bench.quick else 1)
        return Load(FIREHOSE_STREAMS, 2 * FIREHOSE_STREAMS, tokens, seconds=2, seed=turn + 1)

    runs = bench.turns(tools, Case("firehose", f"{FIREHOSE_STREAMS} streams", load, ("--firehose",), 120, timer="fd"))
    costs = {tool.name: [cost(bench, tool, run, run.events) for run in runs[tool.name]] for tool in tools}
    peers = [middle for name, values in costs.items() if not own(name) and (middle := median(values))]
    rows = []
    for tool in tools:
        of, values = runs[tool.name], costs[tool.name]
        if not of or of[-1].error:
            rows.append(failed([tool.name], of, len(FIREHOSE_HEAD)))
            continue
        middle = median(values)
        rows.append(
            [
                named(tool.name, of),
                number(median(run.events for run in of), 0),
                spread([run.events / run.report["seconds"] if run.report.get("seconds") else None for run in of], 0),
                spread([value and value * 1e3 for value in values], 0),
                number(middle and 1e6 / middle, 0),
                ratio(values, costs.get("drain", [])),
                number(middle / min(peers)) if peers and middle else NONE,
                number(median(run.others for run in of)),
            ]
        )
    return [
        "### Firehose: as many events as the client takes",
        "",
        f"{FIREHOSE_STREAMS} streams, writes of up to 64 KiB. CPU is of the whole process less a run of one request. Socket buffers hold some of what",
        "the server has sent, so the clock is the tool's own and CPU per event is the number to trust.",
        "",
        *table(FIREHOSE_HEAD, rows),
    ]


def cost(bench, tool, run, count):
    """us of CPU for each of `count`; None where the run failed, or is lost in what starting costs."""
    if run.error or not count:
        return None
    net = run.ended.cpu_s - sum(bench.trivial(tool))
    return net * 1e6 / count if net > 0 else None


# ---- requests without streaming -------------------------------------------------------------------------------------
PLAIN_STREAMS = (1, 64, 256)
PLAIN_REQUESTS = {1: 40_000, 64: 200_000, 256: 200_000}
PLAIN_HEAD = ["connections", "tool", "requests/s", "CPU us/request", "x drain", "x wrk", "server CPU share", "others"]


def requests(bench):
    tools, rows = bench.those_that("plain"), []
    for streams in PLAIN_STREAMS[1:2] if bench.quick else PLAIN_STREAMS:
        count = PLAIN_REQUESTS[streams] // (2 if bench.quick else 1)

        def load(_tool, turn):
            return Load(streams, count, 1, prompt=1, streaming=False, seconds=2, seed=turn + 1)

        runs = bench.turns(tools, Case("requests", f"{streams} connections", load, ("--plain",), 120, timer="fd"))
        costs = {
            tool.name: [cost(bench, tool, run, run.truth.counted["completed"]) for run in runs[tool.name]]
            for tool in tools
        }
        for tool in tools:
            of = runs[tool.name]
            if not of or of[-1].error:
                rows.append(failed([streams, tool.name], of, len(PLAIN_HEAD)))
                continue
            values = costs[tool.name]
            rows.append(
                [
                    streams,
                    named(tool.name, of),
                    spread([run.report.get("requests_s") for run in of], 0),
                    spread(values),
                    ratio(values, costs.get("drain", [])),
                    ratio(values, costs.get("wrk", [])),
                    number(median(run.truth.cpu_s / run.ended.wall_s for run in of)),
                    number(median(run.others for run in of)),
                ]
            )
    return [
        "### Requests without streaming",
        "",
        "One short JSON answer, the same for all, kept-alive connections. tokload and drain send a fixed number of requests, wrk for a time.",
        "",
        *table(PLAIN_HEAD, rows),
    ]


# ---- open loop ------------------------------------------------------------------------------------------------------
RATE, RATE_REQUESTS, RATE_TOKENS, RATE_STREAMS = 200.0, 2000, 8, 256
PLAN_DISTANCE = 0.01
OPEN_HEAD = [
    "tool",
    "seeds",
    "asked/s",
    "server saw/s",
    "KS of planned and seen gaps",
    f"seeds within {PLAN_DISTANCE}",
    "KS to an exponential law (5 % critical)",
    "late at the server p50 us",
    "p99 us",
    "late by its own account p99 us",
    "CPU s",
    "others",
]


def open_loop(bench):
    tools = bench.those_that("rate")
    count = RATE_REQUESTS // (4 if bench.quick else 1)
    load = Load(RATE_STREAMS, count, RATE_TOKENS, rate=RATE, seconds=count / RATE, stamps=True)
    server = ("--ttft", 50_000, "--itl", 20_000)
    runs = bench.turns(
        tools,
        Case(
            "open",
            f"{RATE:.0f}/s",
            lambda _, turn: replace(load, seed=turn + 1),
            server,
            60 + 4 * count / RATE,
            dump=True,
        ),
        bench.seeds,
    )
    rows = []
    for tool in tools:
        of = runs[tool.name]
        if not of or of[-1].error:
            rows.append(failed([tool.name], of, len(OPEN_HEAD)))
            continue
        rows.append(open_row("drain, epoll + timerfd" if tool.name == "drain" else tool.name, of))
    return [
        f"### Open loop: {RATE:.0f} requests/s, Poisson",
        "",
        f"{count} requests of {RATE_TOKENS} tokens, a seed in each turn. Gaps as the server saw them beside those of the tool's own plan, where it tells, and beside an",
        "exponential law of the mean that was seen. `late at the server` is when a request had been read there, from its plan, less the least of the run.",
        "",
        *table(OPEN_HEAD, rows),
    ]


def open_row(title, runs):
    fits = [fidelity(run) for run in runs]
    distances = [fit["plan"] for fit in fits]
    known = [distance for distance in distances if distance is not None]
    return [
        named(title, runs),
        len(runs),
        f"{RATE:.0f}",
        spread([fit["rate"] for fit in fits], 1),
        spread(distances, 4),
        f"{sum(distance <= PLAN_DISTANCE for distance in known)} of {len(known)}" if known else NONE,
        f"{spread([fit['law'] for fit in fits], 3)} ({number(ks_critical(fits[0]['n']), 3)})",
        *(spread([fit[key] for fit in fits], 0) for key in ("late_p50", "late_p99")),
        spread([delay and delay * 1e3 for delay in (run.report.get("delay_p99") for run in runs)], 0),
        number(median(run.ended.cpu_s for run in runs)),
        number(median(run.others for run in runs)),
    ]


def fidelity(run):
    """How near arrivals at the server came to what was planned and asked."""
    seen, planned = run.truth.arrivals_s(run.load.tokens), sorted(run.report.get("planned_s") or [])
    seen_gaps = gaps(seen)
    mean = sum(seen_gaps) / len(seen_gaps) if seen_gaps else 0.0
    found = {
        "n": len(seen_gaps),
        "rate": 1 / mean if mean else None,
        "law": ks_exponential(seen_gaps, mean),
        "plan": None,
        "late_p50": None,
        "late_p99": None,
    }
    if planned and len(planned) == len(seen):
        late = [(one - other) * 1e6 for one, other in zip(seen, planned)]
        least = min(late)
        found |= {"plan": ks_two(gaps(planned), seen_gaps)} | {
            f"late_p{share}": rank(late, share / 100) - least for share in (50, 99)
        }
    return found


# ---- start, memory, size --------------------------------------------------------------------------------------------
FOOT_STREAMS, FOOT_TOKENS, FOOT_WAVES = 256, 64, 3
FOOT_HEAD = [
    "tool",
    "start to first request ms",
    "run of one request ms",
    "its CPU ms",
    f"peak memory at {FOOT_STREAMS} streams MB, largest process",
    "all processes (PSS)",
    "x drain",
    "binary MB",
    "others",
]


def footprint(bench):
    tools = bench.those_that("stream")
    single = Case("start", "one request", lambda *_: Load(), ("--ttft", 1000, "--itl", 1000), 60)
    starts = bench.turns(tools, single, max(bench.repeats, 3))
    waves = 1 if bench.quick else FOOT_WAVES
    load = Load(FOOT_STREAMS, FOOT_STREAMS * waves, FOOT_TOKENS, seconds=waves * 1.5)
    many = Case(
        "memory", f"{FOOT_STREAMS} streams", lambda *_: load, ("--ttft", 200_000, "--itl", 20_000), 90, memory=True
    )
    # Looking at memory costs CPU time, which is not measured here: once is enough where peaks do not vary.
    peaks = bench.turns(tools, many, min(bench.repeats, 3))
    rows, rss = [], {
        tool.name: [run.ended.peak_rss_kib * 1024 / 1e6 for run in peaks[tool.name] if not run.error] for tool in tools
    }
    for tool in tools:
        first, many_runs = starts[tool.name], peaks[tool.name]
        wrong = [run for run in first + many_runs if run.error]
        if wrong or not first:
            rows.append(failed([tool.name], wrong, len(FOOT_HEAD)))
            continue
        size = tool.size()
        rows.append(
            [
                named(tool.name, first + many_runs),
                spread([(run.truth.counted["first_request_ns"] - run.ended.started_ns) / 1e6 for run in first], 1),
                number(median(run.ended.wall_s * 1e3 for run in first), 1),
                number(median(run.ended.cpu_s * 1e3 for run in first), 1),
                spread(rss[tool.name], 1),
                number(median(run.ended.peak_pss_kib * 1024 / 1e6 for run in many_runs), 1),
                ratio(rss[tool.name], rss.get("drain", [])),
                number(size and size / 1e6, 1),
                number(median(run.others for run in first + many_runs)),
            ]
        )
    return [
        "### Start, memory, size",
        "",
        "From just before the process is started to the first request that the server had read, whatever it was for.",
        "",
        *table(FOOT_HEAD, rows),
    ]
