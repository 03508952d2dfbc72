"""What every installation needs once: groups, the first policy, the agents of the installed packages, demo people."""

import json
import os
import secrets
from pathlib import Path
from typing import Any

from django.conf import settings
from django.contrib.auth.models import Group, Permission, User
from django.core.management.base import BaseCommand
from django.db import transaction

from runs.catalog import catalog
from runs.engine.policy import starter_default
from runs.journal.lease import now
from runs.models import Agent, AgentVersion, ModelEntry, Policy
from runs.providers.prices import entries
from runs.rights import GROUPS

DEMO_PEOPLE = {"operator": "operator", "reviewer": "operator", "auditor": "auditor", "admin": "admin"}


class Command(BaseCommand):
    """Bring the database up to what the installed packages say; the second time changes nothing."""

    help = "Make groups, the first policy, the agents of AGENTOPS_TOOLS and, with the demo, its people."

    @transaction.atomic
    def handle(self, *args: Any, **options: Any) -> None:
        """Seed once."""
        groups = {name: Group.objects.get_or_create(name=name)[0] for name in GROUPS}
        self._policy()
        self._models()
        for slug, definition in catalog().agents.items():
            self._agent(slug, dict(definition))
        groups["admin"].permissions.set(Permission.objects.filter(codename__in=("view_run", "view_approval")))
        if "demo" in settings.AGENTOPS_TOOLS:
            self._people(groups)

    def _policy(self) -> None:
        """The starter policy, with one denying rule, so that a first look shows all three verdicts."""
        if Policy.objects.exists():
            return
        defaults = {name: starter_default(tool.spec) for name, tool in catalog().tools.items()}
        rules = [
            {
                "id": "refunds-above-500", "effect": "deny", "tools": ["refund_order"],
                "when": [{"arg": "amount", "op": "decimal_gt", "value": "500.00"}],
                "why": "refunds above 500.00 are not made by agents",
            }
        ]  # fmt: skip
        content = {"defaults": defaults, "risk": {}, "off": [], "rules": rules if "refund_order" in defaults else []}
        Policy.objects.create(number=1, content=content, current=True, reason="starter policy", at=now())

    def _models(self) -> None:
        """The first catalogue. Once there is one, prices are what admins say: a later list changes nothing."""
        if not ModelEntry.objects.exists():
            first = {"number": 1, "reason": "first list of prices", "at": now()}
            ModelEntry.objects.bulk_create([ModelEntry(**entry, **first) for entry in entries()])

    def _agent(self, slug: str, definition: dict[str, Any]) -> None:
        """A changed definition is a new version; runs keep the one that they began with."""
        name, description = definition.pop("name"), definition.pop("description", "")
        agent, _ = Agent.objects.update_or_create(slug=slug, defaults={"name": name, "description": description})
        plain = json.loads(json.dumps(definition))
        last = agent.versions.order_by("number").last()
        if last is None or last.definition != plain:
            AgentVersion.objects.create(agent=agent, number=last.number + 1 if last else 1, definition=plain)

    def _people(self, groups: dict[str, Group]) -> None:
        path = Path(settings.AGENTOPS_VAR) / "demo-passwords.json"
        known = json.loads(path.read_text()) if path.exists() else {}
        given = os.environ.get("AGENTOPS_DEMO_PASSWORD", "")
        passwords = {name: given or known.get(name) or secrets.token_urlsafe(9) for name in DEMO_PEOPLE}
        for name, group in DEMO_PEOPLE.items():
            person, _ = User.objects.get_or_create(username=name)
            person.groups.add(groups[group])
            if not person.check_password(passwords[name]) or person.is_staff != (group == "admin"):
                person.set_password(passwords[name])
                person.is_staff = group == "admin"
                person.save(update_fields=["password", "is_staff"])
        if passwords != known:
            with open(os.open(path, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600), "w") as file:
                json.dump(passwords, file)
