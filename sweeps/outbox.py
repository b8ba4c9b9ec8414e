"""What is to be recorded in MLflow, written to the sweep's folder first.

The driver appends lines and never waits for MLflow; `tracking` reads them behind it and moves the mark of
what was sent. A killed driver leaves at most a torn last line, which is cut at the next opening.
"""

import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any


class Outbox:
    """A folder with `lines.jsonl`, the mark `sent` (a byte offset) and the pictures that wait."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(exist_ok=True)
        self.folder = folder
        self._path, self._mark = folder / "lines.jsonl", folder / "sent"
        self._path.touch()
        content = self._path.read_bytes()
        whole = content.rfind(b"\n") + 1
        if whole < len(content):
            os.truncate(self._path, whole)
        self._ticks: dict[str, int] = {}
        """The last tick written for each trial."""
        self.outcomes: dict[str, str] = {}
        """Outcome written for each trial that is not running by its last line."""
        for line in content[:whole].splitlines():
            self._note(json.loads(line))
        self._file = self._path.open("ab", buffering=0)

    def append(self, *, trial: str | None = None, tick: int = 0, samples: bytes = b"", **line: Any) -> None:
        """Add a line about a trial, or about the sweep; a tick that was written before is dropped.

        Args:
            trial: its label; None for the sweep.
            tick: 1, 2, ... for what was measured (of a trial: its tick; of the sweep: trials ended), else 0.
            samples: a PNG that goes along.
            line: time (milliseconds), step, metrics, params, tags, files (in the sweep's folder), status.
        """
        if tick and tick <= self._ticks.get(trial or "", 0):
            return
        line = {"trial": trial, "tick": tick, "time": int(time.time() * 1000)} | line
        if samples:
            line["samples"] = f"{trial}-{tick:05d}.png"
            (self.folder / line["samples"]).write_bytes(samples)
        self._file.write(json.dumps(line, allow_nan=False).encode() + b"\n")
        self._note(line)

    def waiting(self, *, most: int = 100) -> Iterator[tuple[dict[str, Any], int]]:
        """Lines not sent yet, each with the mark that says it was."""
        with self._path.open("rb") as file:
            file.seek(self.sent)
            for _ in range(most):
                line = file.readline()
                if not line.endswith(b"\n"):
                    return
                yield json.loads(line), file.tell()

    @property
    def sent(self) -> int:
        """Bytes that have reached MLflow. A mark that fits no line counts as 0: sending twice is harmless."""
        try:
            mark = int(self._mark.read_text())
            with self._path.open("rb") as file:
                file.seek(mark - 1)
                return mark if file.read(1) == b"\n" else 0
        except (OSError, ValueError):
            return 0

    def mark_sent(self, mark: int) -> None:
        """Everything before `mark` has reached MLflow."""
        aside = self._mark.with_suffix(".new")
        aside.write_text(str(mark))
        aside.replace(self._mark)

    @property
    def unsent(self) -> int:
        """How many lines wait."""
        with self._path.open("rb") as file:
            file.seek(self.sent)
            return sum(1 for _ in file)

    def _note(self, line: dict[str, Any]) -> None:
        trial = line["trial"] or ""
        self._ticks[trial] = max(line["tick"], self._ticks.get(trial, 0))
        if line.get("status") == "RUNNING":
            self.outcomes.pop(trial, None)
        elif "status" in line:
            self.outcomes[trial] = line["tags"]["outcome"]
