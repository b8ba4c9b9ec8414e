"""The best generator of a checkpoint, scored again on noise no trial was chosen by."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import tensorflow as tf

from wgangp import arrays, checkpoints, networks, pictures, scores
from wgangp.config import TrainConfig
from wgangp.prepared import Prepared
from wgangp.randomness import Purpose, derive_seed

SAMPLES = 64
SURE = 0.9


def score_winner(
    prepared: Prepared, config: TrainConfig, checkpoint: Path, *, folder: Path
) -> dict[str, float]:
    """Score `config.fid_samples` images of fresh noise; write samples.png and generator.npz to `folder`.

    Returns:
        fid_fresh; sure_samples: of 64 samples, how many the classifier gives one class more than 0.9; and
        classes_seen: how many classes these are.

    Raises:
        CheckpointError: the checkpoint cannot be read or holds no best generator.
    """
    contents, _ = checkpoints.read(checkpoint)
    weights = {
        name.removeprefix(checkpoints.BEST_GENERATOR): array
        for name, array in contents.items()
        if name.startswith(checkpoints.BEST_GENERATOR)
    }
    if not weights:
        raise checkpoints.CheckpointError(f"{checkpoint} holds no best generator")
    generator = networks.build_generator(
        config.architecture,
        image_shape=prepared.images.shape[1:],
        width=config.width,
        latent_size=config.latent_size,
        precision=config.precision,
    )
    try:
        generator.set_weights([weights[str(i)] for i in range(len(generator.weights))])
    except (KeyError, ValueError) as error:
        raise checkpoints.CheckpointError(f"{checkpoint} does not fit: {error}") from error

    seed = derive_seed(config.seed if config.evaluation_seed is None else config.evaluation_seed, "fresh")
    classifier = prepared.features.classifier(prepared.images.shape[1:])
    dtype = networks.value_dtype(config.precision)
    run = tf.function(generator, input_signature=[tf.TensorSpec(generator.inputs[0].shape, dtype)])

    def pixels(count: int, purpose: Purpose) -> Iterator[np.ndarray]:
        batches = networks.sample(
            run,
            count=count,
            latent_size=config.latent_size,
            dtype=dtype,
            seed=seed,
            purpose=purpose,
        )
        return map(networks.to_pixels, batches)

    features = [
        classifier.describe(images).features for images in pixels(config.fid_samples, Purpose.FID_NOISE)
    ]
    samples = np.concatenate(list(pixels(SAMPLES, Purpose.GRID_NOISE)))
    arrays.write(folder / "samples.png", pictures.grid(samples))
    arrays.save(folder / "generator.npz", weights)
    fid = scores.fid(np.concatenate(features), against=prepared.reference)
    return {"fid_fresh": fid, **recognised(classifier.describe(samples).probabilities)}


def recognised(probabilities: np.ndarray) -> dict[str, float]:
    """`sure_samples` and `classes_seen`, as in `score_winner`, of class probabilities [n, classes]."""
    sure = probabilities[probabilities.max(axis=1) > SURE]
    return {"sure_samples": len(sure), "classes_seen": len(set(sure.argmax(axis=1).tolist()))}
