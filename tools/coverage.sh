#!/bin/sh
# How often nominal 95 % intervals of attainment hold the truth: 400 simulated levels of 1000 requests at 60, 80, 90 and
# 95 % load, the estimators side by side; fails where what results show covers less than the measurement spec's figures.
cd "$(dirname "$0")/.." && exec cargo bench --bench coverage "$@"
