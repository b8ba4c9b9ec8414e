"""What every trial of a data set shares: images, feature network, reference. Made once, cached, frozen.

Everything follows from the data set and `split_seed`. A sweep makes it before its first trial, freezes
features, reference and the user's code in its folder, and never scores or trains with others.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from wgangp import (
    arrays,
    datasets,
    feature_network,
    frechet,
    frozen_code,
    inception,
    kept_features,
    network_check,
    networks,
    scores,
    splitting,
    user_code,
)
from wgangp.config import TrainConfig
from wgangp.datasets import Dataset
from wgangp.errors import UserError
from wgangp.feature_network import GRAPH, Features
from wgangp.kept_features import KeptFeatures
from wgangp.layers import ImageShape
from wgangp.user_code import UserCode

_REFERENCE_ROWS = 5000  # features kept of the reference, for scores that compare image by image
_VERSION = 3  # part of the cache's file names: raise it when features or reference are made differently


Facts = dict[str, str | int | float]


@dataclass(frozen=True)
class Prepared:
    """Plain arrays and facts, to be handed between processes.

    Attributes:
        images: uint8 [N, H, W, C], or vectors float32 [N, D]; the training part, or so much of it as
            `train_images` asks for.
        heldout: likewise, [M, ...].
        features: the frozen feature network.
        reference: of the features of the whole training part.
        code: the user's own, by the setting that names it.
        facts: what is printed and recorded: dataset, data_sha256, image_size, train_images, heldout_images,
            reference_images, features, features_sha256, split_seed; scored_in, the features in words; of a
            classifier features_accuracy, of Inception's graph inception_sha256 and inception_bytes; of a
            folder hidden_files, skipped_files, skipped and enlarged_images; of code code, code_sha256 and
            code_changed, where there is anything to say.
    """

    images: np.ndarray
    heldout: np.ndarray
    features: Features
    reference: scores.Reference
    code: dict[str, UserCode]
    facts: Facts

    def network_settings(self, config: TrainConfig) -> networks.NetworkSettings:
        """What the networks of a run on this data are built from."""
        return _network_settings(config, self.images.shape[1:])


def prepare(
    config: TrainConfig,
    *,
    cache: Path,
    frozen: Path | None = None,
    variants: Sequence[TrainConfig] = (),
    say: Callable[[str], None] = print,
) -> Prepared:
    """Read and split the data; make the feature network and reference, or take them from a folder.

    Args:
        config: read for what is data, split, features and networks.
        cache: a folder, made if missing. What is damaged there is made again.
        frozen: a folder that `freeze` wrote: its features, reference and code are taken and no others.
        variants: other settings that trials may be given, for a look at their networks.
        say: gets one short line for each thing that takes time.

    Raises:
        UserError: no such data, or so many images; networks or features that do not go with it; Inception's
            graph cannot be had; the user's code fails; `frozen` is damaged, of other features or other data.
    """
    code = _code([config, *variants], {} if frozen is None else frozen_code.read(frozen))
    dataset = datasets.load(config, code=code.get(config.dataset), cache=cache, say=say)
    training, heldout = splitting.split(dataset, seed=config.split_seed)
    used = training
    if config.train_images is not None:
        used = splitting.part(training, config.train_images, seed=config.split_seed)
    _check([config, *variants], dataset, code, say=say)
    facts: Facts = {"dataset": config.dataset, "data_sha256": dataset.sha256, "split_seed": config.split_seed}
    named = feature_network.name_of(config, code.get(config.features), dataset.images.shape[1:])
    if frozen is not None:
        held_to = {fact: facts[fact] for fact in ("data_sha256", "split_seed")}
        kept = kept_features.thaw(frozen, held_to, name=named)
    else:
        kept = _cached(
            config, dataset.sha256, training, heldout, code.get(config.features), cache=cache, say=say
        )
    facts |= {
        "image_size": "x".join(map(str, dataset.images.shape[1:])),
        "train_images": len(used.images),
        "heldout_images": len(heldout.images),
        "features": named,
        **dataset.notes,
        **_facts_of(code),
    }
    return _prepared(config, used.images, heldout.images, kept, code, facts)


def freeze(prepared: Prepared, folder: Path) -> None:
    """Write it to `folder`: weights.npz, reference.npz, code/, and the facts in features.json."""
    frozen_code.write(folder, prepared.code)
    features = prepared.features
    KeptFeatures(features.weights, features.accuracy, prepared.reference).freeze(folder, prepared.facts)


def _code(configs: Sequence[TrainConfig], frozen: dict[str, UserCode]) -> dict[str, UserCode]:
    values = [
        getattr(config, field) for config in configs for field in ("dataset", "architecture", "features")
    ]
    return {
        value: frozen[value] if value in frozen else user_code.read(value)
        for value in dict.fromkeys(values)
        if user_code.is_code(value)
    }


def _facts_of(code: dict[str, UserCode]) -> Facts:
    if not code:
        return {}
    texts = {each.name: np.frombuffer(each.text.encode(), np.uint8) for each in code.values()}
    facts: Facts = {
        "code": "; ".join(f"{each.value} (sha256 {each.sha256})" for each in code.values()),
        "code_sha256": arrays.digest(texts),
    }
    changed = ", ".join(each.name for each in frozen_code.changed(code))
    return facts | ({"code_changed": changed} if changed else {})


def _network_settings(config: TrainConfig, image_shape: ImageShape) -> networks.NetworkSettings:
    return networks.NetworkSettings(
        image_shape=tuple(image_shape),
        width=config.width,
        latent_size=config.latent_size,
        activation=config.activation,
        generator_norm=config.generator_norm,
        critic_norm=config.critic_norm,
        precision=config.precision,
        options=config.options,
    )


def _check(
    configs: Sequence[TrainConfig], dataset: Dataset, code: dict[str, UserCode], *, say: Callable[[str], None]
) -> None:
    """What of these settings does not go with the data, all at once."""
    shape = dataset.images.shape[1:]
    kind = feature_network.kind_of(configs[0], code.get(configs[0].features))
    problems = [feature_network.problem(kind, dataset)]
    if len(shape) == 1 and any(config.flips for config in configs):
        problems.append("flips: must be false with vectors, which have no mirror image.")
    for config in configs:
        builder = code.get(config.architecture)
        try:
            if builder is None:
                networks.check_shape(config.architecture, shape)
            else:
                say(f"trying {builder.name}")
                network_check.check(builder, _network_settings(config, shape))
        except UserError as error:
            problems += error.problems
    if problems := [problem for problem in dict.fromkeys(problems) if problem]:
        raise UserError(*problems)


def _cached(
    config: TrainConfig,
    data_sha256: str,
    training: Dataset,
    heldout: Dataset,
    code: UserCode | None,
    *,
    cache: Path,
    say: Callable[[str], None],
) -> KeptFeatures:
    kind, graph = feature_network.kind_of(config, code), None
    network = kind
    if kind == "inception":
        graph = inception.graph_bytes(config.inception, cache=cache, say=say)
        network = f"inception-{inception.sha256(graph)[:16]}"
    path = cache / f"features-v{_VERSION}-{network}-{data_sha256[:16]}-{config.split_seed}.npz"
    if code is None:  # what else it depends on, the user's function alone knows
        try:
            return kept_features.load(path)
        except (arrays.DamagedFile, KeyError):
            pass
    weights, accuracy, described = feature_network.make(
        kind, training, heldout, graph=graph, code=code, seed=config.split_seed, say=say
    )
    reference = scores.Reference(frechet.gaussian(described), described[:_REFERENCE_ROWS])
    kept = KeptFeatures(weights, accuracy, reference)
    if code is None:
        kept.save(path)
    return kept


def _prepared(
    config: TrainConfig,
    images: np.ndarray,
    heldout: np.ndarray,
    kept: KeptFeatures,
    code: dict[str, UserCode],
    facts: Facts,
) -> Prepared:
    facts |= {"reference_images": kept.reference.gaussian.count, "features_sha256": kept.sha256}
    of = f"sha256 {kept.sha256[:16]}"
    if kept.accuracy is not None:
        facts["features_accuracy"] = kept.accuracy
        of = f"accuracy on held-out images {kept.accuracy:.3f}, {of}"
    if GRAPH in kept.weights:
        graph = kept.weights[GRAPH].tobytes()
        facts |= {"inception_bytes": len(graph), "inception_sha256": inception.sha256(graph)}
        of = f"sha256 of the graph {inception.sha256(graph)[:16]}"
    facts["scored_in"] = f"{facts['features']} features ({of})"
    users = code.get(config.features)
    kind = feature_network.kind_of(config, users)
    network = Features(kind, str(facts["features"]), kept.weights, kept.accuracy, users, kept.sha256)
    return Prepared(images, heldout, network, kept.reference, code, facts)
