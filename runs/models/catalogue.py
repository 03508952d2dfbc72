"""Models and what they cost, budgets, and what was spent. Prices and sums are whole micro-dollars."""

from django.conf import settings
from django.db import models

from runs.engine.costs import Tariff


class ModelEntry(models.Model):
    """One version of what is known of a model; the highest `number` of a name is current. Never changed (triggers).

    `name` is ``provider:model``. `prices` and `beyond` are by kind of `engine.costs.KINDS`, per million; a kind that is
    absent is unknown. Prompts above `long` tokens have the prices `beyond` (0: no such step). `offered`: people may
    choose it for a run. `priced_on` is the day (ISO) at which `source` says so. 0 tokens: not known.
    """

    name = models.CharField(max_length=120)
    number = models.PositiveIntegerField()
    window = models.PositiveIntegerField(default=0)
    most = models.PositiveIntegerField(default=0)
    prices = models.JSONField(default=dict)
    long = models.PositiveIntegerField(default=0)
    beyond = models.JSONField(default=dict)
    priced_on = models.CharField(max_length=10, blank=True)
    source = models.CharField(max_length=300, blank=True)
    capabilities = models.JSONField(default=list)
    offered = models.BooleanField(default=True)
    author = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.PROTECT, related_name="+")
    reason = models.TextField()
    at = models.BigIntegerField()
    checkpoint = models.BigIntegerField(null=True)

    class Meta:
        ordering = ["name", "-number"]
        verbose_name_plural = "model entries"
        constraints = [models.UniqueConstraint(fields=["name", "number"], name="model_entry_number")]

    def __str__(self) -> str:
        return f"{self.name} v{self.number}"

    @property
    def tariff(self) -> Tariff:
        """What the pure calculation takes."""
        return Tariff(self.prices, self.long, self.beyond, self.window, self.most)


class Budget(models.Model):
    """What may be spent: by one run, or in one day (UTC) by the installation (`day`), runs of an agent or of a starter.

    `key` is the id of run, agent or person, 0 for the installation. A later row of the same place replaces it; `limit`
    None lifts it. Never changed (triggers).
    """

    scope = models.CharField(max_length=8, choices=[(s, s) for s in ("run", "day", "agent", "person")])
    key = models.BigIntegerField(default=0)
    limit = models.BigIntegerField(null=True)
    author = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    reason = models.TextField()
    at = models.BigIntegerField()
    checkpoint = models.BigIntegerField(null=True)

    class Meta:
        ordering = ["-id"]

    def __str__(self) -> str:
        return f"budget {self.pk} of {self.scope} {self.key}"


class Account(models.Model):
    """What is used of one day, agent, person or run: what was settled and what is still reserved.

    `day` is days since 1970 (UTC), 0 for the account of a run. Its row lock is what makes budgets hold.
    """

    scope = models.CharField(max_length=8)
    key = models.BigIntegerField()
    day = models.IntegerField()
    used = models.BigIntegerField(default=0)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["scope", "key", "day"], name="account_place")]

    def __str__(self) -> str:
        return f"account of {self.scope} {self.key} on day {self.day}"


class Spend(models.Model):
    """One request to a model: what was reserved before it, and what it came to. Settled once, then never changed.

    `cost` None: unknown. `estimate`: a stream was cut, or nobody heard the end; there may be more. `usage`: by kind.
    """

    run = models.ForeignKey("runs.Run", on_delete=models.PROTECT, related_name="spends")
    turn = models.PositiveIntegerField()
    attempt = models.PositiveIntegerField()
    entry = models.ForeignKey(ModelEntry, null=True, on_delete=models.PROTECT, related_name="+")
    agent = models.BigIntegerField()
    starter = models.BigIntegerField()
    day = models.IntegerField()
    reserved = models.BigIntegerField(null=True)
    cost = models.BigIntegerField(null=True)
    estimate = models.BooleanField(default=True)
    settled = models.BooleanField(default=False)
    usage = models.JSONField(default=dict)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["run", "turn", "attempt"], name="spend_request")]
        indexes = [models.Index(fields=["day", "agent"], name="spend_day_agent")]

    def __str__(self) -> str:
        return f"request {self.run_id}.{self.turn}.{self.attempt}"
