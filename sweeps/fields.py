"""`--fields`: every setting of a training run as a line of text."""

from typing import Any

from wgangp.config import TrainConfig, is_searchable

_HEAD = ("setting", "default", "unit", "values", "search", "meaning")


def lines() -> list[str]:
    """A table, headings first; `fixed` is what a sweep may not search, as its trials would not compare."""
    described = TrainConfig.model_json_schema()["properties"]
    rows = [
        (
            field,
            written(info.default),
            described[field].get("unit", ""),
            _values(described[field]),
            "yes" if is_searchable(field) else "fixed",
        )
        for field, info in TrainConfig.model_fields.items()
    ]
    widths = [max(len(row[column]) for row in (_HEAD, *rows)) for column in range(len(rows[0]))]
    meanings = [_HEAD[-1], *(str(info.description) for info in TrainConfig.model_fields.values())]
    return [
        "  ".join([*(cell.ljust(width) for cell, width in zip(row, widths, strict=False)), meaning])
        for row, meaning in zip((_HEAD, *rows), meanings, strict=True)
    ]


def written(value: Any) -> str:
    """A value as YAML says it."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list):
        return f"[{', '.join(map(written, value))}]"
    return f"{value:g}".replace("e+0", "e") if isinstance(value, float) else str(value)


def _values(schema: dict[str, Any]) -> str:
    """What a field may be: `> 0, <= 1`, `adam | sgd`, ..."""
    if "anyOf" in schema:
        return " | ".join(_values(option) for option in schema["anyOf"])
    if "enum" in schema:
        return " | ".join(map(written, schema["enum"]))
    if "items" in schema:
        return f"list of {_values(schema['items'])}"
    signs = {"exclusiveMinimum": "> ", "minimum": ">= ", "exclusiveMaximum": "< ", "maximum": "<= "}
    ends = [f"{sign}{written(schema[bound])}" for bound, sign in signs.items() if bound in schema]
    kinds = {"integer": "whole", "number": "real", "boolean": "true | false", "string": "text"}
    kind = kinds.get(schema.get("type", "anything"), str(schema.get("type", "anything")))
    return ", ".join([*([kind] if not ends or kind == "whole" else []), *ends])
