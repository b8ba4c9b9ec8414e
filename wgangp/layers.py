"""What generator and critic of every architecture here are made of: activations, norms, precision."""

from dataclasses import dataclass
from typing import Any

import keras
import tensorflow as tf

ImageShape = tuple[int, ...]
"""(H, W, C) of images, (D,) of vectors."""


@dataclass(frozen=True)
class NetworkSettings:
    """What networks are built from; users' own `build` gets one too.

    Attributes:
        image_shape: (H, W, C), or (D,) of vectors.
        width: and all below as in `TrainConfig`.
    """

    image_shape: ImageShape
    width: int = 16
    latent_size: int = 128
    activation: str | None = None
    generator_norm: str = "none"
    critic_norm: str = "none"
    precision: str = "float32"
    options: Any = None

    @property
    def dtype(self) -> str:
        """Of weights, of what goes in and out of the networks, and of losses and norms.

        Under `bfloat16` only the layers between compute in it.
        """
        return value_dtype(self.precision)

    @property
    def inner(self) -> dict[str, Any]:
        """Keras's word for the layers between."""
        return {"dtype": "mixed_bfloat16" if self.precision == "bfloat16" else self.precision}

    @property
    def outer(self) -> dict[str, Any]:
        """Keras's word for the last layer, whose values nothing may round."""
        return {"dtype": self.dtype}


def value_dtype(precision: str) -> str:
    """See `NetworkSettings.dtype`."""
    return "float32" if precision == "bfloat16" else precision


class PiecewiseLinear(keras.layers.Layer):
    """max(x, slope x), written as x times a constant slope: ReLU, or LeakyReLU of 0.2.

    The slope is piecewise constant, so the gradients are those of the usual form. But TensorFlow's derivative
    of LeakyReluGrad hands zeros back to x, and the second derivative of the penalty would run whole
    convolutions on them.
    """

    def __init__(self, slope: float, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._slope = slope

    def call(self, x: tf.Tensor) -> tf.Tensor:
        return x * tf.stop_gradient(tf.maximum(tf.sign(x), tf.constant(self._slope, x.dtype)))


def critic_activation(settings: NetworkSettings, default: str) -> keras.layers.Layer:
    """Of a critic's hidden layer, made for second derivatives."""
    name = settings.activation or default
    slopes = {"relu": 0.0, "leaky_relu": 0.2}
    if name in slopes:
        return PiecewiseLinear(slopes[name], **settings.inner)
    return keras.layers.Activation(name, **settings.inner)


def generator_activation(settings: NetworkSettings) -> keras.layers.Layer:
    """Of a generator's hidden layer."""
    if settings.activation == "leaky_relu":
        return keras.layers.LeakyReLU(0.2, **settings.inner)
    return keras.layers.Activation(settings.activation or "relu", **settings.inner)


def critic_norm(h: Any, settings: NetworkSettings) -> Any:
    """Layer normalisation of Gulrajani et al. 2017: over all of an image, a gain and a bias per channel."""
    if settings.critic_norm == "none":
        return h
    return keras.layers.GroupNormalization(groups=1, **settings.inner)(h)


def generator_bias(settings: NetworkSettings) -> dict[str, bool]:
    """Keras's word for whether a generator's hidden convolution has a bias.

    Batch normalisation would take it away again: its gradient would be rounding, which Adam makes steps of.
    """
    return {"use_bias": settings.generator_norm == "none"}


def generator_norm(h: Any, settings: NetworkSettings) -> Any:
    """Batch normalisation; while training by the statistics of the global batch, over all replicas."""
    if settings.generator_norm == "none":
        return h
    return keras.layers.BatchNormalization(synchronized=True, **settings.inner)(h)
