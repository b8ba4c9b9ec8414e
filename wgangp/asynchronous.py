"""Training without step-keeping: generator steps go to whichever worker is free (parameter servers).

Weights live on parameter servers. A worker reads them when it needs them, and its gradients are applied when
they come, by then to other weights: they are stale. So no run repeats itself, and none goes on exactly where
it stopped. Each worker takes whole batches; data and noise of a step are those of its number, as ever.
"""

import tensorflow as tf

from wgangp.update import SUMS, Update


class Schedule:
    """Has the workers of a `tf.distribute.ParameterServerStrategy` make an update's steps."""

    def __init__(self, strategy: tf.distribute.Strategy, update: Update, n_critic: tf.Variable) -> None:
        self._coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)
        self._step = tf.function(update.step)
        self._n_critic = n_critic

    def steps(
        self, steps: tf.Tensor, critic_step: tf.Tensor, generator_step: tf.Tensor, sums: tf.Tensor
    ) -> tf.Tensor:
        """As `Update.steps`, in no order; returns when all are made."""
        nothing = tf.zeros([len(SUMS)], tf.float64)
        made = [
            self._coordinator.schedule(
                self._step, args=(critic_step + i * self._n_critic, generator_step + i, nothing)
            )
            for i in range(int(steps))
        ]
        self._coordinator.join()
        return tf.add_n([sums, *(one.fetch() for one in made)])
