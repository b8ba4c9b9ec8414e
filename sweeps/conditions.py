"""Settings that only matter with another's value: `when: {penalty: clip}`. Which of them a trial is given."""

from collections.abc import Mapping
from typing import Any

from sweeps.search import Searched, Value, among
from wgangp.config import TrainConfig
from wgangp.settings_file import SettingsFile
from wgangp.wording import Key, show, unknown


def in_order(search: Mapping[str, Searched]) -> list[str]:
    """The searched settings, each after those that its `when` names; those of a circle are left out."""
    placed: list[str] = []
    while ready := [
        field for field in search if field not in placed and set(search[field].when or ()) <= set(placed)
    ]:
        placed += ready
    return placed


def applies(searched: Searched, params: Mapping[str, Value]) -> bool:
    """Whether a setting matters beside `params`; one whose own condition is not met is not among them."""
    return all(
        field in params and among(params[field], values) for field, values in (searched.when or {}).items()
    )


def given(search: Mapping[str, Searched], values: Mapping[str, Any]) -> dict[str, Any]:
    """Those of `values` that matter together, in order."""
    params: dict[str, Any] = {}
    for field in in_order(search):
        if field in values and applies(search[field], params):
            params[field] = values[field]
    return {field: params[field] for field in search if field in params}


def check_conditions(file: SettingsFile, search: Mapping[str, Searched]) -> list[str]:
    """What is wrong with the conditions of `search`."""
    problems = []
    for field, searched in search.items():
        for other, values in (searched.when or {}).items():
            key: Key = ("search", field, "when", other)
            if other not in search:
                asked = file.values.get("search")
                if not isinstance(asked, dict) or other not in asked:  # else it is wrong itself
                    known = other in TrainConfig.model_fields
                    sentence = "is not searched; a condition is of another searched setting."
                    problems.append(file.problem(key, sentence if known else unknown(other, search)))
                continue
            problems += [
                file.problem(key, f"no trial is given {show(value)}; take a value of its search.")
                for value in values
                if not search[other].holds(value)
            ]
    circle = [field for field in search if _waits_for_itself(field, search)]
    if circle:
        sentence = f"must not go round in a circle, got {', '.join(circle)}; remove one."
        problems.append(file.problem(("search", circle[0], "when"), sentence))
    return problems


def _waits_for_itself(field: str, search: Mapping[str, Searched]) -> bool:
    waits_for, before = set(search[field].when or ()), set[str]()
    while waits_for - before:
        before |= waits_for
        waits_for = {other for each in waits_for if each in search for other in search[each].when or ()}
        waits_for |= before
    return field in before
