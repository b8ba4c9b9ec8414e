"""What is to be recorded in MLflow, written to the sweep's folder first.

The driver appends lines and never waits for MLflow; `tracking` reads them behind it and moves the mark of
what was sent. A killed driver leaves at most a torn last line, which is cut at the next opening.
"""

import errno
import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

LINES, MARK, REFUSED = "lines.jsonl", "sent", "refused.jsonl"


class Outbox:
    """A folder with `lines.jsonl`, the mark `sent` (a byte offset) and the pictures that wait."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(exist_ok=True)
        self.folder = folder
        self._path, self._mark = folder / LINES, folder / MARK
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
            line: time (milliseconds), step, mark (step of the samples, if it is another), metrics, params,
                tags, files (in the sweep's folder), status, experiment_tags, and model (folder, name, tags;
                see `registering`).
        """
        if tick and tick <= self._ticks.get(trial or "", 0):
            return
        line = {"trial": trial, "tick": tick, "time": int(time.time() * 1000)} | line
        if samples:
            line["samples"] = f"{trial}-{tick:05d}.png"
            (self.folder / line["samples"]).write_bytes(samples)
        self._write(json.dumps(line, allow_nan=False).encode() + b"\n")
        self._note(line)

    def _write(self, line: bytes) -> None:
        """Whole or not at all: whatever follows half a line could never be read again."""
        size = self._path.stat().st_size
        try:
            if self._file.write(line) < len(line):  # unbuffered, it writes what there is room for
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(self._path))
        except OSError:
            os.truncate(self._path, size)
            raise

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
        return _sent(self.folder)

    def mark_sent(self, mark: int) -> None:
        """Everything before `mark` has reached MLflow."""
        aside = self._mark.with_suffix(".new")
        aside.write_text(str(mark))
        aside.replace(self._mark)

    def note_refused(self, line: dict[str, Any], why: list[str]) -> dict[str, Any]:
        """Write down what MLflow did not take of the line at the mark, for people and the next start."""
        with self._path.open("rb") as file:
            number = file.read(self.sent).count(b"\n") + 1
        entry = {"line": number, "begins": self.sent, "trial": line["trial"], "refused": why}
        with self.refused.open("a", encoding="utf-8") as file:
            file.write(json.dumps(entry) + "\n")
        return entry

    def send_refused_again(self) -> None:
        """Move the mark back to the first line of which something was refused: twice is harmless."""
        if self.refused.exists():
            begins = [json.loads(line)["begins"] for line in self.refused.read_text("utf-8").splitlines()]
            self.mark_sent(min([self.sent, *begins]))
            self.refused.unlink()

    @property
    def refused(self) -> Path:
        """What MLflow did not take, a JSON object a line; absent if it took all."""
        return self.folder / REFUSED

    @property
    def unsent(self) -> int:
        """How many lines wait."""
        return waiting_in(self.folder)

    def _note(self, line: dict[str, Any]) -> None:
        trial = line["trial"] or ""
        self._ticks[trial] = max(line["tick"], self._ticks.get(trial, 0))
        if line.get("status") == "RUNNING":
            self.outcomes.pop(trial, None)
        elif "status" in line:
            self.outcomes[trial] = line["tags"]["outcome"]


def waiting_in(folder: Path) -> int:
    """How many lines of an outbox wait, which may be another process's; nothing is written."""
    try:
        with (folder / LINES).open("rb") as file:
            file.seek(_sent(folder))
            return sum(1 for _ in file)
    except FileNotFoundError:
        return 0


def _sent(folder: Path) -> int:
    try:
        mark = int((folder / MARK).read_text())
        with (folder / LINES).open("rb") as file:
            file.seek(mark - 1)
            return mark if file.read(1) == b"\n" else 0
    except (OSError, ValueError):
        return 0
