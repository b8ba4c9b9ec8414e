"""The update: n_critic critic steps and a generator step, on one replica or many, in parts or whole.

`gan` owns the variables and compiles what is here. Each replica works on its slice of what is drawn for the
global batch. Keras adds gradients up over replicas: so every term of a loss is divided by the global batch.
"""

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import keras
import tensorflow as tf

from wgangp import losses, networks, randomness
from wgangp.config import TrainConfig
from wgangp.layers import value_dtype
from wgangp.randomness import Purpose

SUMS = (*losses.CriticTerms._fields, "generator_loss")
"""What an update adds up: the first four over critic steps, the last over generator steps."""


@dataclass(frozen=True)
class Trained:
    """All that an update changes, and the settings it reads.

    Attributes:
        generator: z [b, latent_size] -> images [b, H, W, C] in -1..1.
        averaged: the generator with an exponential moving average of its weights.
        critic: images [b, H, W, C] in -1..1 -> [b, 1].
        generator_optimizer: of the generator.
        critic_optimizer: of the critic.
        settings: variables, by the names of `TrainConfig`.
        lr_factor: a variable: what both rates are multiplied with.
    """

    generator: keras.Model
    averaged: keras.Model
    critic: keras.Model
    generator_optimizer: keras.optimizers.Optimizer
    critic_optimizer: keras.optimizers.Optimizer
    settings: Mapping[str, tf.Variable]
    lr_factor: tf.Variable


class Update:
    """Algorithm 1 of Gulrajani et al. 2017 under a strategy."""

    def __init__(
        self,
        trained: Trained,
        images: tf.Variable,
        config: TrainConfig,
        *,
        strategy: tf.distribute.Strategy,
        devices: Mapping[str, str],
    ) -> None:
        """Arguments as those of `gan.WganGp`; `devices` may be empty."""
        self._trained, self._settings = trained, trained.settings
        self._images, self._strategy, self._devices = images, strategy, devices
        self._dtype = value_dtype(config.precision)
        self._falling, self._flips = config.lr_schedule == "linear", config.flips
        self._latent_size, self._penalty = config.latent_size, config.penalty
        self._m, self._accumulation_steps = config.batch_size, config.accumulation_steps

    def steps(
        self, steps: tf.Tensor, critic_step: tf.Tensor, generator_step: tf.Tensor, sums: tf.Tensor
    ) -> tf.Tensor:
        """`steps` generator steps, each after its critic steps, beginning with those of the given numbers.

        Returns:
            float64 [5]: `sums` and what was added to them.
        """
        # Not `for`: XLA compiles no range whose length it does not know.
        end = generator_step + steps
        while generator_step < end:
            sums = self.step(critic_step, generator_step, sums)
            critic_step += self._settings["n_critic"]
            generator_step += 1
        return sums

    def step(self, critic_step: tf.Tensor, generator_step: tf.Tensor, sums: tf.Tensor) -> tf.Tensor:
        """One generator step after its critic steps; returns as `steps`."""
        if self._falling:
            self._lower_rates(critic_step)
        end = critic_step + self._settings["n_critic"]
        while critic_step < end:
            sums += self._total(self._strategy.run(self._critic_step, args=(critic_step,)))
            critic_step += 1
            if self._penalty == "clip":
                self._clip()
        sums += self._total(self._strategy.run(self._generator_step, args=(generator_step,)))
        self._average()
        return sums

    def _lower_rates(self, critic_step: tf.Tensor) -> None:
        """By what is left of the budget: from 1 down to 0, a function of the step alone."""
        seen = tf.cast(critic_step * self._m, tf.float64) / 1000
        left = 1 - seen / tf.cast(self._settings["budget_kimg"], tf.float64)
        self._trained.lr_factor.assign(tf.cast(tf.maximum(left, 0), self._dtype))

    def _critic_step(self, step: tf.Tensor) -> tf.Tensor:
        """One step on a fresh batch of real images; returns this replica's part of `SUMS`."""
        rows = randomness.data_rows(
            self._slice(step * self._m + tf.range(self._m, dtype=tf.int64)),
            seed=self._settings["seed"],
            count=self._images.shape[0],
        )
        z = self._noise(Purpose.CRITIC_NOISE, step)
        e = self._slice(
            randomness.uniform(
                [self._m],
                seed=self._settings["seed"],
                purpose=Purpose.INTERPOLATION,
                step=step,
                dtype=self._dtype,
            )
        )
        mirrored = self._mirrored(step) if self._flips else tf.zeros_like(rows, tf.bool)
        gradients, terms = self._accumulated(self._critic_gradients, rows, mirrored, z, e)
        _apply(self._trained.critic_optimizer, gradients, self._trained.critic)
        return tf.concat([terms, tf.zeros([1], self._dtype)], 0)

    def _critic_gradients(
        self, rows: tf.Tensor, mirrored: tf.Tensor, z: tf.Tensor, e: tf.Tensor
    ) -> tuple[list[tf.Tensor], tf.Tensor]:
        """Of the critic's loss over these examples; and `losses.CriticTerms`, stacked."""
        with self._on("generator"):
            x_tilde = self._trained.generator(z, training=True)
        with self._on("critic"):
            x = networks.from_data(tf.gather(self._images, rows), self._dtype)
            if self._flips:
                x = tf.where(mirrored[:, None, None, None], tf.reverse(x, [2]), x)
            with tf.GradientTape() as tape:
                terms = losses.critic_terms(
                    self._critic,
                    x=x,
                    x_tilde=x_tilde,
                    e=e,
                    gp_weight=self._settings["gp_weight"],
                    m=self._m,
                    penalty=self._penalty,
                    drift=self._settings["drift"],
                )
            return tape.gradient(terms.critic_loss, self._trained.critic.trainable_variables), tf.stack(terms)

    def _generator_step(self, step: tf.Tensor) -> tf.Tensor:
        """One step; returns this replica's part of `SUMS`."""
        z = self._noise(Purpose.GENERATOR_NOISE, step)
        gradients, loss = self._accumulated(self._generator_gradients, z)
        _apply(self._trained.generator_optimizer, gradients, self._trained.generator)
        return tf.concat([tf.zeros([len(SUMS) - 1], self._dtype), loss[None]], 0)

    def _generator_gradients(self, z: tf.Tensor) -> tuple[list[tf.Tensor], tf.Tensor]:
        """Of the generator's loss over these examples; and the loss.

        The chain is cut at the images, so that each network's part runs where the network is.
        """
        with self._on("generator"), tf.GradientTape() as generator_tape:
            x_tilde = self._trained.generator(z, training=True)
        with self._on("critic"):
            with tf.GradientTape(watch_accessed_variables=False) as critic_tape:
                critic_tape.watch(x_tilde)
                loss = losses.generator_loss(self._critic, x_tilde, m=self._m)
            slope = critic_tape.gradient(loss, x_tilde)
        with self._on("generator"):
            variables = self._trained.generator.trainable_variables
            return generator_tape.gradient(x_tilde, variables, output_gradients=slope), loss

    def _accumulated(self, gradients_of: Any, *batch: tf.Tensor) -> tuple[list[tf.Tensor], tf.Tensor]:
        """What `gradients_of` gives for a batch, added up over its parts, one after another.

        Every term is divided by the global batch already, so the sum is that of the whole.
        """
        count = self._accumulation_steps
        total = gradients_of(*(_share(of_all, 0, count) for of_all in batch))
        if count == 1:
            return total
        return tf.while_loop(
            lambda part, total: part < count,
            lambda part, total: (
                part + 1,
                tf.nest.map_structure(
                    tf.add, total, gradients_of(*(_share(of_all, part, count) for of_all in batch))
                ),
            ),
            (tf.constant(1), total),
            parallel_iterations=1,  # else the parts would fill the memory side by side
        )[1]

    def _clip(self) -> None:
        """After each critic step: every weight of the critic within its bound (Arjovsky et al. 2017)."""
        bound = self._settings["weight_clip"]
        for weight in self._trained.critic.trainable_variables:
            weight.assign(tf.clip_by_value(weight, -bound, bound))

    def _average(self) -> None:
        """Move the averaged weights towards the generator's; a decay of 0 makes them equal.

        Statistics of batch normalisation are averages already: averaged again they would lag behind so far
        that a generator early in its training is scored as one that draws nothing. They are taken over.
        """
        averaged, generator = self._trained.averaged, self._trained.generator
        decay = self._settings["ema_decay"]
        for average, weight in zip(averaged.trainable_variables, generator.trainable_variables, strict=True):
            average.assign(decay * average + (1 - decay) * weight)
        for average, weight in zip(
            averaged.non_trainable_variables, generator.non_trainable_variables, strict=True
        ):
            average.assign(weight)

    def _critic(self, x: tf.Tensor) -> tf.Tensor:
        return self._trained.critic(x, training=True)

    def _mirrored(self, step: tf.Tensor) -> tf.Tensor:
        """Which images of this replica's part of the batch are mirrored."""
        draws = randomness.uniform(
            [self._m], seed=self._settings["seed"], purpose=Purpose.FLIPS, step=step, dtype="float32"
        )
        return self._slice(draws < 0.5)

    def _noise(self, purpose: Purpose, step: tf.Tensor) -> tf.Tensor:
        return self._slice(
            randomness.normal(
                [self._m, self._latent_size],
                seed=self._settings["seed"],
                purpose=purpose,
                step=step,
                dtype=self._dtype,
            )
        )

    def _slice(self, batch: tf.Tensor) -> tf.Tensor:
        """This replica's part of what was drawn for the global batch."""
        replica = tf.distribute.get_replica_context()
        return _share(batch, replica.replica_id_in_sync_group, replica.num_replicas_in_sync)

    def _total(self, parts: Any) -> tf.Tensor:
        return tf.cast(self._strategy.reduce(tf.distribute.ReduceOp.SUM, parts, axis=None), tf.float64)

    def _on(self, network: str) -> contextlib.AbstractContextManager:
        """Where `network` is, if the networks are apart."""
        return tf.device(self._devices[network]) if self._devices else contextlib.nullcontext()


def _apply(optimizer: keras.optimizers.Optimizer, gradients: list[tf.Tensor], network: keras.Model) -> None:
    optimizer.apply_gradients(zip(gradients, network.trainable_variables, strict=True))


def _share(batch: tf.Tensor, which: Any, count: int) -> tf.Tensor:
    """One of `count` equal parts of a batch, of a shape that is known when `which` is not."""
    return tf.reshape(batch, [count, batch.shape[0] // count, *batch.shape[1:]])[which]
