"""One record, one line: nothing that a model or a remote wrote can forge a second one."""

from __future__ import annotations

import logging
import time
import unicodedata

ESCAPED_CATEGORIES = {"Cc", "Cf", "Zl", "Zp"}


def one_line(text: str) -> str:
    """Control, format and line-separating characters made visible."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(
        char.encode("unicode_escape").decode() if unicodedata.category(char) in ESCAPED_CATEGORIES else char
        for char in text
    )


class OneLine(logging.Formatter):
    """`2026-11-30T22:00:00Z WARNING runs.journal message`, with a traceback folded behind it."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)s %(name)s %(message)s", "%Y-%m-%dT%H:%M:%SZ")
        self.converter = time.gmtime

    def format(self, record: logging.LogRecord) -> str:
        """The whole record, traceback included, on one line."""
        return one_line(super().format(record))


def not_health(record: logging.LogRecord) -> bool:
    """Drop Django's line for each 503 of /healthz: its askers see the answer, and ask every few seconds."""
    return "/healthz" not in record.getMessage()
