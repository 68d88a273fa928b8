"""Each peer's report in small gives the same numbers: TTFT 200.5 and 200.99 ms, TPOT 20.5 and 20.99, ITL 21.5 and 21.99."""

import contextlib
import os
import sys
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(HERE))

import peers
import tools
from tools import Load, Started

SAMPLES = os.path.join(HERE, "samples")
POOLED_GAPS = {"vllm", "vllm-rs", "sglang", "sglang-rs", "servebench", "aiperf"}
PLAIN = {"oha", "wrk"}


def started(name, load=Load(2, 6, 64)):
    return Started(load, "http://127.0.0.1:1", os.path.join(SAMPLES, name), "/local")


def printed(name):
    with contextlib.suppress(FileNotFoundError), open(os.path.join(SAMPLES, name, "stdout")) as out:
        return out.read()
    return ""


class Readers(unittest.TestCase):
    def test_every_peer_has_a_sample_and_its_numbers_are_found(self):
        for tool in peers.PEERS:
            with self.subTest(tool.name):
                report = tool.read(started(tool.name), printed(tool.name))
                self.assertAlmostEqual(report["seconds"], 4.5)
                if "requests_s" in report:
                    self.assertAlmostEqual(report["requests_s"], 4 / 3, 2)
                if tool.name in PLAIN:
                    continue
                for metric, base in {"ttft": 200, "tpot": 20}.items():
                    self.assertAlmostEqual(report[f"{metric}_p50"], base + 0.5)
                    self.assertAlmostEqual(report[f"{metric}_p99"], base + 0.99)
                self.assertEqual(report.get("itl_p50") is not None, tool.name in POOLED_GAPS)
                if tool.name in POOLED_GAPS:
                    self.assertAlmostEqual(report["itl_p50"], 21.5)
                    self.assertAlmostEqual(report["itl_p99"], 21.99)

    def test_a_missing_report_is_an_error_and_not_a_number(self):
        for tool in peers.PEERS:
            with self.subTest(tool.name), self.assertRaises((OSError, ValueError, KeyError, IndexError)):
                tool.read(Started(Load(), "http://127.0.0.1:1", "/nonexistent", "/local"), "")

    def test_commands_have_words_only_and_say_rate_or_streams(self):
        rate, streams = Load(4, 6, 8, rate=200.0), Load(4, 6, 8)
        for tool in tools.OWN + peers.PEERS:
            for load in (streams, *([rate] if "rate" in tool.takes else [])):
                with self.subTest(tool.name, rate=load.rate):
                    words = [str(word) for word in tool.argv(Started(load, "http://127.0.0.1:7", "/tmp", "/local"))]
                    self.assertTrue(any("127.0.0.1:7" in word or word == "7" for word in words), words)
                    self.assertEqual(any("200.0" in word for word in words), bool(load.rate), words)

    def test_records_of_tokload_give_the_plan_and_what_began_after_a_second(self):
        records = [
            {"plan_ms": 0.0, "start_ms": 1.0, "first_ms": 51.0, "kernel_first_ms": 50.5},
            {"plan_ms": 900.0, "start_ms": 1000.9, "first_ms": 1100.9, "kernel_first_ms": None},
            {"plan_ms": 1000.0, "start_ms": 1001.0, "first_ms": 1031.0, "kernel_first_ms": 1030.0},
            {"plan_ms": 1100.0, "start_ms": 1101.0, "first_ms": None},
        ]
        found = tools.tokload_records(records)
        self.assertEqual(found["planned_s"], [0.0, 0.9, 1.0, 1.1])
        self.assertEqual((found["ttft_late_p99"], found["kernel_ttft_late_p99"]), (30.0, 29.0))

    def test_engines_are_those_that_the_help_names(self):
        base = next(tool for tool in tools.OWN if tool.name == "tokload")
        plain = tools.variants(base, "--driver <driver>  kernel interface")
        self.assertEqual(
            [tool.name for tool in plain],
            [f"tokload, {way}, {stamps} stamps" for way in ("io_uring", "epoll") for stamps in ("kernel", "user")],
        )
        self.assertEqual(plain[1].argv(started("vllm"))[-4:], ["--driver", "io_uring", "--timestamps", "user"])
        self.assertEqual(tools.variants(base, "nothing"), [])
        self.assertEqual(
            tools.runtimes("--runtime <which>  engine: auto, monoio or\n  bare (default: auto)\n --seed"),
            ["monoio", "bare"],
        )


if __name__ == "__main__":
    unittest.main()
