"""The first gate: a space file's text, checked whole, every mistake reported at once with its line."""

import re
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from sweeps.baselines import check_baselines
from sweeps.folder import SweepFolder
from sweeps.resources import Resources
from sweeps.search import KINDS, Choices, FloatRange, Searched, Value
from sweeps.space import Finalists, Objective, Pruner, Sampler, Space, Study, Sweep
from wgangp import frozen_code, outside
from wgangp.config import TrainConfig, field_error, is_searchable
from wgangp.errors import UserError
from wgangp.rules import clashes, is_multiple
from wgangp.settings_file import SettingsFile, explain, read
from wgangp.wording import Key, show, unknown


def load(path: Path, *, overrides: list[str] | None = None) -> Space:
    """Read and check a space file.

    Raises:
        UserError: with every mistake found, one line each.
    """
    return check(read(path, overrides=overrides or []), default_name=path.stem)


def check_unchanged(given: Space, frozen: dict[str, Any]) -> None:
    """Hold a space file against the `values` its sweep was started with; only `sweep.trials` may differ.

    And where Inception's graph was read: it is frozen itself. A setting that came into being since then is
    unchanged at its default.

    Raises:
        UserError: with a line for each key that differs.
    """
    there, here = _flat(frozen), _flat(given.values())
    models = SECTIONS | {"train": TrainConfig}
    defaults = {
        (section, field): info.default
        for section, model in models.items()
        for field, info in model.model_fields.items()
    }
    may_differ = {("sweep", "trials"), ("train", "inception")}
    may_differ |= {key for key, value in defaults.items() if key not in there and here.get(key) == value}
    may_differ -= {("train", "init_seed")}  # without one each trial has its own
    if given.sweep.seed != there["sweep", "seed"]:  # said once, not again for each seed that follows it
        may_differ |= {("train", seed) for seed in ("seed", "evaluation_seed") if seed not in given.train}
    problems = [
        given.source.problem(
            key, f"must be {show(there.get(key))} as the sweep was started with, got {show(here.get(key))}"
        )
        for key in there | here
        if there.get(key) != here.get(key) and key not in may_differ
    ]
    if problems:
        raise UserError(*problems, "Start a new sweep to change settings; only --trials can grow.")


def check_code_unchanged(folder: SweepFolder) -> None:
    """Hold the code that a space file names, as it is now, against the copies its sweep was started with.

    Raises:
        UserError: with a line for each that differs.
    """
    problems = [
        f"{code.path}: was changed since the sweep was started: its sha256 must be {code.sha256}. Start a new"
        " sweep to change it, or resume without --space: the sweep has its copy."
        for code in frozen_code.changed(frozen_code.read(folder.features))
    ]
    if problems:
        raise UserError(*problems)


def _flat(values: Any, key: Key = ()) -> dict[Key, Any]:
    if isinstance(values, dict):
        return {k: v for name, value in values.items() for k, v in _flat(value, (*key, name)).items()}
    if isinstance(values, list) and all(isinstance(value, dict) for value in values):
        return {k: v for index, value in enumerate(values) for k, v in _flat(value, (*key, index)).items()}
    return {key: values}


SECTIONS: dict[str, Any] = {
    "objective": Objective,
    "sampler": Sampler,
    "pruner": Pruner,
    "sweep": Sweep,
    "finalists": Finalists,
    "resources": Resources,
    "study": Study,
}
CLASHING = (
    *("n_critic", "batch_size", "tick_kimg", "budget_kimg"),
    *("run_eagerly", "jit_compile", "features", "inception", "scores"),
)
"""The fields that `clashes` is about."""
KEYS = [
    *("name", "objective", "search", "enqueue", "train", "sampler", "pruner"),
    *("sweep", "finalists", "resources", "study"),
]


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
        part = _part(file, (key,), model, _mapping(file, key, problems), problems)
        if part is not None:
            parts[key] = part
    search = _search_outside(file, _search(file, problems), problems)
    train = _train(file, problems)
    enqueued = file.values.get("enqueue")
    if enqueued is not None and not isinstance(enqueued, list):
        problems.append(file.problem(("enqueue",), f"must be a list of settings, got {show(enqueued)}"))
        enqueued = None
    enqueued = [_baseline_outside(file, index, entry, problems) for index, entry in enumerate(enqueued or [])]
    baselines = check_baselines(file, enqueued, search, problems)
    _check_between(file, search, parts.get("pruner"), problems)
    if "sweep" in parts and parts["sweep"].trials < len(enqueued):
        sentence = f"must be at least the {len(enqueued)} baselines in enqueue, got {parts['sweep'].trials}"
        causes: list[Key] = [("sweep", "trials"), ("enqueue",)]
        problems.append(file.problem(("sweep", "trials"), sentence, causes=causes))
    if problems:
        raise UserError(*problems)
    space = Space(name=name, search=search, enqueue=baselines, train=train, source=file, **parts)
    if problems := space.misfits():
        raise UserError(*problems)
    return space


def _mapping(file: SettingsFile, key: str, problems: list[str]) -> dict[str, Any]:
    value = file.values.get(key)
    if value is None or isinstance(value, dict):
        return value or {}
    problems.append(file.problem((key,), f"must be `setting: value` lines, got {show(value)}"))
    return {}


def _part(
    file: SettingsFile, key: Key, model: type[Any], values: dict[str, Any], problems: list[str]
) -> Any | None:
    """A model made of `values`; unknown ones are reported and left out, so that they hide nothing else."""
    known = {name: value for name, value in values.items() if name in model.model_fields}
    for name in values:
        if name not in known:
            problems.append(file.problem((*key, name), unknown(name, model.model_fields)))
    try:
        return model.model_validate(known)
    except ValidationError as error:
        problems += explain(error, file, prefix=key)
        return None


def _search(file: SettingsFile, problems: list[str]) -> dict[str, Searched]:
    written = _mapping(file, "search", problems)
    if not written and file.values.get("search") in (None, {}):
        problems.append(file.problem(("search",), "must name at least one setting to search."))
    search: dict[str, Searched] = {}
    for field, value in written.items():
        key = ("search", field)
        kind = value.get("type") if isinstance(value, dict) else value
        if field not in TrainConfig.model_fields:
            problems.append(file.problem(key, unknown(field, TrainConfig.model_fields)))
        elif not is_searchable(field):
            problems.append(
                file.problem(key, "cannot be searched, trials would not compare; fix it under train.")
            )
        elif not isinstance(value, dict) or not isinstance(kind, str) or kind not in KINDS:
            problems.append(
                file.problem((*key, "type"), f"must be one of {', '.join(KINDS)}, got {show(kind)}")
            )
        else:
            found = _part(file, key, KINDS[kind], value, problems)
            if found is not None:
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


def _train(file: SettingsFile, problems: list[str]) -> dict[str, Value]:
    train, asked = dict(_mapping(file, "train", problems)), _written(file, "search")
    for field in train:
        if field in asked:
            causes: list[Key] = [("train", field), ("search", field)]
            sentence = "stands in search too; remove one of the two."
            problems.append(file.problem(("train", field), sentence, causes=causes))
    for field in TrainConfig.model_fields:
        if field in train and (error := field_error(field, train[field])):
            problems.append(file.problem(("train", field), error))
    for field in train:
        if field not in TrainConfig.model_fields:
            problems.append(file.problem(("train", field), unknown(field, TrainConfig.model_fields)))
    for field in outside.FIELDS:
        if field in train:
            train[field] = _absolute(file, field, train[field], ("train", field), problems)
    return train


def _search_outside(
    file: SettingsFile, search: dict[str, Searched], problems: list[str]
) -> dict[str, Searched]:
    """With the choices made absolute that name something outside the file."""
    found = dict(search)
    for field, searched in search.items():
        if field in outside.FIELDS and isinstance(searched, Choices):
            choices = [
                _absolute(file, field, choice, ("search", field, "choices", place), problems)
                for place, choice in enumerate(searched.choices)
            ]
            found[field] = searched.model_copy(update={"choices": choices})
    return found


def _baseline_outside(file: SettingsFile, index: int, entry: Any, problems: list[str]) -> Any:
    """Likewise, of one of `enqueue`."""
    if not isinstance(entry, dict):
        return entry
    return {
        field: _absolute(file, field, value, ("enqueue", index, field), problems)
        for field, value in entry.items()
    }


def _absolute(file: SettingsFile, field: str, value: Value, key: Key, problems: list[str]) -> Value:
    """With what it names outside the file made absolute; in a sweep's own space, code and graph are kept."""
    own = SweepFolder(file.folder)
    try:
        return outside.absolute(
            field, value, file=file, key=key, frozen=own.features if own.has_features else None
        )
    except UserError as error:
        problems += error.problems
        return value


def _written(file: SettingsFile, key: str) -> dict[str, Any]:
    value = file.values.get(key)
    return value if isinstance(value, dict) else {}


def _check_between(
    file: SettingsFile, search: dict[str, Searched], pruner: Pruner | None, problems: list[str]
) -> None:
    """Rules between settings, held to the largest values that a trial may be given."""
    asked, largest = _written(file, "search"), _largest(file, search)
    for clash in clashes(largest):
        causes: list[Key] = [("search" if field in asked else "train", field) for field in clash.fields]
        key = next((cause for cause in causes if cause[0] == "search"), ("train",))
        problems.append(file.problem(key, str(clash), causes=[key, *causes] if key in causes else causes))
    rung = pruner.first_rung_kimg if pruner else None
    if rung is None:
        return
    tick, budget = largest.get("tick_kimg"), largest.get("budget_kimg")
    key = ("pruner", "first_rung_kimg")
    if tick is not None and not is_multiple(rung, tick):
        sentence = f"must be a multiple of tick_kimg ({tick:g}), got {rung:g}"
        problems.append(file.problem(key, sentence, causes=[key, ("train", "tick_kimg")]))
    if budget is not None and rung > budget:
        sentence = f"must be at most budget_kimg ({budget:g}), got {rung:g}"
        problems.append(file.problem(key, sentence, causes=[key, ("train", "budget_kimg")]))


def _largest(file: SettingsFile, search: dict[str, Searched]) -> dict[str, Any]:
    """The largest possible value of each setting that a rule is about, but for those that are wrong."""
    train, largest = _written(file, "train"), {}
    for field in CLASHING:
        if field in search:
            values = search[field].ends()
        elif field in _written(file, "search"):
            continue
        else:
            values = [train.get(field, TrainConfig.model_fields[field].default)]
        if not any(field_error(field, value) for value in values):
            largest[field] = max(values)  # type: ignore[type-var]
    return largest
