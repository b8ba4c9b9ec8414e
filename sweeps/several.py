"""Several sweeps beside each other: which space, and which budget, found the better settings."""

import itertools
import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import plotly.graph_objects

from sweeps import page, plots
from sweeps.answer import paragraph
from sweeps.markdown import cell, items, section, table
from sweeps.records import TrialRecord, tenths, trials_of
from sweeps.results import Results
from wgangp import files


def write(sweeps: Sequence[Results], out: Path) -> Path:
    """Write `<names>.md` and `<names>.html` to `out`; the path of the first."""
    path = out / f"report-{'-'.join(one.folder.name for one in sweeps)}.md"
    text = markdown(sweeps)
    files.write(path, text.encode())
    title = ", ".join(one.folder.name for one in sweeps)
    drawn = [plots.Plot("Winners", "the best FID so far of each sweep's winner", _curves(sweeps))]
    files.write(path.with_suffix(".html"), page.page(text, drawn, title=title, folder=out).encode())
    return path


def markdown(sweeps: Sequence[Results]) -> str:
    """The comparison, answer first."""
    lines = [
        f"# {', '.join(one.folder.name for one in sweeps)}",
        "",
        _answer(sweeps),
        "",
        *section("The sweeps", table(_overview(sweeps))),
        *section("Winners at equal cost", items(list(_pairs(sweeps))) or ["Fewer than two have a winner."]),
        *section("What differs", table(_differences(sweeps))),
        *section("What mattered", table(_mattered(sweeps))),
        *section("Each by itself", items([f"{one.folder.name}: {paragraph(one)}" for one in sweeps])),
    ]
    return "\n".join(lines)


def _answer(sweeps: Sequence[Results]) -> str:
    found = [(best.best_fid, one, best) for one in sweeps if (best := one.winner)]
    if not found:
        return "None of them has a winner."
    networks = {str(one.facts["features_sha256"]) for one in sweeps}
    if len(networks) > 1:
        return (
            "**Their FIDs do not compare**: they are measured in different features, or against other data."
            " Each row is to be read by itself."
        )
    _, one, best = min(found, key=lambda entry: entry[0])
    return (
        f"The lowest FID, **{best.best_fid:.1f}**, is that of {best.label} in {one.folder.name}"
        f" ({best.settings}), after {best.kimg:.0f} kimg. All are measured in the same features, against the"
        " same images."
    )


def _overview(sweeps: Sequence[Results]) -> list[list[str]]:
    rows = [
        ["sweep", "best FID", "fresh noise", "winner", "settings", "trials", "budget kimg", "kimg", "core-s"]
    ]
    for one in sweeps:
        best = one.winner
        fresh = one.fresh.get(best.label, {}).get("fid_fresh", math.nan) if best else math.nan
        rows.append(
            [
                one.folder.name,
                tenths(best.best_fid if best else math.nan),
                tenths(fresh),
                best.label if best else "-",
                best.settings if best else "-",
                str(len(trials_of(one.records))),
                f"{one.space.base.budget_kimg:g}",
                f"{one.kimg:.0f}",
                f"{one.core_seconds:.0f}",
            ]
        )
    return rows


def _pairs(sweeps: Sequence[Results]) -> Iterator[str]:
    """Each two winners, as far as both came, by kimg and by core-seconds."""
    winners = [(one.folder.name, best) for one in sweeps if (best := one.winner)]
    for (name, one), (other_name, other) in itertools.combinations(winners, 2):
        kimg, seconds = min(one.kimg, other.kimg), min(one.core_seconds, other.core_seconds)
        names = f"{name} {one.label} against {other_name} {other.label}"
        yield f"{names} at {kimg:.0f} kimg: FID {_within(one, kimg)} and {_within(other, kimg)}"
        by_cost = [tenths(each.best_fid_within(core_seconds=seconds)) for each in (one, other)]
        yield f"{names} at {seconds:.0f} core-seconds: FID {by_cost[0]} and {by_cost[1]}"


def _within(record: TrialRecord, kimg: float) -> str:
    seen = [tick for tick, metrics in record.ticks.items() if metrics["images_seen"] <= 1000 * kimg]
    return tenths(record.best_fid_within(tick=max(seen, default=0)))


def _differences(sweeps: Sequence[Results]) -> list[list[str]]:
    """The keys of the spaces that do not say the same."""
    spaces = [dict(_flat(one.space.values())) for one in sweeps]
    keys = dict.fromkeys(key for space in spaces for key in space)
    rows = [["key", *(one.folder.name for one in sweeps)]]
    for key in keys:
        values = [cell(space[key]) if key in space else "-" for space in spaces]
        if len(set(values)) > 1:
            rows.append([key, *values])
    return rows if len(rows) > 1 else [*rows, ["nothing", *["-"] * len(sweeps)]]


def _flat(values: dict[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in values.items():
        if isinstance(value, dict) and value:
            yield from _flat(value, f"{prefix}{key}.")
        else:
            yield prefix + key, value


def _mattered(sweeps: Sequence[Results]) -> list[list[str]]:
    """Importances, each at its own budget."""
    found = [plots.importances(one) for one in sweeps]
    fields = dict.fromkeys(field for each in found if each for field in each.shares)
    rows = [["setting", *(one.folder.name for one in sweeps)]]
    at = ["-" if each is None else f"{each.kimg:g} kimg, {each.trials} trials" for each in found]
    rows.append(["compared at", *at])
    for field in fields:
        shares = [each.shares.get(field) if each else None for each in found]
        rows.append([field, *("-" if share is None else f"{share:.0%}" for share in shares)])
    return rows


def _curves(sweeps: Sequence[Results]) -> plotly.graph_objects.Figure:
    figure = plotly.graph_objects.Figure()
    for one in sweeps:
        if best := one.winner:
            ticks = list(best.ticks)
            figure.add_scatter(
                x=[best.ticks[tick]["images_seen"] / 1000 for tick in ticks],
                y=[best.best_fid_within(tick=tick) for tick in ticks],
                name=f"{one.folder.name} {best.label}",
            )
    figure.update_layout(xaxis_title="kimg", yaxis_title="best FID so far", yaxis_type="log")
    return figure
