"""Starts `train_under.py` and reads what it trained."""

import json
import os
import socket
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

SCRIPT = Path(__file__).with_name("train_under.py")
ROOT = SCRIPT.parent.parent.parent
MINUTES = 10

Arrays = dict[str, np.ndarray]


@dataclass(frozen=True)
class Trained:
    """One run: all arrays of its state before and after, its metrics by tick, and what its replicas drew."""

    begin: Arrays = field(default_factory=dict)
    end: Arrays = field(default_factory=dict)
    progress: Arrays = field(default_factory=dict)
    counts: Arrays = field(default_factory=dict)
    device: Arrays = field(default_factory=dict)
    noise: list[np.ndarray] = field(default_factory=list)

    def moved(self, network: str) -> float:
        """How far the weights of a network went, as a share of where they began."""
        return distance(self.end, self.begin, network)


def distance(a: Mapping[str, np.ndarray], b: Mapping[str, np.ndarray], group: str) -> float:
    """Relative, over all arrays of a group as one vector."""
    keys = [key for key in b if key.startswith(f"{group}/")]
    squares = sum(((a[key] - b[key]) ** 2).sum() for key in keys)
    return float(np.sqrt(squares / sum((b[key] ** 2).sum() for key in keys)))


def assert_same(one: Trained, other: Trained, *, within: float) -> None:
    """All arrays, both optimizers' slots included, and all metrics, each relative to its largest value."""
    assert one.end.keys() == other.end.keys() and len(one.end) >= 20
    assert one.progress.keys() == other.progress.keys() and len(one.progress) == 12
    assert one.counts == other.counts
    for key, array in (one.end | one.progress).items():
        found = (other.end | other.progress)[key]
        assert np.isfinite(array).all(), key
        difference = float(np.abs(array - found).max()) / max(float(np.abs(array).max()), 1e-300)
        assert difference <= within, f"{key} differs by {difference:.1e}"


class Runner:
    """Trains `runs` (see train_under.py) in processes of their own."""

    def __init__(self, cache: Path, folder: Path) -> None:
        self._cache, self._folder, self._count = cache, folder, 0

    def alone(self, *runs: dict[str, Any], devices: int = 1) -> dict[str, Trained]:
        """In one process with so many logical CPUs; with one, on one thread."""
        process, out = self._start(runs, devices=devices)
        return self._read(process, out)

    def in_step(self, *runs: dict[str, Any], workers: int = 2) -> dict[str, Trained]:
        """In workers of MultiWorkerMirroredStrategy; the first one's, with the noise of all."""
        addresses = {"worker": free_addresses(workers)}
        started = [
            self._start(runs, gang={"addresses": addresses, "role": "worker", "index": index})
            for index in range(workers)
        ]
        first, *others = [self._read(*one) for one in started]
        for other in others:
            for name, trained in other.items():
                first[name].noise.extend(trained.noise)
                for key, array in trained.end.items():
                    np.testing.assert_array_equal(array, first[name].end[key])
        return first

    def asynchronously(self, *runs: dict[str, Any], workers: int = 2) -> dict[str, Trained]:
        """By a coordinator, workers and one parameter server."""
        addresses = {
            "chief": free_addresses(1),
            "worker": free_addresses(workers),
            "ps": free_addresses(1),
        }
        servers = [("ps", 0), *(("worker", index) for index in range(workers))]
        started = [
            self._start([], gang={"addresses": addresses, "role": role, "index": index}, serve=True)
            for role, index in servers
        ]
        try:
            return self._read(*self._start(runs, gang={"addresses": addresses, "role": "chief", "index": 0}))
        finally:
            for process, _ in started:
                process.kill()
                process.wait()

    def _start(self, runs: Any, **order: Any) -> tuple[subprocess.Popen, Path]:
        self._count += 1
        path = self._folder / f"{self._count}.json"
        out = path.with_suffix(".npz")
        order = {"devices": 0, "gang": None, "serve": False} | order
        path.write_text(json.dumps({"cache": str(self._cache), "out": str(out), "runs": list(runs), **order}))
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "TF_CPP_MIN_LOG_LEVEL": "3"}
        with path.with_suffix(".log").open("w") as log:
            command = [sys.executable, str(SCRIPT), str(path)]
            return subprocess.Popen(command, env=environment, stdout=log, stderr=subprocess.STDOUT), out

    def _read(self, process: subprocess.Popen, out: Path) -> dict[str, Trained]:
        try:
            status = process.wait(timeout=60 * MINUTES)
        finally:
            process.kill()
        assert status == 0, out.with_suffix(".log").read_text()[-5000:]
        found: dict[str, Trained] = {}
        with np.load(out) as file:
            for key in file.files:
                name, part, *rest = key.split("/", 2)
                trained = found.setdefault(name, Trained())
                if part == "noise":
                    trained.noise.extend(file[key])
                else:
                    getattr(trained, part)[rest[0]] = file[key]
        return found


def free_addresses(count: int) -> list[str]:
    """Loopback addresses nobody listens on, all different."""
    sockets = [socket.socket() for _ in range(count)]
    for one in sockets:
        one.bind(("127.0.0.1", 0))
    addresses = [f"127.0.0.1:{one.getsockname()[1]}" for one in sockets]
    for one in sockets:
        one.close()
    return addresses
