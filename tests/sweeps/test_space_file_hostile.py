"""Space files that mean harm, or are no files at all, given to the command line as a user would."""

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

RUN = Path(__file__).resolve().parents[2] / "sweeps" / "run.py"
SEARCH = "search: {gp_weight: {type: float, low: 0.1, high: 100}}\n"
SECONDS = 5
"""In which a mistake in the text is told; most of it is the start of Python on a busy machine."""


def huge(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(10**9)


HOSTILE: dict[str, tuple[bytes | Callable[[Path], object], str]] = {
    "a tag that runs a command": (
        b"search: !!python/object/apply:os.system ['touch hit']",
        "gp.yaml:1: is not YAML: could not determine a constructor for the tag",
    ),
    "a billion laughs": (
        b"a: &a [x, x]\n" + b"".join(b"%c: &%c [*%c, *%c]\n" % (i + 1, i + 1, i, i) for i in range(97, 117)),
        "must not use YAML aliases",
    ),
    "a deep nest": (b"search: " + b"[" * 40_000, "gp.yaml: is nested too deeply"),
    "a name that climbs": (SEARCH.encode() + b"name: ../../hit", "gp.yaml:2: name: must be letters"),
    "a name from the root": (SEARCH.encode() + b"name: /tmp/hit", "gp.yaml:2: name: must be letters"),
    "a data set that is a path": (
        SEARCH.encode() + b"train: {dataset: ../../etc/passwd}",
        "gp.yaml:2: train.dataset: must be ",
    ),
    "a float beyond floats": (
        SEARCH.encode() + b"train: {budget_kimg: 1e400}",
        "gp.yaml:2: train.budget_kimg",
    ),
    "an integer of 5000 digits": (
        SEARCH.encode() + b"train: {width: 1" + b"0" * 5000 + b"}",
        "gp.yaml: is not",
    ),
    "a billion trials": (
        SEARCH.encode() + b"sweep: {trials: 1000000000}",
        "gp.yaml:2: sweep.trials: must be",
    ),
    "a billion trials, as a float": (
        SEARCH.encode() + b"sweep: {trials: 1e9}",
        "gp.yaml:2: sweep.trials: must",
    ),
    "a NUL": (b"name: a\0b", "gp.yaml: is not YAML: unacceptable character #x0000"),
    "no UTF-8": (b"name: \xff\xfe", "gp.yaml: must be UTF-8 text"),
    "a folder": (Path.mkdir, "gp.yaml: cannot be read: Is a directory"),
    "a pipe that nobody writes to": (os.mkfifo, "gp.yaml: must be a file, got a pipe or a device"),
    "a device without an end": (
        lambda path: path.symlink_to("/dev/zero"),
        "gp.yaml: must be a file, got a pipe or a device",
    ),
    "a gigabyte": (huge, "gp.yaml: must be at most 50,000 bytes"),
}


@pytest.mark.parametrize(("content", "said"), HOSTILE.values(), ids=HOSTILE)
def test_it_is_refused_in_one_line_at_once_and_nothing_comes_of_it(
    tmp_path: Path, content: bytes | Callable[[Path], object], said: str
) -> None:
    path = tmp_path / "gp.yaml"
    path.write_bytes(content) if isinstance(content, bytes) else content(path)
    began = time.monotonic()
    done = subprocess.run(
        [sys.executable, RUN, "--space", "gp.yaml"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
    )

    assert time.monotonic() - began < SECONDS
    assert (done.returncode, done.stdout, len(done.stderr.splitlines())) == (2, "", 1), done.stderr
    assert said in done.stderr and len(done.stderr) < 300
    assert [entry.name for entry in tmp_path.iterdir()] == ["gp.yaml"]
