"""Measures on streams whose tokens come at a pace: CPU per event, errors of the latencies, and up to which load they hold."""

from dataclasses import dataclass, replace

import machine
from stats import median
from tables import NONE, failed, named, number, ratio, spread, table
from tools import Load, variants
from turns import Case

TTFT_MS = 200
CAPACITY_ERROR = 0.10
SERVER_LATE_MS = 1.0
DESCRIPTORS_BESIDE = 200


@dataclass(frozen=True)
class Pace:
    """Streams with a token every `itl_ms`, so often over."""

    streams: int
    itl_ms: int
    tokens: int
    waves: int

    @property
    def label(self):
        return f"{self.streams} x {1000 // self.itl_ms}/s"

    @property
    def seconds(self):
        return self.waves * (TTFT_MS + self.tokens * self.itl_ms) / 1e3

    def lacks(self):
        """The limit that stands in the way; empty if none does."""
        need = self.streams + DESCRIPTORS_BESIDE
        if (limit := machine.raise_descriptor_limit()) < need:
            return f"needs {need} descriptors, the limit (ulimit -Hn) is {limit}"
        if (ports := machine.ports()) < self.streams:
            return f"needs {self.streams} local ports, net.ipv4.ip_local_port_range has {ports}"
        return ""

    def case(self, measure, stamps, *server):
        load = Load(self.streams, self.streams * self.waves, self.tokens, seconds=self.seconds, stamps=stamps)
        options = ("--ttft", TTFT_MS * 1000, "--itl", self.itl_ms * 1000, *server)
        return Case(
            measure,
            self.label,
            lambda _, turn: replace(load, seed=turn + 1),
            options,
            40 + 5 * self.seconds,
            dump=stamps,
        )


CPU = [Pace(64, 20, 64, 3), Pace(256, 20, 64, 3), Pace(1024, 20, 64, 3), Pace(2048, 20, 64, 3), Pace(16384, 200, 32, 1)]
CPU_QUICK = [Pace(64, 20, 48, 2), Pace(1024, 20, 48, 2)]
ACCURACY = [Pace(1, 20, 64, 8), *(Pace(streams, 20, 64, 3) for streams in (16, 64, 256, 1024, 2048))]
ACCURACY_QUICK = [Pace(64, 20, 64, 2), Pace(1024, 20, 64, 2)]
CAPACITY = [
    Pace(streams, 20, 64, 2) for streams in (16, 64, 128, 256, 512, 768, 1024, 1280, 1536, 1792, 2048, 2560, 3072, 4096)
]
CAPACITY_QUICK = [Pace(streams, 20, 48, 1) for streams in (256, 1024, 1536, 2048, 3072)]


# ---- CPU per event --------------------------------------------------------------------------------------------------
def cpu(bench):
    tools = bench.those_that("stream")
    tokload = next((tool for tool in tools if tool.name == "tokload"), None)
    if tokload and not bench.quick:
        tools += variants(tokload, bench.help_of(tokload))
    rows = []
    width = len(CPU_HEAD)
    for pace in CPU_QUICK if bench.quick else CPU:
        if lacks := pace.lacks():
            rows.append([pace.label, NONE, f"skipped: {lacks}"] + [""] * (width - 3))
            continue
        # First events have places of their own, so that how many come at once does not hang on how a tool starts.
        runs = bench.turns(tools, pace.case("cpu", False, "--spread"))
        rows += cpu_rows(bench, pace.label, tools, runs)
    return [
        "### Client CPU per streamed event, us",
        "",
        "Of the whole process, less a run of one request; `drain, from its first request` leaves its connecting out. Ratios to the drain-only",
        "client are those of neighbouring runs; those to the best peer are of medians.",
        "",
        *table(CPU_HEAD, rows),
    ]


CPU_HEAD = [
    "load",
    "tool",
    "us/event",
    "user",
    "sys",
    "x drain",
    "x best peer",
    "whole run",
    "events",
    "server late p99 ms",
    "others",
]


def cpu_rows(bench, label, tools, runs):
    per_event = {}
    for tool in tools:
        user, system = bench.trivial(tool)
        per_event[tool.name] = [
            (
                None
                if run.error or not run.events
                else ((run.ended.user_s - user) * 1e6 / run.events, (run.ended.sys_s - system) * 1e6 / run.events)
            )
            for run in runs[tool.name]
        ]
    totals = {name: [user_sys and sum(user_sys) for user_sys in values] for name, values in per_event.items()}
    peers = [middle for name, values in totals.items() if not own(name) and (middle := median(values)) is not None]
    rows = []
    for tool in tools:
        of, values = runs[tool.name], totals[tool.name]
        if not of or of[-1].error:
            rows.append(failed([label, tool.name], of, len(CPU_HEAD)))
            continue
        middle = median(values)
        rows.append(
            [
                label,
                named(tool.name, of),
                spread(values),
                *(number(median(pair[side] for pair in per_event[tool.name])) for side in (0, 1)),
                ratio(values, totals.get("drain", [])),
                number(middle / min(peers)) if peers else NONE,
                number(median(run.ended.cpu_s * 1e6 / run.events for run in of)),
                number(median(run.events for run in of), 0),
                number(median(run.truth.lateness_p99_ms for run in of)),
                number(median(run.others for run in of)),
            ]
        )
        if tool.name == "drain":
            inner = [run.report["cpu_s"] * 1e6 / run.events for run in of]
            rows.append([label, "drain, from its first request", spread(inner)] + [""] * (len(CPU_HEAD) - 3))
    return rows


def own(name):
    """Of the tools that are no peers."""
    return name == "drain" or name.startswith("tokload")


# ---- errors ---------------------------------------------------------------------------------------------------------
QUANTILES = ["ttft_p50", "ttft_p99", "ttft_late_p99", "tpot_p50", "tpot_p99", "itl_p50", "itl_p99"]
ACCURACY_HEAD = [
    "load",
    "tool",
    "TTFT p50",
    "TTFT p99",
    "TTFT p99 after 1 s",
    "TPOT p50",
    "TPOT p99",
    "ITL p50",
    "ITL p99",
    "true ITL p99",
    "server late p99 ms",
    "others",
]


def accuracy(bench):
    tools, rows = bench.those_that("stream"), []
    for pace in ACCURACY_QUICK if bench.quick else ACCURACY:
        if lacks := pace.lacks():
            rows.append([pace.label, NONE, f"skipped: {lacks}"] + [""] * (len(ACCURACY_HEAD) - 3))
            continue
        runs = bench.turns(tools, pace.case("accuracy", True), min(bench.repeats, 3))
        for tool in tools:
            of = runs[tool.name]
            if not of or of[-1].error:
                rows.append(failed([pace.label, tool.name], of, len(ACCURACY_HEAD)))
                continue
            rows += [accuracy_row(pace.label, title, prefix, of) for title, prefix in by_stamps(tool.name, of)]
    return [
        "### Reported latencies, ms, and their error against the truth of the same requests",
        "",
        f"TTFT {TTFT_MS} ms, closed loop, all streams start together: reported (error, from where to where over the turns). ITL are all gaps, TPOT",
        "is the mean gap of a request. `drain` is what a client without any work of its own would say that stamps its reads.",
        "",
        *table(ACCURACY_HEAD, rows),
    ]


def by_stamps(name, runs):
    """(title, prefix of the keys): a row by the clock after the read, and one by the kernel's stamps if there are any."""
    if name == "drain":
        return [("drain, stamping", "")]
    kernel = any(key.startswith("kernel_") for run in runs for key in run.report)
    return [(f"{name}, user stamps", ""), (f"{name}, kernel stamps", "kernel_")] if kernel else [(name, "")]


def accuracy_row(label, title, prefix, runs):
    truths = [run.truth.latencies(run.load.tokens) for run in runs]
    cells = []
    for key in QUANTILES:
        said = [(run.report.get(prefix + key), truth.get(key)) for run, truth in zip(runs, truths)]
        known = [(one, other) for one, other in said if one is not None and other is not None]
        cells.append(
            f"{number(median(one for one, _ in known))} ({errors([one - other for one, other in known])})"
            if known
            else NONE
        )
    return [
        label,
        named(title, runs),
        *cells,
        number(median(truth.get("itl_p99") for truth in truths)),
        number(median(run.truth.lateness_p99_ms for run in runs)),
        number(median(run.others for run in runs)),
    ]


def errors(values):
    low, high = f"{min(values):+.2f}", f"{max(values):+.2f}"
    middle = f"{median(values):+.2f}"
    return middle if low == high else f"{middle}, {low} to {high}"


# ---- capacity -------------------------------------------------------------------------------------------------------
CAPACITY_HEAD = [
    "tool",
    "highest load within 10 %",
    "events/s",
    "ITL p99 error there, ms",
    "at the next load",
    "why no further",
]


def capacity(bench):
    left, best, rows, paces = bench.those_that("stream"), {}, {}, CAPACITY_QUICK if bench.quick else CAPACITY
    for pace in paces:
        if not left:
            break
        if lacks := pace.lacks():
            rows |= {tool.name: ["", f"{pace.label} {lacks}"] for tool in left}
            break
        runs = bench.turns(left, pace.case("capacity", True), 1 if bench.quick else min(bench.repeats, 3))
        for tool in list(left):
            ended = capacity_end(runs[tool.name])
            if not ended:
                best[tool.name] = (pace, runs[tool.name])
            else:
                rows[tool.name] = ended
                left.remove(tool)
    rows |= {tool.name: ["", "no higher load was tried"] for tool in left if tool.name not in rows}
    return [
        "### Highest load with ITL p99 within 10 % of the truth",
        "",
        f"Loads go up, {'one run' if bench.quick else 'the median of the turns'} each; a tool is out at the first that fails. The server itself is the limit where its own",
        f"sends are more than {SERVER_LATE_MS:.0f} ms late at p99. tokload is judged by its user stamps, `drain` by its own.",
        "",
        *table(
            CAPACITY_HEAD,
            [capacity_row(tool.name, best.get(tool.name), rows[tool.name]) for tool in bench.those_that("stream")],
        ),
    ]


def itl_errors(runs):
    """(error in ms, its share of the truth) of each run that tells of gaps."""
    both = [
        (run.report.get("itl_p99"), run.truth.latencies(run.load.tokens).get("itl_p99"))
        for run in runs
        if not run.error
    ]
    return [(said - true, abs(said - true) / true) for said, true in both if said is not None and true]


def capacity_end(runs):
    """[error there, why] if this load is too much or tells nothing; None if it holds."""
    if not runs or runs[-1].error:
        return ["", runs[-1].error if runs else "not run"]
    found = itl_errors(runs)
    if not found:
        return ["", "it reports no gaps of all requests together"]
    middle = f"{median(error for error, _ in found):+.2f} ms"
    late = median(run.truth.lateness_p99_ms for run in runs)
    if median(share for _, share in found) > CAPACITY_ERROR:
        return [middle, "its ITL p99 is off"]
    return [middle, f"the server was late itself, {late:.1f} ms at p99"] if late > SERVER_LATE_MS else None


def capacity_row(name, best, ended):
    if not best:
        return [name, "none", NONE, NONE, *ended]
    pace, runs = best
    return [
        named(name, runs),
        f"{pace.streams} streams",
        number(pace.streams * 1000 / pace.itl_ms, 0),
        f"{median(error for error, _ in itl_errors(runs)):+.2f}",
        *ended,
    ]
