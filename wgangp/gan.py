"""WganGp: the variables of one training run, the compiled update, samples, and its state as arrays.

`trainer` builds one per shape and uses it for many trials: every setting that is no shape is a variable.
"""

import contextlib
from collections.abc import Iterator, Mapping
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from wgangp import networks, optimizers
from wgangp.asynchronous import Schedule
from wgangp.config import TrainConfig
from wgangp.layers import NetworkSettings
from wgangp.networks import EVALUATION_BATCH
from wgangp.randomness import Purpose
from wgangp.update import SUMS, Trained, Update
from wgangp.user_code import UserCode

STATE_FIELDS = (
    *("architecture", "width", "latent_size", "activation", "generator_norm", "critic_norm", "options"),
    *("batch_size", "precision", "penalty", "optimizer"),
)
"""The settings that a state, as `WganGp.arrays` gives it, belongs to."""

SHAPE_FIELDS = (
    *(*STATE_FIELDS, "lr_schedule", "flips"),
    *("accumulation_steps", "allreduce_precision", "run_eagerly", "jit_compile"),
)
"""The settings a compiled WganGp is bound to; any other may change without compiling again."""

_WHOLE_SETTINGS = ("n_critic", "seed")
_REAL_SETTINGS = (
    *("gp_weight", "drift", "weight_clip", "ema_decay"),
    *("critic_lr", "generator_lr", "adam_beta1", "adam_beta2", "budget_kimg"),
)


class WganGp:
    """Generator, critic, their optimizers, and the update that trains them.

    Attributes:
        generator: z [b, latent_size] -> images [b, H, W, C] in -1..1.
        critic: images [b, H, W, C] in -1..1 -> [b, 1].
        averaged: the generator with an exponential moving average of its weights; what is sampled and scored.
        critic_steps: critic steps since `start`.
        generator_steps: generator steps since `start`.
    """

    def __init__(
        self,
        strategy: tf.distribute.Strategy,
        images: tf.Variable,
        config: TrainConfig,
        *,
        network_settings: NetworkSettings,
        code: UserCode | None = None,
        devices: Mapping[str, str] | None = None,
    ) -> None:
        """Build for the shapes of `config` (`SHAPE_FIELDS`).

        Args:
            strategy: where; its replicas times `accumulation_steps` divide the batch evenly.
            images: uint8 [N, H, W, C] or float32 [N, D], a variable of `strategy`.
            config: read for the shapes only; the other settings come with `start`.
            network_settings: of the networks of `config` for these images.
            code: the user's `build`, if `architecture` names one.
            devices: under the default strategy, the device of the `generator` and that of the `critic`.
        """
        self._strategy, self._latent_size = strategy, config.latent_size
        self._dtype, self._network_settings, self._code = network_settings.dtype, network_settings, code
        at = {name: tf.device(device) for name, device in (devices or {}).items()}
        with strategy.scope():
            self._settings = {name: self._setting(self._dtype) for name in _REAL_SETTINGS}
            self._settings |= {name: self._setting("int64") for name in _WHOLE_SETTINGS}
            self._factor = self._setting(self._dtype)
            with at.get("critic", contextlib.nullcontext()):
                self.critic = networks.build_critic(config.architecture, network_settings, code=code)
                self._critic_optimizer = self._optimizer(self.critic, "critic_lr", config)
            with at.get("generator", contextlib.nullcontext()):
                self.generator, self.averaged = (
                    networks.build_generator(config.architecture, network_settings, code=code)
                    for _ in range(2)
                )
                self._generator_optimizer = self._optimizer(self.generator, "generator_lr", config)
        trained = Trained(
            self.generator,
            self.averaged,
            self.critic,
            self._generator_optimizer,
            self._critic_optimizer,
            self._settings,
            self._factor,
        )
        self._update = Update(trained, images, config, strategy=strategy, devices=devices or {})
        self._train: Any = self._update.steps
        if isinstance(strategy, tf.distribute.ParameterServerStrategy):
            self._train = Schedule(strategy, self._update, self._settings["n_critic"]).steps
        elif not config.run_eagerly:
            self._train = tf.function(self._update.steps, jit_compile=config.jit_compile or None)
        self._sample = tf.function(self.averaged, input_signature=[_any_batch(self.averaged)])
        self._value = tf.function(
            self._value_of_data, input_signature=[_any_batch(self.critic, images.dtype)]
        )
        self.critic_steps = 0
        self.generator_steps = 0

    def start(self, config: TrainConfig) -> None:
        """New weights from `init_seed`, optimizers at rest, counters at 0, all other settings of `config`.

        `config` is resolved and has the shapes this was built for. The first call traces the update.
        """
        assert config.init_seed is not None, "resolved() writes it out"
        with self._strategy.scope():
            self._initialise(config.init_seed)
            for optimizer in (self._critic_optimizer, self._generator_optimizer):
                for variable in optimizer.variables:
                    variable.assign(tf.zeros(variable.shape, variable.dtype))
            for name, variable in self._settings.items():
                variable.assign(getattr(config, name))
            self._factor.assign(1)
        self.critic_steps = self.generator_steps = 0
        self._n_critic = config.n_critic
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
        self.critic_steps += steps * self._n_critic
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
        """Mean of D over data [n, ...], in the form of `images`."""
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

    def _initialise(self, seed: int) -> None:
        if self._code is None:
            for network in (self.critic, self.generator, self.averaged):
                networks.initialise(network, seed=seed)
            return
        generator, critic = networks.built_by_user(self._code, self._network_settings, seed=seed)
        for network, fresh in (
            (self.generator, generator),
            (self.averaged, generator),
            (self.critic, critic),
        ):
            for variable, first in zip(network.weights, fresh.weights, strict=True):
                variable.assign(first)

    def _setting(self, dtype: str) -> tf.Variable:
        return tf.Variable(0, trainable=False, dtype=dtype)

    def _optimizer(self, network: keras.Model, lr: str, config: TrainConfig) -> keras.optimizers.Optimizer:
        return optimizers.build(
            config.optimizer,
            network,
            lr=lambda: self._settings[lr] * self._factor,
            beta1=self._settings["adam_beta1"],
            beta2=self._settings["adam_beta2"],
            allreduce_precision=config.allreduce_precision,
        )

    def _value_of_data(self, images: tf.Tensor) -> tf.Tensor:
        return tf.reduce_sum(self.critic(networks.from_data(images, self._dtype)))


def _any_batch(model: keras.Model, dtype: Any = None) -> tf.TensorSpec:
    return tf.TensorSpec(model.inputs[0].shape, dtype or model.inputs[0].dtype)
