"""Hints: the first comes at once, a burst is told in few, and the last is never lost."""

import asyncio
import uuid

from channels.layers import get_channel_layer

from runs import notify


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
