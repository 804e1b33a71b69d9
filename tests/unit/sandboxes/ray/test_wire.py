"""What crosses between head and nodes arrives as it was, and what is none of it is the infrastructure's failure."""

import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dgm.domain import Entry
from dgm.errors import AgentFault, BudgetExhausted, Infrastructure, ProviderWaits, UserError
from dgm.protocols import Completed
from dgm.sandboxes.ray import wire
from dgm.sandboxes.ray.image_plans import ImageDigests, ImagePlan
from dgm.sandboxes.ray.wire import Command, DoorKey, HeadSession, HostedSpec, NodeFacts, NodeStock

VALUES = [
    Completed(137, b"\xff\x00", truncated=True, out_of_memory=True, seconds=1.5, processor_s=None),
    Completed(124, b"", timed_out=True, out_of_processor=True, processor_s=0.25),
    Command(("sh", "-c", "é\n"), 2.5, "/work", {"A": "=b\n"}, b"\x00in", 10, 3.0),
    HostedSpec(
        "python", {"dgm.run": "r"}, (("/a", "/b", "d"),), ("/s/x.sock", "/run/x.sock"), {}, 1, 2, 3, 4, 5.5
    ),
    HostedSpec("python", {}, (), None, {"/testbed": "/x"}, 0.5, 2, 3, 4, 5.5),
    HeadSession("s", 3, 30.0, 2**40, "auto", "hub.example:5000/team", 10**12),
    NodeStock(("dgm/task:1", "x"), 2**40),
    ImagePlan("t", "hold", ("a", "b"), built=True, network=True, folder="/app"),
    ImageDigests({"a": "sha256:0"}),
    DoorKey("::1", 1, b"\x00" * 32, b"\xff" * 32, ""),
    NodeFacts("b", "0.1", "docker", "", 7, 2, 10, 20),
    "text",
    12,
]


@pytest.mark.parametrize("value", VALUES, ids=lambda value: type(value).__name__)
def test_a_value_arrives_as_it_was(value):
    assert wire.decode(pickle.loads(pickle.dumps(wire.encode(value))), type(value)) == value


@pytest.mark.parametrize("value", VALUES, ids=lambda value: type(value).__name__)
def test_only_plain_values_cross(value):
    def kinds(thing):
        if isinstance(thing, dict):
            return {type(thing)}.union(*map(kinds, [*thing, *thing.values()]))
        if isinstance(thing, list | tuple):
            return {type(thing)}.union(*map(kinds, thing))
        return {type(thing)}

    assert kinds(wire.encode(value)) <= {dict, list, tuple, str, bytes, int, float, bool, type(None)}


@given(
    st.dictionaries(
        st.binary(min_size=1, max_size=20).filter(lambda path: b"\0" not in path),
        st.builds(Entry, st.binary(max_size=50), st.sampled_from([0o100644, 0o100755, 0o120000])),
        max_size=5,
    )
)
def test_files_arrive_whatever_their_names_are(found):
    files = {path.decode("utf-8", "surrogateescape"): entry for path, entry in found.items()}
    assert wire.decode_files(pickle.loads(pickle.dumps(wire.encode_files(files)))) == files


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (AgentFault("size", "too large: 1", b"\xffso far"), AgentFault),
        (UserError("no such recipe"), UserError),
        (Infrastructure("the engine is gone"), Infrastructure),
        (ProviderWaits("wait", 5.0), Infrastructure),
        (BudgetExhausted("spent"), Infrastructure),
    ],
)
def test_an_error_is_raised_at_the_other_end(error, kind):
    record = pickle.loads(pickle.dumps(wire.encode_error(error)))
    with pytest.raises(kind) as raised:
        wire.decode(record, Completed)
    assert str(raised.value) == str(error)
    if isinstance(error, AgentFault):
        assert (raised.value.stage, raised.value.output) == (error.stage, error.output)


@pytest.mark.parametrize(
    "record",
    [
        None,
        b"",
        {},
        wire.encode("text") | {"version": 2},
        wire.encode("text"),
        wire.encode(Completed(0, b"")) | {"body": {"exit_code": "no number", "output": b""}},
        wire.encode(Completed(0, b"")) | {"body": {"output": b""}},
        {"version": 1, "kind": "agent fault", "body": ["size"]},
        {"version": 1, "kind": ["x"], "body": 0},
    ],
)
def test_what_is_no_such_value_is_a_failure_of_the_infrastructure(record):
    with pytest.raises(Infrastructure):
        wire.decode(record, Completed)
    with pytest.raises(Infrastructure):
        wire.decode_files(record)


def test_a_method_of_a_node_answers_with_its_errors():
    class Thing:
        @wire.answers
        async def fail(self):
            raise AgentFault("size", "no")

    import asyncio

    with pytest.raises(AgentFault, match="no"):
        wire.decode(asyncio.run(Thing().fail()), str)
