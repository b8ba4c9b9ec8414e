"""The formulas of WGAN-GP, in the letters of Gulrajani et al. 2017 (arXiv 1704.00028), Algorithm 1.

    x        real images         [b, ...]   b: the images of one replica
    x_tilde  generated images    [b, ...]
    e        uniform in [0, 1]   [b]        one number per example
    x_hat    e x + (1 - e) x_tilde
    m        the GLOBAL batch: every term is divided by it, so that the sum over replicas is the mean
    lambda   gp_weight

Pure functions of tensors; `gan` calls them inside its compiled update.
"""

from collections.abc import Callable
from typing import NamedTuple

import tensorflow as tf

Critic = Callable[[tf.Tensor], tf.Tensor]

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


def critic_terms(
    critic: Critic, *, x: tf.Tensor, x_tilde: tf.Tensor, e: tf.Tensor, gp_weight: tf.Tensor, m: int
) -> CriticTerms:
    """The critic's loss E D(x_tilde) - E D(x) + lambda E (||grad D(x_hat)|| - 1)^2 and what it is made of."""
    # One pass over both halves is faster than two.
    d_tilde, d = tf.split(critic(tf.concat([x_tilde, x], 0)), 2)
    norms = gradient_norms(critic, interpolate(x, x_tilde, e))
    wasserstein = (tf.reduce_sum(d) - tf.reduce_sum(d_tilde)) / m
    gradient_penalty = tf.reduce_sum(tf.square(norms - 1)) / m
    return CriticTerms(
        critic_loss=gp_weight * gradient_penalty - wasserstein,
        gradient_penalty=gradient_penalty,
        wasserstein=wasserstein,
        gradient_norm=tf.reduce_sum(norms) / m,
    )


def generator_loss(critic: Critic, x_tilde: tf.Tensor, *, m: int) -> tf.Tensor:
    """-E D(x_tilde), as this replica's part of the mean over the global batch `m`."""
    return -tf.reduce_sum(critic(x_tilde)) / m
