"""What every trial of a data set shares: images, feature network, reference. Made once, cached, frozen.

Everything follows from the data set and `split_seed`. A sweep makes it before its first trial, freezes
features and reference in its folder, and never scores with others.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from wgangp import arrays, datasets, features, frechet, inception, scores, strategies
from wgangp.config import TrainConfig
from wgangp.errors import UserError

_REFERENCE_ROWS = 5000  # features kept of the reference, for scores that compare image by image
_VERSION = 3  # part of the cache's file names: raise it when features or reference are made differently
_MEND = "Put a copy back; or remove the folder, and they are made anew and must come out the same."
_GRAPH = "graph"
_WEIGHT, _REFERENCE = "weight/", "reference/"


Facts = dict[str, str | int | float]


@dataclass(frozen=True)
class Features:
    """A frozen feature network.

    Attributes:
        name: which network, e.g. `classifier-mnist5k`, `inception-2015`.
        weights: as `features.train` gives them, the classifying layer included; of Inception its `graph`.
        accuracy: share of the held-out images it classifies rightly, 0..1; None if these are not its classes.
        sha256: over weights and reference.
    """

    name: str
    weights: dict[str, np.ndarray]
    accuracy: float | None
    sha256: str

    def network(self, image_shape: tuple[int, int, int]) -> features.Classifier | inception.Inception:
        """The network, ready to run."""
        if self.accuracy is None:
            return inception.Inception(self.weights[_GRAPH].tobytes())
        return features.Classifier(self.weights, image_shape=image_shape)


@dataclass(frozen=True)
class Prepared:
    """Plain arrays and facts, to be handed between processes.

    Attributes:
        images: uint8 [N, H, W, C], the training part, or so much of it as `train_images` asks for.
        heldout: uint8 [M, H, W, C].
        features: the frozen feature network.
        reference: of the features of the whole training part.
        facts: what is printed and recorded: dataset, data_sha256, image_size, train_images, heldout_images,
            reference_images, features, features_sha256, split_seed; scored_in, the features in words; of a
            classifier features_accuracy, of Inception's graph inception_sha256 and inception_bytes.
    """

    images: np.ndarray
    heldout: np.ndarray
    features: Features
    reference: scores.Reference
    facts: Facts


def prepare(
    config: TrainConfig, *, cache: Path, frozen: Path | None = None, say: Callable[[str], None] = print
) -> Prepared:
    """Read and split the data; make the feature network and reference, or take them from a folder.

    Args:
        config: read for `dataset`, `split_seed`, `train_images`, `features` and `inception`.
        cache: a folder, made if missing. What is damaged there is made again.
        frozen: a folder that `freeze` wrote: its features and reference are taken and no others.
        say: gets one short line for each thing that takes time.

    Raises:
        UserError: no such data set, or so many images; Inception's graph cannot be had; `frozen` is damaged,
            of other features or of other data.
    """
    dataset = datasets.load(config.dataset, cache=cache, say=say)
    training, heldout = datasets.split(dataset, seed=config.split_seed)
    if config.train_images is not None:
        few = datasets.part(training, config.train_images, seed=config.split_seed)
    data: dict[str, str | int] = {"data_sha256": dataset.sha256, "split_seed": config.split_seed}
    if frozen is not None:
        stored = _thaw(frozen, data, kind=config.features)
    else:
        graph = None
        if config.features == "inception":
            graph = inception.graph_bytes(config.inception, cache=cache, say=say)
        stored = _cached(dataset, training, heldout, graph, seed=config.split_seed, cache=cache, say=say)
    images = few.images if config.train_images is not None else training.images
    return _assemble(config.dataset, images, heldout.images, stored, data)


def freeze(prepared: Prepared, folder: Path) -> None:
    """Write features and reference to `folder`: weights.npz, reference.npz; in features.json the facts."""
    stored = _stored(prepared.features.weights, prepared.features.accuracy, prepared.reference)
    arrays.save(folder / "weights.npz", _part(stored, _WEIGHT))
    arrays.save(folder / "reference.npz", _part(stored, _REFERENCE))
    arrays.write(folder / "features.json", json.dumps(prepared.facts, indent=2).encode())


def _cached(
    dataset: datasets.Dataset,
    training: datasets.Dataset,
    heldout: datasets.Dataset,
    graph: bytes | None,
    *,
    seed: int,
    cache: Path,
    say: Callable[[str], None],
) -> dict[str, np.ndarray]:
    """Everything that is stored, in one mapping: weights, reference, accuracy."""
    network = f"inception-{inception.sha256(graph)[:16]}" if graph else "classifier"
    path = cache / f"features-v{_VERSION}-{network}-{dataset.sha256[:16]}-{seed}.npz"
    try:
        return arrays.load(path)
    except arrays.DamagedFile:
        stored = _make(training, heldout, graph, seed=seed, say=say)
    arrays.save(path, stored)
    return stored


def _make(
    training: datasets.Dataset,
    heldout: datasets.Dataset,
    graph: bytes | None,
    *,
    seed: int,
    say: Callable[[str], None],
) -> dict[str, np.ndarray]:
    import tensorflow as tf

    accuracy = None
    network: features.Classifier | inception.Inception
    strategies.use_threads(intra_op=1, inter_op=1)
    with tf.device("CPU:0"):
        if graph:
            weights = {_GRAPH: np.frombuffer(graph, np.uint8)}
            network = inception.Inception(graph)
        else:
            weights = features.train(training.images, training.labels, seed=seed, say=say)
            network = features.Classifier(weights, image_shape=training.images.shape[1:])
            guesses = network.describe(heldout.images).probabilities.argmax(axis=1)
            accuracy = float((guesses == heldout.labels).mean())
        say("describing the training images")
        described = network.describe(training.images).features
    reference = scores.Reference(frechet.gaussian(described), described[:_REFERENCE_ROWS])
    return _stored(weights, accuracy, reference)


def _stored(
    weights: dict[str, np.ndarray], accuracy: float | None, reference: scores.Reference
) -> dict[str, np.ndarray]:
    arrays_of_reference = {**vars(reference.gaussian), "features": reference.features}
    return {
        **{_WEIGHT + name: weight for name, weight in weights.items()},
        **{_REFERENCE + name: np.asarray(value) for name, value in arrays_of_reference.items()},
        **({} if accuracy is None else {"accuracy": np.asarray(accuracy)}),
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
    weights, reference = _part(stored, _WEIGHT), _part(stored, _REFERENCE)
    sha256, some = _sha256(stored), reference.pop("features")
    count = int(reference.pop("count"))
    gaussian = frechet.Gaussian(**reference, count=count)
    facts: Facts = {
        "dataset": dataset,
        **data,
        "image_size": "x".join(map(str, images.shape[1:])),
        "train_images": len(images),
        "heldout_images": len(heldout),
        "reference_images": gaussian.count,
        "features_sha256": sha256,
    }
    accuracy = None
    if _GRAPH in weights:
        graph = weights[_GRAPH].tobytes()
        facts |= {"features": "inception-2015", "inception_bytes": len(graph)}
        facts["inception_sha256"] = inception.sha256(graph)
        facts["scored_in"] = f"inception-2015 features (sha256 of the graph {inception.sha256(graph)[:16]})"
    else:
        accuracy = float(stored["accuracy"])
        facts |= {"features": f"classifier-{dataset}", "features_accuracy": accuracy}
        facts["scored_in"] = (
            f"{facts['features']} features (accuracy on held-out images {accuracy:.3f}, sha256 {sha256[:16]})"
        )
    network = Features(str(facts["features"]), weights, accuracy, sha256)
    return Prepared(images, heldout, network, scores.Reference(gaussian, some), facts)


def _thaw(folder: Path, data: dict[str, str | int], *, kind: str) -> dict[str, np.ndarray]:
    """What `freeze` wrote, if it is whole, belongs to `data` and is of this kind."""
    try:
        facts = json.loads((folder / "features.json").read_text())
        stored = {_WEIGHT + name: array for name, array in arrays.load(folder / "weights.npz").items()}
        stored |= {_REFERENCE + name: array for name, array in arrays.load(folder / "reference.npz").items()}
        if _WEIGHT + _GRAPH not in stored:
            stored["accuracy"] = np.asarray(float(facts["features_accuracy"]))
        frozen = {name: facts[name] for name in data}
        stored[_REFERENCE + "features"]  # which those of older versions lack
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
    found = "inception" if _WEIGHT + _GRAPH in stored else "classifier"
    if found != kind:
        raise UserError(f"{folder}: the frozen features are others: features must be {found}, got {kind}.")
    return stored
