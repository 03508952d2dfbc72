"""Signing in, and changing the password."""

from typing import Any

from django.contrib.auth.forms import AuthenticationForm, PasswordChangeForm


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
