import pytest

from sweeps.cluster import Cluster


@pytest.mark.parametrize(
    ("there", "wanted", "most", "fit"),
    [
        ((2, 0), (1, 0), None, 2),
        ((16, 0), (3, 0), None, 5),
        ((2, 0), (0.5, 0), None, 4),
        ((1, 0), (0.1, 0), None, 10),
        ((0.9, 0), (0.3, 0), None, 3),
        ((2, 0), (3, 0), None, 0),
        ((8, 1), (1, 0.5), None, 2),
        ((8, 1), (1, 0.3), None, 3),
        ((8, 1), (1, 0.1), None, 8),
        ((8, 4), (1, 2), None, 2),
        ((8, 0), (1, 1), None, 0),
        ((8, 2), (1, 0.6), None, 2),  # a share is of one GPU
        ((8, 2), (1, 0.3), None, 6),
        ((8, 3), (1, 2), None, 1),
        ((2, 4), (2, 1), None, 1),
        ((16, 0), (1, 0), 3, 3),
        ((2, 0), (1, 0), 3, 2),
        ((2.0, 0.0), (1.0, 0.0), 1, 1),
    ],
)
def test_capacity_is_how_many_trials_fit_at_once(
    there: tuple[float, float], wanted: tuple[float, float], most: int | None, fit: int
) -> None:
    cpus, gpus = wanted

    assert Cluster(*there).capacity(cpus=cpus, gpus=gpus, most=most) == fit
