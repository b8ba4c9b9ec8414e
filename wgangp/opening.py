"""Which run `wgangp.train` is to make: a new one, from a file or a sweep's winner, or one that exists."""

import sys
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from wgangp import outside, settings_file
from wgangp.config import TrainConfig
from wgangp.errors import UserError
from wgangp.run_folder import Run
from wgangp.settings_file import SettingsFile, explain


def new(settings: Path | None, overrides: list[str], *, out: Path, go_on: bool) -> Run:
    """A run that does not exist yet; nothing is made.

    Args:
        settings: YAML of settings, such as a sweep's best.yaml; None: only `overrides`.
        overrides: `key=value`.
        out: folder of the run's folder.
        go_on: from the winner's weights.

    Raises:
        UserError: a mistake in the settings, or there is nothing to go on from.
    """
    if settings is None and not overrides:
        raise UserError("Give a settings file, for example best.yaml, or --set key=value; see --help.")
    if settings is None:
        file = settings_file.parse("{}", name="--set", overrides=overrides)
    else:
        file = settings_file.read(settings, overrides=overrides)
    features = settings.parent / "features" if settings and "from" in file.values else None
    if features is not None and not (features / "features.json").exists():
        print(f"warning: {features} is gone, so FID is not that of the sweep", file=sys.stderr)
        features = None
    config = config_of(file, features)
    taken = [int(path.name[6:]) for path in out.glob("train-*") if path.name[6:].isdigit()]
    before = _checkpoint_before(file, config, features) if go_on else None
    return Run(config, out / f"train-{max(taken, default=0) + 1:04d}", features, before)


def again(folder: Path) -> Run:
    """The run in this folder, with the settings it was started with."""
    features = folder / "features"
    return Run(config_of(settings_file.read(folder / "settings.yaml"), features), folder, features)


def config_of(file: SettingsFile, features: Path | None = None) -> TrainConfig:
    """The settings in a file; paths to what a sweep froze lead to its `features`.

    Raises:
        UserError: every mistake in it, with its line.
    """
    origin = file.values.get("from")
    if isinstance(origin, dict):
        print(", ".join(f"{key} {value}" for key, value in origin.items() if key != "features_sha256"))
    values: dict[str, Any] = {key: value for key, value in file.values.items() if key != "from"}
    for field in outside.FIELDS:
        if field in values:
            values[field] = outside.absolute(field, values[field], file=file, key=(field,), frozen=features)
    try:
        return TrainConfig(**values).resolved()
    except ValidationError as error:
        raise UserError(*explain(error, file, known=TrainConfig.model_fields)) from None


def _checkpoint_before(file: SettingsFile, config: TrainConfig, features: Path | None) -> Path:
    """The winner's last checkpoint, from which the run is to go on."""
    origin = file.values.get("from")
    name = origin.get("checkpoint") if isinstance(origin, dict) else None
    if not name or features is None:
        raise UserError(f"--continue: goes with a sweep's best.yaml, in its place; {file.name} is none.")
    path = features.parent / str(name)
    if not (path / "manifest.json").exists():
        raise UserError(f"--continue: the winner's checkpoint is gone: {path}. Train it anew without.")
    if config.lr_schedule != "constant":
        raise UserError(
            f"--continue: goes with lr_schedule: constant, got {config.lr_schedule}: its rates have come to 0"
            " by the end of the budget. Train it anew with a longer one."
        )
    return path
