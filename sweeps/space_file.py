"""The first gate: a space file's text, checked whole, every mistake reported at once with its line."""

import importlib.util
import re
import sys
from pathlib import Path
from typing import Any, get_args

from pydantic import ValidationError

from sweeps import naming
from sweeps.baselines import check_baselines
from sweeps.conditions import check_conditions
from sweeps.resources import Resources
from sweeps.search import KINDS, Choices, FloatRange, Searched, Value
from sweeps.sections import Cost, Finalists, Objective, Pruner, Sampler, Study, Sweep
from sweeps.space import Space
from wgangp import outside
from wgangp.config import TrainConfig, field_error, is_searchable
from wgangp.errors import UserError
from wgangp.rules import clashes, is_multiple
from wgangp.settings_file import SettingsFile, explain, read
from wgangp.wording import Key, show, unknown

SHIPPED = Path(__file__).resolve().parent.parent / "search_spaces"


def load(path: Path, *, overrides: list[str] | None = None) -> Space:
    """Read and check a space file.

    Raises:
        UserError: with every mistake found, one line each.
    """
    return check(read(path, overrides=overrides or []), default_name=path.stem)


def find(name: str) -> Path:
    """A path, or a bare name in the working directory, then among the spaces that ship."""
    path, shipped = Path(name), SHIPPED / name
    return shipped if not path.exists() and path.name == name and shipped.exists() else path


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
    *("sweep", "finalists", "compare", "resources", "study"),
]
COSTS: tuple[Cost, ...] = get_args(Cost)
NAME = r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}"
"""A space's name: of a folder, an experiment, a registered model and its aliases, which have no dots."""
PACKAGES = {"gp": "torch", "cmaes": "cmaes"}
"""What samplers need beyond what is always installed."""


def check(file: SettingsFile, *, default_name: str) -> Space:
    """Turn the values of a space file into a `Space`, or raise a UserError with all that is wrong."""
    problems = [file.problem((key,), unknown(key, KEYS)) for key in file.values if key not in KEYS]
    name = file.values.get("name", default_name)
    if not isinstance(name, str) or not re.fullmatch(NAME, name):
        sentence = (
            f"must be letters, digits, '-' or '_', 64 at most (default: the file's name), got {show(name)}"
        )
        problems.append(file.problem(("name",), sentence))
    parts: dict[str, Any] = {}
    for key, model in SECTIONS.items():
        part = _part(file, (key,), model, _mapping(file, key, problems), problems)
        if part is not None:
            parts[key] = part
    search = naming.in_search(file, _search(file, problems), problems)
    problems += check_conditions(file, search)
    if "sampler" in parts:
        problems += _lacking(file, parts["sampler"])
    train = _train(file, problems)
    costs = _costs(file, problems)
    enqueued = file.values.get("enqueue")
    if enqueued is not None and not isinstance(enqueued, list):
        problems.append(file.problem(("enqueue",), f"must be a list of settings, got {show(enqueued)}"))
        enqueued = None
    enqueued = [
        naming.in_baseline(file, index, entry, problems) for index, entry in enumerate(enqueued or [])
    ]
    baselines = check_baselines(file, enqueued, search, problems)
    _check_between(file, search, parts.get("pruner"), problems)
    if "sweep" in parts and parts["sweep"].trials < len(enqueued):
        sentence = f"must be at least the {len(enqueued)} baselines in enqueue, got {parts['sweep'].trials}"
        causes: list[Key] = [("sweep", "trials"), ("enqueue",)]
        problems.append(file.problem(("sweep", "trials"), sentence, causes=causes))
    if problems:
        raise UserError(*problems)
    space = Space(
        name=name, search=search, enqueue=baselines, train=train, compare=costs, source=file, **parts
    )
    if problems := space.misfits():
        raise UserError(*problems)
    return space


def _lacking(file: SettingsFile, sampler: Sampler) -> list[str]:
    package = PACKAGES.get(sampler.name)
    if package is None or importlib.util.find_spec(package):
        return []
    sentence = (
        f"{sampler.name} needs the package {package}, which is not installed; install it:"
        f" {sys.executable} -m pip install {package}"
    )
    return [file.problem(("sampler", "name"), sentence)]


def _costs(file: SettingsFile, problems: list[str]) -> list[Cost]:
    found = file.values.get("compare")
    if found is None:
        return []
    if not isinstance(found, list) or any(cost not in COSTS or found.count(cost) > 1 for cost in found):
        problems.append(
            file.problem(("compare",), f"must be a list of {', '.join(COSTS)}, each once, got {show(found)}")
        )
        return []
    return found


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
            train[field] = naming.absolute(file, field, train[field], ("train", field), problems)
    return train


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
    tick, budget = largest.get("tick_kimg"), largest.get("budget_kimg")
    for name in ("first_rung_kimg", "patience_kimg"):
        kimg, key = getattr(pruner, name, None), ("pruner", name)
        if kimg is None:
            continue
        if tick is not None and not is_multiple(kimg, tick):
            sentence = f"must be a multiple of tick_kimg ({tick:g}), got {kimg:g}"
            problems.append(file.problem(key, sentence, causes=[key, ("train", "tick_kimg")]))
        if budget is not None and kimg > budget:
            sentence = f"must be at most budget_kimg ({budget:g}), got {kimg:g}"
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
