"""Answer what an agent asked."""

from typing import Any

from django.contrib.auth.models import User

from runs.actions.acting import Refused, acting, found, need, refusing
from runs.engine import events as e
from runs.engine.canonical import BadJson, canonical, digest, strict_loads, to_json
from runs.models import Question


def answer(question_id: int, person: User, given: Any) -> Question:
    """Give the answer, a JSON value; the model reads it as the result of its call. Raises `Refused`."""
    need(person, "decide")
    question = found(Question.objects.all(), question_id)
    if given in ("", None, {}):
        raise Refused("The answer is empty.", 422)
    with refusing(BadJson, "The answer cannot be stored: "):
        strict_loads(canonical(given))
    with acting(question.run_id, person, "decide", ended=True) as draft:
        question.refresh_from_db()
        if question.status == "answered" and question.person_id == person.pk and question.answer == given:
            return question
        if question.status != "open":
            if question.person is None:
                raise Refused("This question is no longer open: the run went on without an answer.")
            raise Refused("{who} has already answered this question.", who=question.person.get_username())
        shown = to_json({"outcome": "ok", "by": "a person", "answer": given})
        draft.state_fact(e.QuestionAnswered(given, digest(shown)), call=question.ordinal, payload=shown)
    question.refresh_from_db()
    return question
