"""Starting a run."""

import uuid
from collections.abc import Mapping
from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from runs.forms.acts import limits_of
from runs.forms.base import Styled, Text


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
