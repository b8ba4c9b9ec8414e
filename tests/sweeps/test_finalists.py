"""The best settings trained again: whose turn it is in a real study, what comes of it, and who wins."""

import math
from collections.abc import Callable
from pathlib import Path

import pytest
from optuna.trial import FrozenTrial

from sweeps import lineage
from sweeps.finalists import finalists, missing_runs, next_run, winner
from sweeps.records import Ending, TrialRecord, order
from sweeps.sampling import Proposal
from sweeps.sections import Finalists
from sweeps.study import SweepStudy

MakeRecord = Callable[..., TrialRecord]
OpenStudy = Callable[..., SweepStudy]
Play = Callable[..., Ending | None]
ASKED = ("finalists.count=2", "finalists.seeds=2", "sweep.trials=3", "pruner.name=none")


def complete(make_record: MakeRecord, **fids: float) -> list[TrialRecord]:
    return [_record(make_record, label.replace("_", "-"), "complete", fid) for label, fid in fids.items()]


def _record(make_record: MakeRecord, label: str, outcome: str, fid: float, runs: int = 1) -> TrialRecord:
    return make_record(label, outcome, [90, fid], finalist_runs=runs if "-s" in label else 0)


def finish(study: SweepStudy, play: Play, *fids: float) -> list[str]:
    """Run the next trials to their end; their labels."""
    labels = []
    for fid in fids:
        assignment = study.ask()
        assert assignment
        play(study, assignment.label, *[fid] * 9)
        study.end(assignment.label)
        labels.append(assignment.label)
    return labels


def test_labels_of_runs_follow_their_trial_in_order() -> None:
    labels = ["t010", "t002-s1", "t002", "t002-s10", "t002-s2"]

    assert sorted(labels, key=order) == ["t002", "t002-s1", "t002-s2", "t002-s10", "t010"]


def test_the_setting_with_the_lowest_mean_wins_not_the_lucky_seed(make_record: MakeRecord) -> None:
    records = complete(make_record, t001=10, t002=20, t003=30, t001_s1=50, t001_s2=40, t002_s1=20, t002_s2=24)

    best = winner(records)
    first, second = finalists(records)
    assert best is not None and best.label == first.trial.label == "t002"
    assert (first.mean, first.spread) == (22, pytest.approx(math.sqrt(8)))
    assert (second.trial.label, second.fids, second.mean) == ("t001", [50, 40], 45)


@pytest.mark.parametrize("last", ["failed", "interrupted", ""])
def test_nothing_is_decided_while_a_run_is_missing(make_record: MakeRecord, last: str) -> None:
    records = complete(make_record, t001=10, t002=20, t001_s1=50, t002_s1=20)
    unended = [*records[:-1], _record(make_record, "t002-s1", last, 20)]
    unasked = [*records[:2], _record(make_record, "t001-s1", "complete", 50, runs=2)]

    assert [len(finalists(each)) for each in (records, unended, unasked)] == [2, 0, 0]
    winners = [winner(each) for each in (records, unended, unasked)]
    assert [best.label for best in winners if best] == ["t002", "t001", "t001"]


def test_a_run_that_diverged_counts_with_the_best_it_had(make_record: MakeRecord) -> None:
    records = [*complete(make_record, t001=10, t001_s1=50), make_record("t001-s2", "diverged", [70])]

    assert finalists(records)[0].fids == [50, 70]


def test_runs_begin_when_all_trials_have_ended_and_take_turns_by_seed(make_record: MakeRecord) -> None:
    asked = Finalists(count=2, seeds=2)
    records = [*complete(make_record, t001=30, t002=10, t003=20), make_record("t004", "pruned", [5])]
    assert next_run([*records, make_record("t005", "", [1])], asked) is None
    assert next_run(records, Finalists()) is None
    assert len(missing_runs(records, asked)) == 4

    labels = []
    while run := next_run(records, asked):
        assert run.of == 4
        labels.append(run.label)
        records += complete(make_record, **{run.label.replace("-", "_"): 50})
    assert labels == ["t002-s1", "t003-s1", "t002-s2", "t003-s2"]


def test_the_study_hands_the_runs_out_with_seeds_of_their_own(open_study: OpenStudy, play: Play) -> None:
    study = open_study(*ASKED)
    assert finish(study, play, 30, 10, 20) == ["t001", "t002", "t003"]
    runs = [study.ask() for _ in range(4)]
    assert study.ask() is None
    assert [run.label for run in runs if run] == ["t002-s1", "t003-s1", "t002-s2", "t003-s2"]
    assert [run.finalist_of for run in runs if run] == ["t002", "t003", "t002", "t003"]

    of_trial = study.config(study.record("t002"))
    for run in runs:
        assert run
        config, trial = run.config, study.config(study.record(run.finalist_of))
        seeds = {"seed": config.seed, "init_seed": config.init_seed}
        assert config == trial.model_copy(update=seeds)
        assert config.evaluation_seed == of_trial.evaluation_seed == 0
    by_label = {run.label: run.config for run in runs if run}
    assert by_label["t002-s1"].seed == by_label["t003-s1"].seed  # the same luck for each setting
    assert len({config.seed for config in by_label.values()} | {of_trial.seed}) == 3
    assert len({config.init_seed for config in by_label.values()} | {of_trial.init_seed}) == 5


def test_seeds_that_the_space_fixes_do_not_hold_for_the_runs(open_study: OpenStudy, play: Play) -> None:
    study = open_study(*ASKED, "train.seed=3", "train.init_seed=4")
    finish(study, play, 30, 10, 20)
    run = study.ask()

    assert run and run.config.seed != 3 and run.config.init_seed != 4


def test_neither_sampler_nor_pruner_takes_note_of_the_runs(
    open_study: OpenStudy, play: Play, monkeypatch: pytest.MonkeyPatch
) -> None:
    overrides = [one for one in ASKED if not one.startswith("pruner")]
    study = open_study(*overrides)
    finish(study, play, 10, 20, 30)
    assert finish(study, play, 900, 800) == ["t001-s1", "t001-s2"]  # far worse than all, and not pruned
    assert [study.record(label).tick for label in ("t001-s1", "t001-s2")] == [9, 9]
    runs = [one for one in study._study.get_trials() if "-s" in one.user_attrs["label"]]
    assert not any(run.intermediate_values or run.system_attrs for run in runs)

    shown: list[str] = []

    def propose(space: object, number: int, trials: list[FrozenTrial]) -> Proposal:
        shown.extend(trial.user_attrs["label"] for trial in trials)
        return Proposal({"gp_weight": 1.0, "n_critic": 1}, {})

    monkeypatch.setattr(lineage, "propose", propose)
    extended = open_study(*overrides, trials=4)
    assert finish(extended, play, 5) == ["t004"]
    assert shown == ["t001", "t002", "t003"]
    assert finish(extended, play, 5) == ["t004-s1"]  # the best is another now


def test_an_interrupted_run_is_taken_up_again_and_a_failed_one_tried_again(
    open_study: OpenStudy, play: Play, save: Callable[..., Path]
) -> None:
    study = open_study(*ASKED, "sweep.retries=0")
    finish(study, play, 30, 10, 20)
    first, second = study.ask(), study.ask()
    assert first and second
    play(study, first.label, 50, 40)
    path = save(study, first.label, 2)
    assert study.fail(second.label, reason="killed") == Ending("failed", "killed")

    again = open_study(*ASKED, "sweep.retries=0")
    taken = [again.ask(), again.ask()]
    assert [one.label for one in taken if one] == ["t002-s1", "t003-s1"]
    assert taken[0] and taken[0].checkpoints == [path] and taken[0].attempt == 2
    assert taken[0].config == first.config
    assert again.record("t002-s1").best_fid == 40
