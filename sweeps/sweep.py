"""One start of a sweep: Ray, preparation, the Tuner, the end. The door for the command line and programs."""

import contextlib
import json
import logging
import platform
import secrets
import shlex
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import ray
from ray import tune

from sweeps import folder as folders
from sweeps import report, space_file, tracking
from sweeps.cluster import ROOT, Cluster, cluster
from sweeps.folder import SweepFolder
from sweeps.interrupt import Interrupt, Interrupted
from sweeps.outbox import Outbox
from sweeps.preparation import Preparation
from sweeps.progress import View
from sweeps.recording import Recorder
from sweeps.records import TrialRecord, winner
from sweeps.scheduling import StudyScheduler, StudySearcher
from sweeps.space import Space
from sweeps.study import SweepStudy
from sweeps.trial import SweepTrial
from wgangp import settings_file
from wgangp.errors import UserError

log = logging.getLogger(__name__)

MEMORY_LIMIT = 4_000_000_000
"""Bytes past which a worker drops what it has compiled, or gives way to a fresh one."""


@dataclass(frozen=True)
class SweepResult:
    """How one start of a sweep ended."""

    folder: SweepFolder
    records: list[TrialRecord]
    interrupted: bool

    @property
    def winner(self) -> TrialRecord | None:
        """The complete trial with the lowest best FID."""
        return winner(self.records)

    @property
    def exit_status(self) -> int:
        """0: all ended and one is complete; 1: some failed, or none is complete; 130: interrupted."""
        if self.interrupted:
            return 130
        failed = any(record.ending and record.ending.outcome == "failed" for record in self.records)
        return 1 if failed or self.winner is None else 0


def run_sweep(
    space: Space, *, out: Path = Path("runs"), trainer: str = "wgangp.trainer", view: View | None = None
) -> SweepResult:
    """Run a new sweep.

    Args:
        space: from `space_file.load`.
        out: the folder for everything; made if missing.
        trainer: a module with the public functions of `wgangp.trainer`.
        view: what shows it; the terminal by default.

    Raises:
        UserError: at the second gate; nothing was left behind.
    """
    view = view or View()
    with _prepared(space, out=out, trainer=trainer, view=view, frozen=None) as ready:
        folder = folders.claim(out, space.name)
        with folder.locked():
            settings_file.dump(space.values(), folder.space, comment=f"Frozen from {space.source.name}.")
            return _run(folder, space, ready, view=view, trials=None)


def resume_sweep(
    folder: SweepFolder,
    *,
    trials: int | None = None,
    trainer: str = "wgangp.trainer",
    view: View | None = None,
) -> SweepResult:
    """Go on with a sweep: interrupted and failed trials, then missing ones; `trials` extends it.

    Raises:
        UserError: it is running, or what it was scored with is gone or changed.
    """
    view = view or View()
    space = frozen_space(folder)
    with folder.locked():
        frozen = folder.features if (folder.features / "features.json").exists() else None
        with _prepared(space, out=folder.out, trainer=trainer, view=view, frozen=frozen) as ready:
            return _run(folder, space, ready, view=view, trials=trials)


def plan(space: Space, *, out: Path, view: View) -> None:
    """`--check`: both gates, then what would be run; no trial starts and nothing is left behind."""
    with _prepared(space, out=out, trainer="wgangp.trainer", view=view, frozen=None) as ready:
        for line in _plan_lines(space, ready):
            view.print(line)


@dataclass(frozen=True)
class _Ready:
    """A cluster and what the trials on it share."""

    cluster: Cluster
    capacity: int
    preparation: Any
    prepared: Any
    facts: dict[str, Any]
    trainer: str
    interrupt: Interrupt


@contextlib.contextmanager
def _prepared(space: Space, *, out: Path, trainer: str, view: View, frozen: Path | None) -> Iterator[_Ready]:
    """The second gate: start Ray, prepare data and features, check what needs them."""
    tracking.tracking_uri(out)
    view.say("starting Ray")
    with cluster() as there, Interrupt() as interrupt:
        preparation = ray.remote(Preparation).options(num_cpus=0, max_concurrency=2).remote(trainer)
        cache = folders.cache(out)
        promised: Any = preparation.prepare.remote(space.base, str(cache), str(frozen) if frozen else None)
        facts_ref, prepared = promised
        facts = _wait(facts_ref, preparation, view=view, interrupt=interrupt)
        problems = list(facts.get("problems", []))
        images = facts.get("train_images", sys.maxsize)
        problems += space.problems_when_prepared(train_images=images, cpus=there.cpus, gpus=there.gpus)
        if problems:
            raise UserError(*problems)
        view.print(
            f"  {facts['dataset']}: {facts['train_images']} training and {facts['heldout_images']} held-out"
            f" images, {facts['image_size']}; {facts['features']} accuracy {facts['features_accuracy']:.3f}"
        )
        resources, most = space.resources, space.sweep.max_concurrent
        capacity = there.capacity(cpus=resources.cpus, gpus=resources.gpus, most=most)
        yield _Ready(there, capacity, preparation, prepared, facts, trainer, interrupt)


def _wait(reference: Any, preparation: Any, *, view: View, interrupt: Interrupt) -> Any:
    while True:
        interrupt.check()
        done, _ = ray.wait([reference], timeout=0.3)
        if done:
            return ray.get(reference)
        doing, _ = ray.wait([preparation.doing.remote()], timeout=0.3)
        if doing:
            view.say(ray.get(doing[0]))


def _plan_lines(space: Space, ready: _Ready) -> list[str]:
    base = space.base
    rungs = ", ".join(f"{rung * base.tick_kimg:g}" for rung in space.rungs) or "none"
    return [
        f"  trials {space.sweep.trials} ({len(space.enqueue)} baselines), {ready.capacity} at once,"
        f" {space.sampler.name} sampler",
        f"  budget {base.budget_kimg:g} kimg in ticks of {base.tick_kimg:g}; compared at {rungs} kimg",
        f"  each trial: {space.resources.cpus:g} CPUs, {space.resources.gpus:g} GPUs,"
        f" {space.resources.replicas} replica(s)",
    ]


def _run(folder: SweepFolder, space: Space, ready: _Ready, *, view: View, trials: int | None) -> SweepResult:
    """Everything under the sweep's lock, from the study to the report."""
    uri = tracking.tracking_uri(folder.out)
    with _log_to(folder.log):
        if not (folder.features / "features.json").exists():
            ray.get(ready.preparation.freeze.remote(str(folder.features)))
        sweep_id = _sweep_id(folder)
        study = SweepStudy(folder, space, sweep_id=sweep_id, trials=trials)
        outbox = Outbox(folder.outbox)
        recorder = Recorder(study, outbox)
        recorder.begin_sweep(tags=_provenance(ready.facts), files=[folder.space.name])
        tracker = tracking.Tracker(folder, outbox, sweep_id=sweep_id, experiment=space.name, uri=uri)
        tracker.start()
        for line in _plan_lines(space, ready):
            view.print(line)
        view.print(f"  {folder.path}")
        interrupted = False
        try:
            _tune(folder, space, ready, study=study, recorder=recorder, view=view)
        except Interrupted:
            interrupted = True
        result = SweepResult(folder, study.final_records(), interrupted)
        _finish(result, study, ready, recorder=recorder, tracker=tracker, view=view, uri=uri)
        return result


def _tune(
    folder: SweepFolder, space: Space, ready: _Ready, *, study: SweepStudy, recorder: Recorder, view: View
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
    view.begin(name=folder.name, wanted=study.trials_wanted, budget_kimg=space.base.budget_kimg)
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


def _attempt_name(assignment: Any) -> str:
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


def _finish(
    result: SweepResult,
    study: SweepStudy,
    ready: _Ready,
    *,
    recorder: Recorder,
    tracker: tracking.Tracker,
    view: View,
    uri: str,
) -> None:
    """Report, last records, last words. After an interruption only what takes no time."""
    folder, best = result.folder, result.winner
    ui = shlex.join(tracking.ui_command(sys.executable, uri))
    fresh: dict[str, float] = {}
    if best and not result.interrupted:
        view.say("scoring the winner on fresh noise")
        config = study.config(best)
        fresh = ray.get(
            ready.preparation.score_winner.remote(config, str(best.checkpoints[0]), str(folder.best))
        )
        (folder.best / "scores.json").write_text(json.dumps(fresh))
        report.write_best(folder, best, config, facts=ready.facts)
    report.write(folder, result.records, facts=ready.facts, fresh=fresh, ui=ui)
    outcome = {0: "complete", 1: "failed", 130: "interrupted"}[result.exit_status]
    tags = {"outcome": outcome} | {f"winner_{name}": value for name, value in fresh.items()}
    samples = ["best/samples.png", "best.yaml"] if fresh else []
    recorder.end_sweep(outcome, tags=tags, files=["report.md", *samples])
    unsent = tracker.finish(patience=2 if result.interrupted else 60)
    view.table(report.ranking(result.records))
    for line in report.answer(result.records, fresh):
        view.print(line)
    if unsent:
        view.print(f"{unsent} records have not reached MLflow ({tracker.trouble}); --resume sends them.")
    if result.exit_status:
        command = [sys.executable, str(ROOT / "sweeps" / "run.py"), "--resume", str(folder.path)]
        words = {1: "Try what failed again", 130: "Interrupted. Go on"}[result.exit_status]
        view.print(f"{words}: {shlex.join(command)}")
    view.print(f"Report: {folder.report}")
    if best and not result.interrupted:
        view.print(
            f"Train the winner: {shlex.join([sys.executable, '-m', 'wgangp.train', str(folder.best_yaml)])}"
        )
    view.print(f"Compare trials: {ui}")


def _sweep_id(folder: SweepFolder) -> str:
    """A name no other sweep has, also in a database shared by several folders."""
    path = folder.path / "id"
    if not path.exists():
        aside = folder.path / ".id.new"
        aside.write_text(f"{folder.name}-{secrets.token_hex(4)}\n")
        aside.replace(path)
    return path.read_text().strip()


def _provenance(facts: dict[str, Any]) -> dict[str, Any]:
    """Versions, commit, data and features, as tags of the parent run."""
    names = ("ray", "tensorflow", "keras", "optuna", "mlflow", "numpy")
    versions = {f"version_{name}": version(name) for name in names} | {
        "version_python": platform.python_version()
    }
    git = subprocess.run(
        ["git", "-C", str(ROOT), "describe", "--always", "--dirty", "--abbrev=40"],
        capture_output=True,
        text=True,
    )
    commit = {"git_commit": git.stdout.strip()} if git.returncode == 0 else {}
    return versions | commit | facts


@contextlib.contextmanager
def _log_to(path: Path) -> Iterator[None]:
    """Warnings of ours and of the libraries go to the sweep's log, not over the table."""
    handler = logging.FileHandler(path, encoding="utf-8")
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    root = logging.getLogger()
    kept, root.handlers = root.handlers, [handler]
    try:
        yield
    finally:
        root.handlers = kept
        handler.close()
