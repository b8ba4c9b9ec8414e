"""Features for data without classes: random convolutions, and functions of a user's own."""

import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image, ImageFilter

from wgangp import frechet, random_features
from wgangp.config import TrainConfig
from wgangp.errors import UserError
from wgangp.prepared import Prepared, freeze, prepare
from wgangp.random_features import RandomFeatures

OWN = f"{Path(__file__).with_name('own_networks.py')}:build"
Prepare = Callable[..., Prepared]


@pytest.fixture
def prepare_own(tmp_path: Path) -> Prepare:
    """Prepares arrays of one's own, with networks of one's own."""

    def prepare_own(arrays: dict[str, Any], *, frozen: Path | None = None, **settings: Any) -> Prepared:
        np.savez(tmp_path / "my.npz", **arrays)
        config = TrainConfig(dataset=str(tmp_path / "my.npz"), architecture=OWN, width=2, **settings)
        return prepare(config, cache=tmp_path / "cache", frozen=frozen, say=lambda line: None)

    return prepare_own


def refused(function: Callable[..., Any], *arguments: Any, **named: Any) -> tuple[str, ...]:
    with pytest.raises(UserError) as caught:
        function(*arguments, **named)
    return caught.value.problems


@pytest.mark.parametrize("shape", [(8, 8, 1), (5, 7, 3), (32, 32, 3), (4, 4, 2), (1, 1, 1)])
def test_random_features_are_512_of_any_shape_and_follow_from_the_seed(shape: tuple[int, ...]) -> None:
    images = np.random.default_rng(0).integers(0, 256, (20, *shape), np.uint8)
    one, same, other = (
        RandomFeatures(random_features.weights(shape, seed=seed)).describe(images) for seed in (0, 0, 1)
    )

    assert one.probabilities is None
    assert (one.features.shape, one.features.dtype) == ((20, 512), np.float32)
    np.testing.assert_array_equal(one.features, same.features)
    assert not np.allclose(one.features, other.features)


def test_kernels_keep_the_size_of_what_goes_through() -> None:
    kernels = random_features.weights((8, 8, 3), seed=0)

    for kernel in kernels.values():
        assert kernel.var() == pytest.approx(2 / np.prod(kernel.shape[:3]), rel=0.1)


def worse(images: np.ndarray, how: str, much: int) -> np.ndarray:
    random = np.random.default_rng(1)
    if how == "noise":
        return np.clip(images + random.normal(0, 20 * much, images.shape), 0, 255).astype(np.uint8)
    if how == "blur":
        blurred = [
            np.asarray(Image.fromarray(image[..., 0]).filter(ImageFilter.GaussianBlur(0.5 * much)))
            for image in images
        ]
        return np.stack(blurred)[..., None]
    kept = images[: 4 ** (4 - much)]  # the same few again and again
    return kept[random.integers(0, len(kept), len(images))]


@pytest.mark.parametrize("how", ["noise", "blur", "repeats"])
def test_in_random_features_worse_images_are_farther(prepared: Prepared, how: str) -> None:
    real, other = prepared.images[:800], prepared.images[800:1600]
    network = RandomFeatures(random_features.weights((8, 8, 1), seed=0))
    reference = frechet.gaussian(network.describe(real).features)
    distances = [
        frechet.fid(network.describe(images).features, against=reference)
        for images in (other, *(worse(other, how, much) for much in (1, 2, 3)))
    ]

    assert distances == sorted(distances)
    assert distances[-1] > 3 * distances[0]


def test_images_without_labels_are_scored_in_random_features(prepare_own: Prepare, tmp_path: Path) -> None:
    images = np.random.default_rng(0).integers(0, 256, (60, 6, 10, 3), np.uint8)
    first = prepare_own({"images": images}, features="random")

    assert first.facts["features"] == first.features.name == "random-6x10x3"
    assert "features_accuracy" not in first.facts
    assert first.reference.gaussian.mean.shape == (512,)
    again = prepare_own({"images": images}, features="random")
    other = prepare_own({"images": images}, features="random", split_seed=1)
    assert again.facts == first.facts
    assert other.facts["features_sha256"] != first.facts["features_sha256"]
    freeze(first, tmp_path / "kept")
    assert prepare_own({"images": images}, features="random", frozen=tmp_path / "kept").facts == first.facts


EMBED = """\
import numpy as np

def embed(x):
    return {returned}
"""


@pytest.fixture
def embed(tmp_path: Path) -> Callable[[str], str]:
    def embed(returned: str) -> str:
        path = tmp_path / "my_features.py"
        path.write_text(EMBED.format(returned=returned))
        return f"{path}:embed"

    return embed


VECTORS = {"images": np.random.default_rng(0).uniform(-1, 1, (60, 2))}


def test_vectors_are_scored_in_features_of_ones_own(
    prepare_own: Prepare, embed: Callable[[str], str], tmp_path: Path
) -> None:
    value = embed("np.concatenate([x, x * x], 1)")
    made = prepare_own(VECTORS, features=value, data_range=[-1, 1])
    vectors = made.images

    assert (made.facts["features"], made.facts["image_size"]) == ("my_features.py:embed", "2")
    assert f"{value} (sha256 {made.code[value].sha256})" in str(made.facts["code"])
    expected = np.concatenate([vectors, vectors * vectors], 1)
    np.testing.assert_allclose(made.reference.gaussian.mean, expected.mean(0), rtol=1e-5)
    network = pickle.loads(pickle.dumps(made.features)).network((2,))
    np.testing.assert_allclose(network.describe(vectors[:5]).features, expected[:5], rtol=1e-6)

    freeze(made, tmp_path / "kept")
    embed("x * 7")  # another function of the same name: the copy is what counts
    kept = prepare_own(VECTORS, features=value, data_range=[-1, 1], frozen=tmp_path / "kept")
    np.testing.assert_array_equal(kept.reference.gaussian.mean, made.reference.gaussian.mean)
    assert kept.facts["code_changed"] == "my_features.py:embed"
    assert kept.facts["code_sha256"] == made.facts["code_sha256"]


@pytest.mark.parametrize(
    ("returned", "said"),
    [
        (
            "x[:, 0]",
            "features: my_features.py:embed must give numbers [8, D] for 8 images, D always the same and",
        ),
        ("x[:3]", "got float32 [3, 2]."),
        ("x[:, :len(x) % 7]", "must give numbers [5, D] for 5 images"),
        (
            "x + np.random.normal(size=x.shape)",
            "must give the same features for the same data, and does not; seed",
        ),
        ("x / 0", "must give finite numbers."),
        ("'words'", "must give numbers [8, D] for 8 images"),
        ("np.zeros((len(x), 9000))", "D always the same and at most 8192, got float64 [8, 9000]."),
        ("x.no_such_thing", "my_features.py:4: embed failed: AttributeError: "),
    ],
)
def test_features_that_are_none_are_refused(
    prepare_own: Prepare, embed: Callable[[str], str], returned: str, said: str
) -> None:
    (problem,) = refused(prepare_own, VECTORS, features=embed(returned), data_range=[-1, 1])

    assert said in problem


@pytest.mark.parametrize(
    ("arrays", "settings", "said"),
    [
        (
            VECTORS,
            {"data_range": [-1, 1]},
            "features: must be a function of your own for vectors, my_features.py",
        ),
        (
            VECTORS,
            {"data_range": [-1, 1], "features": "random"},
            "features: must be a function of your own for vectors, my_features.py:embed, got random.",
        ),
        (
            {"images": np.zeros((30, 8, 8), np.uint8)},
            {},
            "features: must not be classifier, as the images have no classes to tell apart; set features:",
        ),
        (
            {"images": np.zeros((30, 8, 8), np.uint8), "labels": np.zeros(30, int)},
            {},
            "features: must not be classifier, as the images have no classes",
        ),
        (
            {"images": np.zeros((30, 8, 8, 2), np.uint8)},
            {"features": "inception"},
            "features: must not be inception for images of 2 channels",
        ),
    ],
)
def test_features_that_do_not_go_with_the_data_are_refused(
    prepare_own: Prepare, arrays: dict[str, Any], settings: dict[str, Any], said: str
) -> None:
    (problem,) = refused(prepare_own, arrays, **settings)

    assert said in problem


def test_all_that_does_not_go_with_vectors_is_said_at_once(tmp_path: Path) -> None:
    np.savez(tmp_path / "my.npz", **VECTORS)
    config = TrainConfig(dataset=str(tmp_path / "my.npz"), data_range=[-1, 1], flips=True)

    said = refused(prepare, config, cache=tmp_path, say=lambda line: None)
    assert [problem.split(":")[0] for problem in said] == ["features", "flips", "architecture"]
