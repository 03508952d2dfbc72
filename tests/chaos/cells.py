"""What is tried: each fault at each place, while work goes on.

`fired` is counted where it takes effect: processes that died or stood still at the place, connections that a cut
touched, faults of the service that a request took, connections that waited in a COMMIT. What is broken as a whole
(Redis, a sweeper) counts if runs were under way.
"""

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
Webs = ("web-1", "web-2")
PATHS = ("/refunds", "/messages", "/pickups", "/investigations")
TWO_LEASES = 4.5
Played = tuple[list[int], int]


@dataclass(frozen=True)
class Cell:
    """One fault at one place. `play` starts runs, breaks something, heals; it returns runs and how often it fired.

    `late`: the fault itself makes effects happen after a takeover, so they are counted and not held against us.
    """

    fault: str
    where: str
    play: Callable[[Yard], Played]
    short: bool = False
    late: bool = False


def _rearm(yard: Yard, fault: str, names: tuple[str, ...] = Workers) -> None:
    """They go, and come back with a fault armed."""
    for name in names:
        yard.off(name, signal.SIGTERM)
    for name in names:
        yard.on(name, fault)
    _ready(yard, names)


def _clean(yard: Yard, names: tuple[str, ...] = Workers) -> None:
    """What died, or is still armed, is started again without a fault."""
    for name in names:
        yard.off(name)
    for name in names:
        yard.on(name)
    _ready(yard, names)


def _ready(yard: Yard, names: tuple[str, ...]) -> None:
    if names == Webs:
        until(lambda: all(yard.answers(web) for web in names), 60, "web answers")
    else:
        yard.workers_ready(*names)


def _await(condition: Callable[[], bool], seconds: float) -> None:
    """Until it is so, or not any more worth waiting for: then the fault counts as not fired."""
    end = time.monotonic() + seconds
    while time.monotonic() < end and not condition():
        time.sleep(0.05)


def _under_way(yard: Yard, runs: list[int]) -> int:
    return int(bool(work.open_runs(yard, runs)))


def killed(yard: Yard, point: str, kills: int) -> Played:
    """Processes die with SIGKILL when they come to a place for the first time; their successors are armed too."""
    before, fault = yard.fired(), f"{point}:kill"
    if point == "after_probe":  # somebody must be in doubt first
        yard.arm("reply_lost", ("/refunds", "/investigations"), times=kills)
    names = Webs if point == "after_decision" else Workers
    _rearm(yard, fault, names)

    def tend() -> bool:
        """Whether all were alive."""
        dead = [name for name in names if not yard.alive(name)]
        for name in dead:
            yard.on(name, fault)
        return not dead

    runs, end, wave = work.start(yard, tend=tend), time.monotonic() + 12 + 5 * kills, time.monotonic()
    while time.monotonic() < end and yard.fired() < before + kills:
        if not tend():
            wave = time.monotonic()
        if time.monotonic() > wave + 4 and len(runs) < 4 * kills:
            runs, wave = runs + work.start(yard, tend=tend), time.monotonic()
        time.sleep(0.05)
    _clean(yard, names)
    return runs, yard.fired() - before


def frozen(yard: Yard, point: str) -> Played:
    """Both workers stand still at a place for two leases, others take over, then they go on."""
    before = yard.fired()
    _rearm(yard, f"{point}:stop")
    runs = work.start(yard)
    _await(lambda: yard.fired() >= before + 2, 10)
    fired = yard.fired() - before
    yard.on("worker-3")
    yard.workers_ready("worker-3")
    time.sleep(TWO_LEASES)
    for name in Workers:
        yard.signal(name, signal.SIGCONT)
    time.sleep(1)  # they find out, and hand in what they know
    _clean(yard)
    yard.off("worker-3", signal.SIGTERM)
    return runs, fired


def redis_gone(yard: Yard, seconds: float) -> Played:
    """Redis is killed, with every hint in it, and comes back empty."""
    runs = work.start(yard)
    fired = _under_way(yard, runs)
    yard.off("redis")
    time.sleep(seconds)
    yard.redis_on()
    return runs, fired


def redis_flushed(yard: Yard) -> Played:
    """Every queue, binding and group is wiped under live connections, again and again."""
    import redis

    runs, fired = work.start(yard), 0
    client = redis.Redis(port=yard.ports["redis"])
    for _ in range(10):
        fired += _under_way(yard, runs)
        client.flushall()
        time.sleep(0.2)
    client.close()
    return runs, fired


def database_gone(yard: Yard, times: int) -> Played:
    """PostgreSQL is killed in mid-work, as a power cut would, and comes back."""
    runs, fired = work.start(yard), 0
    for _ in range(times):
        time.sleep(0.5)
        fired += _under_way(yard, runs)
        yard.database_off()
        time.sleep(0.5)
        yard.database_on()
    return runs, fired


def database_gone_at_commit(yard: Yard, durable: bool, times: int) -> Played:
    """PostgreSQL is killed while commits are in flight: durable and not yet confirmed, or sent and not yet durable.

    To the product both look alike. Fired counts the connections that waited in that very place.
    """
    runs, fired = list[int](), 0
    for _ in range(times):
        runs += work.start(yard)
        if durable:
            yard.withhold_commits()
            _await(lambda: yard.waiting("SyncRep") >= 2, 4)
            fired += yard.waiting("SyncRep")
            yard.database_off()
        else:
            with yard.connection() as blocker:
                blocker.execute("BEGIN; LOCK TABLE runs_event IN SHARE ROW EXCLUSIVE MODE")
                _await(lambda: yard.waiting("relation") >= 2, 4)
                fired += yard.waiting("relation")
                yard.database_off()
                blocker.close()
        time.sleep(0.3)
        yard.database_on()
    return runs, fired


def cut(yard: Yard, link: str, mode: str) -> Played:
    """A link is cut for two leases, under a first wave of runs; a second wave is started in the middle."""
    runs = work.start(yard)
    yard.links[link].cut(mode)
    end = time.monotonic() + TWO_LEASES
    if not link.startswith("web"):
        runs += work.start(yard)
    if link.startswith("sweeper"):  # they speak of what others leave behind
        yard.off("worker-1")
        yard.on("worker-1")
    time.sleep(max(0.0, end - time.monotonic()))
    fired = yard.links[link].hurt
    yard.links[link].heal()
    return runs, fired


def slow(yard: Yard, link: str, seconds: float) -> Played:
    """Everything that is said over a link arrives late, in order."""
    yard.links[link].cut("hold", seconds)
    runs = work.start(yard)
    _await(lambda: not work.open_runs(yard, runs), 10)
    yard.links[link].heal()
    return runs, yard.links[link].hurt


def held(yard: Yard) -> Played:
    """Requests to the service hang on their way, their workers die, and they arrive three leases later all the same."""
    yard.links["worker-service"].cut("hold", 7)
    runs = work.start(yard)
    _await(lambda: yard.links["worker-service"].hurt >= 4, 5)
    fired = yard.links["worker-service"].hurt
    yard.links["worker-service"].heal()  # those after them get through at once
    _clean(yard)
    time.sleep(7)
    return runs, fired


def service_down(yard: Yard) -> Played:
    """The order service is killed and comes back; what it had answered is in its ledger."""
    runs = work.start(yard)
    fired = _under_way(yard, runs)
    yard.off("service")
    time.sleep(1.5)
    yard.service_on()
    return runs, fired


def remote_fault(yard: Yard, kind: str) -> Played:
    """The next effects of every kind meet a fault."""
    yard.arm(kind, PATHS)
    runs = work.start(yard)
    _await(lambda: not yard.armed(), 4)
    fired = len(PATHS) - yard.armed()
    yard.service("DELETE", "/admin/faults")
    return runs, fired


def duplicates(yard: Yard) -> Played:
    """Every wake comes fifty times more, at once and late, also after the end."""
    from celery import Celery

    runs = work.start(yard)
    sender = Celery(broker=f"redis://127.0.0.1:{yard.ports['redis']}/0")
    for _ in range(5):
        for run in runs:
            for _ in range(10):
                sender.send_task("runs.advance", args=[run], ignore_result=True)
        time.sleep(0.8)
    _await(lambda: not work.open_runs(yard, runs), 10)
    for run in runs:
        sender.send_task("runs.advance", args=[run], ignore_result=True)
    sender.close()
    return runs, 51 * len(runs)


def many_sweepers(yard: Yard) -> Played:
    """Five sweepers at once; two of them die in the middle."""
    more = ("sweeper-3", "sweeper-4", "sweeper-5")
    for name in more:
        yard.on(name)
    runs = work.start(yard)
    fired = _under_way(yard, runs) * len(more)
    time.sleep(2)
    runs += work.start(yard)
    for name in more:
        yard.off(name)
    return runs, fired


def no_sweeper(yard: Yard) -> Played:
    """No sweeper for a while, every hint lost meanwhile; then both at once."""
    sweepers = ("sweeper-1", "sweeper-2")
    for name in sweepers:
        yard.off(name)
    runs = work.start(yard)
    fired = _under_way(yard, runs)
    yard.off("redis")
    yard.redis_on()
    time.sleep(3)
    for name in sweepers:
        yard.on(name)
    return runs, fired


def everything_killed(yard: Yard) -> Played:
    """All of our processes and Redis die at once."""
    runs = work.start(yard)
    time.sleep(0.3)
    names = (*Webs, *Workers, "sweeper-1", "sweeper-2", "redis")
    fired = _under_way(yard, runs) * len(names)
    for name in names:
        yard.off(name)
    yard.redis_on()
    for name in names[:-1]:
        yard.on(name)
    _ready(yard, Workers)
    _ready(yard, Webs)
    return runs, fired


SHORT_ONES = ("after_effect",)
FREEZES = ("after_claim", "after_ask", "before_send", "after_effect", "before_append", "after_outcome")


def cells(kills: int) -> tuple[Cell, ...]:
    """All of them; `kills` at each place of a kill."""
    holes = ("worker-db", "web-db", "sweeper-db", "worker-redis", "web-redis", "sweeper-redis", "worker-service")
    one_way = ("no_request", "no_reply")
    return (
        # A worker that stands still, or a link that holds what was sent, delays requests of other runs as well.
        *(Cell("SIGSTOP past the lease", point, partial(frozen, point=point), point == "after_effect", late=True)
          for point in FREEZES),
        Cell("SIGSTOP past the lease", "sending: the hole that stays", partial(frozen, point="sending"), late=True),
        Cell("Redis restarted and emptied", "at once", partial(redis_gone, seconds=0), True),
        Cell("Redis restarted and emptied", "after 4 s", partial(redis_gone, seconds=4)),
        Cell("Redis flushed", "10 times", redis_flushed),
        Cell("PostgreSQL killed", "in mid-work, 3 times", partial(database_gone, times=3)),
        Cell("PostgreSQL killed at COMMIT", "durable, not confirmed",
             partial(database_gone_at_commit, durable=True, times=2), True),
        Cell("PostgreSQL killed at COMMIT", "sent, not durable",
             partial(database_gone_at_commit, durable=False, times=2)),
        *(Cell(f"partition {mode}", link, partial(cut, link=link, mode=mode), (mode, link) == ("hole", "worker-db"),
               late=link == "worker-service")
          for link in holes for mode in ("hole", "reset")),
        *(Cell(f"partition {mode}", link, partial(cut, link=link, mode=mode), late=link == "worker-service")
          for link in ("worker-db", "web-db", "worker-service") for mode in one_way),
        Cell("partition refuse", "worker-service", partial(cut, link="worker-service", mode="refuse")),
        Cell("slow link", "worker-db, 50 ms", partial(slow, link="worker-db", seconds=0.05)),
        Cell("request held 7 s, worker killed", "worker-service", held, late=True),
        Cell("order service killed", "in mid-work", service_down, True),
        *(Cell(f"remote {kind}", "next effects", partial(remote_fault, kind=kind), late=kind == "late")
          for kind in ("reply_lost", "late", "cut", "garbage", "half_reply", "broken", "throttle")),
        Cell("wakes 50 times", "at once, late, after the end", duplicates),
        Cell("three more sweepers", "in mid-work", many_sweepers),
        Cell("no sweeper, all hints lost", "3 s", no_sweeper),
        Cell("everything killed", "in mid-work", everything_killed),
        *(Cell("kill -9", point, partial(killed, point=point, kills=kills), point in SHORT_ONES) for point in POINTS),
    )  # fmt: skip
