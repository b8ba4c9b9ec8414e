"""The driver dies before any write to the journal, or half-way through one: the sweep comes out the same."""

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from optuna.storages.journal import JournalFileBackend

from sweeps.folder import SweepFolder
from sweeps.records import Assignment, Ending, Metrics
from sweeps.study import SweepStudy

OpenStudy = Callable[..., SweepStudy]

SPACE = (
    "enqueue=[{gp_weight: 10}]",
    "sweep.trials=3",
    "train.budget_kimg=3",
    "sampler.n_startup_trials=1",
)
BUDGET = 3
CURVES = {"t001": (50.0, 45.0, 47.0), "t002": (20.0, float("nan"), 0.0), "t003": (60.0, 0.0, 0.0)}


class Died(BaseException):
    """The process ended here."""


class Journal:
    """Counts the writes to every journal and dies at chosen ones."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.written = 0
        self.deaths: Iterator[int] = iter(())
        self.torn = False
        self._next: int | None = None
        write = JournalFileBackend.append_logs

        def append_logs(backend: JournalFileBackend, logs: list[dict[str, Any]]) -> None:
            if self.written == self._next:
                self._next = next(self.deaths, None)
                if self.torn:
                    _tear(Path(backend._file_path), json.dumps(logs[0]))
                raise Died
            self.written += 1
            write(backend, logs)

        monkeypatch.setattr(JournalFileBackend, "append_logs", append_logs)

    def begin(self, deaths: Iterator[int], *, torn: bool = False) -> None:
        self.written, self.deaths, self.torn = 0, deaths, torn
        self._next = next(deaths, None)


def _tear(path: Path, line: str) -> None:
    with path.open("a") as file:
        file.write(line[: len(line) // 2])
    os.symlink(path, f"{path}.lock")


@pytest.fixture
def journal(monkeypatch: pytest.MonkeyPatch) -> Journal:
    return Journal(monkeypatch)


@pytest.fixture
def run(
    open_study: OpenStudy, measured: Callable[..., Metrics], folder: SweepFolder
) -> Callable[[], list[tuple]]:
    """Runs a whole sweep of one worker, started again whenever the driver dies; what came of each trial."""

    def train(study: SweepStudy, assignment: Assignment) -> None:
        label = assignment.label
        done = int(assignment.checkpoints[0].name[-6:]) if assignment.checkpoints else 0
        for tick in range(done + 1, BUDGET + 1):
            fid = CURVES[label][tick - 1]
            said = Ending("diverged", "fid") if fid != fid else Ending("complete") if tick == BUDGET else None
            ending = study.report(label, tick=tick, metrics=measured(fid, tick), ending=said)
            study.add_checkpoint(label, path=folder.trials / label / f"{tick:06d}", tick=tick)
            if ending:
                study.end(label)
                return
        raise AssertionError(f"{label} went past its budget")

    def run() -> list[tuple]:
        folder.journal.unlink(missing_ok=True)
        while True:
            try:
                study = open_study(*SPACE)
                while assignment := study.ask():
                    train(study, assignment)
            except Died:
                continue
            return [
                (each.label, each.params, each.baseline, each.ticks, each.ending, each.checkpoints)
                for each in study.records()
            ]

    return run


@pytest.fixture
def undisturbed(run: Callable[[], list[tuple]], journal: Journal) -> list[tuple]:
    journal.begin(iter(()))
    return run()


def test_without_deaths_the_outcomes_are_those_known_on_paper(undisturbed: list[tuple]) -> None:
    assert [(label, ending.outcome, max(ticks)) for label, _, _, ticks, ending, _ in undisturbed] == [
        ("t001", "complete", 3),
        ("t002", "diverged", 2),
        ("t003", "pruned", 1),
    ]


@pytest.mark.filterwarnings("ignore:The constraint value is ignored")  # told again, after a death in between
def test_a_death_at_any_write_changes_nothing_that_is_recorded(
    run: Callable[[], list[tuple]], journal: Journal, undisturbed: list[tuple]
) -> None:
    writes = journal.written
    assert writes > 30

    for place in range(writes):
        journal.begin(iter([place]), torn=place % 2 == 0)
        assert run() == undisturbed, f"died at write {place}"


def test_neither_do_many_deaths(
    run: Callable[[], list[tuple]], journal: Journal, undisturbed: list[tuple]
) -> None:
    journal.begin(iter(range(11, 1000, 11)))

    assert run() == undisturbed
    assert journal.written > 3 * 11


def test_a_tick_and_its_answer_are_the_one_last_write_of_a_report(
    open_study: OpenStudy, measured: Callable[..., Metrics], folder: SweepFolder, journal: Journal
) -> None:
    study = open_study()
    study.ask(), study.ask()
    study.report("t001", tick=1, metrics=measured(50, 1), ending=None)
    journal.begin(iter(()))
    answer = study.report("t002", tick=1, metrics=measured(60, 1), ending=None)

    assert journal.written == 3
    last = json.loads(folder.journal.read_text().splitlines()[-1])
    assert last["user_attr"] == {
        "tick_1": {
            "metrics": measured(60, 1),
            "ending": [answer.outcome, answer.reason],
        }
    }


@pytest.mark.parametrize("writes", range(3))
def test_a_half_recorded_tick_is_repeated_and_decided_alike(
    open_study: OpenStudy, measured: Callable[..., Metrics], journal: Journal, writes: int
) -> None:
    """The writes of a report: the value, the rung, the tick."""
    study = open_study()
    study.ask(), study.ask()
    study.report("t001", tick=1, metrics=measured(50, 1), ending=None)
    journal.begin(iter([writes]))
    with pytest.raises(Died):
        study.report("t002", tick=1, metrics=measured(60, 1), ending=None)

    again = open_study()
    again.ask(), again.ask()
    assert (again.record("t002").tick, again.record("t002").ending) == (0, None)
    assert [trial.user_attrs["label"] for trial in again._study.get_trials()] == ["t001", "t002"]
    answer = again.report("t002", tick=1, metrics=measured(60, 1), ending=None)
    assert answer == Ending("pruned", "not among the best 1/3 at 1 kimg")
    assert again.record("t002").ticks == {1: measured(60, 1)}


def test_what_comes_next_does_not_depend_on_a_half_recorded_tick(
    open_study: OpenStudy, measured: Callable[..., Metrics], folder: SweepFolder, journal: Journal
) -> None:
    def offers(*deaths: int) -> list[dict[str, Any]]:
        folder.journal.unlink(missing_ok=True)
        study = open_study("pruner.name=none", "sweep.trials=26")
        waiting = [study.ask().label for _ in range(20)]
        journal.begin(iter(deaths))
        while waiting:  # the best two of twenty, which the sampler imitates, are the first and the last
            label, fid = waiting[0], 30 if waiting[0] in ("t001", "t020") else 60
            try:
                study.report(label, tick=1, metrics=measured(fid, 1), ending=Ending("complete"))
                study.end(waiting.pop(0))
            except Died:
                study = open_study("pruner.name=none", "sweep.trials=26")
                assert [study.ask().label for _ in waiting] == waiting
        return [study.ask().params for _ in range(6)]

    assert offers(1) == offers()


@pytest.mark.parametrize("writes", range(2))
@pytest.mark.parametrize("torn", [False, True])
def test_a_death_while_asking_leaves_no_trial_without_a_label(
    open_study: OpenStudy, folder: SweepFolder, journal: Journal, writes: int, torn: bool
) -> None:
    """The writes of asking: the trial with all that belongs to it, the attempt."""
    undisturbed = open_study("enqueue=[{gp_weight: 10}]", "sweep.trials=3")
    offered = [(each.label, each.params, each.baseline) for each in (undisturbed.ask() for _ in range(3))]
    for asked in range(3):
        folder.journal.unlink()
        study = open_study("enqueue=[{gp_weight: 10}]", "sweep.trials=3")
        for _ in range(asked):
            study.ask()
        journal.begin(iter([writes]), torn=torn)
        with pytest.raises(Died):
            study.ask()

        again = open_study("enqueue=[{gp_weight: 10}]", "sweep.trials=3")
        assert [record.label for record in again.records()] == ["t001", "t002", "t003"][: asked + writes]
        taken = [again.ask() for _ in range(3)]
        assert [(each.label, each.params, each.baseline) for each in taken] == offered
        assert (again.ask(), len(again._study.get_trials())) == (None, 3)
