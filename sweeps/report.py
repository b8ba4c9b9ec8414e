"""Ended trials -> `report.md`, `report.html` and `best.yaml`; what a sweep found, to be passed on."""

import math
from pathlib import Path
from typing import Any

from sweeps import choices, early, page, pareto, plots, wall
from sweeps.answer import paragraph
from sweeps.finalists import Finalist, finalists
from sweeps.folder import SweepFolder
from sweeps.markdown import items, section, table
from sweeps.ranking import ranking, told_apart
from sweeps.records import TrialRecord, tenths, trials_of, verdict
from sweeps.results import ENOUGH, Fresh, Results, frame
from wgangp import files, settings_file
from wgangp.config import TrainConfig


def write(results: Results) -> None:
    """Write `report.md`, `report.html`, the sample wall and the table of trials; each whole or not at all."""
    folder = results.folder
    if picture := wall.draw(results):
        files.write(folder.wall, picture)
    trials = frame(results.records).to_json(orient="split", index=False)
    files.write(folder.table, trials.encode())
    text = markdown(results)
    files.write(folder.report, text.encode())
    files.write(folder.page, page.html(text, results).encode())


def markdown(results: Results) -> str:
    """The report, answer first."""
    records, tick_kimg = results.records, results.space.base.tick_kimg
    decided, folder = finalists(records), results.folder
    agreed = early.agreements(records, rungs=results.space.milestones, tick_kimg=tick_kimg)
    weighed = pareto.table(records, results.space.compare, tick_kimg=tick_kimg)
    reasons = [
        f"{record.label} {record.ending.outcome}: {record.ending.reason}"
        for record in records
        if record.ending and record.ending.outcome in ("failed", "diverged")
    ]
    verdicts = [
        f"{record.label} {found.word}: {found.evidence}"
        for record in trials_of(records)
        if (found := verdict(record)).word != "-"
    ]
    chosen = choices.table(results)
    samples = folder.best / "samples.png"
    lines = [
        f"# {folder.name}",
        "",
        paragraph(results),
        "",
        *section("Trials", [*table(ranking(records)), "", *told_apart(records, decided)]),
        *(section("Finalists", table(_finalists(decided, results.fresh))) if decided else []),
        *section("What mattered", _importances(results)),
        *(section("What each choice came to", table(chosen)) if len(chosen) > 1 else []),
        *(section("FID against cost", table(weighed)) if results.space.compare else []),
        *(section("What the curves say", items(verdicts)) if verdicts else []),
        *(section("Early against late", items(list(map(str, agreed)))) if agreed else []),
        *(section("Failed and diverged", items(reasons)) if reasons else []),
        *(section("Samples of the winner", [_picture(samples, folder)]) if samples.exists() else []),
        *(
            section("The same noise, rung by rung", [_picture(folder.wall, folder)])
            if folder.wall.exists()
            else []
        ),
        *section("How it was measured", items(_measured(results))),
        "## To see more",
        "",
        f"    {results.ui}",
        "",
    ]
    return "\n".join(lines)


def write_best(folder: SweepFolder, best: TrialRecord, config: TrainConfig, *, facts: dict[str, Any]) -> None:
    """Write `best.yaml`, from which `python -m wgangp.train` trains the winner again."""
    origin = {
        "sweep": folder.name,
        "trial": best.label,
        "best_fid": round(best.best_fid, 3),
        "features": facts["features"],
        "features_sha256": facts["features_sha256"],
        "checkpoint": str(best.checkpoints[0].relative_to(folder.path)),
    }
    comment = (
        f"The winner of {folder.name}. Train it again, from the repository: python -m wgangp.train best.yaml"
    )
    settings_file.dump(config.model_dump() | {"from": origin}, folder.best_yaml, comment=comment)


def _finalists(decided: list[Finalist], fresh: Fresh) -> list[list[str]]:
    """A table, headings first; the setting with the lowest mean is the winner."""
    seeds = len(decided[0].runs)
    rows = [
        ["setting", "mean FID", "sd", *(f"seed {n}" for n in range(1, seeds + 1)), "own", "own at infinity"]
    ]
    for one in decided:
        limit = fresh.get(one.trial.label, {}).get("fid_at_infinity", math.nan)
        cells = [one.mean, one.spread, *one.fids, one.trial.best_fid, limit]
        rows.append([f"{one.trial.label} ({one.trial.settings})", *map(tenths, cells)])
    return rows


def _importances(results: Results) -> list[str]:
    found = plots.importances(results)
    if found is None:
        return [f"Too few to say: {ENOUGH} trials at equal budget are needed, and 2 searched settings."]
    shares = [f"{field} {share:.0%}" for field, share in found.shares.items()]
    return [
        f"For the FID at {found.kimg:g} kimg, over the {found.trials} trials that were trained so far:"
        f" {', '.join(shares)} (PED-ANOVA). Of few trials this is a hint."
    ]


def _measured(results: Results) -> list[str]:
    facts, (kimg, seconds) = results.facts, results.saved
    whole = results.kimg + kimg
    saved = f" Pruning saved {kimg:.0f} kimg ({kimg / whole:.0%}), about {seconds:.0f} core-seconds."
    return [
        f"FID in {facts['scored_in']}, against {facts['reference_images']} training images; the score of a"
        " trial is its best so far. +-: standard error over the draw of the generated images.",
        f"Data: {facts['dataset']}, {facts['image_size']}, {facts['train_images']} training and"
        f" {facts['heldout_images']} held-out images (sha256 {str(facts['data_sha256'])[:16]}).",
        f"Each trial: {facts['trained_on']}.",
        f"Cost: {results.kimg:.0f} kimg, {results.core_seconds:.0f} core-seconds in all."
        + (saved if kimg else ""),
    ]


def _picture(path: Path, folder: SweepFolder) -> str:
    return f"![{path.stem}]({path.relative_to(folder.path)})"
