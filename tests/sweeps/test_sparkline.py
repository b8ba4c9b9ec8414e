import math

import pytest

from sweeps.sparkline import HEIGHTS, LONGEST, sparkline


@pytest.mark.parametrize(
    ("values", "low", "high", "word"),
    [
        ([1, 10, 100], 1, 100, "▁▅█"),  # the middle of a logarithmic scale
        ([100, 1], 1, 100, "█▁"),
        ([5, 5], 5, 5, "▁▁"),
        ([0, 7], 0, 7, "▁▁"),  # no scale from zero
        ([1, math.nan, 100], 1, 100, "▁ █"),
        ([], 1, 2, ""),
    ],
)
def test_a_curve_is_a_word_of_heights(values: list[float], low: float, high: float, word: str) -> None:
    assert sparkline(values, low=low, high=high) == word


def test_a_long_curve_keeps_its_ends_and_its_course() -> None:
    word = sparkline([1.0 * 1.05**n for n in range(100)], low=1, high=1.05**99)

    assert len(word) == LONGEST and (word[0], word[-1]) == (HEIGHTS[0], HEIGHTS[-1])
    assert list(word) == sorted(word)
