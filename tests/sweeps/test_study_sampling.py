"""What the sampler is shown before it offers a new trial: every label once, in order, each as measured."""

from collections.abc import Callable
from typing import Any

import optuna
import pytest
from optuna.samplers import TPESampler
from optuna.samplers._tpe.sampler import _split_trials
from optuna.trial import FrozenTrial, TrialState

from sweeps.folder import SweepFolder
from sweeps.records import Ending, Metrics
from sweeps.study import SweepStudy

OpenStudy = Callable[..., SweepStudy]
Play = Callable[..., Ending | None]
COMPLETE, PRUNED, RUNNING = TrialState.COMPLETE, TrialState.PRUNED, TrialState.RUNNING


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch) -> Callable[[SweepStudy], list[FrozenTrial]]:
    """Asks for the next new trial; the trials its sampler was shown."""
    asked: list[list[FrozenTrial]] = []

    class Watched(TPESampler):
        def before_trial(self, study: optuna.Study, trial: FrozenTrial) -> None:
            asked.append([each for each in study.get_trials() if each.number != trial.number])

    def shown(study: SweepStudy) -> list[FrozenTrial]:
        asked.clear()
        study.ask()
        (trials,) = asked
        return trials

    monkeypatch.setattr(optuna.samplers, "TPESampler", Watched)
    return shown


def best(study: SweepStudy, trials: list[FrozenTrial], *, number: int) -> list[int]:
    """Places of those TPE would imitate."""
    ended = [trial for trial in trials if trial.state in (COMPLETE, PRUNED)]
    good, _ = _split_trials(study._study, ended, n_below=number)
    return sorted(trial.number + 1 for trial in good)


def test_a_baseline_saved_from_the_pruner_is_shown_as_pruned(
    open_study: OpenStudy, play: Play, shown: Callable[[SweepStudy], list[FrozenTrial]]
) -> None:
    study = open_study("enqueue=[{gp_weight: 10}]")
    [study.ask() for _ in range(4)]
    assert play(study, "t002", 60) is None  # alone at tick 1
    assert play(study, "t003", 70) == Ending("pruned", "not among the best 1/3 at 1 kimg")
    assert play(study, "t004", 55, 52, 50) is None
    assert play(study, "t001", 500, 490, 490, *[480] * 6) == Ending("complete")  # last at ticks 1 and 3
    assert play(study, "t002", 60, 58, first=2) == Ending("pruned", "not among the best 1/3 at 3 kimg")
    [study.end(label) for label in ("t001", "t002", "t003")]

    recorded = study._study.get_trials()
    assert (recorded[0].state, recorded[0].value) == (COMPLETE, 480)
    assert best(study, recorded, number=1) == [1]  # the sampler would imitate 480 before 58
    trials = shown(study)
    assert [(trial.state, trial.value) for trial in trials[:3]] == [(PRUNED, 500), (PRUNED, 58), (PRUNED, 70)]
    assert trials[0].intermediate_values == {1: 500}
    assert trials[0].params == recorded[0].params
    assert trials[3].state == RUNNING
    assert best(study, trials, number=1) == [2]
    assert best(study, trials, number=2) == [2, 3]
    assert study.record("t001").ending == Ending("complete")
    assert study.record("t001").best_fid == 480


def test_a_baseline_the_pruner_would_have_kept_is_shown_complete(
    open_study: OpenStudy, play: Play, shown: Callable[[SweepStudy], list[FrozenTrial]]
) -> None:
    study = open_study("enqueue=[{gp_weight: 10}]")
    study.ask()
    play(study, "t001", 500, 490, 490, *[480] * 6)
    study.end("t001")

    (trial,) = shown(study)
    assert (trial.state, trial.value, len(trial.intermediate_values)) == (COMPLETE, 480, 9)


def test_a_baseline_is_measured_against_trials_that_came_to_the_rung_after_it(
    open_study: OpenStudy, play: Play, shown: Callable[[SweepStudy], list[FrozenTrial]]
) -> None:
    study = open_study("enqueue=[{gp_weight: 10}]")
    study.ask()
    assert play(study, "t001", 400, 300, 90, *[80] * 6) == Ending("complete")  # alone on every rung
    study.end("t001")
    for fids in ((200, 150, 85), (410, 320, 95)):  # the first passes tick 1 and tick 3, the second neither
        play(study, study.ask().label, *fids)

    trials = shown(study)
    assert (trials[0].state, trials[0].value) == (PRUNED, 400)


def test_who_spent_the_whole_budget_is_shown_complete_though_tick_9_is_a_rung(
    open_study: OpenStudy, play: Play, shown: Callable[[SweepStudy], list[FrozenTrial]]
) -> None:
    study = open_study("enqueue=[]")
    for fid in (60, 55, 50):  # each the best when it comes to a rung before the last
        assert play(study, study.ask().label, *[fid] * 8) is None
    for label, fid in (("t001", 48), ("t002", 40), ("t003", 45)):
        assert play(study, label, fid, first=9) == Ending("complete")
        study.end(label)

    trials = shown(study)
    assert [(trial.state, trial.value) for trial in trials] == [
        (COMPLETE, 48),
        (COMPLETE, 40),
        (COMPLETE, 45),
    ]
    assert best(study, trials, number=2) == [2, 3]


def test_a_retried_trial_is_shown_once_and_in_its_old_place(
    open_study: OpenStudy, play: Play, shown: Callable[[SweepStudy], list[FrozenTrial]]
) -> None:
    overrides = ("sweep.retries=0", "pruner.name=none")
    study = open_study(*overrides)
    params = [study.ask().params for _ in range(3)]
    play(study, "t002", 50, *[40] * 8)
    study.end("t002")
    play(study, "t001", 30)
    study.fail("t001", reason="killed")

    again = open_study(*overrides)
    assert [again.ask().label, again.ask().label] == ["t001", "t003"]
    trials = shown(again)
    assert [trial.user_attrs["label"] for trial in trials] == ["t001", "t002", "t003"]
    assert [trial.params for trial in trials] == params
    assert [trial.state for trial in trials] == [RUNNING, COMPLETE, RUNNING]


def test_a_diverged_trial_is_shown_below_all_others(
    open_study: OpenStudy,
    play: Play,
    measured: Callable[..., Metrics],
    shown: Callable[[SweepStudy], list[FrozenTrial]],
) -> None:
    study = open_study("pruner.name=none")
    study.ask(), study.ask()
    play(study, "t001", 9)
    said = Ending("diverged", "dead critic")
    study.report("t001", tick=2, metrics=measured(9, 2), ending=said)
    study.report("t002", tick=1, metrics=measured(60, 1), ending=Ending("pruned"))
    study.end("t001"), study.end("t002")

    trials = shown(study)
    assert [trial.constraints for trial in trials] == [{"diverged": 1.0}, {}]
    assert best(study, trials, number=1) == [2]


def test_what_comes_next_does_not_depend_on_a_retry(
    open_study: OpenStudy, measured: Callable[..., Metrics], folder: SweepFolder
) -> None:
    overrides = ("pruner.name=none", "sweep.trials=26", "sweep.retries=0")

    def offers(*failing: str) -> list[dict[str, Any]]:
        folder.journal.unlink(missing_ok=True)
        study = open_study(*overrides)
        labels = [study.ask().label for _ in range(20)]
        for label in failing:
            study.fail(label, reason="killed")
        if failing:
            study = open_study(*overrides)
            assert [study.ask().label for _ in labels] == labels
        for label in labels:  # the best two of twenty, which the sampler imitates, are the first and the last
            fid = 30 if label in ("t001", "t020") else 60
            study.report(label, tick=1, metrics=measured(fid, 1), ending=Ending("complete"))
            study.end(label)
        return [study.ask().params for _ in range(6)]

    assert offers("t001", "t007") == offers()
