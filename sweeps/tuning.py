"""Ray Tune, set up so that the study is the record: one Tuner for one start of a sweep."""

import time
from pathlib import Path
from typing import Any

from ray import tune

from sweeps.folder import SweepFolder
from sweeps.interrupt import Interrupt
from sweeps.preparation import Ready
from sweeps.progress import View
from sweeps.recording import Recorder
from sweeps.records import Assignment
from sweeps.scheduling import StudyScheduler, StudySearcher
from sweeps.space import Space
from sweeps.study import SweepStudy
from sweeps.trial import SweepTrial

MEMORY_LIMIT = 4_000_000_000
"""Bytes past which a worker drops what it has compiled, or gives way to a fresh one."""


def tune_trials(
    folder: SweepFolder, space: Space, ready: Ready, *, study: SweepStudy, recorder: Recorder, view: View
) -> None:
    resources = space.resources
    shared = {
        "prepared": ready.prepared,
        "trainer": ready.trainer,
        "resources": {
            "strategy": resources.strategy,
            "cpus": max(1, int(resources.cpus)),
            "gpus": resources.gpus,
        },
        "memory_limit": MEMORY_LIMIT,
    }
    bundle = {"CPU": resources.cpus} | ({"GPU": resources.gpus} if resources.gpus else {})
    searcher = StudySearcher(study)
    view.begin(
        name=folder.name,
        wanted=study.trials_wanted,
        budget_kimg=space.base.budget_kimg,
        expected_kimg=space.expected_kimg,
        cores=ready.capacity * resources.cpus,
    )
    tuner = tune.Tuner(
        tune.with_resources(
            tune.with_parameters(SweepTrial, shared=shared), tune.PlacementGroupFactory([bundle])
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
            callbacks=[recorder, _Watch(study, view, ready.interrupt)],
            checkpoint_config=tune.CheckpointConfig(checkpoint_frequency=1),  # the study says which stay
            verbose=0,
        ),
    )
    try:
        tuner.fit()
    finally:
        view.close()


def _attempt_name(assignment: Assignment) -> str:
    return assignment.label if assignment.attempt == 1 else f"{assignment.label}-{assignment.attempt}"


class _Watch(tune.Callback):
    """Checkpoints into the study, what happened into the view, signals into an orderly stop."""

    def __init__(self, study: SweepStudy, view: View, interrupt: Interrupt) -> None:
        self._study, self._view, self._interrupt = study, view, interrupt
        self._drawn = 0.0

    def __getstate__(self) -> dict[str, Any]:
        return {}

    def on_trial_result(self, iteration: int, trials: list, trial: Any, result: dict, **info: Any) -> None:
        self._draw()
        self._view.tick(self._study.record(result["label"]))

    def on_checkpoint(self, iteration: int, trials: list, trial: Any, checkpoint: Any, **info: Any) -> None:
        label = trial.config["assignment"].label
        tick = trial.last_result["tick"]
        self._study.add_checkpoint(label, path=Path(checkpoint.path), tick=tick)

    def on_trial_complete(self, iteration: int, trials: list, trial: Any, **info: Any) -> None:
        self._draw()
        self._view.ended(self._study.record(trial.config["assignment"].label))

    on_trial_error = on_trial_complete

    def on_step_end(self, iteration: int, trials: list, **info: Any) -> None:
        self._interrupt.check()
        if time.monotonic() - self._drawn > 1:
            self._draw()

    def _draw(self) -> None:
        self._drawn = time.monotonic()
        self._view.update(self._study.records(), self._study.live)
