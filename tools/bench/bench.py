#!/usr/bin/env python3
"""Hold tokload against a client that only drains sockets, and against whichever other load generators are installed.

    tools/bench/bench.py [--only cpu,accuracy,...] [--tools tokload,drain,...] [--quick] > tables.md

All take turns on the same server, which keeps what it did and when; one core has the server, one the client. The tables
are Markdown, with medians and their range. README.md beside this file has the method, its limits, and how peers are named.
"""

import argparse
import datetime
import json
import os
import subprocess
import sys

import local
import machine
import others
import paced
import server
import tools
from peers import PEERS
from turns import OTHERS_MAX, Bench

ROOT = os.path.dirname(os.path.dirname(server.HERE))
MEASURES = {
    "cpu": paced.cpu,
    "accuracy": paced.accuracy,
    "capacity": paced.capacity,
    "firehose": others.firehose,
    "requests": others.requests,
    "open": others.open_loop,
    "footprint": others.footprint,
}
ALL = tools.OWN + PEERS


def options():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument(
        "--only", default=",".join(MEASURES), metavar="MEASURE,...", help=f"of {', '.join(MEASURES)}; default all"
    )
    parser.add_argument("--tools", default="", metavar="TOOL,...", help="default: all that are found")
    parser.add_argument(
        "--tool",
        action="append",
        default=[],
        metavar="NAME=COMMAND",
        help="the command of a tool that is not on PATH; repeatable",
    )
    parser.add_argument(
        "--tokload",
        default=os.path.join(ROOT, "target/release/tokload"),
        help="default: the release build of this folder",
    )
    parser.add_argument("--repeats", type=int, help="turns of each; default 5, with --quick 1")
    parser.add_argument("--seeds", type=int, help="turns of the open loop; default as --repeats")
    parser.add_argument("--quick", action="store_true", help="fewer and shorter loads, about two minutes")
    parser.add_argument(
        "--real-time",
        action="store_true",
        help="SCHED_FIFO for both sides, for a machine that others use as well; needs root",
    )
    parser.add_argument("--json", metavar="FILE", help="also every run, as a line of JSON")
    parser.add_argument("--client-core", type=int, default=0)
    parser.add_argument("--server-core", type=int, default=1)
    return parser


def main():
    parser = options()
    asked = parser.parse_args()
    measures = chosen(parser, "--only", asked.only, list(MEASURES))
    names = (
        chosen(parser, "--tools", asked.tools, [tool.name for tool in ALL])
        if asked.tools
        else [tool.name for tool in ALL]
    )
    repeats = asked.repeats or (1 if asked.quick else 5)
    if repeats < 1 or (asked.seeds or 1) < 1:
        parser.error("--repeats and --seeds are at least 1")
    cores = machine.Cores(
        *(
            (
                core
                if core in os.sched_getaffinity(0)
                else parser.error(f"there is no core {core} here: name others with --client-core and --server-core")
            )
            for core in (asked.client_core, asked.server_core)
        ),
        asked.real_time,
    )
    found, missing = present(names, commands(parser, asked))
    machine.adopt_orphans()
    machine.raise_descriptor_limit()
    log = open(asked.json, "w") if asked.json else None
    bench = Bench(found, cores, repeats, asked.quick, log)
    bench.seeds, bench.help_of = asked.seeds or repeats, help_of
    local.make(bench.local)
    try:
        head = heading(found, missing, cores, repeats, asked.quick)
        if log:
            log.write(json.dumps({"about": head}) + "\n")
        print("\n".join(head), flush=True)
        for name in measures:
            print("\n" + "\n".join(MEASURES[name](bench)), flush=True)
        print("\n" + "\n".join(closing(bench)))
    finally:
        bench.close()
        if log:
            log.close()


def chosen(parser, option, given, known):
    names = [name.strip() for name in given.split(",") if name.strip()]
    for name in names:
        if name not in known:
            parser.error(f"{option}: there is no `{name}`; there are {', '.join(known)}")
    return names


def commands(parser, asked):
    named = {"drain": server.built("drain")}
    if not os.environ.get("TOKLOAD") or asked.tokload != parser.get_default("tokload"):
        named["tokload"] = asked.tokload
    for given in asked.tool:
        name, equals, command = given.partition("=")
        chosen(parser, "--tool", name, [tool.name for tool in ALL])
        if not equals or not command:
            parser.error(f"--tool {given}: give NAME=COMMAND")
        named[name] = command
    return named


def present(names, named):
    """(the tools that are installed, the names of those that are not)."""
    if "tokload" in names and named.get("tokload") and not os.path.exists(named["tokload"].split()[0]):
        sys.exit(
            f"{named['tokload']} is not there: build it with `cargo build --release`, or name another with --tokload"
        )
    pairs = [(tool, tool.found(named)) for tool in ALL if tool.name in names]
    return [found for _, found in pairs if found], [tool for tool, found in pairs if not found]


def help_of(tool):
    return subprocess.run([*tool.command, "run", "--help"], capture_output=True, text=True, timeout=20).stdout


def version_of(tool):
    """What tokload says of itself; the others answer in too many ways."""
    if tool.name != "tokload":
        return tool.name
    said = subprocess.run([*tool.command, "--version"], capture_output=True, text=True, timeout=20).stdout.strip()
    return said or tool.name


def heading(found, missing, cores, repeats, quick):
    now = datetime.datetime.now(datetime.timezone.utc)
    lines = [
        f"{now:%Y-%m-%d %H:%M} UTC, {machine.description()}.",
        f"Client on core {cores.client}, server on core {cores.server}{', the same' if cores.client == cores.server else ''}, "
        f"{cores.priority}; loopback; {repeats} turn{'s' if repeats > 1 else ''} of each"
        f"{', quick' if quick else ''}.",
        f"Measured: {', '.join(version_of(tool) for tool in found)}.",
    ]
    if missing:
        lines.append(
            "Not installed: "
            + ", ".join(f"{tool.name} ({tool.variable})" for tool in missing)
            + "; `--tool NAME=COMMAND` or the variable names one."
        )
    return lines


def closing(bench):
    if not bench.others:
        return ["Nothing was run."]
    lines = [
        f"Other work on this machine used {min(bench.others):.2f} to {max(bench.others):.2f} cores during the runs."
    ]
    if bench.disturbed:
        lines.append(
            f"{bench.disturbed} of {len(bench.others)} runs were disturbed (more than {OTHERS_MAX:.2f}), which \\* marks."
        )
    return lines


if __name__ == "__main__":
    main()
