"""Is the record as a whole what it was? Checkpoints, the heads outside, the configuration, and each run against them.

What is outside is read before the database: whatever a checkpoint says was committed before it, so a database that is
written to meanwhile can only know more.
"""

from collections.abc import Iterable, Iterator
from functools import cached_property
from pathlib import Path

from runs.audit import outside
from runs.audit.checkpoints import Line, policy_digest, row_digest
from runs.engine.canonical import canonical, digest
from runs.journal.verify import snapshot, verify
from runs.models import AgentVersion, Budget, Checkpoint, Event, ModelEntry, Policy, Run

Head = tuple[int, int, str, int]  # run, seq, hash, number of the checkpoint that covers it


class Record:
    """The checkpoints, read and compared once; then `run_faults` for each run."""

    def __init__(self, path: Path | None, secret: bytes = b"") -> None:
        """`path` is the file outside, None to do without it; `secret` the key of its signatures, if at hand."""
        self.path, self.secret = path, secret
        self.lines: dict[int, Line] = {}
        self.stored: dict[int, Line] = {}
        self.heads: dict[str, Head] = {}

    def faults(self) -> Iterator[str]:
        """Everything that is wrong with checkpoints, heads outside and configuration, in the order of the log."""
        if self.path is not None:
            yield from self._outside_faults(self.path)
        with snapshot():
            self.stored = {row.number: Line.of(row) for row in Checkpoint.objects.order_by("number")}
            yield from self._stored_faults()
            yield from self._difference()
            told = [line for _, line in sorted((self.stored | self.lines).items()) if not self._abandoned(line.number)]
            for line in told:
                for uid, run, seq, head in line.said.get("runs", []):
                    self.heads[uid] = run, seq, head, line.number
            yield from _configuration_faults(told)
            yield from _row_faults(told)

    def _outside_faults(self, path: Path) -> Iterator[str]:
        before: Line | None = None
        try:
            for line in outside.lines(path):
                yield from _link_faults(line, before, f"outside, checkpoint {line.number}")
                if line.number in self.lines:
                    yield f"outside, checkpoint {line.number}: stands there twice"
                yield from self._signature_faults(line, before)
                self.lines[line.number], before = line, line
        except outside.BadLine as error:
            yield str(error)
            return
        if before is None:
            yield "outside: the file holds no head"
        elif self.secret and not before.signature:
            # It stands for all before it, which it chains. Without it, who takes all signatures away would get by.
            yield f"outside, checkpoint {before.number}: is the last and not signed, and there is a key"

    def _signature_faults(self, line: Line, before: Line | None) -> Iterator[str]:
        name = f"outside, checkpoint {line.number}"
        if self.secret and line.signature and line.signature != outside.signature(line, self.secret):
            yield f"{name}: its signature is not of this key"
        if before is not None and before.signature and not line.signature:
            yield f"{name}: is not signed, the one before is"

    def _stored_faults(self) -> Iterator[str]:
        before: Line | None = None
        for line in self.stored.values():
            yield from _link_faults(line, before, f"checkpoint {line.number}")
            before = line

    @cached_property
    def _gaps(self) -> list[range]:
        """What acceptances have abandoned. Read once, when both sides are known: there is a checkpoint every minute."""
        known = (*self.stored.values(), *self.lines.values())
        return [range(line.resumes + 1, line.number) for line in known if line.resumes is not None]

    def _abandoned(self, number: int) -> bool:
        return any(number in gap for gap in self._gaps)

    def _difference(self) -> Iterator[str]:
        last = max(self.lines, default=-1)
        for number in sorted(self.lines.keys() | self.stored.keys()):
            here, there = self.stored.get(number), self.lines.get(number)
            if self._abandoned(number) or (here and there and here.hash == there.hash):
                continue
            if here is None:
                yield f"checkpoint {number} stands outside and not in the database: cut, or restored from a backup"
                return
            if there is None and number < last:
                yield f"checkpoint {number} is missing outside"
            elif there is not None:
                yield f"checkpoint {number} is another one outside: two histories"
                return

    def run_faults(self, pk: int) -> list[str]:
        """What is wrong with one run, itself and against the last checkpoint that covers it."""
        with snapshot():
            run = Run.objects.select_related("agent_version__agent").get(pk=pk)
            found = verify(run)
            head = self.heads.pop(run.uid, None)
            if head is not None:
                _, seq, wanted, number = head
                row = Event.objects.filter(run=run, seq=seq).values_list("hash", flat=True).first()
                if row is None:
                    found.append(f"event {seq}: is gone, checkpoint {number} covers it")
                elif bytes(row).hex() != wanted:
                    found.append(f"event {seq}: is not the one that checkpoint {number} covers")
            return found

    def missing(self) -> Iterator[tuple[int, str]]:
        """(number, fault) of the runs that checkpoints cover and nobody asked `run_faults` about: they are gone."""
        for run, seq, _, number in sorted(self.heads.values()):
            yield run, f"is gone: checkpoint {number} covers it to event {seq}"


def _link_faults(line: Line, before: Line | None, name: str) -> Iterator[str]:
    """What is wrong with a checkpoint by itself and as the follower of the one before."""
    if line.computed != line.hash:
        yield f"{name}: its hash does not match its content"
    if line.resumes is not None:
        return  # it follows a checkpoint that this side may not have; what it resumes is compared by `_difference`
    if line.number != (before.number + 1 if before else 0):
        yield f"{name}: the one before is missing"
    elif line.previous != (before.hash if before else ""):
        yield f"{name}: does not follow the one before"


def _configuration_faults(told: Iterable[Line]) -> Iterator[str]:
    policies: dict[int, str] = {}
    agents: dict[tuple[str, int], str] = {}
    for line in told:
        policies |= dict(line.said.get("policies", []))
        agents |= {(slug, number): made for slug, number, made in line.said.get("agents", [])}
    covered = max(policies, default=0)
    for row in Policy.objects.order_by("number"):
        wanted = policies.pop(row.number, None)
        if wanted is None and (row.number <= covered or row.checkpoint is not None):
            yield f"policy {row.number}: no checkpoint covers it, and it should"
        elif wanted is not None and policy_digest(row) != wanted:
            yield f"policy {row.number}: is not what it was"
    yield from (f"policy {number}: is gone" for number in sorted(policies))
    newest = Policy.objects.order_by("-number").first()
    if newest is not None and not newest.current:
        yield f"policy {newest.number}: is the newest and not the current one"
    for version in AgentVersion.objects.select_related("agent").order_by("pk"):
        wanted = agents.pop((version.agent.slug, version.number), None)
        if wanted is None and version.checkpoint is not None:
            yield f"agent {version}: no checkpoint covers it, and it should"
        elif wanted is not None and digest(canonical(version.definition)) != wanted:
            yield f"agent {version}: is not what it was"
    yield from (f"agent {slug} v{number}: is gone" for slug, number in sorted(agents))


def _row_faults(told: Iterable[Line]) -> Iterator[str]:
    """Entries of the catalogue and budgets against their digests in checkpoints."""
    lines = list(told)
    for name, rows in (("models", ModelEntry.objects), ("budgets", Budget.objects)):
        wanted = {pk: made for line in lines for pk, made in line.said.get(name, [])}
        for row in rows.order_by("pk"):
            found = wanted.pop(row.pk, None)
            if found is None and row.checkpoint is not None:
                yield f"{row}: no checkpoint covers it, and it should"
            elif found is not None and row_digest(row) != found:
                yield f"{row}: is not what it was"
        yield from (f"{name} {pk}: is gone" for pk in sorted(wanted))
