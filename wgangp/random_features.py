"""Images -> feature vectors by fixed random convolutions: for images without labels, after Naeem et al. 2020.

Nothing is trained: the weights follow from a seed alone. Such features tell shapes and colours apart and know
nothing of what a picture shows; distances in them rank, and compare with nobody else's.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
import tensorflow as tf

from wgangp.features import Description
from wgangp.layers import ImageShape
from wgangp.networks import EVALUATION_BATCH
from wgangp.randomness import derive_seed

_CHANNELS = (32, 64, 128)
_GRID = 2
"""Cells on each side over which the last layer is averaged: where something is counts a little."""


def weights(image_shape: ImageShape, *, seed: int) -> dict[str, np.ndarray]:
    """The kernels, normal with variance 2 / fan-in (He et al. 2015), named by their place."""
    found, channels = {}, image_shape[-1]
    for place, width in enumerate(_CHANNELS):
        random = np.random.default_rng(derive_seed(seed, "random features", place))
        shape = (4, 4, channels, width)
        found[str(place)] = random.normal(0, np.sqrt(2 / np.prod(shape[:3])), shape).astype(np.float32)
        channels = width
    return found


class RandomFeatures:
    """The network, ready to run, float32 whatever the precision of the training."""

    def __init__(self, kernels: Mapping[str, np.ndarray]) -> None:
        """From what `weights` gives."""
        self._kernels = [tf.constant(kernels[str(place)]) for place in range(len(kernels))]
        self._run = tf.function(self._features, reduce_retracing=True)

    def describe(self, images: np.ndarray) -> Description:
        """Features float32 [n, 512] of uint8 images [n, H, W, C]; no probabilities."""
        batches = [
            self._run(tf.constant(images[first : first + EVALUATION_BATCH])).numpy()
            for first in range(0, len(images), EVALUATION_BATCH)
        ]
        return Description(np.concatenate(batches), None)

    def _features(self, images: tf.Tensor) -> Any:
        h = tf.cast(images, tf.float32) / 127.5 - 1
        for kernel in self._kernels:
            h = tf.nn.relu(tf.nn.conv2d(h, kernel, strides=2, padding="SAME"))
        return tf.reshape(_cells(h), [tf.shape(images)[0], -1])


def _cells(h: Any) -> Any:
    """The mean over each of 2x2 cells, of whatever size the map is."""
    rows = tf.stack([tf.reduce_mean(half, 1) for half in _halves(h, 1)], 1)
    return tf.stack([tf.reduce_mean(half, 2) for half in _halves(rows, 2)], 2)


def _halves(h: Any, axis: int) -> list[Any]:
    size = h.shape[axis]
    first, second = max(1, size // 2), min(size - 1, size // 2)
    parts = [slice(0, first), slice(second, size)]
    return [h[(slice(None),) * axis + (part,)] for part in parts]
