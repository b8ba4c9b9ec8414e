import numpy as np
import pytest
import tensorflow as tf

from wgangp import networks
from wgangp.errors import UserError
from wgangp.randomness import Purpose


@pytest.mark.parametrize(
    ("precision", "dtype"), [("float32", "float32"), ("float64", "float64"), ("bfloat16", "float32")]
)
@pytest.mark.parametrize("image_shape", [(8, 8, 1), (28, 28, 1), (32, 32, 3)])
def test_generator_draws_images_and_critic_values_them(
    image_shape: tuple, precision: str, dtype: str
) -> None:
    generator = networks.build_generator(
        "dcgan", image_shape=image_shape, width=3, latent_size=5, precision=precision
    )
    critic = networks.build_critic("dcgan", image_shape=image_shape, width=3, precision=precision)
    assert networks.value_dtype(precision) == dtype

    images = generator(tf.ones([2, 5], dtype))
    values = critic(images)

    assert (images.shape, images.dtype) == ((2, *image_shape), dtype)
    assert (values.shape, values.dtype) == ((2, 1), dtype)
    assert np.abs(images).max() <= 1
    quarter = image_shape[0] // 4
    assert generator.weights[0].shape == (5, quarter * quarter * 6)
    assert [tuple(w.shape) for w in critic.weights[::2]] == [
        (4, 4, image_shape[2], 3),
        (4, 4, 3, 6),
        (quarter * quarter * 6, 1),
    ]


@pytest.mark.parametrize("image_shape", [(30, 30, 1), (28, 32, 1)])
def test_a_size_that_does_not_fit_is_refused(image_shape: tuple) -> None:
    with pytest.raises(UserError, match="square images, sides divisible by 4"):
        networks.build_critic("dcgan", image_shape=image_shape, width=3, precision="float32")


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_leaky_relu_and_its_derivatives(dtype: str) -> None:
    x = tf.constant([-2.0, -0.5, 0.0, 3.0], dtype)
    with tf.GradientTape() as outer, tf.GradientTape() as inner:
        outer.watch(x)
        inner.watch(x)
        y = networks.LeakyReLU(dtype=dtype)(x)
        first = inner.gradient(y, x)

    slope = np.array([0.2, 0.2, 0.2, 1.0], dtype)
    np.testing.assert_array_equal(y, x.numpy() * slope)
    np.testing.assert_array_equal(first, slope)
    assert outer.gradient(first, x) is None  # so no work is done for it


def test_initial_weights_follow_the_seed_alone() -> None:
    def weights(seed: int) -> list[np.ndarray]:
        critic = networks.build_critic("dcgan", image_shape=(28, 28, 1), width=16, precision="float32")
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
    unit = networks.from_pixels(tf.constant(pixels), "float32").numpy()

    assert (unit.min(), unit.max()) == (-1, 1)
    np.testing.assert_array_equal(networks.to_pixels(unit), pixels)


def test_values_outside_the_range_are_clipped_and_nan_is_black() -> None:
    found = networks.to_pixels(np.array([-3.0, 3.0, np.nan, np.inf, -np.inf, 0.003]))

    assert found.tolist() == [0, 255, 0, 255, 0, 128]
