"""FID against values known on paper and against the textbook form with a matrix square root."""

import numpy as np
import pytest
import scipy.linalg

from wgangp import frechet


def draw(count: int, dimensions: int, *, seed: int = 0) -> np.ndarray:
    random = np.random.default_rng(seed)
    return random.normal(size=(count, dimensions)) @ random.normal(size=(dimensions, dimensions)) + 1


@pytest.mark.parametrize(("count", "dimensions"), [(500, 16), (10, 32), (2, 8)])
def test_a_set_is_at_distance_zero_from_itself(count: int, dimensions: int) -> None:
    features = draw(count, dimensions)

    assert 0 <= frechet.fid(features, against=frechet.gaussian(features)) < 1e-5


def test_a_shifted_set_is_at_the_squared_length_of_the_shift() -> None:
    features = draw(300, 5)
    shift = np.array([1.0, -2, 0, 0.5, 3])

    found = frechet.fid(features + shift, against=frechet.gaussian(features))
    np.testing.assert_allclose(found, (shift**2).sum(), rtol=1e-9)


def test_a_doubled_set_is_at_the_squared_mean_plus_the_variance() -> None:
    features = draw(300, 5)
    expected = (features.mean(0) ** 2).sum() + np.cov(features, rowvar=False).trace()

    np.testing.assert_allclose(frechet.fid(2 * features, against=frechet.gaussian(features)), expected)


def test_fid_is_the_textbook_form() -> None:
    a, b = draw(400, 12), draw(300, 12, seed=1)
    c1, c2 = np.cov(a, rowvar=False), np.cov(b, rowvar=False)
    root = scipy.linalg.sqrtm(c1 @ c2).real
    expected = ((a.mean(0) - b.mean(0)) ** 2).sum() + np.trace(c1 + c2 - 2 * root)

    np.testing.assert_allclose(frechet.fid(a, against=frechet.gaussian(b)), expected, rtol=1e-9)


def test_fewer_samples_than_dimensions_give_the_exact_distance() -> None:
    a, b = draw(20, 64), draw(30, 64, seed=1)
    centred_a, centred_b = a - a.mean(0), b - b.mean(0)
    nuclear_norm = np.linalg.norm(centred_a @ centred_b.T, "nuc") / np.sqrt(19 * 29)
    variances = (centred_a**2).sum() / 19 + (centred_b**2).sum() / 29
    expected = ((a.mean(0) - b.mean(0)) ** 2).sum() + variances - 2 * nuclear_norm

    np.testing.assert_allclose(frechet.fid(a, against=frechet.gaussian(b)), expected, rtol=1e-6)


def test_bias_of_gaussian_samples_is_about_1104_over_n_at_64_dimensions() -> None:
    exact = frechet.Gaussian(mean=np.zeros(64), covariance=np.eye(64), root=np.eye(64), count=0)
    random = np.random.default_rng(0)

    found = [frechet.fid(random.normal(size=(2000, 64)), against=exact) for _ in range(10)]

    assert np.mean(found) == pytest.approx(1104 / 2000, rel=0.03)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_a_feature_that_is_not_finite_makes_the_score_nan(value: float) -> None:
    features = draw(50, 4)
    reference = frechet.gaussian(features)
    features = features.copy()
    features[3, 2] = value

    assert np.isnan(frechet.fid(features, against=reference))


def test_float32_features_are_scored_in_float64() -> None:
    features = draw(100, 8).astype(np.float32)
    reference = frechet.gaussian(draw(100, 8, seed=1))

    assert frechet.fid(features, against=reference) == frechet.fid(
        features.astype(np.float64), against=reference
    )
