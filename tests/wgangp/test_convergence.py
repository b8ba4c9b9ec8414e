import json
import math
from collections import Counter
from pathlib import Path

import pytest

from wgangp import convergence

HEALTHY = {
    "critic_loss": -3.0,
    "generator_loss": 1.0,
    "gradient_penalty": 0.2,
    "wasserstein": 5.0,
    "gradient_norm": 1.2,
    "fid": 80.0,
    "best_fid": math.inf,
    "heldout_gap": 0.1,
    "images_per_second": 1000.0,
}


@pytest.mark.parametrize(
    ("changes", "weights_are_finite", "dead_ticks", "reason"),
    [
        ({}, True, 0, ""),
        ({"critic_loss": math.nan, "fid": math.nan}, True, 0, "critic_loss is not finite"),
        ({"generator_loss": math.inf}, True, 0, "generator_loss is not finite"),
        ({"gradient_penalty": -math.inf}, True, 0, "gradient_penalty is not finite"),
        ({"fid": math.nan}, False, 0, "a weight is not finite"),
        ({"fid": math.nan}, True, 0, "fid is not finite"),
        ({"heldout_gap": math.inf}, True, 0, "heldout_gap is not finite"),
        ({"critic_loss": 1e30, "gradient_penalty": 1e29, "gradient_norm": 1e14}, True, 0, ""),
        ({"gradient_norm": 0.01, "wasserstein": 0.002}, True, 2, ""),
        (
            {"gradient_norm": 0.01, "wasserstein": 0.002},
            True,
            3,
            "dead critic: gradient norm 0.01 and wasserstein 0.002 for 3 ticks",
        ),
    ],
)
def test_divergence_is_said_with_its_reason(
    changes: dict[str, float], weights_are_finite: bool, dead_ticks: int, reason: str
) -> None:
    found = convergence.divergence(
        HEALTHY | changes, weights_are_finite=weights_are_finite, dead_ticks=dead_ticks
    )

    assert found == reason


@pytest.mark.parametrize(
    ("gradient_norm", "wasserstein", "dead"),
    [
        (0.04, 0.04, True),
        (0.04, -0.04, True),
        (0.05, 0.04, False),
        (0.04, -0.05, False),
        (math.nan, 0, False),
        (0, math.nan, False),
    ],
)
def test_a_critic_is_dead_only_without_slope_and_without_gap(
    gradient_norm: float, wasserstein: float, dead: bool
) -> None:
    assert convergence.is_dead(gradient_norm=gradient_norm, wasserstein=wasserstein) is dead


def curves(**changed: list[float]) -> list[dict[str, float]]:
    """Twelve ticks of a healthy run that has come to its level, with these curves in place of its own."""
    level = {
        "fid": [400, 200, 100, 60, 50, 45, 43, 42, 42, 41, 41, 41],
        "diversity": [0.01, 0.2, 0.5, 0.7, *[0.8] * 8],
        "recall": [0, 0.02, 0.1, 0.2, 0.3, *[0.4] * 7],
        "precision": [1, 0.7, *[0.5] * 10],
        "wasserstein": [60, 20, 5, 3, 2, *[1.5] * 7],
        "gradient_norm": [6, 3, 2, 1.6, *[1.4] * 8],
        "gradient_penalty": [30, 5, 1, 0.4, *[0.2] * 8],
        "heldout_gap": [0.1, -0.1, 0.05, -0.05, 0.1, 0.0, -0.1, 0.02, 0.1, -0.1, 0.05, -0.02],
    }
    names = level | changed
    assert all(len(values) == 12 for values in names.values())
    return [{name: float(values[tick]) for name, values in names.items()} for tick in range(12)]


FALLING = [400.0 * 0.8**tick for tick in range(12)]


@pytest.mark.parametrize(
    ("ticks", "word", "evidence"),
    [
        (curves(), "plateaued", "the best FID fell by 2% in the last 4 of 12 ticks"),
        (
            curves(fid=FALLING),
            "improving",
            "the best FID fell by 59% in the last 4 of 12 ticks: the budget was too small",
        ),
        (
            curves(fid=[400, 200, 100, 60, 50, 45, 43, 42, 50, 42, 50, 42]),
            "oscillating",
            "late on FID rose 2 times by over 10%, at most by 19%",
        ),
        (
            curves(fid=[400, 200, 100, 60, 50, 45, 43, 42, 45, 48, 62, 66]),
            "oscillating",
            "late on FID rose once by 29%",
        ),
        (
            curves(fid=[400, 200, 100, 60, 50, 45, 43, 42, 46, 50, 54, 58]),
            "oscillating",
            "FID ends at 54, 29% above its best",
        ),
        (
            curves(heldout_gap=[0, 0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0]),
            "overfitting",
            "the critic tells training from held-out images by 0.85, real from generated ones by 1.5",
        ),
        (
            curves(recall=[0, 0.02, 0.1, 0.2, 0.3, 0.4, 0.4, 0.4, 0.3, 0.2, 0.1, 0.1]),
            "collapsed",
            "recall fell from 0.4 to 0.1",
        ),
        (
            curves(diversity=[0.01, 0.2, 0.5, *[0.8] * 6, 0.4, 0.2, 0.1]),
            "collapsed",
            "diversity fell from 0.8 to 0.15",
        ),
        (
            curves(diversity=[1e-3, *[0.0] * 11], recall=[0.0] * 12),
            "collapsed",
            "all images are nearly one (diversity 0)",
        ),
        (
            curves(
                gradient_norm=[0.2] * 12,
                gradient_penalty=[0.64] * 12,
                wasserstein=[-0.5 * n for n in range(12)],
            ),
            "dead critic",
            "it puts generated above real images (-4.8), with a slope of 0.2",
        ),
        (
            curves(gradient_norm=[5, 20, *[200] * 10], gradient_penalty=[20, 400, *[4e4] * 10]),
            "exploded",
            "the critic's slope is 200 where 1 is healthy, the penalty 4e+04",
        ),
    ],
)
def test_each_verdict_has_its_curves_and_says_its_evidence(
    ticks: list[dict[str, float]], word: str, evidence: str
) -> None:
    assert convergence.verdict(ticks) == convergence.Verdict(word, evidence)


@pytest.mark.parametrize(
    ("reason", "word"),
    [
        ("critic_loss is not finite", "diverged"),
        ("dead critic: gradient norm 0.01 and wasserstein 0.002 for 3 ticks", "dead critic"),
    ],
)
def test_what_ended_a_run_is_the_verdict_however_few_its_ticks(reason: str, word: str) -> None:
    assert convergence.verdict([], diverged=reason) == convergence.Verdict(word, reason)


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"gradient_norm": [900, 500, 100, 30, *[1.4] * 8]}, "an explosion it recovered from"),
        ({"fid": [400, 300, 390, 200, 260, 45, 43, 42, 42, 41, 41, 41]}, "rises early on"),
        (
            {"heldout_gap": [0.1, 0.3, 0.1, 0.3, -0.1, 0.3, 0.2, 0.3, 0.4, -0.1, 0.4, 0.3]},
            "chance in the gap",
        ),
        ({"heldout_gap": [0.01] * 12, "wasserstein": [0.02] * 12}, "a level critic"),
        (
            {"gradient_norm": [0.001] * 12, "gradient_penalty": [1e-6] * 12, "wasserstein": [-1e-5] * 12},
            "zero_centered",
        ),
        ({"recall": [0, 0.02, 0.1, 0.2, 0.3, 0.4, 0.35, 0.3, 0.35, 0.3, 0.3, 0.3]}, "recall that wavers"),
        (
            {"recall": [0, 0, 0.05, 0.08, 0.09, 0.06, 0.05, 0.04, 0.03, 0.03, 0.02, 0.02]},
            "no variety to lose",
        ),
    ],
)
def test_what_looks_like_a_fault_and_is_none(changed: dict[str, list[float]], why: str) -> None:
    assert convergence.verdict(curves(**changed)).word == "plateaued", why


def test_a_young_generator_has_not_collapsed() -> None:
    """The published default has drawn one blur of all digits for half its budget, and improves."""
    young = curves(
        fid=[498, 497, 496, 495, 494, 493, 490, 485, 480, 470, 450, 420],
        diversity=[2e-4, 2e-4, 3e-4, 3e-4, 4e-4, 5e-4, 1e-3, 2e-3, 4e-3, 8e-3, 0.02, 0.05],
        recall=[0.0] * 12,
    )
    assert convergence.verdict(young).word == "improving"


@pytest.mark.parametrize("count", [0, 1, 3])
def test_of_few_ticks_nothing_is_said(count: int) -> None:
    assert convergence.verdict(curves()[:count]) == convergence.Verdict(
        "-", f"{count} ticks are too few to say"
    )


def test_without_recall_and_without_fid_what_is_there_is_judged() -> None:
    ticks = curves()
    for tick in ticks:
        del tick["recall"], tick["precision"]
    assert convergence.verdict(ticks).word == "plateaued"
    assert convergence.verdict([{"critic_loss": 1.0, "gradient_penalty": 1e12}] * 5).word == "-"


REAL = json.loads(Path(__file__).with_name("real_curves.json").read_text())
"""Curves of `benchmarks/convergence.py`: 4 runs of each of 16 settings, each made to be of a kind."""


def test_the_thresholds_hold_on_real_runs_they_were_not_set_on() -> None:
    right: Counter[str] = Counter()
    for run in REAL:
        if run["seed"] % 2:
            found = convergence.verdict(run["ticks"], diverged=run["diverged"])
            right[run["kind"]] += found.word == run["kind"]

    clear = ("improving", "overfitting", "dead critic", "exploded", "diverged")
    assert [right[kind] for kind in clear] == [4] * 5
    # No setting collapses or comes to its level from every seed; the README shows what these were taken for.
    assert {kind: right[kind] for kind in right if kind not in clear} == {
        "oscillating": 3,
        "plateaued": 2,
        "collapsed": 2,
    }
