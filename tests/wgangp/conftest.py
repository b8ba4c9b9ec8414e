"""What the tests of wgangp share: one thread, small settings, and the prepared digits."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.wgangp.under import Runner
from wgangp import strategies
from wgangp.config import TrainConfig
from wgangp.prepared import Prepared, prepare
from wgangp.trainer import Trainer

# Bitwise equality is promised on one thread; TensorFlow takes the number before its first operation.
strategies.configure(intra_op=1, inter_op=1)

SMALL = {
    "dataset": "digits",
    "width": 4,
    "latent_size": 16,
    "batch_size": 32,
    "n_critic": 2,
    "critic_lr": 1e-3,
    "generator_lr": 1e-3,
    "ema_decay": 0.9,
    "tick_kimg": 0.64,
    "budget_kimg": 1.92,
    "fid_samples": 200,
}


@pytest.fixture(scope="session")
def settings() -> Callable[..., TrainConfig]:
    """Makes settings of a run of seconds: three ticks of 10 generator steps on digits."""

    def settings(**changes: Any) -> TrainConfig:
        return TrainConfig(**{**SMALL, **changes})

    return settings


@pytest.fixture(scope="session")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(scope="session")
def prepared(settings: Callable[..., TrainConfig], cache: Path) -> Prepared:
    return prepare(settings(), cache=cache, say=lambda line: None)


@pytest.fixture(scope="module")
def trainer(prepared: Prepared) -> Trainer:
    """A warm trainer, shared by the tests of a file: each starts its own run in it."""
    return Trainer(prepared)


@pytest.fixture(scope="session")
def random() -> np.random.Generator:
    return np.random.default_rng(0)


@pytest.fixture(scope="session")
def under(cache: Path, prepared: Prepared, tmp_path_factory: pytest.TempPathFactory) -> Runner:
    """Trains in processes of their own; data and features are in the cache."""
    return Runner(cache, tmp_path_factory.mktemp("under"))
