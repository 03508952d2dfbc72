"""Money is a decimal string outside and whole cents inside; a float never touches it."""

import re

AMOUNT = re.compile(r"[0-9]{1,7}\.[0-9]{2}")


def cents(text: str) -> int | None:
    """Cents of ``"249.00"``; None where the text is not an amount."""
    return int(text.replace(".", "")) if AMOUNT.fullmatch(text) else None


def text(amount: int) -> str:
    """``24900`` as ``"249.00"``."""
    return f"{amount // 100}.{amount % 100:02d}"
