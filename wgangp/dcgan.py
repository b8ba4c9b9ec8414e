"""The architecture `dcgan`: strided convolutions, each of which halves the side and doubles the channels.

After Radford et al. 2016 (arXiv 1511.06434), in the small form that Gulrajani et al. 2017 use for MNIST:
kernels of 4x4, the widest picture-sized layer of `width` channels.
"""

from typing import Any

import keras

from wgangp.errors import UserError
from wgangp.layers import (
    ImageShape,
    NetworkSettings,
    critic_activation,
    critic_norm,
    generator_activation,
    generator_bias,
    generator_norm,
)

_HALVINGS = {8: 2} | {base * 2**n: n for base in (4, 7) for n in range(1, 6) if 8 < base * 2**n <= 128}
"""By side: down to 4x4 or 7x7, of 8 to 2x2."""


def check(image_shape: ImageShape) -> None:
    """Raises: UserError, if there is no such network for images of this shape."""
    sides = image_shape[:-1]
    if len(image_shape) != 3 or sides[0] != sides[1] or sides[0] not in _HALVINGS:
        *most, last = sorted(_HALVINGS)
        raise UserError(
            f"architecture: dcgan needs square images with sides of {', '.join(map(str, most))} or {last},"
            f" got {'x'.join(map(str, sides)) or 'vectors'}; set image_size, or bring networks of your own."
        )


def generator(settings: NetworkSettings) -> keras.Model:
    """G: noise [batch, latent_size] -> images [batch, H, W, C] in -1..1."""
    check(settings.image_shape)
    height, _, channels = settings.image_shape
    halvings = _HALVINGS[height]
    size, width = height // 2**halvings, settings.width * 2 ** (halvings - 1)
    doubling: dict[str, Any] = {"kernel_size": 4, "strides": 2, "padding": "same", **settings.inner}
    z = keras.Input((settings.latent_size,), dtype=settings.dtype)
    h = keras.layers.Dense(size * size * width, **settings.inner)(z)
    h = keras.layers.Reshape((size, size, width), **settings.inner)(h)
    h = generator_activation(settings)(generator_norm(h, settings))
    for _ in range(halvings - 1):
        width //= 2
        h = keras.layers.Conv2DTranspose(width, **doubling, **generator_bias(settings))(h)
        h = generator_activation(settings)(generator_norm(h, settings))
    h = keras.layers.Conv2DTranspose(channels, **doubling)(h)
    x = keras.layers.Activation("tanh", **settings.outer)(h)
    return keras.Model(z, x, name="generator")


def critic(settings: NetworkSettings) -> keras.Model:
    """D: images [batch, H, W, C] -> values [batch, 1], unbounded."""
    check(settings.image_shape)
    halving: dict[str, Any] = {"kernel_size": 4, "strides": 2, "padding": "same", **settings.inner}
    x = h = keras.Input(settings.image_shape, dtype=settings.dtype)
    for place in range(_HALVINGS[settings.image_shape[0]]):
        h = keras.layers.Conv2D(settings.width * 2**place, **halving)(h)
        if place:
            h = critic_norm(h, settings)
        h = critic_activation(settings, "leaky_relu")(h)
    value = keras.layers.Dense(1, **settings.outer)(keras.layers.Flatten(**settings.inner)(h))
    return keras.Model(x, value, name="critic")
