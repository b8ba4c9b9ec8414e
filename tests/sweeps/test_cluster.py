import pytest

from sweeps.cluster import Cluster
from sweeps.resources import Resources


@pytest.mark.parametrize(
    ("there", "each", "most", "fit"),
    [
        ((2, 0), {}, None, 2),
        ((16, 0), {"cpus": 3}, None, 5),
        ((2, 0), {"cpus": 0.5}, None, 4),
        ((1, 0), {"cpus": 0.1}, None, 10),
        ((0.9, 0), {"cpus": 0.3}, None, 3),
        ((2, 0), {"cpus": 3}, None, 0),
        ((8, 1), {"gpus": 0.5}, None, 2),
        ((8, 1), {"gpus": 0.3}, None, 3),
        ((8, 1), {"gpus": 0.1}, None, 8),
        ((8, 4), {"gpus": 2}, None, 2),
        ((8, 0), {"gpus": 1}, None, 0),
        ((8, 2), {"gpus": 0.6}, None, 2),  # a share is of one GPU
        ((8, 2), {"gpus": 0.3}, None, 6),
        ((8, 3), {"gpus": 2}, None, 1),
        ((2, 4), {"cpus": 2, "gpus": 1}, None, 1),
        ((16, 0), {}, 3, 3),
        ((2, 0), {}, 3, 2),
        ((2.0, 0.0), {}, 1, 1),
        ((4, 0), {"workers": 2}, None, 2),  # whole gangs
        ((5, 0), {"workers": 2}, None, 2),
        ((16, 0), {"workers": 2, "cpus": 3}, None, 2),
        ((3, 0), {"workers": 4}, None, 0),
        ((16, 4), {"workers": 2, "gpus": 1}, None, 2),
        ((16, 3), {"workers": 2, "gpus": 2}, None, 0),
        ((16, 0), {"workers": 2}, 3, 3),
        ((4, 0), {"workers": 2, "strategy": "parameter_server"}, None, 2),
        ((16, 0), {"strategy": "tpu"}, None, 1),  # there is one, and it is not divided
        ((16, 0), {"strategy": "tpu"}, 3, 1),
    ],
)
def test_capacity_is_how_many_trials_fit_at_once(
    there: tuple[float, float], each: dict, most: int | None, fit: int
) -> None:
    assert Cluster(*there).capacity(Resources(**each), most=most) == fit
