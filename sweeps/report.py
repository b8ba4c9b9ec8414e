"""Ended trials -> ranking, comparison with the baselines, `report.md` and `best.yaml`."""

import math
from collections import Counter
from dataclasses import dataclass
from typing import Any

from sweeps.folder import SweepFolder
from sweeps.records import TrialRecord, short, winner
from wgangp import settings_file
from wgangp.config import TrainConfig


@dataclass(frozen=True)
class Comparison:
    """The winner against a baseline, each at its best FID within what both have spent."""

    baseline: TrialRecord
    kimg: float
    at_kimg: tuple[float, float]
    core_seconds: float
    at_core_seconds: tuple[float, float]

    def lines(self) -> list[str]:
        return [
            f"against {self.baseline.label} ({self.baseline.settings}):",
            f"  at {self.kimg:.0f} kimg: {_versus(self.at_kimg)}",
            f"  at {self.core_seconds:.0f} core-seconds: {_versus(self.at_core_seconds)}",
        ]


def ranking(records: list[TrialRecord]) -> list[list[str]]:
    """A table, headings first: complete trials by best FID, then the others, which have no place."""

    def is_complete(record: TrialRecord) -> bool:
        return record.ending is not None and record.ending.outcome == "complete"

    table = [["", "trial", "best FID", "kimg", "core-s", "outcome", *(records[0].params if records else ())]]
    ordered = sorted(records, key=lambda record: (not is_complete(record), record.best_fid))
    for place, record in enumerate(ordered, start=1):
        table.append(
            [
                str(place) if is_complete(record) else "",
                record.label + (" baseline" if record.baseline else ""),
                f"{record.best_fid:.1f}" if math.isfinite(record.best_fid) else "-",
                f"{record.kimg:.0f}",
                f"{record.core_seconds:.0f}",
                record.ending.outcome if record.ending else "waiting",
                *(short(value) for value in record.params.values()),
            ]
        )
    return table


def compare(best: TrialRecord, records: list[TrialRecord]) -> list[Comparison]:
    """The winner against each baseline that was scored at least once (and is not the winner itself)."""
    comparisons = []
    for baseline in records:
        if not baseline.baseline or baseline.label == best.label or not baseline.ticks:
            continue
        shorter = min(best, baseline, key=lambda record: record.tick)
        seconds = min(best.core_seconds, baseline.core_seconds)
        comparisons.append(
            Comparison(
                baseline=baseline,
                kimg=shorter.kimg,
                at_kimg=(
                    best.best_fid_within(tick=shorter.tick),
                    baseline.best_fid_within(tick=shorter.tick),
                ),
                core_seconds=seconds,
                at_core_seconds=(
                    best.best_fid_within(core_seconds=seconds),
                    baseline.best_fid_within(core_seconds=seconds),
                ),
            )
        )
    return comparisons


def answer(records: list[TrialRecord], fresh: dict[str, float]) -> list[str]:
    """The result in a few lines: the winner, how good, against what.

    Args:
        records: all trials of the sweep.
        fresh: what `score_winner` said of the winner; empty if it was not scored.
    """
    best = winner(records)
    if best is None:
        return [_without_winner(records)]
    lines = [f"winner {best.label}: {best.settings}", f"  best FID {best.best_fid:.1f}"]
    if fresh:
        lines[-1] += f" ({fresh['fid_fresh']:.1f} on fresh noise)"
        lines.append(
            f"  of 64 samples the classifier is sure of {fresh['sure_samples']:.0f},"
            f" in {fresh['classes_seen']:.0f} classes"
        )
    for comparison in compare(best, records):
        lines += comparison.lines()
    return lines


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


def write(
    folder: SweepFolder,
    records: list[TrialRecord],
    *,
    facts: dict[str, Any],
    fresh: dict[str, float],
    ui: str,
) -> None:
    """Write `report.md`.

    Args:
        folder: the sweep's.
        records: all its trials.
        facts: of the data and features, as `wgangp.trainer.prepare` gives them.
        fresh: what `score_winner` said of the winner.
        ui: the command, or address, that shows the trials.
    """
    head, *rows = ranking(records)
    rows = [head, ["---"] * len(head), *rows]
    reasons = [
        f"- {record.label} {record.ending.outcome}: {record.ending.reason}"
        for record in records
        if record.ending and record.ending.outcome in ("failed", "diverged")
    ]
    total = sum(record.core_seconds for record in records)
    lines = [
        f"# {folder.name}",
        "",
        *(f"    {line}" for line in answer(records, fresh)),
        "",
        "## Trials",
        "",
        *(f"| {' | '.join(row)} |" for row in rows),
        "",
        *(["## Failed and diverged", "", *reasons, ""] if reasons else []),
        "## How it was measured",
        "",
        *_measured(facts),
        f"- Cost: {sum(record.kimg for record in records):.0f} kimg, {total:.0f} core-seconds in all.",
        "",
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


def _measured(facts: dict[str, Any]) -> list[str]:
    data = str(facts["data_sha256"])[:16]
    return [
        f"- FID in {facts['scored_in']}; the score of a trial is its best so far.",
        f"- Data: {facts['dataset']}, {facts['image_size']}, {facts['train_images']} training and"
        f" {facts['heldout_images']} held-out images (sha256 {data}).",
        f"- Each trial: {facts['trained_on']}.",
    ]


def _versus(pair: tuple[float, float]) -> str:
    best, baseline = pair
    if not math.isfinite(best) or not math.isfinite(baseline):
        return "not both were scored by then"
    return f"FID {best:.1f} against {baseline:.1f}, {baseline / best:.1f} times lower"
