"""The generator and the critic as Keras models, their initial weights, and what goes in and out of them.

Images are [batch, H, W, C] in -1..1. There is no batch normalisation in the critic: the penalty is a function
of each example alone (Gulrajani et al. 2017, section 4).
"""

from collections.abc import Callable, Iterator
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from wgangp.errors import UserError
from wgangp.randomness import Purpose, derive_seed, normal

ImageShape = tuple[int, int, int]

EVALUATION_BATCH = 500
"""Images per call when nothing is trained: bounds the memory."""


class LeakyReLU(keras.layers.Layer):
    """max(x, 0.2 x), written as x times a constant slope.

    The slope is piecewise constant, so the gradients are those of the usual form. But TensorFlow's derivative
    of LeakyReluGrad hands zeros back to x, and the second derivative of the penalty would run whole
    convolutions on them.
    """

    def call(self, x: tf.Tensor) -> tf.Tensor:
        return x * tf.stop_gradient(tf.maximum(tf.sign(x), tf.constant(0.2, x.dtype)))


def value_dtype(precision: str) -> str:
    """Of weights, of what goes in and out of the networks, and of losses and norms.

    Under `bfloat16` only the layers between compute in it.
    """
    return "float32" if precision == "bfloat16" else precision


def build_generator(
    architecture: str, *, image_shape: ImageShape, width: int, latent_size: int, precision: str
) -> keras.Model:
    """G: noise [batch, latent_size] -> images [batch, H, W, C] in -1..1. Weights are not yet initialised."""
    size, channels = _dcgan_size(architecture, image_shape)
    inner, outer = _dtypes(precision)
    z = keras.Input((latent_size,), dtype=value_dtype(precision))
    h = keras.layers.Dense(size * size * 2 * width, activation="relu", **inner)(z)
    h = keras.layers.Reshape((size, size, 2 * width), **inner)(h)
    doubling: dict[str, Any] = {"kernel_size": 4, "strides": 2, "padding": "same", **inner}
    h = keras.layers.Conv2DTranspose(width, activation="relu", **doubling)(h)
    h = keras.layers.Conv2DTranspose(channels, **doubling)(h)
    x = keras.layers.Activation("tanh", **outer)(h)
    return keras.Model(z, x, name="generator")


def build_critic(architecture: str, *, image_shape: ImageShape, width: int, precision: str) -> keras.Model:
    """D: images [batch, H, W, C] -> values [batch, 1], unbounded. Weights are not yet initialised."""
    _dcgan_size(architecture, image_shape)
    inner, outer = _dtypes(precision)
    halving: dict[str, Any] = {"kernel_size": 4, "strides": 2, "padding": "same", **inner}
    x = keras.Input(image_shape, dtype=value_dtype(precision))
    h = LeakyReLU(**inner)(keras.layers.Conv2D(width, **halving)(x))
    h = LeakyReLU(**inner)(keras.layers.Conv2D(2 * width, **halving)(h))
    value = keras.layers.Dense(1, **outer)(keras.layers.Flatten(**inner)(h))
    return keras.Model(x, value, name="critic")


def initialise(model: keras.Model, *, seed: int) -> None:
    """Kernels: Glorot-uniform weights, a function of (seed, model's name, place) only. Biases: zero.

    Drawn in float32 whatever the precision, so that runs of different precision begin alike.
    """
    for place, variable in enumerate(model.weights):
        if len(variable.shape) == 1:
            variable.assign(tf.zeros(variable.shape, variable.dtype))
            continue
        draw = keras.initializers.GlorotUniform(seed=derive_seed(seed, model.name, place))
        variable.assign(tf.cast(draw(variable.shape, "float32"), variable.dtype))


def sample(
    generator: Callable[[tf.Tensor], tf.Tensor],
    *,
    count: int,
    latent_size: int,
    dtype: str,
    seed: int,
    purpose: Purpose,
) -> Iterator[np.ndarray]:
    """`count` images [n, H, W, C] in -1..1 of `generator`, batch by batch; fewer are the first of more."""
    for step, first in enumerate(range(0, count, EVALUATION_BATCH)):
        z = normal([EVALUATION_BATCH, latent_size], seed=seed, purpose=purpose, step=step, dtype=dtype)
        yield generator(z[: count - first]).numpy()


def from_pixels(images: tf.Tensor, dtype: str) -> tf.Tensor:
    """uint8 0..255 -> -1..1."""
    return tf.cast(images, dtype) / 127.5 - 1


def to_pixels(images: np.ndarray) -> np.ndarray:
    """-1..1 -> uint8 0..255, to the nearest; NaN becomes 0."""
    levels = np.rint((images + 1) * 127.5)
    return np.nan_to_num(levels).clip(0, 255).astype(np.uint8)


def _dcgan_size(architecture: str, image_shape: ImageShape) -> tuple[int, int]:
    """Side of the smallest feature map, and channels of the images."""
    if architecture != "dcgan":
        raise UserError(f"architecture: must be dcgan, got {architecture!r}.")
    height, width, channels = image_shape
    if height != width or height % 4:
        raise UserError(
            f"architecture: dcgan needs square images, sides divisible by 4, got {height}x{width}."
        )
    return height // 4, channels


def _dtypes(precision: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Keras's words for inner layers and for the last one, whose values nothing may round."""
    inner = "mixed_bfloat16" if precision == "bfloat16" else precision
    return {"dtype": inner}, {"dtype": value_dtype(precision)}
