"""Fields from a JSON schema."""

import json
from collections.abc import Mapping
from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from runs.forms.base import Text
from runs.queries.display import visible

MANY = 24  # fields; a larger schema is edited as JSON


class JsonValue(Text):
    """Any JSON value as text."""

    def to_python(self, value: Any) -> Any:
        """Parsed; an empty field stays empty."""
        text = super().to_python(value)
        if not text.strip():
            return ""
        try:
            return json.loads(text)
        except json.JSONDecodeError as error:
            told = _("This is not JSON: {what} at character {where}.")
            raise forms.ValidationError(str(told).format(what=error.msg, where=error.pos)) from error

    def prepare_value(self, value: Any) -> Any:
        """Show what was typed, else the value as JSON."""
        return value if isinstance(value, str) else json.dumps(value, indent=2, ensure_ascii=False)


class Flag(forms.TypedChoiceField):
    """True or false, never by a missing tick."""

    def __init__(self, **options: Any) -> None:
        """A choice of two words."""
        super().__init__(
            choices=[("true", _("true")), ("false", _("false"))],
            coerce=lambda v: v == "true",
            empty_value=None,
            **options,
        )

    def prepare_value(self, value: Any) -> Any:
        """The word of a stored value."""
        return {True: "true", False: "false"}.get(value, value) if isinstance(value, bool) else value


def schema_fields(schema: Mapping[str, Any], values: Mapping[str, Any], prefix: str) -> dict[str, forms.Field]:
    """A field per property of an object schema; what is not plain is edited as JSON."""
    required = set(schema.get("required", []))
    properties = schema.get("properties")
    if not isinstance(properties, dict) or len(properties) > MANY:
        return {}
    return {
        f"{prefix}{name}": _field(name, about if isinstance(about, dict) else {}, values.get(name), name in required)
        for name, about in properties.items()
    }


def _field(name: str, about: Mapping[str, Any], value: Any, required: bool) -> forms.Field:
    options: dict[str, Any] = {
        "label": visible(name),
        "required": required, "initial": value, "help_text": visible(str(about.get("description", ""))),
    }  # fmt: skip
    choices = [about["const"]] if "const" in about else about.get("enum")
    if isinstance(choices, list) and choices and all(isinstance(c, str) for c in choices):
        unset = [] if value in choices else [("", _("Choose…"))]  # nothing is chosen for a person
        return forms.ChoiceField(choices=[*unset, *((c, visible(c)) for c in choices)], **options)
    match about.get("type"):
        case "string":
            long = about.get("maxLength", 0) > 200 or (isinstance(value, str) and ("\n" in value or len(value) > 80))
            return Text(rows=4, **options) if long else forms.CharField(strip=False, **options)
        case "integer":
            return forms.IntegerField(**options)
        case "boolean":
            return Flag(**options)
    return JsonValue(**options)


def values_of(fields: Mapping[str, forms.Field], data: Mapping[str, Any], prefix: str) -> dict[str, Any]:
    """The object that the fields make; what is not required and left empty is left out."""
    found = {name.removeprefix(prefix): data.get(name) for name in fields}
    return {k: v for k, v in found.items() if fields[prefix + k].required or v not in ("", None)}
