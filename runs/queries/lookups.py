"""Conditions that lists share: a call of certain tools, an object by its key, a list of people that names somebody."""

from typing import Any

from django.db.models import BooleanField, Exists, Func, OuterRef, Q, QuerySet

from runs.catalog import catalog, spec
from runs.models import Call, CallObject, Policy
from runs.queries import words


class Names(Func):
    """Whether a JSON list of numbers holds a number: `Names("exclude", Value(7))`; SQLite has no `contains` for it."""

    arity = 2
    output_field = BooleanField()

    def as_sqlite(self, compiler: Any, connection: Any, **options: Any) -> Any:
        """By unrolling the list."""
        template = "EXISTS (SELECT 1 FROM json_each(%(expressions)s))"
        return self.as_sql(compiler, connection, template=template, arg_joiner=") WHERE value = (", **options)

    def as_postgresql(self, compiler: Any, connection: Any, **options: Any) -> Any:
        """By containment."""
        return self.as_sql(
            compiler, connection, template="(%(expressions)s)::int))", arg_joiner=" @> to_jsonb((", **options
        )


def with_run(rows: QuerySet[Any]) -> QuerySet[Any]:
    """Rows with all that a list names of their run."""
    return rows.select_related("run__agent_version__agent", "run__starter")


def policy_content() -> dict[str, Any]:
    """The content of the current policy."""
    return Policy.objects.filter(current=True).values_list("content", flat=True).first() or {}


def tools_of(tool: str, risk: str) -> Q:
    """Calls of a tool, of tools of a risk, or both; an empty condition where nothing is asked.

    Risk is the policy's word of now, so it is no column; a tool that nobody brings is high.
    """
    wanted = Q(tool=tool) if tool else Q()
    if not risk:
        return wanted
    policy = policy_content()
    risks = {name: words.risk_of(policy, name, spec(name)) for name in {*catalog().tools, *policy.get("risk", {})}}
    if risk == "high":
        return wanted & ~Q(tool__in=[name for name, level in risks.items() if level != "high"])
    return wanted & Q(tool__in=[name for name, level in risks.items() if level == risk])


def its_call(condition: Q) -> Exists:
    """Rows whose call, by (run, turn, ordinal), meets a condition."""
    place = {name: OuterRef(name) for name in ("run_id", "turn", "ordinal")}
    return Exists(Call.objects.filter(condition, **place))


def narrowed(rows: QuerySet[Any], agent: str, text: str, by: str = "") -> QuerySet[Any]:
    """Rows of an agent, and of a run (R-12), a person or an object (O-1042) that somebody looks for.

    `by` says what a row is: a call or something about one, something of a run, or a run itself where it is empty.
    """
    run = "run__" if by else ""
    if agent:
        rows = rows.filter(**{f"{run}agent_version__agent__slug": agent})
    if not text:
        return rows
    found = Q(**{f"{run}starter__username__iexact": text})
    number = text.upper().removeprefix("R-")
    if number.isascii() and number.isdigit() and len(number) < 19:
        found |= Q(**{"run_id" if by else "pk": int(number)})
    place = {"run_id": OuterRef("run_id" if by else "pk")}
    if by == "call":
        place |= {name: OuterRef(name) for name in ("turn", "ordinal")}
    return rows.filter(found | Exists(CallObject.objects.filter(key__in=keys_for(text), **place)))


def keys_for(text: str) -> list[str]:
    """The object keys that somebody may mean by O-1042: with each form of object that a tool here names."""
    forms = {template.partition("{")[0] for tool in catalog().tools.values() for template in tool.spec.objects}
    return [text, *sorted(form + text for form in forms if form.endswith(":"))]
