"""Bring .venv to the state of one lock file; instant when it is there already.

Runs with the system's Python before anything is installed, so: standard library, and syntax that an old Python can
parse to the point where it is told that it is too old.
"""

import hashlib
import json
import os
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
VENV = os.path.join(ROOT, ".venv")
PYTHON = os.path.join(VENV, "bin", "python")
STAMP = os.path.join(VENV, ".locks.json")
# Each of these lists holds the one before it whole.
LOCKS = ["requirements.lock", "requirements-dev.lock", "requirements-e2e.lock"]


def main(lock):
    """Check Python, make the environment, install the lock file with its hashes."""
    if sys.version_info < (3, 11):
        sys.exit("agentops: python3 is %d.%d, but 3.11 or newer is needed" % sys.version_info[:2])
    wanted = digest(lock)
    if healthy() and stamps().get(lock) == wanted:
        return
    make_venv()
    print("agentops: installing %s into .venv ..." % lock, flush=True)
    command = [PYTHON, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-input"]
    command += ["--require-hashes", "--only-binary", ":all:", "-r", os.path.join(ROOT, lock)]
    told = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if told.returncode != 0:
        print(told.stdout, file=sys.stderr)
        sys.exit("agentops: %s could not be installed; pip's lines above say why (often: no network)" % lock)
    done = LOCKS[: LOCKS.index(lock) + 1]
    with open(STAMP, "w") as file:
        json.dump({**stamps(), **{name: digest(name) for name in done}}, file)


def make_venv():
    """A virtual environment that works; one of a removed or older Python is made again."""
    try:
        import ensurepip  # noqa: F401
        import venv
    except ImportError:
        sys.exit("agentops: python3-venv is missing: apt-get install python3-venv")
    if not healthy():
        venv.create(VENV, with_pip=True, clear=True)


def healthy():
    """Whether .venv has a Python 3.11 or newer that starts, with pip."""
    probe = "import sys, pip; sys.exit(sys.version_info < (3, 11))"
    try:
        return subprocess.call([PYTHON, "-c", probe], stderr=subprocess.DEVNULL) == 0
    except OSError:
        return False


def stamps():
    """Lock file -> digest of what was installed last."""
    try:
        with open(STAMP) as file:
            return dict(json.load(file))
    except (OSError, ValueError):
        return {}


def digest(lock):
    """Content, not time: a fresh checkout of the same lock installs nothing."""
    with open(os.path.join(ROOT, lock), "rb") as file:
        return hashlib.sha256(file.read()).hexdigest()


if __name__ == "__main__":
    if len(sys.argv) != 2 or sys.argv[1] not in LOCKS:
        sys.exit("usage: python3 scripts/install.py %s" % " | ".join(LOCKS))
    main(sys.argv[1])
