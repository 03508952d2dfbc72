"""Group messages reach consumers from any thread, loop and process, however long the data folder's path is."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from django.core.exceptions import ImproperlyConfigured

from agentops.layers import LocalSocketLayer, runtime_folder
from tests.stack import ROOT, clean_environment

SEND = """
import asyncio, sys
from agentops.layers import LocalSocketLayer
layer = LocalSocketLayer(sys.argv[1])
for number in range(int(sys.argv[2])):
    asyncio.run(layer.group_send("g", {"type": "nudge", "seq": number}))
"""


@pytest.fixture
def var(tmp_path: Path) -> Path:
    path = tmp_path / ("long" * 40)
    path.mkdir()
    return path


async def joined(layer: LocalSocketLayer) -> str:
    channel = await layer.new_channel()
    await layer.group_add("g", channel)
    return channel


async def test_from_another_process_in_order_and_faster_than_the_kernel_queue_is_long(var: Path) -> None:
    layer = LocalSocketLayer(str(var))
    channel = await joined(layer)
    command = [sys.executable, "-c", SEND, str(var), "40"]
    process = await asyncio.create_subprocess_exec(*command, cwd=ROOT, env=clean_environment())
    got = [await asyncio.wait_for(layer.receive(channel), 10) for _ in range(40)]
    await process.wait()
    assert [message["seq"] for message in got] == list(range(40))
    await layer.close()


async def test_from_a_thread_without_a_loop_of_its_own_at_once(var: Path) -> None:
    layer = LocalSocketLayer(str(var))
    channel = await joined(layer)
    threading.Thread(target=lambda: asyncio.run(layer.group_send("g", {"type": "nudge"}))).start()
    assert await asyncio.wait_for(layer.receive(channel), 0.5) == {"type": "nudge"}
    await layer.close()


def test_a_socket_of_a_killed_process_is_removed(var: Path) -> None:
    code = "import asyncio,os,sys; from agentops.layers import LocalSocketLayer as L\n"
    code += "async def f(): await L(sys.argv[1]).new_channel(); os._exit(9)\nasyncio.run(f())"
    subprocess.run([sys.executable, "-c", code, str(var)], cwd=ROOT, env=clean_environment(), check=False)
    assert len(list(runtime_folder(var).iterdir())) == 1
    asyncio.run(LocalSocketLayer(str(var)).group_send("g", {"type": "nudge"}))
    assert list(runtime_folder(var).iterdir()) == []


def test_a_new_loop_gets_a_new_socket(var: Path) -> None:
    layer = LocalSocketLayer(str(var))
    for _ in range(2):

        async def once() -> None:
            channel = await joined(layer)
            await layer.group_send("g", {"type": "nudge"})
            assert await asyncio.wait_for(layer.receive(channel), 1)

        asyncio.run(once())
    assert len(list(runtime_folder(var).iterdir())) == 1


def test_a_folder_that_others_can_open_is_refused(var: Path) -> None:
    folder = runtime_folder(var)
    folder.chmod(0o755)
    with pytest.raises(ImproperlyConfigured, match="remove it"):
        runtime_folder(var)
    folder.chmod(0o700)
    folder.rmdir()
    folder.symlink_to(var)
    with pytest.raises(ImproperlyConfigured, match="remove it"):
        runtime_folder(var)
    os.unlink(folder)
