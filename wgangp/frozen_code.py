"""The user's code as it was when a run began, kept beside its features; resumes run this copy and no other.

`code/` holds the files under their own names, `code.json` which setting each belongs to, and its sha256.
"""

import json
from pathlib import Path

from wgangp import files
from wgangp.errors import UserError
from wgangp.user_code import UserCode

_INDEX = "code.json"


def write(folder: Path, code: dict[str, UserCode]) -> None:
    """Keep code, given by setting, in `folder`."""
    index: dict[str, dict[str, str]] = {}
    texts: dict[str, str] = {}
    for value, each in code.items():
        name = each.path.name
        while texts.setdefault(name, each.text) != each.text:  # another file of the same name
            name = f"other_{name}"
        index[value] = {"file": name, "sha256": each.sha256}
    for name, text in texts.items():
        files.write(folder / "code" / name, text.encode())
    if index:
        files.write(folder / _INDEX, json.dumps(index, indent=2).encode())


def read(folder: Path) -> dict[str, UserCode]:
    """What `write` kept, by setting; nothing if there was none.

    Raises:
        UserError: it is damaged or was changed.
    """
    if not (folder / _INDEX).exists():
        return {}
    found = {}
    try:
        index = json.loads((folder / _INDEX).read_text())
        for value, entry in index.items():
            path = folder / "code" / entry["file"]
            found[value] = UserCode(value, path.read_bytes().decode())
            if found[value].sha256 != entry["sha256"]:
                raise UserError(
                    f"{path}: was changed: its sha256 must be {entry['sha256']}, got {found[value].sha256}."
                    " Put back what was there, or start a new sweep."
                )
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise UserError(f"{folder}: the kept code cannot be read: {error}. Put a copy back.") from error
    return found


def changed(code: dict[str, UserCode]) -> list[UserCode]:
    """Those whose own files are others now."""
    found = []
    for each in code.values():
        try:
            if each.path.read_bytes().decode() != each.text:
                found.append(each)
        except (OSError, ValueError):
            continue  # it is gone, and not needed
    return found
