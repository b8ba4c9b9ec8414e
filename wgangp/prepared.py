"""What every trial of a data set shares: images, feature network, reference. Made once, cached, frozen.

Everything follows from the data set and `split_seed`. A sweep makes it before its first trial, freezes
features and reference in its folder, and never scores with others.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from wgangp import arrays, datasets, features, scores, strategies
from wgangp.config import TrainConfig
from wgangp.errors import UserError

_VERSION = 2  # part of the cache's file names: raise it when features or reference are made differently
_MEND = "Put a copy back; or remove the folder, and they are made anew and must come out the same."
_WEIGHT, _REFERENCE = "weight/", "reference/"


@dataclass(frozen=True)
class Features:
    """A frozen feature network.

    Attributes:
        name: which network, e.g. `classifier-mnist5k`.
        weights: as `features.train` gives them, the classifying layer included.
        accuracy: share of the held-out images it classifies rightly, 0..1.
        sha256: over weights and reference.
    """

    name: str
    weights: dict[str, np.ndarray]
    accuracy: float
    sha256: str

    def classifier(self, image_shape: tuple[int, int, int]) -> features.Classifier:
        """The network, ready to run."""
        return features.Classifier(self.weights, image_shape=image_shape)


@dataclass(frozen=True)
class Prepared:
    """Plain arrays and facts, to be handed between processes.

    Attributes:
        images: uint8 [N, H, W, C], the training part.
        heldout: uint8 [M, H, W, C].
        features: the frozen feature network.
        reference: of the training part's features.
        facts: what is printed and recorded: dataset, data_sha256, image_size, train_images, heldout_images,
            features, features_sha256, features_accuracy, split_seed.
    """

    images: np.ndarray
    heldout: np.ndarray
    features: Features
    reference: scores.Reference
    facts: dict[str, str | int | float]


def prepare(
    config: TrainConfig, *, cache: Path, frozen: Path | None = None, say: Callable[[str], None] = print
) -> Prepared:
    """Read and split the data; make the feature network and reference, or take them from a folder.

    Args:
        config: read for `dataset` and `split_seed`.
        cache: a folder, made if missing. What is damaged there is made again.
        frozen: a folder that `freeze` wrote: its features and reference are taken and no others.
        say: gets one short line for each thing that takes time.

    Raises:
        UserError: no such data set; `frozen` is damaged or belongs to other data.
    """
    dataset = datasets.load(config.dataset, cache=cache, say=say)
    training, heldout = datasets.split(dataset, seed=config.split_seed)
    data: dict[str, str | int] = {"data_sha256": dataset.sha256, "split_seed": config.split_seed}
    if frozen is not None:
        stored = _thaw(frozen, data)
    else:
        path = cache / f"features-v{_VERSION}-{dataset.sha256[:16]}-{config.split_seed}.npz"
        try:
            stored = arrays.load(path)
        except arrays.DamagedFile:
            stored = _make(training, heldout, seed=config.split_seed, say=say)
            arrays.save(path, stored)
    return _assemble(config.dataset, training.images, heldout.images, stored, data)


def freeze(prepared: Prepared, folder: Path) -> None:
    """Write features and reference to `folder`: weights.npz, reference.npz; in features.json the sha256."""
    stored = _stored(prepared.features.weights, prepared.features.accuracy, prepared.reference)
    arrays.save(folder / "weights.npz", _part(stored, _WEIGHT))
    arrays.save(folder / "reference.npz", _part(stored, _REFERENCE))
    names = ("dataset", "data_sha256", "split_seed", "features", "features_sha256", "features_accuracy")
    arrays.write(
        folder / "features.json", json.dumps({n: prepared.facts[n] for n in names}, indent=2).encode()
    )


def _make(
    training: datasets.Dataset, heldout: datasets.Dataset, *, seed: int, say: Callable[[str], None]
) -> dict[str, np.ndarray]:
    """Everything that is stored, in one mapping: weights, reference, accuracy."""
    import tensorflow as tf

    strategies.use_threads(intra_op=1, inter_op=1)
    with tf.device("CPU:0"):
        weights = features.train(training.images, training.labels, seed=seed, say=say)
        classifier = features.Classifier(weights, image_shape=training.images.shape[1:])
        guesses = classifier.describe(heldout.images).probabilities.argmax(axis=1)
        accuracy = float((guesses == heldout.labels).mean())
        reference = scores.reference(classifier.describe(training.images).features)
    return _stored(weights, accuracy, reference)


def _stored(
    weights: dict[str, np.ndarray], accuracy: float, reference: scores.Reference
) -> dict[str, np.ndarray]:
    return {
        **{_WEIGHT + name: weight for name, weight in weights.items()},
        **{_REFERENCE + name: np.asarray(value) for name, value in vars(reference).items()},
        "accuracy": np.asarray(accuracy),
    }


def _part(stored: dict[str, np.ndarray], prefix: str) -> dict[str, np.ndarray]:
    return {name.removeprefix(prefix): array for name, array in stored.items() if name.startswith(prefix)}


def _sha256(stored: dict[str, np.ndarray]) -> str:
    return arrays.digest({name: array for name, array in stored.items() if name != "accuracy"})


def _assemble(
    dataset: str,
    images: np.ndarray,
    heldout: np.ndarray,
    stored: dict[str, np.ndarray],
    data: dict[str, str | int],
) -> Prepared:
    network = Features(
        name=f"classifier-{dataset}",
        weights=_part(stored, _WEIGHT),
        accuracy=float(stored["accuracy"]),
        sha256=_sha256(stored),
    )
    reference = _part(stored, _REFERENCE)
    facts: dict[str, str | int | float] = {
        "dataset": dataset,
        **data,
        "image_size": "x".join(map(str, images.shape[1:])),
        "train_images": len(images),
        "heldout_images": len(heldout),
        "features": network.name,
        "features_sha256": network.sha256,
        "features_accuracy": network.accuracy,
    }
    count = int(reference.pop("count"))
    return Prepared(images, heldout, network, scores.Reference(**reference, count=count), facts)


def _thaw(folder: Path, data: dict[str, str | int]) -> dict[str, np.ndarray]:
    """What `freeze` wrote, if it is whole and belongs to `data`."""
    try:
        facts = json.loads((folder / "features.json").read_text())
        stored = {_WEIGHT + name: array for name, array in arrays.load(folder / "weights.npz").items()}
        stored |= {_REFERENCE + name: array for name, array in arrays.load(folder / "reference.npz").items()}
        stored["accuracy"] = np.asarray(float(facts["features_accuracy"]))
        frozen = {name: facts[name] for name in data}
        sha256 = facts["features_sha256"]
    except (OSError, ValueError, KeyError, TypeError, arrays.DamagedFile) as error:
        raise UserError(f"{folder}: the frozen features cannot be read: {error}. {_MEND}") from error
    if sha256 != _sha256(stored):
        raise UserError(f"{folder}: the frozen features are damaged: their sha256 does not hold. {_MEND}")
    for name, value in data.items():
        if frozen[name] != value:
            raise UserError(
                f"{folder}: the frozen features belong to other data: {name} must be {frozen[name]},"
                f" got {value}."
            )
    return stored
