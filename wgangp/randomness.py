"""Every random number of the training, as a function of (seed, purpose, step).

Nothing here keeps a state, so a resumed run goes on with the numbers it would have had. All draws are for the
GLOBAL batch; `gan` gives each replica its slice, so they do not depend on the number of replicas and no two
replicas share noise. The generator is Philox on every device.
"""

import hashlib
from enum import IntEnum
from typing import Any

import tensorflow as tf


class Purpose(IntEnum):
    """What a draw is for. The numbers are part of what a seed means: never renumber them."""

    CRITIC_NOISE = 0
    INTERPOLATION = 1
    GENERATOR_NOISE = 2
    FID_NOISE = 3
    GRID_NOISE = 4
    DROPOUT = 5


def derive_seed(seed: int, *words: object) -> int:
    """Another seed in 0..2^31-1, a stated hash (sha256) of `seed` and `words`."""
    text = "/".join(map(str, (seed, *words)))
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "big") >> 1


def normal(shape: list[int], *, seed: Any, purpose: Purpose, step: Any, dtype: str) -> tf.Tensor:
    """Standard normal numbers of `shape`."""
    return tf.random.stateless_normal(shape, _key(seed, purpose, step), dtype=dtype, alg="philox")


def uniform(shape: list[int], *, seed: Any, purpose: Purpose, step: Any, dtype: str) -> tf.Tensor:
    """Numbers of `shape`, uniform in [0, 1)."""
    return tf.random.stateless_uniform(shape, _key(seed, purpose, step), dtype=dtype, alg="philox")


def data_rows(positions: tf.Tensor, *, seed: Any, count: int) -> tf.Tensor:
    """Rows at `positions` 0, 1, 2, ... of an endless stream over `count` rows: int64 [b] -> int64 [b].

    Each epoch of the stream is a permutation of all rows, so no row comes twice in one; and a batch may reach
    over an epoch's end, so no remainder is lost or repeated, whatever the batch.
    """
    epochs = positions // count
    seeds = tf.fill(tf.shape(epochs), tf.cast(seed, tf.int64))
    # The raw operation: the public function pads a matrix of seeds along the wrong axis.
    return tf.raw_ops.RandomIndexShuffle(
        index=positions % count,
        seed=tf.stack([seeds, epochs, tf.zeros_like(epochs)], axis=1),
        max_index=tf.constant(count - 1, tf.int64),
        rounds=4,
    )


def _key(seed: Any, purpose: Purpose, step: Any) -> tf.Tensor:
    return tf.stack([tf.cast(seed, tf.int64) * 16 + int(purpose), tf.cast(step, tf.int64)])
