"""Signing in, changing the password, and how one wants to be shown things."""

from functools import cache
from typing import Any
from zoneinfo import available_timezones

from django import forms
from django.conf import settings
from django.contrib.auth.forms import AuthenticationForm, PasswordChangeForm
from django.utils.translation import gettext_lazy as _

from runs.forms.base import Styled
from runs.queries.preferences import THEMES, Preferences


class SignIn(AuthenticationForm):
    """Name and password."""

    error_messages = {
        "invalid_login": _("Name or password is wrong. Upper and lower case count in both."),
        "inactive": _("This person is switched off; an admin can switch them on."),
    }

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


class Look(forms.Form):
    """What the switches of the frame send: one of both."""

    language = forms.ChoiceField(choices=settings.LANGUAGES, required=False)
    theme = forms.ChoiceField(choices=list(THEMES.items()), required=False)


class Choices(Styled):
    """All preferences of a person. An empty value: as the browser says."""

    language = forms.ChoiceField(label=_("Language"), required=False)
    theme = forms.ChoiceField(label=_("Theme"), required=False, widget=forms.RadioSelect)
    zone = forms.ChoiceField(
        label=_("Time zone"), required=False, help_text=_("All times are shown in it; UTC stands in the hint of each.")
    )
    keys = forms.BooleanField(
        label=_("Single letters act"), required=False,
        help_text=_("a approves, j goes to the next. Switch it off if you dictate, or if letters get in your way."),
    )  # fmt: skip
    notify = forms.BooleanField(
        label=_("Tell me when something waits for me"), required=False,
        help_text=_("A notice of this browser, while a tab of AgentOps is open in the background."),
    )  # fmt: skip

    def __init__(self, data: Any = None, *, browser: Preferences, **options: Any) -> None:
        """`browser` is what it would be without a choice."""
        super().__init__(data, **options)
        zone = browser.zone or "UTC"
        self.fields["language"].choices = [("", _("As the browser says")), *settings.LANGUAGES]  # type: ignore[attr-defined]
        self.fields["theme"].choices = list(THEMES.items())  # type: ignore[attr-defined]
        first = [("", _("As the browser says: {zone}").format(zone=zone)), ("UTC", "UTC")]
        self.zones = first, _regions()  # four hundred: the page writes them, a widget takes a tenth of a second
        self.fields["zone"].choices = [*first, *_regions()]  # type: ignore[attr-defined]


@cache  # finding them opens hundreds of files
def _regions() -> list[tuple[str, list[tuple[str, str]]]]:
    """Zones by region, as in Europe: Berlin."""
    found: dict[str, list[tuple[str, str]]] = {}
    for name in sorted(available_timezones()):
        region, _slash, place = name.partition("/")
        if place and region not in ("Etc", "SystemV", "posix", "right", "US", "Canada", "Brazil", "Mexico", "Chile"):
            found.setdefault(region, []).append((name, place.replace("_", " ")))
    return list(found.items())
