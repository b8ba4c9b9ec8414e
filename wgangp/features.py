"""Images -> feature vectors, by a small classifier trained on the data set ("LeNet features").

`prepared` trains it once per data set and freezes it; `evaluation` runs it on generated images. The numbers a
distance is made of mean nothing without the network: its name and hash travel with every score.
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import keras
import numpy as np
import tensorflow as tf

from wgangp import networks, randomness
from wgangp.layers import ImageShape
from wgangp.networks import EVALUATION_BATCH
from wgangp.randomness import Purpose

FEATURES = 128
_EPOCHS = 8
_BATCH = 64
_LEARNING_RATE = 1e-3
_DROPOUT = 0.3


class Description(NamedTuple):
    """What a feature network makes of images.

    Attributes:
        features: float32 [n, D]; of the classifier [n, 128], its last hidden layer.
        probabilities: float32 [n, classes]; None of a network that knows no classes.
    """

    features: np.ndarray
    probabilities: np.ndarray | None


class Classifier:
    """The feature network, ready to run, float32 whatever the precision of the training."""

    def __init__(self, weights: Mapping[str, np.ndarray], *, image_shape: ImageShape) -> None:
        """From weights as `train` gives them."""
        classes = weights[str(len(weights) - 1)].shape[0]
        self._network = _build(image_shape, classes)
        self._network.set_weights([weights[str(i)] for i in range(len(weights))])
        self._run = tf.function(
            _describe(self._network), input_signature=[tf.TensorSpec([None, *image_shape], tf.uint8)]
        )

    def describe(self, images: np.ndarray) -> Description:
        """Features and class probabilities of uint8 images [n, H, W, C]."""
        batches = [
            self._run(images[i : i + EVALUATION_BATCH]) for i in range(0, len(images), EVALUATION_BATCH)
        ]
        return Description(*(np.concatenate(parts) for parts in zip(*batches, strict=True)))


def train(
    images: np.ndarray, labels: np.ndarray, *, seed: int, say: Callable[[str], None]
) -> dict[str, np.ndarray]:
    """Train the classifier on uint8 images [N, H, W, C] and labels 0..classes-1 [N].

    A function of its arguments alone on one thread; on several, TensorFlow may add up in another order.

    Returns:
        The weights, named by their place.
    """
    network = _build(images.shape[1:], int(labels.max()) + 1)
    networks.initialise(network, seed=seed)
    adam = keras.optimizers.Adam(_LEARNING_RATE)
    adam.build(network.trainable_variables)
    step = tf.function(_training_step(network, adam, seed), reduce_retracing=True)
    order = np.random.default_rng(seed)
    count = 0
    for epoch in range(_EPOCHS):
        say(f"training the feature classifier: epoch {epoch + 1} of {_EPOCHS}")
        rows = order.permutation(len(images))
        for first in range(0, len(rows), _BATCH):
            batch = rows[first : first + _BATCH]
            step(images[batch], labels[batch], tf.constant(count, tf.int64))
            count += 1
    return {str(i): weight for i, weight in enumerate(network.get_weights())}


def _build(image_shape: ImageShape, classes: int) -> keras.Model:
    """Images in 0..1 -> (features, logits). Dropout is applied between the two in training only."""
    halving: dict[str, Any] = {
        "kernel_size": 5,
        "strides": 2,
        "padding": "same",
        "activation": "relu",
        "dtype": "float32",
    }
    x = keras.Input(image_shape, dtype="float32")
    mask = keras.Input((FEATURES,), dtype="float32")
    h = keras.layers.Conv2D(32, **halving)(x)
    h = keras.layers.Flatten(dtype="float32")(keras.layers.Conv2D(64, **halving)(h))
    features = keras.layers.Dense(FEATURES, activation="relu", dtype="float32")(h)
    logits = keras.layers.Dense(classes, dtype="float32")(features * mask)
    return keras.Model([x, mask], [features, logits], name="classifier")


def _describe(network: keras.Model) -> Callable[[tf.Tensor], tuple[tf.Tensor, tf.Tensor]]:
    def describe(images: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        keep_all = tf.ones([tf.shape(images)[0], FEATURES])
        features, logits = network([tf.cast(images, tf.float32) / 255, keep_all])
        return features, tf.nn.softmax(logits)

    return describe


def _training_step(
    network: keras.Model, adam: keras.optimizers.Adam, seed: int
) -> Callable[[tf.Tensor, tf.Tensor, tf.Tensor], None]:
    def training_step(images: tf.Tensor, labels: tf.Tensor, step: tf.Tensor) -> None:
        draws = randomness.uniform(
            [_BATCH, FEATURES], seed=seed, purpose=Purpose.DROPOUT, step=step, dtype="float32"
        )
        kept = tf.cast(draws >= _DROPOUT, tf.float32) / (1 - _DROPOUT)
        with tf.GradientTape() as tape:
            _, logits = network([tf.cast(images, tf.float32) / 255, kept[: tf.shape(images)[0]]])
            losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits)
            loss = tf.reduce_mean(losses)
        gradients = tape.gradient(loss, network.trainable_variables)
        adam.apply_gradients(zip(gradients, network.trainable_variables, strict=True))

    return training_step
