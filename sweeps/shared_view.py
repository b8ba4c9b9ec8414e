"""How MLflow's page shows a sweep: columns a person needs, the best first, charts of settings against FID.

MLflow keeps views that people share as tags of the experiment, and opens one by a part of its address. A
sweep writes its own. (Names as in the pages of MLflow 3.17; what it does not know it passes over.)
"""

import base64
import json
import zlib
from typing import Any

from sweeps.space import Space

CURVES = ("fid", "best_fid", "wasserstein", "critic_loss", "gradient_penalty", "gradient_norm", "heldout_gap")
"""Metrics drawn over images seen."""
_FIRST = ("metrics.`best_fid`", "tags.`outcome`", "tags.`verdict`")
_LAST = ("metrics.`fid`", "metrics.`core_seconds`", "tags.`baseline`", "tags.`reason`", "tags.`sweep`")


def tags(space: Space, *, sweep: str) -> dict[str, str]:
    """Tags of the experiment: the sweep's view, and that its runs are of training and of nothing else."""
    return {
        "mlflow.experimentKind": "custom_model_development",
        f"mlflow.sharedViewState.{sweep}": _packed(_view(space, sweep)),
    }


def address(experiment_id: str, *, sweep: str) -> str:
    """What comes behind the address of MLflow's pages."""
    return f"#/experiments/{experiment_id}/runs?workflowType=machine_learning&viewStateShareKey={sweep}"


def _packed(view: dict[str, Any]) -> str:
    """As MLflow's pages pack what people share: some databases have room for 5,000 letters."""
    return f"deflate;{base64.b64encode(zlib.compress(json.dumps(view).encode())).decode()}"


def _view(space: Space, sweep: str) -> dict[str, Any]:
    columns = [*_FIRST, *(f"params.`{field}`" for field in space.search), *_LAST]
    return {
        "searchFilter": f"tags.sweep = '{sweep}' and tags.trial LIKE 't%'",
        "orderByKey": "metrics.`best_fid`",
        "orderByAsc": True,
        "selectedColumns": columns,
        "columnOrder": columns,
        "runsHiddenMode": "SHOW_ALL",
        "isAccordionReordered": True,  # else sections are sorted by name
        "compareRunSections": [
            _section("together", "All settings at once", columns=1),
            _section("settings", "Settings one by one", columns=3),
            _section("curves", "Over images seen", columns=3),
            _section("samples", "Samples from the same noise", columns=1),
        ],
        "compareRunCharts": [*_of_settings(space), *_of_curves(), _of_samples(space)],
    }


def _section(name: str, title: str, *, columns: int) -> dict[str, Any]:
    return {"uuid": name, "name": title, "display": True, "isReordered": True, "columns": columns}


def _of_settings(space: Space) -> list[dict[str, Any]]:
    """All settings at once, and each that is a number against the best FID."""
    searched = list(space.search)
    parallel = {
        **_chart("parallel", "PARALLEL", "together", "Settings and best FID"),
        "selectedParams": searched,
        "selectedMetrics": ["best_fid"],
        "showAllRuns": True,
    }
    numbers = [field for field, kind in space.search.items() if kind.type != "categorical"]
    return [
        parallel,
        *(
            {
                **_chart(f"of-{field}", "SCATTER", "settings", f"{field} and best FID"),
                "xaxis": {"key": field, "type": "PARAM"},
                "yaxis": {"key": "best_fid", "type": "METRIC"},
                "runsCountToCompare": 100,
            }
            for field in numbers
        ),
    ]


def _of_curves() -> list[dict[str, Any]]:
    return [
        {
            **_chart(f"curve-{name}", "LINE", "curves", name),
            "metricKey": name,
            "selectedMetricKeys": [name],
            "xAxisKey": "step",
            "useGlobalXaxisKey": True,
            "useGlobalLineSmoothing": True,
            "lineSmoothness": 0,
            "scaleType": "log" if name in ("fid", "best_fid") else "linear",
            "xAxisScaleType": "linear",
            "selectedXAxisMetricKey": "",
            "yAxisKey": "metric",
            "yAxisExpressions": [],
            "ignoreOutliers": False,
            "range": {},
        }
        for name in CURVES
    ]


def _of_samples(space: Space) -> dict[str, Any]:
    """From the first tick on, which all trials have come to."""
    first = round(1000 * space.base.tick_kimg)
    chart = _chart("samples", "IMAGE", "samples", "samples")
    return chart | {"imageKeys": ["samples"], "step": first, "showRunParams": False}


def _chart(uuid: str, kind: str, section: str, title: str) -> dict[str, Any]:
    return {
        "uuid": uuid,
        "type": kind,
        "metricSectionId": section,
        "displayName": title,
        "runsCountToCompare": 10,
        "deleted": False,
        "isGenerated": False,
    }
