"""What is tried: each fault at each place, while work goes on."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from tests.chaos import work
from tests.chaos.yard import Yard
from tests.stack import until

POINTS = (
    "after_claim", "after_ask", "before_append", "in_append", "after_append", "after_intent", "before_send",
    "after_effect", "after_outcome", "after_probe", "after_end", "after_decision",
)  # fmt: skip
Workers = ("worker-1", "worker-2")


@dataclass(frozen=True)
class Cell:
    """One fault at one place. `play` starts runs, breaks something, heals; it returns runs and how often it fired."""

    fault: str
    where: str
    play: Callable[[Yard], tuple[list[int], int]]
    short: bool = False


def _rearm(yard: Yard, fault: str, names: tuple[str, ...] = Workers) -> None:
    """Both workers go, and come back with a fault armed."""
    for name in names:
        yard.off(name, signal.SIGTERM)
        yard.on(name, fault)
    if names == Workers:
        yard.workers_ready(*names)


def _clean(yard: Yard, names: tuple[str, ...] = Workers) -> None:
    """What died, or is still armed, is started again without a fault."""
    for name in names:
        yard.off(name)
        yard.on(name)
    if names == Workers:
        yard.workers_ready(*names)


def killed(yard: Yard, point: str) -> tuple[list[int], int]:
    """Both workers die with SIGKILL when they come to a place for the first time."""
    before = yard.fired()
    if point == "after_probe":  # somebody must be in doubt first
        yard.service("PUT", "/admin/faults", json={"kind": "reply_lost", "path": "/refunds", "times": 2})
    names = ("web-1", "web-2") if point == "after_decision" else Workers
    _rearm(yard, f"{point}:kill", names)
    if names != Workers:
        until(lambda: all(yard._answers(web) for web in names), 40, "web answers")
    runs = work.start(yard)
    end = time.monotonic() + 12
    while time.monotonic() < end and yard.fired() < before + 2:
        time.sleep(0.05)
    _clean(yard, names)
    return runs, yard.fired() - before


def frozen(yard: Yard, point: str) -> tuple[list[int], int]:
    """Both workers stand still at a place for two leases, others take over, then they go on."""
    before = yard.fired()
    _rearm(yard, f"{point}:stop")
    runs = work.start(yard)
    end = time.monotonic() + 10
    while time.monotonic() < end and yard.fired() < before + 2:
        time.sleep(0.05)
    fired = yard.fired() - before
    yard.on("worker-3")
    yard.workers_ready("worker-3")
    time.sleep(4.5)
    for name in Workers:
        yard.signal(name, signal.SIGCONT)
    time.sleep(1)
    _clean(yard)
    yard.off("worker-3", signal.SIGTERM)
    return runs, fired


def redis_gone(yard: Yard, seconds: float) -> tuple[list[int], int]:
    """Redis is killed, with every hint in it, and comes back empty."""
    runs = work.start(yard)
    yard.off("redis")
    time.sleep(seconds)
    yard.redis_on()
    return runs, 1


def database_gone(yard: Yard, times: int) -> tuple[list[int], int]:
    """PostgreSQL is killed in mid-work, as a power cut would, and comes back."""
    runs = work.start(yard)
    for _ in range(times):
        time.sleep(0.7)
        yard.database_off()
        time.sleep(0.5)
        yard.database_on()
    return runs, times


def cut(yard: Yard, link: str, mode: str) -> tuple[list[int], int]:
    """A link is cut for two leases."""
    runs = work.start(yard)
    yard.links[link].cut(mode)
    time.sleep(4.5)
    yard.links[link].heal()
    return runs, 1


def service_down(yard: Yard) -> tuple[list[int], int]:
    """The order service is killed and comes back; what it had answered is in its ledger."""
    runs = work.start(yard)
    time.sleep(0.5)
    yard.off("service")
    time.sleep(1.5)
    yard.service_on()
    return runs, 1


def remote_fault(yard: Yard, kind: str) -> tuple[list[int], int]:
    """The next effects of every kind meet a fault."""
    for path in ("/refunds", "/messages", "/pickups", "/investigations"):
        yard.service(
            "PUT", "/admin/faults", json={"kind": kind, "path": path, "method": "POST", "times": 1, "seconds": 1}
        )
    runs = work.start(yard)
    time.sleep(3)
    yard.service("DELETE", "/admin/faults")
    return runs, 1


def duplicates(yard: Yard) -> tuple[list[int], int]:
    """Every wake comes fifty times more, at once and late, also after the end."""
    from celery import Celery

    runs = work.start(yard)
    sender = Celery(broker=f"redis://127.0.0.1:{yard.ports['redis']}/0")
    for _ in range(5):
        for run in runs:
            for _ in range(10):
                sender.send_task("runs.advance", args=[run], ignore_result=True)
        time.sleep(0.8)
    sender.close()
    return runs, 50 * len(runs)


def no_sweeper(yard: Yard) -> tuple[list[int], int]:
    """No sweeper for a while, every hint lost meanwhile; then three at once."""
    for name in ("sweeper-1", "sweeper-2"):
        yard.off(name)
    runs = work.start(yard)
    yard.off("redis")
    yard.redis_on()
    time.sleep(3)
    for name in ("sweeper-1", "sweeper-2"):
        yard.on(name)
    return runs, 1


def everything_killed(yard: Yard) -> tuple[list[int], int]:
    """All of our processes and Redis die at once."""
    runs = work.start(yard)
    time.sleep(0.6)
    names = ("web-1", "web-2", *Workers, "sweeper-1", "sweeper-2", "redis")
    for name in names:
        yard.off(name)
    yard.redis_on()
    for name in names[:-1]:
        yard.on(name)
    yard.workers_ready(*Workers)
    return runs, len(names)


SHORT_ONES = ("after_effect", "after_probe")
CELLS: tuple[Cell, ...] = (
    *(Cell("kill -9", point, partial(killed, point=point), point in SHORT_ONES) for point in POINTS),
    *(Cell("SIGSTOP past the lease", point, partial(frozen, point=point), point == "after_effect")
      for point in ("after_claim", "after_ask", "before_send", "after_effect", "before_append", "after_outcome")),
    Cell("Redis restarted and emptied", "at once", partial(redis_gone, seconds=0), True),
    Cell("Redis restarted and emptied", "after 4 s", partial(redis_gone, seconds=4)),
    Cell("PostgreSQL killed and restarted", "in mid-work, 3 times", partial(database_gone, times=3), True),
    *(Cell(f"partition {mode}", link, partial(cut, link=link, mode=mode), (mode, link) == ("hole", "worker-db"))
      for link in ("worker-db", "web-db", "sweeper-db", "worker-redis", "web-redis", "worker-service")
      for mode in ("hole", "reset")),
    Cell("partition no_reply", "worker-db", partial(cut, link="worker-db", mode="no_reply")),
    Cell("partition no_reply", "worker-service", partial(cut, link="worker-service", mode="no_reply")),
    Cell("order service killed", "in mid-work", service_down, True),
    *(Cell(f"remote {kind}", "next effects", partial(remote_fault, kind=kind))
      for kind in ("reply_lost", "late", "cut", "garbage", "half_reply", "broken", "throttle")),
    Cell("wakes 50 times", "at once, late, after the end", duplicates),
    Cell("no sweeper, all hints lost", "3 s", no_sweeper),
    Cell("everything killed", "in mid-work", everything_killed),
)  # fmt: skip
