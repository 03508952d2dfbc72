"""A small run on a real model, end to end: opt-in, for it costs money. It never claims to have run when it did not."""

import time
from argparse import ArgumentParser
from typing import Any

from django.conf import settings
from django.contrib.auth.models import User
from django.core.management.base import BaseCommand, CommandError

from runs.actions.runs import start_run
from runs.engine.costs import cost_of
from runs.journal.lease import now
from runs.models import Agent, Run, Spend
from runs.providers import lacking
from runs.runner import advance

SECONDS = 180
NOT_RUN = 2  # the exit status where nothing was checked: no caller takes it for a pass


class Command(BaseCommand):
    """Start a run of an agent that only reads on a model of the catalogue, and see it succeed and its cost add up."""

    help = "Run a small agent on a real model. Needs the model's key and, for the demo, a running `make up`."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Which model and which agent."""
        parser.add_argument("--model", default="anthropic:claude-haiku-5-5")
        parser.add_argument("--agent", default="stock-question")

    def handle(self, *args: Any, **options: Any) -> None:
        """Exit 0 only if a run on the real API succeeded; 2 if none was started."""
        if knob := lacking(options["model"], settings.AGENTOPS_MODELS):
            self.stderr.write(f"NOT RUN: {knob} is not set. Nothing was sent, and nothing was checked.")
            raise SystemExit(NOT_RUN)
        agent = Agent.objects.filter(slug=options["agent"]).first()
        starter = User.objects.filter(is_active=True, groups__name="operator").order_by("pk").first()
        if agent is None or starter is None:
            self.stderr.write("NOT RUN: there is no such agent, or no operator. Run manage.py seed first.")
            raise SystemExit(NOT_RUN)
        definition = agent.current.definition
        inputs = {f["name"]: f["example"] for f in definition.get("inputs", []) if f.get("example")}
        goal = definition.get("example_goal") or "Do what your instructions say."
        run = start_run(starter=starter, agent_version=agent.current, goal=goal, inputs=inputs, model=options["model"])
        self.stdout.write(f"run {run.pk} asks {options['model']}: {goal}")
        self._tell(self._ended(run))

    def _ended(self, run: Run) -> Run:
        """The run when only a person could move it, or its time is up; a worker may be faster than this process."""
        until = time.monotonic() + SECONDS
        while time.monotonic() < until:
            if run.due_at is None:
                return run
            if run.due_at <= now():
                advance(run.pk)
            time.sleep(0.2)
            run.refresh_from_db()
        return run

    def _tell(self, run: Run) -> None:
        rows = list(Spend.objects.filter(run=run).select_related("entry").order_by("turn", "attempt"))
        for row in rows:
            self.stdout.write(f"  turn {row.turn}.{row.attempt}: {row.usage}, micro-dollars: {row.cost}")
            again = cost_of(row.usage, row.entry.tariff if row.entry else None)
            if row.settled and again.micro != row.cost:
                raise CommandError(f"turn {row.turn} does not add up: {row.cost} on record, {again.micro} calculated")
        stop = run.picture.stop
        if run.status != "succeeded" or not rows:
            raise CommandError(f"run {run.pk} ended as {run.status}{f' ({stop.reason})' if stop else ''}; see its page")
        known = sum(row.cost for row in rows if row.cost is not None)
        lacks = "" if all(row.cost is not None for row in rows) else " and more, of which no price is known"
        self.stdout.write(f"RAN: run {run.pk} succeeded in {len(rows)} requests for {known} micro-dollars{lacks}.")
