"""The optimizers of both networks, by name, with rates that may change without compiling again.

Keras adds the gradients of all replicas up before it applies them; on the way they may be rounded.
"""

from collections.abc import Callable
from typing import Any

import keras
import tensorflow as tf


def build(
    name: str,
    model: keras.Model,
    *,
    lr: Callable[[], tf.Tensor],
    beta1: tf.Variable,
    beta2: tf.Variable,
    allreduce_precision: str,
) -> keras.optimizers.Optimizer:
    """An optimizer of `model`, its slots made.

    Args:
        name: `adam` (Kingma and Ba 2015), `rmsprop` (Tieleman and Hinton 2012, decay 0.9) or `sgd` (plain).
        model: whose trainable variables it is built for.
        lr: gives the learning rate.
        beta1: of Adam.
        beta2: of Adam.
        allreduce_precision: `full`, or `bfloat16`: replicas exchange half the bytes, rounded to 8 bits.
    """
    rounded = allreduce_precision == "bfloat16" and tf.distribute.get_strategy().num_replicas_in_sync > 1
    optimizer: Any = (_ROUNDED if rounded else _EXACT)[name](learning_rate=lr)
    if name == "adam":
        # Numbers given to the constructor would be baked into the graph.
        optimizer.beta_1, optimizer.beta_2 = beta1, beta2
    # Restoring silently passes over slots that are not made yet.
    optimizer.build(model.trainable_variables)
    return optimizer


class _RoundedSum:
    """Gradients go from replica to replica as bfloat16; what is not in the sum stays as it was."""

    def _all_reduce_sum_gradients(self, grads_and_vars: Any) -> Any:
        pairs = list(grads_and_vars)
        rounded = [(tf.cast(gradient, tf.bfloat16), variable) for gradient, variable in pairs]
        summed = super()._all_reduce_sum_gradients(rounded)  # type: ignore[misc]
        return [
            (tf.cast(total, gradient.dtype), variable)
            for (total, variable), (gradient, _) in zip(summed, pairs, strict=True)
        ]


class _RoundedAdam(_RoundedSum, keras.optimizers.Adam): ...


class _RoundedRMSprop(_RoundedSum, keras.optimizers.RMSprop): ...


class _RoundedSGD(_RoundedSum, keras.optimizers.SGD): ...


_EXACT = {
    "adam": keras.optimizers.Adam,
    "rmsprop": keras.optimizers.RMSprop,
    "sgd": keras.optimizers.SGD,
}
_ROUNDED = {"adam": _RoundedAdam, "rmsprop": _RoundedRMSprop, "sgd": _RoundedSGD}
