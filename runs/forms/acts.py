"""What people do to a run, and to the record."""

from collections.abc import Mapping

from django import forms
from django.utils.translation import gettext_lazy as _

from runs.forms.base import Styled, Text
from runs.forms.catalogue import Dollars

MINUTE = 60_000


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
    budget = Dollars(label=_("US dollars in all"), required=False)
    why = Text(label=_("Why, for the record"), required=False, rows=2)


def limits_of(data: Mapping[str, int | None]) -> dict[str, int]:
    """Limits by the engine's names; minutes become milliseconds."""
    given = {name.removeprefix("limit_"): value for name, value in data.items() if value}
    return {("ms" if n == "minutes" else n): (v * MINUTE if n == "minutes" else v) for n, v in given.items()}
