"""Which runs cannot go on with this code: to be asked before new code is let at a database.

Every finding says what is in the way and what to do about it. Only columns that it needs are read, because the
database may not have been migrated yet.
"""

import json
from collections.abc import Iterator

from runs.catalog import catalog, spec
from runs.engine import events as e
from runs.engine.limits import BadLimits, Limits
from runs.engine.machines import RUN_ENDS
from runs.engine.state import CallState, RunState, UnreadableState, loads
from runs.models import AgentVersion, Event, Run
from runs.providers import UnknownModel, provider_for

OLD_CODE = "let the version that wrote it finish the run, or install code that reads it"


def findings(*, ended: bool = False) -> Iterator[str]:
    """Everything that stands in the way, runs in their order; with `ended` also of runs that only have to be shown."""
    rows = Run.objects.only("state", "agent_version__definition").select_related("agent_version").order_by("pk")
    for run in (rows if ended else rows.exclude(status__in=RUN_ENDS)).iterator():
        for finding in of_run(run):
            yield f"run {run.pk}: {finding}"
    versions = AgentVersion.objects.order_by("agent__slug", "number").values_list("agent__slug", "definition")
    for slug, definition in dict(versions).items():
        for finding in of_definition(definition):
            yield f"agent {slug}, for new runs: {finding}"


def of_run(run: Run) -> Iterator[str]:
    """What keeps this code from going on with one run."""
    yield from _events(run)
    try:
        state = loads(run.state)
    except (UnreadableState, json.JSONDecodeError) as error:
        yield f"{error}; {OLD_CODE}"
        return
    if state.end:
        return
    yield from of_definition(run.agent_version.definition)
    yield from _calls(state)


def _events(run: Run) -> Iterator[str]:
    for seq, kind, body in Event.objects.filter(run=run).order_by("seq").values_list("seq", "kind", "body").iterator():
        try:
            e.load(kind, json.loads(body))
        except ValueError as error:
            yield f"event {seq}: {error}; {OLD_CODE}"
            return  # the first is enough: what comes after it cannot be folded


def of_definition(definition: dict[str, object]) -> Iterator[str]:
    """What an agent version needs and this installation lacks: model, script, tools, limits."""
    model = str(definition.get("model", ""))
    try:
        provider_for(model, catalog().scripts)
    except UnknownModel as error:
        yield f"{error}; install the provider, or the run stops and waits for it"
    api, _, script = model.partition(":")
    if api == "scripted" and script not in catalog().scripts:
        yield f"script {script!r} is not in AGENTOPS_TOOLS; add its package, or the run stops at its next turn"
    tools = definition.get("tools")
    gone = [name for name in (tools if isinstance(tools, list) else []) if spec(name) is None]
    if gone:
        yield f"tools {', '.join(gone)} are not in AGENTOPS_TOOLS; add them, or the agent goes on without"
    limits = definition.get("limits")
    try:
        Limits.load(limits if isinstance(limits, dict) else {})
    except BadLimits as error:
        yield f"{error}; make a new version of the agent"


def _calls(state: RunState) -> Iterator[str]:
    for ordinal, call in sorted(state.calls.items()):
        if call.ended or call.effect == "host":
            continue
        name = f"call {state.turn}.{ordinal} {call.tool} ({call.status})"
        known = spec(call.tool)
        if known is None:
            yield f"{name}: its tool is not in AGENTOPS_TOOLS; {_then(call, 'the tool')}"
        elif known.definition != call.definition:
            yield f"{name}: was proposed for {call.definition}, this code has {known.definition}; {_then(call, 'it')}"


def _then(call: CallState, what: str) -> str:
    if call.status in ("unknown", "executing") or call.maybe_sent:
        return f"wait until it is settled, or bring {what} back as it was: a person must attest it otherwise"
    return f"decide before the upgrade, or bring {what} back: it will be denied, and the agent told to propose it anew"
