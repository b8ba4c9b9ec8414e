"""Networks of a user's own are refused for what would spoil the training, each with its reason."""

from pathlib import Path
from typing import Any

import pytest

from wgangp import network_check, networks, user_code
from wgangp.errors import UserError
from wgangp.layers import NetworkSettings

HEAD = """\
import math
import keras
import tensorflow as tf
from keras import layers


def inputs(s):
    return keras.Input((s.latent_size,), dtype=s.dtype), keras.Input(s.image_shape, dtype=s.dtype)


def generator(s, z, last="tanh", change=lambda h: h):
    h = layers.Dense(16, activation="relu")(z)
    images = layers.Dense(math.prod(s.image_shape), activation=last, dtype=s.dtype)(change(h))
    return keras.Model(z, layers.Reshape(s.image_shape, dtype=s.dtype)(images))


def critic(s, x, change=lambda h: h, activation="relu"):
    h = change(layers.Dense(16, activation=activation)(layers.Flatten()(x)))
    return keras.Model(x, layers.Dense(1, dtype=s.dtype)(h))


def build(s):
    z, x = inputs(s)
"""
IMAGES = NetworkSettings((8, 8, 1), width=4, latent_size=3)
VECTORS = NetworkSettings((2,), width=4, latent_size=3)


def checked(tmp_path: Path, body: str, settings: NetworkSettings = IMAGES) -> None:
    path = tmp_path / "my_networks.py"
    path.write_text(HEAD + "".join(f"    {line}\n" for line in body.splitlines()))
    network_check.check(user_code.read(f"{path}:build"), settings)


GOOD = {
    "dense": "return generator(s, z), critic(s, x)",
    "layer norm": "return generator(s, z), critic(s, x, layers.LayerNormalization())",
    "batch norm of the generator": "return generator(s, z, change=layers.BatchNormalization()), critic(s, x)",
    "a clipped end": 'return generator(s, z, last="hard_sigmoid"), critic(s, x)',
}


@pytest.mark.parametrize("precision", ["float32", "float64", "bfloat16"])
@pytest.mark.parametrize("shape", [(8, 8, 1), (6, 10, 3), (2,)])
def test_plain_networks_of_any_shape_and_precision_are_taken(
    tmp_path: Path, shape: tuple[int, ...], precision: str
) -> None:
    checked(tmp_path, GOOD["dense"], NetworkSettings(shape, 4, 3, precision=precision))


@pytest.mark.parametrize("body", GOOD.values(), ids=GOOD)
def test_norms_and_ends_that_do_no_harm_are_taken(tmp_path: Path, body: str) -> None:
    checked(tmp_path, body)


BAD: dict[str, tuple[str, str]] = {
    "no tanh": (
        "return generator(s, z, last=None), critic(s, x)",
        "the generator of build must give values in -1..1, got -",
    ),
    "0 to 255": (
        "return generator(s, z, last='relu'), critic(s, x)",
        "the generator of build must give values in -1..1, got 0..",
    ),
    "another shape": (
        "h = layers.Dense(49, activation='tanh')(z)\n"
        "return keras.Model(z, layers.Reshape((7, 7, 1))(h)), critic(s, x)",
        "the generator of build must give [4, 8, 8, 1] for a batch of 4, gives [4, 7, 7, 1].",
    ),
    "other noise": (
        "n = keras.Input((5,))\nreturn generator(s, n), critic(s, x)",
        "the generator of build must take [3] for each example, takes [5].",
    ),
    "probabilities of two": (
        "return generator(s, z), keras.Model(x, layers.Dense(2)(layers.Flatten()(x)))",
        "the critic of build must give [4, 1] for a batch of 4, gives [4, 2].",
    ),
    "a map of values": (
        "return generator(s, z), keras.Model(x, layers.Conv2D(1, 3)(x))",
        "the critic of build must give [4, 1] for a batch of 4, gives [4, 6, 6, 1].",
    ),
    "batch norm in the critic": (
        "return generator(s, z), critic(s, x, layers.BatchNormalization())",
        "the critic of build must value each example by itself, and another example in the batch changes its"
        " value; the penalty is of each example's own gradient: take layer normalisation",
    ),
    "minibatch statistics in the critic": (
        "return generator(s, z), critic(s, x, lambda h: h - keras.ops.mean(h, 0, keepdims=True))",
        "the critic of build must value each example by itself",
    ),
    "dropout": (
        "return generator(s, z), critic(s, x, layers.Dropout(0.5))",
        "the critic of build must give the same for the same input, and does not: leave out what draws",
    ),
    "spectral norm": (
        "h = layers.SpectralNormalization(layers.Dense(16))(layers.Flatten()(x))\n"
        "return generator(s, z), keras.Model(x, layers.Dense(1, dtype=s.dtype)(h))",
        "or changes with each call, such as dropout and spectral normalisation",
    ),
    "noise in the generator": (
        "return generator(s, z, change=layers.GaussianNoise(1.0)), critic(s, x)",
        "the generator of build must give the same for the same input",
    ),
    "a step": (
        "return generator(s, z), critic(s, x, lambda h: keras.ops.cast(h > 0, 'float32'))",
        "the critic of build has no derivative, which the penalty needs",
    ),
    "one of its own without a second derivative": (
        "@tf.custom_gradient\n"
        "def once(h):\n"
        "    @tf.custom_gradient\n"
        "    def slope(g):\n"
        "        def twice(*_):\n"
        "            raise LookupError('none was written')\n"
        "        return g, twice\n"
        "    return h, lambda g: slope(g)\n"
        "return generator(s, z), critic(s, x, layers.Lambda(once))",
        "the critic of build has no second derivative, which the penalty needs: LookupError: none was",
    ),
    "a line": (
        "return generator(s, z), keras.Model(x, keras.ops.sum(x, axis=(1, 2, 3))[:, None])",
        "the critic of build has no second derivative, which the penalty needs: its gradient depends on no",
    ),
    "an infinite slope": (
        "return generator(s, z), critic(s, x, lambda h: keras.ops.sqrt(keras.ops.relu(h)))",
        "which the penalty needs",
    ),
    "weights nobody uses": (
        "h = layers.Dense(3, name='idle')\nh.build((None, 3))\nm = critic(s, x)\nm.idle = h\n"
        "return generator(s, z), m",
        "the critic of build has weights that change nothing it gives: ",
    ),
    "no weights": (
        "h = keras.ops.sum(z, 1)[:, None, None, None]\n"
        "return keras.Model(z, keras.ops.tanh(keras.ops.ones((1, 8, 8, 1)) * h)), critic(s, x)",
        "the generator of build must have weights to train, and has none",
    ),
    "one network": ("return generator(s, z)", "must return (generator, critic), got <Functional"),
    "functions": ("return len, len", "must return a generator that is a Keras model with one input, built"),
    "nothing": ("pass", "must return (generator, critic), got nothing."),
    "a fault": ("return 1 / 0", "build failed: ZeroDivisionError: division by zero."),
    "other half": (
        "return generator(s, z), keras.Model(x, layers.Dense(1, dtype='float16')(layers.Flatten()(x)))",
        "the critic of build must give float32 with precision float32, got float16; leave dtype to Keras",
    ),
}


@pytest.mark.parametrize(("body", "said"), BAD.values(), ids=BAD)
def test_networks_that_cannot_be_trained_are_refused(tmp_path: Path, body: str, said: str) -> None:
    with pytest.raises(UserError) as caught:
        checked(tmp_path, body)

    (problem,) = caught.value.problems
    assert "my_networks.py" in problem and said in problem and "\n" not in problem


def test_faults_of_both_networks_are_told_at_once(tmp_path: Path) -> None:
    with pytest.raises(UserError) as caught:
        checked(tmp_path, "return generator(s, z, last=None), critic(s, x, layers.Dropout(0.5))", VECTORS)

    assert ["generator" in problem for problem in caught.value.problems] == [True, False]


def test_options_reach_the_users_function(tmp_path: Path) -> None:
    path = tmp_path / "my_networks.py"
    path.write_text(
        HEAD.replace("Dense(16", 'Dense(s.options["units"]') + "    return generator(s, z), critic(s, x)\n"
    )
    options: Any = {"units": 5}
    settings = NetworkSettings((2,), 4, 3, options=options)
    built, _ = networks.built_by_user(user_code.read(f"{path}:build"), settings)

    assert built.layers[1].units == 5
