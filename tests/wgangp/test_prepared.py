import json
import pickle
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from wgangp import arrays, datasets, splitting
from wgangp.config import TrainConfig
from wgangp.errors import UserError
from wgangp.kept_features import KeptFeatures
from wgangp.prepared import Prepared, freeze, prepare
from wgangp.trainer import Trainer


def silent(line: str) -> None:
    pass


def test_the_facts_say_what_was_prepared(prepared: Prepared, cache: Path) -> None:
    facts = prepared.facts

    told = {name: facts[name] for name in facts if "sha256" not in name and "accuracy" not in name}
    assert str(told.pop("scored_in")).startswith(
        "classifier-digits features (accuracy on held-out images 0.9"
    )
    assert told == {
        "dataset": "digits",
        "split_seed": 0,
        "image_size": "8x8x1",
        "train_images": 1618,
        "heldout_images": 179,
        "reference_images": 1618,
        "features": "classifier-digits",
    }
    assert (
        facts["data_sha256"] == datasets.load(TrainConfig(dataset="digits"), cache=cache, say=silent).sha256
    )
    assert (len(prepared.images), len(prepared.heldout)) == (1618, 179)


def test_the_reference_is_of_the_training_part(prepared: Prepared) -> None:
    features = prepared.features.network((8, 8, 1)).describe(prepared.images).features

    gaussian = prepared.reference.gaussian
    assert gaussian.count == 1618
    np.testing.assert_allclose(gaussian.mean, features.mean(0), rtol=1e-4)
    np.testing.assert_allclose(gaussian.factor @ gaussian.factor.T, gaussian.covariance, atol=1e-5)
    np.testing.assert_allclose(prepared.reference.features, features, rtol=1e-4, atol=1e-4)


def test_it_comes_from_the_cache_the_second_time_and_survives_pickling(
    settings: Callable[..., TrainConfig], prepared: Prepared, cache: Path
) -> None:
    said: list[str] = []
    again = pickle.loads(pickle.dumps(prepare(settings(), cache=cache, say=said.append)))

    assert said == []
    assert again.facts == prepared.facts


def test_a_damaged_cache_is_made_again_and_comes_out_the_same(
    settings: Callable[..., TrainConfig], prepared: Prepared, cache: Path
) -> None:
    (path,) = cache.glob("features-*-classifier-*.npz")
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    said: list[str] = []

    again = prepare(settings(), cache=cache, say=said.append)

    epochs = [f"training the feature classifier: epoch {i} of 8" for i in range(1, 9)]
    assert said == [*epochs, "describing the training images"]
    assert again.facts == prepared.facts


def test_other_seeds_change_nothing(
    settings: Callable[..., TrainConfig], prepared: Prepared, cache: Path
) -> None:
    other = prepare(settings(seed=5, init_seed=6, evaluation_seed=7), cache=cache, say=silent)

    assert other.facts == prepared.facts


def test_frozen_features_are_used_and_no_others(
    settings: Callable[..., TrainConfig], prepared: Prepared, cache: Path, tmp_path: Path
) -> None:
    weights = {name: weight + 1 for name, weight in prepared.features.weights.items()}
    another = KeptFeatures(weights, 0.5, prepared.reference)
    another.freeze(tmp_path, prepared.facts | {"features_sha256": another.sha256, "features_accuracy": 0.5})

    found = prepare(settings(), cache=cache, frozen=tmp_path, say=silent)

    assert found.features.sha256 == found.facts["features_sha256"] == another.sha256
    assert another.sha256 != prepared.features.sha256
    assert found.facts["features_accuracy"] == found.features.accuracy == 0.5
    np.testing.assert_array_equal(found.features.weights["0"], weights["0"])
    np.testing.assert_array_equal(found.reference.gaussian.factor, prepared.reference.gaussian.factor)


@pytest.mark.parametrize("name", ["features.json", "weights.npz", "reference.npz"])
@pytest.mark.parametrize("damage", ["remove", "cut", "swap"])
def test_damaged_frozen_features_are_refused(
    settings: Callable[..., TrainConfig],
    prepared: Prepared,
    cache: Path,
    tmp_path: Path,
    name: str,
    damage: str,
) -> None:
    freeze(prepared, tmp_path)
    path = tmp_path / name
    if damage == "remove":
        path.unlink()
    elif damage == "cut":
        path.write_bytes(path.read_bytes()[:-40])
    elif name == "features.json":
        path.write_text(json.dumps(prepared.facts | {"features_sha256": "0" * 64}))
    else:
        arrays.save(path, {key: array + 1 for key, array in arrays.load(path).items()})

    with pytest.raises(UserError) as caught:
        prepare(settings(), cache=cache, frozen=tmp_path, say=silent)
    assert str(caught.value).startswith(f"{tmp_path}: the frozen features ")
    assert "\n" not in str(caught.value)


def test_frozen_features_of_other_data_are_refused(
    settings: Callable[..., TrainConfig], prepared: Prepared, cache: Path, tmp_path: Path
) -> None:
    freeze(prepared, tmp_path)
    facts = tmp_path / "features.json"
    facts.write_text(facts.read_text().replace(str(prepared.facts["data_sha256"]), "ab" * 32))

    with pytest.raises(UserError, match=r"belong to other data: data_sha256 must be abab.*, got [0-9a-f]"):
        prepare(settings(), cache=cache, frozen=tmp_path, say=silent)
    freeze(prepared, tmp_path)
    with pytest.raises(UserError, match="belong to other data: split_seed must be 0, got 1"):
        prepare(settings(split_seed=1), cache=cache, frozen=tmp_path, say=silent)


def test_training_on_a_part_leaves_reference_and_heldout_images_as_they_are(
    settings: Callable[..., TrainConfig], prepared: Prepared, cache: Path
) -> None:
    part = prepare(settings(train_images=200), cache=cache, say=silent)

    assert (part.facts["train_images"], part.facts["reference_images"]) == (200, 1618)
    assert part.facts | {"train_images": 1618} == prepared.facts
    np.testing.assert_array_equal(part.heldout, prepared.heldout)
    np.testing.assert_array_equal(part.reference.features, prepared.reference.features)
    everything = {image.tobytes() for image in prepared.images}
    assert {image.tobytes() for image in part.images} < everything
    with pytest.raises(UserError, match="batch_size must be at most the 200 training images, got 256"):
        Trainer(part).start(settings(train_images=200, batch_size=256, n_critic=1))


def test_no_heldout_image_trains(prepared: Prepared) -> None:
    """Rows, not pictures: the digits hold some twice."""
    training, heldout = splitting.split(datasets.READERS["digits"](), seed=0)
    rows = splitting.split(
        datasets.Dataset(np.arange(1797)[:, None, None, None], datasets.READERS["digits"]().labels), seed=0
    )

    np.testing.assert_array_equal(prepared.images, training.images)
    np.testing.assert_array_equal(prepared.heldout, heldout.images)
    assert not set(rows[0].images.ravel()) & set(rows[1].images.ravel())
