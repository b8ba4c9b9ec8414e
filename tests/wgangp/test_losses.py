"""The formulas against answers known on paper. All in float64."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.stats
import tensorflow as tf

from wgangp import losses, networks
from wgangp.layers import NetworkSettings


class LinearCritic:
    """D(x) = w.x + b."""

    def __init__(self, w: np.ndarray, b: float = 0.3) -> None:
        self.w, self.b = tf.Variable(w), tf.Variable(np.float64(b))

    def __call__(self, x: tf.Tensor) -> tf.Tensor:
        return tf.reduce_sum(x * self.w, list(range(1, len(x.shape))))[:, None] + self.b


def draw(*shape: int, seed: int = 0) -> tf.Tensor:
    return tf.constant(np.random.default_rng(seed).normal(size=shape))


def terms(critic: Callable, *, x: tf.Tensor, x_tilde: tf.Tensor, gp_weight: float = 10.0, **more: Any):
    e = tf.constant(np.random.default_rng(9).uniform(size=len(x)))
    weight = tf.constant(gp_weight, tf.float64)
    return losses.critic_terms(critic, x=x, x_tilde=x_tilde, e=e, gp_weight=weight, m=len(x), **more)


# What a slope of length n is charged with, and the derivative of that by n.
CHARGES: dict[str, tuple[Callable[[float], float], Callable[[float], float]]] = {
    "two_sided": (lambda n: (n - 1) ** 2, lambda n: 2 * (n - 1)),
    "one_sided": (lambda n: max(0, n - 1) ** 2, lambda n: 2 * max(0, n - 1)),
    "zero_centered": (lambda n: n**2, lambda n: 2 * n),
    "r1": (lambda n: n**2, lambda n: 2 * n),
    "clip": (lambda n: 0, lambda n: 0),
}


@pytest.mark.parametrize("penalty", losses.PENALTIES)
@pytest.mark.parametrize("length", [0.2, 1.0, 5.0])
def test_linear_critic_has_the_closed_form_penalty_and_gradient(length: float, penalty: str) -> None:
    charge, slope = (of(length) for of in CHARGES[penalty])
    w = np.random.default_rng(1).normal(size=(4, 4, 3))
    w *= length / np.linalg.norm(w)
    critic = LinearCritic(w)
    x, x_tilde = draw(6, 4, 4, 3), draw(6, 4, 4, 3, seed=2)

    with tf.GradientTape() as tape:
        found = terms(critic, x=x, x_tilde=x_tilde, gp_weight=7.0, penalty=penalty)
    dw, db = tape.gradient(found.critic_loss, [critic.w, critic.b])

    np.testing.assert_allclose(found.gradient_norm, length, rtol=1e-9)
    np.testing.assert_allclose(found.gradient_penalty, charge, atol=1e-10)
    gap = np.mean(x_tilde, 0) - np.mean(x, 0)
    np.testing.assert_allclose(found.wasserstein, -(w * gap).sum(), rtol=1e-10)
    np.testing.assert_allclose(found.critic_loss, (w * gap).sum() + 7 * charge, rtol=1e-9)
    np.testing.assert_allclose(dw, gap + 7 * slope * w / length, atol=1e-9)
    np.testing.assert_allclose(db, 0, atol=1e-12)


@pytest.mark.parametrize(("gp_weight", "slope", "loss"), [(10, 1.05, -1.025), (0.1, 6.0, -3.5)])
def test_optimal_linear_critic_is_steeper_than_one_by_d_over_two_lambda(
    gp_weight: float, slope: float, loss: float
) -> None:
    x_tilde = draw(8, 1)
    critic = LinearCritic(np.array([slope]))

    with tf.GradientTape() as tape:
        found = terms(critic, x=x_tilde + 1, x_tilde=x_tilde, gp_weight=gp_weight)

    np.testing.assert_allclose(found.critic_loss, loss, rtol=1e-9)
    np.testing.assert_allclose(tape.gradient(found.critic_loss, critic.w), [0], atol=1e-9)


def mixture_density(t: np.ndarray) -> np.ndarray:
    """Of x_hat between N(1, 1) and N(0, 1): given e it is N(e, e^2 + (1 - e)^2)."""
    e = (np.arange(400) + 0.5) / 400
    return scipy.stats.norm.pdf(t[:, None], e, np.sqrt(e**2 + (1 - e) ** 2)).mean(axis=1)


@pytest.mark.parametrize(("gp_weight", "bias"), [(10, 0.054), (0.1, 5.4)])
def test_critic_gap_is_above_the_wasserstein_distance_by_one_over_lambda(
    gp_weight: float, bias: float
) -> None:
    """N(1, 1) against N(0, 1), so W1 = 1: the best critic has slope 1 + (F0 - F1) / (2 lambda p)."""
    knots = np.linspace(-5, 6, 1101)
    middles = (knots[1:] + knots[:-1]) / 2
    excess = scipy.stats.norm.cdf(middles) - scipy.stats.norm.cdf(middles - 1)
    slopes = 1 + excess / (2 * gp_weight * mixture_density(middles))
    quantiles = scipy.stats.norm.ppf((np.arange(40_000) + 0.5) / 40_000)
    random = np.random.default_rng(0)
    x, x_tilde = random.permutation(quantiles) + 1, random.permutation(quantiles)

    def found(scale: float) -> losses.CriticTerms:
        """Of a critic whose slope is above one `scale` times as far as the best one's."""
        steep = tf.constant(1 + scale * (slopes - 1))
        values = tf.concat([[0], tf.cumsum(steep * np.diff(knots))], 0)

        def critic(at: tf.Tensor) -> tf.Tensor:
            place = tf.clip_by_value(tf.searchsorted(knots, at[:, 0]) - 1, 0, len(slopes) - 1)
            return (
                tf.gather(values, place) + tf.gather(steep, place) * (at[:, 0] - tf.gather(knots, place))
            )[:, None]

        return terms(
            critic, x=tf.constant(x[:, None]), x_tilde=tf.constant(x_tilde[:, None]), gp_weight=gp_weight
        )

    best = found(1)
    assert float(best.wasserstein) == pytest.approx(1 + bias, rel=0.01)
    assert float(best.critic_loss) < min(float(found(scale).critic_loss) for scale in (0, 0.8, 1.2))


def test_penalty_is_the_mean_of_each_examples_own() -> None:
    x, x_tilde = draw(5, 2, 2, 1), draw(5, 2, 2, 1, seed=3)
    e = np.random.default_rng(9).uniform(size=5)

    found = terms(lambda x: tf.reduce_sum(x**2, [1, 2, 3])[:, None] / 2, x=x, x_tilde=x_tilde)

    x_hat = e[:, None] * np.reshape(x, (5, 4)) + (1 - e[:, None]) * np.reshape(x_tilde, (5, 4))
    norms = np.linalg.norm(x_hat, axis=1)  # the gradient of |x|^2 / 2 is x
    np.testing.assert_allclose(found.gradient_penalty, np.mean((norms - 1) ** 2), rtol=1e-9)
    np.testing.assert_allclose(found.gradient_norm, np.mean(norms), rtol=1e-9)


def test_r1_takes_the_slope_at_the_real_images() -> None:
    x, x_tilde = draw(5, 2, 2, 1), draw(5, 2, 2, 1, seed=3)
    found = terms(lambda x: tf.reduce_sum(x**2, [1, 2, 3])[:, None] / 2, x=x, x_tilde=x_tilde, penalty="r1")
    squares = np.sum(np.square(x), (1, 2, 3))  # the gradient of |x|^2 / 2 is x
    np.testing.assert_allclose(found.gradient_penalty, np.mean(squares), rtol=1e-9)
    np.testing.assert_allclose(found.gradient_norm, np.mean(np.sqrt(squares)), rtol=1e-9)


def test_drift_holds_the_values_of_real_images_near_zero() -> None:
    critic, x, x_tilde = LinearCritic(np.ones((2, 2, 1)), b=3.0), draw(5, 2, 2, 1), draw(5, 2, 2, 1, seed=1)
    without = terms(critic, x=x, x_tilde=x_tilde)
    with tf.GradientTape() as tape:
        found = terms(critic, x=x, x_tilde=x_tilde, drift=0.5)
    values = np.sum(x, (1, 2, 3)) + 3.0
    np.testing.assert_allclose(found.critic_loss - without.critic_loss, 0.5 * np.mean(values**2), rtol=1e-9)
    np.testing.assert_allclose(tape.gradient(found.critic_loss, critic.b), np.mean(values), rtol=1e-9)
    np.testing.assert_allclose(found[1:], without[1:])


def test_a_penalty_has_a_known_name() -> None:
    with pytest.raises(ValueError, match=r"penalty must be one of two_sided, .*, got 'wgan'"):
        losses.penalties("wgan", tf.ones([2]))


def test_zero_critic_has_penalty_one_and_a_finite_gradient() -> None:
    critic = networks.build_critic(
        "dcgan", NetworkSettings(image_shape=(8, 8, 1), width=2, precision="float64")
    )
    for weight in critic.weights:
        weight.assign(np.zeros(weight.shape))

    with tf.GradientTape() as tape:
        found = terms(critic, x=draw(4, 8, 8, 1), x_tilde=draw(4, 8, 8, 1, seed=1))
    gradients = tape.gradient(found.critic_loss, critic.trainable_variables)

    np.testing.assert_allclose(found.gradient_penalty, 1, atol=1e-5)
    assert all(np.isfinite(g).all() for g in gradients)


def test_penalty_is_differentiated_through_the_gradient() -> None:
    critic = networks.build_critic(
        "dcgan", NetworkSettings(image_shape=(8, 8, 1), width=3, precision="float64")
    )
    networks.initialise(critic, seed=5)
    x_hat = draw(4, 8, 8, 1)
    kernels = [v for v in critic.trainable_variables if len(v.shape) > 1]
    directions = [np.random.default_rng(i).normal(size=k.shape) for i, k in enumerate(kernels)]
    start = [k.numpy() for k in kernels]

    def penalty(step: float) -> tf.Tensor:
        for kernel, value, direction in zip(kernels, start, directions, strict=True):
            kernel.assign(value + step * direction)
        return tf.reduce_mean((losses.gradient_norms(critic, x_hat) - 1) ** 2)

    with tf.GradientTape() as tape:
        value = penalty(0)
    gradients = tape.gradient(value, kernels)
    slope = sum(float(tf.reduce_sum(g * d)) for g, d in zip(gradients, directions, strict=True))

    assert abs(slope) > 1e-3
    np.testing.assert_allclose(slope, float(penalty(1e-7) - penalty(-1e-7)) / 2e-7, rtol=1e-5)


def test_x_hat_lies_on_the_segment_of_its_own_example() -> None:
    x, x_tilde = draw(7, 3, 3, 2), draw(7, 3, 3, 2, seed=1)
    e = np.linspace(0, 1, 7)

    x_hat = losses.interpolate(x, x_tilde, tf.constant(e))

    place = (x_hat - x_tilde) / (x - x_tilde)
    np.testing.assert_allclose(place, np.broadcast_to(e[:, None, None, None], place.shape), atol=1e-9)
    np.testing.assert_allclose(x_hat[0], x_tilde[0])
    np.testing.assert_allclose(x_hat[-1], x[-1])


def test_parts_of_a_batch_add_up_to_the_whole() -> None:
    critic = networks.build_critic(
        "dcgan", NetworkSettings(image_shape=(8, 8, 1), width=2, precision="float64")
    )
    x, x_tilde, e = draw(6, 8, 8, 1), draw(6, 8, 8, 1, seed=1), draw(6, seed=2)

    def part(rows: slice) -> losses.CriticTerms:
        weight = tf.constant(3.0, tf.float64)
        return losses.critic_terms(critic, x=x[rows], x_tilde=x_tilde[rows], e=e[rows], gp_weight=weight, m=6)

    whole, parts = part(slice(6)), (part(slice(2)), part(slice(2, 6)))
    np.testing.assert_allclose(np.array(whole), np.array(parts[0]) + np.array(parts[1]), rtol=1e-12)


def test_generator_loss_is_minus_the_mean_value_of_fakes() -> None:
    x_tilde = draw(5, 2, 2, 1)
    critic = LinearCritic(np.ones((2, 2, 1)), b=0)

    loss = losses.generator_loss(critic, x_tilde, m=10)

    np.testing.assert_allclose(loss, -np.sum(x_tilde) / 10, rtol=1e-12)
