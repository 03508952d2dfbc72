"""A real Chromium against the real processes, in a pytest of its own: Playwright keeps a loop in the main thread."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, expect

from tests.stack import PASSWORD, Stack

os.environ.setdefault("DJANGO_ALLOW_ASYNC_UNSAFE", "true")
expect.set_options(timeout=15_000)  # a busy machine is no defect; what must be quick is measured by its test
QUIET = (
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
    "--disable-gpu",
)


@pytest.fixture(scope="session")
def browser_type_launch_args(browser_type_launch_args: dict[str, Any]) -> dict[str, Any]:
    """The system's Chromium; a machine without one fails loudly."""
    found = os.environ.get("CHROMIUM") or shutil.which("chromium")
    assert found, "chromium is missing: apt-get install chromium, or name one in CHROMIUM"
    sandbox = ["--no-sandbox"] if os.geteuid() == 0 else []
    return browser_type_launch_args | {"executable_path": found, "args": [*QUIET, *sandbox]}


class Tab:
    """A signed-in person's browser, with everything that its console complained about."""

    def __init__(self, context: BrowserContext, url: str, name: str) -> None:
        self.context, self.url, self.name = context, url, name
        self.complaints: list[str] = []
        self.page: Page = context.new_page()
        self.page.on("console", self._heard)
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))

    def _heard(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            self.complaints.append(f"{message.type}: {message.text}")

    def sign_in(self) -> Tab:
        self.page.goto(self.url)
        self.page.locator("[name=username]").fill(self.name)  # not by its label: in any language
        self.page.locator("[name=password]").fill(PASSWORD)
        self.page.locator("main form button[data-kind=primary]").click()
        return self


@pytest.fixture
def tab(browser: Browser, stack: Stack) -> Iterator[Callable[..., Tab]]:
    """Open a browser for a person; at the end nothing may have complained."""
    tabs: list[Tab] = []

    def make(name: str, **options: Any) -> Tab:
        tabs.append(Tab(browser.new_context(**options), stack.url, name))
        return tabs[-1].sign_in()

    yield make
    for one in tabs:
        one.context.close()
    assert [complaint for one in tabs for complaint in one.complaints] == []
