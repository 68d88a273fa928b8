"""How programs are run: a core each, their CPU time, memory and end, and what else the machine did meanwhile.

The calling thread takes the core and the priority before it starts a program and gives them back afterwards, so that
no `taskset` or `nice` stands between the start and the program's first instruction. Nothing polls during a run unless
its memory is asked for.
"""

import contextlib
import ctypes
import os
import platform
import resource
import select
import signal
import subprocess
import threading
import time
from dataclasses import dataclass, field

NICENESS = -10
REAL_TIME_PRIORITY = 20
PR_SET_CHILD_SUBREAPER = 36
MEMORY_EVERY_S = 0.05


@dataclass
class Ended:
    """A program that has ended. Times in s, memory in KiB (0 where it was not asked for)."""

    status: int
    timed_out: bool
    wall_s: float
    user_s: float
    sys_s: float
    started_ns: int  # CLOCK_MONOTONIC, just before it was started
    busy_s: float  # CPU time of everything on the machine meanwhile
    out: str
    err: str
    peak_rss_kib: int = 0
    peak_pss_kib: int = 0

    @property
    def cpu_s(self):
        return self.user_s + self.sys_s


@dataclass
class Cores:
    """Which core each side has, and whether it goes before other work: `niced` where that is allowed, or `real_time`
    (SCHED_FIFO), before everything else. The server must not spin then: the kernel throttles a loop that never sleeps.
    """

    client: int
    server: int
    real_time: bool = False
    niced: bool = field(init=False, default=False)

    def __post_init__(self):
        with contextlib.suppress(OSError):
            self._before_others()
            self._as_others()
            self.niced = not self.real_time

    @property
    def timer(self):
        return "fd" if self.real_time else "busy"

    @property
    def priority(self):
        return (
            "real-time priority"
            if self.real_time
            else f"niceness {NICENESS}" if self.niced else "no priority, which takes privileges"
        )

    def _before_others(self):
        if self.real_time:
            os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(REAL_TIME_PRIORITY))
        else:
            os.setpriority(os.PRIO_PROCESS, 0, NICENESS)

    def _as_others(self):
        if self.real_time:
            os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
        else:
            os.setpriority(os.PRIO_PROCESS, 0, 0)

    def lift(self, pid):
        """Where the kernel groups processes by session for fairness (sched_autogroup), niceness counts within one only: the
        group of a program that was started in a session of its own is made nice as well."""
        if self.niced:
            with contextlib.suppress(OSError), open(f"/proc/{pid}/autogroup", "w") as group:
                group.write(str(NICENESS))

    @contextlib.contextmanager
    def taken(self, core):
        """Whatever is started inside runs on `core`."""
        before = os.sched_getaffinity(0)
        os.sched_setaffinity(0, {core})
        if self.niced or self.real_time:
            self._before_others()
        try:
            yield
        finally:
            if self.niced or self.real_time:
                self._as_others()
            os.sched_setaffinity(0, before)


def adopt_orphans():
    """Makes this process the parent of whatever a tool leaves behind, so that its CPU time is counted."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def raise_descriptor_limit():
    """The hard limit of descriptors, which is the soft one from now on."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return hard


def ports():
    """How many local ports connections to one address can have."""
    with open("/proc/sys/net/ipv4/ip_local_port_range") as limits:
        low, high = map(int, limits.read().split())
    return high - low + 1


def busy_s():
    """CPU time that everything on this machine has used since it started."""
    with open("/proc/stat") as stat:
        user, nice, system, _idle, _iowait, irq, softirq, *_ = map(int, stat.readline().split()[1:])
    return (user + nice + system + irq + softirq) / os.sysconf("SC_CLK_TCK")


def run(argv, cores, folder, limit_s, env=None, memory=False):
    """Runs a program on the client's core, in `folder`, to its end or for `limit_s`."""
    # Files, not pipes: reading a pipe would wake this script on the measured cores.
    out_path, err_path = os.path.join(folder, "stdout"), os.path.join(folder, "stderr")
    with open(out_path, "w") as out, open(err_path, "w") as err:
        others = set(descendants(os.getpid()))
        used, busy = resource.getrusage(resource.RUSAGE_CHILDREN), busy_s()
        with cores.taken(cores.client):
            started_ns = time.monotonic_ns()
            process = subprocess.Popen(
                list(map(str, argv)),
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                cwd=folder,
                env={**os.environ, "NO_COLOR": "1", **(env or {})},
                start_new_session=True,
            )
        cores.lift(process.pid)
        watch = MemoryWatch(process.pid) if memory else None
        timed_out = True
        try:
            timed_out = not _ends_within(process.pid, limit_s)
        finally:  # an interrupt of this script ends what it started, too
            if timed_out:
                _kill_group(process.pid)
            process.wait()
            wall_s = (time.monotonic_ns() - started_ns) / 1e9
            _end_orphans(others)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        busy = busy_s() - busy
    return Ended(
        process.returncode,
        timed_out,
        wall_s,
        after.ru_utime - used.ru_utime,
        after.ru_stime - used.ru_stime,
        started_ns,
        busy,
        _text(out_path),
        _text(err_path),
        *(watch.stop() if watch else ()),
    )


def _ends_within(pid, limit_s):
    descriptor = os.pidfd_open(pid)
    try:
        ready = select.poll()
        ready.register(descriptor, select.POLLIN)
        return bool(ready.poll(limit_s * 1000))
    finally:
        os.close(descriptor)


def _kill_group(group):
    with contextlib.suppress(ProcessLookupError):
        os.killpg(group, signal.SIGKILL)


def _end_orphans(others):
    """Ends and reaps what a tool left behind, which this process has adopted: all below it but for `others`."""
    for pid in set(descendants(os.getpid())) - others:
        with contextlib.suppress(OSError):
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)


def _text(path):
    with open(path, errors="replace") as file:
        return file.read()


def descendants(pid):
    """A process and all below it."""
    found, left = [], [pid]
    while left:
        pid = left.pop()
        found.append(pid)
        with contextlib.suppress(OSError):
            for task in os.listdir(f"/proc/{pid}/task"):
                with open(f"/proc/{pid}/task/{task}/children") as children:
                    left += map(int, children.read().split())
    return found


class MemoryWatch:
    """Looks at the memory of a process and all below it while they run."""

    def __init__(self, pid):
        self.pid, self.rss, self.pss, self.ended = pid, 0, 0, threading.Event()
        self.thread = threading.Thread(target=self._watch, daemon=True)
        self.thread.start()

    def _watch(self):
        while not self.ended.wait(MEMORY_EVERY_S):
            processes = descendants(self.pid)
            self.rss = max([self.rss, *map(peak_kib, processes)])
            self.pss = max(self.pss, sum(_kib(pid, "smaps_rollup", "Pss:") for pid in processes))

    def stop(self):
        """(peak resident memory of the largest process, peak proportional memory of all)."""
        self.ended.set()
        self.thread.join()
        return self.rss, self.pss


def peak_kib(pid):
    """Peak resident memory of a running process since it was executed; what wait4 says of a child is at least that of
    the process that started it."""
    return _kib(pid, "status", "VmHWM:")


def _kib(pid, file, name):
    with contextlib.suppress(OSError), open(f"/proc/{pid}/{file}") as lines:
        for line in lines:
            if line.startswith(name):
                return int(line.split()[1])
    return 0


def description():
    """The machine in one line: processor, cores, memory, kernel."""
    model = next(
        (line.split(":", 1)[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")),
        platform.machine(),
    )
    total = next(int(line.split()[1]) for line in open("/proc/meminfo") if line.startswith("MemTotal:"))
    return f"{model}, {os.cpu_count()} cores, {total / 2**20:.0f} GiB, Linux {platform.release().split('-')[0]}"
