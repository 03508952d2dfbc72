"""One row of the inbox, of whatever kind: what it is in words, since when, and why this viewer can or cannot act."""

from dataclasses import dataclass, replace
from typing import Any

from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from runs.catalog import spec
from runs.engine.limits import SECOND
from runs.engine.state import CallState
from runs.journal.lease import now
from runs.models import Approval, Call, Question, Run
from runs.queries import words
from runs.queries.believed import believed
from runs.queries.display import one_line, visible
from runs.queries.lookups import policy_content
from runs.queries.viewer import Viewer

Key = tuple[int, ...]
PLACES = {"approval": "approval", "question": "question", "stop": "stopped"}
SIGNS = {
    "unknown": words.Sign(gettext_lazy("Unknown effect"), "unclear", "unknown"),
    "question": words.Sign(gettext_lazy("Question"), "caution", "chat"),
    "stop": words.Sign(gettext_lazy("Stopped"), "unclear", "stop"),
}


@dataclass
class Ended:
    """How an item came to its end: in words, when, and with which mark."""

    text: str
    at: int
    icon: str = "check"


@dataclass
class Item:
    """One row. `kind` is approval, question, unknown or stop; `ids` the key of its page; times are microseconds."""

    kind: str
    ids: Key
    run: Run
    text: str
    at: int
    tool: str = ""
    risk: str = ""
    why_not: str = ""
    state: str = ""
    expires: int = 0
    ended: Ended | None = None
    clock: int = 0

    @property
    def id(self) -> str:
        """Its name on the page, such as approval-12."""
        return "-".join((self.kind, *map(str, self.ids)))

    @property
    def url(self) -> str:
        """The address of its page."""
        if self.kind == "unknown":
            return reverse("attest", args=self.ids)
        return reverse(PLACES[self.kind], args=self.ids)

    @property
    def sign(self) -> words.Sign:
        """Mark of what is no approval."""
        return SIGNS[self.kind]

    @property
    def risk_word(self) -> Any:
        """The risk in one word."""
        return words.RISK_WORD.get(self.risk, "")

    @property
    def seconds(self) -> int | None:
        """Time left; None without a deadline."""
        return max(0, self.expires - self.clock) // SECOND if self.expires else None

    @property
    def until(self) -> int:
        """The deadline as a browser counts: milliseconds."""
        return self.expires // 1000

    @property
    def group(self) -> Any:
        """The heading under which it stands."""
        if self.ended:
            return ""
        if not self.expires:
            return _("No deadline")
        left = self.expires - self.clock
        return _("Under 15 minutes") if left < 900 * SECOND else _("Today") if left < 86_400 * SECOND else _("Later")


def describe(found: list[tuple[Any, Any]], viewer: Viewer) -> list[Item]:
    """Items of rows of any kinds, in their order: two queries for the approvals among them, one for the time."""
    clock = now() if found else 0
    asked = [row for _key, row in found if isinstance(row, Approval)]
    calls = _calls_of(asked)
    policy = policy_content() if any(isinstance(row, Approval | Call) for _key, row in found) else {}
    votes = _votes_of(asked)
    make = {
        Approval: lambda row: _approval(row, calls.get((row.run_id, row.turn, row.ordinal)), policy, viewer, votes),
        Call: lambda row: _unknown(row, policy, viewer),
        Question: lambda row: _question(row, viewer),
        Run: lambda row: _stop(row, viewer),
    }
    return [replace(make[type(row)](row), clock=clock) for _key, row in found]


def _calls_of(asked: list[Approval]) -> dict[Key, Call]:
    places = [(a.run_id, a.turn, a.ordinal) for a in asked]
    return {(c.run_id, c.turn, c.ordinal): c for c in Call.objects.filter(pk__in=places)} if places else {}


def _votes_of(asked: list[Approval]) -> dict[int, str]:
    """Who closed those of some approvals that people closed."""
    closed = [a.pk for a in asked if a.status != "pending"]
    rows = Approval.objects.filter(pk__in=closed).values_list("pk", "decisions__person__username") if closed else []
    return {pk: name for pk, name in rows if name}


def why_not(viewer: Viewer, excluded: list[int] | None = None) -> str:
    """Why a viewer cannot decide; empty if they can."""
    if not viewer.decides:
        return _("Operators decide; you are {roles}.").format(roles=viewer.roles)
    if excluded and viewer.person.pk in excluded:
        return _("You started this run, so another operator decides.")
    return ""


def _approval(row: Approval, call: Call | None, policy: dict[str, Any], viewer: Viewer, votes: dict[int, str]) -> Item:
    tool = call.tool if call else ""
    text = words.headline(tool, call.values()) if call else _("A call that is not there")
    return Item(
        "approval", (row.pk,), row.run, text, row.created_at, tool, words.risk_of(policy, tool, spec(tool)),
        why_not(viewer, row.exclude), expires=row.expires_at or 0, ended=ended(row, votes.get(row.pk, "")),
    )  # fmt: skip


def ended(row: Approval, who: str) -> Ended | None:
    """How an approval was closed; None while it waits. `who` is the person that closed it."""
    if row.status == "pending":
        return None
    at = row.closed_at or 0
    if who and row.status in ("approved", "consumed"):
        return Ended(_("Approved by {who}").format(who=visible(who)), at)
    if who and row.status == "rejected":
        return Ended(_("Rejected by {who}").format(who=visible(who)), at, "denied")
    if row.status == "superseded" and row.closed_why == "edited":
        return Ended(_("Changed by a person"), at, "pencil")
    return Ended(str(words.APPROVAL[row.status].word), at, words.APPROVAL[row.status].icon)


def _question(row: Question, viewer: Viewer) -> Item:
    item = Item("question", (row.pk,), row.run, one_line(row.text), row.created_at, why_not=why_not(viewer))
    if row.status != "open":
        who = row.person.get_username() if row.person else ""
        text = _("Answered by {who}").format(who=visible(who)) if who else _("Withdrawn")
        item.ended = Ended(text, row.closed_at or 0)
    return item


def _unknown(row: Call, policy: dict[str, Any], viewer: Viewer) -> Item:
    item = Item(
        "unknown", (row.run_id, row.turn, row.ordinal), row.run, words.headline(row.tool, row.values()),
        row.started_at or 0, row.tool, words.risk_of(policy, row.tool, spec(row.tool)), why_not(viewer),
    )  # fmt: skip
    if row.status == "unknown":
        item.state = probing(row.run, row) or _("Find out at the remote what happened, then say so.")
    else:
        sign = words.call_sign(row.status, row.outcome, row.tool)
        item.ended = Ended(_("Settled: {how}").format(how=sign.word), row.ended_at or 0, sign.icon)
    return item


def probing(run: Run, call: Call) -> str:
    """What the host still does to find out; empty when only a person can tell."""
    state = believed(run)
    known: CallState | None = state.calls.get(call.ordinal) if state else None
    if state is None or known is None or known.status != "unknown":
        return ""
    if known.probing:
        return _("The host is asking the remote just now.")
    if known.probe(now(), state.cancel):
        return _("The host will ask the remote again by itself.")
    return ""


def _stop(run: Run, viewer: Viewer) -> Item:
    state = believed(run)
    item = Item("stop", (run.pk,), run, one_line(run.goal), state.t if state else run.started_at)
    stop = state.stop if state else None
    if state is None:
        item.state = _("Its state cannot be read here: open it to see why.")
    elif stop is None or run.ended:
        item.ended = Ended(str(words.RUN[run.status].word), state.t, words.RUN[run.status].icon)
    else:
        by_admin = stop.reason == "integrity"
        lacks = _("An admin signs off.") if by_admin else _("Operators act on runs.")
        item.why_not = "" if (viewer.signs_off if by_admin else viewer.steers) else lacks
        item.state = f"{words.RUN[run.status].word}: {words.advice(stop.reason)}"
    return item


def items_of(ids: list[str], viewer: Viewer) -> list[Item]:
    """Items by their ids, whether they still wait or not, in any order: one query a kind, and those of `describe`."""
    by_kind: dict[str, list[Key]] = {}
    for name in ids:
        kind, *parts = name.split("-")
        by_kind.setdefault(kind, []).append(tuple(map(int, parts)))
    rows: list[Any] = []
    related: tuple[str, ...] = ("run__agent_version__agent", "run__starter")
    for kind, model in (("approval", Approval), ("question", Question), ("unknown", Call), ("stop", Run)):
        wanted = by_kind.get(kind, [])
        keys: list[Any] = wanted if kind == "unknown" else [key[0] for key in wanted]
        if keys:
            with_run = ("agent_version__agent", "starter") if kind == "stop" else related
            with_run = (*with_run, "person") if kind == "question" else with_run
            rows += model.objects.filter(pk__in=keys).select_related(*with_run)
    return describe([((), row) for row in rows], viewer)
