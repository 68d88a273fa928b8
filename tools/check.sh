#!/bin/sh
# How often `tokload check` is wrong at its defaults: false regressions among 400 pairs of equal simulated builds (at most
# 5), and how many of 100 builds with a TTFT longer by 10 % are found if the requests that an inconclusive check asks for
# are sent (at least 90); fails otherwise. Takes some minutes.
cd "$(dirname "$0")/.." && exec cargo bench --bench check "$@"
