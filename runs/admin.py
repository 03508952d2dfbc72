"""Django's admin shows runs and approvals and changes neither: only the journal writes them (spine.md 6)."""

from typing import Any

from django.contrib import admin
from django.http import HttpRequest

from runs.models import Approval, Run


class ReadOnly(admin.ModelAdmin):
    """Nothing can be added, changed or deleted."""

    actions = None

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Never."""
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Never."""
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Never."""
        return False


@admin.register(Run)
class RunAdmin(ReadOnly):
    """Rows of runs; their events are read on the page of the run."""

    list_display = ("id", "status", "agent_version", "starter", "goal", "seq", "epoch")
    list_filter = ("status",)
    list_select_related = ("agent_version__agent", "starter")
    fields = ("uid", "status", "agent_version", "starter", "goal", "inputs", "facts", "seq", "epoch", "due_at", "state")
    show_full_result_count = False


@admin.register(Approval)
class ApprovalAdmin(ReadOnly):
    """Rows of approvals."""

    list_display = ("id", "status", "run", "turn", "ordinal", "n", "rule")
    list_filter = ("status",)
    list_select_related = ("run",)
    show_full_result_count = False
