"""YAML files and `--set key=value` read into plain values that still know where they were written.

Used for space files and for the settings of a single run. Values are plain Python; `where` gives the
file and line of any key, so that a mistake is reported at the line that holds it.
"""

import difflib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import ValidationError
from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.nodes import MappingNode, Node, SequenceNode

from wgangp.errors import UserError

Key = tuple[str | int, ...]

MAX_BYTES = 1_000_000
"""A settings file is a page of text; anything larger is a mistake (a data file, a log)."""


@dataclass(frozen=True)
class SettingsFile:
    """Values of one file with the overrides applied."""

    name: str
    values: dict[str, Any]
    lines: Mapping[Key, int] = field(default_factory=dict)
    overrides: Mapping[Key, str] = field(default_factory=dict)

    def where(self, *key: str | int) -> str:
        """Where `key`, or the innermost part of it that is written, stands: `gp.yaml:9` or `--set a.b=1`."""
        for length in range(len(key), 0, -1):
            if key[:length] in self.overrides:
                return f"--set {self.overrides[key[:length]]}"
            if key[:length] in self.lines:
                return f"{self.name}:{self.lines[key[:length]]}"
        return self.name

    def problem(self, key: Key, sentence: str) -> str:
        """One complete line: `gp.yaml:9: search.n_critic: <sentence>`."""
        path = dotted(key)
        return f"{self.where(*key)}: {path}: {sentence}" if path else f"{self.where(*key)}: {sentence}"


def read(path: Path, *, overrides: Iterable[str] = ()) -> SettingsFile:
    """Read a YAML 1.2 file whose top level is a mapping, then apply `key.key=value` overrides.

    Raises:
        UserError: the file is absent, unreadable, too large, not YAML, repeats a key, holds a tag or an
            alias, or an override has no `=`.
    """
    try:
        if path.stat().st_size > MAX_BYTES:
            raise UserError(f"{path.name}: must be at most {MAX_BYTES:,} bytes, is this a settings file?")
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise UserError(f"{path}: cannot be read: {error.strerror}. Check the path.") from error
    except UnicodeDecodeError as error:
        raise UserError(f"{path.name}: must be UTF-8 text: {error.reason} at byte {error.start}.") from error
    return parse(text, name=path.name, overrides=overrides)


def parse(text: str, *, name: str, overrides: Iterable[str] = ()) -> SettingsFile:
    """As `read`, from text. `name` is what messages call it."""
    values, lines = _load(text, name=name)
    if not isinstance(values, dict):
        raise UserError(f"{name}: must be `key: value` lines, got {show(values)}.")
    written: dict[Key, str] = {}
    problems = []
    for override in overrides:
        problem = _override(values, override, written)
        if problem:
            problems.append(problem)
    if problems:
        raise UserError(*problems)
    return SettingsFile(name=name, values=values, lines=lines, overrides=written)


def dump(values: Mapping[str, Any], path: Path, *, comment: str = "") -> None:
    """Write `values` as YAML under a `# comment`, aside first and renamed: no half file is ever seen."""
    aside = path.with_name(f".{path.name}.new")
    with aside.open("w", encoding="utf-8") as stream:
        stream.writelines(f"# {line}\n" for line in comment.splitlines())
        yaml: Any = YAML(typ="safe", pure=True)
        yaml.default_flow_style = False
        yaml.sort_base_mapping_type_on_output = False  # keep the order of the models, a person reads this
        yaml.dump(dict(values), stream)
    aside.replace(path)


def explain(
    error: ValidationError, file: SettingsFile, *, prefix: Key = (), known: Iterable[str] = ()
) -> list[str]:
    """Turn pydantic's findings into lines with file, line and key. `known`: allowed keys, for suggestions."""
    return [file.problem((*prefix, *entry["loc"]), sentence(entry, known)) for entry in error.errors()]


def sentence(entry: Any, known: Iterable[str] = ()) -> str:
    """What must hold and what was found, from one entry of `ValidationError.errors()`."""
    kind, message = entry["type"], entry["msg"]
    if kind == "extra_forbidden":
        return unknown(str(entry["loc"][-1]), known)
    if kind == "missing":
        return "is required; add it."
    if kind == "value_error":
        return message.removeprefix("Value error, ")
    must = message.replace("Input should be", "must be", 1).replace(
        "Unable to interpret input as", "must be", 1
    )
    return f"{must}, got {show(entry['input'])}"


def unknown(key: str, known: Iterable[str]) -> str:
    """The sentence for a key nobody knows, with the nearest known one."""
    names = list(known)
    near = difflib.get_close_matches(key, names, n=1)
    return (
        f"unknown setting. Did you mean '{near[0]}'?"
        if near
        else f"unknown setting. Known: {', '.join(names)}."
    )


def show(value: Any) -> str:
    """A value as a person wrote it, short."""
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return str(value).lower()
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def dotted(key: Key) -> str:
    """`("enqueue", 0, "gp_weight")` as `enqueue[0].gp_weight`."""
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in key).removeprefix(".")


def _load(text: str, *, name: str) -> tuple[Any, dict[Key, int]]:
    try:
        node = YAML(typ="safe", pure=True).compose(text)
        lines: dict[Key, int] = {}
        if node is not None:
            _refuse_aliases(node, name=name)
            _collect_lines(node, (), lines)
        return YAML(typ="safe", pure=True).load(text), lines
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = f":{mark.line + 1}" if mark else ""
        what = " ".join(str(error.problem or error.context).split())
        raise UserError(f"{name}{line}: is not YAML: {what}.") from error
    except RecursionError:
        raise UserError(f"{name}: is nested too deeply for a settings file.") from None
    except (YAMLError, ValueError) as error:  # e.g. a control character, an impossible date
        raise UserError(f"{name}: is not YAML: {' '.join(str(error).split())}.") from error


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


def _collect_lines(node: Node, key: Key, lines: dict[Key, int]) -> None:
    if isinstance(node, MappingNode):
        for key_node, value_node in node.value:
            inner = (*key, str(key_node.value))
            lines[inner] = key_node.start_mark.line + 1
            _collect_lines(value_node, inner, lines)
    elif isinstance(node, SequenceNode):
        for index, item in enumerate(node.value):
            lines[(*key, index)] = item.start_mark.line + 1
            _collect_lines(item, (*key, index), lines)


def _override(values: dict[str, Any], override: str, written: dict[Key, str]) -> str | None:
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
    written[tuple(parts)] = override
    return None
