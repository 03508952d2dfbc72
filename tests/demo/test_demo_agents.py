"""Each agent's script with its real tools against the real service, judged by the engine's own acceptance."""

import json

import pytest

from demo import AGENTS, SCRIPTS, TOOLS
from runs.engine import acceptance
from runs.engine.messages import opening
from runs.tools.base import Kind

SPECS = {tool.name: tool.spec for tool in TOOLS}


def run(agent, use, facts, **inputs):
    """A host without people: every call is allowed. Returns the last call and what its end lacks."""
    values = {given["name"]: inputs.get(given["name"], given["example"]) for given in agent["inputs"]}
    shown = {name: {"value": value, "trust": "trusted"} for name, value in values.items()}
    first = opening(agent["example_goal"], shown, {k: {"value": v, "source": "starter"} for k, v in facts.items()})
    messages, proofs = [{"role": "user", "content": first}], []
    for turn in range(1, 10):
        said = [b | {"id": f"t{turn}"} if b["type"] == "tool_use" else b for b in SCRIPTS[agent["slug"]](messages)]
        (called,) = [b for b in said if b["type"] == "tool_use"]
        name, args = called["name"], called["input"]
        if name in ("finish", "give_up"):
            return name, args, acceptance.missing(agent["acceptance"], args.get("evidence", []), proofs)
        assert name in agent["tools"]
        seen = use(name, facts=facts, **args)
        ident = f"call:{turn}.1"
        told = {"outcome": seen.kind, "status": seen.status, "evidence": [ident, *seen.evidence], "data": seen.data}
        if seen.kind is Kind.OK:
            met = tuple(acceptance.meets(agent["acceptance"], name, args, seen.data, values))
            objects = SPECS[name].object_keys(args)
            evidence, changed = seen.evidence, seen.changed or ()
            proof = acceptance.Proof(
                call=ident, tool=name, seq=turn, evidence=evidence, met=met, objects=objects, changed=changed
            )
            proofs.append(proof)
        block = {"type": "tool_result", "tool_use_id": called["id"], "content": json.dumps(told), "is_error": False}
        messages += [{"role": "assistant", "content": said}, {"role": "user", "content": [block]}]
    raise AssertionError("the run does not end")


@pytest.mark.parametrize("agent", AGENTS, ids=lambda agent: agent["slug"])
def test_every_agent_finishes_on_its_example_and_is_accepted(service, use, agent):
    facts = {name: about["example"] for name, about in agent["facts"].items()}
    end, args, lacks = run(agent, use, facts)
    assert (end, lacks) == ("finish", []), args


@pytest.mark.parametrize("order_id", ["O-1042", "O-1043", "O-1044", "O-1045", "O-1046", "O-2001", "O-9"])
def test_an_investigation_of_any_order_ends_accepted_or_gives_up(service, use, order_id):
    agent = next(a for a in AGENTS if a["slug"] == "order-investigation")
    end, args, lacks = run(agent, use, {"customer": "C-7"}, order_id=order_id)
    assert (end, lacks) == ("finish", []) or (end == "give_up" and args["reason"])
    assert service.effects() == (order_id in ("O-1042", "O-1043"))


def test_a_refund_above_the_rest_is_given_up_with_the_rest(service, use):
    agent = next(a for a in AGENTS if a["slug"] == "refund")
    end, args, _ = run(agent, use, {"customer": "C-7"}, amount="300.00")
    assert end == "give_up" and "only 249.00 EUR" in args["reason"]


def test_another_customers_order_is_given_up(service, use):
    agent = next(a for a in AGENTS if a["slug"] == "refund")
    assert run(agent, use, {"customer": "C-8"})[0] == "give_up"
    assert service.effects() == 0
