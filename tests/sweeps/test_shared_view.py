import base64
import json
import zlib
from collections.abc import Callable
from typing import Any

from sweeps import shared_view
from sweeps.space import Space

MakeSpace = Callable[..., Space]


def view(space: Space) -> dict[str, Any]:
    """As MLflow's pages unpack it."""
    packed = shared_view.tags(space, sweep="gp-0001")["mlflow.sharedViewState.gp-0001"]
    kind, _, content = packed.partition(";")
    assert kind == "deflate" and len(packed) <= 5000
    return json.loads(zlib.decompress(base64.b64decode(content)))


def test_the_best_come_first_with_what_was_searched_beside_them(make_space: MakeSpace) -> None:
    found = view(make_space())

    assert (found["orderByKey"], found["orderByAsc"]) == ("metrics.`best_fid`", True)
    assert found["selectedColumns"][:5] == [
        *("metrics.`best_fid`", "tags.`outcome`", "tags.`verdict`", "params.`gp_weight`", "params.`n_critic`")
    ]
    assert found["searchFilter"] == "tags.sweep = 'gp-0001' and tags.trial LIKE 't%'"


def test_settings_are_drawn_against_the_best_fid_and_curves_over_steps(make_space: MakeSpace) -> None:
    charts = view(make_space("search.penalty={type: categorical, choices: [two_sided, r1]}"))[
        "compareRunCharts"
    ]

    (parallel,) = [chart for chart in charts if chart["metricSectionId"] == "together"]
    scatters = [chart for chart in charts if chart["metricSectionId"] == "settings"]
    assert parallel["selectedParams"] == ["gp_weight", "n_critic", "penalty"]
    assert [chart["xaxis"]["key"] for chart in scatters] == ["gp_weight", "n_critic"]  # kinds have no axis
    assert {chart["yaxis"]["key"] for chart in scatters} == {"best_fid"}
    curves = [chart for chart in charts if chart["metricSectionId"] == "curves"]
    assert {chart["xAxisKey"] for chart in curves} == {"step"} and curves[0]["metricKey"] == "fid"
    assert len({chart["uuid"] for chart in charts}) == len(charts)


def test_a_large_space_has_room(make_space: MakeSpace) -> None:
    fields = ("critic_lr", "generator_lr", "adam_beta1", "adam_beta2", "ema_decay", "drift", "weight_clip")
    ranges = [f"search.{field}={{type: float, low: 0.001, high: 0.9}}" for field in fields]

    view(make_space(*ranges, "search.width={type: int, low: 8, high: 64}"))
