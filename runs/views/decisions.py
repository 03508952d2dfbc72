"""Decide, answer, attest: the page shows everything first, the post does one action, then goes on to the next item."""

import json
from collections.abc import Callable
from typing import Any

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect
from django.utils.translation import gettext as _

from runs.actions import approvals as acts
from runs.actions import questions
from runs.actions.acting import Refused
from runs.engine.toolspec import InvalidArguments
from runs.forms import deciding as forms
from runs.models import Approval
from runs.queries import approvals as queries
from runs.queries import drafts
from runs.queries import runs as run_queries
from runs.views.access import absent, page
from runs.views.inbox import go_on, with_list


@page()
def approval(request: Any, approval_id: int) -> HttpResponse:
    """What is asked of people."""
    return _approval(request, _sheet(request, approval_id))


def _sheet(request: Any, approval_id: int) -> queries.ApprovalSheet:
    sheet = queries.approval_sheet(approval_id, request.viewer)
    if sheet is None:
        raise absent()
    return sheet


def _approval(
    request: Any, sheet: queries.ApprovalSheet, refused: Refused | None = None, status: int = 0, **typed: Any
) -> HttpResponse:
    context: dict[str, Any] = {"sheet": sheet, "refused": refused, "title": sheet.headline, "typed": typed}
    context |= _blank_forms(sheet) | typed
    edited = typed.get("edit")
    if edited is not None and not edited.errors:
        context["draft"] = drafts.draft_of(sheet.call, edited.arguments())
    invalid = any(form.errors for form in typed.values())
    status = status or (refused.status if refused else 422 if invalid else 200)
    return with_list(request, "inbox/approval.html", context, status)


def _blank_forms(sheet: queries.ApprovalSheet) -> dict[str, Any]:
    bound = {"digest": sheet.approval.digest}
    return {
        "approve": forms.Approve(initial=bound, auto_id="approve_%s"),
        "reject": forms.Reject(initial=bound | {"then": "continue"}, auto_id="reject_%s"),
        "edit": _edit_form(sheet, initial=bound),
    }


def _edit_form(sheet: queries.ApprovalSheet, data: Any = None, **options: Any) -> forms.Edit:
    schema = sheet.spec.schema if sheet.spec else {}
    return forms.Edit(schema, json.loads(sheet.call.arguments), data, auto_id="edit_%s", **options)


@page("decide", "POST")
def approve(request: Any, approval_id: int) -> HttpResponse:
    """Say yes to the bytes that were shown."""
    sheet = _sheet(request, approval_id)
    form = forms.Approve(request.POST, auto_id="approve_%s", confirm=sheet.confirm)

    def do() -> Approval:
        return acts.decide(approval_id, request.user, "approve", form.cleaned_data["digest"], form.cleaned_data["why"])

    return _vote(request, sheet, "approve", form, do, _("Approved. It runs exactly as it was shown."))


@page("decide", "POST")
def reject(request: Any, approval_id: int) -> HttpResponse:
    """Say no, and why."""
    form = forms.Reject(request.POST, auto_id="reject_%s")

    def do() -> Approval:
        data = form.cleaned_data
        return acts.decide(
            approval_id, request.user, "reject", data["digest"], data["why"], stop=data["then"] == "stop"
        )

    return _vote(request, _sheet(request, approval_id), "reject", form, do, _("Rejected. The agent has your reason."))


@page("decide", "POST")
def edit(request: Any, approval_id: int) -> HttpResponse:
    """Change the arguments: a new revision of the same call, judged anew. `step=compare` only shows what changes."""
    sheet = _sheet(request, approval_id)
    is_draft = request.GET.get("step") == "compare"
    form = _edit_form(sheet, request.POST, confirm="" if is_draft else sheet.confirm)
    if is_draft:
        return _compare(request, sheet, form)

    def do() -> Approval:
        data = form.cleaned_data
        return acts.edit(approval_id, request.user, data["digest"], form.arguments(), data["why"])

    return _vote(request, sheet, "edit", form, do, _("Changed. The new version was judged again."))


def _compare(request: Any, sheet: queries.ApprovalSheet, form: forms.Edit) -> HttpResponse:
    """What an edit would change, and whether the tool takes it; nothing is done. A preview is no failure: 200."""
    if form.is_valid() and sheet.spec:
        try:
            sheet.spec.check(form.arguments())
        except InvalidArguments as error:
            form.add_error(None, str(error))
    return _approval(request, sheet, status=200, edit=form)


def _vote(
    request: Any, sheet: queries.ApprovalSheet, name: str, form: Any, do: Callable[[], Approval], done: str
) -> HttpResponse:
    if not form.is_valid():
        return _approval(request, sheet, **{name: form})
    try:
        do()
    except Refused as error:
        if error.status == 404:
            raise
        return _approval(request, _sheet(request, sheet.approval.pk), error, **{name: form})
    messages.success(request, f"{done} {sheet.headline}")
    return go_on(request, sheet.key)


@page()
def question(request: Any, question_id: int) -> HttpResponse:
    """What an agent asks."""
    return _question(request, question_id)


def _question(request: Any, question_id: int, form: Any = None, refused: Refused | None = None) -> HttpResponse:
    sheet = queries.question_sheet(question_id, request.viewer)
    if sheet is None:
        raise absent()
    status = refused.status if refused else 422 if form is not None and form.errors else 200
    context = {"sheet": sheet, "form": form or forms.Answer(sheet.question.schema), "refused": refused}
    return with_list(request, "inbox/question.html", context | {"title": _("An agent asks")}, status)


@page("decide", "POST")
def answer(request: Any, question_id: int) -> HttpResponse:
    """Give the answer."""
    sheet = queries.question_sheet(question_id, request.viewer)
    if sheet is None:
        raise absent()
    form = forms.Answer(sheet.question.schema, request.POST)
    if not form.is_valid():
        return _question(request, question_id, form)
    try:
        questions.answer(question_id, request.user, form.given())
    except Refused as error:
        return _question(request, question_id, form, error)
    messages.success(request, _("Answered. The agent reads it with its next turn."))
    return go_on(request, sheet.key)


@page("see", "GET", "HEAD", "POST")
def attest(request: Any, run_id: int, turn: int, ordinal: int) -> HttpResponse:
    """Say what became of an effect of which nobody has heard."""
    run = run_queries.find_run(run_id)
    sheet = run and queries.attest_sheet(run, turn, ordinal, request.viewer)
    if not sheet:
        raise absent()
    form = forms.Attest(request.POST if request.method == "POST" else None)
    problem: Refused | None = None
    if request.method == "POST" and form.is_valid():
        try:
            data = form.cleaned_data
            acts.attest(run_id, turn, ordinal, request.user, data["verdict"], data["reference"], data["why"])
            messages.success(request, _("Recorded. The run goes on from what you said."))
            return go_on(request, sheet.key)
        except Refused as error:
            if error.status == 403:
                raise
            problem = error
    status = problem.status if problem else 422 if form.errors else 200
    context = {"sheet": sheet, "form": form, "refused": problem, "title": sheet.headline}
    return with_list(request, "inbox/attest.html", context, status)


@page()
def stopped(request: Any, run_id: int) -> HttpResponse:
    """A run that the host stopped, and what a person can do now."""
    run = run_queries.find_run(run_id)
    if run is None:
        raise absent()
    sheet = queries.stop_sheet(run)
    if not sheet.open:
        return redirect("run", run_id)
    context = {"sheet": sheet, "head": run_queries.head(run, request.viewer), "title": _("A stopped run")}
    return with_list(request, "inbox/stop.html", context)
