"""The part `enqueue` of a space file: settings to compare with, each inside the search."""

from typing import Any

from sweeps import conditions
from sweeps.search import Searched, Value
from sweeps.sections import Baseline
from wgangp.config import TrainConfig, field_error
from wgangp.settings_file import SettingsFile
from wgangp.wording import Key, show, unknown


def check_baselines(
    file: SettingsFile, written: list[Any], search: dict[str, Searched], problems: list[str]
) -> list[Baseline]:
    """The baselines that are sound, complete; what is wrong with the others is added to `problems`."""
    baselines = []
    for index, entry in enumerate(written):
        key = ("enqueue", index)
        if not isinstance(entry, dict):
            problems.append(file.problem(key, f"must be `setting: value` pairs, got {show(entry)}"))
            continue
        prune = entry.get("prune", False)
        params = {field: value for field, value in entry.items() if field != "prune"}
        wrong = []
        if not isinstance(prune, bool):
            wrong.append(file.problem((*key, "prune"), f"must be true or false, got {show(prune)}"))
        wrong += _unsearched(file, key, params, search)
        wrong += _outside_search(file, key, params, search)
        wrong += _outside_field(file, key, params, search)
        if wrong:
            problems += wrong
        else:
            baselines.append(Baseline(params=_complete(params, search), prune=prune))
    return baselines


def _complete(params: dict[str, Value], search: dict[str, Searched]) -> dict[str, Value]:
    """With defaults where they are left out, and without what does not apply."""
    defaults = {field: TrainConfig.model_fields[field].default for field in search}
    return conditions.given(search, defaults | params)


def _unsearched(
    file: SettingsFile, key: Key, params: dict[str, Value], search: dict[str, Searched]
) -> list[str]:
    asked = file.values.get("search")
    wrong = [field for field in params if not isinstance(asked, dict) or field not in asked]
    return [
        file.problem((*key, field), "is not searched; a baseline gives values for searched settings only.")
        if field in TrainConfig.model_fields
        else file.problem((*key, field), unknown(field, [*search, "prune"]))
        for field in wrong
    ]


def _outside_search(
    file: SettingsFile, key: Key, params: dict[str, Value], search: dict[str, Searched]
) -> list[str]:
    problems = []
    complete = _complete(params, search)
    for field, searched in search.items():
        if field not in complete:
            if field in params and searched.when:
                needs = " and ".join(f"{other} {_either(values)}" for other, values in searched.when.items())
                sentence = f"does not matter here, only with {needs}; remove it."
                problems.append(file.problem((*key, field), sentence))
            continue
        value = params.get(field, TrainConfig.model_fields[field].default)
        if not searched.holds(value):
            said = (
                "must lie inside the search"
                if field in params
                else "is left out and its default is outside the search"
            )
            sentence = f"{said}, got {show(value)}; change it or the search."
            causes: list[Key] = [(*key, field) if field in params else key, ("search", field)]
            problems.append(file.problem((*key, field), sentence, causes=causes))
    return problems


def _either(values: list[Value]) -> str:
    return " or ".join(show(value) for value in values)


def _outside_field(
    file: SettingsFile, key: Key, params: dict[str, Value], search: dict[str, Searched]
) -> list[str]:
    """What could be no trial's value, where the search is too wrong to say so, or offers it itself."""
    problems = []
    for field, value in params.items():
        error = field in TrainConfig.model_fields and field_error(field, value)
        if error and (field not in search or search[field].holds(value)):
            problems.append(file.problem((*key, field), error))
    return problems
