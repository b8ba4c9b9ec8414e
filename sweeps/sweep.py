"""One start of a sweep: Ray, preparation, the Tuner, the end. The door for the command line and programs."""

import contextlib
import json
import logging
import platform
import secrets
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import ray

from sweeps import folder as folders
from sweeps import report, space_file, tracking
from sweeps.cluster import ROOT
from sweeps.folder import SweepFolder
from sweeps.interrupt import Interrupted
from sweeps.outbox import Outbox
from sweeps.preparation import Ready, plan_lines, prepared
from sweeps.progress import View
from sweeps.recording import Recorder
from sweeps.records import TrialRecord, winner
from sweeps.space import Space
from sweeps.study import SweepStudy
from sweeps.tuning import tune_trials
from wgangp import settings_file

log = logging.getLogger(__name__)


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
    with prepared(space, out=out, trainer=trainer, view=view, frozen=None) as ready:
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
    """Go on with a sweep: interrupted and failed trials, then missing ones.

    Args:
        folder: from `folder.find`.
        trials: extends the sweep to that many in all.
        trainer: as for `run_sweep`.
        view: as for `run_sweep`.

    Raises:
        UserError: it is running, or what it was scored with is gone or changed.
    """
    view = view or View()
    space = space_file.load(folder.space)
    with folder.locked():
        frozen = _frozen_features(folder)
        with prepared(space, out=folder.out, trainer=trainer, view=view, frozen=frozen) as ready:
            return _run(folder, space, ready, view=view, trials=trials)


def plan(
    space: Space,
    *,
    out: Path,
    view: View,
    resumed: SweepFolder | None = None,
    trainer: str = "wgangp.trainer",
) -> None:
    """`--check`: both gates, then what would be run; no trial starts and nothing is left behind.

    `resumed`: the sweep that would go on, whose frozen features must hold.
    """
    frozen = _frozen_features(resumed) if resumed else None
    with prepared(space, out=out, trainer=trainer, view=view, frozen=frozen) as ready:
        for line in plan_lines(space, ready, trials=space.sweep.trials):
            view.print(line)


def _run(folder: SweepFolder, space: Space, ready: Ready, *, view: View, trials: int | None) -> SweepResult:
    """Everything under the sweep's lock, from the study to the report."""
    uri = tracking.tracking_uri(folder.out)
    with _log_to(folder.log):
        if _frozen_features(folder) is None:
            ray.get(ready.preparation.freeze.remote(str(folder.features)))
        sweep_id = _sweep_id(folder)
        study = SweepStudy(folder, space, sweep_id=sweep_id, trials=trials)
        study.drop_unrecorded_checkpoints()
        outbox = Outbox(folder.outbox)
        recorder = Recorder(study, outbox)
        recorder.begin_sweep(tags=_provenance(ready.facts), files=[folder.space.name])
        tracker = tracking.Tracker(folder, outbox, sweep_id=sweep_id, experiment=space.name, uri=uri)
        tracker.start()
        for line in plan_lines(space, ready, trials=study.trials_wanted):
            view.print(line)
        view.print(f"  {folder.path}")
        interrupted = False
        try:
            tune_trials(folder, space, ready, study=study, recorder=recorder, view=view)
        except Interrupted:
            interrupted = True
        study.drop_unrecorded_checkpoints()
        result = SweepResult(folder, study.final_records(), interrupted)
        _finish(result, study, ready, recorder=recorder, tracker=tracker, view=view, uri=uri)
        return result


def _finish(
    result: SweepResult,
    study: SweepStudy,
    ready: Ready,
    *,
    recorder: Recorder,
    tracker: tracking.Tracker,
    view: View,
    uri: str,
) -> None:
    """Report, last records, last words. After an interruption only what takes no time."""
    folder, best = result.folder, result.winner
    ui = shlex.join(tracking.ui_command(sys.executable, uri))
    fresh = _scores_of(folder, best)
    if best and not fresh and not result.interrupted:
        view.say("scoring the winner on fresh noise")
        config, checkpoint = study.config(best), best.checkpoints[0]
        fresh = ray.get(ready.preparation.score_winner.remote(config, str(checkpoint), str(folder.best)))
        (folder.best / "scores.json").write_text(json.dumps({"trial": best.label, "scores": fresh}))
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
        train = ["env", f"PYTHONPATH={ROOT}", sys.executable, "-m", "wgangp.train", str(folder.best_yaml)]
        view.print(f"Train the winner: {shlex.join(train)}")
    view.print(f"Compare trials: {ui}")


def _scores_of(folder: SweepFolder, best: TrialRecord | None) -> dict[str, float]:
    """What an earlier start found of the same winner on fresh noise; empty if there is none."""
    path = folder.best / "scores.json"
    known = json.loads(path.read_text()) if path.exists() else {}
    return known["scores"] if best and known.get("trial") == best.label else {}


def _frozen_features(folder: SweepFolder) -> Path | None:
    """None: the sweep was stopped before they were kept; they are made again."""
    return folder.features if (folder.features / "features.json").exists() else None


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
    versions = {f"version_{name}": version(name) for name in names}
    versions["version_python"] = platform.python_version()
    commit = {}
    if shutil.which("git"):
        describe = ["git", "-C", str(ROOT), "describe", "--always", "--dirty", "--abbrev=40"]
        git = subprocess.run(describe, capture_output=True, text=True)
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
