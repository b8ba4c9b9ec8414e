from pathlib import Path

import numpy as np
import pytest

from wgangp import datasets, splitting
from wgangp.config import TrainConfig
from wgangp.datasets import Dataset
from wgangp.errors import UserError


def silent(line: str) -> None:
    pass


@pytest.mark.parametrize(
    ("name", "count", "size"), [("digits", 1797, (8, 8, 1)), ("mnist5k", 5000, (28, 28, 1))]
)
def test_a_data_set_has_the_stated_shape_range_and_classes(
    name: str, count: int, size: tuple, cache: Path
) -> None:
    dataset = datasets.load(TrainConfig(dataset=name), cache=cache, say=silent)

    assert dataset.images.shape == (count, *size)
    assert dataset.images.dtype == np.uint8
    assert (dataset.images.min(), dataset.images.max()) == (0, 255)
    assert sorted(set(dataset.labels.tolist())) == list(range(10))
    assert len(dataset.labels) == count


@pytest.mark.parametrize("damage", [b"", b"PK\x03\x04 no archive"])
def test_a_damaged_copy_is_read_again_from_its_source(tmp_path: Path, damage: bytes) -> None:
    said: list[str] = []
    first = datasets.load(TrainConfig(dataset="digits"), cache=tmp_path, say=said.append)
    again = datasets.load(TrainConfig(dataset="digits"), cache=tmp_path, say=said.append)
    (copy,) = tmp_path.iterdir()
    copy.write_bytes(damage)
    mended = datasets.load(TrainConfig(dataset="digits"), cache=tmp_path, say=said.append)

    assert said == ["reading digits", "reading digits"]
    assert first.sha256 == again.sha256 == mended.sha256


def test_a_tenth_of_each_class_is_held_out_and_no_image_is_in_both_parts() -> None:
    labels = np.repeat([0, 1, 2], [100, 50, 20])
    numbered = np.arange(170, dtype=np.uint8).reshape(-1, 1, 1, 1)
    training, heldout = splitting.split(Dataset(numbered, labels), seed=3)

    assert np.bincount(heldout.labels).tolist() == [10, 5, 2]
    both = np.concatenate([training.images, heldout.images]).ravel()
    assert sorted(both.tolist()) == list(range(170))
    for part in (training, heldout):
        assert (labels[part.images.ravel()] == part.labels).all()


def test_of_rare_classes_and_of_none_a_tenth_of_all_is_held_out() -> None:
    of_all = np.arange(40, dtype=np.uint8).reshape(-1, 1, 1, 1)
    rare = Dataset(of_all, np.repeat(np.arange(20), 2))  # a tenth of 2 is none

    for dataset in (rare, Dataset(of_all, None)):
        training, heldout = splitting.split(dataset, seed=0)
        assert (len(training.images), len(heldout.images)) == (36, 4)


def test_the_split_follows_its_seed_and_is_not_sorted() -> None:
    dataset = Dataset(np.arange(100, dtype=np.uint8).reshape(-1, 1, 1, 1), np.repeat([0, 1], 50))
    first, again, other = (splitting.split(dataset, seed=seed)[0] for seed in (0, 0, 1))

    assert first.sha256 == again.sha256 != other.sha256
    assert set(first.labels[:20].tolist()) == {0, 1}


def test_the_sha256_is_of_images_and_labels() -> None:
    images, labels = np.zeros((4, 2, 2, 1), np.uint8), np.arange(4)
    hashes = {
        Dataset(images, labels).sha256,
        Dataset(images + 1, labels).sha256,
        Dataset(images, labels[::-1]).sha256,
        Dataset(images.reshape(4, 4, 1, 1), labels).sha256,
    }

    assert len(hashes) == 4


def labelled(*counts: int) -> Dataset:
    """So many images of each class, sorted by class, each known by its pixel."""
    labels = np.repeat(np.arange(len(counts)), counts)
    return Dataset(np.arange(len(labels), dtype=np.uint8).reshape(-1, 1, 1, 1), labels)


@pytest.mark.parametrize("sizes", [(50, 30, 15, 5), (33, 30, 28, 32, 34), (1, 1, 1, 90)])
def test_a_part_of_any_size_has_of_each_class_its_share_to_within_an_image(sizes: tuple[int, ...]) -> None:
    whole = labelled(*sizes)

    for count in range(1, sum(sizes) + 1):
        part = splitting.part(whole, count, seed=count)
        rows = part.images.ravel()
        assert len(part.images) == len(part.labels) == len(set(rows.tolist())) == count
        shares = count * np.array(sizes) / sum(sizes)
        assert (abs(np.bincount(part.labels, minlength=len(sizes)) - shares) < 1).all()
        np.testing.assert_array_equal(part.labels, whole.labels[rows])


def test_a_part_follows_its_seed_and_is_in_random_order() -> None:
    whole = labelled(50, 50)
    first, again, other = (splitting.part(whole, 60, seed=seed).images for seed in (0, 0, 1))

    np.testing.assert_array_equal(first, again)
    assert set(first.ravel().tolist()) != set(other.ravel().tolist())
    assert 0.3 < (whole.labels[first.ravel()][:30] == 0).mean() < 0.7


def test_more_than_there_are_is_no_part() -> None:
    with pytest.raises(UserError, match=r"^train_images: must be at most the 9 training images, got 10"):
        splitting.part(labelled(4, 5), 10, seed=0)
