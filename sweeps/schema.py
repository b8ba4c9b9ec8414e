"""The JSON Schema of a space file, for editors: `python -m sweeps.schema` prints what lies beside the spaces.

It says less than the first gate, which also knows what goes with what; whatever passes the gate is valid.
"""

import json
from typing import Any

from pydantic.json_schema import models_json_schema

from sweeps.search import KINDS
from sweeps.space_file import COSTS, NAME, SECTIONS
from wgangp.config import TrainConfig, is_searchable

Schema = dict[str, Any]
_REF = "#/$defs/{model}"


def schema() -> Schema:
    """The schema, as JSON values."""
    models = [*SECTIONS.values(), *KINDS.values(), TrainConfig]
    _, found = models_json_schema([(model, "validation") for model in models], ref_template=_REF)
    definitions = {name: _bare(each) for name, each in found["$defs"].items()}
    train = definitions.pop(TrainConfig.__name__)
    fields: Schema = {name: _with_unit(field) for name, field in train["properties"].items()}
    searched = {name: field for name, field in fields.items() if is_searchable(name)}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A search space of gp-sweep",
        "type": "object",
        "additionalProperties": False,
        "required": ["search"],
        "properties": {
            "name": {"type": "string", "pattern": f"^{NAME}$"},
            "search": {
                "description": "what the sampler proposes",
                **_object({name: _searches(name, field) for name, field in searched.items()}),
                "minProperties": 1,
            },
            "enqueue": {
                "description": "baselines, tried first",
                "type": ["array", "null"],
                "items": _object({**searched, "prune": {"type": "boolean", "default": False}}),
            },
            "train": {"description": "what all trials share", **_object(fields, "null")},
            "compare": {
                "description": "costs that the report weighs the FID against",
                "type": ["array", "null"],
                "items": {"enum": list(COSTS)},
                "uniqueItems": True,
            },
            **{
                key: {"anyOf": [{"$ref": _REF.format(model=model.__name__)}, {"type": "null"}]}
                for key, model in SECTIONS.items()
            },
        },
        "$defs": definitions,
    }


def _searches(name: str, field: Schema) -> Schema:
    """How a field may be searched: what is no number by choices only."""
    whole = TrainConfig.model_fields[name].annotation is int
    kinds = [kind for kind in KINDS if kind == "categorical" or not (whole and kind == "float")]
    options = [{"$ref": _REF.format(model=KINDS[kind].__name__)} for kind in kinds]
    return {"description": field["description"], "anyOf": options}


def _object(properties: Schema, *other_types: str) -> Schema:
    return {"type": ["object", *other_types], "additionalProperties": False, "properties": properties}


def _with_unit(field: Schema) -> Schema:
    unit = f" [{field.pop('unit')}]" if "unit" in field else ""
    field.pop("searchable", None)
    return field | {"description": field["description"] + unit}


def _bare(schema: Any) -> Any:
    """Without the titles that pydantic makes of names, and without a model's docstring for Python."""
    if isinstance(schema, list):
        return [_bare(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    kept = {key: _bare(value) for key, value in schema.items() if not (key == "title" and type(value) is str)}
    if schema.get("type") == "object" and "properties" in schema:
        kept.pop("description", None)
    return kept


if __name__ == "__main__":
    print(json.dumps(schema(), indent=2))
