"""Each pruner on curves whose answers are known on paper, undisturbed and disturbed at every tick."""

from collections import Counter
from collections.abc import Callable

import pytest

from sweeps.folder import SweepFolder
from sweeps.pruning import bracket, rungs
from sweeps.records import Ending, Metrics
from sweeps.space import Space
from sweeps.study import SweepStudy

OpenStudy = Callable[..., SweepStudy]
BUDGET = 9
COMPLETE = ("complete", BUDGET, "")
PruneAll = Callable[..., list[tuple[str, int, str]]]


@pytest.fixture(params=["undisturbed", "started again", "failed"])
def ends(request: pytest.FixtureRequest, open_study: OpenStudy, measured: Callable[..., Metrics]) -> PruneAll:
    """Plays curves, one trial after the other; how each ended, at which tick and why."""

    def ends(curves: list[list[float]], *overrides: str) -> list[tuple[str, int, str]]:
        asked = ("sweep.retries=0", f"sweep.trials={len(curves)}", *overrides)
        study = open_study(*asked)
        for curve in curves:
            label = study.ask().label
            for tick, fid in enumerate(curve, start=1):
                if request.param == "started again":
                    study = open_study(*asked)
                    assert study.ask().label == label
                elif request.param == "failed":
                    assert study.fail(label, reason="killed") == Ending("failed", "killed")
                    study = open_study(*asked)
                    assert study.ask().label == label
                said = Ending("complete") if tick == BUDGET else None
                if study.report(label, tick=tick, metrics=measured(fid, tick), ending=said):
                    break
            study.end(label)
        found = study.final_records()
        return [(one.ending.outcome, one.tick, one.ending.reason) for one in found if one.ending]

    return ends


def flat(*fids: float) -> list[list[float]]:
    return [[fid] * BUDGET for fid in fids]


def test_half_of_what_halving_sees_falls(ends: PruneAll) -> None:
    why = "not among the best 1/2 at 1 kimg"
    asked = ("pruner.reduction_factor=2",)

    # 40 is better than 50; of 40, 45, 50 one goes on; 39 and 40 are the better two of four
    assert ends(flat(50, 40, 45, 39), *asked) == [COMPLETE, COMPLETE, ("pruned", 1, why), COMPLETE]


def test_a_bracket_of_hyperband_is_compared_late_and_with_its_own(
    ends: PruneAll, make_space: Callable[..., Space]
) -> None:
    brackets = [bracket(make_space(), f"t{number:03d}") for number in range(1, 11)]
    assert set(brackets) == {0, 1, 2}  # rungs from 1, 3 and 9 on

    expected = []
    for place, spared in enumerate(brackets):
        rung = 3**spared
        first_of_its_bracket = spared not in brackets[:place]
        why = f"not among the best 1/3 of its bracket at {rung} kimg"
        goes_on = first_of_its_bracket or rung == BUDGET
        expected.append(COMPLETE if goes_on else ("pruned", rung, why))
    worse_and_worse = flat(*range(100, 110))
    assert ends(worse_and_worse, "pruner.name=hyperband") == expected


def test_brackets_have_their_shares_and_follow_from_seed_and_label(make_space: Callable[..., Space]) -> None:
    space = make_space("pruner.name=hyperband")
    labels = [f"t{number:03d}" for number in range(1, 3001)]
    count = Counter(bracket(space, label) for label in labels)

    # of three brackets ceil(3 x 9 / 3), ceil(3 x 3 / 2) and 3 in 17
    for spared, share in enumerate([9, 5, 3]):
        assert count[spared] / len(labels) == pytest.approx(share / 17, abs=0.03)
    another = make_space("pruner.name=hyperband", "sweep.seed=1")
    assert [bracket(another, label) for label in labels] != [bracket(space, label) for label in labels]
    assert bracket(space, "t007-s2") == bracket(space, "t007")
    for label in labels[:10]:
        assert rungs(space, label) == [1, 3, 9][bracket(space, label) :]


def test_below_the_median_of_complete_trials_one_falls(ends: PruneAll) -> None:
    asked = ("pruner.name=median", "pruner.n_startup_trials=3", "pruner.first_rung_kimg=3")
    why = "worse than the median of the complete trials at 3 kimg"
    gets_worse = [10, 10, 10, 90, 90, 90, 90, 90, 90]
    falls_late = [42, 42, 40, 40, 40, 40, 39, 39, 39]

    # the first three are not compared; the median of 50, 30, 40 is 40
    assert ends([*flat(50, 30, 40, 41), gets_worse, falls_late], *asked) == [
        *[COMPLETE] * 3,
        ("pruned", 3, why),
        COMPLETE,  # by the best so far
        ("pruned", 3, why),  # the median of 50, 30, 40, 10 is 35
    ]


def test_the_best_percent_of_complete_trials_go_on(ends: PruneAll) -> None:
    asked = ("pruner.name=percentile", "pruner.percentile=25", "pruner.n_startup_trials=5")
    why = "not among the best 25 % of the complete trials at 1 kimg"

    # of 10, 20, 30, 40, 50 the 25th percentile is 20
    assert ends(flat(10, 50, 20, 40, 30, 21, 20), *asked) == [*[COMPLETE] * 5, ("pruned", 1, why), COMPLETE]


@pytest.mark.parametrize(
    "patience", [[], ["pruner.patience_kimg=3"]], ids=["a third of the budget", "3 kimg"]
)
def test_who_gets_no_better_for_long_is_ended(ends: PruneAll, patience: list[str]) -> None:
    asked = ("pruner.name=patient", *patience)
    stuck = [50, 40, 41, 42, 43, 39, 38, 37, 36]
    just_in_time = [50, 40, 41, 42, 39, 41, 42, 38, 36]
    level = [40] * BUDGET

    assert ends([stuck, just_in_time, level], *asked) == [
        ("pruned", 5, "no better for 3 kimg at 5 kimg"),
        COMPLETE,
        COMPLETE,
    ]


@pytest.mark.parametrize(
    ("overrides", "told", "ticks"),
    [
        ([], "compared at 1, 3, 9 kimg", [1, 3, 9]),
        (["pruner.name=hyperband", "pruner.first_rung_kimg=3"], "compared at 3, 9 kimg", [3, 9]),
        (["pruner.name=none"], "none is pruned", []),
        (
            ["pruner.name=median", "pruner.first_rung_kimg=7"],
            "compared at every tick from 7 kimg on",
            [7, 8, 9],
        ),
        (["pruner.name=patient"], "pruned after 3 kimg without progress", []),
        (["pruner.name=patient", "pruner.patience_kimg=5"], "pruned after 5 kimg without progress", []),
    ],
)
def test_the_plan_says_when_trials_are_compared(
    make_space: Callable[..., Space], overrides: list[str], told: str, ticks: list[int]
) -> None:
    space = make_space(*overrides)

    assert (space.pruning, space.rungs) == (told, ticks)


@pytest.mark.parametrize(
    ("name", "startup", "shown"),
    # 480 at tick 1 would not have gone on: beside 60 and 55; worse than the median of those complete
    [
        ("successive_halving", 2, 480),
        ("median", 2, 480),
        ("median", 3, 470),  # besides itself there are two
        ("patient", 2, 470),
        ("none", 2, 470),
    ],
)
def test_a_baseline_is_shown_to_samplers_as_the_pruner_would_have_ended_it(
    open_study: OpenStudy,
    folder: SweepFolder,
    measured: Callable[..., Metrics],
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    startup: int,
    shown: float,
) -> None:
    import optuna

    values: list[float | None] = []

    class Watched(optuna.samplers.TPESampler):
        def before_trial(self, study: optuna.Study, trial: optuna.trial.FrozenTrial) -> None:
            values[:] = [each.value for each in study.get_trials() if each.number != trial.number]

    monkeypatch.setattr(optuna.samplers, "TPESampler", Watched)
    asked = (
        "enqueue=[{gp_weight: 10}]",
        f"pruner.name={name}",
        f"pruner.n_startup_trials={startup}",
        "sweep.trials=4",
    )
    study = open_study(*asked)
    labels = [study.ask().label for _ in range(3)]
    for label, curve in zip(labels, [[480, 470], [60, 60], [55, 55]], strict=True):
        for tick in range(1, BUDGET + 1):
            said = Ending("complete") if tick == BUDGET else None
            if study.report(label, tick=tick, metrics=measured(curve[tick > 1], tick), ending=said):
                break
        study.end(label)
    study.ask()

    assert values[0] == shown
