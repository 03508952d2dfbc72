"""What the frame around every page says: how much waits, what is switched off, whether the record is sound."""

from dataclasses import dataclass
from typing import Any

from django.urls import NoReverseMatch, reverse
from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext

from runs.audit import safe_mode
from runs.models import Policy, SafeMode
from runs.queries import inbox, incidents
from runs.queries.viewer import Viewer

MOST = 99  # a larger number says no more than "many"


@dataclass(frozen=True)
class Place:
    """An entry of the navigation: route, word, icon, the letter after `g`, and whether it is one of the first."""

    name: str
    word: Any
    icon: str
    key: str
    main: bool = False

    @property
    def url(self) -> str:
        """Its address; empty while the route does not exist."""
        try:
            return reverse(self.name)
        except NoReverseMatch:
            return ""


PLACES = (
    Place("inbox", _("Inbox"), "inbox", "i", True),
    Place("runs", _("Runs"), "runs", "r", True),
    Place("overview", _("Overview"), "overview", "o", True),
    Place("agents", _("Agents"), "agent", "a"),
    Place("tools", _("Tools"), "policy", "p"),
    Place("models", _("Models"), "note", "m"),
    Place("people", _("People"), "person", "u"),
    Place("incidents", _("Incidents"), "high", "c"),
    Place("health", _("Health"), "health", "h"),
)


def places() -> list[Place]:
    """The places that exist."""
    return [place for place in PLACES if place.url]


@dataclass(frozen=True)
class Shell:
    """`waiting`: what this viewer can act on, or, for one who acts on nothing, all that waits (`mine` is False).

    `off`: names of tools that are switched off; `*` for all.
    """

    waiting: int
    mine: bool
    incidents: int
    off: tuple[str, ...]
    safe_mode: SafeMode | None

    @property
    def badge(self) -> str:
        """The number beside the word."""
        return f"{MOST}+" if self.waiting > MOST else str(self.waiting or "")

    @property
    def title(self) -> str:
        """What a tab's title begins with, for those who can act."""
        return f"({self.badge}) " if self.mine and self.waiting else ""

    @property
    def told(self) -> str:
        """The number in words, for ears and for a browser's notice."""
        told = ngettext("%(n)s item waits for a person", "%(n)s items wait for a person", self.waiting)
        if self.mine:
            told = ngettext("%(n)s item waits for you", "%(n)s items wait for you", self.waiting)
        return told % {"n": self.badge or "0"}

    @property
    def all_off(self) -> bool:
        """The switch for all tools."""
        return "*" in self.off


def shell(viewer: Viewer, counts: dict[str, int] | None = None) -> Shell:
    """A constant number of small queries, for every page and every look of a socket; `counts` of who has them."""
    mine = viewer.decides or viewer.steers or viewer.signs_off
    policy = Policy.objects.filter(current=True).values_list("content", flat=True).first() or {}
    return Shell(
        (counts or inbox.counts(viewer))["mine" if mine else "all"], mine, incidents.count(),
        tuple(policy.get("off", ())), safe_mode.in_force(),
    )  # fmt: skip
