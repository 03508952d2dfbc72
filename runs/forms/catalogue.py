"""The catalogue of models and the budgets: dollars as people write them, micro-dollars as they are kept."""

import datetime
from decimal import Decimal
from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from runs.engine.costs import KINDS, MILLION
from runs.forms.base import Styled, Text
from runs.models import ModelEntry
from runs.queries.catalogue import KIND_WORDS, places

SAY_WHY = {"required": _("Say why: the reason goes into the record.")}


class Dollars(forms.DecimalField):
    """US dollars with at most six places; cleaned to micro-dollars, None where empty."""

    def __init__(self, **options: Any) -> None:
        """As a number that is not negative."""
        wrong = _("Write US dollars, for example 2.50; at most six places.")
        errors = {"invalid": wrong, "max_decimal_places": wrong, "min_value": _("A price is not negative.")}
        super().__init__(min_value=0, max_digits=18, decimal_places=6, error_messages=errors, **options)
        self.widget = forms.TextInput(attrs={"inputmode": "decimal", "autocomplete": "off"})

    def clean(self, value: Any) -> Any:
        """Micro-dollars."""
        found = super().clean(value)
        return None if found is None else int(found * MILLION)


def written(micro: int | None) -> str:
    """Micro-dollars as one would type them."""
    return "" if micro is None else f"{(Decimal(micro) / MILLION).normalize():f}"


class Model(Styled):
    """One version of an entry. A price that is left empty is unknown, and so is every cost that would need it."""

    based_on = forms.IntegerField(widget=forms.HiddenInput, initial=0)
    name = forms.CharField(
        label=_("Model"), max_length=120, help_text=_("provider:model, as an agent names it."),
        error_messages={"required": _("Write provider:model.")},
    )  # fmt: skip
    priced_on = forms.DateField(
        label=_("Priced on"), required=False, widget=forms.TextInput(attrs={"placeholder": "2026-11-30"}),
        input_formats=["%Y-%m-%d"], error_messages={"invalid": _("Write a day as 2026-11-30.")},
    )  # fmt: skip
    source = forms.CharField(
        label=_("Source of the prices"), required=False, max_length=300,
        help_text=_("Where it stands: a page, a contract."),
    )  # fmt: skip
    window = forms.IntegerField(label=_("Window, tokens"), required=False, min_value=1, max_value=1_000_000_000)
    most = forms.IntegerField(label=_("Longest answer, tokens"), required=False, min_value=1, max_value=1_000_000_000)
    long = forms.IntegerField(
        label=_("Other prices above, tokens"), required=False, min_value=1, max_value=1_000_000_000,
        help_text=_("Of the whole prompt, cached or not. Empty: there is no such step."),
    )  # fmt: skip
    capabilities = forms.CharField(
        label=_("Capabilities"), required=False, max_length=300, help_text=_("With commas between.")
    )
    offered = forms.BooleanField(label=_("People may choose it for a run"), required=False, initial=True)
    why = Text(label=_("Why; it goes into the record"), rows=2, error_messages=SAY_WHY)

    def __init__(self, entry: ModelEntry | None, data: Any = None) -> None:
        """`entry` is the version that is edited; None for a new model."""
        self.entry = entry
        super().__init__(data, initial=_initial(entry) if entry else {})
        for kind in KINDS:
            self.fields[f"price_{kind}"] = Dollars(label=KIND_WORDS[kind], required=False)
            self.fields[f"beyond_{kind}"] = Dollars(label=KIND_WORDS[kind], required=False)
        for name in self.fields:
            if name.startswith(("price_", "beyond_")):
                self.fields[name].widget.attrs["class"] = "input"
        if entry:
            self.fields["name"].widget.attrs["readonly"] = True

    @property
    def prices(self) -> list[forms.BoundField]:
        """The fields of the prices."""
        return [self[f"price_{kind}"] for kind in KINDS]

    @property
    def beyond(self) -> list[forms.BoundField]:
        """The fields of the prices above the step."""
        return [self[f"beyond_{kind}"] for kind in KINDS]

    @property
    def step_touched(self) -> bool:
        """Whether the fold with the step must stand open."""
        names = ["long", *(f"beyond_{kind}" for kind in KINDS)]
        return any(self[name].value() for name in names) or any(name in self.errors for name in names)

    def clean(self) -> dict[str, Any]:
        """A price needs its day and its source, and a step both its tokens and its prices."""
        data = dict(super().clean() or {})
        if self._priced("price_") or self._priced("beyond_"):
            for name, told in (
                ("priced_on", _("Say on which day it had this price.")),
                ("source", _("Say where the price stands.")),
            ):
                if not data.get(name) and name not in self.errors:
                    self.add_error(name, told)
        if bool(data.get("long")) != bool(self._priced("beyond_")) and "long" not in self.errors:
            self.add_error("long", _("Name both: from how many tokens on, and what they cost then."))
        day = data.get("priced_on")
        if day and day > datetime.datetime.now(datetime.UTC).date() + datetime.timedelta(days=1):
            self.add_error("priced_on", _("That day has not come yet."))
        return data

    def _priced(self, prefix: str) -> dict[str, int]:
        data = self.cleaned_data
        return {kind: data[f"{prefix}{kind}"] for kind in KINDS if data.get(f"{prefix}{kind}") is not None}

    def given(self) -> dict[str, Any]:
        """Fields of a `ModelEntry`."""
        data = self.cleaned_data
        able = [part.strip() for part in data["capabilities"].split(",") if part.strip()]
        return {
            "window": data["window"] or 0, "most": data["most"] or 0, "long": data["long"] or 0,
            "prices": self._priced("price_"), "beyond": self._priced("beyond_"), "capabilities": able,
            "priced_on": data["priced_on"].isoformat() if data["priced_on"] else "", "source": data["source"],
            "offered": data["offered"],
        }  # fmt: skip


def _initial(entry: ModelEntry) -> dict[str, Any]:
    plain = {name: getattr(entry, name) or None for name in ("name", "window", "most", "long", "priced_on", "source")}
    prices = {f"price_{kind}": written(entry.prices.get(kind)) for kind in KINDS}
    beyond = {f"beyond_{kind}": written(entry.beyond.get(kind)) for kind in KINDS}
    able = ", ".join(entry.capabilities)
    return {**plain, **prices, **beyond, "capabilities": able, "offered": entry.offered, "based_on": entry.number}


class BudgetForm(Styled):
    """What may be spent in a day; empty lifts the budget."""

    place = forms.ChoiceField(label=_("For"))
    limit = Dollars(label=_("US dollars a day"), required=False, help_text=_("Empty lifts the budget."))
    why = Text(label=_("Why; it goes into the record"), rows=2, error_messages=SAY_WHY)

    def __init__(self, data: Any = None) -> None:
        """The places are those of now."""
        super().__init__(data)
        self.fields["place"].choices = places()  # type: ignore[attr-defined]
        self.fields["limit"].widget.attrs["class"] = "input"
        self.fields["place"].widget.attrs["class"] = "input"

    def given(self) -> tuple[str, int, int | None]:
        """Scope, key and limit in micro-dollars."""
        scope, _colon, key = self.cleaned_data["place"].partition(":")
        return scope, int(key), self.cleaned_data["limit"]
