"""Every random number of the training, as a function of (seed, purpose, step).

Nothing here keeps a state, so a resumed run goes on with the numbers it would have had. All draws are for the
GLOBAL batch; `update` gives each replica its share, so they do not depend on the number of replicas and no
two replicas share noise. They are made of Philox's whole numbers: the same on every device, in any precision.
"""

import hashlib
from enum import IntEnum
from typing import Any

import numpy as np
import tensorflow as tf


class Purpose(IntEnum):
    """What a draw is for. The numbers are part of what a seed means: never renumber them."""

    CRITIC_NOISE = 0
    INTERPOLATION = 1
    GENERATOR_NOISE = 2
    FID_NOISE = 3
    GRID_NOISE = 4
    DROPOUT = 5
    DATA_ORDER = 6
    FLIPS = 7


_PERMUTATION_ROUNDS = 4


def derive_seed(seed: int, *words: object) -> int:
    """Another seed in 0..2^31-1, a stated hash (sha256) of `seed` and `words`."""
    text = "/".join(map(str, (seed, *words)))
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "big") >> 1


def normal(shape: list[int], *, seed: Any, purpose: Purpose, step: Any, dtype: str) -> tf.Tensor:
    """Standard normal numbers of `shape`, within 5.4."""
    # TensorFlow's own normal numbers come another way on each kind of device.
    u = uniform(shape, seed=seed, purpose=purpose, step=step, dtype=dtype)
    return tf.cast(np.sqrt(2), dtype) * tf.math.erfinv(2 * u - 1)


def uniform(shape: list[int], *, seed: Any, purpose: Purpose, step: Any, dtype: str) -> tf.Tensor:
    """Numbers of `shape`, uniform in (0, 1): odd multiples of 2^-24, so the same in float32 and float64."""
    bits = tf.random.stateless_uniform(
        shape, _key(seed, purpose, step), minval=0, maxval=2**23, dtype=tf.int32, alg="philox"
    )
    return (tf.cast(bits, dtype) + 0.5) / 2**23


def data_rows(positions: tf.Tensor, *, seed: Any, count: int) -> tf.Tensor:
    """Rows at consecutive `positions` of an endless stream over `count` rows: int64 [b] -> int64 [b].

    Each epoch of the stream is a permutation of all rows, so no row comes twice in one; and a batch may reach
    over an epoch's end, so no remainder is lost or repeated, whatever the batch.

    TensorFlow's own operation for this runs on CPUs only. Here whole numbers of `bits` bits are permuted, and
    again while the outcome is no row (cycle walking: Black and Rogaway 2002).
    """
    bits = max(1, (count - 1).bit_length())
    epochs = positions // count
    first, most = epochs[0], 2 + (positions.shape[0] - 1) // count
    keys = tf.stack([_permutation_keys(seed, first + i) for i in range(most)])
    keys = tf.unstack(tf.gather(keys, epochs - first), axis=1)

    def permute(number: tf.Tensor) -> tf.Tensor:
        for key in keys:
            # Each of the two is one to one on numbers of so many bits; 31 bits times 31 stay within 63.
            number = (number * (key[:, 0] | 1) + key[:, 1]) & (2**bits - 1)
            number ^= number // 2 ** ((bits + 1) // 2)
        return number

    return tf.while_loop(
        lambda rows: tf.reduce_any(rows >= count),
        lambda rows: [tf.where(rows >= count, permute(rows), rows)],
        [permute(positions % count)],
    )[0]


def _permutation_keys(seed: Any, epoch: tf.Tensor) -> tf.Tensor:
    """int64 [rounds, 2], each of 30 bits."""
    key = _key(seed, Purpose.DATA_ORDER, epoch)
    return tf.random.stateless_uniform(
        [_PERMUTATION_ROUNDS, 2], key, minval=0, maxval=2**30, dtype=tf.int64, alg="philox"
    )


def _key(seed: Any, purpose: Purpose, step: Any) -> tf.Tensor:
    return tf.stack([tf.cast(seed, tf.int64) * 16 + int(purpose), tf.cast(step, tf.int64)])
