"""Ended trials -> the answer in a few lines, `report.md` and `best.yaml`."""

import math
from collections import Counter
from collections.abc import Sequence
from typing import Any

from sweeps import early, pareto
from sweeps.finalists import Finalist, finalists, winner
from sweeps.folder import SweepFolder
from sweeps.ranking import compare, ranking, told_apart
from sweeps.records import TrialRecord, tenths, trials_of, verdict
from sweeps.sections import Cost
from wgangp import settings_file
from wgangp.config import TrainConfig
from wgangp.wording import count

Fresh = dict[str, dict[str, float]]
"""By label, what `score_winner` said of the best generator of a trial."""


def answer(records: list[TrialRecord], fresh: Fresh) -> list[str]:
    """The result in a few lines: the winner, how good, how sure, against what.

    Args:
        records: all trials of the sweep.
        fresh: of the winner and the finalists; empty if they were not scored.
    """
    best = winner(records)
    if best is None:
        return [_without_winner(trials_of(records))]
    lines = [f"winner {best.label}: {best.settings}", f"  best FID {_with_error(best)}"]
    scores = fresh.get(best.label, {})
    if scores:
        lines[-1] += (
            f" ({scores['fid_fresh']:.1f} on fresh noise, {scores['fid_at_infinity']:.1f} extrapolated to"
            " infinitely many samples)"
        )
    decided = finalists(records)
    if decided:
        first, *others = decided
        lines.append(
            f"  over {len(first.runs)} other seeds {_mean(first)}, the best of"
            f" {count(len(decided), 'finalist')}"
        )
        lines += [f"    next {other.trial.label}: {_mean(other)}" for other in others[:1]]
    if "sure_samples" in scores:
        lines.append(
            f"  of 64 samples the classifier is sure of {scores['sure_samples']:.0f},"
            f" in {scores['classes_seen']:.0f} classes"
        )
    if (found := verdict(best)).word != "-":
        lines.append(f"  {found.word}: {found.evidence}")
    for comparison in compare(best, records):
        lines += comparison.lines()
    return lines


def write(
    folder: SweepFolder,
    records: list[TrialRecord],
    *,
    facts: dict[str, Any],
    fresh: Fresh,
    milestones: Sequence[int],
    costs: Sequence[Cost],
    tick_kimg: float,
    ui: str,
) -> None:
    """Write `report.md`.

    Args:
        folder: the sweep's.
        records: all its trials.
        facts: of the data and features, as `wgangp.trainer.prepare` gives them.
        fresh: as for `answer`.
        milestones: ticks at which trials were compared, or would have been.
        costs: against which the best FID is to be weighed.
        tick_kimg: kimg of a tick.
        ui: the command, or address, that shows the trials.
    """
    decided = finalists(records)
    agreed = [str(one) for one in early.agreements(records, rungs=milestones, tick_kimg=tick_kimg)]
    weighed = pareto.table(records, costs, tick_kimg=tick_kimg)
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
    lines = [
        f"# {folder.name}",
        "",
        *(f"    {line}" for line in answer(records, fresh)),
        "",
        *_section("Trials", [*_table(ranking(records)), "", *told_apart(records, decided)]),
        *(_section("Finalists", _table(_finalists(decided, fresh))) if decided else []),
        *(_section("FID against cost", _table(weighed)) if costs else []),
        *(_section("What the curves say", _items(verdicts)) if verdicts else []),
        *(_section("Early against late", _items(agreed)) if agreed else []),
        *(_section("Failed and diverged", _items(reasons)) if reasons else []),
        *_section("How it was measured", _items(_measured(facts, records))),
        "## To see more",
        "",
        f"    {ui}",
        "",
    ]
    aside = folder.report.with_suffix(".new")
    aside.write_text("\n".join(lines), encoding="utf-8")
    aside.replace(folder.report)


def write_best(folder: SweepFolder, best: TrialRecord, config: TrainConfig, *, facts: dict[str, Any]) -> None:
    """Write `best.yaml`, from which `python -m wgangp.train` trains the winner again."""
    origin = {
        "sweep": folder.name,
        "trial": best.label,
        "best_fid": round(best.best_fid, 3),
        "features": facts["features"],
        "features_sha256": facts["features_sha256"],
    }
    comment = (
        f"The winner of {folder.name}. Train it again, from the repository: python -m wgangp.train best.yaml"
    )
    settings_file.dump(config.model_dump() | {"from": origin}, folder.best_yaml, comment=comment)


def _without_winner(records: list[TrialRecord]) -> str:
    endings = [(record.label, record.ending) for record in records if record.ending]
    counts = Counter(ending.outcome for _, ending in endings)
    if records and counts["diverged"] == len(records):
        label, ending = endings[0]
        return (
            f"All {len(records)} trials diverged ({label}: {ending.reason}), so there is no winner."
            " Start a new sweep with lower learning rates."
        )
    ended = ", ".join(f"{count} {outcome}" for outcome, count in counts.items())
    return "No trial is complete, so there is no winner" + (f": {ended}." if ended else ".")


def _finalists(decided: list[Finalist], fresh: Fresh) -> list[list[str]]:
    """A table, headings first; the setting with the lowest mean is the winner."""
    seeds = len(decided[0].runs)
    table = [
        ["setting", "mean FID", "sd", *(f"seed {n}" for n in range(1, seeds + 1)), "own", "own at infinity"]
    ]
    for one in decided:
        limit = fresh.get(one.trial.label, {}).get("fid_at_infinity", math.nan)
        cells = [one.mean, one.spread, *one.fids, one.trial.best_fid, limit]
        table.append([f"{one.trial.label} ({one.trial.settings})", *map(tenths, cells)])
    return table


def _measured(facts: dict[str, Any], records: list[TrialRecord]) -> list[str]:
    total = sum(record.core_seconds for record in records)
    return [
        f"FID in {facts['scored_in']}, against {facts['reference_images']} training images; the score of a"
        " trial is its best so far. +-: standard error over the draw of the generated images.",
        f"Data: {facts['dataset']}, {facts['image_size']}, {facts['train_images']} training and"
        f" {facts['heldout_images']} held-out images (sha256 {str(facts['data_sha256'])[:16]}).",
        f"Each trial: {facts['trained_on']}.",
        f"Cost: {sum(record.kimg for record in records):.0f} kimg, {total:.0f} core-seconds in all.",
    ]


def _section(title: str, lines: list[str]) -> list[str]:
    return [f"## {title}", "", *lines, ""]


def _items(lines: list[str]) -> list[str]:
    return [f"- {line}" for line in lines]


def _table(rows: list[list[str]]) -> list[str]:
    head, *rest = rows
    return [f"| {' | '.join(row)} |" for row in (head, ["---"] * len(head), *rest)]


def _with_error(record: TrialRecord) -> str:
    error = record.best_fid_error
    return f"{record.best_fid:.1f}" + (f" +- {error:.1f}" if math.isfinite(error) else "")


def _mean(one: Finalist) -> str:
    return f"FID {one.mean:.1f} on average (sd {one.spread:.1f})"
