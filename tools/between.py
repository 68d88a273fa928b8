#!/usr/bin/env python3
"""What lies between a server and its client: our TTFT minus the server's own, against a delay that is known.

    tools/between.py [--delays 0,2,5,20] [--requests 200]

Starts the mock server of target/release/tokload and, in front of it, a relay of this file that passes requests on after
a set time and answers at once. tokload measures through the relay and reads the server's own TTFT from its /metrics,
which it asks directly. The difference has to be the delay within 1 ms; with no delay it is what the relay and the loopback
cost themselves, which is printed and not taken off.
"""

import argparse
import json
import os
import select
import socket
import subprocess
import sys
import tempfile
import threading
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
TOLERANCE_MS = 1.0


class Relay:
    """Passes bytes on: towards the server `delay_s` after they came, back at once."""

    def __init__(self, server, delay_s):
        self.server, self.delay_s = server, delay_s
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.pass_on, args=(client,), daemon=True).start()

    def pass_on(self, client):
        with client, socket.create_connection(self.server) as server:
            for end in (client, server):
                end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            while True:
                ready, _, _ = select.select([client, server], [], [])
                for end in ready:
                    came = time.perf_counter()
                    data = end.recv(1 << 16)
                    if not data:
                        return
                    if end is client:
                        wait_until(came + self.delay_s)
                        server.sendall(data)
                    else:
                        client.sendall(data)


def wait_until(due):
    """Sleeps, and spins for the last part: a sleeper wakes up to 0.1 ms late."""
    left = due - time.perf_counter()
    if left > 0.0005:
        time.sleep(left - 0.0005)
    while time.perf_counter() < due:
        pass


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return probe.getsockname()[1]


def start_mock(tokload):
    port = free_port()
    words = ["mock-server", "--host", "127.0.0.1", "--port", str(port), "--ttft", "20", "--itl", "2", "--workers", "1"]
    mock = subprocess.Popen([tokload, *words], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    for _ in range(100):
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return mock, port
        except OSError:
            time.sleep(0.05)
    mock.terminate()
    sys.exit("the mock server does not listen")


def measure(tokload, port, requests, relay):
    with tempfile.TemporaryDirectory() as folder:
        out = os.path.join(folder, "run.json")
        words = ["run", "--base-url", f"http://127.0.0.1:{relay.port}", "--no-server-metrics", "--server-metrics",
                 f"http://127.0.0.1:{port}/metrics", "--no-gpu-telemetry", "--max-concurrency", "1", "--num-prompts",
                 str(requests), "--random-output-len", "4", "--output-file", out, "--quiet", "--seed", "1"]
        done = subprocess.run([tokload, *words], capture_output=True, text=True, timeout=300)
        if done.returncode != 0:
            sys.exit(f"tokload ended with {done.returncode}: {done.stderr.strip()}")
        with open(out) as file:
            return json.load(file)["levels"][0]["telemetry"]["network"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--delays", default="0,2,5,20", help="ms, a comma list")
    parser.add_argument("--requests", type=int, default=200)
    parser.add_argument("--tokload", default=os.path.join(ROOT, "target/release/tokload"))
    asked = parser.parse_args()
    mock, port = start_mock(asked.tokload)
    passed = True
    try:
        print("delay ms   server's TTFT   ours   between   off by")
        for delay_ms in map(float, asked.delays.split(",")):
            relay = Relay(("127.0.0.1", port), delay_ms / 1e3)
            seen = measure(asked.tokload, port, asked.requests, relay)
            relay.listener.close()
            between = seen["difference_ms"]
            off = None if between is None else between - delay_ms
            passed &= off is not None and abs(off) <= TOLERANCE_MS
            shown = "?" if off is None else f"{between:7.3f}   {off:+6.3f}"
            print(f"{delay_ms:8.1f}   {seen['server_ttft_ms']:13.3f}  {seen['client_ttft_ms']:5.2f}   {shown}")
    finally:
        mock.terminate()
        mock.wait(timeout=10)
    print("all within 1 ms" if passed else f"NOT within {TOLERANCE_MS} ms")
    sys.exit(0 if passed else 1)


if __name__ == "__main__":
    main()
