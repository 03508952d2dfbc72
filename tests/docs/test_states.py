"""The state tables, what the database refuses and the pages say the same. The tables are the source."""

import re
from collections.abc import Iterable

import pytest
from django.db import connection

from runs.engine import machines
from runs.engine.events import KINDS
from runs.management import pages
from tests.stack import ROOT

CONSTRAINTS: dict[str, tuple[str, Iterable[str]]] = {
    "run_status": ("runs_run", machines.RUN),
    "run_ended_is_at_rest": ("runs_run", machines.RUN_ENDS),
    "call_status": ("runs_call", machines.CALL),
    "call_effect": ("runs_call", machines.EFFECTS),
    "call_outcome": ("runs_call", ["", *machines.OUTCOMES]),
    "approval_status": ("runs_approval", machines.APPROVAL),
    "question_status": ("runs_question", machines.QUESTION),
}
TRIGGERS: dict[str, Iterable[str]] = {
    "run_only_forward": machines.RUN_ENDS,
    "call_closed": [status for status, ways_out in machines.CALL.items() if not ways_out],
}


def stored(query: str, *params: str) -> str:
    with connection.cursor() as cursor:
        cursor.execute(query, params)
        return str(cursor.fetchone()[0])


def constraint(table: str, name: str) -> str:
    """Definition of a check constraint as the database has it."""
    if connection.vendor == "postgresql":
        return stored("SELECT pg_get_constraintdef(oid) FROM pg_constraint WHERE conname = %s", name)
    made = stored("SELECT sql FROM sqlite_master WHERE type = 'table' AND name = %s", table)
    return next(part for part in made.split("CONSTRAINT ") if part.startswith(f'"{name}"'))


def trigger(name: str) -> str:
    if connection.vendor == "postgresql":
        text = stored("SELECT pg_get_triggerdef(oid) FROM pg_trigger WHERE tgname = %s", name)
        return text.partition("EXECUTE FUNCTION")[0]
    return stored("SELECT sql FROM sqlite_master WHERE type = 'trigger' AND name = %s", name).partition("BEGIN SELECT")[
        0
    ]


def quoted(text: str) -> set[str]:
    return set(re.findall(r"'([a-z_]*)'", text))


@pytest.mark.django_db
@pytest.mark.parametrize("name", CONSTRAINTS)
def test_the_database_stores_the_statuses_of_the_table_and_no_others(name: str) -> None:
    table, allowed = CONSTRAINTS[name]
    assert quoted(constraint(table, name)) == set(allowed)


@pytest.mark.django_db
@pytest.mark.parametrize("name", TRIGGERS)
def test_the_database_keeps_ends_that_the_table_has_no_way_out_of(name: str) -> None:
    assert quoted(trigger(name)) == set(TRIGGERS[name])


@pytest.mark.parametrize("name", pages.PAGES)
def test_the_page_is_what_the_tables_say_now(name: str) -> None:
    assert (ROOT / "docs" / name).read_text() == pages.PAGES[name](), "run: python manage.py states"


def test_every_state_and_every_event_has_its_line() -> None:
    assert list(pages.RUN_WORDS) == list(machines.RUN)
    assert pages.CALL_WORDS.keys() == machines.CALL.keys()
    assert pages.APPROVAL_WORDS.keys() == machines.APPROVAL.keys()
    assert pages.QUESTION_WORDS.keys() == machines.QUESTION.keys()
    assert pages.EVENT_WORDS.keys() == KINDS.keys()


@pytest.mark.parametrize("table", [machines.CALL, machines.APPROVAL, machines.QUESTION])
def test_a_table_leads_to_no_state_that_it_does_not_have(table: dict[str, tuple[str, ...]]) -> None:
    assert {target for targets in table.values() for target in targets} <= table.keys()


def test_every_stop_is_one_that_a_run_may_have_and_every_such_stop_has_a_reason() -> None:
    assert {status for status, _ in machines.STOP_REASONS.values()} == set(machines.RUN_STOPS)
