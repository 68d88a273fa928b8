"""The server, the client and the harness together: counts exactly, times as bounds that hold on any machine."""

import contextlib
import io
import json
import os
import socket
import sys
import tempfile
import time
import unittest
import urllib.request

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

import machine
import others
import paced
import server
import tools
from stats import gaps
from tools import Load, Tool
from turns import Bench, Case

ALLOWED = sorted(os.sched_getaffinity(0))
CORES = machine.Cores(ALLOWED[0], ALLOWED[-1])
PORTS = server.Ports()
DRAIN = next(tool for tool in tools.OWN if tool.name == "drain").found({"drain": server.built("drain")})
PACE = ("--ttft", 20_000, "--itl", 5_000)


def post(base, body, path="/v1/chat/completions"):
    request = urllib.request.Request(base + path, json.dumps(body).encode(), {"content-type": "application/json"})
    with urllib.request.urlopen(request, timeout=10) as answer:
        return answer.read().decode()


def events(text):
    return [json.loads(line[6:]) for line in text.splitlines() if line.startswith("data: {")]


class ReferenceServer(unittest.TestCase):
    @contextlib.contextmanager
    def serving(self, *options):
        with tempfile.TemporaryDirectory() as folder:
            self.server = server.Server(options, CORES, PORTS.take(), os.path.join(folder, "dump.csv"))
            self.truth = None
            try:
                yield self.server.base
            finally:
                self.truth = self.server.stop()

    def test_a_stream_has_the_events_asked_for_at_the_times_set(self):
        with self.serving(*PACE) as base:
            text = post(
                base,
                {
                    "messages": [{"role": "user", "content": '"stream": false, {"max_tokens":9}'}],
                    "stream": True,
                    "max_tokens": 4,
                    "stream_options": {"include_usage": True},
                },
            )
        said = events(text)
        self.assertEqual(
            [event["choices"][0]["delta"].get("content") for event in said[:-1]],
            ["", " alpha", " bravo", " delta", " gamma"],
        )
        self.assertEqual([event["choices"][0]["finish_reason"] for event in said[:-1]], [None] * 4 + ["length"])
        self.assertEqual(said[-1]["usage"]["completion_tokens"], 4)
        self.assertTrue(text.rstrip().endswith("data: [DONE]"))
        (row,) = self.truth.rows
        self.assertEqual((row["tokens"], row["events"]), (4, 4))
        self.assertGreaterEqual(row["t_first_ns"] - row["t_req_ns"], 20_000_000)
        self.assertGreaterEqual(row["t_last_ns"] - row["t_req_ns"], 20_000_000 + 3 * 5_000_000)
        counted = self.truth.counted
        self.assertEqual(
            (counted["requests"], counted["completed"], counted["content_events"], counted["tokens"]), (1, 1, 4, 4)
        )
        self.assertEqual((counted["ttft"]["n"], counted["itl"]["n"], counted["tpot"]["n"]), (1, 3, 1))

    def test_truth_is_told_and_forgotten(self):
        with self.serving("--ttft", 0, "--itl", 0) as base:
            post(base, {"stream": True, "max_tokens": 3})
            post(base, {"prompt": "x", "stream": True, "max_tokens": 2}, "/v1/completions")
            told = [
                json.loads(urllib.request.urlopen(base + path, timeout=5).read())
                for path in ("/truth", "/truth?reset", "/truth")
            ]
        self.assertEqual([each["content_events"] for each in told], [5, 5, 0])
        self.assertEqual([each["ttft"] and each["ttft"]["n"] for each in told], [2, 2, None])

    def test_requests_without_a_stream_and_a_fixed_body(self):
        with self.serving("--ttft", 10_000, "--itl", 1_000) as base:
            whole = json.loads(post(base, {"stream": False, "max_tokens": 3}))
        self.assertEqual(whole["choices"][0]["message"]["content"], " alpha bravo delta")
        self.assertGreaterEqual(self.truth.rows[0]["t_last_ns"] - self.truth.rows[0]["t_req_ns"], 12_000_000)
        with self.serving("--plain", "--ttft", 10_000_000) as base:
            bodies = {post(base, {"stream": True, "max_tokens": tokens}) for tokens in (1, 5)}
        self.assertEqual(len(bodies), 1)
        self.assertEqual(self.truth.counted["completed"], 2)

    def test_firehose_sends_each_event_once_to_a_slow_reader(self):
        with self.serving("--firehose") as base:
            text = post(base, {"stream": True, "max_tokens": 50_000})
        self.assertEqual(text.count('"content":" '), 50_000)
        self.assertEqual(text.count('"finish_reason":"length"'), 1)
        self.assertEqual(self.truth.counted["content_events"], 50_000)

    def test_a_role_may_come_early_late_or_never(self):
        for role, first in {"early": "", "first": "", "none": " alpha"}.items():
            with self.subTest(role), self.serving("--role", role, *PACE) as base:
                said = events(post(base, {"stream": True, "max_tokens": 2}))
                self.assertEqual(said[0]["choices"][0]["delta"]["content"], first)

    def test_lists_are_taken_in_turn(self):
        with self.serving("--ttft", "1000,9000", "--itl", "1000x2,8000") as base:
            for _ in range(2):
                post(base, {"stream": True, "max_tokens": 4})
        first, second = self.truth.rows
        self.assertGreaterEqual(second["t_first_ns"] - second["t_req_ns"], 9_000_000)
        for row, ttft_ms in ((first, 1), (second, 9)):
            self.assertGreaterEqual(row["t_last_ns"] - row["t_req_ns"], (ttft_ms + 10) * 1_000_000)

    def test_what_is_no_request_is_refused(self):
        for sent, status in (
            (b"POST /v1/chat/completions HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n", b"411"),
            (b"GET /nowhere HTTP/1.1\r\n\r\n", b"404"),
            (b"POST /v1/completions HTTP/1.1\r\ncontent-length: 99999999999\r\n\r\n", b"411"),
        ):
            with self.subTest(sent), self.serving() as base, socket.create_connection(
                ("127.0.0.1", int(base.rpartition(":")[2])), timeout=5
            ) as to:
                to.sendall(sent)
                self.assertEqual(to.recv(4096).split()[1], status)

    def test_requests_in_pieces_and_sent_ahead_are_answered_in_order(self):
        with self.serving("--ttft", 0, "--itl", 0) as base, socket.create_connection(
            ("127.0.0.1", int(base.rpartition(":")[2])), timeout=5
        ) as to:
            one = b'POST /v1/chat/completions HTTP/1.1\r\nContent-Length: 33\r\n\r\n{"stream": true, "max_tokens": 2}'
            for byte in range(0, len(one), 7):
                to.sendall(one[byte : byte + 7])
                time.sleep(0.001)
            to.sendall(one + one)
            got = b""
            while got.count(b"0\r\n\r\n") < 3:
                got += to.recv(65536)
        self.assertEqual(self.truth.counted["completed"], 3)
        self.assertEqual(got.count(b" alpha"), 3)

    def test_a_client_that_leaves_is_counted(self):
        with self.serving("--ttft", 50_000) as base:
            with socket.create_connection(("127.0.0.1", int(base.rpartition(":")[2])), timeout=5) as to:
                to.sendall(b'POST /v1/chat/completions HTTP/1.1\r\nContent-Length: 14\r\n\r\n{"stream":true')
                time.sleep(0.02)
            post(base, {"stream": True, "max_tokens": 1})
        self.assertEqual(
            (self.truth.counted["aborted"], self.truth.counted["completed"], self.truth.counted["in_flight"]), (1, 1, 0)
        )


class Turns(unittest.TestCase):
    def bench(self, made, repeats=2, quick=True):
        bench = Bench(made, CORES, repeats, quick)
        bench.seeds = 1
        self.addCleanup(bench.close)
        with contextlib.redirect_stderr(io.StringIO()):
            yield bench

    def turns(self, made, case, repeats=2):
        for bench in self.bench(made, repeats):
            return bench.turns(made, case)
        return None

    def case(self, load, *options, limit_s=20, dump=True, memory=False):
        return Case("test", "load", lambda *_: load, (*PACE, *options), limit_s, dump, memory)

    def test_every_tool_has_a_run_in_each_turn_and_counts_what_the_server_sent(self):
        runs = self.turns([DRAIN], self.case(Load(4, 8, 5, stamps=True), memory=True))["drain"]
        self.assertEqual([run.turn for run in runs], [0, 1])
        for run in runs:
            self.assertEqual(run.error, "")
            self.assertEqual(
                (run.events, run.truth.counted["completed"], run.truth.counted["max_in_flight"]), (40, 8, 4)
            )
            self.assertGreaterEqual(run.report["ttft_p50"], 20)
            self.assertEqual(run.report["itl_n"], 32)
            self.assertGreaterEqual(run.ended.wall_s, 0.08)
            self.assertGreater(run.truth.counted["first_request_ns"], run.ended.started_ns)

    def test_the_other_modes_of_the_drain_only_client(self):
        plain = self.turns([DRAIN], self.case(Load(3, 50, 1, streaming=False), "--plain"), 1)["drain"][0]
        self.assertEqual((plain.error, plain.truth.counted["completed"]), ("", 50))
        rate = self.turns([DRAIN], self.case(Load(32, 40, 2, rate=400.0, stamps=True)), 1)["drain"][0]
        self.assertEqual(rate.error, "")
        planned, seen = rate.report["planned_s"], rate.truth.arrivals_s(2)
        self.assertEqual((len(planned), len(seen)), (40, 40))
        self.assertTrue(all(arrival >= plan for plan, arrival in zip(planned, seen)))
        fit = others.fidelity(rate)
        self.assertEqual(fit["n"], 39)
        self.assertAlmostEqual(fit["rate"], 39 / sum(gaps(seen)), 6)
        self.assertGreaterEqual(fit["late_p99"], fit["late_p50"])

    def test_first_events_have_places_of_their_own_if_spread(self):
        # Over so long a gap that what else runs on the machine moves nobody to another's place.
        run = self.turns([DRAIN], self.case(Load(16, 16, 2), "--spread", "--itl", "200000"), 1)["drain"][0]
        places = sorted(row["t_first_ns"] / 1e6 % 200 for row in run.truth.rows)
        self.assertEqual(len(places), 16)
        self.assertGreater(max(places) - min(places), 100)

    def test_a_tool_that_fails_hangs_or_says_nothing_is_a_row_that_says_so(self):
        def tool(name, script, read=lambda *_: {}):
            return Tool(name, "", (), lambda _: ["-c", script], read, command=("/bin/sh",))

        def unread(_started, _out):
            raise ValueError("no numbers")

        made = [
            tool("fails", "echo first >&2; echo it broke >&2; exit 3"),
            tool("hangs", "sleep 60 & sleep 60"),
            tool("mute", "true", unread),
        ]
        began = time.monotonic()
        runs = self.turns(made, self.case(Load(), limit_s=3))
        self.assertLess(time.monotonic() - began, 20)
        self.assertEqual(
            {name: [run.error for run in of] for name, of in runs.items()},
            {
                "fails": ["ended with 3: it broke"],
                "hangs": ["did not end within 3 s"],
                "mute": ["its report was not understood: ValueError: no numbers"],
            },
        )
        self.assertEqual(paced.capacity_end(runs["fails"]), ["", "ended with 3: it broke"])

    def test_what_a_tool_leaves_behind_is_ended(self):
        machine.adopt_orphans()
        with tempfile.TemporaryDirectory() as folder:
            ended = machine.run(["/bin/sh", "-c", "(setsid sleep 60 & echo $!); exit 0"], CORES, folder, 10)
        left = int(ended.out)
        self.assertFalse(os.path.exists(f"/proc/{left}"))

    def test_cores_are_given_back(self):
        before = os.sched_getaffinity(0)
        with CORES.taken(CORES.client):
            self.assertEqual(os.sched_getaffinity(0), {CORES.client})
        self.assertEqual(os.sched_getaffinity(0), before)
        self.assertEqual(os.getpriority(os.PRIO_PROCESS, 0), 0)


class Tables(unittest.TestCase):
    def test_every_measure_makes_a_table_of_whole_rows(self):
        sizes = {
            "CPU_QUICK": [paced.Pace(4, 5, 6, 1), paced.Pace(10**7, 5, 6, 1)],
            "ACCURACY_QUICK": [paced.Pace(4, 5, 6, 1)],
            "CAPACITY_QUICK": [paced.Pace(4, 5, 6, 1)],
        }
        small = {
            "FIREHOSE_STREAMS": 2,
            "PLAIN_REQUESTS": {1: 20, 64: 200, 256: 200},
            "RATE_REQUESTS": 160,
            "FOOT_STREAMS": 4,
            "FOOT_TOKENS": 4,
        }
        before = [(of, name, getattr(of, name)) for of, names in ((paced, sizes), (others, small)) for name in names]
        self.addCleanup(lambda: [setattr(*each) for each in before])
        for of, names in ((paced, sizes), (others, small)):
            for name, value in names.items():
                setattr(of, name, value)
        broken = Tool(
            "broken",
            "",
            (),
            lambda _: ["-c", "exit 7"],
            lambda *_: {},
            frozenset({"stream", "rate", "plain"}),
            command=("/bin/sh",),
        )
        bench = Bench([DRAIN, broken], CORES, 1, True)
        bench.seeds = 1
        self.addCleanup(bench.close)
        for measure in (
            paced.cpu,
            paced.accuracy,
            paced.capacity,
            others.firehose,
            others.requests,
            others.open_loop,
            others.footprint,
        ):
            with self.subTest(measure.__name__), contextlib.redirect_stderr(io.StringIO()):
                rows = [line for line in measure(bench) if line.startswith("|")]
                self.assertEqual(len({row.replace("\\|", "").count("|") for row in rows}), 1, rows)
                self.assertTrue(any("broken" in row and "ended with 7" in row for row in rows), rows)
                self.assertTrue(any("| drain" in row for row in rows), rows)
                if measure is paced.cpu:
                    self.assertTrue(any("skipped: needs 10000200 descriptors" in row for row in rows), rows)


if __name__ == "__main__":
    unittest.main()
