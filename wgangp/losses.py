"""The formulas of WGAN-GP, in the letters of Gulrajani et al. 2017 (arXiv 1704.00028), Algorithm 1.

    x        real images         [b, ...]   b: the images of one replica
    x_tilde  generated images    [b, ...]
    e        uniform in [0, 1]   [b]        one number per example
    x_hat    e x + (1 - e) x_tilde
    m        the GLOBAL batch: every term is divided by it, so that the sum over replicas is the mean
    lambda   gp_weight
    n        ||grad D||_2 of one example: at x_hat, for `r1` at x

Penalties by name:

    two_sided      (n - 1)^2          Gulrajani et al. 2017
    one_sided      max(0, n - 1)^2    the same paper, section 4; Petzka et al. 2018
    zero_centered  n^2                Thanh-Tung et al. 2019
    r1             n^2 at x           Mescheder et al. 2018, whose gamma is 2 lambda
    clip           none               Arjovsky et al. 2017: `gan` clips the critic's weights instead

Pure functions of tensors; `gan` calls them inside its compiled update.
"""

from collections.abc import Callable
from typing import NamedTuple

import tensorflow as tf

Critic = Callable[[tf.Tensor], tf.Tensor]

PENALTIES = ("two_sided", "one_sided", "zero_centered", "r1", "clip")

NORM_CONSTANT = 1e-12
"""Inside the root of the gradient's norm, so that the norm of a zero gradient has a finite derivative."""


class CriticTerms(NamedTuple):
    """Scalars; over all replicas they sum to means over the global batch."""

    critic_loss: tf.Tensor
    gradient_penalty: tf.Tensor
    wasserstein: tf.Tensor
    gradient_norm: tf.Tensor


def interpolate(x: tf.Tensor, x_tilde: tf.Tensor, e: tf.Tensor) -> tf.Tensor:
    """x_hat: for each example one random point of the segment from its fake to its real image."""
    e = tf.reshape(e, [-1] + [1] * (len(x.shape) - 1))
    return e * x + (1 - e) * x_tilde


def gradient_norms(critic: Critic, x_hat: tf.Tensor) -> tf.Tensor:
    """||grad D(x_hat)||_2 over all axes but the first, plus `NORM_CONSTANT` inside the root: [b], >= 1e-6.

    Differentiable with respect to the critic's weights.
    """
    with tf.GradientTape(watch_accessed_variables=False) as tape:
        tape.watch(x_hat)
        # The sum's gradient is each example's own: no example's value depends on another's.
        value = tf.reduce_sum(critic(x_hat))
    gradient = tape.gradient(value, x_hat)
    axes = list(range(1, len(x_hat.shape)))
    return tf.sqrt(tf.reduce_sum(tf.square(gradient), axes) + NORM_CONSTANT)


def penalties(penalty: str, n: tf.Tensor) -> tf.Tensor:
    """What each example's gradient norm is charged with, unweighted: [b], from n [b]."""
    if penalty == "two_sided":
        return tf.square(n - 1)
    if penalty == "one_sided":
        return tf.square(tf.maximum(n - 1, 0))
    if penalty in ("zero_centered", "r1"):
        return tf.square(n)
    if penalty == "clip":
        return tf.zeros_like(n)
    raise ValueError(f"penalty must be one of {', '.join(PENALTIES)}, got {penalty!r}")


def critic_terms(
    critic: Critic,
    *,
    x: tf.Tensor,
    x_tilde: tf.Tensor,
    e: tf.Tensor,
    gp_weight: tf.Tensor,
    m: int,
    penalty: str = "two_sided",
    drift: tf.Tensor | float = 0.0,
) -> CriticTerms:
    """The critic's loss and what it is made of.

    E D(x_tilde) - E D(x) + lambda E penalty(n) + drift E D(x)^2. The last is Karras et al. 2018's, at 1e-3.
    """
    # One pass over both halves is faster than two.
    d_tilde, d = tf.split(critic(tf.concat([x_tilde, x], 0)), 2)
    norms = gradient_norms(critic, x if penalty == "r1" else interpolate(x, x_tilde, e))
    wasserstein = (tf.reduce_sum(d) - tf.reduce_sum(d_tilde)) / m
    gradient_penalty = tf.reduce_sum(penalties(penalty, norms)) / m
    return CriticTerms(
        critic_loss=gp_weight * gradient_penalty - wasserstein + drift * tf.reduce_sum(tf.square(d)) / m,
        gradient_penalty=gradient_penalty,
        wasserstein=wasserstein,
        gradient_norm=tf.reduce_sum(norms) / m,
    )


def generator_loss(critic: Critic, x_tilde: tf.Tensor, *, m: int) -> tf.Tensor:
    """-E D(x_tilde), as this replica's part of the mean over the global batch `m`."""
    return -tf.reduce_sum(critic(x_tilde)) / m
