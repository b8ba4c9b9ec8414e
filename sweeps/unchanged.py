"""The gate of a resume: a sweep goes on with the settings and the code that it was started with."""

from typing import Any

from sweeps.folder import SweepFolder
from sweeps.space import Space
from sweeps.space_file import SECTIONS
from wgangp import frozen_code
from wgangp.config import TrainConfig
from wgangp.errors import UserError
from wgangp.wording import Key, show


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
