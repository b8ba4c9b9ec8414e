"""A curve as a word of eight heights."""

import math
from collections.abc import Sequence

HEIGHTS = "▁▂▃▄▅▆▇█"
LONGEST = 12


def sparkline(values: Sequence[float], *, low: float, high: float) -> str:
    """Positive values on a logarithmic scale from `low` (the lowest bar) to `high`; a blank for NaN.

    Of more than `LONGEST` values as many, evenly chosen, the last always.
    """
    if len(values) > LONGEST:
        values = [values[round(i * (len(values) - 1) / (LONGEST - 1))] for i in range(LONGEST)]
    return "".join(_bar(value, low, high) for value in values)


def _bar(value: float, low: float, high: float) -> str:
    if not math.isfinite(value):
        return " "
    span = math.log(high / low) if low > 0 and high > low else 0.0
    place = math.log(max(value, low) / low) / span if span else 0.0
    return HEIGHTS[min(len(HEIGHTS) - 1, int(place * len(HEIGHTS)))]
