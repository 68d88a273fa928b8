#!/usr/bin/env python3
"""What tokload costs: CPU per streamed event, memory per open stream, and 16 000 streams at once.

    tools/cost.py [cpu] [stamps] [memory] [scale] [--turns 3] [--baseline BINARY]

CPU is compared with that of a drain-only client (epoll and recv, nothing else) against the same server, in turns; a run
of one request is subtracted from tokload's, the client's is counted from its first request on. What kernel stamps add
is the ratio of neighbouring turns with and without them; with a --baseline, a tokload from before a change, its ratio
to the present one without stamps is shown as well. Memory is the growth of
the peak resident set per stream, between a run with few streams and one with many. At scale, one process holds all
streams against the reference server and against `tokload mock-server`; no request may fail.
"""

import sys

import reference
from reference import REQUEST_S, TOKENS, rank

CPU_STREAMS = (256, 1024)
CPU_RATIO = 1.35
STAMP_STREAMS = 1000
STAMP_RATIO, ELSE_RATIO = 1.15, 1.03
MEMORY_STREAMS = (64, 4096)
MEMORY_KIB = 16.0
SCALE_STREAMS = 16_000
# 997 and 7919 are primes: a stream's next request has another place in the gap.
SPREAD_TTFT_US = [reference.TTFT_US + at * 7919 % reference.ITL_US for at in range(997)]
PORT, SCALE_PORT, MOCK_PORT = 8320, 8330, 8340


def closed(streams, requests, tokens=TOKENS):
    return ["--max-concurrency", str(streams), "--num-prompts", str(requests), "--random-input-len", "32",
            "--random-output-len", str(tokens)]


def served(refserver, client):
    """Runs `client(server)` against a fresh server; (what it gave, what the server counted).

    First tokens are spread over a gap by the server. How events of many streams fall together decides how many of them
    a wake-up serves, which is most of what an event costs; left to the clients it would depend on how each opens.
    """
    server = reference.reference_server(refserver, PORT, ttft_us=",".join(map(str, SPREAD_TTFT_US)))
    given = client(server)
    return given, server.stop()


def trivial_cpu_s(asked, refserver):
    runs = [served(refserver, lambda server: reference.tokload(asked.tokload, server, closed(1, 1, 1)))
            for _ in range(3)]
    return min(done.cpu_s for (done, _), _ in runs)


def cpu(asked, refserver, drain):
    rows, passed, others = [], True, []
    trivial = trivial_cpu_s(asked, refserver)
    for streams in CPU_STREAMS:
        requests = streams * asked.waves
        ours, theirs = [], []
        for turn in range(asked.turns):
            print(f"{streams} streams, turn {turn + 1} of {asked.turns}: {2 * asked.waves * REQUEST_S:.0f} s",
                  file=sys.stderr)
            words = ["-c", streams, "--max-tokens", TOKENS, "--requests", requests, "--ramp", 20000]
            (done, said), truth = served(refserver, lambda server: reference.drain(drain, server, words))
            theirs.append((said["cpu_user_s"] + said["cpu_sys_s"]) * 1e6 / truth["content_events"])
            others.append(done.others)
            (done, run), truth = served(
                refserver, lambda server: reference.tokload(asked.tokload, server, closed(streams, requests)))
            ours.append((done.cpu_s - trivial) * 1e6 / truth["content_events"])
            others.append(done.others)
        # Other work on the machine changes both clients' wake-ups, in either direction: neighbours are compared.
        ratios = [a / b for a, b in zip(ours, theirs)]
        ratio = rank(ratios, 0.5)
        passed &= ratio <= CPU_RATIO
        rows.append([streams, f"{rank(ours, 0.5):.2f}", f"{rank(theirs, 0.5):.2f}", f"{ratio:.2f}",
                     f"{min(ratios):.2f} to {max(ratios):.2f}", f"{CPU_RATIO:.2f}",
                     "PASS" if ratio <= CPU_RATIO else "FAIL"])
    print(f"CPU per streamed event, us, less a trivial run's {trivial * 1e3:.0f} ms")
    reference.table(["streams", "tokload", "drain client", "ratio", "of single turns", "bound", ""], rows)
    reference.busy_note(others, "the median of the turns")
    return passed


def stamps(asked, refserver, _drain):
    kinds = {"user": (asked.tokload, ["--timestamps", "user"]), "both": (asked.tokload, ["--timestamps", "both"])}
    if asked.baseline:
        kinds["baseline"] = (asked.baseline, [])
    spent, others = {kind: [] for kind in kinds}, []
    requests = STAMP_STREAMS * asked.waves
    for turn in range(asked.turns):
        print(f"{STAMP_STREAMS} streams, turn {turn + 1} of {asked.turns}: "
              f"{len(kinds) * asked.waves * REQUEST_S:.0f} s", file=sys.stderr)
        # Whoever comes first in one turn comes last in the next.
        for kind in list(kinds)[::1 if turn % 2 else -1]:
            binary, words = kinds[kind]
            (done, run), truth = served(refserver, lambda server: reference.tokload(
                binary, server, [*closed(STAMP_STREAMS, requests), *words]))
            if kind == "both" and run["levels"][0]["self_check"]["timestamps"] != "both":
                sys.exit("no kernel stamps here")
            spent[kind].append(done.cpu_s * 1e6 / truth["content_events"])
            others.append(done.others)
    rows, passed = [], True
    for name, kind, base, bound in [("kernel stamps", "both", "user", STAMP_RATIO),
                                    ("all else since the baseline", "user", "baseline", ELSE_RATIO)]:
        if base not in spent:
            continue
        ratios = [a / b for a, b in zip(spent[kind], spent[base])]
        ratio = rank(ratios, 0.5)
        passed &= ratio <= bound
        rows.append([name, f"{rank(spent[kind], 0.5):.2f}", f"{rank(spent[base], 0.5):.2f}", f"{ratio:.3f}",
                     f"{min(ratios):.3f} to {max(ratios):.3f}", f"{bound:.2f}", "PASS" if ratio <= bound else "FAIL"])
    print(f"\nCPU per streamed event at {STAMP_STREAMS} streams, us, start and end included")
    reference.table(["what is added", "with", "without", "ratio", "of single turns", "bound", ""], rows)
    reference.busy_note(others, "the median of the turns")
    return passed


def memory(asked, refserver, _drain):
    few, many = MEMORY_STREAMS
    peaks = {}
    for streams in MEMORY_STREAMS:
        print(f"{streams} streams: {REQUEST_S:.0f} s", file=sys.stderr)
        (done, _), _ = served(refserver, lambda server: reference.tokload(
            asked.tokload, server, closed(streams, streams)))
        peaks[streams] = done.peak_kib
    each = (peaks[many] - peaks[few]) / (many - few)
    holds = each <= MEMORY_KIB
    print("\nmemory, KiB")
    reference.table(["streams", "peak", "per stream", "bound", ""], [
        [few, peaks[few], "", "", ""],
        [many, peaks[many], f"{each:.2f}", f"{MEMORY_KIB:.0f}", "PASS" if holds else "FAIL"]])
    return holds


def scale(asked, refserver, _drain):
    ttft_ms, itl_ms, tokens = 3000, 1000, 8
    servers = {
        "reference server": lambda: reference.reference_server(
            refserver, SCALE_PORT, ttft_us=ttft_ms * 1000, itl_us=itl_ms * 1000),
        "tokload mock-server": lambda: reference.Server(
            [asked.tokload, "mock-server", "--port", MOCK_PORT, "--ttft", ttft_ms, "--itl", itl_ms], MOCK_PORT,
            "/health"),
    }
    rows, passed = [], True
    for name, start in servers.items():
        print(f"{SCALE_STREAMS} streams against the {name}: about {2 * ttft_ms / 1e3 + (tokens + 1) * itl_ms / 1e3:.0f} s",
              file=sys.stderr)
        server = start()
        # Every stream is open until the last one has begun.
        done, run = reference.tokload(asked.tokload, server, closed(SCALE_STREAMS, SCALE_STREAMS, tokens),
                                      detailed=True)
        server.stop()
        level = run["levels"][0]
        ok, failed = level["counts"]["ok"], level["counts"]["failed"]
        most = most_at_once(done.records)
        holds = ok == SCALE_STREAMS and failed == 0 and most == SCALE_STREAMS
        passed &= holds
        rows.append([name, most, ok, failed, f"{done.peak_kib / 1024:.0f}", f"{done.cpu_s:.1f}",
                     f"{done.wall_s:.1f}", "PASS" if holds else "FAIL"])
    print("\none process, all streams at once")
    reference.table(["server", "at once", "ok", "failed", "peak MiB", "CPU s", "wall s", ""], rows)
    return passed


def most_at_once(records):
    """Most requests in flight at one moment."""
    steps = sorted([(record["start_ms"], 1) for record in records] + [(record["end_ms"], -1) for record in records])
    most = now = 0
    for _, step in steps:
        now += step
        most = max(most, now)
    return most


def main():
    checks = {"cpu": cpu, "stamps": stamps, "memory": memory, "scale": scale}
    options = reference.options(__doc__.split("\n")[0])
    options.add_argument("checks", nargs="*", help=f"of {', '.join(checks)}; default all")
    options.add_argument("--waves", type=int, default=6, help="requests of each stream; default 6")
    options.add_argument("--baseline", help="a tokload from before the change whose cost is asked for")
    asked = options.parse_args()
    unknown = set(asked.checks) - set(checks)
    if unknown:
        options.error(f"unknown: {', '.join(unknown)}; choose from {', '.join(checks)}")
    reference.need(asked.tokload)
    refserver, drain = reference.build()
    reference.raise_descriptor_limit()
    passed = [checks[name](asked, refserver, drain) for name in asked.checks or checks]
    sys.exit(0 if all(passed) else 1)


if __name__ == "__main__":
    main()
