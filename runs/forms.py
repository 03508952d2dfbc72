"""Forms of the pages. They read what was typed and keep it; whether it may be done is for the actions to say."""

import json
import uuid
from collections.abc import Mapping
from typing import Any

from django import forms
from django.contrib.auth.forms import AuthenticationForm, PasswordChangeForm
from django.utils.translation import gettext_lazy as _

from runs.queries.display import hidden_in, visible

MANY = 24  # fields; a larger schema is edited as JSON
MINUTE = 60_000


class Text(forms.CharField):
    """Text as it was typed, but for the line ends, which browsers make CRLF. Nothing is trimmed."""

    def __init__(self, *, rows: int = 3, **options: Any) -> None:
        """`rows` is the height of the field."""
        super().__init__(strip=False, widget=forms.Textarea(attrs={"rows": rows, "class": "input"}), **options)

    def to_python(self, value: Any) -> str:
        """CRLF back to LF."""
        return str(super().to_python(value)).replace("\r\n", "\n")


class Styled(forms.Form):
    """A form whose controls carry our class, and say when they are wrong."""

    def __init__(self, data: Any = None, **options: Any) -> None:
        """As a Django form, without the colon after labels."""
        super().__init__(data, **options)
        self.label_suffix = ""
        for field in self.fields.values():
            if not isinstance(field.widget, forms.CheckboxInput | forms.RadioSelect | forms.HiddenInput):
                field.widget.attrs.setdefault("class", "input")

    def full_clean(self) -> None:
        """Mark what is wrong for assistive software too."""
        super().full_clean()
        for name in self.errors:
            if name in self.fields:
                self.fields[name].widget.attrs |= {"aria-invalid": "true", "aria-describedby": f"id_{name}-error"}


class SignIn(AuthenticationForm):
    """Name and password."""

    def __init__(self, *args: Any, **options: Any) -> None:
        """Put our class on the controls."""
        super().__init__(*args, label_suffix="", **options)
        for field in self.fields.values():
            field.widget.attrs["class"] = "input"


class Password(PasswordChangeForm):
    """Old password and a new one, twice."""

    def __init__(self, *args: Any, **options: Any) -> None:
        """Put our class on the controls."""
        super().__init__(*args, label_suffix="", **options)
        for field in self.fields.values():
            field.widget.attrs["class"] = "input"


class Start(Styled):
    """Start a run of one agent: its goal, inputs, facts and limits."""

    request_key = forms.CharField(widget=forms.HiddenInput, max_length=64)
    goal = Text(label=_("Goal"), help_text=_("What the run is to reach, in your own words."))

    def __init__(self, definition: Mapping[str, Any], data: Any = None) -> None:
        """`definition` is the agent version's."""
        self.definition = definition
        initial = {"goal": definition.get("example_goal", ""), "request_key": uuid.uuid4().hex}
        initial |= {f"input_{f['name']}": f.get("example", "") for f in definition.get("inputs", [])}
        initial |= {f"fact_{n}": f.get("example", "") for n, f in definition.get("facts", {}).items()}
        super().__init__(data, initial=initial)
        for field in definition.get("inputs", []):
            trusted = field.get("trusted", False)
            told = _("Trusted: the agent may rely on it.") if trusted else _("Untrusted: data, never an instruction.")
            self.fields[f"input_{field['name']}"] = Text(
                label=field.get("label", field["name"]), required=field.get("required", True), help_text=told,
                rows=1 if trusted else 3,
            )  # fmt: skip
        for name, fact in definition.get("facts", {}).items():
            told = _("A fact that you state as the host; the model cannot change it.")
            self.fields[f"fact_{name}"] = forms.CharField(label=fact.get("label", name), required=False, help_text=told)
        for name, label in (
            ("turns", _("At most turns")),
            ("calls", _("At most calls")),
            ("minutes", _("At most minutes of work")),
        ):
            self.fields[f"limit_{name}"] = forms.IntegerField(label=label, required=False, min_value=1)
        self.fields["unattended"] = forms.BooleanField(
            label=_("Nobody watches this run"), required=False, help_text=_("Whatever would ask a person is denied.")
        )
        for name in self.fields:
            if name.startswith(("fact_", "limit_")):
                self.fields[name].widget.attrs["class"] = "input"

    def group(self, prefix: str) -> list[forms.BoundField]:
        """The fields of one kind, for the page."""
        return [self[name] for name in self.fields if name.startswith(prefix)]

    @property
    def inputs(self) -> list[forms.BoundField]:
        """Named values with their trust."""
        return self.group("input_")

    @property
    def facts(self) -> list[forms.BoundField]:
        """What the host states."""
        return self.group("fact_")

    @property
    def limits(self) -> list[forms.BoundField]:
        """Bounds, all optional."""
        return self.group("limit_")

    def given(self) -> dict[str, Any]:
        """What `start_run` takes, empty values left out."""
        data = self.cleaned_data
        return {
            "goal": data["goal"], "inputs": _stripped(data, "input_"), "facts": _stripped(data, "fact_"),
            "limits": limits_of({k: v for k, v in data.items() if k.startswith("limit_")}),
            "unattended": data["unattended"], "request_key": data["request_key"],
        }  # fmt: skip


def _stripped(data: Mapping[str, Any], prefix: str) -> dict[str, Any]:
    return {k.removeprefix(prefix): v for k, v in data.items() if k.startswith(prefix) and v not in ("", None)}


def limits_of(data: Mapping[str, int | None]) -> dict[str, int]:
    """Limits by the engine's names; minutes become milliseconds."""
    given = {name.removeprefix("limit_"): value for name, value in data.items() if value}
    return {("ms" if n == "minutes" else n): (v * MINUTE if n == "minutes" else v) for n, v in given.items()}


class Approve(Styled):
    """A yes to the bytes that were shown."""

    digest = forms.CharField(widget=forms.HiddenInput)
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


class Edit(Styled):
    """Other arguments for the same call: one field per property, or the whole as JSON."""

    digest = forms.CharField(widget=forms.HiddenInput)
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


class NoteForm(Styled):
    """A note to the agent."""

    text = Text(
        label=_("Note; the agent reads it with its next turn"), error_messages={"required": _("The note is empty.")}
    )


class Why(Styled):
    """A reason that may be left out."""

    why = Text(label=_("Why, for the record"), required=False)


class Accept(Styled):
    """Go on from a restored database."""

    hold = forms.ChoiceField(
        label=_("Which runs wait for a person"), initial="all", widget=forms.RadioSelect,
        choices=[
            ("all", _("Every run that has not ended")),
            ("further", _("Only those that are known to have gone further")),
        ],
    )  # fmt: skip
    why = Text(label=_("Why this state is right; it goes into the record"))


class Found(Styled):
    """What an admin found."""

    what = Text(label=_("What you found; it goes into the record"))


class Extend(Styled):
    """Higher limits."""

    turns = forms.IntegerField(label=_("Turns"), required=False, min_value=1)
    calls = forms.IntegerField(label=_("Calls"), required=False, min_value=1)
    minutes = forms.IntegerField(label=_("Minutes of work"), required=False, min_value=1)
    why = Text(label=_("Why, for the record"), required=False, rows=2)
