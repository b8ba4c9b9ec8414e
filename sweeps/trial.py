"""A warm worker: one Ray actor that trains one trial after another, by itself or through a gang it leads.

Networks, data and features stay in the process; the next trial brings only its settings. Nothing that can
fail happens in `setup` or `reset_config`: Ray retries neither, so building and loading wait for the first
`step`.
"""

import importlib
import time
from pathlib import Path
from typing import Any

import psutil
import ray
from ray import tune

from sweeps.failures import in_one_line
from sweeps.gang import GangTrainer
from sweeps.records import Assignment, WorkerFull
from wgangp.checkpoints import CheckpointError


class SweepTrial(tune.Trainable):
    """Ray calls `step` once a tick and `save_checkpoint` after each; the study on the driver decides."""

    def setup(self, config: dict[str, Any], shared: dict[str, Any]) -> None:  # type: ignore[override]
        """What all trials share, by name.

        `prepared` (a reference), `trainer` (a module), `resources` (of each trainer), `roles` (the processes
        of a gang; empty: none), `cores` (of a trial), `memory_limit` (bytes of a process).
        """
        self._shared = shared
        self._trainer: Any = None
        self._idle_since = time.monotonic()
        self._take(config)

    def reset_config(self, new_config: dict[str, Any]) -> bool:
        self._take(new_config)
        return True

    def _take(self, config: dict[str, Any]) -> None:
        self._assignment: Assignment = config["assignment"]
        self._started = False
        self._notices: list[str] = []

    def step(self) -> dict[str, Any]:
        with in_one_line():
            return self._step()

    def _step(self) -> dict[str, Any]:
        begin = time.monotonic()
        first = not self._started
        if first:
            self._start()
            self._started, begin = True, time.monotonic()
            self._startup_seconds = begin - self._idle_since
        progress = self._trainer.advance()
        if first:
            self._core_seconds = self._assignment.core_seconds.get(progress.tick - 1, 0.0)
        self._core_seconds += (time.monotonic() - begin) * self._shared["cores"]
        self._idle_since = time.monotonic()
        extra = {"core_seconds": self._core_seconds, "startup_seconds": self._startup_seconds}
        return {
            "label": self._assignment.label,
            "tick": progress.tick,
            "measured_ms": int(time.time() * 1000),
            "metrics": progress.metrics | {"images_seen": progress.images_seen} | extra,
            "samples": progress.samples,
            "outcome": progress.outcome,
            "reason": progress.reason,
            "notices": self._notices if first else [],
        }

    def _start(self) -> None:
        """Build or reuse the networks, then take the newest checkpoint that holds."""
        self._stay_within_memory()
        if self._trainer is None:
            self._trainer = self._new_trainer()
        self._trainer.start(self._assignment.config)
        damaged = []
        for checkpoint in self._assignment.checkpoints:
            try:
                self._trainer.load(checkpoint)
                break
            except CheckpointError as error:
                damaged.append(str(error))
        if damaged:
            kimg = self._trainer.tick * self._assignment.config.tick_kimg
            what_now = f"it goes on after {kimg:g} kimg" if kimg else "it begins anew"
            self._notices = [f"{'; '.join(damaged)}; {what_now}"]

    def _new_trainer(self) -> Any:
        prepared, name, resources = (self._shared[key] for key in ("prepared", "trainer", "resources"))
        if roles := self._shared["roles"]:
            return GangTrainer(prepared, trainer=name, roles=roles, resources=resources)
        return importlib.import_module(name).Trainer(ray.get(prepared), **resources)

    def _stay_within_memory(self) -> None:
        limit = self._shared["memory_limit"]
        if self._trainer is None or self._resident_bytes() <= limit:
            return
        self._trainer.forget()
        size = self._resident_bytes()
        if size > limit:
            raise WorkerFull(f"{size / 1e9:.1f} GB used, the limit is {limit / 1e9:.1f} GB")

    def _resident_bytes(self) -> int:
        if isinstance(self._trainer, GangTrainer):
            return self._trainer.resident_bytes()
        return psutil.Process().memory_info().rss

    def save_checkpoint(self, checkpoint_dir: str) -> None:
        with in_one_line():
            self._trainer.save(Path(checkpoint_dir))
        # Ray would keep the picture in the checkpoint's metrics, and so in its own state, for good.
        if self._last_result:
            self._last_result = {key: value for key, value in self._last_result.items() if key != "samples"}

    def cleanup(self) -> None:
        """Ray is about to end this process."""
        if isinstance(self._trainer, GangTrainer):
            self._trainer.end()
