"""Who is in which group."""

from django import forms
from django.utils.translation import gettext_lazy as _

from runs.forms.base import Styled, Text
from runs.queries.people import GROUP
from runs.rights import GROUPS


class Access(Styled):
    """The groups of one person, whether they may sign in, and why that changes."""

    groups = forms.MultipleChoiceField(
        label=_("Groups"), required=False, widget=forms.CheckboxSelectMultiple,
        choices=[(name, GROUP[name][0]) for name in GROUPS],
    )  # fmt: skip
    active = forms.BooleanField(label=_("May sign in"), required=False)
    why = Text(
        label=_("Why; it goes into the record"), rows=2,
        error_messages={"required": _("Say why: the reason goes into the record.")},
    )  # fmt: skip

    @property
    def chosen(self) -> list[str]:
        """The groups that are ticked, as typed or as they stand."""
        return [str(name) for name in self["groups"].value() or []]
