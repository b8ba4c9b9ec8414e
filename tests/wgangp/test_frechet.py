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

    np.testing.assert_allclose(frechet.fid(a, against=frechet.gaussian(b)), expected, rtol=1e-9)


def test_bias_of_gaussian_samples_is_about_1104_over_n_at_64_dimensions() -> None:
    exact = frechet.Gaussian(mean=np.zeros(64), covariance=np.eye(64), factor=np.eye(64), count=0)
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


def test_the_standard_error_is_that_of_fresh_draws_of_a_bootstrap_and_of_split_halves() -> None:
    random = np.random.default_rng(0)
    mix = random.normal(size=(16, 16))
    against = frechet.gaussian(random.normal(size=(4000, 16)) @ mix)
    sets = [0.9 * random.normal(size=(1000, 16)) @ mix + 0.3 for _ in range(80)]

    found = [frechet.fid_with_error(one, against=against) for one in sets]
    assert [fid for fid, _ in found] == [pytest.approx(frechet.fid(one, against=against)) for one in sets]
    error = np.mean([error for _, error in found])
    fresh = np.std([fid for fid, _ in found], ddof=1)
    one = sets[0]
    resampled = [frechet.fid(one[random.integers(1000, size=1000)], against=against) for _ in range(200)]
    halves = []
    for _ in range(100):  # two halves differ by 2 errors: each has sqrt(2) of it, their difference 2
        rows = random.permutation(1000)
        a, b = (frechet.fid(one[part], against=against) for part in (rows[:500], rows[500:]))
        halves.append((a - b) / 2)
    assert error == pytest.approx(fresh, rel=0.25)  # 80 draws know it to 8 %
    assert found[0][1] == pytest.approx(np.std(resampled, ddof=1), rel=0.2)
    assert found[0][1] == pytest.approx(np.sqrt(np.mean(np.square(halves))), rel=0.3)


def skewed(random: np.random.Generator, count: int) -> np.ndarray:
    """Features as after a ReLU: not normal, correlated, and not those of the reference."""
    mixing = np.random.default_rng(7).normal(size=(8, 8))
    return np.maximum(random.normal(size=(count, 8)) @ mixing + 0.5, 0)


def test_the_error_is_that_of_fresh_draws_of_features_after_a_relu() -> None:
    """The deviation of 300 scores is itself known to 4 %."""
    reference = frechet.gaussian(draw(3000, 8, seed=5))
    random = np.random.default_rng(1)
    found = np.array([frechet.fid_with_error(skewed(random, 500), against=reference) for _ in range(300)])

    assert 0.88 < found[:, 1].mean() / found[:, 0].std(ddof=1) < 1.12
    assert found[:, 1].std() < 0.15 * found[:, 1].mean()


def test_the_error_of_a_mean_alone_is_known_on_paper() -> None:
    """In one dimension with equal variances FID is (m2 - m1)^2 to first order: 2 |m2 - m1| s / sqrt N."""
    features = np.random.default_rng(0).normal(size=(400, 1))
    features = (features - features.mean()) / features.std(ddof=1)
    shifted = features + 10
    against = frechet.Gaussian(mean=np.zeros(1), covariance=np.eye(1), factor=np.eye(1), count=0)

    value, error = frechet.fid_with_error(shifted, against=against)

    assert value == pytest.approx(100)
    assert error == pytest.approx(2 * 10 / np.sqrt(400))


def test_the_extrapolation_takes_the_bias_away() -> None:
    exact = frechet.Gaussian(mean=np.zeros(64), covariance=np.eye(64), factor=np.eye(64), count=0)
    random = np.random.default_rng(0)
    sets = [random.normal(size=(4000, 64)) for _ in range(10)]

    biased = np.mean([frechet.fid(one, against=exact) for one in sets])
    limits = [frechet.fid_at_infinity(one, against=exact) for one in sets]
    assert biased == pytest.approx(1104 / 4000, rel=0.03)
    assert abs(np.mean(limits)) < 0.04 * biased + 3 * np.std(limits) / np.sqrt(10)
    assert abs(np.mean(limits)) < 0.1 * biased


def test_the_extrapolation_is_a_line_in_one_over_n_read_at_zero(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(frechet, "fid", lambda features, against: 7 + 300 / len(features))

    found = frechet.fid_at_infinity(np.zeros((800, 2)), against=frechet.gaussian(draw(9, 2)))
    assert found == pytest.approx(7)


def test_at_infinity_every_sample_counts_at_every_size() -> None:
    """The line is the least squares one through the means of whole, halves and quarters."""
    features = draw(200, 4) * np.linspace(1, 3, 200)[:, None]
    against = frechet.gaussian(draw(300, 4, seed=1))
    means = [
        np.mean([frechet.fid(part, against=against) for part in np.split(features, parts)])
        for parts in (1, 2, 4)
    ]

    expected = np.polyfit([1 / 200, 1 / 100, 1 / 50], means, 1)[1]
    assert frechet.fid_at_infinity(features, against=against) == pytest.approx(expected)


@pytest.mark.parametrize(("spread", "expected"), [(1.0, 1.0), (0.5, 0.25), (0.0, 0.0)])
def test_diversity_is_the_share_of_the_reference_variance(spread: float, expected: float) -> None:
    features = draw(500, 6)

    found = frechet.diversity(spread * features + 3, against=frechet.gaussian(features))
    assert found == pytest.approx(expected, abs=1e-12)


ONE_IMAGE = np.tile(draw(1, 16), (200, 1))
BLACK = np.zeros((200, 16))


@pytest.mark.parametrize(
    ("fake", "real"),
    [
        pytest.param(draw(200, 16), draw(200, 16), id="identical sets"),
        pytest.param(ONE_IMAGE, draw(300, 16), id="one image repeated"),
        pytest.param(draw(200, 16), np.tile(draw(1, 16), (300, 1)), id="one real image repeated"),
        pytest.param(ONE_IMAGE, ONE_IMAGE, id="the same image everywhere"),
        pytest.param(BLACK, draw(300, 16), id="all black"),
        pytest.param(BLACK, BLACK, id="black against black"),
        pytest.param(5000 * draw(200, 16), 5000 * draw(300, 16, seed=1), id="features times 5,000"),
        pytest.param(draw(2, 16), draw(300, 16), id="two samples"),
        pytest.param(draw(200, 16), draw(2, 16), id="two real samples"),
        pytest.param(draw(40, 64), draw(50, 64, seed=1), id="fewer samples than dimensions"),
        pytest.param(draw(200, 1), draw(300, 1, seed=1), id="one dimension"),
        pytest.param(1e-9 * draw(200, 16), 1e-9 * draw(300, 16), id="features times 1e-9"),
    ],
)
@pytest.mark.filterwarnings("error")
def test_no_set_of_images_makes_fid_negative_complex_or_nan(fake: np.ndarray, real: np.ndarray) -> None:
    against = frechet.gaussian(real)
    fid, (again, error) = frechet.fid(fake, against=against), frechet.fid_with_error(fake, against=against)

    assert isinstance(fid, float) and isinstance(error, float)
    assert 0 <= fid < np.inf and again == pytest.approx(fid, rel=1e-6, abs=1e-9)
    assert 0 <= error < np.inf
    difference = np.square(fake.mean(axis=0) - real.mean(axis=0)).sum()
    assert fid >= difference * (1 - 1e-9) - 1e-9  # the covariances' part is never below 0


@pytest.mark.parametrize(
    "features", [draw(1, 4), draw(5, 4)[:0], draw(5, 3), np.zeros(4), np.zeros((2, 2, 4))]
)
@pytest.mark.filterwarnings("error")
def test_what_cannot_be_scored_is_said(features: np.ndarray) -> None:
    with pytest.raises(
        ValueError, match=r"^features must (be \[N, D\] with N at least 2|have the reference's 4)"
    ):
        frechet.fid(features, against=frechet.gaussian(draw(50, 4)))


@pytest.mark.parametrize("features", [draw(1, 4), np.full((9, 4), np.nan)])
@pytest.mark.filterwarnings("error")
def test_a_reference_must_be_finite_and_of_two_images(features: np.ndarray) -> None:
    with pytest.raises(ValueError, match="must be"):
        frechet.gaussian(features)
