"""The generator and the critic as Keras models, their initial weights, and what goes in and out of them.

Images are [batch, H, W, C] in -1..1, vectors [batch, D]. There is no batch normalisation in the critic: the
penalty is a function of each example alone (Gulrajani et al. 2017, section 4).
"""

from collections.abc import Callable, Iterator
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from wgangp import dcgan, resnet
from wgangp.errors import UserError
from wgangp.layers import ImageShape, NetworkSettings
from wgangp.randomness import Purpose, derive_seed, normal
from wgangp.user_code import UserCode
from wgangp.wording import show

_OURS: dict[str, Any] = {"dcgan": dcgan, "resnet": resnet}

EVALUATION_BATCH = 500
"""Images per call when nothing is trained: bounds the memory."""


def check_shape(architecture: str, image_shape: ImageShape) -> None:
    """Raises: UserError, if an architecture of ours has no network for images of this shape."""
    _OURS[architecture].check(image_shape)


def build_generator(
    architecture: str, settings: NetworkSettings, *, code: UserCode | None = None
) -> keras.Model:
    """G: noise [batch, latent_size] -> images [batch, H, W, C] in -1..1.

    Args:
        architecture: `dcgan` or `resnet`; with `code` it does not matter.
        settings: what to build.
        code: the user's `build`, which is called for both networks.

    Raises:
        UserError: there is none for images of this shape, or the user's code fails.
    """
    return _OURS[architecture].generator(settings) if code is None else built_by_user(code, settings)[0]


def build_critic(
    architecture: str, settings: NetworkSettings, *, code: UserCode | None = None
) -> keras.Model:
    """D: images [batch, H, W, C] in -1..1 -> values [batch, 1], unbounded. As `build_generator`."""
    return _OURS[architecture].critic(settings) if code is None else built_by_user(code, settings)[1]


def built_by_user(
    code: UserCode, settings: NetworkSettings, *, seed: int = 0
) -> tuple[keras.Model, keras.Model]:
    """(generator, critic) of the user's own, with initial weights that follow from the seed.

    Keras's layers take the precision that is asked for, unless they say another.

    Raises:
        UserError: the code fails, or gives something else.
    """
    build = code.load()
    policy, floatx = keras.config.dtype_policy(), keras.config.floatx()
    keras.utils.set_random_seed(seed)
    keras.config.set_floatx(settings.dtype)
    keras.config.set_dtype_policy(settings.inner["dtype"])
    try:
        built = code.call(build, settings)
    finally:
        keras.config.set_floatx(floatx)
        keras.config.set_dtype_policy(policy)
    if not isinstance(built, tuple | list) or len(built) != 2:
        raise UserError(f"architecture: {code.name} must return (generator, critic), got {show(built)}.")
    for name, network in zip(("generator", "critic"), built, strict=True):
        if not isinstance(network, keras.Model) or not network.built or len(network.inputs or ()) != 1:
            raise UserError(
                f"architecture: {code.name} must return a {name} that is a Keras model with one input, built"
                f" from keras.Input, got {show(network)}."
            )
    return built[0], built[1]


def initialise(model: keras.Model, *, seed: int) -> None:
    """Kernels: Glorot-uniform weights, a function of (seed, model's name, place) only. Biases 0, gains 1.

    For networks of ours; drawn in float32 whatever the precision, so that runs of different precision begin
    alike.
    """
    for place, variable in enumerate(model.weights):
        if len(variable.shape) == 1:
            gain = variable.name in ("gamma", "moving_variance")
            variable.assign(tf.fill(variable.shape, tf.cast(gain, variable.dtype)))
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


def from_data(data: tf.Tensor, dtype: str) -> tf.Tensor:
    """Images, uint8 0..255 -> -1..1; vectors as they are."""
    return tf.cast(data, dtype) / 127.5 - 1 if data.dtype == tf.uint8 else tf.cast(data, dtype)


def to_data(generated: np.ndarray) -> np.ndarray:
    """The way back: images [n, H, W, C] -> uint8 to the nearest; vectors [n, D] -> float32 in -1..1.

    What lies outside is clipped, and NaN becomes 0.
    """
    if generated.ndim == 2:
        return np.nan_to_num(generated).clip(-1, 1).astype(np.float32)
    levels = np.rint((generated + 1) * 127.5)
    return np.nan_to_num(levels).clip(0, 255).astype(np.uint8)
