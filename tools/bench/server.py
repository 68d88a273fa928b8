"""The reference server and the drain-only client: built on first use, started, stopped, and what they knew afterwards."""

import csv
import json
import os
import signal
import socket
import subprocess
import sys
import time

from stats import rank

HERE = os.path.dirname(os.path.abspath(__file__))
BUILT = os.path.join(os.path.dirname(os.path.dirname(HERE)), "target", "bench")
SOURCES = {"reference": ["reference.c", "conn.h", "truth.h", "common.h"], "drain": ["drain.c", "common.h"]}
OPENING_NS = 1_000_000_000
# Below the usual range of ports that connections are made from.
PORT_FIRST, PORT_LAST = 18100, 32000


def built(name):
    """The path of one of the two C programs, compiled unless that is newer than its source."""
    binary = os.path.join(BUILT, name)
    sources = [os.path.join(HERE, source) for source in SOURCES[name]]
    if not os.path.exists(binary) or os.path.getmtime(binary) < max(map(os.path.getmtime, sources)):
        os.makedirs(BUILT, exist_ok=True)
        try:
            subprocess.run(["cc", "-O2", "-o", binary, sources[0], "-lm"], check=True)
        except (OSError, subprocess.CalledProcessError) as error:
            sys.exit(f"{name} cannot be compiled with cc: {error}")
    return binary


class Ports:
    """Ports to listen on, each one once: connections of a run that are not quite gone do not concern the next."""

    def __init__(self):
        self.next = PORT_FIRST

    def take(self):
        while self.next < PORT_LAST:
            self.next += 1
            with socket.socket() as probe:
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                try:
                    probe.bind(("127.0.0.1", self.next))
                except OSError:
                    continue
            return self.next
        self.next = PORT_FIRST
        return self.take()


class Server:
    """A reference server of its own for one run, on the server's core."""

    def __init__(self, options, cores, port, dump=None):
        argv = [built("reference"), "--port", port, *options, *(["--dump", dump] if dump else [])]
        self.base, self.port, self.dump = f"http://127.0.0.1:{port}", port, dump
        with cores.taken(cores.server):
            self.process = subprocess.Popen(
                list(map(str, argv)),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                text=True,
                start_new_session=True,
            )
        cores.lift(self.process.pid)
        for _ in range(200):
            # Only a connection: a request would count.
            try:
                socket.create_connection(("127.0.0.1", port), timeout=5).close()
                return
            except OSError:
                if self.process.poll() is not None:
                    break
                time.sleep(0.02)
        self.process.kill()
        sys.exit(f"the reference server does not listen on port {port}")

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        return Truth(json.loads(self.process.communicate(timeout=120)[0]), self.dump)


class Truth:
    """What the server did. `counted` is what it printed; `rows` its finished requests, where they were kept."""

    def __init__(self, counted, dump=None):
        self.counted, self.rows = counted, []
        if dump:
            with open(dump) as file:
                self.rows = [{key: int(value) for key, value in row.items()} for row in csv.DictReader(file)]

    @property
    def cpu_s(self):
        return (self.counted["cpu_user_us"] + self.counted["cpu_sys_us"]) / 1e6

    @property
    def lateness_p99_ms(self):
        late = self.counted["lateness"]
        return late["p99"] / 1e3 if late else None

    def latencies(self, tokens):
        """Quantiles in ms of the requests with `tokens`: what a tool asks for beside, to see if the server is there, is
        not among them. Gaps are pooled over all requests, of which those are a few."""
        rows = [row for row in self.rows if row["tokens"] == tokens]
        if not rows:
            return {}
        began = min(row["t_req_ns"] for row in rows)
        values = {
            "ttft": [row["t_first_ns"] - row["t_req_ns"] for row in rows],
            "ttft_late": [row["t_first_ns"] - row["t_req_ns"] for row in rows if row["t_req_ns"] - began >= OPENING_NS],
            "tpot": [(row["t_last_ns"] - row["t_first_ns"]) / (tokens - 1) for row in rows] if tokens > 1 else [],
        }
        found = {f"{name}_p{share}": ms(rank(of, share / 100)) for name, of in values.items() for share in (50, 99)}
        itl = self.counted["itl"]
        return found | {f"itl_p{share}": itl[f"p{share}"] / 1e3 if itl else None for share in (50, 99)}

    def arrivals_s(self, tokens):
        """When requests with `tokens` had been read, s."""
        return sorted(row["t_req_ns"] / 1e9 for row in self.rows if row["tokens"] == tokens)


def ms(ns):
    return None if ns is None else ns / 1e6
