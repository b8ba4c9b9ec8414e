"""The first gate: a space file's text, checked whole, every mistake reported at once with its line."""

import re
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from sweeps.search import KINDS, Choices, FloatRange, Searched, Value
from sweeps.space import Baseline, Objective, Pruner, Resources, Sampler, Space, Study, Sweep
from wgangp.config import TrainConfig, field_error, is_multiple, is_searchable
from wgangp.errors import UserError
from wgangp.settings_file import Key, SettingsFile, explain, read, show, unknown


def load(path: Path, *, overrides: list[str] | None = None) -> Space:
    """Read and check a space file.

    Raises:
        UserError: with every mistake found, one line each.
    """
    return check(read(path, overrides=overrides or []), default_name=path.stem)


def check_unchanged(given: Space, frozen: Space) -> None:
    """Hold a space file against the one its sweep was started with; only `sweep.trials` may differ.

    Raises:
        UserError: with a line for each key that differs.
    """
    there, here = _flat(frozen.values()), _flat(given.values())
    problems = [
        given.source.problem(
            key, f"must be {show(there.get(key))} as the sweep was started with, got {show(here.get(key))}"
        )
        for key in there | here
        if there.get(key) != here.get(key) and key != ("sweep", "trials")
    ]
    if problems:
        raise UserError(*problems, "Start a new sweep to change settings; only --trials can grow.")


def _flat(values: Any, key: Key = ()) -> dict[Key, Any]:
    if isinstance(values, dict):
        return {k: v for name, value in values.items() for k, v in _flat(value, (*key, name)).items()}
    if isinstance(values, list):
        return {k: v for index, value in enumerate(values) for k, v in _flat(value, (*key, index)).items()}
    return {key: values}


SECTIONS: dict[str, Any] = {
    "objective": Objective,
    "sampler": Sampler,
    "pruner": Pruner,
    "sweep": Sweep,
    "resources": Resources,
    "study": Study,
}
KEYS = ["name", "objective", "search", "enqueue", "train", "sampler", "pruner", "sweep", "resources", "study"]


def check(file: SettingsFile, *, default_name: str) -> Space:
    """Turn the values of a space file into a `Space`, or raise a UserError with all that is wrong."""
    problems = [file.problem((key,), unknown(key, KEYS)) for key in file.values if key not in KEYS]
    name = file.values.get("name", default_name)
    if not isinstance(name, str) or not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}", name):
        problems.append(
            file.problem(("name",), f"must be letters, digits, '-', '_' or '.', 64 at most, got {show(name)}")
        )
    parts: dict[str, Any] = {}
    for key, model in SECTIONS.items():
        try:
            parts[key] = TypeAdapter(model).validate_python(file.values.get(key) or {})
        except ValidationError as error:
            problems += explain(error, file, prefix=(key,), known=model.model_fields)
    search = _search(file, problems)
    train = _train(file, search, problems)
    baselines = _baselines(file, search, problems)
    if train is not None and "pruner" in parts:
        _check_rung(file, train, parts["pruner"], problems)
    if "sweep" in parts and parts["sweep"].trials < len(baselines):
        sentence = f"must be at least the {len(baselines)} baselines in enqueue, got {parts['sweep'].trials}"
        problems.append(file.problem(("sweep", "trials"), sentence))
    if problems:
        raise UserError(*problems)
    return Space(name=name, search=search, enqueue=baselines, train=train or {}, source=file, **parts)


def _mapping(file: SettingsFile, key: str, problems: list[str]) -> dict[str, Any]:
    value = file.values.get(key)
    if value is None:
        return {}
    if not isinstance(value, dict):
        problems.append(file.problem((key,), f"must be `setting: value` lines, got {show(value)}"))
        return {}
    return value


def _search(file: SettingsFile, problems: list[str]) -> dict[str, Searched]:
    written = _mapping(file, "search", problems)
    if not written and file.values.get("search") in (None, {}):
        problems.append(file.problem(("search",), "must name at least one setting to search."))
    search: dict[str, Searched] = {}
    for field, value in written.items():
        key = ("search", field)
        if field not in TrainConfig.model_fields:
            problems.append(file.problem(key, unknown(field, TrainConfig.model_fields)))
        elif not is_searchable(field):
            problems.append(
                file.problem(key, "cannot be searched, trials would not compare; fix it under train.")
            )
        elif not isinstance(value, dict) or value.get("type") not in KINDS:
            kind = value.get("type") if isinstance(value, dict) else value
            problems.append(
                file.problem((*key, "type"), f"must be one of {', '.join(KINDS)}, got {show(kind)}")
            )
        else:
            model = KINDS[value["type"]]
            try:
                found = model.model_validate(value)
            except ValidationError as error:
                problems += explain(error, file, prefix=key, known=model.model_fields)
            else:
                search[field] = found
                problems += _outside_field(file, field, found)
    return search


def _outside_field(file: SettingsFile, field: str, searched: Searched) -> list[str]:
    if isinstance(searched, FloatRange) and TrainConfig.model_fields[field].annotation is int:
        return [file.problem(("search", field, "type"), "must be int for a whole number, got 'float'")]
    names = ["choices"] * len(searched.choices) if isinstance(searched, Choices) else ["low", "low", "high"]
    if isinstance(searched, FloatRange):
        names = ["low", "high"]
    found = [(name, field_error(field, value)) for name, value in zip(names, searched.ends(), strict=True)]
    unique = dict.fromkeys((name, error) for name, error in found if error)
    return [file.problem(("search", field, name), error) for name, error in unique]


def _train(file: SettingsFile, search: dict[str, Searched], problems: list[str]) -> dict[str, Value] | None:
    train = _mapping(file, "train", problems)
    for field in train:
        if field in (file.values.get("search") or {}):
            problems.append(file.problem(("train", field), "stands in search too; remove one of the two."))
    try:
        TrainConfig(**train)
    except ValidationError as error:
        problems += explain(error, file, prefix=("train",), known=TrainConfig.model_fields)
        return None
    except TypeError:  # a key that is no text
        problems.append(file.problem(("train",), "must have words as keys."))
        return None
    return train


def _baselines(file: SettingsFile, search: dict[str, Searched], problems: list[str]) -> list[Baseline]:
    written = file.values.get("enqueue") or []
    if not isinstance(written, list):
        problems.append(file.problem(("enqueue",), f"must be a list of settings, got {show(written)}"))
        return []
    baselines = []
    for index, entry in enumerate(written):
        key = ("enqueue", index)
        if not isinstance(entry, dict):
            problems.append(file.problem(key, f"must be `setting: value` pairs, got {show(entry)}"))
            continue
        prune = entry.get("prune", False)
        if not isinstance(prune, bool):
            problems.append(file.problem((*key, "prune"), f"must be true or false, got {show(prune)}"))
            prune = False
        params = {field: value for field, value in entry.items() if field != "prune"}
        problems += _unsearched(file, key, params, search)
        for field, searched in search.items():
            written_out = field in params
            value = params.setdefault(field, TrainConfig.model_fields[field].default)
            if not searched.holds(value):
                said = (
                    "must lie inside the search"
                    if written_out
                    else "is left out and its default is outside the search"
                )
                problems.append(
                    file.problem((*key, field), f"{said}, got {show(value)}; change it or the search.")
                )
        baselines.append(Baseline(params=params, prune=prune))
    return baselines


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


def _check_rung(file: SettingsFile, train: dict[str, Value], pruner: Pruner, problems: list[str]) -> None:
    config = TrainConfig(**train)  # type: ignore[arg-type]
    rung, key = pruner.first_rung_kimg, ("pruner", "first_rung_kimg")
    if rung is None:
        return
    if not is_multiple(rung, config.tick_kimg):
        sentence = f"must be a multiple of tick_kimg ({config.tick_kimg:g}), got {rung:g}"
        problems.append(file.problem(key, sentence))
    if rung > config.budget_kimg:
        problems.append(
            file.problem(key, f"must be at most budget_kimg ({config.budget_kimg:g}), got {rung:g}")
        )
