"""Ray Tune, set up so that the study is the record: one Tuner for one start of a sweep."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ray import tune

from sweeps import disk, memory
from sweeps.folder import SweepFolder
from sweeps.interrupt import Interrupt, Interrupted
from sweeps.preparation import Ready
from sweeps.progress import View
from sweeps.recording import Recorder
from sweeps.records import Assignment
from sweeps.scheduling import StudyScheduler, StudySearcher
from sweeps.space import Space
from sweeps.study import SweepStudy
from sweeps.tracking import Tracker
from sweeps.trial import SweepTrial

MEMORY_LIMIT = 4_000_000_000
"""Bytes past which a worker drops what it has compiled, or gives way to a fresh one."""


def tune_trials(
    folder: SweepFolder,
    space: Space,
    ready: Ready,
    *,
    study: SweepStudy,
    recorder: Recorder,
    tracker: Tracker,
    view: View,
    write_report: Callable[[], None],
) -> None:
    """Run trials until none is left to run.

    Args:
        folder: the sweep's.
        space: what is searched.
        ready: what trials share.
        study: hands out trials and judges them.
        recorder: is told what happens.
        tracker: asked now and then what a person should know.
        view: shows it.
        write_report: writes the report of the sweep as it stands.

    Raises:
        Interrupted: a signal came, or the disk is full.
    """
    resources = space.resources
    shared = {
        "prepared": ready.prepared,
        "trainer": ready.trainer,
        "resources": resources.of_each,
        "roles": resources.roles,
        "cores": resources.cores,
        "memory_limit": MEMORY_LIMIT,
    }
    searcher = StudySearcher(study)
    view.begin(
        name=folder.name,
        wanted=study.trials_wanted,
        finalist_runs=space.finalists.count * space.finalists.seeds,
        budget_kimg=space.base.budget_kimg,
        expected_kimg=space.expected_kimg,
        cores=ready.capacity * resources.all_cpus,
    )
    tuner = tune.Tuner(
        tune.with_resources(
            tune.with_parameters(SweepTrial, shared=shared),
            tune.PlacementGroupFactory(resources.bundles),
        ),
        tune_config=tune.TuneConfig(
            search_alg=searcher,
            scheduler=StudyScheduler(study, searcher),
            num_samples=-1,
            max_concurrent_trials=ready.capacity,
            reuse_actors=True,
            trial_name_creator=lambda trial: trial.config["assignment"].label,
            trial_dirname_creator=lambda trial: _attempt_name(trial.config["assignment"]),
        ),
        run_config=tune.RunConfig(
            name=folder.next_invocation(),
            storage_path=str(folder.trials),
            callbacks=[recorder, _Watch(study, view, tracker, ready.interrupt, write_report)],
            checkpoint_config=tune.CheckpointConfig(checkpoint_frequency=1),  # the study says which stay
            verbose=0,
        ),
    )
    try:
        with disk.interrupting(), memory.costs_only_the_worker():
            tuner.fit()
    finally:
        view.close()


def _attempt_name(assignment: Assignment) -> str:
    return assignment.label if assignment.attempt == 1 else f"{assignment.label}-{assignment.attempt}"


class _Watch(tune.Callback):
    """Checkpoints into the study, what happened into the view, signals into an orderly stop."""

    def __init__(
        self,
        study: SweepStudy,
        view: View,
        tracker: Tracker,
        interrupt: Interrupt,
        write_report: Callable[[], None],
    ) -> None:
        self._study, self._view, self._tracker, self._interrupt = study, view, tracker, interrupt
        self._draw = _Seldom(lambda: view.update(study.records(), study.live))
        self._report = _Seldom(write_report)
        self._news = False

    def __getstate__(self) -> dict[str, Any]:
        return {}

    def on_trial_result(self, iteration: int, trials: list, trial: Any, result: dict, **info: Any) -> None:
        self._draw()
        self._view.tick(self._study.record(result["label"]))

    def on_checkpoint(self, iteration: int, trials: list, trial: Any, checkpoint: Any, **info: Any) -> None:
        label = trial.config["assignment"].label
        tick = trial.last_result["tick"]
        with disk.interrupting():  # Tune goes on over any other error here
            self._study.add_checkpoint(label, path=Path(checkpoint.path), tick=tick)

    def on_trial_complete(self, iteration: int, trials: list, trial: Any, **info: Any) -> None:
        self._draw()
        self._view.ended(self._study.record(trial.config["assignment"].label))
        self._news = True

    on_trial_error = on_trial_complete

    def on_step_end(self, iteration: int, trials: list, **info: Any) -> None:
        try:
            self._interrupt.check()
        except Interrupted:
            self._view.say("stopping")
            raise
        self._tracker.tell(self._view.print)
        self._draw(pause=1)
        if self._news:
            with disk.interrupting():
                self._news = not self._report()


class _Seldom:
    """Does something for at most a twentieth of the time: there may be thousands of trials to look at."""

    def __init__(self, do: Callable[[], None]) -> None:
        self._do, self._next = do, 0.0

    def __call__(self, *, pause: float = 0) -> bool:
        """Do it, unless it was done too lately, or less than `pause` seconds ago; whether it was done."""
        begin = time.monotonic()
        if begin < self._next + pause:
            return False
        self._do()
        end = time.monotonic()
        self._next = end + 20 * (end - begin)
        return True
