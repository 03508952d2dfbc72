"""The approvals of a run as a trace that others can check: the JSON lines of `agentack`, version 2.

What was proposed, shown, decided, executed, blocked. Arguments are told by their digest alone: a trace binds the bytes
without showing them. docs/trace.md says what each line means and what the format cannot say.
"""

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import Any

from runs.engine import events as e
from runs.engine.limits import SECOND

Line = dict[str, Any]
Place = tuple[int, int, int]  # turn, ordinal, revision
SCHEMA = 2
LAPSED = ("expired", "withdrawn", "superseded")


def trace(run: str, entries: Iterable[e.Entry]) -> Iterator[Line]:
    """The lines of a run, `run` being its uid; entries are all of its events in their order."""
    told = list(entries)
    return Trace(run, nothing_happened(told)).lines(told)


def nothing_happened(entries: Iterable[e.Entry]) -> set[tuple[int, int, int]]:
    """(turn, ordinal, attempt) of the starts of which the record holds that they had no effect, or none that counts."""
    attempts: dict[tuple[int, int], int] = {}
    found: set[tuple[int, int, int]] = set()
    for entry in entries:
        place = entry.turn, entry.ordinal
        match entry.fact:
            case e.CallStarted(attempt=attempt):
                attempts[place] = attempt
            case e.CallEnded(proof=proof) if proof:
                found.add((*place, attempts.get(place, 0)))
            case e.CallSettled(to="not_executed") | e.CallSettled(to="ready", proof="class"):
                found.add((*place, attempts.get(place, 0)))
            case e.LateEvidence(outcome="ok"):
                found.discard((*place, attempts.get(place, 0)))
    return found


class Trace:
    """One pass over the events. An action is a call at a revision; an approval is one asking about it."""

    def __init__(self, run: str, nothing: set[tuple[int, int, int]]) -> None:
        """`nothing` are the starts that had no effect."""
        self.run, self.nothing = run, nothing
        self.actions: dict[Place, Line] = {}
        self.open: dict[Place, str] = {}  # proposed, and neither executed nor blocked
        self.asked: dict[tuple[int, int], tuple[str, str, Place]] = {}  # latest asking: approval, digest, place
        self.digests: dict[str, Place] = {}
        self.undecided: set[str] = set()

    def lines(self, entries: Iterable[e.Entry]) -> Iterator[Line]:
        """All lines."""
        for entry in entries:
            yield from self._told(entry)

    def _told(self, entry: e.Entry) -> Iterator[Line]:
        place = entry.turn, entry.ordinal, entry.revision
        match entry.fact:
            case e.CallJudged() as fact if fact.effect != "host":
                yield from self._judged(entry, place, fact)
            case e.CallStarted() as fact:
                yield from self._started(entry, place, fact)
            case e.CancelAsked():
                yield self._line("interrupt", entry, reason="a person cancelled")
            case e.RunEnded(status=status):
                for left in list(self.open):
                    yield self._blocked(entry, left, f"not executed when the run ended: {status}")
                yield self._line("session_end", entry, reason=status)
            case _:
                yield from self._said(entry, place)

    def _said(self, entry: e.Entry, place: Place) -> Iterator[Line]:
        """What people were asked and said."""
        match entry.fact:
            case e.ApprovalRequested() as fact:
                yield from self._requested(entry, place, fact)
            case e.Decided() as fact:
                yield from self._decided(entry, fact)
            case e.CallEdited():
                yield from self._lapsed(entry, "edited by a person")
            case e.ApprovalClosed(how=how) if how in LAPSED:
                yield from self._lapsed(entry, how)
            case e.CallSettled(to="ready", proof="human"):
                yield from self._again(entry, place)

    def _judged(self, entry: e.Entry, place: Place, fact: e.CallJudged) -> Iterator[Line]:
        refused = fact.verdict in ("deny", "invalid")
        if place not in self.actions:
            # What the host itself refuses goes to nobody: it is not an action that needs a person.
            operation = fact.verdict if refused else fact.effect
            self.actions[place] = {
                "tool": fact.tool or "unnamed", "operation": operation, "resource": " ".join(fact.objects),
                "parameters": {"arguments": fact.args},
            }  # fmt: skip
            self.open[place] = ""
            yield self._line("action_proposed", entry, place, action=self.actions[place])
        if refused and place in self.open:
            yield self._blocked(entry, place, f"{fact.verdict}: {fact.rule or fact.why}")

    def _requested(self, entry: e.Entry, place: Place, fact: e.ApprovalRequested) -> Iterator[Line]:
        approval = f"approval:{place[0]}.{place[1]}:{fact.n}"
        self.asked[place[:2]] = approval, fact.digest, place
        self.digests[fact.digest] = place
        self.undecided.add(approval)
        yield self._line("approval_requested", entry, place, approval_id=approval, action=self.actions[place])

    def _decided(self, entry: e.Entry, fact: e.Decided) -> Iterator[Line]:
        """A vote is about the action whose digest it names, whatever it was counted for."""
        approval = f"approval:{entry.turn}.{entry.ordinal}:{fact.n}"
        place = self.digests.get(fact.digest)
        allow = fact.vote == "approve"
        self.undecided.discard(approval)
        yield self._line(
            "approval_decision", entry, place, action_id=None if place else f"digest:{fact.digest}",
            approval_id=approval, decision="allow" if allow else "deny",
        )  # fmt: skip
        if not allow and place in self.open:
            yield self._blocked(entry, place, "refused by a person", approval)

    def _lapsed(self, entry: e.Entry, why: str) -> Iterator[Line]:
        """An asking that ended without a yes: nothing may run on it."""
        approval, _, place = self.asked.get((entry.turn, entry.ordinal), ("", "", (0, 0, 0)))
        if approval in self.undecided:
            self.undecided.discard(approval)
            yield self._line("approval_decision", entry, place, approval_id=approval, decision="deny")
        ends = not isinstance(entry.fact, e.ApprovalClosed) or entry.fact.how != "superseded"
        if ends and place in self.open:
            yield self._blocked(entry, place, why, approval)

    def _again(self, entry: e.Entry, place: Place) -> Iterator[Line]:
        """A person who says "again" about an effect in doubt decides anew."""
        approval = f"again:{place[0]}.{place[1]}:{entry.seq}"
        self.asked[place[:2]] = approval, "", place
        yield self._line("approval_requested", entry, place, approval_id=approval, action=self.actions[place])
        yield self._line("approval_decision", entry, place, approval_id=approval, decision="allow")

    def _started(self, entry: e.Entry, place: Place, fact: e.CallStarted) -> Iterator[Line]:
        approval = self.asked.get(place[:2], ("",))[0] if fact.via != "allow" else ""
        if (place[0], place[1], fact.attempt) in self.nothing:
            self.open[place] = approval  # blocked at the end, unless another attempt does it
            return
        action = self.actions.get(place, {"tool": "unnamed", "operation": "unjudged"})
        sent = action | {"parameters": {"arguments": fact.request}}
        self.open.pop(place, None)
        yield self._line("action_executed", entry, place, approval_id=approval or None, action=sent)

    def _blocked(self, entry: e.Entry, place: Place, reason: str, approval: str = "") -> Line:
        asked = self.asked.get(place[:2], ("", "", place))
        mine = asked[0] if asked[2] == place else ""
        approval = approval or self.open.pop(place) or mine
        self.open.pop(place, None)
        return self._line("action_blocked", entry, place, approval_id=approval or None, reason=reason)

    def _line(self, kind: str, entry: e.Entry, place: Place | None = None, **more: Any) -> Line:
        at = datetime.fromtimestamp(entry.t / SECOND, UTC).isoformat()
        line: Line = {"schema_version": SCHEMA, "type": kind, "timestamp": at, "session_id": self.run}
        if place:
            call = f"call:{place[0]}.{place[1]}"
            line |= {"action_id": f"{call}:r{place[2]}", "intent_id": call}
        return line | {name: value for name, value in more.items() if value is not None}
