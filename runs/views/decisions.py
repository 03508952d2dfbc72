"""Decide, answer, attest: the page shows everything first, the post does one action, then redirects."""

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
from runs.forms import deciding as forms
from runs.models import Approval
from runs.queries import approvals as queries
from runs.queries.runs import find_run
from runs.views.access import absent, page, show


@page()
def approval(request: Any, approval_id: int) -> HttpResponse:
    """What is asked of people."""
    return _approval(request, approval_id)


def _approval(request: Any, approval_id: int, refused: Refused | None = None, **typed: Any) -> HttpResponse:
    sheet = queries.approval_sheet(approval_id, request.viewer)
    if sheet is None:
        raise absent()
    context: dict[str, Any] = {"sheet": sheet, "refused": refused}
    context |= _blank_forms(sheet) | typed
    invalid = any(form.errors for form in typed.values())
    return show(request, "inbox/approval.html", context, refused.status if refused else 422 if invalid else 200)


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
    form = forms.Approve(request.POST, auto_id="approve_%s")

    def do() -> Approval:
        return acts.decide(approval_id, request.user, "approve", form.cleaned_data["digest"], form.cleaned_data["why"])

    return _vote(request, approval_id, "approve", form, do, _("Approved. It runs exactly as it was shown."))


@page("decide", "POST")
def reject(request: Any, approval_id: int) -> HttpResponse:
    """Say no, and why."""
    form = forms.Reject(request.POST, auto_id="reject_%s")

    def do() -> Approval:
        data = form.cleaned_data
        return acts.decide(
            approval_id, request.user, "reject", data["digest"], data["why"], stop=data["then"] == "stop"
        )

    return _vote(request, approval_id, "reject", form, do, _("Rejected. The agent has your reason."))


@page("decide", "POST")
def edit(request: Any, approval_id: int) -> HttpResponse:
    """Change the arguments: a new revision of the same call, judged anew."""
    sheet = queries.approval_sheet(approval_id, request.viewer)
    if sheet is None:
        raise absent()
    form = _edit_form(sheet, request.POST)

    def do() -> Approval:
        data = form.cleaned_data
        return acts.edit(approval_id, request.user, data["digest"], form.arguments(), data["why"])

    return _vote(request, approval_id, "edit", form, do, _("Changed. The new version was judged again."))


def _vote(request: Any, approval_id: int, name: str, form: Any, do: Callable[[], Approval], done: str) -> HttpResponse:
    if not form.is_valid():
        return _approval(request, approval_id, **{name: form})
    try:
        answered = do()
    except Refused as error:
        if error.status == 404:
            raise
        return _approval(request, approval_id, error, **{name: form})
    messages.success(request, done)
    return redirect("approval", answered.pk)


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
    return show(request, "inbox/question.html", context, status)


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
    return redirect("run", sheet.run.pk)


@page("see", "GET", "HEAD", "POST")
def attest(request: Any, run_id: int, turn: int, ordinal: int) -> HttpResponse:
    """Say what became of an effect of which nobody has heard."""
    run = find_run(run_id)
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
            return redirect("run", run_id)
        except Refused as error:
            if error.status == 403:
                raise
            problem = error
    status = problem.status if problem else 422 if form.errors else 200
    return show(request, "inbox/attest.html", {"sheet": sheet, "form": form, "refused": problem}, status)
