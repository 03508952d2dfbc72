"""Start the service: ``python -m demo.service --data FOLDER [--port N] [--retention SECONDS]``."""

import argparse
import fcntl
import json
import logging
import os
import signal
import sys
import threading
from pathlib import Path
from urllib.parse import urlsplit

from demo.service.routes import Site
from demo.service.server import Server
from demo.service.store import Store

PLACE = "demo-service.json"
DAY = 86_400.0


def main() -> int:
    """Serve until SIGTERM or SIGINT."""
    options = _options()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    options.data.mkdir(parents=True, exist_ok=True)
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    with (options.data / "demo-service.lock").open("w") as lock:
        try:
            # The kernel frees it when the process dies, however it dies.
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print(f"another demo service works on {options.data}", file=sys.stderr)
            return 1
        return _serve(options, stop)


def _serve(options: argparse.Namespace, stop: threading.Event) -> int:
    place = options.data / PLACE
    store = Store(options.data / "demo-service.sqlite3")
    server = _listen(options.port, _last_port(place), Site(store, options.retention))
    url = f"http://127.0.0.1:{server.server_port}"
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
    _write_whole(place, json.dumps({"url": url, "pid": os.getpid()}))
    logging.info("order service on %s", url)
    stop.wait()
    server.shutdown()
    server.server_close()
    store.close()
    return 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="demo.service", description="The order service of the demo.")
    parser.add_argument("--data", type=Path, required=True, help="folder for the database and demo-service.json")
    parser.add_argument("--port", type=int, default=0, help="0: the port of the last time, else a free one")
    parser.add_argument("--retention", type=float, default=DAY, help="seconds for which idempotency keys are kept")
    return parser.parse_args()


def _listen(port: int, last: int, site: Site) -> Server:
    """Workers read the address at each call, but a call may begin while we restart: keep the port where we can."""
    if not port and last:
        try:
            return Server(last, site)
        except OSError:
            logging.info("port %s is taken, choosing another", last)
    return Server(port, site)


def _last_port(place: Path) -> int:
    try:
        return urlsplit(json.loads(place.read_text())["url"]).port or 0
    except (OSError, ValueError, KeyError, TypeError):
        return 0


def _write_whole(place: Path, text: str) -> None:
    """A reader finds the old text or the new one, never a half."""
    draft = place.with_suffix(".new")
    draft.write_text(text)
    draft.replace(place)


if __name__ == "__main__":
    sys.exit(main())
