"""Deciding, answering and attesting."""

import json
from collections.abc import Mapping
from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from runs.forms.base import Styled, Text
from runs.forms.schema import JsonValue, schema_fields, values_of
from runs.queries.display import hidden_in, visible


class Confirmed(Styled):
    """A yes; where the risk is high, only with the name of the tool typed."""

    digest = forms.CharField(widget=forms.HiddenInput)
    confirm = forms.CharField(required=False)

    def __init__(self, data: Any = None, *, confirm: str = "", **options: Any) -> None:
        """`confirm` is the name that must be typed; empty where none must."""
        super().__init__(data, **options)
        self.must_be = confirm

    def clean_confirm(self) -> str:
        """The name, exactly."""
        typed = str(self.cleaned_data["confirm"])
        if typed.strip() == self.must_be or not self.must_be:
            return typed
        told = _("The risk is high: type {name} to approve.")
        raise forms.ValidationError(str(told).format(name=self.must_be))


class Approve(Confirmed):
    """A yes to the bytes that were shown."""

    why = Text(label=_("Note, optional"), required=False, rows=1)


class Reject(Styled):
    """A no, with its reason and what then becomes of the run."""

    digest = forms.CharField(widget=forms.HiddenInput)
    why = Text(label=_("Reason; the agent reads it"), error_messages={"required": _("Say why, in a few words.")})
    then = forms.ChoiceField(
        label=_("Then"), initial="continue", widget=forms.RadioSelect,
        choices=[
            ("continue", _("Tell the agent and go on: it may propose something else.")),
            ("stop", _("Stop the run: it is cancelled. Finished calls stay as they are.")),
        ],
    )  # fmt: skip


class Edit(Confirmed):
    """Other arguments for the same call: one field per property, or the whole as JSON."""

    mode = forms.ChoiceField(
        choices=[("fields", "fields"), ("json", "json")], widget=forms.HiddenInput, initial="fields"
    )
    why = Text(label=_("Why, optional; it goes into the record"), required=False, rows=1)

    def __init__(self, schema: Mapping[str, Any], values: Mapping[str, Any], data: Any = None, **options: Any) -> None:
        """`schema` is the tool's, `values` are the arguments as proposed."""
        initial = options.pop("initial", {}) | {"json": json.dumps(values, indent=2, ensure_ascii=False)}
        super().__init__(data, initial=initial, **options)
        self.typed = schema_fields(schema, values, "arg_")
        self.fields |= self.typed
        self.fields["json"] = Text(label=_("Arguments as JSON"), required=False, rows=8)
        if self.mode_now == "json":
            for field in self.typed.values():
                field.required = False
        self.hidden = any(hidden_in(visible(v)) for v in values.values() if isinstance(v, str))

    @property
    def mode_now(self) -> str:
        """fields or json, as posted."""
        return str(self.data.get("mode", "fields")) if self.is_bound else "fields"

    @property
    def properties(self) -> list[forms.BoundField]:
        """The fields of the schema."""
        return [self[name] for name in self.typed]

    def arguments(self) -> str:
        """The JSON text of all arguments."""
        if self.cleaned_data["mode"] == "json":
            return str(self.cleaned_data["json"])
        return json.dumps(values_of(self.typed, self.cleaned_data, "arg_"), ensure_ascii=False)


class Answer(Styled):
    """The answer to an agent's question, by the schema that it gave."""

    def __init__(self, schema: Any, data: Any = None) -> None:
        """A schema that is no object of properties is answered as text, or as JSON."""
        super().__init__(data)
        schema = schema if isinstance(schema, dict) else {}
        self.typed = schema_fields(schema, {}, "answer_")
        plain = not schema or schema.get("type") == "string"
        if not self.typed:
            kind = Text if plain else JsonValue
            self.fields["answer"] = kind(label=_("Answer") if plain else _("Answer as JSON"))
        self.fields |= self.typed
        for field in self.fields.values():
            field.widget.attrs.setdefault("class", "input")

    def given(self) -> Any:
        """The JSON value of the answer."""
        if not self.typed:
            return self.cleaned_data["answer"]
        return values_of(self.typed, self.cleaned_data, "answer_")


class Attest(Styled):
    """What a person found out about an unknown effect."""

    verdict = forms.ChoiceField(
        choices=[("happened", ""), ("not_happened", ""), ("again", "")],
        error_messages={"required": _("Choose what happened."), "invalid_choice": _("Choose what happened.")},
    )
    reference = forms.CharField(label=_("The remote's number of it, if it happened"), required=False, max_length=200)
    why = Text(
        label=_("How do you know?"), help_text=_("Where you looked and what you saw. It goes into the record."),
        error_messages={"required": _("Say how you know: it goes into the record.")},
    )  # fmt: skip
