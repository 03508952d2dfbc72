"""The timeline of a run as cards with fixed ids: one per turn, per call, per act about the whole run.

A window is made of whole turns, so no card is ever cut. A card's `last_seq` says whether a watcher has seen it as it
stands. Events are read before the rows of calls: rows may be newer than the events shown, never older.
"""

import json
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from django.db.models import Q
from django.utils.translation import gettext as _

from runs.catalog import spec
from runs.engine.costs import Cost
from runs.engine.machines import CALL_ENDS
from runs.models import Approval, Call, Event, Question, Run
from runs.queries import costs
from runs.queries.display import Leaf, leaves, one_line, visible
from runs.queries.facts import Note, note_of, sign_of_run_event
from runs.queries.words import Sign, call_sign, headline

WINDOW, BATCH = 200, 500
OUT_OF_LINE = ("LateEvidence", "IncidentOpened", "IncidentClosed")  # these may speak of a turn long past
DEEDS = ("Decided", "CallEdited", "QuestionAnswered")  # what people did to a call stands out of its history
TEXTS = ("ModelAnswered", "CallEdited", "CallJudged")


@dataclass
class Row:
    """An event without its payload."""

    seq: int
    kind: str
    turn: int
    ordinal: int
    at: int
    person: str
    body: dict[str, Any]
    has_payload: bool
    payload: str = ""


@dataclass
class Card:
    """One thing on the timeline. `shape` is turn, call or event; `id` never changes, nor does its place."""

    id: str
    shape: str
    rows: list[Row]
    sign: Sign
    notes: list[Note] = field(default_factory=list)
    number: int = 0
    said: str = ""
    call: Call | None = None
    title: str = ""
    came_to: str = ""
    leaves: list[Leaf] = field(default_factory=list)
    before: list[Leaf] = field(default_factory=list)
    edits: list[tuple[str, str | None, str | None]] = field(default_factory=list)
    deeds: list[Note] = field(default_factory=list)
    approval: int | None = None
    cost: Cost | None = None
    question: int | None = None
    new: bool = False

    @property
    def first_seq(self) -> int:
        """Where it stands."""
        return self.rows[0].seq

    @property
    def last_seq(self) -> int:
        """How new it is."""
        return self.rows[-1].seq

    @property
    def at(self) -> int:
        """When it began, microseconds."""
        return self.rows[0].at

    @property
    def ms(self) -> int:
        """What the turn's answer, or the call, took."""
        if self.call is not None:
            began, ended = self.call.started_at, self.call.ended_at
            return (ended - began) // 1000 if began and ended else 0
        return sum(row.body.get("ms", 0) for row in self.rows)

    @property
    def kind(self) -> str:
        """The kind of its first event."""
        return self.rows[0].kind

    @property
    def body(self) -> dict[str, Any]:
        """The body of its first event."""
        return self.rows[0].body

    @property
    def never_ran(self) -> bool:
        """Whether it came to its end without having been started."""
        call = self.call
        return bool(call and call.status in CALL_ENDS and not call.started_at and call.effect != "host")

    @property
    def judged(self) -> bool:
        """Whether a policy had a say in it, so that its verdict can be explained."""
        return bool(self.call and self.call.effect != "host" and self.call.status != "invalid")

    @property
    def tokens(self) -> int:
        """What the turn's answers cost in tokens."""
        return sum(row.body.get("tokens", 0) for row in self.rows)


@dataclass
class Timeline:
    """Cards in order; `upto` is what a watcher has seen after them.

    `older` is the seq to ask for what came before, `newer` the last one here where more follows; None where nothing is.
    `matches` is how many events match, where something was looked for.
    """

    cards: list[Card]
    upto: int
    older: int | None = None
    more: bool = False
    newer: int | None = None
    matches: int | None = None


def timeline(
    run: Run, *, after: int | None = None, before: int | None = None, around: int | None = None, limit: int = WINDOW
) -> Timeline:
    """The last cards of a run, those before event `before`, those that are newer than event `after`, or a window that
    holds event `around`. What it costs does not grow with the run: events are read by their number alone.
    """
    if after is not None:
        return _newer(run, after, limit)
    events = Event.objects.filter(run=run)
    if before is not None:
        events = events.filter(seq__lt=_begin(events, _turn_at(events, before), before))
    elif around is not None and (end := _end(events, around + limit // 2)):
        events = events.filter(seq__lt=end)
    recent = list(events.exclude(kind__in=OUT_OF_LINE).order_by("-seq").values_list("seq", "turn")[:limit])
    if not recent:
        return Timeline([], before or 0)
    first = min(turn for _seq, turn in recent)
    begin = _begin(events, first, recent[-1][0]) if first else 1
    rows = _rows(events.filter(seq__gte=begin))
    cards = _cards(run, [row for row in rows if row.kind not in OUT_OF_LINE or row.ordinal == 0 or row.turn >= first])
    older = cards[0].first_seq if begin > 1 else None
    return Timeline(cards, max(row.seq for row in rows), older, newer=rows[-1].seq if rows[-1].seq < run.seq else None)


def found(run: Run, matching: Any, before: int | None = None, limit: int = WINDOW // 2) -> Timeline:
    """The cards that hold the last of the `matching` events (a queryset), whole, before event `before`."""
    count = matching.count()
    if before is not None:
        matching = matching.filter(seq__lt=before)
    hits = list(matching.order_by("-seq").values_list("seq", "kind", "turn", "ordinal")[: limit + 1])
    older = hits[limit - 1][0] if len(hits) > limit else None
    names = {_card_name(*hit) for hit in hits[:limit]}
    turns = {turn for _seq, _kind, turn, _ordinal in hits[:limit]}
    rows = [row for row in _rows(Event.objects.filter(run=run, turn__in=turns)) if _card_id(row) in names]
    return Timeline(_cards(run, rows), run.seq, older, newer=before, matches=count)


def _turn_at(events: Any, seq: int) -> int:
    """The turn that was open at an event."""
    in_line = events.filter(seq__lte=seq).exclude(kind__in=OUT_OF_LINE).order_by("-seq")
    return in_line.values_list("turn", flat=True).first() or 0


def _end(events: Any, seq: int) -> int | None:
    """Where the turn after the one that holds event `seq` begins; None where there is none."""
    later = events.filter(seq__gt=seq, turn__gt=_turn_at(events, seq)).exclude(kind__in=OUT_OF_LINE).order_by("seq")
    return later.values_list("seq", flat=True).first()


def _begin(events: Any, turn: int, seq: int) -> int:
    """The first event of a turn that holds, or stands before, event `seq`: turns follow each other."""
    earlier = events.filter(seq__lt=seq, turn__lt=turn).exclude(kind__in=OUT_OF_LINE).order_by("-seq")
    return (earlier.values_list("seq", flat=True).first() or 0) + 1


def notes_of(run: int, turn: int, ordinal: int, kinds: tuple[str, ...] = ()) -> list[Note]:
    """What the record says of one call, a sentence an event; of all kinds, or of these."""
    events = Event.objects.filter(run=run, turn=turn, ordinal=ordinal)
    if kinds:
        events = events.filter(kind__in=kinds)
    columns = ("seq", "kind", "turn", "ordinal", "at", "person__username", "body")
    rows = (
        Row(seq, kind, t, o, at, person or "", json.loads(body), False)
        for seq, kind, t, o, at, person, body in events.order_by("seq").values_list(*columns)
    )
    return [note for row in rows if (note := note_of(row))]


def _newer(run: Run, after: int, limit: int) -> Timeline:
    events = Event.objects.filter(run=run)
    changed = list(events.filter(seq__gt=after).order_by("seq").values_list("seq", "turn", "ordinal", "kind")[:limit])
    if not changed:
        return Timeline([], after)
    upto = changed[-1][0]
    turns = [turn for _seq, turn, _ordinal, kind in changed if kind not in OUT_OF_LINE]
    begin = _begin(events, min(turns), changed[0][0]) if turns else after + 1
    rows = _rows(events.filter(seq__gte=begin))
    for turn, ordinal in {(t, o) for _seq, t, o, kind in changed if kind in OUT_OF_LINE and o}:
        if not any(row.turn == turn and row.ordinal == ordinal and row.seq < after for row in rows):
            rows += _rows(events.filter(seq__lt=begin, turn=turn, ordinal=ordinal))
    cards = [card for card in _cards(run, sorted(rows, key=lambda row: row.seq)) if card.last_seq > after]
    for card in cards:
        card.new = card.first_seq > after
    return Timeline([c for c in cards if c.first_seq <= upto], upto, more=len(changed) == limit)


def _rows(events: Any) -> list[Row]:
    wanted = Q(kind__in=TEXTS)
    texts = dict(events.filter(wanted).exclude(payload=None).values_list("seq", "payload"))
    columns = ("seq", "kind", "turn", "ordinal", "at", "person__username", "body", "payload_digest")
    return [
        Row(seq, kind, turn, ordinal, at, person or "", json.loads(body), digest is not None, texts.get(seq, ""))
        for seq, kind, turn, ordinal, at, person, body, digest in events.order_by("seq").values_list(*columns)
    ]


def _cards(run: Run, rows: Iterable[Row]) -> list[Card]:
    groups: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        groups[_card_id(row)].append(row)
    turns = {row.turn for rows in groups.values() for row in rows}
    calls = {f"card-call-{c.turn}-{c.ordinal}": c for c in Call.objects.filter(run=run, turn__in=turns)}
    approvals = _open(Approval.objects.filter(run=run, status="pending"))
    questions = _open(Question.objects.filter(run=run, status="open"))
    spent = costs.of_turns(run, turns)
    cards = []
    for name, about in groups.items():
        if name in calls:
            place = (about[0].turn, about[0].ordinal)
            cards.append(_call_card(name, about, calls[name], approvals.get(place), questions.get(place)))
        elif name.startswith("card-turn"):
            cards.append(_turn_card(name, about))
            cards[-1].cost = spent.get(about[0].turn)
        else:
            cards.append(Card(name, "event", about, sign_of_run_event(about[0].kind, about[0].body), _notes(about)))
    return sorted(cards, key=lambda card: card.first_seq)


def _open(rows: Any) -> dict[tuple[int, int], int]:
    return {(turn, ordinal): pk for pk, turn, ordinal in rows.values_list("pk", "turn", "ordinal")}


def card_at(run: Run, seq: int) -> str:
    """The id of the card that event `seq` is part of."""
    event = Event.objects.filter(run=run, seq=seq).values_list("seq", "kind", "turn", "ordinal").first()
    return _card_name(*event) if event else ""


def _card_id(row: Row) -> str:
    return _card_name(row.seq, row.kind, row.turn, row.ordinal)


def _card_name(seq: int, kind: str, turn: int, ordinal: int) -> str:
    if ordinal:
        return f"card-call-{turn}-{ordinal}"
    if kind in ("ModelAsked", "ModelAnswered", "ModelFailed", "FinishRefused"):
        return f"card-turn-{turn}"
    return f"card-event-{seq}"


def _notes(rows: Iterable[Row]) -> list[Note]:
    return [note for row in rows if (note := note_of(row))]


def _turn_card(name: str, rows: list[Row]) -> Card:
    answered = next((row for row in rows if row.kind == "ModelAnswered"), None)
    if answered is None:
        failed = rows[-1].kind == "ModelFailed"
        sign = (
            Sign(_("No usable answer"), "caution", "retry")
            if failed
            else Sign(_("Asking the model"), "accent", "running")
        )
    else:
        sign = Sign(_("Answered"), "quiet", "check")
    said = _said(answered.payload) if answered else ""
    return Card(name, "turn", rows, sign, _notes(rows), number=rows[0].turn, said=said)


def said_by(payload: str | None) -> str:
    """The text blocks of a stored model response."""
    try:
        blocks = json.loads(payload or "[]")
    except ValueError:
        return ""
    return "\n".join(str(block.get("text", "")) for block in blocks if block.get("type") == "text")


def _said(payload: str) -> str:
    return visible(said_by(payload))


def _call_card(name: str, rows: list[Row], call: Call, approval: int | None, question: int | None) -> Card:
    arguments = _parsed(call.arguments)
    card = Card(name, "call", rows, call_sign(call.status, call.outcome, call.tool), _notes(rows), call=call)
    card.title, card.leaves, card.approval, card.question = (
        headline(call.tool, arguments),
        leaves(arguments),
        approval,
        question,
    )
    if call.effect == "host" or call.status == "invalid" or spec(call.tool) is None:
        card.title = visible(call.tool)
    card.came_to = _came_to(call)
    card.before = _before(rows)
    card.edits = _edits(card.before, card.leaves)
    card.deeds = [note for row in rows if row.kind in DEEDS and (note := note_of(row))]
    return card


def _edits(before: list[Leaf], after: list[Leaf]) -> list[tuple[str, str | None, str | None]]:
    """Name, old and new value of what a person changed; None where there was or is none."""
    if not before:
        return []
    old, new = ({leaf.name: leaf.shown for leaf in some} for some in (before, after))
    names = dict.fromkeys([*old, *new])
    return [(name, old.get(name), new.get(name)) for name in names if old.get(name) != new.get(name)]


def _before(rows: list[Row]) -> list[Leaf]:
    """The arguments as the model proposed them, where a person changed them."""
    if not any(row.kind == "CallEdited" for row in rows):
        return []
    return leaves(_parsed(next((row.payload for row in rows if row.kind == "CallJudged" and row.payload), "{}")))


def _parsed(arguments: str) -> dict[str, Any]:
    try:
        value = json.loads(arguments or "{}")
    except ValueError:
        return {"(not JSON)": arguments}
    return value if isinstance(value, dict) else {"(not an object)": value}


def _came_to(call: Call) -> str:
    """One line: what it came to, or why it did not run."""
    if call.status in ("invalid", "denied"):
        return one_line(call.why)
    if call.status == "unknown":
        return _("It was sent, and nobody has heard what became of it. It may have happened.")
    if call.status == "not_executed" and call.presumed:
        return _("Presumed: two look-ups after the deadline found nothing.")
    parts = [call.effect_ref, call.detail, call.why if call.effect == "host" else ""]
    return one_line(" · ".join(part for part in parts if part))
