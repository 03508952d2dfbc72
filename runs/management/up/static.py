"""Hashed names for the static files, made again only when a file changed."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys

from django.conf import settings
from django.contrib.staticfiles.finders import get_finders

from runs.management.up.preflight import Refusal


def collect() -> None:
    """Collect into the data folder; the storage is chosen when settings load, hence a process of its own."""
    stamp = settings.STATIC_ROOT / ".stamp"
    now = _fingerprint()
    if stamp.exists() and stamp.read_text() == now and (settings.STATIC_ROOT / "staticfiles.json").exists():
        return
    command = [sys.executable, "manage.py", "collectstatic", "--noinput", "--clear", "--verbosity", "0"]
    done = subprocess.run(
        command,
        cwd=settings.BASE_DIR,
        env=os.environ | {"AGENTOPS_COLLECT": "1"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
    )
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        raise Refusal(f"the static files cannot be collected ({last}): correct the file that it names under static/")
    stamp.write_text(now)


def _fingerprint() -> str:
    digest = hashlib.sha256()
    for finder in get_finders():
        for path, storage in finder.list([]):
            found = os.stat(storage.path(path))
            digest.update(f"{path}\0{found.st_size}\0{found.st_mtime_ns}\0".encode())
    return digest.hexdigest()
