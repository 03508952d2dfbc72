"""The pages: how soon a change is seen, by how many, and what a long history or a full list costs a reader."""

from __future__ import annotations

import gzip
import json
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

from bench import waiting, watching
from bench.databases import ROOT, kinds
from bench.report import Result, result
from tests.stack import PASSWORD, Stack, redis_pair

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

CROWD, SAMPLES, CALLS = 200, 15, 10_000
SEEN = """() => {
  window.seen = []; window.painted = [];
  const now = () => (performance.timeOrigin + performance.now()) / 1000;
  new MutationObserver(() => {
    window.seen.push(now());
    requestAnimationFrame(() => {
      const { port1, port2 } = new MessageChannel();
      port1.onmessage = () => window.painted.push(now());
      port2.postMessage(0);
    });
  }).observe(document.querySelector("#timeline"), { childList: true });
}"""


def _size(turns: int) -> tuple[int, int, int]:
    """Watchers, samples and calls of the long run: few of each in a short look."""
    return (CROWD, SAMPLES, CALLS) if turns > 100 else (20, 3, 400)


def _redis() -> str:
    return redis_pair(6)[0]


def commit_to_dom(turns: int, rounds: int) -> Iterator[Result]:
    """From before an append in another process to the card in the DOM, over bare Channels from send to client."""
    if not waiting.ready("commit_to_dom"):
        return
    _crowd, samples, _calls = _size(turns)
    ours, peer = [], []
    with waiting.stack(distributed=True) as stack, watching.bare(_redis()) as (url, _pid), chromium() as browser:
        run = watching.grown(stack, 8)
        page = opened(browser, stack, run)
        for _ in range(rounds):
            page.evaluate(SEEN)
            began = watching.written(stack, run, samples)
            page.wait_for_timeout(300)
            ours.append(median(watching.delays(began, page.evaluate("window.seen"))))
            with watching.Crowd({"uri": url}, 1) as crowd:
                peer.append(median(watching.delays(watching.sent(_redis(), samples), crowd.frames[0])))
    yield result(
        "commit_to_dom", "postgresql", what="p50", unit="ms", ours=ours, peer=peer, goal=5, stretch=3.5,
    )  # fmt: skip


def paint_10k(turns: int, rounds: int) -> Iterator[Result]:
    """From before an append to the painted frame, on the page of a run of 10,000 calls over that of a run of 8."""
    if not waiting.ready("paint_10k"):
        return
    _crowd, samples, calls = _size(turns)
    ours, peer = [], []
    with waiting.stack(distributed=True) as stack, chromium() as browser:
        runs = {calls: watching.grown(stack, calls), 8: watching.grown(stack, 8)}
        for _ in range(rounds):
            for many, into in ((calls, ours), (8, peer)):
                page = opened(browser, stack, runs[many])
                page.evaluate("document.querySelector('#timeline').lastElementChild.scrollIntoView()")
                page.evaluate(SEEN)
                began = watching.written(stack, runs[many], samples)
                page.wait_for_timeout(500)
                into.append(median(watching.delays(began, page.evaluate("window.painted"))))
                page.context.close()
    yield result(
        "paint_10k", "postgresql", what=f"{calls} calls over 8", unit="ms", ours=ours, peer=peer, goal=2, stretch=1.3
    )


def fanout_200(turns: int, rounds: int) -> Iterator[Result]:
    """From before an append to the last of 200 watchers, over bare Channels with as many clients."""
    if not waiting.ready("fanout_200"):
        return
    size, samples, _calls = _size(turns)
    samples = min(samples, 8)
    ours, peer = [], []
    with waiting.stack(distributed=True) as stack, watching.bare(_redis()) as (url, _pid):
        run = watching.grown(stack, 8)
        how = watching.as_watcher(stack.signed_in("auditor"), f"/ws/runs/{run}/?after=1000000")
        for _ in range(rounds):
            with watching.Crowd(how, size) as crowd:
                ours.append(_last(watching.written(stack, run, samples), crowd))
            with watching.Crowd({"uri": url}, size) as crowd:
                peer.append(_last(watching.sent(_redis(), samples), crowd))
    yield result(
        "fanout_200", "postgresql", what=f"the last of {size}", unit="ms", ours=ours, peer=peer, goal=1.5, stretch=1.1,
    )  # fmt: skip


def _last(began: list[float], crowd: watching.Crowd) -> float:
    """The median over all sends of when the last one heard of it."""
    time.sleep(2)
    each = [watching.delays(began, heard) for heard in crowd.frames]
    return median(max(one[n] for one in each if len(one) > n) for n in range(min(map(len, each))))


def watcher_rss(turns: int, rounds: int) -> Iterator[Result]:
    """Memory of the web process by idle watcher, over that of a bare consumer; new processes in each round."""
    if not waiting.ready("watcher_rss"):
        return
    size, _samples, _calls = _size(turns)
    ours, peer = [], []
    for _ in range(rounds):
        with waiting.stack(distributed=True) as stack, watching.bare(_redis()) as (url, pid):
            run = watching.grown(stack, 8)
            how = watching.as_watcher(stack.signed_in("auditor"), f"/ws/runs/{run}/")
            ours.append(_grown(how, size, stack.processes()["web"]))
            peer.append(_grown({"uri": url}, size, pid))
    yield result(
        "watcher_rss", "postgresql", what=f"{size} watchers", unit="KiB each", ours=ours, peer=peer, goal=3, stretch=1.5
    )


def _grown(how: dict[str, Any], size: int, pid: int) -> float:
    """KiB by which a process is larger for each of so many sockets, once a few have loaded what is loaded once."""
    with watching.Crowd(how, 5):
        before = _rss(pid)
        with watching.Crowd(how, size):
            return (_rss(pid) - before) / size


def _rss(pid: int) -> int:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("VmRSS")).split()[1])


def first_screen_10k(turns: int, rounds: int) -> Iterator[Result]:
    """The first screen of a run of 10,000 calls over one of 100: the page from the server, with what it weighs."""
    _crowd, samples, calls = _size(turns)
    with waiting.stack(distributed=waiting.ready("first_screen_10k")) as stack:
        person = stack.signed_in("auditor")
        long, short = (f"/runs/{watching.grown(stack, many)}" for many in (calls, 100))
        ours, peer = [], []
        for _ in range(rounds):
            taken: dict[str, list[float]] = {long: [], short: []}
            for path in (long, short) * samples:
                began = time.perf_counter()
                page = person.get(path)
                taken[path].append((time.perf_counter() - began) * 1000)
            ours.append(median(taken[long])), peer.append(median(taken[short]))
        html = person.get(long).content
    yield result(
        "first_screen_10k", kinds()[-1], what=f"{calls} calls over 100; {len(html) // 1000} KB, "
        f"{len(gzip.compress(html)) // 1000} KB zipped", unit="ms", ours=ours, peer=peer, goal=1.5, stretch=1.1,
    )  # fmt: skip
    assert page.status_code == 200


def row_render(turns: int, rounds: int) -> Iterator[Result]:
    """A card of the timeline over a row of a plain template of Django's, 40 lines in one loop."""
    yield from _inside("row_render", turns, rounds)


def list_pages(turns: int, rounds: int) -> Iterator[Result]:
    """Each list with 10,000 open approvals and 1,000,000 events, over the bare ORM query of its page."""
    if waiting.ready("list_pages"):
        yield from _inside("list_pages", turns, rounds)


def _inside(name: str, turns: int, rounds: int) -> Iterator[Result]:
    """Measured in a process that has the installation's settings (`bench.inside`)."""
    with waiting.stack(distributed=waiting.ready(name)) as stack:
        code = f"from bench.inside import main; main({name!r}, {turns}, {rounds})"
        said = stack.manage("shell", "-v0", "-c", code, PYTHONPATH=str(ROOT)).stdout
    for line in json.loads(said.splitlines()[-1]):
        yield result(name, kinds()[-1], **line)


def opened(browser: Browser, stack: Stack, run: int) -> Page:
    """The page of a run, live, in a browser of its own."""
    page = browser.new_context(viewport={"width": 1440, "height": 900}).new_page()
    page.goto(stack.url)
    page.locator("[name=username]").fill("auditor")
    page.locator("[name=password]").fill(PASSWORD)
    page.locator("main form button[data-kind=primary]").click()
    page.goto(f"{stack.url}/runs/{run}")
    page.locator("#live[data-state=live]").wait_for()
    return page


class chromium:  # used like the function it stands for
    """The system's Chromium, for a while."""

    def __enter__(self) -> Browser:
        """Started."""
        found = os.environ.get("CHROMIUM")
        if not found:
            sys.exit("bench: chromium is missing: apt-get install chromium, or name one in CHROMIUM")
        from playwright.sync_api import sync_playwright  # not among what `make test` installs

        self.playwright = sync_playwright().start()
        sandbox = ["--no-sandbox"] if os.geteuid() == 0 else []
        quiet = ["--disable-gpu", "--disable-background-networking", "--disable-component-update", "--no-first-run"]
        self.browser = self.playwright.chromium.launch(executable_path=found, args=[*quiet, *sandbox])
        return self.browser

    def __exit__(self, *_: object) -> None:
        """Closed."""
        self.browser.close()
        self.playwright.stop()
