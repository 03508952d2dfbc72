"""How a person acts on a run: right, row lock, integrity, draft, append. Everything in `actions` goes through here."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Model, QuerySet
from django.utils.translation import gettext

from runs import rights
from runs.audit import safe_mode
from runs.engine import events as e
from runs.journal.append import Draft, Picture, Stale, append
from runs.journal.faultpoint import faultpoint
from runs.journal.integrity import Tampered, check_head, picture_of, stop_run
from runs.journal.lease import now
from runs.journal.rows import RowMoved
from runs.models import Run

M = TypeVar("M", bound=Model)
UNSOUND = "The stored data of this run does not match its record. An admin must look and sign off first."


class Refused(Exception):
    """An act that is not done. `status` is the HTTP status that fits; the message says what to do.

    `message` is English, with `places` to fill in, and is told in the language of whoever acts.
    """

    def __init__(self, message: str, status: int = 409, **places: object) -> None:
        """409 conflict, 410 expired, 412 changed, 403 no right, 404 absent, 422 invalid, 503 safe mode."""
        super().__init__(gettext(message).format(**places) if places else gettext(message))
        self.status = status


class Act(Draft):
    """A draft that knows whose act it is."""

    def __init__(self, picture: Picture, now: int, person: User) -> None:
        """Begin an act of `person` on a current picture at `now`."""
        super().__init__(picture, now)
        self.person = person

    def state_fact(self, fact: e.Fact, **header: Any) -> None:
        """Add a fact that the person states; what `add` takes in is the host's."""
        self.add(fact, actor="person", person=self.person.pk, **header)


def said(text: str, most: int = 4000, *, empty: str = "") -> str:
    """What a person typed, trimmed. Raises `Refused` instead of cutting: nothing that was typed is lost unseen.

    `empty` is what to say to somebody who typed nothing where words are needed.
    """
    text = text.strip()
    if empty and not text:
        raise Refused(empty, 422)
    if len(text) > most:
        raise Refused("That text has {n} characters; at most {most} are kept. Shorten it.", 422, n=len(text), most=most)
    if "\0" in text:
        raise Refused("That text holds the character NUL, which cannot be stored. Take it out.", 422)
    return text


def need(person: User, act: str) -> None:
    """Raise `Refused` unless the person may do `act`: 404 for a person who may not even see, else 403."""
    groups = rights.groups_of(person)  # read once for both, and anew for each act
    if groups.isdisjoint(rights.ACTS["see"]):
        raise Refused("There is nothing here.", 404)
    if groups.isdisjoint(rights.ACTS[act]):
        named = gettext(" or ").join(gettext(name) for name in sorted(rights.ACTS[act]))
        raise Refused("This needs the group {groups}; an admin can add you.", 403, groups=named)


def not_in_safe_mode() -> None:
    """Raise `Refused` while the database is older than its record outside (503: an admin ends it)."""
    if safe_mode.in_force():
        raise Refused("Safe mode: {why}", 503, why=gettext(safe_mode.WHAT))


def found(rows: QuerySet[M], pk: int) -> M:
    """The row with this key. Raises `Refused`."""
    row = rows.filter(pk=pk).first()
    if row is None:
        raise Refused("There is nothing here.", 404)
    return row


@contextmanager
def refusing(kind: type[ValueError], says: str = "") -> Iterator[None]:
    """Turn what the engine finds wrong with a person's words into a refusal."""
    try:
        yield
    except kind as error:
        raise Refused(f"{says}{error}.", 422) from error


@contextmanager
def acting(run_id: int, person: User, act: str, *, ended: bool = False, tampered: bool = False) -> Iterator[Act]:
    """Lock the run, check it, and append what the block drafts, in one transaction.

    The row lock makes the picture current, so a person's append is never stale. A run that has ended takes no act but
    those with `ended`; one whose stored bytes fail their check none but those with `tampered` (invariant 17), and the
    failure is recorded.
    """
    need(person, act)
    try:
        with transaction.atomic():
            run = found(Run.objects.select_for_update(of=("self",)).select_related("agent_version__agent"), run_id)
            not_in_safe_mode()
            if not tampered:
                check_head(run)
            draft = Act(picture_of(run) if tampered else Picture.of(run), now(), person)
            if draft.state.tampered and not tampered:
                raise Refused(UNSOUND)
            if draft.state.end and not ended:
                raise Refused("The run has already ended.")
            yield draft
            if draft.entries:
                append(draft)
        faultpoint("after_decision")
    except Stale as error:
        raise Refused("The policy was changed in this very moment. Nothing was done: try again.") from error
    except (Tampered, RowMoved) as error:
        with transaction.atomic():
            stop_run(Run.objects.select_for_update().get(pk=run_id), "integrity", str(error))
        raise Refused("Nothing was done: {why}. An admin must look at the run first.", why=error) from error
