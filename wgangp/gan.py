"""WganGp: the variables of one training run, the compiled update, samples, and its state as arrays.

`trainer` builds one per shape and uses it for many trials: every setting that is no shape is a variable.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from wgangp import losses, networks, randomness
from wgangp.config import TrainConfig
from wgangp.networks import EVALUATION_BATCH
from wgangp.randomness import Purpose

SHAPE_FIELDS = ("architecture", "width", "latent_size", "batch_size", "precision", "penalty", "optimizer")
"""The settings a compiled WganGp is bound to; any other may change without compiling again."""

SUMS = (*losses.CriticTerms._fields, "generator_loss")
"""What `WganGp.train` adds up: the first four over critic steps, the last over generator steps."""


class WganGp:
    """Generator, critic, their optimizers, and the update that trains them.

    Attributes:
        generator: z [b, latent_size] -> images [b, H, W, C] in -1..1.
        critic: images [b, H, W, C] in -1..1 -> [b, 1].
        averaged: the generator with an exponential moving average of its weights; what is sampled and scored.
        critic_steps: critic steps since `start`.
        generator_steps: generator steps since `start`.
    """

    def __init__(self, strategy: tf.distribute.Strategy, images: tf.Variable, config: TrainConfig) -> None:
        """Build for the shapes of `config` (`SHAPE_FIELDS`).

        Args:
            strategy: where; its replicas divide the batch evenly.
            images: uint8 [N, H, W, C], a variable of `strategy`.
            config: read for the shapes only; the other settings come with `start`.
        """
        self._strategy = strategy
        self._images = images
        self._dtype = config.precision
        self._latent_size = config.latent_size
        self._penalty, self._optimizer_name = config.penalty, config.optimizer
        self._m = config.batch_size
        self._b = config.batch_size // strategy.num_replicas_in_sync
        shape: dict[str, Any] = {"image_shape": tuple(images.shape[1:]), "width": config.width}
        with strategy.scope():
            self.critic = networks.build_critic(config.architecture, **shape, dtype=self._dtype)
            self.generator, self.averaged = (
                networks.build_generator(
                    config.architecture, **shape, latent_size=config.latent_size, dtype=self._dtype
                )
                for _ in range(2)
            )
            self._gp_weight = self._setting(self._dtype)
            self._n_critic = self._setting("int64")
            self._seed = self._setting("int64")
            self._drift, self._weight_clip = (self._setting(self._dtype) for _ in range(2))
            self._critic_lr, self._generator_lr, self._beta1, self._beta2, self._ema_decay = (
                self._setting(self._dtype) for _ in range(5)
            )
            self._critic_optimizer = self._optimizer(self.critic, self._critic_lr)
            self._generator_optimizer = self._optimizer(self.generator, self._generator_lr)
        self._train = tf.function(self._train_steps)
        self._sample = tf.function(self.averaged, input_signature=[_any_batch(self.averaged)])
        self._value = tf.function(self._value_of_pixels, input_signature=[_any_batch(self.critic, tf.uint8)])
        self.critic_steps = 0
        self.generator_steps = 0

    def start(self, config: TrainConfig) -> None:
        """New weights from `init_seed`, optimizers at rest, counters at 0, all other settings of `config`.

        `config` is resolved and has the shapes this was built for. The first call traces the update.
        """
        assert config.init_seed is not None, "resolved() writes it out"
        with self._strategy.scope():
            networks.initialise(self.critic, seed=config.init_seed)
            networks.initialise(self.generator, seed=config.init_seed)
            networks.initialise(self.averaged, seed=config.init_seed)
            for optimizer in (self._critic_optimizer, self._generator_optimizer):
                for variable in optimizer.variables:
                    variable.assign(tf.zeros(variable.shape, variable.dtype))
            self._gp_weight.assign(config.gp_weight)
            self._drift.assign(config.drift)
            self._weight_clip.assign(config.weight_clip)
            self._n_critic.assign(config.n_critic)
            self._seed.assign(config.seed)
            self._critic_lr.assign(config.critic_lr)
            self._generator_lr.assign(config.generator_lr)
            self._beta1.assign(config.adam_beta1)
            self._beta2.assign(config.adam_beta2)
            self._ema_decay.assign(config.ema_decay)
        self.critic_steps = self.generator_steps = 0
        self.train(0)

    def train(self, steps: int, sums: np.ndarray | None = None) -> np.ndarray:
        """Make `steps` generator steps, each after n_critic critic steps.

        Args:
            steps: 0 or more; another number costs no new trace.
            sums: what an earlier call returned, to go on adding to it (default: zeros).

        Returns:
            float64 [5], the sums named in `SUMS`.
        """
        total = self._train(
            tf.constant(steps, tf.int64),
            tf.constant(self.critic_steps, tf.int64),
            tf.constant(self.generator_steps, tf.int64),
            tf.constant(np.zeros(len(SUMS)) if sums is None else sums, tf.float64),
        )
        self.critic_steps += steps * int(self._n_critic.numpy())
        self.generator_steps += steps
        return total.numpy()

    @property
    def traces(self) -> int:
        """How often the update has been traced."""
        return self._train.experimental_get_tracing_count()

    def samples(self, count: int, *, seed: int, purpose: Purpose) -> Iterator[np.ndarray]:
        """`count` generated images [n, H, W, C] in -1..1, batch by batch; fewer are the first of more."""
        return networks.sample(
            self._sample,
            count=count,
            latent_size=self._latent_size,
            dtype=self._dtype,
            seed=seed,
            purpose=purpose,
        )

    def mean_value(self, images: np.ndarray) -> float:
        """Mean of D over uint8 images [n, H, W, C]."""
        batches = (images[i : i + EVALUATION_BATCH] for i in range(0, len(images), EVALUATION_BATCH))
        return sum(float(self._value(batch)) for batch in batches) / len(images)

    def weights_are_finite(self) -> bool:
        """Whether no weight of either network is infinite or NaN."""
        weights = (*self.generator.weights, *self.critic.weights)
        return all(np.isfinite(w.numpy()).all() for w in weights)

    def generator_arrays(self) -> dict[str, np.ndarray]:
        """Copies of the averaged generator's weights, named by their place."""
        return {str(i): w.numpy() for i, w in enumerate(self.averaged.weights)}

    def arrays(self) -> dict[str, np.ndarray]:
        """Copies of the networks' weights and the optimizers' variables: with the counters, the state."""
        return {name: variable.numpy() for name, variable in self._variables().items()}

    def restore(self, arrays: Mapping[str, np.ndarray], *, critic_steps: int, generator_steps: int) -> None:
        """After `start`: take back what `arrays` gave and the counters of that moment.

        Raises:
            ValueError: a name, shape or dtype is another; nothing was changed then.
        """
        variables = self._variables()
        expected = {name: (tuple(v.shape), np.dtype(v.dtype)) for name, v in variables.items()}
        found = {name: (a.shape, a.dtype) for name, a in arrays.items()}
        if found != expected:
            raise ValueError("the arrays are those of another network")
        with self._strategy.scope():
            for name, variable in variables.items():
                variable.assign(arrays[name])
        self.critic_steps = critic_steps
        self.generator_steps = generator_steps

    def _variables(self) -> dict[str, Any]:
        groups = {
            "generator": self.generator.weights,
            "averaged": self.averaged.weights,
            "critic": self.critic.weights,
            "generator_optimizer": self._generator_optimizer.variables,
            "critic_optimizer": self._critic_optimizer.variables,
        }
        return {f"{group}/{i}": v for group, variables in groups.items() for i, v in enumerate(variables)}

    def _setting(self, dtype: str) -> tf.Variable:
        return tf.Variable(0, trainable=False, dtype=dtype)

    def _optimizer(self, model: keras.Model, lr: tf.Variable) -> keras.optimizers.Optimizer:
        optimizer: Any
        if self._optimizer_name == "rmsprop":
            optimizer = keras.optimizers.RMSprop(learning_rate=lambda: lr)
        else:
            optimizer = keras.optimizers.Adam(learning_rate=lambda: lr)
            # Numbers given to the constructor would be baked into the graph.
            optimizer.beta_1, optimizer.beta_2 = self._beta1, self._beta2
        optimizer.build(model.trainable_variables)
        return optimizer

    def _train_steps(
        self, steps: tf.Tensor, critic_step: tf.Tensor, generator_step: tf.Tensor, sums: tf.Tensor
    ) -> tf.Tensor:
        for _ in tf.range(steps):
            for _ in tf.range(self._n_critic):
                sums += self._total(self._strategy.run(self._critic_step, args=(critic_step,)))
                critic_step += 1
                if self._penalty == "clip":
                    self._clip()
            sums += self._total(self._strategy.run(self._generator_step, args=(generator_step,)))
            generator_step += 1
            self._average()
        return sums

    def _critic_step(self, step: tf.Tensor) -> tf.Tensor:
        """One step on a fresh batch of real images; returns this replica's part of `SUMS`."""
        rows = randomness.data_rows(
            self._slice(step * self._m + tf.range(self._m, dtype=tf.int64)),
            seed=self._seed,
            count=self._images.shape[0],
        )
        x = networks.from_pixels(tf.gather(self._images.read_value(), rows), self._dtype)
        x_tilde = self.generator(self._noise(Purpose.CRITIC_NOISE, step))
        e = randomness.uniform(
            [self._m], seed=self._seed, purpose=Purpose.INTERPOLATION, step=step, dtype=self._dtype
        )
        with tf.GradientTape() as tape:
            terms = losses.critic_terms(
                self.critic,
                x=x,
                x_tilde=x_tilde,
                e=self._slice(e),
                gp_weight=self._gp_weight,
                m=self._m,
                penalty=self._penalty,
                drift=self._drift,
            )
        gradients = tape.gradient(terms.critic_loss, self.critic.trainable_variables)
        _apply(self._critic_optimizer, gradients, self.critic)
        return tf.stack([*terms, tf.zeros([], self._dtype)])

    def _generator_step(self, step: tf.Tensor) -> tf.Tensor:
        """One step; returns this replica's part of `SUMS`."""
        z = self._noise(Purpose.GENERATOR_NOISE, step)
        with tf.GradientTape() as tape:
            loss = losses.generator_loss(self.critic, self.generator(z), m=self._m)
        _apply(
            self._generator_optimizer, tape.gradient(loss, self.generator.trainable_variables), self.generator
        )
        return tf.stack([*[tf.zeros([], self._dtype)] * len(losses.CriticTerms._fields), loss])

    def _clip(self) -> None:
        """After each critic step: every weight of the critic within its bound (Arjovsky et al. 2017)."""
        for weight in self.critic.trainable_variables:
            weight.assign(tf.clip_by_value(weight, -self._weight_clip, self._weight_clip))

    def _average(self) -> None:
        """Move the averaged weights towards the generator's; a decay of 0 makes them equal."""
        for average, weight in zip(self.averaged.weights, self.generator.weights, strict=True):
            average.assign(self._ema_decay * average + (1 - self._ema_decay) * weight)

    def _noise(self, purpose: Purpose, step: tf.Tensor) -> tf.Tensor:
        shape = [self._m, self._latent_size]
        return self._slice(
            randomness.normal(shape, seed=self._seed, purpose=purpose, step=step, dtype=self._dtype)
        )

    def _slice(self, batch: tf.Tensor) -> tf.Tensor:
        """This replica's part of what was drawn for the global batch."""
        first = tf.distribute.get_replica_context().replica_id_in_sync_group * self._b
        return batch[first : first + self._b]

    def _total(self, parts: Any) -> tf.Tensor:
        return tf.cast(self._strategy.reduce(tf.distribute.ReduceOp.SUM, parts, axis=None), tf.float64)

    def _value_of_pixels(self, images: tf.Tensor) -> tf.Tensor:
        return tf.reduce_sum(self.critic(networks.from_pixels(images, self._dtype)))


def _apply(optimizer: keras.optimizers.Optimizer, gradients: list, model: keras.Model) -> None:
    optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))


def _any_batch(model: keras.Model, dtype: Any = None) -> tf.TensorSpec:
    return tf.TensorSpec(model.inputs[0].shape, dtype or model.inputs[0].dtype)
