"""Which call is to be explained: a past one by its place, or a tool with arguments."""

from typing import Any

from django import forms
from django.contrib.auth.models import User
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from runs.catalog import catalog
from runs.forms.base import Styled
from runs.forms.schema import JsonValue
from runs.models import Agent


class PastCall(Styled):
    """R-12 #3.1"""

    call = forms.CharField(
        label=gettext_lazy("A call that was made"), required=False, max_length=60,
        help_text=gettext_lazy("Its run and number, such as R-12 #3.1"),
    )  # fmt: skip


class Supposed(Styled):
    """A call that nobody made: who started the run, which agent, which tool with which arguments."""

    tool = forms.ChoiceField(label=gettext_lazy("Tool"))
    arguments = JsonValue(label=gettext_lazy("Arguments as JSON"), rows=5, required=False)
    starter = forms.ModelChoiceField(
        User.objects.none(), label=gettext_lazy("Who started the run"), required=False, to_field_name="username",
        empty_label=gettext_lazy("somebody who decides nothing"),
    )  # fmt: skip
    agent = forms.ModelChoiceField(
        Agent.objects.none(), label=gettext_lazy("Agent"), required=False, to_field_name="slug",
        empty_label=gettext_lazy("any that has the tool"),
    )  # fmt: skip
    unattended = forms.BooleanField(label=gettext_lazy("Nobody watches the run"), required=False)

    def __init__(self, data: Any = None, **options: Any) -> None:
        """The choices are read for each form: tools of the packages, people who may start runs, agents."""
        super().__init__(data, **options)
        self.fields["tool"].choices = [("", _("Choose…")), *((n, n) for n in catalog().tools)]  # type: ignore[attr-defined]
        starters = User.objects.filter(is_active=True, groups__name="operator").distinct().order_by("username")
        self.fields["starter"].queryset = starters  # type: ignore[attr-defined]
        self.fields["agent"].queryset = Agent.objects.order_by("name")  # type: ignore[attr-defined]
