"""Answer what an agent asked."""

from typing import Any

from django.contrib.auth.models import User

from runs.actions.acting import Refused, acting, need
from runs.engine import events as e
from runs.engine.canonical import BadJson, canonical, digest, strict_loads, to_json
from runs.models import Question


def answer(question_id: int, person: User, given: Any) -> Question:
    """Give the answer, a JSON value; the model reads it as the result of its call. Raises `Refused`."""
    need(person, "decide")
    question = Question.objects.filter(pk=question_id).first()
    if question is None:
        raise Refused("There is nothing here.", 404)
    if given in ("", None, {}):
        raise Refused("The answer is empty.", 422)
    try:
        strict_loads(canonical(given))
    except BadJson as error:
        raise Refused(f"The answer cannot be stored: {error}.", 422) from error
    with acting(question.run_id, person, "decide", ended=True) as draft:
        question.refresh_from_db()
        if question.status == "answered" and question.person_id == person.pk and question.answer == given:
            return question
        if question.status != "open":
            who = question.person.get_username() if question.person else "the end of the run"
            raise Refused(f"This question is no longer open: {question.status} by {who}.")
        shown = to_json({"outcome": "ok", "by": "a person", "answer": given})
        fact = e.QuestionAnswered(given, digest(shown))
        draft.add(fact, call=question.ordinal, actor="person", person=person.pk, payload=shown)
    question.refresh_from_db()
    return question
