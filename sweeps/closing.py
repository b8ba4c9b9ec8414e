"""The end of a start: the winner scored, the report written, the last records, the last words."""

import json
import shlex
import sys
from dataclasses import dataclass, replace

import ray

from sweeps import disk, report, store, tracking
from sweeps.cluster import ROOT
from sweeps.folder import SweepFolder
from sweeps.interrupt import Interrupted
from sweeps.preparation import Ready
from sweeps.progress import View
from sweeps.recording import Recorder
from sweeps.records import TrialRecord, winner
from sweeps.scheduling import describe
from sweeps.study import SweepStudy


@dataclass(frozen=True)
class SweepResult:
    """How one start of a sweep ended."""

    folder: SweepFolder
    records: list[TrialRecord]
    interruption: str
    """What stopped it before its end; empty if nothing did."""

    @property
    def winner(self) -> TrialRecord | None:
        """The complete trial with the lowest best FID."""
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
    fresh = _scores_of(folder, result.winner)
    try:
        with disk.interrupting():
            fresh = fresh or _write_winner(result, study, ready, view=view)
    except Interrupted as interrupted:
        result = replace(result, interruption=result.interruption or str(interrupted))
    try:
        with disk.interrupting():
            report.write(folder, result.records, facts=ready.facts, fresh=fresh, ui=ui)
            _record(result, recorder, fresh=fresh)
    except Interrupted as interrupted:
        result = replace(result, interruption=result.interruption or str(interrupted))
    try:
        check = (lambda: None) if result.interruption else ready.interrupt.check
        tracker.finish(patience=2 if result.interruption else 60, say=view.print, check=check)
    except Interrupted as interrupted:
        result = replace(result, interruption=str(interrupted))
    view.table(report.ranking(result.records))
    for line in report.answer(result.records, fresh):
        view.print(line)
    left = tracker.last_words()
    for line in left:
        view.print(line)
    _last_words(result, view, ui=ui, left=bool(left))
    return result


def _write_winner(result: SweepResult, study: SweepStudy, ready: Ready, *, view: View) -> dict[str, float]:
    """Keep the winner's settings, and what its best generator scores on fresh noise; empty without one."""
    folder, best = result.folder, result.winner
    if best is None or result.interruption:
        return {}
    config, checkpoint = study.config(best), best.checkpoints[0]
    report.write_best(folder, best, config, facts=ready.facts)
    view.say("scoring the winner on fresh noise")
    try:
        fresh = ready.wait(ready.preparation.score_winner.remote(config, str(checkpoint), str(folder.best)))
    except ray.exceptions.RayError as error:
        if disk.is_full(error):
            raise
        view.warn(f"the winner could not be scored on fresh noise, --resume tries again: {describe(error)}")
        return {}
    aside = folder.best / ".scores.json.new"
    aside.write_text(json.dumps({"trial": best.label, "scores": fresh}))
    aside.replace(folder.best / "scores.json")
    return fresh


def _record(result: SweepResult, recorder: Recorder, *, fresh: dict[str, float]) -> None:
    outcome = {0: "complete", 1: "failed", 130: "interrupted"}[result.exit_status]
    tags = {"outcome": outcome} | {f"winner_{name}": value for name, value in fresh.items()}
    samples = ["best/samples.png", "best.yaml"] if fresh else []
    recorder.end_sweep(outcome, tags=tags, files=["report.md", *samples])


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


def _scores_of(folder: SweepFolder, best: TrialRecord | None) -> dict[str, float]:
    """What an earlier start found of the same winner on fresh noise; empty if there is none."""
    path = folder.best / "scores.json"
    known = json.loads(path.read_text()) if path.exists() else {}
    return known["scores"] if best and known.get("trial") == best.label else {}
