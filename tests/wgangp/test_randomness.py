import itertools
from collections.abc import Callable

import numpy as np
import pytest
import scipy.stats
import tensorflow as tf

from wgangp import randomness
from wgangp.randomness import Purpose


def rows(positions: np.ndarray, *, seed: int = 0, count: int) -> list[int]:
    return randomness.data_rows(tf.constant(positions, tf.int64), seed=seed, count=count).numpy().tolist()


@pytest.mark.parametrize(("count", "batch"), [(10, 3), (7, 7), (5, 12), (1, 4)])
def test_every_epoch_shows_every_row_once_whatever_the_batch(count: int, batch: int) -> None:
    batches = [rows(np.arange(i * batch, (i + 1) * batch), count=count) for i in range(count)]
    stream = list(itertools.chain(*batches))

    for epoch in range(batch):  # `count` batches are `batch` epochs
        assert sorted(stream[epoch * count : (epoch + 1) * count]) == list(range(count))


def test_the_order_differs_by_epoch_and_by_seed() -> None:
    orders = [rows(np.arange(100) + 100 * epoch, seed=seed, count=100) for epoch in (0, 1) for seed in (0, 1)]

    assert all(a != b for a, b in itertools.combinations([*orders, list(range(100))], 2))


def test_draws_differ_by_seed_purpose_and_step_and_repeat_otherwise() -> None:
    keys = list(itertools.product([0, 1, 2**31 - 1], Purpose, [0, 1, 2]))

    def draw(seed: int, purpose: Purpose, step: int) -> float:
        return float(randomness.normal([1], seed=seed, purpose=purpose, step=step, dtype="float64")[0])

    drawn = [draw(*key) for key in keys]
    assert len(set(drawn)) == len(keys)
    assert drawn == [draw(*key) for key in keys]


def test_uniform_numbers_lie_between_0_and_1() -> None:
    e = randomness.uniform([1000], seed=0, purpose=Purpose.INTERPOLATION, step=0, dtype="float64").numpy()

    assert e.min() > 0 and e.max() < 1
    assert abs(e.mean() - 0.5) < 0.05
    assert abs(e.std() - 12**-0.5) < 0.02


def test_normal_numbers_are_normal() -> None:
    z = randomness.normal([100_000], seed=0, purpose=Purpose.FID_NOISE, step=0, dtype="float64").numpy()

    assert scipy.stats.kstest(z, "norm").pvalue > 0.01
    assert 4 < np.abs(z).max() < 5.4


@pytest.mark.parametrize("draw", [randomness.normal, randomness.uniform])
def test_draws_are_the_same_in_every_precision_and_compiled_by_xla(draw: Callable) -> None:
    def drawn(dtype: str) -> tf.Tensor:
        return draw([500], seed=3, purpose=Purpose.CRITIC_NOISE, step=7, dtype=dtype)

    double = drawn("float64")
    np.testing.assert_allclose(drawn("float32"), double, rtol=1e-5, atol=1e-7)
    compiled = tf.function(drawn, jit_compile=True)
    np.testing.assert_allclose(compiled("float64"), double, rtol=1e-12)
    np.testing.assert_allclose(compiled("float32"), double, rtol=1e-5, atol=1e-7)


def test_the_order_of_the_data_is_the_same_compiled_by_xla() -> None:
    compiled = tf.function(
        lambda positions: randomness.data_rows(positions, seed=5, count=37), jit_compile=True
    )
    for first in (0, 30, 1000):
        positions = np.arange(first, first + 12)
        assert compiled(tf.constant(positions, tf.int64)).numpy().tolist() == rows(
            positions, seed=5, count=37
        )


def test_derived_seeds_are_seeds_and_differ() -> None:
    derived = [randomness.derive_seed(seed, word) for seed in range(50) for word in ("a", "b")]

    assert len(set(derived)) == 100
    assert all(0 <= seed < 2**31 for seed in derived)
