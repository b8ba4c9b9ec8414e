"""The disk that a sweep is on fills up: a small one, in a namespace of its own, which needs no root."""

import contextlib
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.faults.conftest import ScriptedSweep

MEGABYTES = 12


class SmallDisk:
    """A tmpfs at `path`, seen by commands that start with `enter`; from outside it is at `seen`."""

    def __init__(self, path: Path) -> None:
        path.mkdir()
        self.path = path
        mount = f"mount -t tmpfs -o size={MEGABYTES}m none '{path}' && echo mounted && exec cat"
        self._holder = subprocess.Popen(
            ["unshare", "--map-root-user", "--mount", "sh", "-c", mount],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self._holder.stdout and self._holder.stdout.readline() == "mounted\n"
        self.enter = ["nsenter", "--target", str(self._holder.pid), "--user", "--mount"]
        self.enter += ["--preserve-credentials"]
        self.seen = Path(f"/proc/{self._holder.pid}") / "root" / path.relative_to("/")

    def fill(self, *, but: int) -> None:
        """Write what there is room for, but for so many bytes."""
        ballast = (self.seen / "ballast").open("wb", buffering=0)
        with contextlib.suppress(OSError):
            while ballast.write(b"x" * 4096):
                pass
        ballast.truncate(max(0, ballast.tell() - but))
        ballast.close()

    def free(self) -> None:
        (self.seen / "ballast").unlink()

    def copy(self) -> None:
        """Show the files as they are now at the same path outside, whose folder holds the mount."""
        for entry in self.path.iterdir():
            shutil.rmtree(entry) if entry.is_dir() else entry.unlink()
        shutil.copytree(self.seen, self.path, dirs_exist_ok=True)

    def close(self) -> None:
        self._holder.communicate()
        assert self._holder.returncode == 0


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[SmallDisk]:
    disk = SmallDisk(tmp_path / "disk")
    yield disk
    disk.close()


@pytest.fixture
def sweep(disk: SmallDisk, tmp_path: Path) -> ScriptedSweep:
    sweep = ScriptedSweep(tmp_path)  # script and notes stay off the disk
    sweep.out, sweep.folder = disk.path, disk.path / "scripted-0001"
    sweep.within = disk.enter
    return sweep


@pytest.mark.parametrize("left", [0, 4096, 3 * 4096, 20 * 4096])
def test_a_full_disk_interrupts_the_sweep_and_resume_goes_on_once_there_is_room(
    sweep: ScriptedSweep, disk: SmallDisk, space: str, left: int
) -> None:
    sweep.script(seconds=0.5)
    status = sweep.run_until(
        lambda line: line.startswith("t001  18"), lambda driver: disk.fill(but=left), "--space", space
    )
    assert status == 130, sweep.output
    (said,) = [line for line in sweep.output.splitlines() if line.startswith("The disk is full")]
    assert said.startswith("The disk is full; free some space, then go on: ") and "--resume" in said
    assert "Traceback" not in sweep.output
    disk.copy()
    assert set(sweep.outcomes().values()) <= {"complete", "interrupted"}
    for label, trial in sweep.trials().items():
        kept = list((sweep.folder / "trials").glob(f"*/{label}*/checkpoint_*"))
        assert len(kept) == len(trial.user_attrs.get("checkpoints", [])) <= 2

    disk.free()
    done = len(sweep.ticks())
    assert sweep.run("--resume", "scripted-0001") == 0, sweep.output
    disk.copy()
    sweep.assert_everything_agrees()
    sweep.assert_nothing_is_open(trials=3)
    assert len(sweep.ticks()) - done <= 12 - done + 2 * 2, "more than a tick of each live trial was lost"
    for trial in sweep.trials().values():
        assert len(trial.user_attrs["attempts"]) <= 2


def test_a_disk_that_is_full_from_the_start_is_said_in_one_line_and_leaves_nothing(
    sweep: ScriptedSweep, disk: SmallDisk, space: str
) -> None:
    disk.fill(but=0)
    assert sweep.run("--space", space) == 130
    assert "Traceback" not in sweep.output
    assert sweep.output.splitlines()[-1].startswith("The disk is full.")
    assert [path.name for path in disk.seen.iterdir() if "scripted" in path.name] == []
