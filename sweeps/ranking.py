"""Ended trials -> their ranking, who cannot be told apart, and the winner against the baselines."""

import itertools
import math
from dataclasses import dataclass

from sweeps.finalists import Finalist
from sweeps.records import TrialRecord, complete, short, tenths, trials_of, verdict

APART = 2
"""Standard errors of a difference within which two scores cannot be told apart."""


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
    head = ["", "trial", "best FID", "+-", "kimg", "core-s", "outcome", "verdict"]
    searched = dict.fromkeys(field for record in records for field in record.params)
    table = [[*head, *searched]]
    for place, record in enumerate(_in_order(records), start=1):
        table.append(
            [
                str(place) if _is_complete(record) else "",
                record.label + (" baseline" if record.baseline else ""),
                tenths(record.best_fid),
                tenths(record.best_fid_error),
                f"{record.kimg:.0f}",
                f"{record.core_seconds:.0f}",
                record.ending.outcome if record.ending else "waiting",
                verdict(record).word,
                *(short(record.params[field]) if field in record.params else "-" for field in searched),
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


def indistinguishable(records: list[TrialRecord], finalists: list[Finalist]) -> list[tuple[str, str]]:
    """Neighbours of the ranking, as labels, that differ by no more than chance.

    Args:
        records: all trials of the sweep.
        finalists: whose spread over seeds, as a share of the mean, is taken for that of every trial.
    """
    seeds, close = _spread(finalists), []
    for better, worse in itertools.pairwise(complete(records)):
        errors = (better.best_fid_error, worse.best_fid_error)
        error = math.hypot(*errors, seeds * better.best_fid, seeds * worse.best_fid)
        if worse.best_fid - better.best_fid < APART * error:
            close.append((better.label, worse.label))
    return close


def told_apart(records: list[TrialRecord], finalists: list[Finalist]) -> list[str]:
    """`indistinguishable` in words for a person."""
    why = (
        f"by less than {APART} standard errors of their difference, the finalists' spread over seeds"
        f" ({_spread(finalists):.0%}) included"
        if _spread(finalists)
        else f"by less than {APART} standard errors of their FIDs alone; other seeds may move them further,"
        " which finalists would show"
    )
    if close := indistinguishable(records, finalists):
        pairs = ", ".join(f"{better} and {worse}" for better, worse in close)
        return [f"Neighbours that cannot be told apart, as they differ {why}: {pairs}."]
    return [f"No two neighbours of the ranking differ {why}."] if len(complete(records)) > 1 else []


def _spread(finalists: list[Finalist]) -> float:
    """Over seeds, as a share of the mean; 0 if it is not known."""
    spreads = [(one.spread / one.mean) ** 2 for one in finalists if math.isfinite(one.spread) and one.mean]
    return math.sqrt(sum(spreads) / len(spreads)) if spreads else 0.0


def _in_order(records: list[TrialRecord]) -> list[TrialRecord]:
    return sorted(trials_of(records), key=lambda record: (not _is_complete(record), record.best_fid))


def _is_complete(record: TrialRecord) -> bool:
    return record.ending is not None and record.ending.outcome == "complete"


def _versus(pair: tuple[float, float]) -> str:
    best, baseline = pair
    if not math.isfinite(best) or not math.isfinite(baseline):
        return "not both were scored by then"
    return f"FID {best:.1f} against {baseline:.1f}, {baseline / best:.1f} times lower"
