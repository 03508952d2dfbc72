"""The web process: Django's pages, and the sockets of pages that came from our own origin."""

from __future__ import annotations

from agentops.start import settings_or_exit

settings_or_exit()

from channels.auth import AuthMiddlewareStack  # noqa: E402
from channels.routing import ProtocolTypeRouter, URLRouter  # noqa: E402
from channels.security.websocket import OriginValidator  # noqa: E402
from django.conf import settings  # noqa: E402
from django.core.asgi import get_asgi_application  # noqa: E402

pages = get_asgi_application()  # loads the apps, which the imports below need

from agentops.lifespan import Lifespan  # noqa: E402
from runs.routing import websocket_urlpatterns  # noqa: E402

application = ProtocolTypeRouter(
    {
        "http": pages,
        # The full origin, scheme and port included: AllowedHostsOriginValidator would compare the host alone.
        "websocket": OriginValidator(AuthMiddlewareStack(URLRouter(websocket_urlpatterns)), settings.AGENTOPS_ORIGINS),
        "lifespan": Lifespan(),
    }
)
