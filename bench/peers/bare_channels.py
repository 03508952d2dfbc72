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

from django.conf import settings

REDIS = os.environ.get("BARE_REDIS", "redis://127.0.0.1:6379")
LAYER = {"BACKEND": "channels_redis.pubsub.RedisPubSubChannelLayer", "CONFIG": {"hosts": [REDIS]}}
settings.configure(CHANNEL_LAYERS={"default": LAYER})

from channels.generic.websocket import AsyncWebsocketConsumer  # noqa: E402  # reads the settings
from channels.layers import get_channel_layer  # noqa: E402

GROUP, TEXT = "bare", json.dumps({"html": "x" * 700})


class Bare(AsyncWebsocketConsumer):
    """Everything that is sent, to everybody."""

    groups = [GROUP]

    async def news(self, message: dict[str, Any]) -> None:
        """Pass it on."""
        await self.send(text_data=message["text"])


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
    layer: Any = get_channel_layer()
    for _ in range(count):
        print(time.time(), flush=True)
        await layer.group_send(GROUP, {"type": "news", "text": TEXT})
        await asyncio.sleep(0.25)


if __name__ == "__main__":
    asyncio.run(_send(int(sys.argv[2])))
