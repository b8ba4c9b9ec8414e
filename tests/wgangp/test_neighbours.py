"""Precision, recall, density and coverage on points of a line, by hand."""

import numpy as np
import pytest

from wgangp import neighbours
from wgangp.neighbours import Neighbourhood


def line(*points: float) -> np.ndarray:
    return np.array(points, float)[:, None]


REAL = line(0, 1, 2, 3, 4, 5, 100, 101, 102, 103, 104, 105)
"""Two clumps. To the third neighbour: 3, 2, 2, 2, 2, 3 in each; to the fifth: 5, 4, 3, 3, 4, 5."""


def test_identical_sets_are_precise_recalled_and_covered() -> None:
    found = Neighbourhood(REAL).scores(REAL)

    assert (found["precision"], found["recall"], found["coverage"]) == (1, 1, 1)
    assert found["density"] == 6 / 5  # each lies in all six balls of its clump


def test_sets_far_apart_have_nothing_in_common() -> None:
    assert Neighbourhood(REAL).scores(REAL + 1000) == {
        "precision": 0,
        "recall": 0,
        "density": 0,
        "coverage": 0,
    }


def test_a_dropped_mode_costs_recall_and_not_precision() -> None:
    found = Neighbourhood(REAL).scores(line(0.5, 1.5, 2.5, 3.5, 4.5, 2))

    assert (found["precision"], found["recall"], found["coverage"]) == (1, 0.5, 0.5)


def test_scores_on_a_line_are_those_worked_out_by_hand() -> None:
    """Two groups of real images a thousand apart; of seven generated ones five are at the first group.

    Balls of real images to the 3rd nearest, at 0, 1, 3, 7, 15, 31: -7..7, -5..7, -1..7, 0..14, 1..29, 3..59;
    those at 1000 and more hold none of the generated. To the 5th: -31..31, -29..31, -25..31, -17..31, -1..31,
    0..62. Balls of generated images to the 3rd nearest:
    -24.25..3.25, 0.1..4.5, 0.5..4.5, 2..4.5, 2.3..6.7, 3.25..996.75, 3.25..1002.75.
    """
    real = line(0, 1, 3, 7, 15, 31, 1000, 1001, 1003, 1007, 1015, 1031)
    generated = line(-10.5, 2.3, 2.5, 3.25, 4.5, 500, 503)

    assert Neighbourhood(real).scores(generated) == pytest.approx(
        {
            "precision": 4 / 7,  # 2.3, 2.5, 3.25, 4.5
            "recall": 8 / 12,  # the first group, 1000, 1001
            "density": (4 + 4 * 6) / (5 * 7),  # -10.5 is in four balls, the four others in six
            "coverage": 6 / 12,  # the first group
        }
    )


def test_draws_of_one_distribution_have_density_one_and_coverage_of_a_half_to_the_fifth_short() -> None:
    """Of equally many real and generated images each is as likely the next neighbour: none in k has 2^-k."""
    random = np.random.default_rng(0)
    found = Neighbourhood(random.normal(size=(1000, 3))).scores(random.normal(size=(1000, 3)))

    assert found["density"] == pytest.approx(1, abs=0.05)
    assert found["coverage"] == pytest.approx(1 - 1 / 32, abs=0.02)  # 1 - 1/8 to the third


def test_one_image_repeated_is_in_a_ball_and_recalls_nothing() -> None:
    found = Neighbourhood(REAL).scores(np.full((10, 1), 2.25))

    assert (found["precision"], found["recall"]) == (1, 0)  # its own balls have no size
    assert found["coverage"] == 6 / 12  # within 5, 4, 3, 3, 4, 5 of 0..5
    assert found["density"] == 6 / 5


def test_an_invented_mode_costs_precision_and_not_recall() -> None:
    found = Neighbourhood(REAL).scores(np.concatenate([REAL, REAL + 1000]))

    assert (found["precision"], found["recall"]) == (0.5, 1)


def test_the_edge_of_a_ball_belongs_to_it() -> None:
    inside = Neighbourhood(REAL).scores(line(-3, 8, 8, 8, 8, 8))
    outside = Neighbourhood(REAL).scores(line(-3.01, 8.01, 9, 9, 9, 9))

    assert (inside["precision"], outside["precision"]) == (1, 0)


def test_many_images_are_counted_as_few(monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(0)
    real, fake = random.normal(size=(60, 3)), random.normal(size=(50, 3)) + 0.5
    at_once = Neighbourhood(real).scores(fake)
    monkeypatch.setattr(neighbours, "_ROWS", 7)

    assert Neighbourhood(real).scores(fake) == at_once
    assert 0.2 < at_once["precision"] < 1 and 0.2 < at_once["recall"] < 1


def test_what_is_not_finite_has_no_score() -> None:
    found = Neighbourhood(REAL).scores(np.full((9, 1), np.nan))

    assert set(found) == {"precision", "recall", "density", "coverage"}
    assert np.isnan(list(found.values())).all()


def test_too_few_images_are_refused() -> None:
    with pytest.raises(ValueError, match="N above 5"):
        Neighbourhood(REAL[:5])
    with pytest.raises(ValueError, match="N above 5"):
        Neighbourhood(REAL).scores(REAL[:5])
