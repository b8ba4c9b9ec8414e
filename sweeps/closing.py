"""The end of a start: the winner scored, the report written, the last records, the last words."""

import json
import math
import shlex
import sys
from dataclasses import dataclass, replace
from typing import Any

import ray

from sweeps import disk, report, store, tracking
from sweeps.cluster import ROOT
from sweeps.finalists import finalists, winner
from sweeps.folder import SweepFolder
from sweeps.interrupt import Interrupted
from sweeps.preparation import Ready
from sweeps.progress import View
from sweeps.ranking import ranking
from sweeps.recording import Recorder
from sweeps.records import TrialRecord
from sweeps.scheduling import describe
from sweeps.study import SweepStudy
from wgangp import files


@dataclass(frozen=True)
class SweepResult:
    """How one start of a sweep ended."""

    folder: SweepFolder
    records: list[TrialRecord]
    interruption: str
    """What stopped it before its end; empty if nothing did."""

    @property
    def winner(self) -> TrialRecord | None:
        """See `finalists.winner`."""
        return winner(self.records)

    @property
    def failed(self) -> int:
        """How many trials failed."""
        return sum(1 for record in self.records if record.ending and record.ending.outcome == "failed")

    @property
    def exit_status(self) -> int:
        """0: all ended and one is complete; 1: some failed, or none is complete; 130: interrupted."""
        if self.interruption:
            return 130
        return 1 if self.failed or self.winner is None else 0


def close(
    result: SweepResult,
    study: SweepStudy,
    ready: Ready,
    *,
    recorder: Recorder,
    tracker: tracking.Tracker,
    view: View,
    uri: str,
) -> SweepResult:
    """Write down how it ended and say so. After an interruption only what takes no time is done."""
    folder, ui = result.folder, shlex.join(store.ui_command(sys.executable, uri))
    fresh: report.Fresh = {}
    try:
        with disk.interrupting():
            fresh = _write_winner(result, study, ready, view=view)
    except Interrupted as interrupted:
        result = replace(result, interruption=result.interruption or str(interrupted))
    try:
        with disk.interrupting():
            report.write(
                folder,
                result.records,
                facts=ready.facts,
                fresh=fresh,
                milestones=study.space.milestones,
                costs=study.space.compare,
                tick_kimg=study.space.base.tick_kimg,
                ui=ui,
            )
            _record(result, recorder, fresh=fresh)
    except Interrupted as interrupted:
        result = replace(result, interruption=result.interruption or str(interrupted))
    try:
        check = (lambda: None) if result.interruption else ready.interrupt.check
        tracker.finish(patience=2 if result.interruption else 60, say=view.print, check=check)
    except Interrupted as interrupted:
        result = replace(result, interruption=str(interrupted))
    view.table(ranking(result.records))
    for line in report.answer(result.records, fresh):
        view.print(line)
    left = tracker.last_words()
    for line in left:
        view.print(line)
    _last_words(result, view, ui=ui, left=bool(left))
    return result


def _write_winner(result: SweepResult, study: SweepStudy, ready: Ready, *, view: View) -> report.Fresh:
    """Keep the winner's settings, and what it and the finalists score on fresh noise, by label.

    What an earlier start found is not found again.
    """
    folder, best = result.folder, result.winner
    if best is None:
        return {}
    path = folder.best / "scores.json"
    known = json.loads(path.read_text()) if path.exists() else {}
    if result.interruption:
        return known.get("scores", {}) if known.get("trial") == best.label else {}
    report.write_best(folder, best, study.config(best), facts=ready.facts)
    others = [one.trial for one in finalists(result.records) if one.trial.label != best.label]
    fresh = {}
    for trial in (best, *others):
        place = folder.best if trial is best else folder.finalists / trial.label
        is_there = known.get("trial") == best.label or trial is not best  # samples and generator of the same
        scores = known.get("scores", {}).get(trial.label) if is_there else None
        fresh[trial.label] = scores or _score(trial, study, ready, place=str(place), view=view)
    fresh = {label: scores for label, scores in fresh.items() if scores}
    if best.label in fresh:
        files.write(path, json.dumps({"trial": best.label, "scores": fresh}).encode())
    return fresh


def _score(
    trial: TrialRecord, study: SweepStudy, ready: Ready, *, place: str, view: View
) -> dict[str, float]:
    """What the best generator of a trial scores on fresh noise, its samples kept; empty if it cannot be."""
    view.say(f"scoring {trial.label} on fresh noise")
    checkpoint = str(trial.checkpoints[0])
    try:
        return ready.wait(ready.preparation.score_winner.remote(study.config(trial), checkpoint, place))
    except ray.exceptions.RayError as error:
        if disk.is_full(error):
            raise
        view.warn(
            f"{trial.label} could not be scored on fresh noise, --resume tries again: {describe(error)}"
        )
        return {}


def _record(result: SweepResult, recorder: Recorder, *, fresh: report.Fresh) -> None:
    outcome = {0: "complete", 1: "failed", 130: "interrupted"}[result.exit_status]
    best = result.winner
    scores = fresh.get(best.label, {}) if best else {}
    tags: dict[str, Any] = {"outcome": outcome}
    tags |= {f"winner_{name}": value for name, value in scores.items() if math.isfinite(value)}
    if decided := finalists(result.records):
        tags |= {"winner_fid_mean": decided[0].mean, "winner_fid_sd": decided[0].spread}
    samples = ["best/samples.png", "best.yaml"] if scores else []
    recorder.end_sweep(outcome, tags=tags, best=best, files=["report.md", *samples])


def _last_words(result: SweepResult, view: View, *, ui: str, left: bool) -> None:
    """What a person may want to do next, as commands to paste. `left`: not all has reached MLflow."""
    folder = result.folder
    resume = shlex.join([sys.executable, str(ROOT / "sweeps" / "run.py"), "--resume", str(folder.path)])
    if result.interruption:
        what = "free some space, then go on" if result.interruption == disk.WORDS else "go on"
        view.print(f"{result.interruption.capitalize()}; {what}: {resume}")
    elif result.failed:
        view.print(f"Try what failed again: {resume}")
    elif left:
        view.print(f"Send what is left: {resume}")
    if folder.report.exists():
        view.print(f"Report: {folder.report}")
    if result.winner and not result.interruption:
        train = ["env", f"PYTHONPATH={ROOT}", sys.executable, "-m", "wgangp.train", str(folder.best_yaml)]
        view.print(f"Train the winner: {shlex.join(train)}")
    view.print(f"Compare trials: {ui}")
