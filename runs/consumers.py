"""Sockets: check the right to see, send what is newer than the viewer has, look again on a nudge.

A nudge carries no truth: every frame is read from the database. A lost nudge costs one poll. Session and rights are
read again before each look, at most once a second, so a person who is signed out or loses their group is cut off within
one poll. What several watchers of a run would be sent alike is read and rendered once.
"""

import asyncio
import json
import logging
import re
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from contextlib import suppress
from typing import Any, TypeVar
from urllib.parse import parse_qs

from channels.db import database_sync_to_async
from channels.generic.websocket import AsyncWebsocketConsumer
from django.contrib.auth import get_user
from django.contrib.sessions.backends.db import SessionStore
from django.http import HttpRequest
from django.template.loader import render_to_string

from runs import notify
from runs.engine.canonical import digest
from runs.journal.lease import now
from runs.models import Run
from runs.queries import inbox, run_list, runs
from runs.queries.items import items_of
from runs.queries.preferences import Preferences, chosen, from_browser
from runs.queries.run_filter import Filter
from runs.queries.shell import Shell, shell
from runs.queries.timeline import BATCH, timeline
from runs.queries.viewer import Viewer

log = logging.getLogger(__name__)
POLL = 5.0
TRUST = 1.0  # seconds: so long are rights that were read believed, and so long may a rendered frame serve others
SIGNED_OUT, NO_RIGHT, ABSENT = 4401, 4403, 4404
Frame = dict[str, Any]
ITEM = re.compile(r"(?:approval|question|stop)-[0-9]{1,18}|unknown(?:-[0-9]{1,18}){3}")


class Closed(Exception):
    """The socket must close; `code` says why."""

    def __init__(self, code: int) -> None:
        """4401 signed out, 4403 no right any more, 4404 nothing to see."""
        super().__init__(str(code))
        self.code = code


Made = TypeVar("Made")


class Shared:
    """What was made a moment ago for somebody else, by a key that says everything it depends on."""

    def __init__(self, most: int = 64) -> None:
        """At most so many are kept."""
        self.most = most
        self.made: OrderedDict[Hashable, tuple[float, Any]] = OrderedDict()
        self.lock = threading.Lock()

    def get(self, key: Hashable, make: Callable[[], Made]) -> Made:
        """It, or what `make` gives now."""
        with self.lock:
            at, value = self.made.get(key, (float("-inf"), None))
            if time.monotonic() - at > TRUST:
                value = make()
                self.made[key] = time.monotonic(), value
                self.made.move_to_end(key)
                while len(self.made) > self.most:
                    self.made.popitem(last=False)
            made: Made = value
            return made


shared = Shared()


class Watcher(AsyncWebsocketConsumer):
    """What all sockets have in common: who looks, when to look, how to end."""

    group = notify.INBOX
    poll = POLL  # seconds

    async def connect(self) -> None:
        """Join the group first, then read: what is written in between comes by the nudge."""
        session = self.scope.get("session")
        self.session_key: str | None = getattr(session, "session_key", None)
        self.turn = asyncio.Lock()
        self.poller: asyncio.Task[None] | None = None
        self.begin()
        self.preferences = Preferences()
        self.frame: Shell | None = None
        self.trusted: tuple[float, Viewer] | None = None
        self.nudged: Any = None
        self.counts: dict[str, int] | None = None  # of a page that has just counted itself
        # Rights stand before the accept in time, but the code of a refusal reaches a browser only after it.
        try:
            await database_sync_to_async(self.meet)()
        except Closed as closed:
            await self.accept()
            await self.close(closed.code)
            return
        for group in {self.group, notify.INBOX}:
            await self._join(group)
        await self.accept()
        if await self.look():
            self.poller = asyncio.create_task(self._poll())

    def begin(self) -> None:
        """Read what the address says."""

    async def _join(self, group: str) -> None:
        try:
            await self.channel_layer.group_add(group, self.channel_name)
        except OSError as error:
            log.warning("no nudges for a watcher of %s, polling alone: %s", group, error)

    async def disconnect(self, code: int) -> None:
        """Leave."""
        if self.poller is not None:
            self.poller.cancel()
        with suppress(OSError):
            for group in {self.group, notify.INBOX}:
                await self.channel_layer.group_discard(group, self.channel_name)

    async def receive(self, text_data: str | None = None, bytes_data: bytes | None = None) -> None:
        """Nothing is done over the socket: acts go by HTTP, with their token."""

    async def news(self, message: dict[str, Any]) -> None:
        """A nudge; one that only the inbox needs changes nothing but the frame on other pages."""
        to, self.nudged = message.get("to", self.group), message.get("id")
        await self.look(page=to == self.group, around=to == notify.INBOX)
        self.nudged = None

    async def _poll(self) -> None:
        while True:
            await asyncio.sleep(self.poll)
            if not await self.look():
                return
            await self.send(text_data="{}")  # a sign of life: silence tells the page that the line is dead

    async def look(self, page: bool = True, around: bool = True) -> bool:
        """Send everything that is new on the page and in the frame around it; False when the socket was closed."""
        async with self.turn:
            try:
                more = page
                while more:
                    frames, more = await database_sync_to_async(self._spoken_frames)()
                    await self._send(frames)
                if around:
                    await self._send(await database_sync_to_async(self._around)())
            except Closed as closed:
                await self.close(closed.code)
                return False
        return True

    async def _send(self, frames: list[Frame]) -> None:
        for frame in frames:
            await self.send(text_data=json.dumps(frame))

    def viewer(self, first: bool = False) -> Viewer:
        """Who is looking, by the session as it stands now, or stood a moment ago."""
        if self.trusted and not first and time.monotonic() - self.trusted[0] < TRUST:
            return self.trusted[1]
        request = HttpRequest()
        request.session = SessionStore(self.session_key)
        person = get_user(request)
        if not person.is_authenticated:
            raise Closed(SIGNED_OUT)
        viewer = Viewer.of(person)
        if not viewer.may("see"):
            raise Closed(ABSENT if first else NO_RIGHT)
        self.trusted = time.monotonic(), viewer
        return viewer

    def meet(self) -> None:
        """Who comes, and how they read; a page that changes its language opens its socket anew."""
        viewer = self.viewer(first=True)
        accepted = dict(self.scope["headers"]).get(b"accept-language", b"").decode("latin-1")
        self.preferences = from_browser(self.scope.get("cookies", {}), accepted).over(chosen(viewer.person))

    def _around(self) -> list[Frame]:
        """Counts and warnings around the page, if they stand differently from the last ones sent."""
        viewer = self.viewer()
        with self.preferences.spoken():
            found = shell(viewer, self.counts)
            if found == self.frame:
                return []
            self.frame = found
            html = render_to_string("shell.html#frame", {"shell": found, "viewer": viewer, "oob": True})
            mine = found.waiting if found.mine else 0
            return [{"html": html, "waiting": mine, "title": found.title, "told": found.told}]

    def _spoken_frames(self) -> tuple[list[Frame], bool]:
        with self.preferences.spoken():
            return self.frames()

    def frames(self) -> tuple[list[Frame], bool]:
        """What to send now, and whether there is more."""
        raise NotImplementedError


class RunWatcher(Watcher):
    """The page of one run."""

    def begin(self) -> None:
        """Run, `?after=` and `?cards=no`, where the page shows an older window: only what stands around it is live."""
        self.run_id = int(self.scope["url_route"]["kwargs"]["run_id"])
        self.group = notify.group(self.run_id)
        given = parse_qs(self.scope.get("query_string", b"").decode("latin-1"))
        after = given.get("after", ["0"])[0]
        self.with_cards = given.get("cards") != ["no"]
        self.upto = int(after) if after.isascii() and after.isdigit() and len(after) < 19 else 0
        self.standing: tuple[int, str] | None = None

    def viewer(self, first: bool = False) -> Viewer:
        """As for all; a run that is not there is closed like one that may not be seen."""
        viewer = super().viewer(first)
        if first and runs.find_run(self.run_id) is None:
            raise Closed(ABSENT)
        return viewer

    def frames(self) -> tuple[list[Frame], bool]:
        """Cards newer than `upto`, at most a batch; then the head, if it stands differently."""
        viewer, run = self.viewer(), self._run()
        if run is None:
            raise Closed(ABSENT)
        alike = (run.pk, run.seq, run.status, self.preferences.language, self.preferences.zone, viewer.groups)
        common = {"run": run, "viewer": viewer, "oob": True}
        if self.with_cards and run.seq > self.upto:
            after = self.upto
            self.upto, html = shared.get(("cards", after, *alike), lambda: cards_after(after, common))
            return [{"upto": self.upto, "html": html}], True  # seen before the head is made
        if self.standing == (run.seq, run.status):
            return [], False
        self.standing = (run.seq, run.status)
        return [{"html": shared.get(("standing", *alike), lambda: standing(common))}], False

    def _run(self) -> Run | None:
        """The run as it stands; for all that one nudge reached it is read once."""
        if self.nudged is None:
            return runs.find_run(self.run_id)
        return shared.get(("run", self.run_id, self.nudged), lambda: runs.find_run(self.run_id))


def cards_after(after: int, common: dict[str, Any]) -> tuple[int, str]:
    """Cards of a run that are newer than event `after`: up to where, and their HTML."""
    cards = timeline(common["run"], after=after, limit=BATCH)
    parts = {"added": [c for c in cards.cards if c.new], "changed": [c for c in cards.cards if not c.new]}
    return cards.upto, render_to_string("run/cards.html#frame", common | parts)


def standing(common: dict[str, Any]) -> str:
    """Everything around the cards of a run."""
    head = runs.head(common["run"], common["viewer"])
    return render_to_string("run/head.html#standing", common | {"head": head})


class ShellWatcher(Watcher):
    """A page without news of its own: the frame around it is live all the same."""

    def frames(self) -> tuple[list[Frame], bool]:
        """Who looks is still asked each time."""
        self.viewer()
        return [], False


class InboxWatcher(Watcher):
    """A list of the inbox: counts, which rows are new to it, and how those in view came to their end.

    The address holds view, filters and cursor of the page, and `rows`: the ids of what it shows. Rows are sent as done,
    never moved; new ones are named, and the page fetches them when its reader wants them.
    """

    GAP = 1.0  # seconds between two looks: a crowd of decisions is read once

    def begin(self) -> None:
        """What is looked at, and what is in view already."""
        given = parse_qs(self.scope.get("query_string", b"").decode("latin-1"))
        self.given = {name: values[0] for name, values in given.items()}
        self.known = {name for name in self.given.get("rows", "").split()[: 2 * inbox.PAGE] if ITEM.fullmatch(name)}
        self.shown = ""
        self.looked = -self.GAP
        self.later: asyncio.Task[None] | None = None

    async def news(self, message: dict[str, Any]) -> None:
        """A nudge: look at once, or once the gap is over for all nudges of the meantime."""
        if self.later is None or self.later.done():
            self.later = asyncio.create_task(self._look_soon())

    async def _look_soon(self) -> None:
        await asyncio.sleep(max(0.0, self.looked + self.GAP - time.monotonic()))
        self.looked = time.monotonic()
        await self.look()

    async def disconnect(self, code: int) -> None:
        """Leave."""
        if self.later is not None:
            self.later.cancel()
        await super().disconnect(code)

    def frames(self) -> tuple[list[Frame], bool]:
        """What differs from the last look; nothing, if nothing does."""
        viewer = self.viewer()
        wanted = inbox.Wanted.of(self.given, viewer)
        found, _older = inbox.page(wanted, viewer, inbox.read_cursor(self.given.get("from", "")))
        rows = {item.id for item in found}
        ended = [item for item in items_of(sorted(self.known - rows), viewer) if item.ended]
        if wanted.view != "decided":
            self.known = (self.known | rows) - {item.id for item in ended}
        self.counts = inbox.counts(viewer)
        context = {
            "counts": self.counts, "rows": " ".join(item.id for item in found), "ended": ended,
            "wanted": wanted, "viewer": viewer,
        }  # fmt: skip
        html = render_to_string("inbox/frame.html", context)
        if (now := digest(html)) == self.shown:
            return [], False
        self.shown = now
        return [{"html": html}], False


class RunsWatcher(Watcher):
    """The runs that stand in a list, the numbers above it, and how many have come since. Nothing nudges it.

    The address holds the filter of the page, `run` for each of its rows and, on the first page, `top`: its newest run.
    """

    group = "runs"
    poll = 2.0

    def begin(self) -> None:
        """The filter, and what is in view."""
        given = parse_qs(self.scope.get("query_string", b"").decode("latin-1"))
        self.wanted = Filter.of({name: values[0] for name, values in given.items()})
        numbers = [text for text in given.get("run", []) if text.isascii() and text.isdigit() and len(text) < 19]
        self.ids = [int(text) for text in numbers[: run_list.PAGE]]
        top = given.get("top", [""])[0]
        self.top = int(top) if top.isascii() and top.isdigit() and len(top) < 19 else None
        self.shown: dict[Any, str] = {}

    def frames(self) -> tuple[list[Frame], bool]:
        """What looks different from what was sent last; the time of the look comes along."""
        viewer, clock = self.viewer(), now()
        counts = run_list.counts_of(self.wanted, clock)
        newer = run_list.newer(self.wanted, self.top, clock) if self.top is not None else 0
        rows = run_list.rows_of(run_list.runs_of(Filter(), clock).filter(pk__in=self.ids))
        context = {
            "viewer": viewer, "clock": clock, "wanted": self.wanted, "newer": newer, "oob": True,
            "all_address": self.wanted.but(status="").address,
            "counts": counts if self._differs("counts", counts) else None,
            "says_newer": self._differs("newer", newer),
            "rows": [row for row in rows if self._differs(row.run.pk, row.looks(clock))],
        }  # fmt: skip
        return [{"html": render_to_string("runs/page.html#frame", context)}], False

    def _differs(self, what: Any, now: Any) -> bool:
        was, self.shown[what] = self.shown.get(what), now
        return was != now
