"""Sockets on the configured layer: who may, what is sent, what a nudge and a poll bring, when the line is cut."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from asgiref.testing import ApplicationCommunicator
from channels.layers import get_channel_layer
from django.apps import apps
from django.conf import settings
from django.contrib.auth.models import User
from django.db import connection

from agentops.asgi import application
from runs import consumers, notify
from runs.actions.runs import add_note, close_failed
from tests.pages.story import Story, browser, person, seed
from tests.pages.table import PEOPLE, SOCKETS

pytestmark = pytest.mark.django_db(transaction=True)
in_thread = sync_to_async


class Line(ApplicationCommunicator):
    """A socket without a network (channels.testing imports daphne, which nothing here needs)."""

    def __init__(self, path: str, headers: list[tuple[bytes, bytes]]) -> None:
        where, _, query = path.partition("?")
        scope = {
            "type": "websocket",
            "path": where,
            "query_string": query.encode(),
            "headers": headers,
            "subprotocols": [],
        }
        super().__init__(application, scope)

    async def connect(self) -> bool:
        await self.send_input({"type": "websocket.connect"})
        return bool((await self.receive_output(5))["type"] == "websocket.accept")

    async def hang_up(self) -> None:
        await self.send_input({"type": "websocket.disconnect", "code": 1000})
        await self.wait(2)


@pytest.fixture(scope="module")
def guards(django_db_setup: None, django_db_blocker: Any) -> Iterator[list[tuple[str, str]]]:
    """What must be executed to (lift, set) the guards: history cannot be deleted, and a flush deletes it."""
    if connection.vendor == "postgresql":
        tables = [model._meta.db_table for model in apps.get_app_config("runs").get_models()]
        rules = [(f"ALTER TABLE {t} DISABLE TRIGGER USER", f"ALTER TABLE {t} ENABLE TRIGGER USER") for t in tables]
    else:
        with django_db_blocker.unblock(), connection.cursor() as cursor:
            cursor.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'")
            rules = [(f"DROP TRIGGER IF EXISTS {name}", sql) for name, sql in cursor.fetchall()]
    yield rules
    with django_db_blocker.unblock():
        execute([sql for pair in rules for sql in pair])


def execute(statements: list[str]) -> None:
    with connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)


@pytest.fixture
def played(guards: list[tuple[str, str]], transactional_db: None, settings: Any) -> Iterator[Story]:
    execute([sql for pair in guards for sql in pair])
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
    seed()
    yield Story("quitter").go()
    execute([lift for lift, _ in guards])


def socket(path: str, who: str = "", origin: str | None = None) -> Line:
    headers = [(b"origin", (origin or settings.AGENTOPS_ORIGIN).encode()), (b"host", b"127.0.0.1")]
    if who:
        cookie = browser(who).cookies[settings.SESSION_COOKIE_NAME].value
        headers.append((b"cookie", f"{settings.SESSION_COOKIE_NAME}={cookie}".encode()))
    return Line(path, headers)


@asynccontextmanager
async def watching(path: str, who: str = "auditor") -> AsyncIterator[Line]:
    line = await in_thread(socket)(path, who)
    assert await line.connect()
    try:
        yield line
    finally:
        await line.hang_up()


async def frames(line: Line, quiet: float = 0.4, around: bool = False) -> list[dict[str, Any]]:
    """Everything about the page, or about the frame around it, until nothing comes for a while."""
    found = []
    while not await line.receive_nothing(timeout=quiet):
        message = await line.receive_output(5)
        if message["type"] == "websocket.close":
            return [*found, {"close": message["code"]}]
        if ("waiting" in (frame := json.loads(message["text"]))) == around:
            found.append(frame)
    return found


@pytest.mark.parametrize("route", SOCKETS)
async def test_every_person_gets_what_the_table_says(played: Story, route: str) -> None:
    seen = {}
    for who in PEOPLE:
        line = await in_thread(socket)("/" + route.replace("RUN", str(played.run.pk)), who)
        assert await line.connect()
        said = await line.receive_output(5)
        seen[who] = said.get("code", "open")
        if seen[who] == "open":
            await line.hang_up()
    assert seen == SOCKETS[route]


@pytest.mark.parametrize(("who", "run", "code"), [("", 0, 4401), ("stranger", 0, 4404), ("auditor", 999, 4404)])
async def test_who_may_not_see_is_told_to_stop(played: Story, who: str, run: int, code: int) -> None:
    line = await in_thread(socket)(f"/ws/runs/{run or played.run.pk}/", who)
    await line.connect()
    assert await line.receive_output(5) == {"type": "websocket.close", "code": code}


async def test_a_page_of_another_origin_gets_no_line(played: Story) -> None:
    line = await in_thread(socket)(f"/ws/runs/{played.run.pk}/", "auditor", "https://evil.example")
    assert not await line.connect()


async def test_catching_up_sends_what_is_newer_and_nothing_twice(played: Story) -> None:
    async with watching(f"/ws/runs/{played.run.pk}/?after=0") as line:
        first = await frames(line)
    assert (
        first[0]["upto"] == played.run.seq
        and "card-turn-1" in first[0]["html"]
        and "beforeend:#timeline" in first[0]["html"]
    )
    assert "run-head" in first[1]["html"] and "upto" not in first[1]
    async with watching(f"/ws/runs/{played.run.pk}/?after={played.run.seq}") as line:
        assert [frame.get("upto") for frame in await frames(line)] == [None]  # the head alone
    async with watching(f"/ws/runs/{played.run.pk}/?after={played.run.seq - 1}") as line:
        last = (await frames(line))[0]["html"]
    assert "card-turn-1" not in last and f"card-event-{played.run.seq}" in last


async def test_a_nudge_brings_the_new_card_at_once_and_a_lost_one_costs_a_poll(played: Story) -> None:
    async with watching(f"/ws/runs/{played.run.pk}/?after={played.run.seq}") as line:
        await frames(line)
        await in_thread(add_note)(played.run.pk, await User.objects.aget(username="operator"), "Look <here>.")
        new = (await frames(line))[0]
        assert new["upto"] == played.run.seq + 1 and "Look &lt;here&gt;." in new["html"]


async def test_a_batch_is_bounded_and_the_rest_follows(played: Story) -> None:
    operator = await User.objects.aget(username="operator")

    def write() -> None:
        for number in range(consumers.BATCH + 20):
            add_note(played.run.pk, operator, f"Note {number}.")

    await in_thread(write)()
    async with watching(f"/ws/runs/{played.run.pk}/?after={played.run.seq}") as line:
        found = [frame for frame in await frames(line, 2) if "upto" in frame]
    assert [frame["html"].count('<li class="event"') for frame in found] == [consumers.BATCH, 20]


@pytest.mark.parametrize(("what", "code"), [("sign out", 4401), ("deactivate", 4401), ("leave the group", 4403)])
async def test_who_loses_the_right_is_cut_off_at_the_next_look(played: Story, what: str, code: int) -> None:
    async with watching(f"/ws/runs/{played.run.pk}/") as line:
        await frames(line)

        def lose() -> None:
            from django.contrib.sessions.models import Session

            someone = person("auditor")
            if what == "sign out":
                Session.objects.all().delete()
            elif what == "deactivate":
                User.objects.filter(pk=someone.pk).update(is_active=False)
            else:
                someone.groups.clear()

        await in_thread(lose)()
        await asyncio.sleep(consumers.TRUST)
        layer = get_channel_layer()
        assert layer is not None
        await layer.group_send(notify.group(played.run.pk), {"type": "news", "run": played.run.pk, "seq": 0})
        assert (await frames(line))[-1] == {"close": code}


async def test_the_poll_looks_without_a_nudge(played: Story) -> None:
    async with watching(f"/ws/runs/{played.run.pk}/") as line:
        await frames(line)
        await in_thread(lambda: person("auditor").groups.clear())()
        await asyncio.sleep(consumers.POLL)
        assert (await frames(line, 1))[-1] == {"close": 4403}


async def nudge_inbox() -> None:
    layer = get_channel_layer()
    assert layer is not None
    await layer.group_send(notify.INBOX, {"type": "news", "run": 0, "seq": 0})


async def test_the_inbox_names_new_rows_and_sends_nothing_while_nothing_differs(played: Story) -> None:
    async with watching("/ws/inbox/?view=mine", "operator") as line:
        first = await frames(line)
        assert len(first) == 1 and f'data-rows="stop-{played.run.pk}"' in first[0]["html"]
        assert '<span id="count-mine" hx-swap-oob="true">1</span>' in first[0]["html"]
        await nudge_inbox()
        assert await frames(line, 1.5) == []
        other = await in_thread(lambda: Story("quitter").go())()
        html = (await frames(line, 1.5))[-1]["html"]
        assert f'data-rows="stop-{played.run.pk} stop-{other.run.pk}"' in html
        assert 'class="row"' not in html  # a new row is named, and fetched when its reader wants it


async def test_a_row_in_view_that_ends_is_sent_once_as_it_ended(played: Story) -> None:
    async with watching(f"/ws/inbox/?view=mine&rows=stop-{played.run.pk}+approval-999+junk'", "operator") as line:
        await frames(line)
        operator = await User.objects.aget(username="operator")
        await in_thread(close_failed)(played.run.pk, operator, "Enough.")
        html = (await frames(line, 1.5))[-1]["html"]
        assert f'id="row-stop-{played.run.pk}"' in html and "data-done" in html and "Failed" in html
        assert f'id="changed-stop-{played.run.pk}"' in html
        await nudge_inbox()
        later = await frames(line, 1.5)
        assert all("data-done" not in frame["html"] for frame in later)


@pytest.mark.parametrize("where", ["/ws/shell/", "/ws/inbox/", "/ws/runs/{}/"])
async def test_every_page_hears_how_much_waits_for_its_viewer(played: Story, where: str) -> None:
    path = where.format(played.run.pk)
    async with watching(path, "operator") as mine, watching(path, "auditor") as theirs:
        first = await frames(mine, around=True)
        assert [(frame["waiting"], frame["title"]) for frame in first] == [(1, "(1) ")]
        assert "count-inbox" in first[0]["html"] and first[0]["told"] == "1 item waits for you"
        assert [(f["waiting"], f["title"]) for f in await frames(theirs, around=True)] == [(0, "")]
        await in_thread(lambda: Story("quitter").go())()
        assert (await frames(mine, around=True))[-1]["waiting"] == 2
        assert "2 items wait for a person" in (await frames(theirs, around=True))[-1]["html"]


async def test_a_socket_speaks_its_viewer_s_language(played: Story) -> None:
    from runs.models import Preference

    await in_thread(Preference.objects.create)(person=await in_thread(person)("operator"), language="zh-hans")
    async with watching("/ws/shell/", "operator") as line:
        assert len(await frames(line, around=True)) == 1
