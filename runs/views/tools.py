"""Tools and permissions: what each tool may do, and the way in which an admin changes that: draft, look, publish."""

from dataclasses import dataclass, field
from typing import Any

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect
from django.utils.translation import gettext as _

from runs.actions import policies as acts
from runs.actions.acting import Refused, need
from runs.engine.canonical import canonical, digest
from runs.forms.tools import Switch, ToolForm
from runs.queries import merging, policies, tools
from runs.queries import rehearsal as rehearsals
from runs.views.access import absent, page, show

STOP, START = "stop", "start"  # what is typed to switch every tool, in every language


@page("see", "GET", "HEAD", "POST")
def tool_list(request: Any) -> HttpResponse:
    """All tools; on POST an admin switches all of them off or on again."""
    if request.method == "POST":
        need(request.user, "set_policy")
    found = tools.tool_list()
    form = Switch(
        request.POST if request.method == "POST" else None, off=not found.all_off, word=START if found.all_off else STOP
    )
    refused: Refused | None = None
    if request.method == "POST" and form.is_valid():
        refused = _switch(request, "*", form)
        if refused is None:
            return redirect("tools")
    context = {"list": found, "form": form, "refused": refused, "may_set": request.viewer.may("set_policy")}
    return show(request, "tools/list.html", context, refused.status if refused else 422 if form.errors else 200)


def _switch(request: Any, tool: str, form: Switch) -> Refused | None:
    """Switch, with a notice; what refuses it, else None."""
    off = form.cleaned_data["off"] == "1"
    try:
        made = acts.switch(request.user, tool, off=off, reason=form.cleaned_data["why"])
    except Refused as error:
        return error
    told = _("Switched off with policy {n}. Nothing new starts.") if off else _("Switched on with policy {n}.")
    messages.success(request, told.format(n=made.number))
    return None


@dataclass
class Draft:
    """A change on its way: what it changes, what it would have said of past calls, and what stands in its way."""

    form: ToolForm
    changes: list[policies.Change] = field(default_factory=list)
    rehearsal: rehearsals.Rehearsal | None = None
    differences: list[merging.Difference] = field(default_factory=list)
    refused: Refused | None = None
    looked: bool = False
    nothing: bool = False

    @property
    def status(self) -> int:
        """The HTTP status that fits."""
        if self.refused:
            return self.refused.status
        return 409 if self.differences else 422 if self.form.wrong else 200


@page("see", "GET", "HEAD", "POST")
def tool(request: Any, name: str) -> HttpResponse:
    """One tool; an admin drafts a change, looks at what it means, and publishes it."""
    post = request.method == "POST"
    if post:
        need(request.user, "set_policy")
    sheet = tools.tool_sheet(name)
    if sheet is None:
        raise absent()
    off = sheet.row.off
    switch = Switch(request.POST if post and "off" in request.POST else None, off=not off)
    draft: Draft | None = None
    refused: Refused | None = None
    if switch.is_bound and switch.is_valid():
        refused = _switch(request, name, switch)
        if refused is None:
            return redirect("tool", name)
    elif post and not switch.is_bound:
        draft = _draft(request, sheet)
        if draft is None:
            return redirect("tool", name)
    content = sheet.policy.content
    shown = draft.form if draft else ToolForm(sheet.row.spec, content, based_on=sheet.policy.number)
    context = {"sheet": sheet, "form": shown, "draft": draft, "switch": switch, "refused": refused}
    context |= {"may_set": request.viewer.may("set_policy"), "next": sheet.policy.number + 1, "days": rehearsals.DAYS}
    status = draft.status if draft else refused.status if refused else 422 if switch.errors else 200
    return show(request, "tools/tool.html", context, status)


def _draft(request: Any, sheet: tools.ToolSheet) -> Draft | None:
    """What was posted, judged: wrong, outdated, to be looked at, or published (None)."""
    spec, current = sheet.row.spec, sheet.policy
    form = ToolForm(spec, current.content, request.POST, based_on=current.number)
    draft = Draft(form)
    if not form.is_valid():
        return draft
    base = policies.version(form.cleaned_data["based_on"])
    if base is None:
        draft.refused = Refused("There is no such version of the policy: load the page again.", 422)
        return draft
    made = form.content(base.content)
    if base.number != current.number:
        return _outdated(sheet, base.content, made, form)
    looked_at = form.cleaned_data["seen"] == digest(canonical(made))
    if looked_at and request.POST.get("step") == "publish":
        try:
            acts.publish(request.user, made, form.cleaned_data["reason"], base.number)
        except Refused as error:
            if error.status != 409:
                draft.refused = error
            else:  # somebody was faster by a moment
                fresh = tools.tool_sheet(spec.name) or sheet
                return _outdated(fresh, base.content, made, form)
        else:
            messages.success(request, _("Policy {n} is in force.").format(n=base.number + 1))
            return None
    return _looked(draft, sheet, made)


def _outdated(sheet: tools.ToolSheet, base: Any, mine: Any, form: ToolForm) -> Draft:
    """Another version came in between: both sides, and a draft on top of it that keeps what was typed."""
    merged, differences = merging.merge(base, sheet.policy.content, mine)
    initial = {"based_on": sheet.policy.number, "reason": form.cleaned_data["reason"]}
    again = ToolForm(sheet.row.spec, merged, **initial)
    return _looked(Draft(again, differences=differences), sheet, merged)


def _looked(draft: Draft, sheet: tools.ToolSheet, made: Any) -> Draft:
    """What the draft means, and the mark that it was looked at."""
    draft.changes = policies.changes(sheet.policy.content, made)
    draft.nothing = not draft.changes
    draft.looked = bool(draft.changes)
    try:
        old, new = policies.readable(sheet.policy), policies.readable(sheet.policy, made)
    except policies.BadPolicy as error:
        draft.refused, draft.looked = Refused("{why}.", 422, why=str(error)), False
        return draft
    draft.rehearsal = rehearsals.rehearse(old, new, rehearsals.past_calls(sheet.row.spec.name))
    draft.form.mark(digest(canonical(made)))
    return draft
