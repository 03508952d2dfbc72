"""Every knob of an installation, read from the environment; a bad value stops the start with one line.

The table of knobs for readers is in README.md. Nothing else in the project reads the environment for settings.
"""

from __future__ import annotations

import os
import secrets
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import environ
from csp.constants import NONE, SELF
from django.core.exceptions import ImproperlyConfigured

from agentops.knobs import (
    api_url,
    between,
    catalogues,
    delays,
    env,
    folder,
    is_loopback,
    key_file,
    knob,
    packages,
    seconds,
)
from agentops.logs import not_health

BASE_DIR = Path(__file__).resolve().parent.parent


# --- the data folder --------------------------------------------------------------------------------------------------
def data_folder() -> Path:
    """The folder of everything this installation keeps, made on first use, for its owner only."""
    path = Path(env.str("AGENTOPS_VAR", default="") or BASE_DIR / "var").expanduser()
    path = path if path.is_absolute() else BASE_DIR / path
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise ImproperlyConfigured(
            f"AGENTOPS_VAR: cannot make the data folder {path} ({error.strerror}); "
            "give your user the right to write there or name another folder"
        ) from None
    if not os.access(path, os.R_OK | os.W_OK | os.X_OK):
        raise ImproperlyConfigured(
            f"AGENTOPS_VAR: no permission to write in the data folder {path}; "
            "give your user the right to write there or name another folder"
        )
    return path.resolve()


def subfolder(*names: str) -> Path:
    """A private folder below the data folder."""
    path = VAR.joinpath(*names)
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    return path


def secret_key() -> str:
    """The key of sessions and signatures: given, or made once and kept readable by its owner alone."""
    given = env.str("AGENTOPS_SECRET_KEY", default="")
    if given:
        if len(given) < 50:
            raise ImproperlyConfigured("AGENTOPS_SECRET_KEY is too short: use at least 50 random characters")
        return given
    path = VAR / "secret-key"
    if not path.exists():
        fresh = VAR / f".secret-key-{os.getpid()}-{secrets.token_hex(4)}"
        with open(os.open(fresh, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "w") as file:
            file.write(secrets.token_urlsafe(64))
        try:
            os.link(fresh, path)  # atomic: of two first starts one wins, and nobody reads half a key
        except FileExistsError:
            pass
        finally:
            fresh.unlink()
    key = path.read_text().strip()
    if len(key) < 50:
        raise ImproperlyConfigured(f"{path} is damaged: remove it and a new key is made (people must sign in again)")
    return key


VAR = AGENTOPS_VAR = data_folder()
SECRET_KEY = secret_key()
DEBUG = False  # no knob: a page of internals is never the answer

# --- where people reach it --------------------------------------------------------------------------------------------
PORT = between("PORT", 8000, 1, 65535)


def origin() -> tuple[str, str, bool]:
    """The one address of this installation: (origin, host, whether it is https)."""
    raw = env.str("AGENTOPS_ORIGIN", default="").strip().rstrip("/") or f"http://127.0.0.1:{PORT}"
    parts = urlsplit(raw)
    try:
        host, _ = parts.hostname or "", parts.port
    except ValueError:
        host = ""
    if parts.scheme not in ("http", "https") or not host or parts.path or parts.query or parts.username:
        raise ImproperlyConfigured(
            f"AGENTOPS_ORIGIN={raw!r} is wrong: it wants scheme://host[:port], for example https://agents.example.org"
        )
    if parts.scheme == "http" and not is_loopback(host):
        raise ImproperlyConfigured(
            f"AGENTOPS_ORIGIN={raw!r} is refused: plain http is for this machine only (127.0.0.1, localhost); "
            "use https behind a proxy that terminates TLS"
        )
    return raw, host, parts.scheme == "https"


AGENTOPS_ORIGIN, HOST, HTTPS = origin()
# On a loopback address both spellings of "this machine" are the same place to a person typing it.
_aliases = (
    [] if HTTPS else [f"http://{name}:{urlsplit(AGENTOPS_ORIGIN).port or 80}" for name in ("127.0.0.1", "localhost")]
)
AGENTOPS_ORIGINS = list(dict.fromkeys([AGENTOPS_ORIGIN, *_aliases]))
ALLOWED_HOSTS = list(dict.fromkeys([HOST if ":" not in HOST else f"[{HOST}]", "127.0.0.1", "localhost", "[::1]"]))
CSRF_TRUSTED_ORIGINS = [AGENTOPS_ORIGIN] if HTTPS else []

SECURE_SSL_REDIRECT = HTTPS
SECURE_REDIRECT_EXEMPT = [r"^healthz$"]  # asked by supervisors and balancers on the inner, plain side
SECURE_HSTS_SECONDS = 365 * 24 * 3600 if HTTPS else 0
# Not no-referrer: browsers then send forms with "Origin: null", which CSRF rightly refuses.
SECURE_REFERRER_POLICY = "same-origin"
CSRF_FAILURE_VIEW = "runs.views.errors.csrf_failure"
SECURE_CROSS_ORIGIN_OPENER_POLICY = "same-origin"
SECURE_CONTENT_TYPE_NOSNIFF = True
X_FRAME_OPTIONS = "DENY"
# Cookies do not see ports, so two installations on one machine would sign each other out: the port is in the name.
SESSION_COOKIE_NAME = "__Host-session" if HTTPS else f"session-{PORT}"
CSRF_COOKIE_NAME = "__Host-csrf" if HTTPS else f"csrf-{PORT}"
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = HTTPS
SESSION_COOKIE_HTTPONLY = CSRF_COOKIE_HTTPONLY = True
SESSION_COOKIE_SAMESITE = CSRF_COOKIE_SAMESITE = "Lax"
SESSION_COOKIE_AGE = 8 * 3600
DATA_UPLOAD_MAX_MEMORY_SIZE = 1024 * 1024
# Neighbours below our domain may still be plain http and are not ours to switch over.
SILENCED_SYSTEM_CHECKS = ["security.W005", "security.W021"]

CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": [NONE],
        "script-src": [SELF],
        "style-src": [SELF],
        "img-src": [SELF],
        "font-src": [SELF],
        # 'self' covers sockets in current browsers only; the explicit origins are for the others.
        "connect-src": [SELF, *(o.replace("http", "ws", 1) for o in AGENTOPS_ORIGINS)],
        "form-action": [SELF],
        "frame-ancestors": [NONE],
        "base-uri": [NONE],
    }
}

# --- Django -----------------------------------------------------------------------------------------------------------
INSTALLED_APPS = [
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "django.contrib.admin",
    "channels",
    "django_htmx",
    "csp",
    "template_partials",
    "runs.apps.RunsConfig",
]
MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "agentops.middleware.StaticFiles",
    "agentops.middleware.private_answers",
    "csp.middleware.CSPMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "runs.views.speaking.speaking",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
]
ROOT_URLCONF = "agentops.urls"
ASGI_APPLICATION = "agentops.asgi.application"
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "runs.views.speaking.frame",
            ]
        },
    }
]
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
LOGIN_URL = "sign-in"
LOGIN_REDIRECT_URL = "/"
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"django.contrib.auth.password_validation.{name}"}
    for name in ("UserAttributeSimilarityValidator", "MinimumLengthValidator", "CommonPasswordValidator")
]
LANGUAGE_CODE = "en"
LANGUAGES = [("en", "English"), ("zh-hans", "简体中文")]  # each in its own words: who cannot read the page finds theirs
LANGUAGE_COOKIE_NAME = "agentops-language"
USE_I18N = True
USE_TZ = True
TIME_ZONE = "UTC"

STATIC_URL = "/static/"
STATIC_ROOT = subfolder("static")
STATICFILES_DIRS = [BASE_DIR / "static"] if (BASE_DIR / "static").is_dir() else []
WHITENOISE_ALLOW_ALL_ORIGINS = False
# Collected (`make up` does it): hashed, compressed names that browsers keep for ever. Else: straight from source.
_collected = (STATIC_ROOT / "staticfiles.json").exists()
WHITENOISE_USE_FINDERS = not _collected
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {
        "BACKEND": "whitenoise.storage.CompressedManifestStaticFilesStorage"
        if _collected or env.bool("AGENTOPS_COLLECT", default=False)
        else "django.contrib.staticfiles.storage.StaticFilesStorage"
    },
}

# --- what the engine is told ------------------------------------------------------------------------------------------
AGENTOPS_TOOLS: tuple[str, ...] = knob("AGENTOPS_TOOLS", (), packages, "a comma-separated list of Python packages")
# A package may bring what it says to people in other languages: its folder `locale`, as Django wants it.
LOCALE_PATHS = [BASE_DIR / "locale", *catalogues(AGENTOPS_TOOLS)]
# Keys and addresses of model APIs, handed to the providers, which read no environment of their own.
AGENTOPS_MODELS = {
    "ANTHROPIC_API_KEY": env.str("ANTHROPIC_API_KEY", default="").strip(),
    "ANTHROPIC_BASE_URL": api_url("ANTHROPIC_BASE_URL"),
}
AGENTOPS_DEMO_PASSWORD = env.str("AGENTOPS_DEMO_PASSWORD", default="")
AGENTOPS_LEASE = seconds("AGENTOPS_LEASE", 15)
AGENTOPS_SWEEP = seconds("AGENTOPS_SWEEP", 1)
AGENTOPS_WAKE_AGAIN = seconds("AGENTOPS_WAKE_AGAIN", 10)
AGENTOPS_PROBES: tuple[float, ...] = knob(
    "AGENTOPS_PROBES", (0.0, 2.0, 10.0, 60.0), delays, "one to four growing delays in seconds: 0,2,10,60"
)
AGENTOPS_WATCH: tuple[float, ...] = knob(
    "AGENTOPS_WATCH", (600.0, 86_400.0), delays, "one to four growing delays in seconds: 600,86400"
)
AGENTOPS_WORKER_THREADS = between("AGENTOPS_WORKER_THREADS", 8, 1, 200)
AGENTOPS_CHECKPOINT = seconds("AGENTOPS_CHECKPOINT", 60)
AGENTOPS_HEADS = folder("AGENTOPS_HEADS", VAR / "heads")
AGENTOPS_HEADS_KEY = knob("AGENTOPS_HEADS_KEY", "", key_file, "a file that holds 32 random bytes or more")
AGENTOPS_BEAT = seconds("AGENTOPS_BEAT", 5)
AGENTOPS_STALE = seconds("AGENTOPS_STALE", 15)


# --- database ---------------------------------------------------------------------------------------------------------
# What is sent again and again is parsed once; a pooler between us and the server may not stand that.
AGENTOPS_PREPARE = between("AGENTOPS_PREPARE", 3, 0, 1000)


def database() -> dict[str, Any]:
    """SQLite in the data folder, or the PostgreSQL that DATABASE_URL names."""
    raw = env.str("DATABASE_URL", default="").strip() or f"sqlite:///{VAR / 'agentops.sqlite3'}"
    wants = "postgresql://user:password@host:5432/name or sqlite:////absolute/path"
    scheme = raw.partition("://")[0]
    try:
        known = scheme in ("sqlite", "postgres", "postgresql") and ":memory:" not in raw
        config: dict[str, Any] = environ.Env.db_url_config(raw) if known else {}
    except ValueError:
        config = {}
    if not config.get("NAME"):  # the value may hold a password: it is not repeated
        raise ImproperlyConfigured(f"DATABASE_URL is wrong: it wants {wants}")
    options = config.pop("OPTIONS", {})
    return config | (
        {"ATOMIC_REQUESTS": False} | (sqlite(config, options) if scheme == "sqlite" else postgres(options))
    )


def sqlite(config: dict[str, Any], options: dict[str, Any]) -> dict[str, Any]:
    """Many writers without "database is locked", and commits that survive a power cut (both measured)."""
    name = Path(config["NAME"])
    init = "PRAGMA journal_mode=WAL;PRAGMA synchronous=FULL;"
    return {
        "NAME": name if name.is_absolute() else BASE_DIR / name,
        "OPTIONS": options | {"transaction_mode": "IMMEDIATE", "timeout": 20, "init_command": init},
        # A file, not memory: server threads of the tests must see the same database.
        "TEST": {"NAME": VAR / "test.sqlite3"},
    }


def postgres(options: dict[str, Any]) -> dict[str, Any]:
    """A pool for each process, large enough for its worker threads, checked so that a restart of the server heals."""
    pool = {"min_size": 1, "max_size": AGENTOPS_WORKER_THREADS + 8, "timeout": 10}
    bound = {"server_side_binding": True, "prepare_threshold": AGENTOPS_PREPARE or None}
    return {"OPTIONS": {"connect_timeout": 5} | bound | options | {"pool": pool}, "CONN_HEALTH_CHECKS": True}


DATABASES = {"default": database()}


# --- hints between processes ------------------------------------------------------------------------------------------
def url(name: str, default: str, schemes: tuple[str, ...]) -> str:
    """An address with one of the known schemes; never repeated in the refusal, it may hold a password."""
    value = env.str(name, default="").strip() or default
    if value and urlsplit(value).scheme not in schemes:
        raise ImproperlyConfigured(
            f"{name} is wrong: it wants an address that starts with {' or '.join(f'{s}://' for s in schemes)}"
        )
    return value


CHANNEL_REDIS_URL = url("CHANNEL_REDIS_URL", "", ("redis", "rediss"))
CHANNEL_LAYERS: dict[str, Any] = {
    # The layer waits 5 s at a time for news; the client's own limit is as long and would end a quiet socket instead.
    "default": {
        "BACKEND": "channels_redis.core.RedisChannelLayer",
        "CONFIG": {"hosts": [{"address": CHANNEL_REDIS_URL, "socket_timeout": 20}]},
    }
    if CHANNEL_REDIS_URL
    else {"BACKEND": "agentops.layers.LocalSocketLayer", "CONFIG": {"var": str(VAR)}}
}

CELERY_BROKER_URL = url(
    "CELERY_BROKER_URL", "filesystem://localhost", ("filesystem", "redis", "rediss", "amqp", "amqps")
)
CELERY_BROKER_TRANSPORT_OPTIONS: dict[str, Any] = {"visibility_timeout": 3600}  # longer than the longest advance
if CELERY_BROKER_URL.startswith("filesystem"):
    CELERY_BROKER_TRANSPORT_OPTIONS = {
        "data_folder_in": str(subfolder("broker", "queue")),
        "data_folder_out": str(subfolder("broker", "queue")),
        "processed_folder": str(subfolder("broker", "taken")),
        "control_folder": str(subfolder("broker", "control")),
        "polling_interval": 0.02,  # the default of 1 s would be felt at every start and resume
    }
# A message says "look at run N": losing or repeating it is harmless, the database is the truth (invariant 4).
CELERY_TASK_ACKS_LATE = True
CELERY_TASK_REJECT_ON_WORKER_LOST = False
CELERY_TASK_IGNORE_RESULT = True
CELERY_TASK_SERIALIZER = CELERY_EVENT_SERIALIZER = CELERY_RESULT_SERIALIZER = "json"
CELERY_ACCEPT_CONTENT = ["json"]
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
CELERY_WORKER_POOL = "threads"  # runs wait on the network; Celery's time limits do nothing here and are not relied upon
CELERY_WORKER_CONCURRENCY = AGENTOPS_WORKER_THREADS
CELERY_WORKER_ENABLE_REMOTE_CONTROL = False
CELERY_WORKER_SEND_TASK_EVENTS = False
CELERY_WORKER_HIJACK_ROOT_LOGGER = False
CELERY_WORKER_REDIRECT_STDOUTS = False
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
CELERY_TIMEZONE = "UTC"

# --- logging ----------------------------------------------------------------------------------------------------------
LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"line": {"()": "agentops.logs.OneLine"}},
    "filters": {"not_health": {"()": "django.utils.log.CallbackFilter", "callback": not_health}},
    "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "line"}},
    "root": {"handlers": ["stderr"], "level": env.str("AGENTOPS_LOG_LEVEL", default="INFO").upper()},
    "loggers": {
        # Django's own handlers would mail or print a second time.
        "django": {"handlers": [], "propagate": True},
        "django.request": {"filters": ["not_health"]},
        "django.server": {"handlers": [], "propagate": True},
        "django.security.DisallowedHost": {"level": "CRITICAL"},  # scanners: answered with 400, not worth a traceback
        "kombu": {"level": "WARNING"},
        "celery.worker.strategy": {"level": "WARNING"},  # one line per hint would drown what matters
        "celery.app.trace": {"level": "WARNING"},
        "httpx2": {"level": "WARNING"},
    },
}
