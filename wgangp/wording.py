"""How a mistake is said: what must hold, what was found. Used by all that checks settings."""

import difflib
from collections.abc import Iterable, Sequence
from typing import Any

Key = tuple[str | int, ...]


class Clash(ValueError):
    """A rule between several settings that does not hold; raised by the validators of pydantic models."""

    def __init__(self, message: str, *, fields: Sequence[str]) -> None:
        super().__init__(message)
        self.fields = fields


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


def count(number: int, noun: str) -> str:
    """`1 trial`, `2 trials`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def show(value: Any) -> str:
    """A value as a person wrote it, short."""
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return str(value).lower()
    try:
        text = repr(value)
    except ValueError:  # Python writes no number of more than 4,300 digits
        return "a number of thousands of digits"
    return text if len(text) <= 60 else f"{text[:57]}..."


def printable(name: str) -> str:
    """A name of the file system in one line, whatever it is made of."""
    text = name.encode("utf-8", "backslashreplace").decode()
    return text if text.isprintable() else ascii(text)


def dotted(key: Key) -> str:
    """`("enqueue", 0, "gp_weight")` as `enqueue[0].gp_weight`."""
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in key).removeprefix(".")


_TRACE = ("Graph execution error:", "Detected at node", "File ", "Stack trace for op", "[[{{node", "<frozen")
"""What lines begin with in which TensorFlow says where in its graph an error arose."""


def error_words(error: BaseException) -> str:
    """An error in one line: its type, and what it says but for traces of TensorFlow's graphs."""
    lines = [line.strip() for line in str(error).splitlines()]
    said = [line for line in lines if not line.startswith(_TRACE)] or lines
    return " ".join(f"{type(error).__name__}: {' '.join(said)}".split())
