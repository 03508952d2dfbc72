"""The words in which page tests are told. Imported inside fixtures and tests: Django must be set up first."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.contrib.auth.models import Group, User
from django.core.management import call_command
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from runs.actions.runs import start_run
from runs.engine import events as e
from runs.journal.append import Draft, Picture, append
from runs.journal.lease import now
from runs.models import Agent, Approval, Call, Incident, Question, Run
from runs.runner import advance

PEOPLE = ("operator", "reviewer", "auditor", "admin", "stranger")


def seed() -> None:
    call_command("seed")
    User.objects.get_or_create(username="stranger")
    for name, group in (("second", "operator"), ("both", "operator"), ("both", "admin")):
        User.objects.get_or_create(username=name)[0].groups.add(Group.objects.get(name=group))


def person(name: str) -> User:
    return User.objects.get(username=name)


def browser(name: str = "") -> Client:
    """A browser, signed in unless nameless."""
    client = Client()
    if name:
        client.force_login(person(name))
    return client


class Story:
    """One run in the hands of a test."""

    def __init__(self, agent: str = "refund", starter: str = "operator", **more: Any) -> None:
        inputs = more.pop(
            "inputs", {"order_id": "O-1042", "amount": "80.00"} if agent == "refund" else {"order_id": "O-1042"}
        )
        version = Agent.objects.get(slug=agent).current
        self.run = start_run(
            starter=person(starter), agent_version=version, goal=more.pop("goal", "Tell a story."), inputs=inputs,
            facts=more.pop("facts", {"customer": "C-7"}), **more,
        )  # fmt: skip

    def go(self) -> Story:
        """Let a worker do what there is to do."""
        advance(self.run.pk)
        self.run = Run.objects.get(pk=self.run.pk)
        return self

    @property
    def approval(self) -> Approval:
        return Approval.objects.filter(run=self.run).latest("pk")

    @property
    def question(self) -> Question:
        return Question.objects.get(run=self.run)

    @property
    def call(self) -> Call:
        return Call.objects.filter(run=self.run).exclude(effect__in=("read", "host")).order_by("-turn", "-ordinal")[0]

    @property
    def place(self) -> str:
        return f"/runs/{self.run.pk}/calls/{self.call.turn}.{self.call.ordinal}/attest"

    @property
    def page(self) -> str:
        return f"/runs/{self.run.pk}"


def opened(story: Story) -> Incident:
    """An incident about the run's call, as late evidence would open it."""
    run = Run.objects.get(pk=story.run.pk)
    what = (
        f"call {story.call.turn}.{story.call.ordinal} {story.call.tool} was held to be not executed; it turned out ok"
    )
    draft = Draft(Picture.of(run), now())
    append(draft.add(e.IncidentOpened(what), call=story.call.ordinal, turn=story.call.turn))
    return Incident.objects.get(run=run)


def decide(story: Story, how: str, who: str = "reviewer", **fields: Any) -> Any:
    """Post a decision as the page would."""
    data = {"digest": story.approval.digest, "why": "", "then": "continue", "confirm": story.call.tool} | fields
    return browser(who).post(f"/approvals/{story.approval.pk}/{how}", data)


@contextmanager
def counted() -> Iterator[CaptureQueriesContext]:
    with CaptureQueriesContext(connection) as context:
        yield context
