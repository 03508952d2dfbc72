"""Page routes."""

from __future__ import annotations

from django.contrib import admin
from django.urls import path, register_converter

from runs.views import (
    account,
    agents,
    bulk,
    catalogue,
    decisions,
    health,
    inbox,
    incidents,
    overview,
    people,
    policies,
    run_list,
    runs,
    safe_mode,
    starting,
    tools,
)  # fmt: skip

ACTS = "|".join(runs.ACTS)


class ActConverter:
    """One of the things that people may do to a run."""

    regex = ACTS

    def to_python(self, value: str) -> str:
        """The name itself."""
        return value

    def to_url(self, value: str) -> str:
        """The name itself."""
        return value


register_converter(ActConverter, "act")

urlpatterns = [
    path("sign-in", account.sign_in, name="sign-in"),
    path("sign-out", account.sign_out, name="sign-out"),
    path("password", account.password, name="password"),
    path("preferences", account.preferences, name="preferences"),
    path("look", account.look, name="look"),
    path("", inbox.inbox, name="inbox"),
    path("views", inbox.save_view, name="save-view"),
    path("views/<int:view_id>/delete", inbox.drop_view, name="drop-view"),
    path("runs", run_list.run_list, name="runs"),
    path("runs/export.csv", run_list.export_csv, name="runs-csv"),
    path("runs/export.jsonl", run_list.export_jsonl, name="runs-jsonl"),
    path("runs/bulk", bulk.bulk_new, name="bulk-new"),
    path("runs/bulk/<int:bulk_id>", bulk.bulk_page, name="bulk"),
    path("runs/bulk/<int:bulk_id>/stop", bulk.bulk_stop, name="bulk-stop"),
    path("runs/new", starting.new, name="new"),
    path("runs/new/<slug:slug>", starting.new_run, name="new-run"),
    path("runs/<int:run_id>", runs.run, name="run"),
    path("runs/<int:run_id>/next/error", runs.next_landmark, {"landmark": "error"}, name="next-error"),
    path("runs/<int:run_id>/next/decision", runs.next_landmark, {"landmark": "decision"}, name="next-decision"),
    path("runs/<int:run_id>/export.csv", runs.export, {"form": "csv"}, name="run-csv"),
    path("runs/<int:run_id>/export.jsonl", runs.export, {"form": "jsonl"}, name="run-jsonl"),
    path("runs/<int:run_id>/<act:name>", runs.act, name="run-act"),
    path("runs/<int:run_id>/events/<int:seq>", runs.event, name="event"),
    path("runs/<int:run_id>/calls/<int:turn>.<int:ordinal>/attest", decisions.attest, name="attest"),
    path("runs/<int:run_id>/stop", decisions.stopped, name="stopped"),
    path("approvals/<int:approval_id>", decisions.approval, name="approval"),
    path("approvals/<int:approval_id>/approve", decisions.approve, name="approve"),
    path("approvals/<int:approval_id>/reject", decisions.reject, name="reject"),
    path("approvals/<int:approval_id>/edit", decisions.edit, name="edit"),
    path("questions/<int:question_id>", decisions.question, name="question"),
    path("questions/<int:question_id>/answer", decisions.answer, name="answer"),
    path("safe-mode", safe_mode.safe_mode_page, name="safe-mode"),
    path("incidents", incidents.incident_list, name="incidents"),
    path("incidents/<int:incident_id>", incidents.incident, name="incident"),
    path("overview", overview.overview, name="overview"),
    path("agents", agents.agent_list, name="agents"),
    path("agents/<slug:slug>", agents.agent, name="agent"),
    path("tools", tools.tool_list, name="tools"),
    path("tools/<slug:name>", tools.tool, name="tool"),
    path("policies", policies.policy, name="policies"),
    path("models", catalogue.models, name="models"),
    path("models/<path:name>", catalogue.model, name="model"),
    path("people", people.people_list, name="people"),
    path("people/<int:person_id>", people.person, name="person"),
    path("health", health.health_page, name="health"),
    # One door for people: the admin's own form would know neither our page nor where to go next.
    path("admin/login/", account.admin_door, name="admin-door"),
    path("admin/", admin.site.urls),
]
