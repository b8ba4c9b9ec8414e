"""How fast a setting trains here, measured in seconds: for whoever plans many runs."""

import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from wgangp.config import TrainConfig

SECONDS = 2.0
"""Of training, at least, after the first step, by which the speed is told."""


@dataclass(frozen=True)
class Speed:
    """What a setting costs.

    Attributes:
        startup_seconds: to build and compile it.
        images_per_second: real images the critic sees while it trains.
        evaluation_seconds: of each tick, besides training.
        checkpoint_bytes: of one checkpoint.
    """

    startup_seconds: float
    images_per_second: float
    evaluation_seconds: float
    checkpoint_bytes: int


def measure(trainer: Any, config: TrainConfig) -> Speed:
    """Let a `Trainer` train a little, evaluate, save; its next `start` begins as if nothing had been.

    Raises:
        UserError: as `Trainer.start`.
    """
    begin = time.perf_counter()
    trainer.start(config)
    trainer.train_steps(1)
    started = time.perf_counter()
    steps, more = 0, 1
    while (spent := time.perf_counter() - started) < SECONDS:
        trainer.train_steps(more)
        steps += more
        speed = steps / (time.perf_counter() - started)
        more = max(1, round(speed * SECONDS / 4))
    trainer.evaluate()  # what it compiles is compiled once for all trials
    evaluation = time.perf_counter()
    trainer.evaluate()
    evaluated = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        trainer.save(Path(folder))
        size = sum(path.stat().st_size for path in Path(folder).iterdir())
    return Speed(
        startup_seconds=started - begin,
        images_per_second=steps * config.n_critic * config.batch_size / spent,
        evaluation_seconds=evaluated - evaluation,
        checkpoint_bytes=size,
    )
