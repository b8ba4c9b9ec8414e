"""The winner's generator as a model of MLflow's, made in a worker: the driver holds no TensorFlow."""

import logging
import shutil
from pathlib import Path

import numpy as np

EXAMPLES = 4
"""Rows of noise that lie beside the model as an example of what goes in."""


def package(generator: Path, folder: Path, *, seed: int) -> None:
    """Make `folder` anew: what MLflow loads, noise [n, latent_size] -> images [n, H, W, C] in -1..1.

    Args:
        generator: a Keras model in a file.
        folder: is there afterwards with signature and example, whole or not at all.
        seed: of the example's noise, which is normal.
    """
    import keras
    import mlflow.tensorflow
    import tensorflow
    from mlflow.models import ModelSignature
    from mlflow.types import Schema, TensorSpec

    for name in ("mlflow", "tensorflow"):
        logging.getLogger(name).setLevel(logging.ERROR)
    model = keras.models.load_model(generator, compile=False)
    noise, images = (np.dtype(str(end.dtype)) for end in (model.inputs[0], model.outputs[0]))
    aside = folder.with_name(f".{folder.name}.new")
    shutil.rmtree(aside, ignore_errors=True)
    example = np.random.default_rng(seed).normal(size=(EXAMPLES, model.inputs[0].shape[1]))
    mlflow.tensorflow.save_model(
        model,
        str(aside),
        signature=ModelSignature(
            Schema([TensorSpec(noise, (-1, *model.inputs[0].shape[1:]))]),
            Schema([TensorSpec(images, (-1, *model.outputs[0].shape[1:]))]),
        ),
        input_example=example.astype(noise),
        # Said, for else MLflow would start a process to find them out.
        pip_requirements=[f"keras=={keras.__version__}", f"tensorflow=={tensorflow.__version__}"],
    )
    shutil.rmtree(folder, ignore_errors=True)
    aside.replace(folder)
