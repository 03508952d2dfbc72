"""Starting a run."""

import uuid
from collections.abc import Mapping
from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from runs.engine.limits import Limits
from runs.forms.acts import MINUTE, limits_of
from runs.forms.base import Styled, Text
from runs.forms.catalogue import Dollars
from runs.queries.goals import composed
from runs.queries.words import packaged

LIMITS: tuple[tuple[str, Any, Any], ...] = (
    ("turns", _("At most turns"), _("How often the model is asked. This version's default: {n}.")),
    ("calls", _("At most calls"), _("How many tool calls may begin. This version's default: {n}.")),
    ("minutes", _("At most minutes of work"), _("Models and tools at work; waiting for people does not count."
                                                " This version's default: {n}.")),
)  # fmt: skip


class Start(Styled):
    """Start a run of one agent: its goal, inputs, facts and limits."""

    request_key = forms.CharField(widget=forms.HiddenInput, max_length=64)
    goal = Text(
        label=_("Goal"), rows=3, help_text=_("What the run is to reach, in your own words."),
        error_messages={"required": _("Say what the run is to reach.")},
    )  # fmt: skip
    criteria = Text(
        label=_("Success criteria"), rows=2, required=False,
        help_text=_("One a line: by what one sees that it was reached."),
    )  # fmt: skip
    non_goals = Text(
        label=_("Non-goals"), rows=2, required=False, help_text=_("One a line: what it is not about, and must leave.")
    )
    budget = Dollars(
        label=_("At most US dollars"), required=False,
        help_text=_("What its requests may cost in all. Nothing of unknown price is then asked."),
    )  # fmt: skip
    unattended = forms.BooleanField(
        label=_("Nobody watches this run"), required=False, help_text=_("Whatever would ask a person is denied.")
    )

    def __init__(
        self, definition: Mapping[str, Any], data: Any = None, *, example: bool = False, models: Any = ()
    ) -> None:
        """`definition` is the agent version's; with `example` the fields hold its example. `models`: (name, words)."""
        self.definition = definition
        super().__init__(data, initial={"request_key": uuid.uuid4().hex} | (_example(definition) if example else {}))
        if models:
            own = (definition["model"], _("{model}, as this version says").format(model=definition["model"]))
            self.fields["model"] = forms.ChoiceField(label=_("Model"), required=False, choices=[own, *models])
            self.fields["model"].widget.attrs["class"] = "input"
        for field in definition.get("inputs", []):
            self._add_input(field)
        for name, fact in definition.get("facts", {}).items():
            self.fields[f"fact_{name}"] = forms.CharField(
                label=packaged(fact.get("label", name)), required=False, widget=_line(fact.get("example", ""))
            )
        self._add_limits(Limits.load(dict(definition.get("limits", {}))))

    def _add_input(self, field: Mapping[str, Any]) -> None:
        trusted, label = bool(field.get("trusted", False)), packaged(field.get("label", field["name"]))
        lacking = _("Fill in: {what}.").format(what=label)
        found = Text(
            label=label, required=field.get("required", True), rows=1 if trusted else 3,
            error_messages={"required": lacking},
        )  # fmt: skip
        found.widget.attrs["placeholder"] = field.get("example", "")
        found.trusted = trusted  # type: ignore[attr-defined]
        self.fields[f"input_{field['name']}"] = found

    def _add_limits(self, bounds: Limits) -> None:
        defaults = {"turns": bounds.turns, "calls": bounds.calls, "minutes": bounds.ms // MINUTE}
        for name, label, told in LIMITS:
            field = forms.IntegerField(
                label=label, required=False, min_value=1, max_value=1_000_000, help_text=told.format(n=defaults[name])
            )
            field.widget.attrs |= {"class": "input", "placeholder": str(defaults[name])}
            self.fields[f"limit_{name}"] = field

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

    @property
    def limits_touched(self) -> bool:
        """Whether the fold with the limits must stand open: something in it was typed, or is wrong."""
        named = [field.name for field in self.limits] + ["budget", "unattended"]
        return self.is_bound and any(name in self.errors or self.data.get(name) for name in named)

    @property
    def wrong(self) -> list[forms.BoundField]:
        """The fields that need another look, in the order of the page."""
        return [self[name] for name in self.fields if name in self.errors and not self[name].is_hidden]

    def given(self) -> dict[str, Any]:
        """What `start_run` takes, empty values left out."""
        data = self.cleaned_data
        return {
            "goal": composed(data["goal"], data["criteria"], data["non_goals"]),
            "inputs": _stripped(data, "input_"), "facts": _stripped(data, "fact_"),
            "limits": limits_of({k: v for k, v in data.items() if k.startswith("limit_")}),
            "model": data.get("model", ""), "unattended": data["unattended"], "request_key": data["request_key"],
        }  # fmt: skip


def _example(definition: Mapping[str, Any]) -> dict[str, Any]:
    inputs = {f"input_{f['name']}": f.get("example", "") for f in definition.get("inputs", [])}
    facts = {f"fact_{name}": fact.get("example", "") for name, fact in definition.get("facts", {}).items()}
    return {"goal": definition.get("example_goal", "")} | inputs | facts


def _line(example: str) -> forms.TextInput:
    return forms.TextInput(attrs={"class": "input", "placeholder": example})


def _stripped(data: Mapping[str, Any], prefix: str) -> dict[str, Any]:
    return {k.removeprefix(prefix): v for k, v in data.items() if k.startswith(prefix) and v not in ("", None)}
