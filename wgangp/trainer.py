"""Trainer: one tick of training at a time, evaluated. The door of this package for whoever runs trials.

    prepared = prepare(config, cache=...)
    trainer = Trainer(prepared)
    trainer.start(config)
    while (progress := trainer.advance()).outcome is None: ...

A trainer is long-lived: the next trial starts in it with new weights, and only another shape compiles again.
"""

import contextlib
import gc
import math
import time
from collections import OrderedDict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from wgangp import checkpoints, convergence, export, gan, networks, pictures, strategies
from wgangp.checkpoints import BEST_GENERATOR, CheckpointError
from wgangp.config import TrainConfig
from wgangp.errors import UserError
from wgangp.evaluation import Evaluation
from wgangp.measuring import measure
from wgangp.prepared import Prepared, freeze, prepare
from wgangp.progress import Progress
from wgangp.randomness import Purpose
from wgangp.rules import misfits
from wgangp.winner import export_winner, generator_of, score_winner

__all__ = [
    "CheckpointError",
    "Prepared",
    "Progress",
    "Trainer",
    "export_winner",
    "freeze",
    "measure",
    "prepare",
    "score_winner",
]

GRID_IMAGES = 64

_SHAPES_KEPT = 3
_CHUNK_SECONDS = 0.5  # of training between two looks at signals
_FIRST_CHUNK = 1  # generator steps, until the speed is known

_VERSION = 3  # of what a checkpoint holds, and of the numbers it goes on with
# A checkpoint fits a run that has these settings in common with it.
_FIT = (
    *(*gan.STATE_FIELDS, "dataset", "train_images", "split_seed"),
    *("tick_kimg", "fid_samples", "evaluation_seed"),
)


class Trainer:
    """Trains one setting after another on one data set.

    Attributes:
        tick: ticks done since `start`.
    """

    def __init__(
        self,
        prepared: Prepared,
        *,
        strategy: str = "auto",
        cpus: int = 1,
        gpus: float = 0,
        placement: str = "together",
        gang: strategies.Gang | None = None,
    ) -> None:
        """Set this process up; arguments as in `strategies.build`.

        Every trainer of a gang gets the same calls in the same order, at the same time as the others; but
        the first of them gets `advance` where the others get `follow`, and it alone is to save.
        """
        self._strategy = strategies.build(strategy, cpus=cpus, gpus=gpus, placement=placement, gang=gang)
        self._devices = strategies.split_devices(gpus) if placement == "split" else None
        self._in_step = gang is not None and gang.role == "worker"
        self._prepared = prepared
        # Each worker of a gang has the images; TensorFlow would send them round, which it cannot with bytes.
        with contextlib.nullcontext() if self._in_step else self._strategy.scope():
            self._images = tf.Variable(prepared.images, trainable=False)
        self._evaluation = Evaluation(prepared)
        self._compiled: OrderedDict[str, gan.WganGp] = OrderedDict()
        self.tick = 0

    @property
    def layout(self) -> str:
        """What it trains on, for a person."""
        apart = ", generator and critic apart" if self._devices else ""
        kind = type(self._strategy).__name__.removesuffix("Strategy") if not apart else "One device"
        return f"{kind}, {self._strategy.num_replicas_in_sync} replica(s){apart}"

    def start(self, config: TrainConfig) -> None:
        """Begin a run: new weights from its `init_seed`, tick 0, ready to train.

        Raises:
            UserError: the settings do not go with these replicas or this data.
        """
        self._check(config)
        self._config = config.resolved()
        shape = repr([getattr(config, field) for field in gan.SHAPE_FIELDS])
        if shape not in self._compiled:
            self._compiled[shape] = gan.WganGp(
                self._strategy,
                self._images,
                config,
                network_settings=self._prepared.network_settings(config),
                code=self._prepared.code.get(config.architecture),
                devices=self._devices,
            )
        self._compiled.move_to_end(shape)
        while len(self._compiled) > _SHAPES_KEPT:
            self._compiled.popitem(last=False)
            gc.collect()
        self._gan = self._compiled[shape]
        self._gan.start(self._config)
        self.tick = 0
        self._chunk = _FIRST_CHUNK
        self._dead_ticks = 0
        self._best_fid = math.inf
        self._best_generator: dict[str, np.ndarray] = {}

    def advance(self) -> Progress:
        """Train one tick, to the first whole generator step at or past its end, and evaluate.

        Raises:
            RuntimeError: the budget is used up.
        """
        metrics = self._train_tick()
        metrics |= self.evaluate()
        dead = self._config.penalty in convergence.SLOPE_ONE and convergence.is_dead(
            gradient_norm=metrics["gradient_norm"], wasserstein=metrics["wasserstein"]
        )
        self._dead_ticks = self._dead_ticks + 1 if dead else 0
        reason = convergence.divergence(
            metrics, weights_are_finite=self._gan.weights_are_finite(), dead_ticks=self._dead_ticks
        )
        complete = "complete" if self.tick == self._config.ticks else None
        return Progress(
            tick=self.tick,
            images_seen=self._images_seen,
            metrics=metrics,
            samples=self._grid(),
            outcome="diverged" if reason else complete,
            reason=reason,
        )

    def follow(self) -> None:
        """Train one tick in step with the trainer of the gang that says `advance`; evaluate nothing."""
        self._train_tick()

    def train_steps(self, count: int) -> None:
        """Train so many generator steps outside of any tick, to see how long they take."""
        self._gan.train(count, np.zeros(len(gan.SUMS)))

    def save(self, folder: Path) -> None:
        """Write a checkpoint, from which `load` goes on as if there had been no break."""
        best = {BEST_GENERATOR + name: array for name, array in self._best_generator.items()}
        state = {
            "settings": self._settings(),
            "tick": self.tick,
            "critic_steps": self._gan.critic_steps,
            "generator_steps": self._gan.generator_steps,
            "dead_ticks": self._dead_ticks,
            "best_fid": self._best_fid if best else None,
        }
        checkpoints.write(folder, {**self._gan.arrays(), **best}, state)

    def load(self, folder: Path) -> None:
        """After `start`: go on from a checkpoint. Its settings of shape and evaluation must be those started.

        Raises:
            CheckpointError: it is incomplete, damaged, or does not fit; the run is as `start` left it.
        """
        arrays, state = checkpoints.read(folder)
        for name, value in self._settings().items():
            if state["settings"].get(name) != value:
                found = state["settings"].get(name)
                raise CheckpointError(f"{folder} does not fit: {name} must be {value}, got {found}")
        best = {name: arrays.pop(name) for name in list(arrays) if name.startswith(BEST_GENERATOR)}
        try:
            self._gan.restore(
                arrays, critic_steps=state["critic_steps"], generator_steps=state["generator_steps"]
            )
        except ValueError as error:
            raise CheckpointError(f"{folder} does not fit: {error}") from error
        self.tick = state["tick"]
        self._dead_ticks = state["dead_ticks"]
        self._best_generator = {name.removeprefix(BEST_GENERATOR): array for name, array in best.items()}
        self._best_fid = state["best_fid"] if best else math.inf

    def export(self, folder: Path) -> str:
        """Write the best generator so far to `folder` as generator.keras; why not, if it cannot be."""
        if not self._best_generator:
            return "no tick has been scored"
        generator = generator_of(self._prepared, self._config, self._best_generator)
        return export.save(generator, folder / export.FILE)

    def forget(self) -> None:
        """Drop the compiled shapes that are not in use."""
        for shape in list(self._compiled)[:-1]:
            del self._compiled[shape]
        gc.collect()

    @property
    def _images_seen(self) -> int:
        return self._gan.critic_steps * self._config.batch_size

    def _check(self, config: TrainConfig) -> None:
        facts, problems = self._prepared.facts, []
        for name in ("dataset", "split_seed"):
            if getattr(config, name) != facts[name]:
                problems.append(
                    f"{name}: must be what was prepared, {facts[name]}, got {getattr(config, name)}."
                )
        found = misfits(
            config.model_dump(),
            replicas=self._strategy.num_replicas_in_sync,
            asynchronous=isinstance(self._strategy, tf.distribute.ParameterServerStrategy),
            train_images=len(self._prepared.images),
        )
        problems += [f"{clash}." for clash in found]
        if problems:
            raise UserError(*problems)

    def _settings(self) -> dict[str, Any]:
        """What a checkpoint must share with the run that loads it."""
        facts = self._prepared.facts
        shared = {"version": _VERSION, **{name: facts[name] for name in ("data_sha256", "features_sha256")}}
        return shared | {name: getattr(self._config, name) for name in _FIT}

    def _train_tick(self) -> dict[str, float]:
        """Train to the end of the next tick; its means and speed."""
        if self.tick >= self._config.ticks:
            raise RuntimeError(f"the budget of {self._config.budget_kimg:g} kimg is used up")
        self.tick += 1
        first_image = self._images_seen
        images_per_step = self._config.n_critic * self._config.batch_size
        missing = self.tick * self._config.tick_kimg * 1000 - first_image
        # The tolerance is for decimal fractions of kimg; the target is absolute, so nothing adds up.
        steps = left = math.ceil(missing / images_per_step - 1e-6)
        sums = np.zeros(len(gan.SUMS))
        began = time.perf_counter()
        while left:
            chunk = min(left, self._chunk)
            chunk_began = time.perf_counter()
            sums = self._gan.train(chunk, sums)
            left -= chunk
            speed = chunk / (time.perf_counter() - chunk_began)
            if not self._in_step:  # a gang's clocks differ, its calls must not
                self._chunk = min(4 * self._chunk, max(1, round(speed * _CHUNK_SECONDS)))
        seconds = time.perf_counter() - began
        counts = [steps * self._config.n_critic] * (len(gan.SUMS) - 1) + [steps]
        means = {name: float(s) / n for name, s, n in zip(gan.SUMS, sums, counts, strict=True)}
        return means | {"images_per_second": (self._images_seen - first_image) / seconds}

    def evaluate(self) -> dict[str, float]:
        """The scores, best FID and the critic's held-out gap; keeps the generator if it is the best yet."""
        fakes = self._samples(self._config.fid_samples, Purpose.FID_NOISE)
        described = self._evaluation.describe(fakes)
        found = self._evaluation.scores(described, names=self._config.scores)
        if found["fid"] < self._best_fid:
            self._best_fid = found["fid"]
            self._best_generator = self._gan.generator_arrays()
        heldout = self._prepared.heldout
        gap = self._gan.mean_value(self._prepared.images[: len(heldout)]) - self._gan.mean_value(heldout)
        return found | {"best_fid": self._best_fid, "heldout_gap": gap}

    def _grid(self) -> bytes:
        samples = np.concatenate(list(self._samples(GRID_IMAGES, Purpose.GRID_NOISE)))
        return pictures.draw(networks.to_data(samples), real=self._prepared.images)

    def _samples(self, count: int, purpose: Purpose) -> Iterator[np.ndarray]:
        assert self._config.evaluation_seed is not None, "resolved() writes it out"
        return self._gan.samples(count, seed=self._config.evaluation_seed, purpose=purpose)
