"""Laws of what passes to a provider, over whatever a stranger may send."""

import contextlib
import copy
import json
from functools import partial

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dgm.gateway import allowed
from dgm.gateway.allowed import BadRequest
from dgm.gateway.translation import parse_document
from dgm.messages import WireProtocol
from tests.property.test_wires import JSON, WELL_FORMED, nearly

pytestmark = pytest.mark.slow

REQUESTS = {
    path: {key: value for key, value in body.items() if key != "previous_response_id"}
    for path, body in WELL_FORMED.items()
}
"""The gateway puts an earlier answer in place of its id before it checks a request."""

CHECKS = {
    "/chat/completions": partial(allowed.check, WireProtocol.CHAT),
    "/responses": partial(allowed.check, WireProtocol.RESPONSES),
    "/messages": partial(allowed.check, WireProtocol.MESSAGES),
}
KEPT = ("input", "parameters", "input_schema", "arguments")
"""Below these stands what the agent's own tools take."""
FOREIGN = st.sampled_from(
    (
        ("url", "https://a.example"),
        ("file_url", "https://a.example"),
        ("imageUrl", "http://a.example"),
        ("file-uri", "gs://a"),
        ("image_url", {"url": "file:///etc/passwd"}),
        ("file_id", "file-1"),
        ("file_ids", ["file-1"]),
        ("container", "c"),
        ("container", {"id": "c"}),
        ("vector_store_ids", ["v"]),
        ("source", {"type": "url", "url": "https://a.example"}),
        ("source", {"type": "file", "file_id": "f"}),
        ("environment", {"type": "container_auto"}),
        ("caller", {"type": "program"}),
        ("skills", [{"skill_id": "s"}]),
    )
)


def places(value, below=False):
    """Every object within a list of messages or items, but for inputs and schemas."""
    if isinstance(value, dict):
        if below:
            yield value
        for key, one in value.items():
            if key not in KEPT:
                yield from places(one, True)
    elif isinstance(value, list):
        for one in value:
            yield from places(one, True)


def told(path, written):
    """The words of a refusal, none where the request passes; anything else is raised."""
    try:
        CHECKS[path](parse_document(written))
    except BadRequest as refusal:
        return str(refusal)
    return ""


@pytest.mark.slow
@pytest.mark.parametrize("path", CHECKS)
@settings(max_examples=80, deadline=None)
@given(data=st.data())
def test_whatever_arrives_passes_or_is_refused_in_one_line(path, data):
    written = (nearly(REQUESTS[path]) | JSON).map(lambda value: json.dumps(value).encode())
    assert told(path, data.draw(written | st.binary())).isprintable()


@pytest.mark.parametrize("path", CHECKS)
def test_well_formed_request_passes_and_is_not_changed(path):
    body = copy.deepcopy(REQUESTS[path])
    CHECKS[path](body)
    assert body == REQUESTS[path]


@pytest.mark.parametrize("path", CHECKS)
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_address_or_stored_data_is_refused_or_left_out_wherever_it_hides(path, data):
    body = copy.deepcopy(REQUESTS[path])
    turns = "input" if path == "/responses" else "messages"
    place = data.draw(st.sampled_from(list(places(body[turns]))))
    key, value = data.draw(FOREIGN)
    for name in data.draw(st.lists(st.sampled_from(("more", "extra", "deep", "x_y")), max_size=4)):
        place = place.setdefault(name, {})
    place[key] = value
    with contextlib.suppress(BadRequest):
        CHECKS[path](body)
        assert body == REQUESTS[path]


@pytest.mark.parametrize("path", CHECKS)
@pytest.mark.parametrize("key", KEPT)
def test_input_of_a_tool_may_hold_anything(path, key):
    value = {"url": "https://a.example", "file_id": "f", "source": {"type": "url"}, "container": "c"}
    turn = {"role": "assistant", "content": "", "more": {key: value}}
    if path != "/messages":
        turns = "input" if path == "/responses" else "messages"
        CHECKS[path]({turns: [turn]})
