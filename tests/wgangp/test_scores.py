import numpy as np
import pytest

from wgangp import frechet, scores
from wgangp.scores import Reference, Scorer, inception_score, kid


def test_kid_is_the_mean_over_all_pairs() -> None:
    random = np.random.default_rng(0)
    fake, real = random.normal(size=(7, 3)), random.normal(size=(5, 3)) + 1

    def mean(a: np.ndarray, b: np.ndarray) -> float:
        same = a is b
        return float(
            np.mean(
                [(x @ y / 3 + 1) ** 3 for i, x in enumerate(a) for j, y in enumerate(b) if not same or i != j]
            )
        )

    found, _ = kid(fake, real)
    assert found == pytest.approx(mean(fake, fake) + mean(real, real) - 2 * mean(fake, real))


def test_kid_of_the_same_distribution_is_zero_on_average_and_negative_at_times() -> None:
    random = np.random.default_rng(0)
    found = np.array([kid(*random.normal(size=(2, 100, 8)))[0] for _ in range(200)])

    assert abs(found.mean()) < 3 * found.std() / np.sqrt(200)
    assert (found < 0).any() and (found > 0).any()


def test_the_error_of_kid_is_that_of_fresh_draws() -> None:
    random = np.random.default_rng(0)
    real = random.normal(size=(400, 8))
    found = np.array([kid(0.7 * random.normal(size=(300, 8)) + 0.3, real) for _ in range(100)])

    assert found[:, 1].mean() == pytest.approx(found[:, 0].std(ddof=1), rel=0.25)


def test_the_error_of_kid_is_that_of_leaving_out_one_image_after_the_other() -> None:
    random = np.random.default_rng(0)
    x, y = random.normal(size=(9, 4)) + 0.5, random.normal(size=(7, 4))
    without = [kid(np.delete(x, i, axis=0), y)[0] for i in range(9)]

    assert kid(x, y)[1] == pytest.approx(np.sqrt(8 / 9 * np.square(without - np.mean(without)).sum()))


def test_kid_of_what_is_not_finite_or_too_few() -> None:
    assert np.isnan(kid(np.full((9, 2), np.inf), np.zeros((9, 2)))).all()
    with pytest.raises(ValueError, match="3 generated and 2 real images, got 2 and 9"):
        kid(np.zeros((2, 2)), np.zeros((9, 2)))


@pytest.mark.parametrize(
    ("probabilities", "expected"),
    [
        (np.full((8, 4), 0.25), 1),  # unsure of all
        (np.tile([1.0, 0, 0, 0], (8, 1)), 1),  # one class only
        (np.tile(np.eye(4), (3, 1)), 4),  # sure of all, each as often
        (np.eye(4)[[0, 0, 0, 1]], np.exp(0.75 * np.log(4 / 3) + 0.25 * np.log(4))),
    ],
)
@pytest.mark.filterwarnings("error")
def test_the_inception_score_counts_the_classes_it_is_sure_of(
    probabilities: np.ndarray, expected: float
) -> None:
    assert inception_score(probabilities) == pytest.approx(expected)


@pytest.fixture(scope="module")
def reference() -> Reference:
    features = np.random.default_rng(0).normal(size=(60, 4)).astype(np.float32)
    return Reference(frechet.gaussian(features), features)


ALWAYS = {"fid", "fid_standard_error", "diversity"}


@pytest.mark.parametrize(
    ("names", "more"),
    [
        (["fid"], set()),
        (["fid", "kid"], {"kid", "kid_standard_error"}),
        (["recall", "fid"], {"recall"}),
        (["fid", "density", "coverage"], {"density", "coverage"}),
        (["fid", "inception_score"], {"inception_score"}),
    ],
)
def test_what_was_asked_for_is_scored_and_nothing_else(
    reference: Reference, names: list[str], more: set[str]
) -> None:
    fake = np.random.default_rng(1).normal(size=(50, 4))

    found = Scorer(reference, most=40).scores(fake, np.full((50, 2), 0.5), names=names)
    assert set(found) == ALWAYS | more
    assert np.isfinite(list(found.values())).all()


@pytest.mark.parametrize(("most", "fakes", "compared"), [(20, 50, 20), (1000, 50, 50), (1000, 90, 60)])
def test_as_many_real_as_generated_images_are_compared_one_by_one(
    reference: Reference, most: int, fakes: int, compared: int
) -> None:
    fake = np.random.default_rng(1).normal(size=(fakes, 4))

    found = Scorer(reference, most=most).scores(fake, np.zeros((fakes, 2)), names=["fid", "kid", "recall"])
    assert found["kid"] == kid(fake[:compared], reference.features[:compared])[0]
    counted = scores.Neighbourhood(reference.features[:compared]).scores(fake[:compared])
    assert found["recall"] == counted["recall"]
    assert found["fid"] == pytest.approx(frechet.fid(fake, against=reference.gaussian))


def test_an_image_that_is_not_finite_leaves_no_score(reference: Reference) -> None:
    fake = np.random.default_rng(1).normal(size=(50, 4))
    fake[-1, 2] = np.nan
    probabilities = np.full((50, 2), np.nan)

    names = ["fid", "kid", *scores.OF_NEIGHBOURS, "inception_score"]
    found = Scorer(reference, most=100).scores(fake, probabilities, names=names)
    assert np.isnan(list(found.values())).all() and len(found) == 10
