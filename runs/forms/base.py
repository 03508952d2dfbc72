"""What all forms share: they keep what was typed, carry our class and say where they are wrong."""

from typing import Any

from django import forms


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
        """Mark what is wrong for assistive software too, and lead the focus to the first of it."""
        super().full_clean()
        wrong = [self.fields[name].widget for name in self.errors if name in self.fields and not self[name].is_hidden]
        for widget in wrong[:1]:
            widget.attrs["autofocus"] = True
        for name in self.errors:
            if name in self.fields:
                self.fields[name].widget.attrs |= {"aria-invalid": "true", "aria-describedby": f"id_{name}-error"}
