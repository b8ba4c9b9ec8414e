"""Networks of a user's own held to what the training asks of them, on two batches. `prepared` calls it."""

from typing import Any

import keras
import numpy as np
import tensorflow as tf

from wgangp import losses, networks
from wgangp.errors import UserError
from wgangp.layers import NetworkSettings
from wgangp.user_code import UserCode
from wgangp.wording import error_words

_BATCH = 4
_FAR = 100
"""Times the noise of the second batch is larger: a generator that ends in tanh stays within -1..1 even so."""


def check(code: UserCode, settings: NetworkSettings) -> None:
    """Build and run networks as training does.

    Raises:
        UserError: with a line for each network that cannot be trained, and why.
    """
    problems = []
    generator, critic = networks.built_by_user(code, settings)
    random = np.random.default_rng(0)
    z = random.normal(size=(_BATCH, settings.latent_size))
    x = random.uniform(-1, 1, size=(_BATCH, *settings.image_shape))
    for name, network, batch, test in (
        ("generator", generator, z, _generator_fault),
        ("critic", critic, x, _critic_fault),
    ):
        try:
            fault = test(network, tf.constant(batch, settings.dtype), settings)
        except UserError:
            raise
        except Exception as error:  # whatever the user's layers raise
            fault = f"cannot be run: {error_words(error)}"
        if fault:
            problems.append(f"architecture: {code.path}: the {name} of {code.function} {fault}.")
    if problems:
        raise UserError(*problems)


def _generator_fault(generator: keras.Model, z: tf.Tensor, settings: NetworkSettings) -> str:
    if fault := _shape_fault(generator, z, (_BATCH, *settings.image_shape), settings):
        return fault
    for noise in (z, _FAR * z):
        images = generator(noise, training=True).numpy()
        low, high = images.min(), images.max()
        if not (np.isfinite(images).all() and -1.001 <= low <= high <= 1.001):
            return f"must give values in -1..1, got {low:.3g}..{high:.3g}; end in tanh"
    if fault := _noise_fault(generator, z):
        return fault
    with tf.GradientTape() as tape:
        total = tf.reduce_sum(generator(z, training=True))
    return _unused_fault(generator, tape.gradient(total, generator.trainable_variables))


def _critic_fault(critic: keras.Model, x: tf.Tensor, settings: NetworkSettings) -> str:
    if fault := _shape_fault(critic, x, (_BATCH, 1), settings):
        return fault
    if fault := _noise_fault(critic, x):
        return fault
    values = critic(x, training=True).numpy()
    changed = critic(tf.concat([x[:1], -x[1:]], 0), training=True).numpy()
    if not np.isfinite(values).all():
        return "must give finite values"
    if abs(values[0] - changed[0]) > 1e-3 * max(1e-3, abs(values).max()):
        return (
            "must value each example by itself, and another example in the batch changes its value; the"
            " penalty is of each example's own gradient: take layer normalisation in place of batch"
            " normalisation"
        )
    norms: Any = None
    try:
        with tf.GradientTape() as tape:
            norms = losses.gradient_norms(lambda x: critic(x, training=True), x)
            penalty = tf.reduce_sum(losses.penalties("two_sided", norms))
        slopes = tape.gradient(penalty, critic.trainable_variables)
    except (LookupError, NotImplementedError, ValueError, TypeError) as error:
        what = "derivative" if norms is None else "second derivative"
        return f"has no {what}, which the penalty needs: {error_words(error)}"
    if all(slope is None for slope in slopes):
        return "has no second derivative, which the penalty needs: its gradient depends on no weight"
    if not all(np.isfinite(slope.numpy()).all() for slope in slopes if slope is not None):
        return "has a second derivative that is not finite, which the penalty needs"
    with tf.GradientTape() as tape:
        total = tf.reduce_sum(critic(x, training=True))
    return _unused_fault(critic, tape.gradient(total, critic.trainable_variables))


def _shape_fault(
    network: keras.Model, batch: tf.Tensor, expected: tuple[int, ...], settings: NetworkSettings
) -> str:
    takes = tuple(network.inputs[0].shape[1:])
    if takes != tuple(batch.shape[1:]):
        return f"must take {_shown(tuple(batch.shape[1:]))} for each example, takes {_shown(takes)}"
    gives = network(batch, training=True)
    if not isinstance(gives, tf.Tensor) or tuple(gives.shape) != expected:
        shape = _shown(tuple(gives.shape)) if isinstance(gives, tf.Tensor) else "several outputs"
        return f"must give {_shown(expected)} for a batch of {_BATCH}, gives {shape}"
    for what, dtype in (("take", network.inputs[0].dtype), ("give", gives.dtype.name)):
        if dtype != settings.dtype:
            return (
                f"must {what} {settings.dtype} with precision {settings.precision}, got {dtype}; leave dtype"
                f" to Keras, or say dtype={settings.dtype!r} in its first and last layer"
            )
    return ""


def _noise_fault(network: keras.Model, batch: tf.Tensor) -> str:
    first, again = (network(batch, training=True).numpy() for _ in range(2))
    if np.allclose(first, again, rtol=1e-4, atol=1e-6):
        return ""
    return (
        "must give the same for the same input, and does not: leave out what draws numbers or changes with"
        " each call, such as dropout and spectral normalisation"
    )


def _unused_fault(network: keras.Model, gradients: list[Any]) -> str:
    if not gradients:
        return "must have weights to train, and has none"
    unused = [
        variable.path
        for variable, gradient in zip(network.trainable_variables, gradients, strict=True)
        if gradient is None
    ]
    return f"has weights that change nothing it gives: {', '.join(unused[:3])}" if unused else ""


def _shown(shape: tuple[int | None, ...]) -> str:
    return f"[{', '.join('any' if side is None else str(side) for side in shape)}]"
