"""Forms of answers are taken by strict providers, and an answer in them is read."""

import asyncio
import json

import pytest

from dgm.messages import Message, Reply, Request, Role, Stop
from dgm.meta import drafting, implementing
from dgm.meta.answers import ask_until_readable
from dgm.meta.drafting import read_changes
from dgm.meta.forms import TEXT, make_form
from dgm.meta.generality import TaskWords
from dgm.meta.implementing import read_issue
from dgm.meta.vetting import novelty

FORMS = (drafting.FORM, implementing.FORM, novelty.FORM)


def objects_in(schema):
    if schema["type"] == "object":
        yield schema
    for inner in (*schema.get("properties", {}).values(), *filter(None, [schema.get("items")])):
        yield from objects_in(inner)


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.name)
def test_each_object_of_a_form_is_closed_and_requires_all_of_its_keys(form):
    assert [*objects_in(form.schema)]
    for one in objects_in(form.schema):
        assert one["additionalProperties"] is False
        assert one["required"] == list(one["properties"])


def test_forms_have_the_keys_that_the_readers_want():
    assert tuple(implementing.FORM.schema["required"]) == implementing.KEYS
    assert tuple(drafting.FORM.schema["required"]) == (*drafting.KEYS, *drafting.OPTIONAL)


def test_answers_in_these_forms_are_read():
    issue = {"log_summary": "a", "problem": "b", "proposal": "c", "general": True}
    assert read_issue(json.dumps(issue), TaskWords((), (), ())).proposal == "c"
    assert novelty.read_judgement('{"copy": false, "why": "other files"}') == (False, "other files")
    said = {"thought": "t", "rationale": "r", "edits": [], "removed": []}
    changes = read_changes(json.dumps({**said, "files": [{"path": "a.py", "text": "x = 1\n"}]}))
    assert changes.files == {"a.py": "x = 1\n"}
    assert not read_changes(json.dumps({**said, "files": []}))


class Cut:
    """Answers whose first part is cut off."""

    def __init__(self):
        self.asked = []

    async def ask(self, request, _role):
        self.asked.append(request)
        return Reply('{"a": "b', stop=Stop.LENGTH) if len(self.asked) == 1 else Reply('c"}')


def test_a_continuation_is_asked_without_the_form():
    bench, form = Cut(), make_form("x", {"a": TEXT})
    request = Request((Message(Role.USER, "Well?"),), form=form)
    asyncio.run(ask_until_readable(bench, request, lambda text: text, 0, "diagnose"))
    assert [one.form for one in bench.asked] == [form, None]
