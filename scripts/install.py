"""Bring .venv, or one of the environments aside, to the state of one lock file; instant when it is there already.

Runs with the system's Python before anything is installed, so: standard library, and syntax that an old Python can
parse to the point where it is told that it is too old.
"""

import hashlib
import json
import os
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
# Each of these lists holds the one before it whole.
LOCKS = ["requirements.lock", "requirements-dev.lock", "requirements-e2e.lock"]
# Programs of others to compare with: they bring what we do not use, so each lives in an environment of its own.
ASIDE = {"bench/requirements.lock": ".venv-bench", "tests/peers/requirements.lock": ".venv-peers"}


def main(lock):
    """Check Python, make the environment, install the lock file with its hashes."""
    if sys.version_info < (3, 11):
        sys.exit("agentops: python3 is %d.%d, but 3.11 or newer is needed" % sys.version_info[:2])
    place = ASIDE.get(lock, ".venv")
    venv = os.path.join(ROOT, place)
    stamp = os.path.join(venv, ".locks.json")
    if healthy(venv) and stamps(stamp).get(lock) == digest(lock):
        return
    make_venv(venv)
    print("agentops: installing %s into %s ..." % (lock, place), flush=True)
    command = [python(venv), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-input"]
    command += ["--require-hashes", "--only-binary", ":all:", "-r", os.path.join(ROOT, lock)]
    told = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if told.returncode != 0:
        print(told.stdout, file=sys.stderr)
        sys.exit("agentops: %s could not be installed; pip's lines above say why (often: no network)" % lock)
    done = [lock] if lock in ASIDE else LOCKS[: LOCKS.index(lock) + 1]
    with open(stamp, "w") as file:
        json.dump({**stamps(stamp), **{name: digest(name) for name in done}}, file)


def python(venv):
    """The interpreter of a virtual environment."""
    return os.path.join(venv, "bin", "python")


def make_venv(path):
    """A virtual environment that works; one of a removed or older Python is made again."""
    try:
        import ensurepip  # noqa: F401
        import venv
    except ImportError:
        sys.exit("agentops: python3-venv is missing: apt-get install python3-venv")
    if not healthy(path):
        venv.create(path, with_pip=True, clear=True)


def healthy(venv):
    """Whether it has a Python 3.11 or newer that starts, with pip."""
    probe = "import sys, pip; sys.exit(sys.version_info < (3, 11))"
    try:
        return subprocess.call([python(venv), "-c", probe], stderr=subprocess.DEVNULL) == 0
    except OSError:
        return False


def stamps(path):
    """Lock file -> digest of what was installed last."""
    try:
        with open(path) as file:
            return dict(json.load(file))
    except (OSError, ValueError):
        return {}


def digest(lock):
    """Content, not time: a fresh checkout of the same lock installs nothing."""
    with open(os.path.join(ROOT, lock), "rb") as file:
        return hashlib.sha256(file.read()).hexdigest()


if __name__ == "__main__":
    if len(sys.argv) != 2 or sys.argv[1] not in [*LOCKS, *ASIDE]:
        sys.exit("usage: python3 scripts/install.py %s" % " | ".join([*LOCKS, *ASIDE]))
    main(sys.argv[1])
