"""Checkpoints: which run heads moved and which configuration is new since the last one, chained by hashes.

A chain per run shows what was changed inside; that a run is gone, or that its tail was cut, shows only against a head
that was kept elsewhere. An append does nothing for this: `Head` rows are looked at here, those of live runs alone.
"""

import json
from typing import Any

from django.conf import settings
from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import F, Model, OuterRef, Subquery

from runs.engine.canonical import canonical, compact, digest
from runs.engine.frozen import Frozen
from runs.engine.limits import SECOND
from runs.engine.machines import RUN_ENDS
from runs.journal.chain import sha
from runs.journal.lease import now
from runs.models import AgentVersion, Budget, Checkpoint, Head, ModelEntry, Policy, Run
from runs.rights import GROUPS

DOMAIN = "agentops/checkpoint/v1"
MOST = 2000  # heads in one checkpoint: it is a line of about 110 bytes each
Content = dict[str, Any]


class Line(Frozen):
    """A checkpoint as it stands outside; hashes are lower-case hex, `at` microseconds, `content` canonical JSON."""

    number: int
    at: int
    previous: str
    content: str
    hash: str
    resumes: int | None = None
    signature: str = ""

    @classmethod
    def of(cls, row: Checkpoint) -> "Line":
        """The line of a stored checkpoint, unsigned."""
        return cls(row.number, row.at, bytes(row.previous).hex(), row.content, bytes(row.hash).hex(), row.resumes)

    @property
    def computed(self) -> str:
        """The hash that the content has, in hex."""
        return checkpoint_hash(self.number, self.at, self.resumes, self.content, self.previous).hex()

    @property
    def said(self) -> Content:
        """The content, parsed."""
        return dict(json.loads(self.content))


def checkpoint_hash(number: int, at: int, resumes: int | None, content: str, previous: str) -> bytes:
    """SHA-256 over everything that a checkpoint says; `previous` is hex."""
    parts = [DOMAIN, number, at, resumes, content, previous]
    return sha(compact(parts))


def locked_last() -> Checkpoint:
    """The last checkpoint; until the transaction ends nobody else adds one, so no two follow the same."""
    Checkpoint.objects.select_for_update().get(number=0)
    return Checkpoint.objects.latest("number")


def add(number: int, previous: str, content: Content, resumes: int | None = None) -> Checkpoint:
    """Store a checkpoint. The caller holds the lock of `locked_last`."""
    at, text = now(), canonical(content)
    made = checkpoint_hash(number, at, resumes, text, previous)
    row = {"at": at, "previous": bytes.fromhex(previous), "resumes": resumes, "content": text, "hash": made}
    return Checkpoint.objects.create(number=number, **row)


def checkpoint(*, at_once: bool = False) -> int:
    """Add checkpoints if one is due, or `at_once`, and something moved since the last; returns how many.

    The work is bounded by the runs that are live; if more than `MOST` moved, several follow each other.
    """
    added, due = 0, at_once or _is_due(Checkpoint.objects.latest("number"))
    while due:
        moved = _add(at_once or added > 0)
        added += moved is not None
        due = moved == MOST
    return added


def _is_due(last: Checkpoint) -> bool:
    return now() - last.at >= settings.AGENTOPS_CHECKPOINT * SECOND


@transaction.atomic
def _add(at_once: bool) -> int | None:
    """Add one checkpoint; returns how many heads it covers, or None if there was nothing to add."""
    last = locked_last()
    if not at_once and not _is_due(last):
        return None  # another sweeper was first
    moved = list(
        Head.objects.filter(open=True)
        .exclude(seq=F("run__seq"))
        .order_by("run_id")
        .values_list("run__uid", "run_id", "run__seq", "run__head")[:MOST]
    )
    heads = [[uid, run, seq, bytes(head).hex()] for uid, run, seq, head in moved]
    content = configuration(last.number + 1) | ({"runs": heads} if heads else {})
    if content.keys() == {"people"}:
        return None
    add(last.number + 1, bytes(last.hash).hex(), content)
    rows = [Head(run_id=run, seq=seq) for _, run, seq, _ in moved]
    Head.objects.bulk_create(rows, update_conflicts=True, unique_fields=["run"], update_fields=["seq"])
    _close()
    return len(moved)


def _close() -> None:
    """Look no more at runs that have ended and are covered to their end.

    Their rows are locked first and compared again: what is recorded after the end opens the head by a trigger.
    """
    ended = Head.objects.filter(open=True, run__status__in=RUN_ENDS, seq=F("run__seq")).values_list("pk", flat=True)
    runs = Run.objects.filter(pk__in=list(ended[:MOST])).order_by("pk").select_for_update()
    found = [run.pk for run in runs.only("pk")]
    seq = Subquery(Run.objects.filter(pk=OuterRef("pk")).values("seq"))
    Head.objects.filter(pk__in=found, seq=seq).update(open=False)


def configuration(number: int) -> Content:
    """What sets the limits: policies and agent versions not covered yet, and the digest of who is in which group.

    They are marked as covered by checkpoint `number`. The groups themselves are listed when they changed.
    """
    content: Content = {}
    policies = list(Policy.objects.filter(checkpoint=None).order_by("number"))
    versions = list(AgentVersion.objects.filter(checkpoint=None).select_related("agent").order_by("pk"))
    if policies:
        content["policies"] = [[row.number, policy_digest(row)] for row in policies]
        Policy.objects.filter(pk__in=[row.pk for row in policies]).update(checkpoint=number)
    if versions:
        content["agents"] = [[row.agent.slug, row.number, digest(canonical(row.definition))] for row in versions]
        AgentVersion.objects.filter(pk__in=[row.pk for row in versions]).update(checkpoint=number)
    for name, found in (("models", ModelEntry.objects), ("budgets", Budget.objects)):
        if rows := list(found.filter(checkpoint=None).order_by("pk")):
            content[name] = [[row.pk, row_digest(row)] for row in rows]
            found.filter(pk__in=[row.pk for row in rows]).update(checkpoint=number)
    people = _people()
    content["people"] = digest(canonical(people))
    if content["people"] != people_covered():
        content["groups"] = people
    return content


def people_covered() -> str:
    """The digest of people and groups that the last checkpoint has; every one has it but the first and acceptances."""
    for row in Checkpoint.objects.order_by("-number")[:10]:
        if found := json.loads(row.content).get("people"):
            return str(found)
    return ""


def _people() -> list[list[Any]]:
    """[id, groups] of every active person who is in one of ours: ids alone, names can be erased."""
    rows = User.objects.filter(is_active=True, groups__name__in=GROUPS).order_by("pk", "groups__name")
    found: dict[int, list[str]] = {}
    for pk, group in rows.values_list("pk", "groups__name"):
        found.setdefault(pk, []).append(group)
    return [[pk, groups] for pk, groups in found.items()]


def row_digest(row: Model) -> str:
    """Digest of everything that an entry of the catalogue or a budget says."""
    said = {f.attname: getattr(row, f.attname) for f in row._meta.concrete_fields if f.attname != "checkpoint"}
    return digest(canonical(said))


def policy_digest(row: Policy) -> str:
    """Digest of everything that a policy version says: content, author, reason and time."""
    return digest(canonical([row.number, row.content, row.author_id, row.reason, row.at]))
