"""What a space file names outside itself, data, code and Inception's graph, made absolute where it stands."""

from typing import Any

from sweeps.folder import SweepFolder
from sweeps.search import Choices, Searched, Value
from wgangp import outside
from wgangp.errors import UserError
from wgangp.settings_file import SettingsFile
from wgangp.wording import Key


def in_search(file: SettingsFile, search: dict[str, Searched], problems: list[str]) -> dict[str, Searched]:
    """With the choices made absolute that name something outside the file."""
    found = dict(search)
    for field, searched in search.items():
        if field in outside.FIELDS and isinstance(searched, Choices):
            choices = [
                absolute(file, field, choice, ("search", field, "choices", place), problems)
                for place, choice in enumerate(searched.choices)
            ]
            found[field] = searched.model_copy(update={"choices": choices})
        if any(other in outside.FIELDS for other in searched.when or ()):
            when = {
                other: [
                    absolute(file, other, value, ("search", field, "when", other), problems)
                    for value in values
                ]
                for other, values in (searched.when or {}).items()
            }
            found[field] = found[field].model_copy(update={"when": when})
    return found


def in_baseline(file: SettingsFile, index: int, entry: Any, problems: list[str]) -> Any:
    """Likewise, of one of `enqueue`."""
    if not isinstance(entry, dict):
        return entry
    return {
        field: absolute(file, field, value, ("enqueue", index, field), problems)
        for field, value in entry.items()
    }


def absolute(file: SettingsFile, field: str, value: Value, key: Key, problems: list[str]) -> Value:
    """With what it names outside the file made absolute; in a sweep's own space, code and graph are kept."""
    own = SweepFolder(file.folder)
    try:
        return outside.absolute(
            field, value, file=file, key=key, frozen=own.features if own.has_features else None
        )
    except UserError as error:
        problems += error.problems
        return value
