"""Agents and their immutable versions."""

from django.db import models

from runs.engine.canonical import canonical, digest


class Agent(models.Model):
    """A named definition; what it does is in its versions."""

    slug = models.SlugField(max_length=64)
    name = models.CharField(max_length=120)
    description = models.TextField(blank=True)

    class Meta:
        ordering = ["name"]
        constraints = [models.UniqueConstraint(fields=["slug"], name="agent_slug")]

    def __str__(self) -> str:
        return self.name

    @property
    def current(self) -> "AgentVersion":
        """The version that new runs start with."""
        return self.versions.latest("number")


class AgentVersion(models.Model):
    """Instructions, model, tools, limits, acceptance, inputs, facts; a run keeps the version that it began with."""

    agent = models.ForeignKey(Agent, on_delete=models.PROTECT, related_name="versions")
    number = models.PositiveIntegerField()
    definition = models.JSONField()
    checkpoint = models.BigIntegerField(null=True)  # the one that first covered it

    class Meta:
        constraints = [models.UniqueConstraint(fields=["agent", "number"], name="agent_version_number")]

    def __str__(self) -> str:
        return f"{self.agent.slug} v{self.number}"

    @property
    def identity(self) -> str:
        """``slug vN@digest``: what a run records of the version that it keeps."""
        return f"{self}@{digest(canonical(self.definition))[:16]}"
