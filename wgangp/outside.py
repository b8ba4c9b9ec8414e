"""Settings that name something outside the file they stand in: data, code, Inception's graph.

What they name becomes absolute here, once, for space files and for `wgangp.train`: relative to the file that
names it, or, on the command line, to the working folder.
"""

import difflib
import os
from pathlib import Path
from typing import Any

from wgangp import frozen_code, user_code
from wgangp.config import DATASETS, NAMES
from wgangp.errors import UserError
from wgangp.settings_file import SettingsFile
from wgangp.wording import Key

FIELDS = ("dataset", "architecture", "features", "inception")


def absolute(field: str, value: Any, *, file: SettingsFile, key: Key, frozen: Path | None = None) -> Any:
    """`value` of `field`, which stands at `key` of `file`, with any path in it made absolute.

    Args:
        field: of `TrainConfig`; one that is not among `FIELDS` stays as it is, as does what is no text.
        value: as written.
        file: where it stands.
        key: at which place.
        frozen: the folder of a run that has begun: of what it keeps, graph and code, no file need be there.

    Raises:
        UserError: there is no such file, or no such function in it.
    """
    if field not in FIELDS or not isinstance(value, str):
        return value
    if field == "inception":
        return file.named_file(key, value, needed=frozen is None)
    if user_code.is_code(value):
        return _code(value, file, key, frozen)
    if field in NAMES or value in DATASETS:
        return value
    return _data(value, file, key)


def _code(value: str, file: SettingsFile, key: Key, frozen: Path | None) -> str:
    path = file.named_path(key, user_code.path_of(value))
    value = f"{path}:{value.rpartition(':')[2]}"
    if frozen is not None and value in frozen_code.read(frozen):
        return value
    try:
        return user_code.read(value).value
    except UserError as error:
        raise UserError(file.problem(key, str(error))) from error


def _data(value: str, file: SettingsFile, key: Key) -> str:
    path = file.named_path(key, value)
    if os.path.isdir(path) or (os.path.isfile(path) and path.endswith(".npz")):
        return path
    near = difflib.get_close_matches(value, DATASETS, n=1)
    if os.path.isfile(path):
        sentence = f"must be a folder, an .npz file or file.py:function, got the file {path}."
    elif near:
        sentence = f"unknown data set {value!r}. Did you mean '{near[0]}'?"
    else:
        sentence = (
            f"must be {', '.join(DATASETS)}, a folder of images, an .npz file or file.py:function;"
            f" there is no {path}."
        )
    raise UserError(file.problem(key, sentence))
