#!/usr/bin/env python3
"""Wait until URL answers 200 while process PID lives: wait_ready.py URL PID [SECONDS]."""

import sys
import time
import urllib.error
import urllib.request


def ended(pid):
    """Whether the process is gone, or gone but for its parent's wait."""
    try:
        with open(f"/proc/{pid}/stat") as stat:
            return stat.read().rpartition(")")[2].split()[0] == "Z"
    except FileNotFoundError:
        return True


def main():
    url, pid = sys.argv[1], int(sys.argv[2])
    end = time.monotonic() + float(sys.argv[3] if len(sys.argv) > 3 else 30)
    while time.monotonic() < end:
        try:
            with urllib.request.urlopen(url, timeout=5):
                return
        except (urllib.error.URLError, ConnectionError, TimeoutError):
            time.sleep(0.1)
        if ended(pid):
            sys.exit("the server ended before it was ready")
    sys.exit("the server is not ready in time")


if __name__ == "__main__":
    main()
