"""The policy: its rules in words, every version with what it changed, and why a call gets the verdict that it gets."""

import json
from typing import Any

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect
from django.utils.translation import gettext as _

from runs.actions import policies as acts
from runs.actions.acting import Refused, need
from runs.catalog import catalog
from runs.forms.explaining import PastCall, Supposed
from runs.forms.tools import BringBack
from runs.models import Policy
from runs.queries import explain, policies, rehearsal
from runs.views.access import absent, number, page, show


@page("see", "GET", "HEAD", "POST")
def policy(request: Any) -> HttpResponse:
    """The version in force, or another by its number; on POST an admin publishes an older one again."""
    post = request.method == "POST"
    if post:
        need(request.user, "set_policy")
    current = policies.current()
    asked = number(request, "version")
    wanted = policies.version(asked) if asked is not None else current
    if wanted is None:
        raise absent()
    form = BringBack(request.POST if post else None, initial={"version": wanted.number, "based_on": current.number})
    refused: Refused | None = None
    if post and form.is_valid():
        given = form.cleaned_data
        try:
            made = acts.bring_back(request.user, given["version"], given["why"], given["based_on"])
            told = _("Policy {n} is in force; it says what policy {old} said.")
            messages.success(request, told.format(n=made.number, old=given["version"]))
            return redirect("policies")
        except Refused as error:
            refused = error
    context = _version(wanted, current) | _explained(request, wanted)
    context |= {
        "form": form, "refused": refused, "may_set": request.viewer.may("set_policy"),
        "history": policies.history(number(request, "before")),
    }  # fmt: skip
    return show(request, "tools/policies.html", context, refused.status if refused else 422 if form.errors else 200)


def _version(wanted: Policy, current: Policy) -> dict[str, Any]:
    """One version in words; an old one with what bringing it back would change and would have changed."""
    content, is_old = wanted.content, wanted.number != current.number
    context: dict[str, Any] = {
        "policy": wanted, "current": current, "is_old": is_old, "days": rehearsal.DAYS, "off": content.get("off", []),
        "tools": len(catalog().tools), "defaults": _defaults(content),
    }  # fmt: skip
    try:
        parsed, calls = policies.readable(wanted), rehearsal.past_calls()
        hits = rehearsal.matched(parsed, calls)
        rules = [(policies.rule_words(rule), hits.get(str(rule["id"]), 0)) for rule in content.get("rules", [])]
        context |= {"rules": rules, "judged": len(calls), "most": len(calls) == rehearsal.MOST}
        if is_old:
            context["changes"] = policies.changes(current.content, content)
            context["rehearsal"] = rehearsal.rehearse(policies.readable(current), parsed, calls)
    except policies.BadPolicy as error:
        context |= {"broken": str(error), "rules": []}
    return context


def _defaults(content: Any) -> list[tuple[Any, list[str]]]:
    """Each verdict with the tools that get it where no rule matches."""
    by_verdict: dict[str, list[str]] = {name: [] for name in policies.VERDICT}
    for tool in sorted({*catalog().tools, *content.get("defaults", {})}):
        by_verdict[content.get("defaults", {}).get(tool, "ask")].append(tool)
    return [(policies.VERDICT[name], tools) for name, tools in by_verdict.items() if tools]


def _explained(request: Any, wanted: Policy) -> dict[str, Any]:
    """The forms of the explanation, and what it says about the call in the address."""
    asked = request.GET
    past = PastCall(asked if asked.get("call") else None)
    supposed = Supposed(asked if asked.get("tool") else None, initial={"arguments": ""})
    context: dict[str, Any] = {"past": past, "supposed": supposed}
    try:
        parsed = policies.readable(wanted)
    except policies.BadPolicy:
        return context
    if past.is_bound and past.is_valid() and (text := past.cleaned_data["call"]):
        call = explain.past_call(text)
        return context | ({"explained": explain.explain_past(parsed, call)} if call else {"no_call": text})
    if supposed.is_bound and supposed.is_valid():
        given = supposed.cleaned_data
        starter = given["starter"].pk if given["starter"] else 0
        options = {"unattended": given["unattended"], "agent": given["agent"]}
        arguments = json.dumps(given["arguments"] or {}, ensure_ascii=False)
        context["explained"] = explain.explain(parsed, given["tool"], arguments, starter, **options)
    return context
