"""Every name a sweep has on disk, made absolute once, and the lock that keeps others out."""

import contextlib
import fcntl
import os
import re
import secrets
import socket
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from wgangp import files
from wgangp.errors import UserError


@dataclass(frozen=True)
class SweepFolder:
    """`<out>/gp-0001`. Paths stored inside the sweep are relative to it, so that it can be moved."""

    path: Path

    @property
    def name(self) -> str:
        return self.path.name

    @property
    def out(self) -> Path:
        return self.path.parent

    @property
    def space(self) -> Path:
        return self.path / "space.yaml"

    @property
    def journal(self) -> Path:
        return self.path / "study.log"

    @property
    def outbox(self) -> Path:
        return self.path / "outbox"

    @property
    def features(self) -> Path:
        return self.path / "features"

    @property
    def has_features(self) -> bool:
        """Whether they were kept; a sweep may have been stopped before."""
        return (self.features / "features.json").exists()

    @property
    def trials(self) -> Path:
        return self.path / "trials"

    @property
    def log(self) -> Path:
        return self.path / "log.txt"

    @property
    def report(self) -> Path:
        return self.path / "report.md"

    @property
    def page(self) -> Path:
        """The report with its plots and pictures, in one file."""
        return self.path / "report.html"

    @property
    def wall(self) -> Path:
        return self.path / "wall.png"

    @property
    def table(self) -> Path:
        """All trials, for MLflow."""
        return self.path / "trials.json"

    @property
    def samples(self) -> Path:
        """Samples of each trial at the rungs."""
        return self.path / "samples"

    @property
    def best_yaml(self) -> Path:
        return self.path / "best.yaml"

    @property
    def best(self) -> Path:
        return self.path / "best"

    @property
    def model(self) -> Path:
        """The winner's generator as MLflow's model, which holds the Keras model."""
        return self.best / "model"

    @property
    def finalists(self) -> Path:
        return self.path / "finalists"

    def next_invocation(self) -> str:
        """A new name for this start's part of `trials/`."""
        taken = [int(entry.name) for entry in self.trials.glob("[0-9]*") if entry.name.isdigit()]
        return f"{max(taken, default=0) + 1:03d}"

    @property
    def sweep_id(self) -> str:
        """A name no other sweep has, whatever database they share; empty before `identify`."""
        path = self.path / "id"
        return path.read_text().strip() if path.exists() else ""

    @property
    def first_name(self) -> str:
        """Under which it is recorded, should the folder have another by now."""
        return self.sweep_id.rpartition("-")[0] or self.name

    def identify(self) -> str:
        """The sweep's id, made at its first start."""
        if not self.sweep_id:
            files.write(self.path / "id", f"{self.name}-{secrets.token_hex(4)}\n".encode())
        return self.sweep_id

    def holder(self) -> str:
        """The process that holds the sweep, in words; empty if none does."""
        try:
            with (self.path / "lock").open(encoding="utf-8") as file:
                try:
                    fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
                except BlockingIOError:
                    return file.read().strip()
        except FileNotFoundError:
            pass
        return ""

    def check_free(self) -> None:
        """Raises: UserError, if a process holds the sweep."""
        if holder := self.holder():
            raise UserError(f"{self.name}: is running already: {holder}. Wait for it or end it.")

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the sweep while it runs; the kernel lets go when the process ends, however it ends.

        Raises:
            UserError: another process holds it.
        """
        with (self.path / "lock").open("a+", encoding="utf-8") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                self.check_free()
                raise UserError(f"{self.name}: was just looked at by another process; try again.") from None
            file.truncate(0)
            started = time.strftime("%Y-%m-%d %H:%M:%S")
            file.write(f"process {os.getpid()} on {socket.gethostname()} since {started}\n")
            file.flush()
            yield


def check_out(out: Path) -> None:
    """Raises: UserError, if nothing could be made in `out`."""
    parent = next(path for path in (out.absolute(), *out.absolute().parents) if path.exists())
    if not parent.is_dir() or not os.access(parent, os.W_OK | os.X_OK):
        raise UserError(f"--out {out}: must be a folder that can be made and written; {parent} is not.")


def claim(out: Path, name: str) -> SweepFolder:
    """Make the next free `<out>/<name>-0001`; `mkdir` decides between two that start at once."""
    out.mkdir(parents=True, exist_ok=True)
    number = max((_number(entry, name) for entry in out.glob(f"{name}-*")), default=0)
    while True:
        number += 1
        path = out.resolve() / f"{name}-{number:04d}"
        with contextlib.suppress(FileExistsError):
            path.mkdir()
            return SweepFolder(path)


def find(out: Path, name_or_path: str, *, option: str = "--resume") -> SweepFolder:
    """A sweep by its name under `out`, or by its path.

    Raises:
        UserError: there is none.
    """
    where = f"under {out.resolve()}"
    for path in (out / name_or_path, Path(name_or_path)):
        if (path / "space.yaml").is_file():
            return SweepFolder(path.resolve())
        if path.is_dir():
            where = f"at {path.resolve()}, which has no space.yaml"
    known = ", ".join(folder.name for folder in existing(out)) or "none"
    raise UserError(f"{option} {name_or_path}: there is no such sweep {where}. Known: {known}.")


def existing(out: Path) -> list[SweepFolder]:
    """All sweeps under `out`, by name."""
    return [SweepFolder(path.parent.resolve()) for path in sorted(out.glob("*-[0-9]*/space.yaml"))]


def cache(out: Path) -> Path:
    """Where prepared data and features are kept between sweeps: WGANGP_CACHE, else `<out>/cache`."""
    return Path(os.environ.get("WGANGP_CACHE") or out / "cache").resolve()


def _number(path: Path, name: str) -> int:
    match = re.fullmatch(re.escape(name) + r"-(\d+)", path.name)
    return int(match[1]) if match else 0
