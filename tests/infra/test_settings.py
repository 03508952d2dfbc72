"""A wrong knob stops the start with one line that names it and says what it wants."""

from __future__ import annotations

import stat
import subprocess
import sys
from pathlib import Path

import pytest

from tests.stack import ROOT, clean_environment

REDIS = {"CHANNEL_REDIS_URL": "redis://127.0.0.1:6379"}
READ = "from django.conf import settings; print({})"


def run(tmp_path: Path, *command: str, **env: str) -> subprocess.CompletedProcess[str]:
    environment = clean_environment() | {"AGENTOPS_VAR": str(tmp_path / "var")} | env
    return subprocess.run([sys.executable, *command], cwd=ROOT, env=environment, capture_output=True, text=True)


def value(tmp_path: Path, expression: str, **env: str) -> str:
    code = READ.format(expression)
    done = run(tmp_path, "-W", "error", "-c", code, DJANGO_SETTINGS_MODULE="agentops.settings", **env)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


WRONG = [
    ("PORT", "eighty", "whole number from 1 to 65535"),
    ("PORT", "70000", "whole number from 1 to 65535"),
    ("AGENTOPS_LEASE", "0", "positive number of seconds"),
    ("AGENTOPS_LEASE", "nan", "positive number of seconds"),
    ("AGENTOPS_PROBES", "5,1", "growing delays"),
    ("AGENTOPS_PROBES", "0,1,2,3,4", "growing delays"),
    ("AGENTOPS_WORKER_THREADS", "0", "whole number"),
    ("AGENTOPS_PREPARE", "yes", "whole number"),
    ("AGENTOPS_TOOLS", "demo,no_such_package", "no_such_package"),
    ("AGENTOPS_TOOLS", "demo;import os", "cannot be imported"),
    ("AGENTOPS_ORIGIN", "http://agents.example.org", "plain http is for this machine only"),
    ("AGENTOPS_ORIGIN", "https://agents.example.org/app", "scheme://host"),
    ("AGENTOPS_ORIGIN", "agents.example.org", "scheme://host"),
    ("AGENTOPS_ORIGIN", "http://localhost:99999", "scheme://host"),
    ("AGENTOPS_SECRET_KEY", "short", "50 random characters"),
    ("AGENTOPS_VAR", "/dev/null/var", "cannot make the data folder"),
    ("DATABASE_URL", "mysql://root:hunter2@localhost/x", "postgresql://"),
    ("DATABASE_URL", "sqlite://:memory:", "sqlite:////absolute/path"),
    ("DATABASE_URL", "postgresql://user:hunter2@localhost:port/x", "postgresql://"),
    ("ANTHROPIC_BASE_URL", "http://models.example.org", "plain http on this machine only"),
    ("ANTHROPIC_BASE_URL", "https://user:hunter2@models.example.org", "https://host"),
    ("CELERY_BROKER_URL", "memory://", "redis://"),
    ("CHANNEL_REDIS_URL", "http://:hunter2@localhost", "redis://"),
]


@pytest.mark.parametrize(("name", "wrong", "says"), WRONG)
def test_a_wrong_value_is_one_line_that_names_the_variable(tmp_path: Path, name: str, wrong: str, says: str) -> None:
    done = run(tmp_path, "manage.py", "check", **{name: wrong})
    assert done.returncode != 0
    assert len(done.stderr.strip().splitlines()) == 1, done.stderr
    assert name in done.stderr and says in done.stderr
    assert "hunter2" not in done.stderr


@pytest.mark.parametrize("module", ["agentops.asgi", "agentops.celery"])
def test_web_and_worker_refuse_in_one_line_too(tmp_path: Path, module: str) -> None:
    done = run(tmp_path, "-c", f"import {module}", PORT="x")
    assert done.returncode == 1
    assert done.stderr.startswith("agentops: PORT") and len(done.stderr.splitlines()) == 1


def test_the_secret_key_is_made_once_and_is_its_owners_alone(tmp_path: Path) -> None:
    first, second = value(tmp_path, "settings.SECRET_KEY"), value(tmp_path, "settings.SECRET_KEY")
    assert first == second and len(first) >= 50
    assert stat.S_IMODE((tmp_path / "var" / "secret-key").stat().st_mode) == 0o600
    assert stat.S_IMODE((tmp_path / "var").stat().st_mode) == 0o700


def test_https_makes_cookies_secure_and_http_keeps_installations_apart(tmp_path: Path) -> None:
    secure = "settings.SESSION_COOKIE_NAME, settings.CSRF_COOKIE_SECURE, settings.SECURE_HSTS_SECONDS"
    assert value(tmp_path, secure, AGENTOPS_ORIGIN="https://a.example") == "__Host-session True 31536000"
    assert "True" not in value(tmp_path, "settings.SESSION_COOKIE_SECURE", PORT="8123")
    assert value(tmp_path, "settings.SESSION_COOKIE_NAME", PORT="8123") == "session-8123"


def test_debug_has_no_knob(tmp_path: Path) -> None:
    assert value(tmp_path, "settings.DEBUG", DEBUG="1", AGENTOPS_DEBUG="1") == "False"


def test_a_quiet_socket_on_redis_outlives_the_wait_of_its_layer(tmp_path: Path) -> None:
    """Else the client gives up in the very second in which the layer would have asked again."""
    from channels_redis.core import RedisChannelLayer

    found = value(tmp_path, "settings.CHANNEL_LAYERS['default']['CONFIG']['hosts'][0]['socket_timeout']", **REDIS)
    assert float(found) > RedisChannelLayer.brpop_timeout


def test_statements_are_prepared_unless_a_pooler_cannot_keep_them(tmp_path: Path) -> None:
    database = "settings.DATABASES['default']['OPTIONS']['prepare_threshold']"
    address = {"DATABASE_URL": "postgresql://127.0.0.1/x"}
    assert value(tmp_path, database, **address) == "3"
    assert value(tmp_path, database, **address, AGENTOPS_PREPARE="0") == "None"
