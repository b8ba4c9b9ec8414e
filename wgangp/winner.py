"""The best generator of a checkpoint, scored again on noise no trial was chosen by."""

from collections.abc import Iterator
from pathlib import Path

import keras
import numpy as np
import tensorflow as tf

from wgangp import checkpoints, export, files, frechet, networks, pictures
from wgangp.config import TrainConfig
from wgangp.evaluation import Evaluation
from wgangp.layers import value_dtype
from wgangp.prepared import Prepared
from wgangp.randomness import Purpose, derive_seed

SAMPLES = 64
SURE = 0.9
MANY = 4
"""Times `fid_samples` are drawn to extrapolate FID from, so that no part is smaller than `fid_samples`."""
_COMPARED = 5000


def score_winner(
    prepared: Prepared, config: TrainConfig, checkpoint: Path, *, folder: Path
) -> dict[str, float]:
    """Score images of fresh noise; write samples.png to `folder`.

    Returns:
        fid_fresh and its fid_standard_error, of `config.fid_samples` images as in training; of four times as
        many fid_at_infinity, diversity and the other scores of `config.scores`. With a classifier's features
        sure_samples: of 64 samples, how many it gives one class more than 0.9; and classes_seen: how many
        classes these are.

    Raises:
        CheckpointError: the checkpoint cannot be read or holds no best generator.
    """
    generator = _best_generator(prepared, config, checkpoint)
    seed = derive_seed(config.seed if config.evaluation_seed is None else config.evaluation_seed, "fresh")
    dtype = value_dtype(config.precision)
    run = tf.function(generator, input_signature=[tf.TensorSpec(generator.inputs[0].shape, dtype)])

    def images(count: int, purpose: Purpose) -> Iterator[np.ndarray]:
        return networks.sample(
            run, count=count, latent_size=config.latent_size, dtype=dtype, seed=seed, purpose=purpose
        )

    evaluation = Evaluation(prepared, compared=_COMPARED)
    many = evaluation.describe(images(MANY * config.fid_samples, Purpose.FID_NOISE))
    few = many.features[: config.fid_samples]
    gaussian = prepared.reference.gaussian
    found = evaluation.scores(many, names=config.scores)
    found["fid_fresh"], found["fid_standard_error"] = frechet.fid_with_error(few, against=gaussian)
    found["fid_at_infinity"] = frechet.fid_at_infinity(many.features, against=gaussian)
    del found["fid"]  # of another number of samples than every other FID of the sweep

    samples = np.concatenate(list(images(SAMPLES, Purpose.GRID_NOISE)))
    files.write(folder / "samples.png", pictures.draw(networks.to_data(samples), real=prepared.images))
    probabilities = evaluation.describe([samples]).probabilities
    if prepared.features.kind == "classifier" and probabilities is not None:
        found |= recognised(probabilities)
    return found


def export_winner(prepared: Prepared, config: TrainConfig, checkpoint: Path, *, folder: Path) -> str:
    """Write the best generator to `folder` as generator.keras; why not, if it cannot be, else "".

    Raises:
        CheckpointError: as for `score_winner`.
    """
    return export.save(_best_generator(prepared, config, checkpoint), folder / export.FILE)


def _best_generator(prepared: Prepared, config: TrainConfig, checkpoint: Path) -> keras.Model:
    contents, _ = checkpoints.read(checkpoint)
    weights = {
        name.removeprefix(checkpoints.BEST_GENERATOR): array
        for name, array in contents.items()
        if name.startswith(checkpoints.BEST_GENERATOR)
    }
    if not weights:
        raise checkpoints.CheckpointError(f"{checkpoint} holds no best generator")
    try:
        return generator_of(prepared, config, weights)
    except (KeyError, ValueError) as error:
        raise checkpoints.CheckpointError(f"{checkpoint} does not fit: {error}") from error


def generator_of(prepared: Prepared, config: TrainConfig, weights: dict[str, np.ndarray]) -> keras.Model:
    """The generator with these weights, by their place as text.

    Raises:
        KeyError: one is missing.
        ValueError: one has another shape.
    """
    generator = networks.build_generator(
        config.architecture,
        prepared.network_settings(config),
        code=prepared.code.get(config.architecture),
    )
    generator.set_weights([weights[str(place)] for place in range(len(generator.weights))])
    return generator


def recognised(probabilities: np.ndarray) -> dict[str, float]:
    """`sure_samples` and `classes_seen`, as in `score_winner`, of class probabilities [n, classes]."""
    sure = probabilities[probabilities.max(axis=1) > SURE]
    return {"sure_samples": len(sure), "classes_seen": len(set(sure.argmax(axis=1).tolist()))}
