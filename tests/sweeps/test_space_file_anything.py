"""Whatever stands wherever in a space file: it is taken, or refused in lines of one sentence each."""

import copy
import datetime
from typing import Any

import pytest

from sweeps import space_file
from sweeps.search import KINDS
from sweeps.space_file import KEYS, SECTIONS
from wgangp.config import TrainConfig
from wgangp.errors import UserError
from wgangp.settings_file import SettingsFile

SOUND: dict[str, Any] = {
    "search": {
        "gp_weight": {"type": "float", "low": 0.1, "high": 100, "log": True, "when": {"penalty": ["r1"]}},
        "n_critic": {"type": "int", "low": 1, "high": 5, "step": 2},
        "penalty": {"type": "categorical", "choices": ["r1", "clip"]},
    },
    "enqueue": [{"gp_weight": 1, "n_critic": 1, "penalty": "r1"}],
    "train": {"dataset": "digits"},
}
ANYTHING: list[Any] = [
    *(None, True, 0, 3, -1.5, 1e308, 10**400, "", "x", "a.py:f", "/", "."),
    *([], [None], [1, 1], [[1]], [{}], ["r1", ["r1"]], [3, "x", None]),
    *({}, {"a": 1}, {"a": {"b": []}}, {"1": 2}, {"type": []}, {"penalty": [[]]}, datetime.date(2020, 1, 1)),
]
PLACES: list[tuple] = [
    *((key,) for key in [*KEYS, "unknown"]),
    *((section, field) for section, model in SECTIONS.items() for field in [*model.model_fields, "unknown"]),
    *(("train", field) for field in TrainConfig.model_fields),
    *(("search", field) for field in TrainConfig.model_fields),
    *(
        ("search", field, key)
        for field, kind in zip(SOUND["search"], ("float", "int", "categorical"), strict=True)
        for key in KINDS[kind].model_fields
    ),
    *(("search", "gp_weight", "when", other) for other in ("penalty", "n_critic", "gp_weight", "width")),
    *(("enqueue", 0, field) for field in (*SOUND["search"], "prune", "width", "unknown")),
    ("enqueue", 0),
]


@pytest.mark.parametrize("place", PLACES, ids=lambda place: ".".join(map(str, place)))
def test_anything_is_taken_or_refused_in_lines(place: tuple) -> None:
    for value in ANYTHING:
        values = copy.deepcopy(SOUND)
        inner: Any = values
        for key in place[:-1]:
            inner = inner.setdefault(key, {}) if isinstance(inner, dict) else inner[key]
        inner[place[-1]] = value
        file = SettingsFile(name="gp.yaml", values=values, lines={})
        try:
            space_file.check(file, default_name="gp")
        except UserError as error:
            assert error.problems
            assert all(problem.startswith("gp.yaml: ") and "\n" not in problem for problem in error.problems)
