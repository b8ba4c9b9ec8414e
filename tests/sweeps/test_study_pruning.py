"""Successive halving at ticks 1, 3 and 9 on curves whose answers are known on paper.

Of n values at a rung, the best max(1, n // 3) go on: a trial goes on if its own is among them.
"""

from collections.abc import Callable

from optuna.samplers._tpe.sampler import _split_trials
from optuna.trial import TrialState

from sweeps.records import Ending, Metrics
from sweeps.study import SweepStudy

OpenStudy = Callable[..., SweepStudy]
Play = Callable[..., Ending | None]


def went_on(study: SweepStudy, play: Play, *fids: float) -> list[bool]:
    """Asks a trial for each value and reports it at tick 1."""
    return [play(study, study.ask().label, fid) is None for fid in fids]


def test_the_best_third_goes_on(open_study: OpenStudy, play: Play) -> None:
    #     at tick 1: 50 alone; 60 of 2; 40 of 3; 45 of 4; 30 of 5; 35 second of 6; 36 third of 7
    answers = [True, False, True, False, True, True, False]

    assert went_on(open_study("sweep.trials=7"), play, 50, 60, 40, 45, 30, 35, 36) == answers


def test_a_pruned_trial_says_why(open_study: OpenStudy, play: Play) -> None:
    study = open_study()
    went_on(study, play, 50)
    study.ask()

    expected = Ending("pruned", "not among the best 1/3 at 1 kimg")
    assert play(study, "t002", 60) == expected
    assert study.record("t002").ending is None  # until Optuna is told
    assert study.end("t002") == expected
    assert study.record("t002").ending == expected
    assert study._study.get_trials()[1].state == TrialState.PRUNED


def test_trials_are_compared_at_rungs_only_and_by_their_best_so_far(
    open_study: OpenStudy, play: Play
) -> None:
    study = open_study()
    assert went_on(study, play, 50, 40) == [True, True]

    assert play(study, "t001", 60, 49, first=2) is None  # first at tick 3, with 49
    assert play(study, "t002", 900, 900, first=2) is None  # worse now, 40 once
    assert went_on(study, play, 39) == [True]
    assert play(study, "t003", 38, first=2) is None
    assert play(study, "t001", 10, 9, first=4) is None


def test_the_same_trial_falls_at_the_next_rung(open_study: OpenStudy, play: Play) -> None:
    study = open_study()
    assert went_on(study, play, 50, 40) == [True, True]
    play(study, "t001", 20, 20, first=2)

    assert play(study, "t002", 30, 21, first=2) == Ending("pruned", "not among the best 1/3 at 3 kimg")


def test_without_a_pruner_everything_gets_the_whole_budget(open_study: OpenStudy, play: Play) -> None:
    assert went_on(open_study("pruner.name=none"), play, 1, 2, 3, 4) == [True] * 4


def test_a_baseline_is_never_pruned_and_others_are_measured_against_it(
    open_study: OpenStudy, play: Play
) -> None:
    study = open_study("enqueue=[{gp_weight: 10}, {gp_weight: 20}]")

    # 500 would fall; 300 is second of three, though the best of the searched ones
    assert went_on(study, play, 10, 500, 300) == [True, True, False]
    assert play(study, "t001", 9, 9, first=2) is None
    assert play(study, "t002", 400, 400, *[400] * 6, first=2) == Ending("complete")
    assert study._study.get_trials()[1].system_attrs["completed_rung_1"] == 400


def test_a_baseline_that_asks_for_it_is_pruned(open_study: OpenStudy, play: Play) -> None:
    study = open_study("enqueue=[{gp_weight: 10}, {gp_weight: 20, prune: true}]")

    assert went_on(study, play, 10, 500) == [True, False]


def test_a_diverged_trial_is_told_pruned_and_ranked_below_all_others(
    open_study: OpenStudy, play: Play, measured: Callable[..., Metrics]
) -> None:
    study = open_study()
    assert went_on(study, play, 20) == [True]
    play(study, "t001", 15, 10, 9, first=2)
    said = Ending("diverged", "fid is not finite")
    assert study.report("t001", tick=5, metrics=measured(float("nan"), 5), ending=said) == said
    assert study.end("t001") == said
    went_on(study, play, 60)
    study.end("t002")

    late, early = study._study.get_trials()
    assert (late.state, late.constraints) == (TrialState.PRUNED, {"diverged": 1.0})
    assert (early.state, early.constraints) == (TrialState.PRUNED, {})
    good, bad = _split_trials(study._study, [late, early], n_below=1)
    assert ([trial.number for trial in good], [trial.number for trial in bad]) == ([1], [0])
    assert study.record("t001").ending == said


def test_a_trial_that_diverges_at_once_is_told_as_well(
    open_study: OpenStudy, measured: Callable[..., Metrics]
) -> None:
    study = open_study("sweep.trials=1")
    study.ask()
    said = Ending("diverged", "a weight is not finite")

    assert study.report("t001", tick=1, metrics=measured(float("nan"), 1), ending=said) == said
    study.end("t001")
    (trial,) = study._study.get_trials()
    assert (trial.state, trial.constraints) == (TrialState.PRUNED, {"diverged": 1.0})
    assert study.ask() is None


def test_what_the_trainer_says_goes_before_what_the_pruner_would(
    open_study: OpenStudy, play: Play, measured: Callable[..., Metrics]
) -> None:
    study = open_study()
    went_on(study, play, 10)
    study.ask()
    said = Ending("diverged", "dead critic")

    assert study.report("t002", tick=1, metrics=measured(500, 1), ending=said) == said
