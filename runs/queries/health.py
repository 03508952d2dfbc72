"""How the installation is: each part with what it means for runs and, where it is bad, what to do."""

import platform
import sqlite3
import time
import tomllib
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from channels.layers import get_channel_layer
from django.conf import settings
from django.db import DatabaseError, connection
from django.db.models import F, Min
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from runs.audit import outside, safe_mode
from runs.engine.limits import SECOND
from runs.journal.lease import now
from runs.loops import run_now
from runs.models import Call, Checkpoint, Head, Heartbeat, Incident, Run
from runs.queries.words import Sign

GOOD, BAD, WATCH = ("positive", "succeeded"), ("danger", "failed"), ("caution", "medium")
NONE = ("quiet", "low")
PATIENCE = 2  # seconds for a nudge
LONG_WAIT = 30  # seconds that a runnable run may stand before somebody should look


@dataclass(frozen=True)
class Part:
    """One part: how it stands in a word, its figure, what it is for, and what to do; empty where nothing is."""

    name: str
    sign: Sign
    figure: str
    meaning: str
    todo: str = ""

    @property
    def bad(self) -> bool:
        """Whether somebody should look."""
        return self.sign.tone in ("danger", "caution")


@dataclass
class Health:
    """All parts by group, the processes one by one, and what it runs on."""

    groups: list[tuple[str, list[Part]]]
    processes: list[tuple[Heartbeat, bool]]
    versions: list[tuple[str, str]]
    at: int

    @property
    def bad(self) -> list[Part]:
        """The parts that somebody should look at."""
        return [part for _name, parts in self.groups for part in parts if part.bad]


def health() -> Health:
    """A constant number of queries, and one message through the channel layer."""
    clock = now()
    beats = list(Heartbeat.objects.order_by("kind", "ident"))
    alive = [beat for beat in beats if beat.at >= clock - int(settings.AGENTOPS_STALE * SECOND)]
    groups = [
        (_("Processes"), [_workers(alive, clock), _sweepers(alive, clock), _sockets(), _sandbox()]),
        (_("Work"), [_queue(clock), _unknown(), _incidents()]),
        (_("Record"), [_database(), _checkpoints(clock), _outside(alive), _safe_mode()]),
    ]
    return Health(groups, [(beat, beat in alive) for beat in beats], versions(), clock)


def brief() -> list[Part]:
    """What the overview shows of it."""
    clock = now()
    alive = list(Heartbeat.objects.filter(at__gte=clock - int(settings.AGENTOPS_STALE * SECOND)))
    return [_workers(alive, clock), _sweepers(alive, clock), _queue(clock), _checkpoints(clock)]


def _sign(found: tuple[str, str], word: str) -> Sign:
    return Sign(word, *found)


def seconds_words(seconds: float) -> str:
    """How long, in the largest unit that says enough."""
    if seconds < 120:
        return ngettext("{n} second", "{n} seconds", round(seconds)).format(n=round(seconds))
    minutes = round(seconds / 60)
    if minutes < 120:
        return ngettext("{n} minute", "{n} minutes", minutes).format(n=minutes)
    hours = round(minutes / 60)
    return ngettext("{n} hour", "{n} hours", hours).format(n=hours)


def _age(alive: list[Heartbeat], clock: int) -> str:
    oldest = min(beat.at for beat in alive)
    return _("{n}, seen {age} ago").format(n=len(alive), age=seconds_words(max(0, clock - oldest) / SECOND))


def _workers(alive: list[Heartbeat], clock: int) -> Part:
    found = [beat for beat in alive if beat.kind == "worker"]
    meaning = _("They ask models and run tools. Without one, runs wait; nothing is lost.")
    if found:
        return Part(_("Workers"), _sign(GOOD, _("alive")), _age(found, clock), meaning)
    todo = _("Start one: celery -A agentops worker, or make up. Runs go on by themselves then.")
    return Part(_("Workers"), _sign(BAD, _("none")), _("none alive"), meaning, todo)


def _sweepers(alive: list[Heartbeat], clock: int) -> Part:
    found = [beat for beat in alive if beat.kind == "sweeper"]
    meaning = _("It wakes what is due, takes over from workers that died, and keeps the record's heads outside.")
    if found:
        return Part(_("Sweeper"), _sign(GOOD, _("alive")), _age(found, clock), meaning)
    todo = _("Start one: manage.py sweep, or make up. Until then expiries, retries and take-overs wait.")
    return Part(_("Sweeper"), _sign(BAD, _("none")), _("none alive"), meaning, todo)


def _sockets() -> Part:
    """One nudge that nobody listens to, by the way that all take."""
    meaning = _("Nudges for open pages go this way. Without it pages look for news by themselves, a little later.")
    begun = time.monotonic()
    try:
        run_now(_nudge(), PATIENCE)
    except Exception as error:  # whatever a broker's client raises
        todo = _("Look at CHANNEL_REDIS_URL and its server: {why}").format(why=type(error).__name__)
        return Part(_("Sockets"), _sign(WATCH, _("silent")), _("pages poll"), meaning, todo)
    took = _("{n} ms").format(n=round((time.monotonic() - begun) * 1000))
    kind = _("through Redis") if settings.CHANNEL_REDIS_URL else _("on this machine")
    return Part(_("Sockets"), _sign(GOOD, _("working")), f"{kind}, {took}", meaning)


async def _nudge() -> None:
    layer: Any = get_channel_layer()
    await layer.group_send("health", {"type": "health.look"})


def _sandbox() -> Part:
    meaning = _("Tools run in the workers, with the rights of the workers. Packages that you install are trusted code.")
    return Part(_("Sandbox"), _sign(NONE, _("not built in yet")), "–", meaning)


def _queue(clock: int) -> Part:
    due = Run.objects.filter(due_at__lte=clock, lease_until=None)
    waiting, oldest = due.count(), due.filter(due_at__gt=0).aggregate(at=Min("due_at"))["at"]
    held = Run.objects.filter(due_at__isnull=False, lease_until__gt=clock).count()
    meaning = _("Runs that could go on now and wait for a worker to take them.")
    figure = _("{n} wait, {held} under way").format(n=waiting, held=held)
    age = (clock - oldest) / SECOND if oldest else 0
    if age > LONG_WAIT:
        todo = _("The oldest has waited {age}. Look at the workers: more of them, or whether one hangs.")
        return Part(_("Queue"), _sign(WATCH, _("slow")), figure, meaning, todo.format(age=seconds_words(age)))
    return Part(_("Queue"), _sign(GOOD, _("moving")), figure, meaning)


def _unknown() -> Part:
    n = Call.objects.filter(status="unknown").count()
    meaning = _("Calls that were sent and of which nobody has heard what became of them.")
    if not n:
        return Part(_("Unknown effects"), _sign(GOOD, _("none")), "0", meaning)
    todo = _("They stand in the inbox: the host asks the remote where it can, else a person says what happened.")
    return Part(_("Unknown effects"), _sign(WATCH, _("open")), str(n), meaning, todo)


def _incidents() -> Part:
    n = Incident.objects.filter(closed_at=None).count()
    meaning = _("What was held to be true and turned out otherwise.")
    if not n:
        return Part(_("Incidents"), _sign(GOOD, _("none")), "0", meaning)
    todo = _("Somebody has to look at each and say what was found: see Incidents.")
    return Part(_("Incidents"), _sign(WATCH, _("open")), str(n), meaning, todo)


def _database() -> Part:
    meaning = _("It holds everything. What is committed survives a power cut.")
    begun = time.monotonic()
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
    except DatabaseError:
        todo = _("Look at its server and at DATABASE_URL; details are in the log.")
        return Part(_("Database"), _sign(BAD, _("away")), "–", meaning, todo)
    took = _("{n} ms").format(n=f"{(time.monotonic() - begun) * 1000:.1f}")
    return Part(_("Database"), _sign(GOOD, _("answers")), f"{database_name()}, {took}", meaning)


def database_name() -> str:
    """SQLite 3.45, PostgreSQL 15.4"""
    if connection.vendor == "sqlite":
        return f"SQLite {sqlite3.sqlite_version}"
    number = getattr(connection, "pg_version", 0)
    return f"PostgreSQL {number // 10_000}.{number % 10_000}"


def _checkpoints(clock: int) -> Part:
    last = Checkpoint.objects.only("number", "at").order_by("-number").first()
    behind = Head.objects.filter(open=True).exclude(seq=F("run__seq")).count()
    meaning = _("Once a minute the heads of all runs that moved are chained, so that a missing run shows.")
    if last is None:
        return Part(
            _("Checkpoints"), _sign(BAD, _("gone")), "–", meaning, _("Not even the first is there: see docs/backup.md.")
        )
    age = (clock - last.at) / SECOND
    figure = _("number {n}, {age} ago").format(n=last.number, age=seconds_words(age))
    if behind and age > 3 * settings.AGENTOPS_CHECKPOINT + settings.AGENTOPS_STALE:
        todo = ngettext("{n} run moved since. ", "{n} runs moved since. ", behind).format(n=behind)
        todo += _("A sweeper adds the next one: see whether it lives.")
        return Part(_("Checkpoints"), _sign(WATCH, _("late")), figure, meaning, todo)
    return Part(_("Checkpoints"), _sign(GOOD, _("kept")), figure, meaning)


def _outside(alive: list[Heartbeat]) -> Part:
    meaning = _("The same heads in a file beside the database: a restore or a cut of the database shows against it.")
    trouble = next((beat.trouble for beat in alive if beat.trouble), "")
    try:
        last = outside.tail(outside.place())
    except (OSError, outside.BadLine, Checkpoint.DoesNotExist) as error:
        trouble, last = trouble or str(error), None
    if trouble:
        return Part(_("Heads outside"), _sign(BAD, _("trouble")), "–", meaning, trouble)
    if last is None:
        todo = _("A sweeper keeps it. If it runs on another machine, look there; else see AGENTOPS_HEADS.")
        return Part(_("Heads outside"), _sign(NONE, _("not seen from here")), "–", meaning, todo)
    signed = _("signed") if last.signature else _("not signed")
    return Part(
        _("Heads outside"), _sign(GOOD, _("kept")), _("up to {n}, {how}").format(n=last.number, how=signed), meaning
    )


def _safe_mode() -> Part:
    meaning = _("In safe mode nothing advances, because the database is older than its record outside.")
    if safe_mode.in_force() is None:
        return Part(_("Safe mode"), _sign(GOOD, _("not in force")), "–", meaning)
    todo = _("An admin decides on the page Safe mode whether to go on from this database.")
    return Part(_("Safe mode"), _sign(BAD, _("in force")), "–", meaning, todo)


def versions() -> list[tuple[str, str]]:
    """What it runs on: name and version."""
    found = [("AgentOps", _own()), ("Python", platform.python_version()), (_("Database"), database_name())]
    for name in ("Django", "channels", "celery", "django-htmx", "pydantic"):
        try:
            found.append((name, version(name)))
        except PackageNotFoundError:
            continue
    return [*found, (_("Packages of tools"), ", ".join(settings.AGENTOPS_TOOLS) or "–")]


def _own() -> str:
    try:
        return str(tomllib.loads((settings.BASE_DIR / "pyproject.toml").read_text())["project"]["version"])
    except (OSError, KeyError, tomllib.TOMLDecodeError):
        return "–"
