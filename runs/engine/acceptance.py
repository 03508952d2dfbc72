"""Acceptance: what turns a claimed finish into `succeeded`. Only evidence counts, never what the model says."""

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from runs.engine.frozen import Frozen

Check = Mapping[str, Any]
Values = Mapping[str, Any]


class Proof(Frozen):
    """One ok outcome of the run, as its `Call` row has it; `seq` orders outcomes and changes."""

    call: str
    tool: str
    seq: int
    evidence: Collection[str] = ()
    met: Collection[str] = ()
    objects: Collection[str] = ()
    changed: Collection[str] = ()


def meets(checks: Iterable[Check], tool: str, args: Values, data: Any, inputs: Values) -> list[str]:
    """Ids of the checks that an ok outcome of `tool` meets."""
    known = {**args, **(data if isinstance(data, Mapping) else {})}
    return [
        check["id"]
        for check in checks
        if check["tool"] == tool
        and (not check.get("field") or check["field"] in known)
        and (not check.get("equals_input") or known.get(check["field"]) == inputs.get(check["equals_input"], ...))
    ]


def missing(checks: Iterable[Check], cited: Iterable[str], proofs: list[Proof]) -> list[str]:
    """What a claimed finish lacks, in words for the model; empty when every check holds.

    A check holds on an outcome that is newer than the last change of any object it speaks of. Cited evidence must
    come from an ok outcome of this run and be as new.
    """
    lacks = [f"check {check['id']}: {_wanted(check)}" for check in checks if not _held(check["id"], proofs)]
    for evidence in dict.fromkeys(cited):
        sources = [p for p in proofs if evidence == p.call or evidence in p.evidence]
        if not sources:
            lacks.append(f"evidence {evidence!r} is not from an ok outcome of this run")
        elif not any(_fresh(p, evidence, proofs) for p in sources):
            lacks.append(f"evidence {evidence!r} is older than the last change of what it shows: read it again")
    return lacks


def _held(check: str, proofs: list[Proof]) -> bool:
    return any(check in p.met and all(_fresh(p, shown, proofs) for shown in (p.call, *p.evidence)) for p in proofs)


def _fresh(proof: Proof, evidence: str, proofs: list[Proof]) -> bool:
    later = {key for other in proofs if other.seq > proof.seq for key in other.changed}
    if evidence == proof.call:
        return later.isdisjoint(proof.objects)
    return not any(evidence == key or evidence.startswith(f"{key}:") for key in later)


def _wanted(check: Check) -> str:
    wanted = f"an ok outcome of {check['tool']}"
    if check.get("equals_input"):
        wanted += f" whose {check['field']} is the input {check['equals_input']}"
    return wanted + ", newer than the last change of what it shows"
