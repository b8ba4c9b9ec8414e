"""What a sweep hands out: baselines first, labels in order, the same offers for the same seed."""

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from optuna.trial import TrialState

from sweeps.folder import SweepFolder
from sweeps.records import Ending, Metrics
from sweeps.study import SweepStudy
from wgangp.errors import UserError

OpenStudy = Callable[..., SweepStudy]
Play = Callable[..., Ending | None]

BASELINES = "enqueue=[{gp_weight: 10, n_critic: 5}, {gp_weight: 2, n_critic: 1, prune: true}]"
CURVE = (50.0, 40.0, 45.0, 30.0, 30.0, 30.0, 30.0, 30.0, 35.0)


def states(study: SweepStudy) -> dict[str, TrialState]:
    return {trial.user_attrs["label"]: trial.state for trial in study._study.get_trials()}


def test_baselines_come_first_and_labels_count_in_order_of_asking(open_study: OpenStudy) -> None:
    study = open_study(BASELINES, "sweep.trials=4")
    asked = [study.ask() for _ in range(5)]

    assert asked.pop() is None
    assert [each.label for each in asked] == ["t001", "t002", "t003", "t004"]
    assert [each.baseline for each in asked] == [True, True, False, False]
    assert [each.params for each in asked[:2]] == [
        {"gp_weight": 10, "n_critic": 5},
        {"gp_weight": 2, "n_critic": 1},
    ]
    assert study.live == ["t001", "t002", "t003", "t004"]
    assert [record.label for record in study.records()] == study.live


def test_an_assignment_is_a_whole_configuration(open_study: OpenStudy) -> None:
    assignment = open_study("train.width=8", "sweep.seed=3").ask()

    assert (assignment.attempt, assignment.checkpoints, assignment.core_seconds) == (1, [], {})
    assert {name: getattr(assignment.config, name) for name in assignment.params} == assignment.params
    assert (assignment.config.width, assignment.config.budget_kimg) == (8, 9)


def test_seeds_default_to_the_sweeps_and_initial_weights_to_the_stated_hash(open_study: OpenStudy) -> None:
    study = open_study("sweep.seed=3")
    first, second = study.ask().config, study.ask().config
    stated = int.from_bytes(hashlib.sha256(b"3:init:t001").digest()[:4], "big") // 2

    assert (first.seed, first.evaluation_seed, first.split_seed) == (3, 3, 0)
    assert first.init_seed == stated != second.init_seed
    assert (second.seed, second.evaluation_seed) == (3, 3)


@pytest.mark.parametrize(("name", "learns"), [("tpe", True), ("random", False)])
def test_what_a_trial_is_offered_follows_from_seed_and_study(
    open_study: OpenStudy, folder: SweepFolder, measured: Callable[..., Metrics], name: str, learns: bool
) -> None:
    def offers(seed: int = 0, *, starts: int = 1, slope: float = -10) -> list[dict[str, Any]]:
        folder.journal.unlink(missing_ok=True)
        study = None
        for number in range(7):
            for _ in range(starts if study else 1):
                study = open_study(f"sampler.name={name}", f"sweep.seed={seed}", "sweep.trials=7")
            label = study.ask().label
            for _ in range(starts - 1):  # started again while the trial runs
                study = open_study(f"sampler.name={name}", f"sweep.seed={seed}", "sweep.trials=7")
                assert study.ask().label == label
            study.report(label, tick=1, metrics=measured(100 + slope * number, 1), ending=Ending("complete"))
            study.end(label)
        return [record.params for record in study.records()]

    once = offers()
    assert len({offer["gp_weight"] for offer in once}) == 7
    assert offers(starts=2) == once
    assert not any(one == other for one, other in zip(offers(seed=1), once, strict=True))
    assert (offers(slope=10) != once) == learns


def test_the_score_told_is_the_best_so_far(open_study: OpenStudy, play: Play) -> None:
    study = open_study()
    study.ask()

    assert play(study, "t001", *CURVE) == Ending("complete")
    assert study.end("t001") == Ending("complete")
    (trial,) = study._study.get_trials()
    assert (trial.state, trial.value) == (TrialState.COMPLETE, 30)
    assert trial.intermediate_values == {1: 50, 2: 40, 3: 40} | dict.fromkeys(range(4, 10), 30)
    (record,) = study.final_records()
    assert (record.best_fid, record.tick, record.kimg, record.core_seconds) == (30, 9, 9, 90)
    assert study.live == []


def test_a_tick_seen_twice_is_dropped_and_answered_as_then(
    open_study: OpenStudy, play: Play, measured: Callable[..., Metrics]
) -> None:
    study = open_study()
    study.ask(), study.ask()
    assert play(study, "t001", 50) is None
    pruned = play(study, "t002", 60)
    assert pruned is not None and pruned.outcome == "pruned"
    before = study.records()

    assert study.report("t001", tick=1, metrics=measured(1, 1), ending=None) is None
    assert study.report("t002", tick=1, metrics=measured(1, 1), ending=None) == pruned
    assert study.records() == before


def test_only_finite_numbers_are_recorded(open_study: OpenStudy, measured: Callable[..., Metrics]) -> None:
    study = open_study()
    study.ask()
    wild = measured(float("nan"), 1, critic_loss=float("inf"), wasserstein=2)

    assert study.report("t001", tick=1, metrics=wild, ending=None) is None
    assert study.record("t001").last == {"core_seconds": 10, "images_seen": 1000, "wasserstein": 2}
    assert study.record("t001").best_fid == float("inf")


def test_a_sweep_can_be_extended_and_stays_extended(open_study: OpenStudy, play: Play) -> None:
    study = open_study("sweep.trials=1")
    study.ask()
    play(study, "t001", *CURVE)
    study.end("t001")
    assert (study.trials_wanted, study.ask()) == (1, None)

    longer = open_study("sweep.trials=1", trials=3)
    assert (longer.trials_wanted, longer.ask().label) == (3, "t002")
    again = open_study("sweep.trials=1")
    assert [again.ask().label, again.ask().label, again.ask()] == ["t002", "t003", None]


@pytest.mark.parametrize("trials", [5, 0, -1])
def test_a_sweep_cannot_be_made_shorter(open_study: OpenStudy, trials: int) -> None:
    open_study("sweep.trials=3", trials=6)

    with pytest.raises(UserError) as caught:
        open_study("sweep.trials=3", trials=trials)
    expected = f"--trials: must be at least the 6 trials of this sweep, got {trials}; it only grows."
    assert caught.value.problems == (expected,)
    assert open_study("sweep.trials=3", trials=6).trials_wanted == 6
    assert open_study("sweep.trials=3").trials_wanted == 6


@pytest.mark.parametrize("trials", [5, 0])
def test_neither_can_one_that_was_killed_before_its_study_was_made(
    open_study: OpenStudy, trials: int
) -> None:
    with pytest.raises(UserError):
        open_study("sweep.trials=6", trials=trials)


def test_a_failed_attempt_is_handed_out_again_until_retries_are_used_up(open_study: OpenStudy) -> None:
    study = open_study("sweep.retries=2", "sweep.trials=2")
    study.ask()
    for attempt in (2, 3):
        assert study.fail("t001", reason=f"fault {attempt - 1}") is None
        again = study.ask()
        assert (again.label, again.attempt) == ("t001", attempt)
        assert study.record("t001").last_error == f"fault {attempt - 1}"

    assert study.fail("t001", reason="fault 3") == Ending("failed", "fault 3")
    assert study.record("t001").ending == Ending("failed", "fault 3")
    assert states(study) == {"t001": TrialState.FAIL}
    assert (study.ask().label, study.ask()) == ("t002", None)


def test_faults_that_are_not_charged_use_up_no_retries(open_study: OpenStudy) -> None:
    study = open_study("sweep.retries=0", "sweep.trials=1")
    for attempt in (1, 2, 3):
        assert study.ask().attempt == attempt
        assert study.fail("t001", reason="the worker was full", charged=False) is None
    study.ask()

    assert study.fail("t001", reason="fault") == Ending("failed", "fault")


def test_two_checkpoints_stay_across_attempts_and_older_folders_go(
    open_study: OpenStudy, play: Play, save: Callable[..., Path]
) -> None:
    study = open_study()
    study.ask()
    play(study, "t001", 50, 49, 48)
    first = [save(study, "t001", tick) for tick in (1, 2, 3)]
    assert study.record("t001").checkpoints == [first[2], first[1]]

    study.fail("t001", reason="fault")
    assert study.ask().checkpoints == [first[2], first[1]]
    study.report("t001", tick=4, metrics={"fid": 40, "core_seconds": 1}, ending=None)
    second = [save(study, "t001", tick, start=2) for tick in (4, 5)]
    assert study.record("t001").checkpoints == [second[1], second[0]]
    assert [path.exists() for path in (*first, *second)] == [False, False, False, True, True]

    save(study, "t001", 5, start=2)
    assert study.record("t001").checkpoints == [second[1], second[0]]
    assert second[0].exists()
