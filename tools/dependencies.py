#!/usr/bin/env python3
"""Hold the dependencies to deny.toml: licences on its list, no source but the registry, no wildcard versions.

    tools/dependencies.py

A part of what `cargo deny check bans licenses sources` does, for where installing that takes longer than the check is
worth. Standard library only, `cargo metadata` does the rest.
"""

import json
import os
import re
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
TARGETS = ("x86_64-unknown-linux-gnu", "aarch64-unknown-linux-gnu")
REGISTRY = "registry+"


def allowed():
    with open(os.path.join(ROOT, "deny.toml")) as file:
        return set(re.findall(r'"([^"]+)"', re.search(r"^allow = \[(.*?)\]", file.read(), re.M | re.S).group(1)))


def is_allowed(expression, allow):
    """Whether an SPDX expression can be kept with the licences of `allow`. `MIT/Apache-2.0` is an old spelling of OR."""
    words = re.findall(r"[()]|[^\s()]+", expression.replace("/", " OR "))

    def either():
        value = both()
        while words[:1] == ["OR"]:
            words.pop(0)
            value = both() or value
        return value

    def both():
        value = one()
        while words[:1] == ["AND"]:
            words.pop(0)
            value = one() and value
        return value

    def one():
        word = words.pop(0)
        if word == "(":
            value = either()
            words.pop(0)
            return value
        if words[:1] == ["WITH"]:
            del words[:2]
            # An exception only adds to what is permitted, but the list does not name it: the plain licence decides.
        return word in allow

    return either() and not words


def packages():
    """Every package of the lock file that is built for one of the targets."""
    found = {}
    for target in TARGETS:
        words = ["cargo", "metadata", "--format-version", "1", "--locked", "--all-features", "--filter-platform",
                 target]
        output = subprocess.run(words, cwd=ROOT, check=True, stdout=subprocess.PIPE).stdout
        metadata = json.loads(output)
        used = {node["id"] for node in metadata["resolve"]["nodes"]}
        found |= {package["id"]: package for package in metadata["packages"] if package["id"] in used}
    return found.values()


def main():
    allow, wrong = allowed(), []
    everything = packages()
    for package in everything:
        name = f"{package['name']} {package['version']}"
        licence = package["license"]
        if not licence or not is_allowed(licence, allow):
            wrong.append(f"{name}: licence {licence or 'not stated'}")
        if package["source"] and not package["source"].startswith(REGISTRY):
            wrong.append(f"{name}: comes from {package['source']}")
        if not package["source"]:
            wrong += [f"{name}: any version of {needed['name']} is accepted"
                      for needed in package["dependencies"] if needed["req"] == "*"]
    if wrong:
        sys.exit("\n".join(["dependencies that deny.toml does not allow:", *sorted(wrong)]))
    print(f"dependencies: {len(everything)} packages, all as deny.toml allows")


if __name__ == "__main__":
    main()
