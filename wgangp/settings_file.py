"""YAML files and `--set key=value` read into plain values that still know where they were written.

Used for space files and for the settings of a single run. Values are plain Python; `where` gives the
file and line of any key, so that a mistake is reported at the line that holds it.
"""

import os
import re
import stat
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import ValidationError
from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from wgangp import files
from wgangp.errors import UserError
from wgangp.wording import Clash, Key, dotted, sentence, show

MAX_BYTES = 50_000
"""A settings file is a page of text; anything larger is a mistake (a data file, a log) and slow to read."""

MAX_DEPTH = 50
"""Brackets that may stand one inside the other; the time YAML takes grows with the square of their number."""


@dataclass(frozen=True)
class SettingsFile:
    """Values of one file with the overrides applied."""

    name: str
    values: dict[str, Any]
    lines: Mapping[Key, int] = field(default_factory=dict)
    overrides: Mapping[Key, str] = field(default_factory=dict)
    folder: Path = Path()

    def named_path(self, key: Key, text: str) -> str:
        """Absolute path that the value `text` of `key` names.

        A relative one is beside this file; of an override, in the working folder.
        """
        overridden = any(key[:length] in self.overrides for length in range(1, len(key) + 1))
        folder = Path() if overridden else self.folder
        return os.path.abspath(folder / os.path.expanduser(text))

    def named_file(self, key: Key, text: str, *, needed: bool = True) -> str:
        """As `named_path`, of a file.

        Raises:
            UserError: it is needed, and there is no such file.
        """
        path = self.named_path(key, text)
        if needed and not os.path.isfile(path):
            raise UserError(self.problem(key, f"must be a file, got {path}. Check the path."))
        return path

    def where(self, *key: str | int) -> str:
        """Where `key`, or the innermost part of it that is written, stands: `gp.yaml:9` or `--set a.b=1`.

        An override below `key` counts as writing it.
        """
        for length in range(len(key), 0, -1):
            part = key[:length]
            override = self.overrides.get(part)
            if override is None and (length == len(key) or part not in self.lines):
                below = (text for path, text in self.overrides.items() if path[:length] == part)
                override = next(below, None)
            if override is not None:
                return f"--set {override}"
            if part in self.lines:
                return f"{self.name}:{self.lines[part]}"
        return self.name

    def problem(self, key: Key, sentence: str, *, causes: Iterable[Key] = ()) -> str:
        """One complete line: `gp.yaml:9: search.n_critic: <sentence>`.

        `causes`: keys that together break a rule. The line is that of the first; an override goes before.
        """
        places = [self.where(*cause) for cause in causes if self._holds(cause)] or [self.where(*key)]
        place = next((place for place in places if place.startswith("--set ")), places[0])
        path = dotted(key)
        return f"{place}: {path}: {sentence}" if path else f"{place}: {sentence}"

    def _holds(self, key: Key) -> bool:
        value: Any = self.values
        for part in key:
            try:
                value = value[part]
            except (LookupError, TypeError):
                return False
        return True


def read(path: Path, *, overrides: Iterable[str] = ()) -> SettingsFile:
    """Read a YAML 1.2 file whose top level is a mapping, then apply `key.key=value` overrides.

    Raises:
        UserError: the file is absent, unreadable, no file at all, too large, not YAML, repeats a key, holds
            a tag or an alias, or an override has no `=`.
    """
    try:
        if not stat.S_ISREG(path.stat().st_mode) and not path.is_dir():
            raise UserError(f"{path}: must be a file, got a pipe or a device. Check the path.")
        with path.open("rb") as file:
            content = file.read(MAX_BYTES + 1)
        if len(content) > MAX_BYTES:
            raise UserError(f"{path.name}: must be at most {MAX_BYTES:,} bytes, is this a settings file?")
        text = content.decode("utf-8")
    except OSError as error:
        raise UserError(f"{path}: cannot be read: {error.strerror}. Check the path.") from error
    except UnicodeDecodeError as error:
        raise UserError(f"{path.name}: must be UTF-8 text: {error.reason} at byte {error.start}.") from error
    return parse(text, name=path.name, overrides=overrides, folder=path.parent)


def parse(text: str, *, name: str, overrides: Iterable[str] = (), folder: Path = Path()) -> SettingsFile:
    """As `read`, from text. `name` is what messages call it, `folder` where it stands."""
    values, lines = _load(text, name=name)
    if not isinstance(values, dict):
        raise UserError(f"{name}: must be `key: value` lines, got {show(values)}.")
    written: dict[Key, str] = {}
    problems = []
    for override in overrides:
        problem = _override(values, override, lines, written)
        if problem:
            problems.append(problem)
    if problems:
        raise UserError(*problems)
    return SettingsFile(name=name, values=values, lines=lines, overrides=written, folder=folder)


def dump(values: Mapping[str, Any], path: Path, *, comment: str = "") -> None:
    """Write `values` as YAML under a `# comment`."""
    yaml: Any = YAML(typ="safe", pure=True)
    yaml.default_flow_style = False
    yaml.sort_base_mapping_type_on_output = False  # keep the order of the models, a person reads this
    with files.whole(path) as file:
        file.write("".join(f"# {line}\n" for line in comment.splitlines()).encode())
        yaml.dump(dict(values), file)


def explain(
    error: ValidationError, file: SettingsFile, *, prefix: Key = (), known: Iterable[str] = ()
) -> list[str]:
    """Turn pydantic's findings into lines with file, line and key. `known`: allowed keys, for suggestions."""
    lines = []
    for entry in error.errors():
        key = (*prefix, *entry["loc"])
        clash = entry.get("ctx", {}).get("error")
        causes = [(*key, field) for field in clash.fields] if isinstance(clash, Clash) else []
        lines.append(file.problem(key, sentence(entry, known), causes=causes))
    return lines


def _load(text: str, *, name: str) -> tuple[Any, dict[Key, int]]:
    lines: dict[Key, int] = {}
    try:
        if _depth(text) > MAX_DEPTH:
            raise RecursionError
        node = YAML(typ="safe", pure=True).compose(text)
        if node is None:
            return None, lines
        _refuse_aliases(node, name=name)
        _take_keys_as_words(node, (), lines, name=name)
        return YAML(typ="safe", pure=True).constructor.construct_document(node), lines
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = f":{mark.line + 1}" if mark else ""
        what = " ".join(str(error.problem or error.context).split())
        raise UserError(f"{name}{line}: is not YAML: {what}.") from error
    except RecursionError:
        raise UserError(f"{name}: is nested too deeply for a settings file.") from None
    except (YAMLError, ValueError) as error:  # e.g. a control character, an impossible date
        raise UserError(f"{name}: is not YAML: {' '.join(str(error).split())}.") from error


def _depth(text: str) -> int:
    """How deep brackets stand one inside the other, quotes and comments aside: a guess, but a fast one."""
    deepest = depth = 0
    for letter in re.sub(r"'[^'\n]*'|\"[^\"\n]*\"|#.*", "", text):
        if letter in "[{":
            depth += 1
            deepest = max(deepest, depth)
        elif letter in "]}":
            depth = max(0, depth - 1)
    return deepest


def _refuse_aliases(root: Node, *, name: str) -> None:
    """A composed alias is the same node a second time; a few of them can stand for billions of values."""
    seen: set[int] = set()
    waiting = [root]
    while waiting:
        node = waiting.pop()
        if id(node) in seen:
            raise UserError(
                f"{name}:{node.start_mark.line + 1}: must not use YAML aliases (*name); write the value out."
            )
        seen.add(id(node))
        if isinstance(node, MappingNode):
            waiting += [part for pair in node.value for part in pair]
        elif isinstance(node, SequenceNode):
            waiting += node.value


def _take_keys_as_words(node: Node, key: Key, lines: dict[Key, int], *, name: str) -> None:
    """Note the line of every key, and have `1:` or `null:` read as a word, for an unknown setting at most."""
    if isinstance(node, MappingNode):
        for key_node, value_node in node.value:
            line = key_node.start_mark.line + 1
            if not isinstance(key_node, ScalarNode):
                raise UserError(f"{name}:{line}: must have words as keys, got a list or a mapping.")
            key_node.tag = "tag:yaml.org,2002:str"
            inner = (*key, str(key_node.value))
            lines[inner] = line
            _take_keys_as_words(value_node, inner, lines, name=name)
    elif isinstance(node, SequenceNode):
        for index, item in enumerate(node.value):
            lines[(*key, index)] = item.start_mark.line + 1
            _take_keys_as_words(item, (*key, index), lines, name=name)


def _override(
    values: dict[str, Any], override: str, lines: dict[Key, int], written: dict[Key, str]
) -> str | None:
    path, equals, text = override.partition("=")
    parts = path.split(".")
    if not equals or not all(parts):
        return f"--set {override}: must be key=value, for example --set train.width=32"
    try:
        value, _ = _load(text, name=f"--set {override}")
    except UserError as error:
        return str(error)
    target = values
    for part in parts[:-1]:
        if target.get(part) is None:
            target[part] = {}
        target = target[part]
        if not isinstance(target, dict):
            return f"--set {override}: {part} is a single value and has no keys below it"
    target[parts[-1]] = value
    places: list[dict[Key, Any]] = [lines, written]
    for table in places:  # what is replaced stands nowhere any more
        for replaced in [key for key in table if key[: len(parts)] == tuple(parts)]:
            del table[replaced]
    written[tuple(parts)] = override
    return None
