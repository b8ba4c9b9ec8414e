from collections.abc import Callable

import numpy as np
import pytest
from scipy.stats import spearmanr

from sweeps import early
from sweeps.records import TrialRecord

MakeRecord = Callable[..., TrialRecord]


def curves(make_record: MakeRecord, pairs: list[tuple[float, float]]) -> list[TrialRecord]:
    """Trials that scored so at the first tick and so at the last of three."""
    return [
        make_record(f"t{number:03d}", "complete", [first, 999, last])
        for number, (first, last) in enumerate(pairs, start=1)
    ]


def test_the_same_order_early_and_late_is_one(make_record: MakeRecord) -> None:
    records = curves(make_record, [(100 + n, 10 + n) for n in range(10)])

    (found,) = early.agreements(records, rungs=[1, 3], tick_kimg=9)
    assert (found.kimg, found.trials, found.rho) == (9, 10, pytest.approx(1))
    assert 0.99 < found.low <= found.high <= 1


def test_the_correlation_is_of_ranks_with_a_known_interval(make_record: MakeRecord) -> None:
    late = [3.0, 1, 4, 1.5, 5, 9, 2, 6, 5.5, 3.5]
    records = curves(make_record, [(100 + n**3, value) for n, value in enumerate(late)])

    (found,) = early.agreements(records, rungs=[1], tick_kimg=9)
    rho = spearmanr(range(10), late).statistic
    assert found.rho == pytest.approx(rho)
    # atanh(rho) +- 1.96 sqrt((1 + rho^2 / 2) / (n - 3)), worked out by hand
    assert rho == pytest.approx(1 - 6 * 86 / 990)
    assert (found.low, found.high) == (pytest.approx(-0.255, abs=1e-3), pytest.approx(0.863, abs=1e-3))
    assert str(found) == (
        "9 kimg: rank correlation 0.48 with the final FID (95 % interval -0.25 to 0.86); 10 trials went on"
        " to the end"
    )


def test_the_interval_holds_the_truth_about_as_often_as_it_says(make_record: MakeRecord) -> None:
    random = np.random.default_rng(0)
    truth = 6 / np.pi * np.arcsin(0.7 / 2)  # Spearman's rho of normal pairs correlated by 0.7
    held = 0
    for _ in range(300):
        x = random.normal(size=(2, 15))
        pairs = list(zip(500 + x[0], 100 + 0.7 * x[0] + np.sqrt(1 - 0.7**2) * x[1], strict=True))
        (found,) = early.agreements(curves(make_record, pairs), rungs=[1], tick_kimg=9)
        held += found.low <= truth <= found.high

    assert 0.90 <= held / 300 <= 0.99


def test_of_fewer_than_eight_nothing_is_said_but_their_number(make_record: MakeRecord) -> None:
    (found,) = early.agreements(curves(make_record, [(100, n) for n in range(1, 8)]), rungs=[1], tick_kimg=9)

    assert (found.trials, found.rho) == (7, None)
    assert str(found) == "9 kimg: 7 trials went on to the end, too few to say (at least 8 are needed)"


def test_scores_that_are_all_alike_rank_nothing(make_record: MakeRecord) -> None:
    (found,) = early.agreements(curves(make_record, [(100, n) for n in range(1, 10)]), rungs=[1], tick_kimg=9)

    assert str(found) == "9 kimg: 9 trials went on to the end, all scored alike"


def test_only_trials_that_went_on_to_the_end_count(make_record: MakeRecord) -> None:
    records = [
        *curves(make_record, [(100 - n, 50 - n) for n in range(8)]),
        make_record("t009", "pruned", [500]),
        make_record("t010", "diverged", [400, 300]),
        make_record("t001-s1", "complete", [1, 999, 999]),
    ]

    (found,) = early.agreements(records, rungs=[1], tick_kimg=9)
    assert (found.trials, found.rho) == (8, pytest.approx(1))
    assert early.agreements(records[8:10], rungs=[1], tick_kimg=9) == []
