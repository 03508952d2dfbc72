"""Keep a filter of the inbox under a name, or let it go. A view is its owner's alone; no run is touched by it."""

from django.contrib.auth.models import User

from runs.actions.acting import Refused, found, need, said
from runs.models import SavedView

MOST = 20


def save_view(person: User, name: str, query: str) -> SavedView:
    """Keep `query`, the query string of a filter, under `name`; the same name again is replaced. Raises `Refused`."""
    need(person, "see")
    name = said(name, 60, empty="Give the view a name.")
    query = said(query, 400, empty="There is no filter to keep: set one first.")
    mine = SavedView.objects.filter(person=person)
    if mine.exclude(name=name).count() >= MOST:
        raise Refused("You have {n} views already: delete one first.", 422, n=MOST)
    view, _ = SavedView.objects.update_or_create(person=person, name=name, defaults={"query": query})
    return view


def drop_view(view_id: int, person: User) -> None:
    """Delete one of the person's own views. Raises `Refused`: 404 for that of somebody else."""
    need(person, "see")
    found(SavedView.objects.filter(person=person), view_id).delete()
