"""The few statistics that the tables are made of."""

import bisect
import math


def rank(values, share):
    """Nearest rank: the least value that at least `share` of all values do not exceed. None of nothing."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(round(share * len(ordered), 9)) - 1)] if ordered else None


def median(values):
    """The middle of the known values, the mean of the two middle ones of an even number; None without any."""
    known = sorted(value for value in values if value is not None)
    if not known:
        return None
    half = len(known) // 2
    return known[half] if len(known) % 2 else (known[half - 1] + known[half]) / 2


def gaps(times):
    """Differences of neighbours in the order of time."""
    ordered = sorted(times)
    return [b - a for a, b in zip(ordered, ordered[1:])]


def ks_two(one, other):
    """Kolmogorov-Smirnov distance of two samples."""
    one, other = sorted(one), sorted(other)
    if not one or not other:
        return None
    return max(
        abs(bisect.bisect_right(one, at) / len(one) - bisect.bisect_right(other, at) / len(other)) for at in one + other
    )


def ks_exponential(values, mean):
    """Kolmogorov-Smirnov distance of a sample from the exponential law of this mean."""
    ordered = sorted(values)
    if not ordered or not mean > 0:
        return None
    n, worst = len(ordered), 0.0
    for place, value in enumerate(ordered):
        law = 1 - math.exp(-value / mean)
        worst = max(worst, law - place / n, (place + 1) / n - law)
    return worst


def ks_critical(n):
    """The distance that one sample in twenty exceeds although it is of the law."""
    return 1.358 / math.sqrt(n) if n else None
