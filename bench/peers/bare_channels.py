"""Channels with nothing on it: `uvicorn bench.peers.bare_channels:app`; `python -m bench.peers.bare_channels SEND N`.

A consumer joins one group and passes on what is sent to it; the sender prints the time before each send, in seconds
since 1970. BARE_REDIS names the server of the layer. The text is as long as a frame of one card.
"""

import asyncio
import json
import os
import sys
import time
from typing import Any

from channels.generic.websocket import AsyncWebsocketConsumer
from channels_redis.pubsub import RedisPubSubChannelLayer

GROUP, TEXT = "bare", json.dumps({"html": "x" * 700})
LAYER = RedisPubSubChannelLayer(hosts=[os.environ.get("BARE_REDIS", "redis://127.0.0.1:6379")])


class Bare(AsyncWebsocketConsumer):
    """Everything that is sent, to everybody."""

    async def connect(self) -> None:
        """Join, say nothing."""
        self.channel_layer = LAYER
        self.channel_name = await LAYER.new_channel()
        await LAYER.group_add(GROUP, self.channel_name)
        await self.accept()
        self.reader = asyncio.create_task(self._read())

    async def _read(self) -> None:
        while True:
            message = await LAYER.receive(self.channel_name)
            await self.send(text_data=message["text"])

    async def disconnect(self, code: int) -> None:
        """Leave."""
        self.reader.cancel()


consumer = Bare.as_asgi()


async def app(scope: Any, receive: Any, send: Any) -> None:
    """Sockets alone."""
    if scope["type"] == "lifespan":
        while True:
            message = await receive()
            await send({"type": f"{message['type']}.complete"})
            if message["type"] == "lifespan.shutdown":
                return
    await consumer(scope, receive, send)


async def _send(count: int) -> None:
    for _ in range(count):
        print(time.time(), flush=True)
        await LAYER.group_send(GROUP, {"type": "news", "text": TEXT})
        await asyncio.sleep(0.25)


if __name__ == "__main__":
    asyncio.run(_send(int(sys.argv[2])))
