#!/bin/sh
# How often a search for capacity holds the truth: 100 seeds on a simulated server of 16 slots, asked for users and for
# requests per second, against a dense grid of long simulations; with the mean cost in requests beside that of a search
# that takes 64 requests a load. Fails where fewer than 90 % of the decided answers hold it.
cd "$(dirname "$0")/.." && exec cargo bench --bench capacity "$@"
