#!/usr/bin/env python3
"""How right the TLS handshake time is: tokload against its own mock server, which holds its handshake answer back.

    tools/handshake.py [--tokload target/release/tokload] [--requests 40] [--tolerance-ms 1]

For plain HTTP, TLS 1.2, TLS 1.3 and sessions that are taken up again, and for answers held back by 0, 5, 20 and 50 ms, each
request goes over a connection of its own. Printed are, in ms, the median and the least of the handshake times; for 0 ms
they are what the handshake itself costs on this machine, and a hold of D ms must add D ms to the least, within the
tolerance: what other programs on the machine add to some requests is true, but not what is looked at here. TTFT must hold
the handshake as well. The server's own counts of full and resumed
handshakes must be the client's. Standard library only; 1 where something is off.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
DELAYS_MS = [0, 5, 20, 50]
# Name, options of the server, options of the client.
KINDS = [
    ("plain", None, []),
    ("TLS 1.2", ["--tls-version", "1.2"], ["--tls-session-resumption", "off"]),
    ("TLS 1.3", ["--tls-version", "1.3"], ["--tls-session-resumption", "off"]),
    ("resumed 1.2", ["--tls-version", "1.2"], []),
    ("resumed 1.3", ["--tls-version", "1.3"], []),
]
os.environ["TOKLOAD_STATE_DIR"] = ""


class Server:
    """The mock server, which ends when its standard input does."""

    def __init__(self, tokload, options):
        words = [tokload, "mock-server", "--port", "0", "--ttft", "20", "--itl", "0", "--until-stdin-closes", *options]
        self.process = subprocess.Popen(
            words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        line = self.process.stderr.readline()
        found = re.search(r"(https?://\S+?),", line)
        if not found:
            sys.exit(f"the mock server does not start: {line}{self.process.stderr.read()}")
        self.url = found.group(1)

    def stop(self):
        """Ends it; what it has served."""
        out, _ = self.process.communicate(timeout=20)
        return json.loads(out)


def measured(tokload, url, options, requests, place):
    """The result of a level of one user."""
    out = os.path.join(place, "run.json")
    words = [tokload, "run", "--base-url", url, "--insecure", "--connection-reuse-strategy", "never"]
    words += ["--max-concurrency", "1", "--num-prompts", str(requests), "--num-warmups", "2", "--random-input-len", "8"]
    words += ["--random-output-len", "2", "--seed", "1", "--quiet", "--force", "--output-file", out, *options]
    subprocess.run(words, check=True, timeout=120, stdout=subprocess.DEVNULL)
    with open(out, encoding="utf-8") as file:
        return json.load(file)["levels"][0]


def of(level, metric):
    """Median and least, ms."""
    found = level["distributions"].get(metric)
    return (found["quantiles"]["p50"] / 1e6, found["min"] / 1e6) if found else (None, None)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tokload", default=os.path.join(ROOT, "target/release/tokload"))
    parser.add_argument("--requests", type=int, default=40)
    parser.add_argument("--tolerance-ms", type=float, default=1.0)
    args = parser.parse_args()
    problems = []
    print(f"{'':12} {'held':>6} {'TLS p50':>9} {'least':>9} {'off':>7} {'TTFT p50':>9} {'least':>9}   full/resumed")
    with tempfile.TemporaryDirectory() as place:
        for name, server_options, client_options in KINDS:
            bare, plain_ttft = None, None
            for delay in DELAYS_MS if server_options else [0]:
                options = [] if server_options is None else ["--tls", "--tls-handshake-delay", f"{delay}ms", *server_options]
                server = Server(args.tokload, options)
                level = measured(args.tokload, server.url, client_options, args.requests, place)
                truth = server.stop()
                (usual, took), (usual_ttft, ttft) = of(level, "tls_handshake"), of(level, "ttft")
                if took is None:
                    print(f"{name:12} {'':6} {'-':>9} {'-':>9} {'':7} {usual_ttft:9.3f} {ttft:9.3f}")
                    if server_options is not None:
                        problems.append(f"{name}: no handshake was measured")
                    continue
                bare = took if bare is None else bare
                plain_ttft = ttft if plain_ttft is None else plain_ttft
                off = took - bare - delay
                connections = level["self_check"]["connections"]
                counts = connections["tls_full"], connections["tls_resumed"]
                print(
                    f"{name:12} {delay:6} {usual:9.3f} {took:9.3f} {off:7.3f} {usual_ttft:9.3f} {ttft:9.3f}   "
                    f"{counts[0]}/{counts[1]}"
                )
                if abs(off) > args.tolerance_ms:
                    problems.append(f"{name}, {delay} ms: off by {off:.3f} ms")
                if abs(ttft - plain_ttft - delay) > 3 * args.tolerance_ms:
                    problems.append(f"{name}, {delay} ms: TTFT grew by {ttft - plain_ttft:.3f} ms")
                # The warm-up and the questions before the run are the server's alone.
                if sum(counts) != args.requests or truth["tls_full"] + truth["tls_resumed"] < args.requests:
                    problems.append(f"{name}, {delay} ms: {counts} handshakes of {args.requests} requests")
                if name.startswith("resumed") != (counts[1] == args.requests) or truth["tls_resumed"] < counts[1]:
                    problems.append(f"{name}, {delay} ms: {counts[1]} resumed, {truth['tls_resumed']} by the server")
    for problem in problems:
        print(f"FAILED: {problem}")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
