"""Acting on many runs at once."""

import uuid
from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from runs.forms.base import Styled, Text
from runs.models.bulk import KINDS
from runs.queries.bulks import chosen_of


class Many(Styled):
    """The runs that were seen, what to do to them, and why. A cancel takes a reason; it goes into every record."""

    act = forms.ChoiceField(choices=[(kind, kind) for kind in KINDS], widget=forms.HiddenInput)
    chosen = forms.CharField(widget=forms.HiddenInput, max_length=60_000)
    request_key = forms.CharField(widget=forms.HiddenInput, max_length=64)
    why = Text(
        label=_("Why; it goes into the record of each run"), rows=2, required=False,
        error_messages={"required": _("Say why these runs are cancelled.")},
    )  # fmt: skip

    def __init__(self, kind: str, chosen: str, data: Any = None) -> None:
        """`kind` is pause or cancel, `chosen` as `Preview.chosen`."""
        super().__init__(data, initial={"act": kind, "chosen": chosen, "request_key": uuid.uuid4().hex})
        self.fields["why"].required = kind == "cancel"

    def clean_chosen(self) -> dict[int, str]:
        """Run -> state that was seen."""
        try:
            return chosen_of(self.cleaned_data["chosen"])
        except ValueError as error:
            raise forms.ValidationError(_("The list of runs is damaged: choose them again.")) from error
