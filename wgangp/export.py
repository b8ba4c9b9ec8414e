"""A generator as a Keras model in one file, which loads wherever Keras does, without this repository."""

import os
from pathlib import Path

import keras
import numpy as np
import tensorflow as tf

from wgangp.errors import UserError
from wgangp.wording import error_words

FILE = "generator.keras"
_TRIED = 8
"""Images by which it is checked that what was written draws what the generator draws."""


def save(generator: keras.Model, path: Path) -> str:
    """Write it, whole or not at all; why it cannot be, in words, if it would not load back; else "".

    A network of the user's own may hold layers that Keras cannot write down.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    aside = path.with_name(f".{os.getpid()}.{path.name}")  # Keras goes by the name's end
    noise = tf.random.stateless_normal((_TRIED, generator.inputs[0].shape[1]), (0, 0))
    noise = tf.cast(noise, generator.inputs[0].dtype)
    try:
        generator.save(aside)
        drawn = keras.models.load_model(aside, compile=False)(noise)
        if not np.allclose(drawn, generator(noise), atol=1e-3):
            return "read back it draws other images"
        aside.replace(path)
        return ""
    except OSError:
        raise
    # Whatever Keras or the user's layers raise: it is said, and scores do not depend on it.
    except Exception as error:
        return _in_short(error)
    finally:
        aside.unlink(missing_ok=True)


def load(path: Path) -> keras.Model:
    """What `save` wrote, in a file or as `generator.keras` in a folder.

    Raises:
        UserError: there is none, or it cannot be read.
    """
    file = path / FILE if path.is_dir() else path
    if not file.exists():
        raise UserError(
            f"{path}: must be, or hold, a {FILE}, such as runs/gp-0001/best of a sweep or a run's folder of"
            " wgangp.train; found none."
        )
    try:
        return keras.models.load_model(file, compile=False)
    except Exception as error:
        raise UserError(f"{file}: is no generator that can be loaded: {_in_short(error)}") from error


def _in_short(error: Exception) -> str:
    """Keras puts whole configurations around the error it means."""
    words = error_words(error).rpartition("Exception encountered: ")[2]
    return words.partition(" Full object config")[0][:300]
