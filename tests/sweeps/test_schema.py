"""What editors are told of a space file, and `--fields`."""

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from ruamel.yaml import YAML

from sweeps import fields, schema
from tests.sweeps.conftest import SPACE
from tests.sweeps.test_space_file import ALL_KINDS
from wgangp.config import TrainConfig, is_searchable

SPACES = Path(__file__).resolve().parents[2] / "search_spaces"
KEPT = SPACES / "space.schema.json"


def faults(text: str) -> list[str]:
    """Where an editor would draw a line under a space file."""
    values: Any = YAML(typ="safe", pure=True).load(text)
    found = jsonschema.Draft202012Validator(json.loads(KEPT.read_text())).iter_errors(values)
    return sorted(".".join(map(str, fault.absolute_path)) for fault in found)


def test_the_schema_beside_the_spaces_is_that_of_the_code() -> None:
    jsonschema.Draft202012Validator.check_schema(schema.schema())

    assert json.loads(KEPT.read_text()) == schema.schema(), "python -m sweeps.schema > " + str(KEPT)


@pytest.mark.parametrize("path", sorted(SPACES.glob("*.yaml")), ids=lambda path: path.name)
def test_each_space_names_the_schema_and_is_sound_by_it(path: Path) -> None:
    first, question, run, costs, expect = path.read_text().splitlines()[:5]

    assert first == f"# yaml-language-server: $schema={KEPT.name}"
    assert question.startswith("# ") and "?" in question
    assert run.startswith(f"# Run:     python sweeps/run.py --space {path.name}")
    assert costs.startswith("# Costs:   ") and expect.startswith("# Expect:  ")
    assert faults(path.read_text()) == []


@pytest.mark.parametrize(
    "text",
    [
        SPACE,
        ALL_KINDS,
        "search: {penalty: {type: categorical, choices: [r1, clip]},"
        " gp_weight: {type: float, low: 1, high: 2, when: {penalty: r1}}}\ntrain:\nenqueue:\npruner:\n",
    ],
)
def test_what_the_first_gate_takes_is_sound(text: str) -> None:
    assert faults(text) == []


@pytest.mark.parametrize(
    ("text", "places"),
    [
        ("train: {width: 16}", [""]),  # no search
        ("search: {}", ["search"]),
        ("search: {n_critc: {type: int, low: 1, high: 2}}", ["search"]),
        ("search: {n_critic: {type: float, low: 1, high: 2}}", ["search.n_critic"]),
        ("search: {n_critic: {type: int, low: 1}}", ["search.n_critic"]),
        ("search: {dataset: {type: categorical, choices: [digits]}}", ["search"]),
        (SPACE.replace("{dataset: digits", "{dataset: digits, width: 0"), ["train.width"]),
        (SPACE.replace("{trials: 6", "{trials: many"), ["sweep"]),
        (SPACE + "compare: [seconds]", ["compare.0"]),
        (SPACE + "enqueue: [{dataset: digits}]", ["enqueue.0"]),
    ],
)
def test_mistakes_that_need_no_reckoning_are_seen(text: str, places: list[str]) -> None:
    assert faults(text) == places


def test_every_setting_is_listed_with_default_unit_values_and_meaning() -> None:
    head, *rows = fields.lines()

    assert [row.split()[0] for row in rows] == list(TrainConfig.model_fields)
    by_name = {row.split()[0]: row for row in rows}
    columns = [head.index(name) for name in ("setting", "default", "unit", "values", "search", "meaning")]
    cut = {
        name: [row[start:end].strip() for start, end in zip(columns, [*columns[1:], None], strict=True)]
        for name, row in by_name.items()
    }
    assert cut["gp_weight"][1:] == ["10", "", ">= 0, <= 1e6", "yes", "lambda: weight of the penalty"]
    assert cut["tick_kimg"][1:5] == ["9", "kimg", "> 0, <= 1e6", "fixed"]
    assert cut["channels"][1:5] == ["null", "", "1 | 3 | null", "fixed"]
    assert cut["critic_lr"][1:5] == ["0.0001", "", "> 0, <= 1", "yes"]
    assert cut["scores"][1] == "[fid, precision, recall]"
    for name, info in TrainConfig.model_fields.items():
        assert cut[name][4] == ("yes" if is_searchable(name) else "fixed")
        assert cut[name][5] == info.description
