import dataclasses
import re

import numpy as np
import pytest
import tensorflow as tf

from wgangp import layers, losses, networks
from wgangp.errors import UserError
from wgangp.layers import NetworkSettings, PiecewiseLinear
from wgangp.randomness import Purpose


@pytest.mark.parametrize(
    ("precision", "dtype"), [("float32", "float32"), ("float64", "float64"), ("bfloat16", "float32")]
)
@pytest.mark.parametrize(
    ("architecture", "size"),
    [("dcgan", size) for size in (8, 14, 16, 28, 32, 56, 64, 112, 128)] + [("resnet", 32), ("resnet", 64)],
)
@pytest.mark.parametrize(
    "norms", [{}, {"generator_norm": "batch", "critic_norm": "layer"}], ids=["", "norms"]
)
def test_generator_draws_images_and_critic_values_them(
    architecture: str, size: int, norms: dict, precision: str, dtype: str
) -> None:
    settings = NetworkSettings(
        image_shape=(size, size, 3), width=2, latent_size=5, precision=precision, **norms
    )
    generator = networks.build_generator(architecture, settings)
    critic = networks.build_critic(architecture, settings)
    for network in (generator, critic):
        networks.initialise(network, seed=0)
    assert settings.dtype == dtype

    images = generator(tf.random.stateless_normal([2, 5], [0, 1], dtype=dtype))
    values = critic(images)

    assert (images.shape, images.dtype) == ((2, size, size, 3), dtype)
    assert (values.shape, values.dtype) == ((2, 1), dtype)
    assert 0 < np.abs(images).max() <= 1
    assert values[0] != values[1]


@pytest.mark.parametrize(
    ("size", "smallest", "generator_widths", "critic_widths"),
    [
        (8, 2, [6, 3], [3, 6]),
        (14, 7, [3], [3]),
        (16, 4, [6, 3], [3, 6]),
        (28, 7, [6, 3], [3, 6]),
        (32, 4, [12, 6, 3], [3, 6, 12]),
        (56, 7, [12, 6, 3], [3, 6, 12]),
        (64, 4, [24, 12, 6, 3], [3, 6, 12, 24]),
        (112, 7, [24, 12, 6, 3], [3, 6, 12, 24]),
        (128, 4, [48, 24, 12, 6, 3], [3, 6, 12, 24, 48]),
    ],
)
def test_dcgan_halves_the_side_and_doubles_the_channels(
    size: int, smallest: int, generator_widths: list[int], critic_widths: list[int]
) -> None:
    settings = NetworkSettings(image_shape=(size, size, 1), width=3, latent_size=5)
    generator, critic = (
        build("dcgan", settings) for build in (networks.build_generator, networks.build_critic)
    )

    first, *kernels = generator.weights[::2]
    assert first.shape == (5, smallest * smallest * generator_widths[0])
    assert [kernel.shape[3] for kernel in kernels] == generator_widths
    *kernels, last = critic.weights[::2]
    assert [kernel.shape[3] for kernel in kernels] == critic_widths
    assert last.shape == (smallest * smallest * critic_widths[-1], 1)


def test_resnet_has_as_many_weights_as_that_of_the_paper() -> None:
    """Counted by hand from the appendix: 32x32, 128 filters; of a convolution k k in out + out.

    Without the biases that batch normalisation would take away, 3 in each block of the generator.
    """

    def convolution(kernel: int, inputs: int, outputs: int) -> int:
        return kernel * kernel * inputs * outputs + outputs

    def block(inputs: int, outputs: int) -> int:
        return convolution(3, inputs, outputs) + convolution(3, outputs, outputs)

    settings = NetworkSettings(image_shape=(32, 32, 3), width=128, latent_size=128, generator_norm="batch")
    generator = networks.build_generator("resnet", settings)
    critic = networks.build_critic("resnet", settings)

    norms, beside = 7 * 2 * 128, convolution(1, 128, 128)
    blocks = 3 * (block(128, 128) + beside - 3 * 128)
    of_generator = (128 + 1) * 4 * 4 * 128 + blocks + norms + convolution(3, 128, 3)
    assert sum(np.prod(weight.shape) for weight in generator.trainable_weights) == of_generator
    of_critic = block(3, 128) + convolution(1, 3, 128) + 3 * block(128, 128) + beside + 128 + 1
    assert sum(np.prod(weight.shape) for weight in critic.trainable_weights) == of_critic


def test_resnet_for_64_grows_from_8_widths_to_1() -> None:
    settings = NetworkSettings(image_shape=(64, 64, 3), width=2, critic_norm="layer")
    kernels = [w.shape for w in networks.build_generator("resnet", settings).weights if len(w.shape) == 4]
    assert sorted((k[0], k[2], k[3]) for k in kernels) == sorted(
        [
            *((1, 16, 16), (3, 16, 16), (3, 16, 16)),
            *((1, 16, 8), (3, 16, 8), (3, 8, 8)),
            *((1, 8, 4), (3, 8, 4), (3, 4, 4)),
            *((1, 4, 2), (3, 4, 2), (3, 2, 2)),
            (3, 2, 3),
        ]
    )
    critic = networks.build_critic("resnet", settings)
    kernels = [w.shape for w in critic.weights if len(w.shape) == 4]
    assert sorted((k[0], k[2], k[3]) for k in kernels) == sorted(
        [
            (3, 3, 2),
            *((1, 2, 4), (3, 2, 2), (3, 2, 4)),
            *((1, 4, 8), (3, 4, 4), (3, 4, 8)),
            *((1, 8, 16), (3, 8, 8), (3, 8, 16)),
            *((1, 16, 16), (3, 16, 16), (3, 16, 16)),
        ]
    )
    assert sorted(w.shape[0] for w in critic.weights if w.name == "gamma") == [2, 2, 4, 4, 8, 8, 16, 16]


def test_layer_norm_is_of_each_image_by_itself_over_all_of_it() -> None:
    settings = NetworkSettings(image_shape=(4, 4, 3), critic_norm="layer", precision="float64")
    x = np.random.default_rng(0).normal(3, 2, (5, 4, 4, 3))
    normed = layers.critic_norm(tf.constant(x), settings).numpy()

    expected = (x - x.mean((1, 2, 3), keepdims=True)) / np.sqrt(x.var((1, 2, 3), keepdims=True) + 1e-3)
    np.testing.assert_allclose(normed, expected, rtol=1e-12)


@pytest.mark.parametrize("activation", ["relu", "leaky_relu", "elu", "silu", "tanh"])
@pytest.mark.parametrize("architecture", ["dcgan", "resnet"])
def test_the_activation_is_that_of_hidden_layers_of_both_and_has_second_derivatives(
    architecture: str, activation: str
) -> None:
    settings = NetworkSettings(image_shape=(32, 32, 1), width=2, latent_size=5, activation=activation)
    other = dataclasses.replace(settings, activation="relu" if activation == "elu" else "elu")
    z = tf.random.stateless_normal([3, 5], [0, 1])
    x = tf.random.stateless_uniform([3, 32, 32, 1], [0, 1], -1, 1)
    drawn, valued = [], []
    for each in (settings, other):
        generator, critic = (
            build(architecture, each) for build in (networks.build_generator, networks.build_critic)
        )
        for network in (generator, critic):
            networks.initialise(network, seed=1)
        drawn.append(generator(z).numpy())
        valued.append(critic(x).numpy())
        with tf.GradientTape() as tape:
            penalty = tf.reduce_mean(losses.penalties("two_sided", losses.gradient_norms(critic, x)))
        slope = tape.gradient(penalty, critic.trainable_variables[0])
        assert np.isfinite(slope).all() and np.abs(slope).max() > 0
    assert np.abs(drawn[0] - drawn[1]).max() > 1e-4
    assert np.abs(valued[0] - valued[1]).max() > 1e-4


@pytest.mark.parametrize(
    ("architecture", "image_shape", "message"),
    [
        ("dcgan", (30, 30, 1), "sides of 8, 14, 16, 28, 32, 56, 64, 112 or 128, got 30x30; set image_size"),
        ("dcgan", (28, 32, 1), "got 28x32"),
        ("dcgan", (2,), "got vectors"),
        ("resnet", (28, 28, 1), "sides of 32 or 64, got 28x28; set image_size, or take dcgan"),
        ("resnet", (7,), "got vectors"),
    ],
)
def test_a_size_that_does_not_fit_is_refused(architecture: str, image_shape: tuple, message: str) -> None:
    settings = NetworkSettings(image_shape=image_shape)
    for refuse in (
        lambda: networks.check_shape(architecture, image_shape),
        lambda: networks.build_critic(architecture, settings),
        lambda: networks.build_generator(architecture, settings),
    ):
        with pytest.raises(UserError, match=re.escape(message)):
            refuse()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_leaky_relu_and_its_derivatives(dtype: str) -> None:
    x = tf.constant([-2.0, -0.5, 0.0, 3.0], dtype)
    with tf.GradientTape() as outer, tf.GradientTape() as inner:
        outer.watch(x)
        inner.watch(x)
        y = PiecewiseLinear(0.2, dtype=dtype)(x)
        first = inner.gradient(y, x)

    slope = np.array([0.2, 0.2, 0.2, 1.0], dtype)
    np.testing.assert_array_equal(y, x.numpy() * slope)
    np.testing.assert_array_equal(first, slope)
    assert outer.gradient(first, x) is None  # so no work is done for it


def test_initial_weights_follow_the_seed_alone() -> None:
    def weights(seed: int) -> list[np.ndarray]:
        critic = networks.build_critic(
            "dcgan", NetworkSettings(image_shape=(28, 28, 1), width=16, precision="float32")
        )
        critic.set_weights([np.full(w.shape, 7) for w in critic.weights])
        networks.initialise(critic, seed=seed)
        return critic.get_weights()

    first, again, other = weights(1), weights(1), weights(2)

    for place, (a, b, c) in enumerate(zip(first, again, other, strict=True)):
        np.testing.assert_array_equal(a, b)
        if a.ndim == 1:
            assert not a.any()
            continue
        assert (a != c).mean() > 0.99, place
        receptive = a.size // (a.shape[-1] * a.shape[-2])
        limit = np.sqrt(6 / (receptive * (a.shape[-1] + a.shape[-2])))  # Glorot and Bengio 2010
        assert 0.9 * limit < np.abs(a).max() <= limit * (1 + 1e-6)


def test_fewer_samples_are_the_first_of_more() -> None:
    def sample(count: int) -> np.ndarray:
        batches = networks.sample(
            lambda z: z, count=count, latent_size=3, dtype="float32", seed=1, purpose=Purpose.FID_NOISE
        )
        return np.concatenate(list(batches))

    many = sample(networks.EVALUATION_BATCH + 5)

    assert len(np.unique(many, axis=0)) == networks.EVALUATION_BATCH + 5
    np.testing.assert_array_equal(sample(7), many[:7])


def test_pixels_survive_the_way_to_unit_range_and_back() -> None:
    pixels = np.arange(256, dtype=np.uint8).reshape(1, 16, 16, 1)
    unit = networks.from_data(tf.constant(pixels), "float32").numpy()

    assert (unit.min(), unit.max()) == (-1, 1)
    np.testing.assert_array_equal(networks.to_data(unit), pixels)


def test_values_outside_the_range_are_clipped_and_nan_is_black() -> None:
    found = networks.to_data(np.array([-3.0, 3.0, np.nan, np.inf, -np.inf, 0.003]))

    assert found.tolist() == [0, 255, 0, 255, 0, 128]


def test_vectors_stay_as_they_are_within_the_range() -> None:
    vectors = np.array([[0.25, -1.0], [1.5, np.nan]])

    assert networks.from_data(tf.constant(vectors[:1], tf.float32), "float64").numpy().tolist() == [
        [0.25, -1]
    ]
    assert networks.to_data(vectors).tolist() == [[0.25, -1], [1, 0]]


def test_gains_begin_at_one_and_statistics_at_those_of_normal_numbers() -> None:
    settings = NetworkSettings(image_shape=(16, 16, 1), width=2, generator_norm="batch")
    generator = networks.build_generator("dcgan", settings)
    generator.set_weights([np.full(w.shape, 7) for w in generator.weights])
    networks.initialise(generator, seed=0)

    found = {variable.name: variable.numpy() for variable in generator.weights if len(variable.shape) == 1}
    ones, zeros = ("gamma", "moving_variance"), ("beta", "moving_mean", "bias")
    assert found.keys() == {*ones, *zeros}
    assert all((found[name] == 1).all() for name in ones) and not any(found[name].any() for name in zeros)
