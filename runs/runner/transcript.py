"""What the model has seen in the open segment, and what happened since it was last asked."""

import json
from typing import Any

from runs.engine import events as e
from runs.engine import messages
from runs.engine.canonical import digest
from runs.journal.append import Draft, Picture
from runs.journal.chain import entry_of, sha
from runs.models import Call, Event, Run
from runs.providers.base import Request


class Transcript:
    """Messages of the segment, byte for byte as stored, and the entries since the open turn was asked.

    Loaded when the model is to be asked, not before: a decision is carried out without reading the history.
    """

    def __init__(self, run: Run, opening: dict[str, Any], tools: list[dict[str, Any]]) -> None:
        """`opening`: the payload of RunStarted; `tools`: the tool list of every request of the run."""
        self.run, self.opening, self.tools = run, opening, tools
        self.messages: list[messages.Message] = []
        self.labels: set[str] = set()
        self.tail: list[e.Entry] = []
        self.seq: int | None = None

    def load(self, picture: Picture) -> None:
        """Read what was appended since the last load; the first time, the open segment."""
        if self.seq is None or self.seq < picture.seq:
            since = max(picture.state.segment_seq - 1, 0) if self.seq is None else self.seq
            rows = Event.objects.filter(run=picture.run, seq__gt=since, seq__lte=picture.seq).order_by("seq")
            for row in rows:
                if row.payload is not None and sha(row.payload) != bytes(row.payload_digest or b""):
                    raise messages.Vanished(f"what the model saw or said at event {row.seq} is not what was recorded")
            self.absorb(*(entry_of(row) for row in rows), seq=picture.seq)

    def absorb(self, *entries: e.Entry, seq: int) -> None:
        """Add entries that are committed, up to `seq`."""
        for entry in entries:
            if isinstance(entry.fact, e.SegmentStarted):
                self.messages, self.labels = [], set()
            elif isinstance(entry.fact, e.ModelAsked) and entry.fact.attempt == 1:
                self.messages.append({"role": "user", "content": json.loads(_payload(entry))})
                self.tail = []
            elif isinstance(entry.fact, e.ModelAnswered):
                message = {"role": "assistant", "content": json.loads(_payload(entry))}
                self.messages.append(message)
                self.labels |= messages.labels_of(message)
            self.tail.append(entry)
        self.seq = seq

    def follow(self, old: Picture, draft: Draft, new: Picture) -> None:
        """Add a draft that was committed, if everything before it is here."""
        if self.seq == old.seq:
            self.absorb(*draft.entries, seq=new.seq)

    def next_message(self, draft: Draft, new_segment: bool) -> list[messages.Block]:
        """Content of the next user message: the opening, or the results of the turn, or both in a new segment."""
        state = draft.state
        said = messages.follow_up(state, self.tail + draft.entries) if state.turn else []
        if new_segment:
            first = messages.opening(self.opening["goal"], self.opening["inputs"], self.opening["facts"])
            earlier = messages.projection(state, self._recent()) if state.turn else []
            said = first + earlier + messages.as_text(said)
        return [*said, messages.remaining(state)]

    @property
    def overhead(self) -> int:
        """Bytes of every request beside the conversation: instructions and tools."""
        return len(json.dumps([self.run.agent_version.definition["instructions"], messages.PREAMBLE, self.tools]))

    def request(self, longest: int = messages.ANSWER) -> Request:
        """The request as it would go out now; a copy, which a provider may do with as it likes."""
        definition = self.run.agent_version.definition
        system = f"{definition['instructions']}\n\n{messages.PREAMBLE}"
        tools, said = json.loads(json.dumps([self.tools, self.messages]))
        model = self.opening.get("model") or definition["model"]
        return Request(model=model, system=system, tools=tools, messages=said, max_tokens=longest)

    @property
    def tools_digest(self) -> str:
        """Digest of the tool list, fixed within a segment."""
        return digest(json.dumps(self.tools, sort_keys=True))[:16]

    def _recent(self) -> list[str]:
        done = Call.objects.filter(run=self.run, status="done", outcome="ok").exclude(effect__in=("read", "host"))
        rows = list(done.order_by("-ended_seq")[:20])
        return [f"{call.tool} {call.arguments[:200]} -> {call.effect_ref or 'ok'}" for call in reversed(rows)]


def _payload(entry: e.Entry) -> str:
    if entry.payload is None:
        raise messages.Vanished(f"what the model saw or said at event {entry.seq} is gone from the record")
    return entry.payload
