"""The result of a sweep in words: a few lines for the terminal, one paragraph for the report."""

import math
from collections import Counter

from sweeps.advice import advice
from sweeps.finalists import Finalist, finalists
from sweeps.ranking import Comparison, compare, indistinguishable
from sweeps.records import TrialRecord, complete, trials_of, verdict
from sweeps.results import Results
from wgangp.wording import count


def answer(results: Results) -> list[str]:
    """The winner, how good, how sure, against what, and what to try next."""
    best = results.winner
    if best is None:
        return [_without_winner(trials_of(results.records))]
    lines = [f"winner {best.label}: {best.settings}", f"  best FID {_with_error(best)}"]
    scores = results.fresh.get(best.label, {})
    if scores:
        lines[-1] += (
            f" ({scores['fid_fresh']:.1f} on fresh noise, {scores['fid_at_infinity']:.1f} extrapolated to"
            " infinitely many samples)"
        )
    decided = finalists(results.records)
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
    for comparison in compare(best, results.records):
        lines += comparison.lines()
    if found_next := advice(results):
        lines += ["to try next:", *(f"  {each}" for each in found_next)]
    return lines


def paragraph(results: Results) -> str:
    """The same as one paragraph of Markdown."""
    best = results.winner
    trials = trials_of(results.records)
    ended = sum(1 for one in trials if one.ending)
    if best is None:
        so_far = "No trial has ended yet." if not ended else _without_winner(trials)
        return so_far
    scores = results.fresh.get(best.label, {})
    fresh = f", {scores['fid_fresh']:.1f} on fresh noise" if scores else ""
    sentences = [
        f"**{best.settings}** ({best.label}) is the best of {count(ended, 'trial')}: FID"
        f" {_with_error(best)}{fresh}.",
        *map(_against, compare(best, results.records)),
    ]
    if best.baseline:
        sentences.append("It is a baseline: nothing that was proposed is better.")
    sentences += [_sure(results, best)]
    if found := advice(results):
        sentences.append(f"To try next: {'; '.join(found)}.")
    return " ".join(sentences)


def _against(comparison: Comparison) -> str:
    one = comparison.baseline
    best, baseline = comparison.at_kimg
    if not math.isfinite(best) or not math.isfinite(baseline):
        return f"The baseline {one.label} ({one.settings}) was not scored."
    dear = ""
    best_by_cost, by_cost = comparison.at_core_seconds
    if math.isfinite(best_by_cost) and math.isfinite(by_cost):
        dear = f", and {by_cost / best_by_cost:.1f} times at equal core-seconds"
    return (
        f"The baseline {one.label} ({one.settings}) has {baseline:.1f} at the same"
        f" {comparison.kimg:.0f} kimg, {baseline / best:.1f} times as much{dear}."
    )


def _sure(results: Results, best: TrialRecord) -> str:
    decided = finalists(results.records)
    close = indistinguishable(results.records, decided)
    if decided:
        first, *others = decided
        next_one = f", that of the next, {others[0].trial.label}, {_mean(others[0])}" if others else ""
        return f"Over {len(first.runs)} other seeds its {_mean(first)}{next_one}."
    ranked = complete(results.records)
    if len(ranked) < 2:
        return "No other trial was trained to the end, so nothing says how sure that is."
    second = ranked[1]
    if (best.label, second.label) in close:
        return f"The next, {second.label} ({second.best_fid:.1f}), cannot be told from it."
    return (
        f"The next, {second.label}, has {second.best_fid:.1f}, which the draw of samples does not explain;"
        " what another seed would change, only finalists show."
    )


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


def _with_error(record: TrialRecord) -> str:
    error = record.best_fid_error
    return f"{record.best_fid:.1f}" + (f" +- {error:.1f}" if math.isfinite(error) else "")


def _mean(one: Finalist) -> str:
    return f"FID {one.mean:.1f} on average (sd {one.spread:.1f})"
