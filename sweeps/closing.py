"""The end of a start: the winner scored, the report written, the last records, the last words."""

import json
import logging
import math
import shlex
import shutil
import sys
from dataclasses import replace
from typing import Any

import ray

from sweeps import disk, report, shared_view, tracking
from sweeps.answer import answer
from sweeps.cluster import ROOT
from sweeps.finalists import finalists
from sweeps.interrupt import Interrupted
from sweeps.preparation import GENERATOR, Ready
from sweeps.progress import View
from sweeps.ranking import ranking
from sweeps.recording import Recorder
from sweeps.records import TrialRecord
from sweeps.results import Fresh, Results, keep_scores, kept_scores
from sweeps.scheduling import describe
from sweeps.study import SweepStudy
from wgangp.wording import error_words

log = logging.getLogger(__name__)

SHOWN_AS_TABLE = "mlflow.loggedArtifacts"
"""The tag by which MLflow's pages know which files are tables; `log_table` would append to the old one."""
_TABLES = json.dumps([{"path": "trials.json", "type": "table"}])


def close(
    results: Results,
    study: SweepStudy,
    ready: Ready,
    *,
    recorder: Recorder,
    tracker: tracking.Tracker,
    view: View,
) -> Results:
    """Write down how it ended and say so. After an interruption only what takes no time is done."""
    try:
        with disk.interrupting():
            results = replace(results, fresh=_write_winner(results, study, ready, view=view))
    except Interrupted as interrupted:
        results = replace(results, interruption=results.interruption or str(interrupted))
    try:
        with disk.interrupting():
            write_report(results)
            _record(results, recorder)
    except Interrupted as interrupted:
        results = replace(results, interruption=results.interruption or str(interrupted))
    try:
        check = (lambda: None) if results.interruption else ready.interrupt.check
        tracker.finish(patience=2 if results.interruption else 60, say=view.print, check=check)
    except Interrupted as interrupted:
        results = replace(results, interruption=str(interrupted))
    view.table(ranking(results.records))
    for line in answer(results):
        view.print(line)
    left = tracker.last_words()
    for line in left:
        view.print(line)
    shown_at = ""
    if tracker.experiment_id:
        shown_at = shared_view.address(tracker.experiment_id, sweep=results.folder.first_name)
    _last_words(results, view, left=bool(left), shown_at=shown_at)
    return results


def write_report(results: Results) -> None:
    """Write the report. A fault in it, but for a full disk, is said and costs no trial."""
    try:
        report.write(results)
    except Exception as error:
        if disk.is_full(error):
            raise
        log.warning("the report could not be written: %s", error_words(error))


def _write_winner(results: Results, study: SweepStudy, ready: Ready, *, view: View) -> Fresh:
    """Keep the winner's settings, and what it and the finalists score on fresh noise, by label.

    What an earlier start found is not found again.
    """
    folder, best = results.folder, results.winner
    if best is None:
        return {}
    before, known = kept_scores(folder)
    if results.interruption:
        return known if before == best.label else {}
    report.write_best(folder, best, study.config(best), facts=ready.facts)
    others = [one.trial for one in finalists(results.records) if one.trial.label != best.label]
    fresh = {}
    for trial in (best, *others):
        place = folder.best if trial is best else folder.finalists / trial.label
        is_there = before == best.label or trial is not best  # samples and generator of the same
        scores = known.get(trial.label) if is_there else None
        fresh[trial.label] = scores or _score(trial, study, ready, place=str(place), view=view)
    fresh = {label: scores for label, scores in fresh.items() if scores}
    if best.label in fresh:
        _write_model(best, results, study, ready, view=view, again=before != best.label)
        keep_scores(folder, best.label, fresh)
    return fresh


def _write_model(
    best: TrialRecord, results: Results, study: SweepStudy, ready: Ready, *, view: View, again: bool
) -> None:
    """Keep the winner's generator as a Keras model, and as a model of MLflow's around it."""
    folder = results.folder
    if folder.model.exists() and not again:
        return
    shutil.rmtree(folder.model, ignore_errors=True)
    (folder.best / GENERATOR).unlink(missing_ok=True)
    view.say("packing the winner's generator as a model")
    checkpoint, place = str(best.checkpoints[0]), str(folder.best)
    try:
        why = ready.wait(ready.preparation.export_winner.remote(study.config(best), checkpoint, place))
        if not why:
            ready.wait(ready.preparation.package_winner.remote(place, seed=study.space.sweep.seed))
    except ray.exceptions.RayError as error:
        if disk.is_full(error):
            raise
        why = describe(error)
    if why:
        view.warn(f"{best.label} is not kept as a model: {why}")


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


def _record(results: Results, recorder: Recorder) -> None:
    folder, best = results.folder, results.winner
    outcome = {0: "complete", 1: "failed", 130: "interrupted"}[results.exit_status]
    scores = results.fresh.get(best.label, {}) if best else {}
    tags: dict[str, Any] = {"outcome": outcome}
    tags |= {f"winner_{name}": value for name, value in scores.items() if math.isfinite(value)}
    if decided := finalists(results.records):
        tags |= {"winner_fid_mean": decided[0].mean, "winner_fid_sd": decided[0].spread}
    paths = [folder.report, folder.page, folder.wall, folder.table, folder.best / "samples.png"]
    paths += [folder.best_yaml] if scores else []
    files = [str(path.relative_to(folder.path)) for path in paths if path.exists()]
    model: dict[str, Any] = {}
    if best and scores and folder.model.exists():
        model = {
            "folder": str(folder.model.relative_to(folder.path)),
            "name": results.space.name,
            "tags": {
                "trial": best.label,
                "fid": scores["fid_fresh"],
                "features_sha256": results.facts["features_sha256"],
            },
        }
    tags |= {SHOWN_AS_TABLE: _TABLES}
    recorder.end_sweep(outcome, tags=tags, best=best, files=files, model=model)


def _last_words(results: Results, view: View, *, left: bool, shown_at: str) -> None:
    """What a person may want to do next, as commands to paste.

    Args:
        results: of the sweep.
        view: shows it.
        left: not all has reached MLflow.
        shown_at: behind the address of MLflow's pages; empty if they know nothing yet.
    """
    folder = results.folder
    resume = shlex.join([sys.executable, str(ROOT / "sweeps" / "run.py"), "--resume", str(folder.path)])
    if results.interruption:
        what = "free some space, then go on" if results.interruption == disk.WORDS else "go on"
        view.print(f"{results.interruption.capitalize()}; {what}: {resume}")
    elif results.failed:
        view.print(f"Try what failed again: {resume}")
    elif left:
        view.print(f"Send what is left: {resume}")
    if folder.page.exists():
        view.print(f"Report: {folder.page}")
    if results.winner and not results.interruption:
        python = ["env", f"PYTHONPATH={ROOT}", sys.executable, "-m"]
        if (folder.best / GENERATOR).exists():
            view.print(f"Draw from the winner: {shlex.join([*python, 'wgangp.sample', str(folder.best)])}")
        view.print(f"Train the winner: {shlex.join([*python, 'wgangp.train', str(folder.best_yaml)])}")
    view.print(f"Compare trials: {results.ui}")
    if shown_at:
        pages = results.ui if results.ui.startswith("http") else "http://127.0.0.1:5000"
        view.print(f"  then open {pages.rstrip('/')}/{shown_at}")
