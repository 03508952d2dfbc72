"""Hints: the first comes at once, a burst is told in few, and the last is never lost."""

import asyncio
import contextlib
import queue
import threading
import time
import uuid
from typing import Any

import pytest
from channels.layers import get_channel_layer

from runs import notify
from runs.engine import events as e
from tests.journal.story import Story


async def heard(group: str, last: int) -> list[int]:
    """Sequence numbers that a watcher of `group` hears while `last` nudges are given."""
    layer = get_channel_layer()
    channel = await layer.new_channel()
    await layer.group_add(group, channel)
    for seq in range(1, last + 1):
        notify.nudge(group, 7, seq)
    seqs: list[int] = []
    while not seqs or seqs[-1] != last:
        seqs.append((await asyncio.wait_for(layer.receive(channel), 5))["seq"])
    await layer.group_discard(group, channel)
    return seqs


async def test_a_burst_is_told_in_few_and_ends_with_the_last() -> None:
    seqs = await heard(f"t-{uuid.uuid4().hex}", 500)
    assert seqs[0] == 1 and seqs == sorted(seqs) and len(seqs) < 50


async def test_a_group_that_was_quiet_is_told_again() -> None:
    group = f"t-{uuid.uuid4().hex}"
    assert await heard(group, 1) == [1]
    await asyncio.sleep(2 * notify.GAP)
    assert (await heard(group, 2))[-1] == 2


@pytest.mark.django_db
def test_nobody_is_told_of_what_is_not_committed(django_capture_on_commit_callbacks: Any) -> None:
    story = Story()
    group, said = notify.group(story.run.pk), queue.SimpleQueue[int]()

    async def watch() -> None:
        layer = get_channel_layer()
        channel = await layer.new_channel()
        await layer.group_add(group, channel)
        said.put(-1)
        with contextlib.suppress(TimeoutError):
            for _ in range(2):
                said.put((await asyncio.wait_for(layer.receive(channel), 3))["seq"])
        await layer.group_discard(group, channel)

    watcher = threading.Thread(target=asyncio.run, args=(watch(),))
    watcher.start()
    assert said.get(timeout=5) == -1, "it listens"
    try:
        with django_capture_on_commit_callbacks(execute=True):
            time.sleep(3 * notify.GAP)  # what was said before is over: news of one burst is told as one
            story.add(e.NoteAdded("x"))
            time.sleep(3 * notify.GAP)
            notify.nudge(group, story.run.pk, 0)
            assert said.get(timeout=5) == 0, "what was said aloud comes first, not the append that is not committed"
        assert said.get(timeout=5) == story.row.seq, "after its commit"
    finally:
        watcher.join(10)
