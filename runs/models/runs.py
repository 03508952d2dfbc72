"""A run, its events and its calls. One row to step from, one log to explain it, one row per call to query."""

import json
from typing import Any

from django.conf import settings
from django.db import models
from django.db.models import Q

from runs.engine import machines
from runs.engine.state import RunState, loads
from runs.models.agents import AgentVersion


class Run(models.Model):
    """One execution of an agent version towards a goal. Times are microseconds since 1970.

    `uid` is random: operation keys and the chain are made of it, so two databases never share a key. `due_at` is the
    lease's end while leased, 0 when runnable, the next time when the run waits for one, NULL when only a person can
    move it or it has ended. `crashes` counts lapsed leases since the last progress.
    """

    uid = models.CharField(max_length=32)
    agent_version = models.ForeignKey(AgentVersion, on_delete=models.PROTECT, related_name="runs")
    starter = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="started_runs")
    goal = models.TextField()
    inputs = models.JSONField(default=dict)
    facts = models.JSONField(default=dict)
    request_key = models.CharField(max_length=64, null=True)
    model = models.CharField(max_length=120, null=True)  # as chosen at the start; null: the agent version's
    started_at = models.BigIntegerField()
    status = models.CharField(max_length=20, default="queued")
    state = models.TextField()
    seq = models.BigIntegerField(default=0)
    head = models.BinaryField(max_length=32, default=b"")
    epoch = models.BigIntegerField(default=0)
    lease_until = models.BigIntegerField(null=True)
    due_at = models.BigIntegerField(null=True)
    crashes = models.PositiveIntegerField(default=0)

    class Meta:
        ordering = ["-id"]
        constraints = [
            models.UniqueConstraint(fields=["uid"], name="run_uid"),
            models.UniqueConstraint(fields=["request_key"], name="run_request_key"),
            models.CheckConstraint(condition=Q(status__in=machines.RUN), name="run_status"),
            models.CheckConstraint(
                condition=~Q(status__in=machines.RUN_ENDS) | Q(lease_until__isnull=True, due_at__isnull=True),
                name="run_ended_is_at_rest",
            ),
        ]
        indexes = [
            models.Index(fields=["due_at"], condition=Q(due_at__isnull=False), name="run_due"),
            # For lists: a state's newest, and how many stand how, of all or since a time.
            models.Index(fields=["status", "-id"], name="run_by_status"),
            models.Index(fields=["started_at", "status"], name="run_by_start"),
        ]

    def __str__(self) -> str:
        return f"run {self.pk}"

    @property
    def opening(self) -> dict[str, Any]:
        """Goal, inputs, facts and a chosen model as the columns have them; the first event's payload says the same."""
        chosen = {"model": self.model} if self.model else {}
        return {"goal": self.goal, "inputs": self.inputs, "facts": self.facts, **chosen}

    @property
    def picture(self) -> RunState:
        """What the host believes about the run."""
        return loads(self.state)

    @property
    def ended(self) -> bool:
        """True after succeeded, failed or cancelled."""
        return self.status in machines.RUN_ENDS


class Event(models.Model):
    """One fact, append-only. The chain hashes the payload's digest: a payload can be erased and it still verifies."""

    pk = models.CompositePrimaryKey("run_id", "seq")
    run = models.ForeignKey(Run, on_delete=models.PROTECT, related_name="events", db_index=False)
    seq = models.BigIntegerField()
    kind = models.CharField(max_length=24)
    turn = models.IntegerField()
    ordinal = models.IntegerField()
    revision = models.IntegerField()
    actor = models.CharField(max_length=8)
    person = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.PROTECT, related_name="+", db_index=False
    )
    epoch = models.BigIntegerField()
    at = models.BigIntegerField()
    body = models.TextField()
    payload = models.TextField(null=True)
    payload_digest = models.BinaryField(max_length=32, null=True)
    state_digest = models.BinaryField(max_length=32, null=True)
    hash = models.BinaryField(max_length=32)

    def __str__(self) -> str:
        return f"{self.seq} {self.kind}"


class Call(models.Model):
    """One tool call; identity is (run, turn, ordinal). Times are microseconds since 1970, `status` as DESIGN.md 5.

    `arguments` is canonical JSON of the latest revision: what was shown and what runs. `ended_seq` orders outcomes
    and changes. `watch_at` is when a presumed verdict is looked for again.
    """

    pk = models.CompositePrimaryKey("run_id", "turn", "ordinal")
    run = models.ForeignKey(Run, on_delete=models.PROTECT, related_name="calls", db_index=False)
    turn = models.IntegerField()
    ordinal = models.IntegerField()
    revision = models.IntegerField()
    label = models.CharField(max_length=200)
    tool = models.CharField(max_length=64)
    definition = models.CharField(max_length=90)
    effect = models.CharField(max_length=12)
    status = models.CharField(max_length=12)
    arguments = models.TextField(default="{}")
    args_digest = models.CharField(max_length=64)
    objects_touched = models.JSONField(default=list, db_column="objects")
    why = models.TextField(default="")
    key = models.CharField(max_length=64, null=True)
    attempt = models.IntegerField(default=0)
    deadline = models.BigIntegerField(default=0)
    started_at = models.BigIntegerField(null=True)
    ended_at = models.BigIntegerField(null=True)
    ended_seq = models.BigIntegerField(null=True)
    outcome = models.CharField(max_length=12, default="")
    detail = models.TextField(default="")
    effect_ref = models.CharField(max_length=200, default="")
    source = models.CharField(max_length=120, default="")
    version = models.CharField(max_length=120, default="")
    evidence = models.JSONField(default=list)
    met = models.JSONField(default=list)
    changed = models.JSONField(default=list)
    presumed = models.BooleanField(default=False)
    after_cancel = models.BooleanField(default=False)
    watch_at = models.BigIntegerField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["key"], name="call_key"),
            models.CheckConstraint(condition=Q(status__in=list(machines.CALL)), name="call_status"),
            models.CheckConstraint(condition=Q(effect__in=machines.EFFECTS), name="call_effect"),
            models.CheckConstraint(condition=~Q(status="executing") | Q(key__isnull=False), name="call_intent_has_key"),
            models.CheckConstraint(condition=Q(outcome__in=["", *machines.OUTCOMES]), name="call_outcome"),
        ]
        indexes = [
            models.Index(fields=["run"], condition=Q(status="unknown"), name="call_unknown"),
            models.Index(fields=["watch_at"], condition=Q(watch_at__isnull=False), name="call_watched"),
        ]

    def __str__(self) -> str:
        return f"call {self.turn}.{self.ordinal} {self.tool}"

    def values(self) -> dict[str, Any]:
        """The arguments, parsed."""
        return dict(json.loads(self.arguments))


class CallObject(models.Model):
    """Which calls touch a business object, by its key such as ``order:O-1042``: an index over `Call.objects_touched`.

    An edit may leave a key behind that the call no longer names; who reads asks the call as well.
    """

    key = models.TextField()
    run = models.ForeignKey(Run, on_delete=models.PROTECT, related_name="+", db_index=False)
    turn = models.IntegerField()
    ordinal = models.IntegerField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["key", "run", "turn", "ordinal"], name="call_object_once")]

    def __str__(self) -> str:
        return f"{self.key} by call {self.turn}.{self.ordinal} of run {self.run_id}"
