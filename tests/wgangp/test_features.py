import numpy as np

from wgangp import features
from wgangp.prepared import Prepared


def test_the_classifier_knows_digits_it_has_not_seen(prepared: Prepared) -> None:
    assert prepared.features.accuracy > 0.93
    assert prepared.facts["features_accuracy"] == prepared.features.accuracy


def test_features_are_the_last_hidden_layer_without_dropout(prepared: Prepared) -> None:
    weights = prepared.features.weights
    classifier = features.Classifier(weights, image_shape=(8, 8, 1))

    described = classifier.describe(prepared.heldout)

    assert described.features.shape == (len(prepared.heldout), features.FEATURES)
    assert described.features.min() == 0  # after the ReLU
    np.testing.assert_array_equal(described.features, classifier.describe(prepared.heldout).features)
    logits = described.features @ weights[str(len(weights) - 2)] + weights[str(len(weights) - 1)]
    odds = np.exp(logits - logits.max(1, keepdims=True))
    np.testing.assert_allclose(described.probabilities, odds / odds.sum(1, keepdims=True), atol=1e-5)


def test_features_do_not_depend_on_the_images_beside(prepared: Prepared) -> None:
    classifier = features.Classifier(prepared.features.weights, image_shape=(8, 8, 1))
    many = np.tile(prepared.heldout, (4, 1, 1, 1))

    all_at_once = classifier.describe(many).features

    assert len(all_at_once) == len(many)
    np.testing.assert_allclose(
        all_at_once[-3:], classifier.describe(many[-3:]).features, rtol=1e-4, atol=1e-4
    )


def test_training_follows_its_seed_and_images(prepared: Prepared) -> None:
    images = prepared.images[:100]
    labels = np.arange(100) % 10

    def first_weight(seed: int, images: np.ndarray) -> float:
        trained = features.train(images, labels, seed=seed, say=lambda line: None)
        return float(trained["0"].ravel()[0])

    first = first_weight(0, images)
    assert first == first_weight(0, images)
    assert first != first_weight(1, images)
    assert first != first_weight(0, images[::-1])
