import math

import pytest

from wgangp import convergence

HEALTHY = {
    "critic_loss": -3.0,
    "generator_loss": 1.0,
    "gradient_penalty": 0.2,
    "wasserstein": 5.0,
    "gradient_norm": 1.2,
    "fid": 80.0,
    "best_fid": math.inf,
    "heldout_gap": 0.1,
    "images_per_second": 1000.0,
}


@pytest.mark.parametrize(
    ("changes", "weights_are_finite", "dead_ticks", "reason"),
    [
        ({}, True, 0, ""),
        ({"critic_loss": math.nan, "fid": math.nan}, True, 0, "critic_loss is not finite"),
        ({"generator_loss": math.inf}, True, 0, "generator_loss is not finite"),
        ({"gradient_penalty": -math.inf}, True, 0, "gradient_penalty is not finite"),
        ({"fid": math.nan}, False, 0, "a weight is not finite"),
        ({"fid": math.nan}, True, 0, "fid is not finite"),
        ({"heldout_gap": math.inf}, True, 0, "heldout_gap is not finite"),
        ({"critic_loss": 1e30, "gradient_penalty": 1e29, "gradient_norm": 1e14}, True, 0, ""),
        ({"gradient_norm": 0.01, "wasserstein": 0.002}, True, 2, ""),
        (
            {"gradient_norm": 0.01, "wasserstein": 0.002},
            True,
            3,
            "dead critic: gradient norm 0.01 and wasserstein 0.002 for 3 ticks",
        ),
    ],
)
def test_divergence_is_said_with_its_reason(
    changes: dict[str, float], weights_are_finite: bool, dead_ticks: int, reason: str
) -> None:
    found = convergence.divergence(
        HEALTHY | changes, weights_are_finite=weights_are_finite, dead_ticks=dead_ticks
    )

    assert found == reason


@pytest.mark.parametrize(
    ("gradient_norm", "wasserstein", "dead"),
    [
        (0.04, 0.04, True),
        (0.04, -0.04, True),
        (0.05, 0.04, False),
        (0.04, -0.05, False),
        (math.nan, 0, False),
        (0, math.nan, False),
    ],
)
def test_a_critic_is_dead_only_without_slope_and_without_gap(
    gradient_norm: float, wasserstein: float, dead: bool
) -> None:
    assert convergence.is_dead(gradient_norm=gradient_norm, wasserstein=wasserstein) is dead
