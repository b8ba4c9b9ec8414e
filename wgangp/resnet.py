"""The architecture `resnet`, for sides of 32 and 64, after the appendix of Gulrajani et al. 2017.

32: blocks of `width` channels throughout (the paper's is 128); the critic ends in a mean over the picture.
64: `width` (the paper's is 64) at the picture's size, up to 8 times as many at 4x4.
The paper normalises by the batch in the generator, and at 64 by layer in the critic: `generator_norm: batch`,
`critic_norm: layer`. Initial weights are Glorot's here, not He's.
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

_BASE = 4
_GENERATOR_WIDTHS = {32: (1, 1, 1, 1), 64: (8, 8, 4, 2, 1)}
"""By side: channels, in `width`s, from 4x4 up to the picture."""


def check(image_shape: ImageShape) -> None:
    """Raises: UserError, if there is no such network for images of this shape."""
    sides = image_shape[:-1]
    if len(image_shape) != 3 or sides[0] != sides[1] or sides[0] not in _GENERATOR_WIDTHS:
        raise UserError(
            "architecture: resnet needs square images with sides of 32 or 64, got"
            f" {'x'.join(map(str, sides)) or 'vectors'}; set image_size, or take dcgan."
        )


def generator(settings: NetworkSettings) -> keras.Model:
    """G: noise [batch, latent_size] -> images [batch, H, W, C] in -1..1."""
    check(settings.image_shape)
    first, *widths = (times * settings.width for times in _GENERATOR_WIDTHS[settings.image_shape[0]])
    z = keras.Input((settings.latent_size,), dtype=settings.dtype)
    h = keras.layers.Dense(_BASE * _BASE * first, **settings.inner)(z)
    h = keras.layers.Reshape((_BASE, _BASE, first), **settings.inner)(h)
    for width in widths:
        h = _up(h, width, settings)
    h = generator_activation(settings)(generator_norm(h, settings))
    h = _convolution(settings.image_shape[2], settings)(h)
    x = keras.layers.Activation("tanh", **settings.outer)(h)
    return keras.Model(z, x, name="generator")


def critic(settings: NetworkSettings) -> keras.Model:
    """D: images [batch, H, W, C] -> values [batch, 1], unbounded."""
    check(settings.image_shape)
    width = settings.width
    x = keras.Input(settings.image_shape, dtype=settings.dtype)
    if settings.image_shape[0] == 32:
        h = _first(x, width, settings)
        h = _block(h, width, settings, down=True)
        h = _block(h, width, settings, down=False)
        h = _block(h, width, settings, down=False)
        h = critic_activation(settings, "relu")(h)
        h = keras.layers.GlobalAveragePooling2D(**settings.inner)(h)
    else:
        h = _convolution(width, settings)(x)
        for times in (2, 4, 8, 8):
            h = _block(h, times * width, settings, down=True)
        h = keras.layers.Flatten(**settings.inner)(h)
    value = keras.layers.Dense(1, **settings.outer)(h)
    return keras.Model(x, value, name="critic")


def _up(h: Any, width: int, settings: NetworkSettings) -> Any:
    """A block of the generator that doubles the side."""

    def doubled(of: Any) -> Any:
        return keras.layers.UpSampling2D(2, **settings.inner)(of)

    bias = generator_bias(settings)
    beside = _convolution(width, settings, kernel=1, **bias)(doubled(h))
    h = generator_activation(settings)(generator_norm(h, settings))
    h = _convolution(width, settings, **bias)(doubled(h))
    h = generator_activation(settings)(generator_norm(h, settings))
    return keras.layers.Add(**settings.inner)([beside, _convolution(width, settings, **bias)(h)])


def _block(h: Any, width: int, settings: NetworkSettings, *, down: bool) -> Any:
    """A block of the critic; `down` halves the side."""
    beside = h
    if down or h.shape[-1] != width:
        beside = _convolution(width, settings, kernel=1)(h)
    h = critic_activation(settings, "relu")(critic_norm(h, settings))
    h = _convolution(h.shape[-1], settings)(h)
    h = critic_activation(settings, "relu")(critic_norm(h, settings))
    h = _convolution(width, settings)(h)
    if down:
        beside, h = _halved(beside, settings), _halved(h, settings)
    return keras.layers.Add(**settings.inner)([beside, h])


def _first(x: Any, width: int, settings: NetworkSettings) -> Any:
    """The critic's first block at 32: no activation of the pixels, and the way beside is cheap."""
    beside = _convolution(width, settings, kernel=1)(_halved(x, settings))
    h = critic_activation(settings, "relu")(_convolution(width, settings)(x))
    h = _halved(_convolution(width, settings)(h), settings)
    return keras.layers.Add(**settings.inner)([beside, h])


def _convolution(
    width: int, settings: NetworkSettings, *, kernel: int = 3, use_bias: bool = True
) -> keras.layers.Layer:
    return keras.layers.Conv2D(width, kernel, padding="same", use_bias=use_bias, **settings.inner)


def _halved(h: Any, settings: NetworkSettings) -> Any:
    return keras.layers.AveragePooling2D(2, **settings.inner)(h)
