"""Runs of tools in turns against a fresh server each, and which of them were disturbed.

In each turn every tool has one run, so that whatever changes on the machine changes for all. CPU time that anything else
used during a run is recorded as `others`, in cores. A run with more than OTHERS_MAX is made once more; the quieter of
the two is kept, and marked if it is not quiet either; a quick bench only marks, as does one in which nothing helped. A tool
that fails or does not end has no further runs in that case.
"""

import json
import os
import shutil
import sys
import tempfile
from dataclasses import asdict, dataclass, field
from typing import Callable

import machine
import server
from stats import median
from tools import Load, Started, Tool

OTHERS_MAX = 0.30
# So often in a row it is tried; then the machine is taken as it is.
IN_VAIN_MAX = 5
# /proc/stat counts in ticks of 10 ms, and reading it before and after may miss one each.
TICKS_S = 0.02
TRIVIAL_RUNS = 3
TRIVIAL_LIMIT_S = 60


@dataclass(frozen=True)
class Case:
    """One load on a server set for it. `load` may depend on the tool."""

    measure: str
    label: str
    load: Callable
    server: tuple
    limit_s: float
    dump: bool = False
    memory: bool = False
    timer: str = ""  # the server's, where it need not wait for moments


@dataclass
class Run:
    """What came of one run. `error` says in words what went wrong; then only times and CPU hold."""

    tool: str
    measure: str
    label: str
    turn: int
    load: Load
    ended: machine.Ended
    truth: server.Truth
    others: float
    report: dict = field(default_factory=dict)
    error: str = ""

    @property
    def busy(self):
        return self.others > OTHERS_MAX

    @property
    def events(self):
        return self.truth.counted["content_events"]

    def as_json(self):
        ended = {key: value for key, value in asdict(self.ended).items() if key not in ("out", "err")}
        report = {key: value for key, value in self.report.items() if key != "planned_s"}
        return {
            "tool": self.tool,
            "measure": self.measure,
            "label": self.label,
            "turn": self.turn,
            "load": asdict(self.load),
            "others": round(self.others, 3),
            "error": self.error,
            **ended,
            "report": report,
            "truth": self.truth.counted,
            "latencies": self.truth.latencies(self.load.tokens),
        }


class Bench:
    """The tools, the machine, and how often each is run."""

    def __init__(self, tools, cores, repeats, quick, log=None):
        self.tools, self.cores, self.repeats, self.quick, self.log = tools, cores, repeats, quick, log
        self.ports, self.trivial_s, self.others, self.disturbed, self.in_vain = server.Ports(), {}, [], 0, 0
        self.folder = tempfile.mkdtemp(prefix="tokload-bench-")
        self.local = os.path.join(self.folder, "local")

    def close(self):
        shutil.rmtree(self.folder, ignore_errors=True)

    def those_that(self, what):
        return [tool for tool in self.tools if what in tool.takes]

    def turns(self, tools, case, repeats=None):
        """{name of the tool: its runs}, in turns; a tool that failed has its failed run last."""
        repeats = repeats or self.repeats
        runs = {tool.name: [] for tool in tools}
        for turn in range(repeats):
            for tool in tools:
                if any(run.error for run in runs[tool.name]):
                    continue
                print(
                    f"{case.measure}, {case.label}, turn {turn + 1} of {repeats}: {tool.name}",
                    file=sys.stderr,
                    flush=True,
                )
                runs[tool.name].append(self.quiet(tool, case, turn))
        return runs

    def quiet(self, tool, case, turn):
        run = self.once(tool, case, turn)
        if run.busy and not self.quick and self.in_vain < IN_VAIN_MAX:
            again = self.once(tool, case, turn)
            self.in_vain = self.in_vain + 1 if again.busy else 0
            if (bool(again.error), again.others) < (bool(run.error), run.others):
                run = again
        self.others.append(run.others)
        self.disturbed += run.busy
        if self.log:
            self.log.write(json.dumps(run.as_json()) + "\n")
            self.log.flush()
        return run

    def once(self, tool, case, turn):
        folder = tempfile.mkdtemp(dir=self.folder)
        out = os.path.join(folder, "out")
        os.mkdir(out)
        try:
            return self._run(tool, case, turn, out, os.path.join(folder, "dump.csv") if case.dump else None)
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def _run(self, tool, case, turn, out, dump):
        load = case.load(tool, turn)
        reference = server.Server(
            (*case.server, "--timer", case.timer or self.cores.timer), self.cores, self.ports.take(), dump
        )
        started = Started(load, reference.base, out, self.local)
        try:
            ended = machine.run(
                [*tool.command, *tool.argv(started)], self.cores, out, case.limit_s, tool.env(started), case.memory
            )
        finally:
            truth = reference.stop()
        others = min(max(0.0, (ended.busy_s - ended.cpu_s - truth.cpu_s - TICKS_S) / ended.wall_s), os.cpu_count())
        run = Run(tool.name, case.measure, case.label, turn, load, ended, truth, others)
        if ended.timed_out:
            run.error = f"did not end within {case.limit_s:g} s"
        elif ended.status:
            run.error = f"ended with {ended.status}: {last_line(ended.err) or last_line(ended.out)}"
        else:
            try:
                run.report = tool.read(started, ended.out)
            except (OSError, ValueError, KeyError, IndexError, TypeError, StopIteration) as error:
                run.error = f"its report was not understood: {type(error).__name__}: {error}"
        return run

    def trivial(self, tool):
        """(user, sys) CPU time in s of a run of one request of one token: what starting costs."""
        if tool.name not in self.trivial_s:
            case = Case("start", "one request", lambda *_: Load(), ("--ttft", 1000, "--itl", 1000), TRIVIAL_LIMIT_S)
            runs = [run for run in (self.quiet(tool, case, turn) for turn in range(TRIVIAL_RUNS)) if not run.error]
            self.trivial_s[tool.name] = (
                median(run.ended.user_s for run in runs) or 0.0,
                median(run.ended.sys_s for run in runs) or 0.0,
            )
        return self.trivial_s[tool.name]


def last_line(text):
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1][:160] if lines else ""
