"""The network in whose features images are compared, of whichever kind, and its making. `prepared` calls it.

classifier-<data>   trained on the classes of the data                  `features`
random-<shape>      fixed random convolutions, for images without       `random_features`
inception-2015      the network that published FIDs are measured in     `inception`
my_features.py:f    a function of the user's own, for any kind of data
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np
import tensorflow as tf

from wgangp import features, inception, random_features, strategies
from wgangp.config import TrainConfig
from wgangp.datasets import Dataset
from wgangp.errors import UserError
from wgangp.features import Description
from wgangp.layers import ImageShape
from wgangp.networks import EVALUATION_BATCH
from wgangp.user_code import UserCode

GRAPH = "graph"
"""The name of Inception's graph among the weights."""

_MOST = 8192
"""Features: their covariance has the square of it."""


class Network(Protocol):
    def describe(self, images: np.ndarray) -> Description:
        """Features [n, D] of images uint8 [n, H, W, C], or of vectors float32 [n, D]."""


@dataclass(frozen=True)
class Features:
    """A frozen feature network.

    Attributes:
        kind: `classifier`, `random`, `inception` or `code`.
        name: which network, e.g. `classifier-mnist5k`, `inception-2015`.
        weights: as their makers give them, the classifying layer included; of Inception its graph.
        accuracy: of a classifier: share of the held-out images it classifies rightly, 0..1.
        code: the user's function.
        sha256: over weights and reference.
    """

    kind: str
    name: str
    weights: dict[str, np.ndarray]
    accuracy: float | None
    code: UserCode | None
    sha256: str

    def network(self, image_shape: ImageShape) -> Network:
        """The network, ready to run."""
        if self.code is not None:
            return _UsersFeatures(self.code)
        return _loaded(self.kind, self.weights, image_shape)


def kind_of(config: TrainConfig, code: UserCode | None) -> str:
    return config.features if code is None else "code"


def name_of(config: TrainConfig, code: UserCode | None, image_shape: ImageShape) -> str:
    """What travels with every score."""
    if code is not None:
        return code.name
    of = {
        "classifier": Path(config.dataset).name,
        "random": "x".join(map(str, image_shape)),
        "inception": "2015",
    }
    return f"{config.features}-{of[config.features]}"


def problem(kind: str, dataset: Dataset) -> str:
    """Why there are no features of this kind of this data, or nothing."""
    shape, classes = dataset.images.shape[1:], dataset.labels
    if kind != "code" and len(shape) == 1:
        return f"features: must be a function of your own for vectors, my_features.py:embed, got {kind}."
    if kind == "classifier" and (classes is None or classes.max() == 0):
        return (
            "features: must not be classifier, as the images have no classes to tell apart; set features:"
            " random, or inception, or my_features.py:embed."
        )
    if kind == "inception" and shape[2] not in (1, 3):
        return f"features: must not be inception for images of {shape[2]} channels; set channels: 3."
    return ""


def make(
    kind: str,
    training: Dataset,
    heldout: Dataset,
    *,
    graph: bytes | None,
    code: UserCode | None,
    seed: int,
    say: Callable[[str], None],
) -> tuple[dict[str, np.ndarray], float | None, np.ndarray]:
    """A new network of this kind: its weights, a classifier's accuracy, the features of the training part.

    Raises:
        UserError: the user's function fails, or gives no features.
    """
    accuracy, weights = None, {}
    shape = training.images.shape[1:]
    strategies.configure(intra_op=1, inter_op=1)
    with tf.device("CPU:0"):
        if kind == "classifier":
            assert training.labels is not None and heldout.labels is not None, "problem() was asked"
            weights = features.train(training.images, training.labels, seed=seed, say=say)
        elif kind == "random":
            weights = random_features.weights(shape, seed=seed)
        elif graph is not None:
            weights = {GRAPH: np.frombuffer(graph, np.uint8)}
        network = _loaded(kind, weights, shape) if code is None else _UsersFeatures(code, training.images)
        if kind == "classifier":
            guesses = network.describe(heldout.images).probabilities
            assert guesses is not None and heldout.labels is not None
            accuracy = float((guesses.argmax(axis=1) == heldout.labels).mean())
        say("describing the training images")
        return weights, accuracy, network.describe(training.images).features


def _loaded(kind: str, weights: dict[str, np.ndarray], shape: ImageShape) -> Network:
    if kind == "inception":
        return inception.Inception(weights[GRAPH].tobytes())
    if kind == "random":
        return random_features.RandomFeatures(weights)
    return features.Classifier(weights, image_shape=shape)


class _UsersFeatures:
    """A function of the user's own."""

    def __init__(self, code: UserCode, images: np.ndarray | None = None) -> None:
        """Raises: UserError, if it cannot be run; tried on two batches of `images` if they are given."""
        self._code, self._embed = code, code.load()
        self._dimensions = 0
        if images is None:
            return
        first, again = (self._described(images[:8]) for _ in range(2))
        self._described(images[8:13])
        if not np.array_equal(first, again):
            raise UserError(
                f"features: {code.name} must give the same features for the same data, and does not; seed"
                " what it draws."
            )

    def describe(self, images: np.ndarray) -> Description:
        batches = [
            self._described(images[first : first + EVALUATION_BATCH])
            for first in range(0, len(images), EVALUATION_BATCH)
        ]
        return Description(np.concatenate(batches), None)

    def _described(self, batch: np.ndarray) -> np.ndarray:
        found = self._code.call(lambda: np.asarray(self._embed(batch)))
        wanted = self._dimensions or (found.shape[1] if found.ndim == 2 else 0)
        if found.shape != (len(batch), wanted) or not 1 <= wanted <= _MOST or found.dtype.kind not in "fiu":
            raise UserError(
                f"features: {self._code.name} must give numbers [{len(batch)}, D] for {len(batch)} images, D"
                f" always the same and at most {_MOST}, got {found.dtype} {list(found.shape)}."
            )
        if not np.isfinite(found).all():
            raise UserError(f"features: {self._code.name} must give finite numbers.")
        self._dimensions = wanted
        return found.astype(np.float32)
