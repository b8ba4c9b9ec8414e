"""What a person sees: a live table in a terminal, plain lines elsewhere, the ranking at the end."""

import math
from typing import Literal

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from sweeps.finalists import winner
from sweeps.records import TrialRecord, tenths, trials_of, verdict
from sweeps.sparkline import sparkline

ENDED_SHOWN = 8
"""Ended trials in the live table: the best ones; all are in the ranking at the end."""

ROOM = 90
"""Columns of a terminal in which curves and what they say have room beside the settings."""

WHY = 28
"""Characters of the reason for which a trial ended, where the curves of others say something."""

BEST = " *"
"""Marks the best trial so far."""

LEFT = ("trial", "state", "outcome", "curve", "verdict", "settings")
"""Columns of words; numbers stand at the right."""


class View:
    """Called by the driver with what happened; decides how it is shown."""

    def __init__(self, console: Console | None = None) -> None:
        # In a notebook too: there rich would lay out each line as a page of its own.
        console = console or Console(highlight=False, force_jupyter=False)
        if not console.is_terminal:
            console.width = 160  # a file or a pipe has no edge to fold lines at
        self._console = console
        self._live: Live | None = None
        self._said = ""

    def print(self, line: str) -> None:
        """A line that stays, never wrapped, so that a command in it can be copied."""
        self._console.print(Text(line), soft_wrap=True)

    def say(self, line: str) -> None:
        """What takes time at the moment, once."""
        if line != self._said:
            self._said = line
            self.print(f"  {line} ...")

    def begin(
        self,
        *,
        name: str,
        wanted: int,
        finalist_runs: int,
        budget_kimg: float,
        expected_kimg: float,
        cores: float,
    ) -> None:
        """Trials start, on `cores` CPUs together: from here on `update` and `tick` show them.

        `expected_kimg`: what a trial is thought to take on average before any has shown it. `finalist_runs`:
        how many follow at most, each to the whole budget.
        """
        self._finalist_runs = finalist_runs
        self._name, self._wanted, self._budget, self._cores = name, wanted, budget_kimg, cores
        self._expected = expected_kimg
        self._records: list[TrialRecord] = []
        self._running: list[str] = []
        if self._console.is_terminal:
            self._live = Live(console=self._console, auto_refresh=False, transient=True)
            self._live.start()

    def update(self, records: list[TrialRecord], running: list[str]) -> None:
        """The state of all trials; redraws the table."""
        self._records, self._running = records, running
        if self._live:
            self._live.update(self._table(), refresh=True)

    def tick(self, record: TrialRecord) -> None:
        """A trial reached a tick."""
        if self._live:
            return
        fid = record.last.get("fid", math.nan)
        self.print(
            f"{record.label}  {record.kimg:.1f}/{self._budget:g} kimg  fid {tenths(fid)}"
            f"  best {tenths(record.best_fid)}  [{self._standing()}]  {record.settings}"
        )

    def ended(self, record: TrialRecord) -> None:
        """A trial is over; of attempts that died a warning tells."""
        if not self._live and record.ending and record.ending.outcome != "failed":
            how = f"{record.ending.outcome} {record.ending.reason}".rstrip()
            found = verdict(record)
            says = record.ending.outcome == "complete" and found.word != "-"
            said = f"  {found.word}: {found.evidence}" if says else ""
            self.print(f"{record.label}  {how}  best {tenths(record.best_fid)}{said}")

    def warn(self, line: str) -> None:
        """Something a person should know although the sweep goes on."""
        self._console.print(Text(f"Warning: {line}", style="yellow"), soft_wrap=True)

    def close(self) -> None:
        """No more ticks; the live table goes."""
        if self._live:
            self._live.stop()
            self._live = None

    def table(self, rows: list[list[str]]) -> None:
        """A table that stays; the first row is its heading."""
        # In a narrow window better folded by the terminal than cut: these are results.
        table, width = _laid_out(rows, most=math.inf)
        before = self._console.width
        self._console.width = max(width, before)
        self._console.print(table, crop=False)
        self._console.width = before

    def _standing(self) -> str:
        trials = trials_of(self._records)
        standing = f"{_ended(trials)} of {self._wanted} ended"
        if runs := [record for record in self._records if record.finalist_of]:
            standing += f", finalists {_ended(runs)} of {self._finalist_runs} runs"
        left = self._seconds_left()
        return standing + (f", about {_duration(left)} left" if left else "")

    def _seconds_left(self) -> float | None:
        """What trials like those so far will still need, at the speed of those so far."""
        kimg = sum(record.kimg for record in self._records)
        if not kimg:
            return None
        trials = trials_of(self._records)
        searched = [record.kimg for record in trials if record.ending and not record.baseline]
        typical = (sum(searched) + 4 * self._expected) / (
            len(searched) + 4
        )  # the guess counts as four trials
        left = typical * max(0, self._wanted - len(trials))
        left += self._budget * max(0, self._finalist_runs - (len(self._records) - len(trials)))
        for record in self._records:
            if not record.ending:
                whole = record.baseline or record.finalist_of
                goal = self._budget if whole else max(typical, record.kimg)
                left += max(0.0, goal - record.kimg)
        return left * sum(record.core_seconds for record in self._records) / kimg / self._cores

    def _table(self) -> Group:
        best = winner(self._records)
        running = [record for record in self._records if record.label in self._running]
        ended = sorted((r for r in self._records if r.label not in self._running), key=lambda r: r.best_fid)
        room = self._console.width >= ROOM
        curves = room and self._console.encoding.startswith("utf")
        rows = [
            [
                *("trial", "state", "kimg", "FID", "best FID"),
                *["curve"] * curves,
                *["verdict"] * room,
                "settings",
            ]
        ]
        for record in running + ended[:ENDED_SHOWN]:
            state = "running" if record.label in self._running else _outcome(record)
            rows.append(
                [
                    record.label + (BEST if best and record.label == best.label else ""),
                    state + (" (baseline)" if record.baseline else ""),
                    f"{record.kimg:.0f}/{self._budget:g}",
                    tenths(record.last.get("fid", math.inf)),
                    tenths(record.best_fid),
                    *[_curve(record, self._records)] * curves,
                    *[_says(record)] * room,
                    record.settings,
                ]
            )
        table, _ = _laid_out(rows, most=self._console.width)
        return Group(Text(f"{self._name}  {self._standing()}", style="bold"), table)


def _laid_out(rows: list[list[str]], *, most: float) -> tuple[Table, int]:
    """A table whose first row is the heading, and its width; only the last column gives way to `most`."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    used = 0
    for index, name in enumerate(rows[0]):
        width = max(len(row[index]) for row in rows)
        if index == len(rows[0]) - 1:
            width = int(max(4, min(width, most - used)))
        used += width + 2
        justify: Literal["left", "right"] = "left" if name in LEFT else "right"
        table.add_column(name, justify=justify, no_wrap=True, width=width, overflow="ellipsis")
    for row in rows[1:]:
        table.add_row(*row, style="bold" if row[0].endswith(BEST) else None)
    return table, used - 2


def _curve(record: TrialRecord, records: list[TrialRecord]) -> str:
    """FID tick by tick, on one scale for all trials."""
    fids = [fid for one in records for fid in _fids(one) if math.isfinite(fid)]
    return sparkline(_fids(record), low=min(fids), high=max(fids)) if fids else ""


def _fids(record: TrialRecord) -> list[float]:
    return [metrics.get("fid", math.nan) for metrics in record.ticks.values()]


def _says(record: TrialRecord) -> str:
    """What the curves say, or why the trial ended before they said anything."""
    word = verdict(record).word
    reason = record.ending.reason if record.ending else ""
    words = reason if word in ("-", "diverged") and reason else word
    return words if len(words) <= WHY else f"{words[: WHY - 3]}..."


def _ended(records: list[TrialRecord]) -> int:
    return sum(1 for record in records if record.ending)


def _outcome(record: TrialRecord) -> str:
    return record.ending.outcome if record.ending else "waiting"


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{max(1, round(seconds / 10)) * 10} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 90 else f"{minutes / 60:.1f} h"
