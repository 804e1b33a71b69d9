"""Sessions, actions and model calls as spans."""

import pytest

from dgm.archive.events import ActionLost, RunStarted, RunStopped
from dgm.domain import AgentId, Budget, Evaluate, Usage
from dgm.sinks.spans import SpanFold, span_id, trace_id
from tests.support.runs.growing import TASKS, Growing


@pytest.fixture
def growing(tmp_path):
    growing = Growing(tmp_path / "run")
    yield growing
    growing.run.close()


def spans_of(growing: Growing):
    fold = SpanFold(growing.run)
    return [span for recorded in growing.run.store.read() for span in fold.fold(recorded)]


def test_a_call_is_below_its_action_and_the_action_below_its_session(growing) -> None:
    action = growing.begin(Evaluate(AgentId(0), TASKS[0]))
    growing.record_call(action, 1, "openai/x", usage=Usage(1, 100, 10, 0.5), seconds=2.0)
    growing.run.append(ActionLost(action, "the engine failed"))
    growing.run.append(RunStopped("stopped"))
    call, evaluation, session = spans_of(growing)
    assert (call.parent, evaluation.parent, session.parent) == (evaluation.id, session.id, None)
    assert (call.name, evaluation.name) == ("chat x", "invoke_agent agent 0")
    assert call.ended - call.began == pytest.approx(2.0)
    assert (call.attributes["gen_ai.usage.input_tokens"], call.attributes["dgm.usd"]) == (100, 0.5)
    assert (call.error, evaluation.error) == ("", "the engine failed")


def test_ids_are_a_function_of_the_log(growing) -> None:
    growing.graded(0, 0, good=True)
    before = spans_of(growing)
    growing.graded(0, 1, good=True)
    growing.run.append(RunStopped("stopped"))
    spans = spans_of(growing)
    assert spans[: len(before)] == before
    assert len({span_id(span.id) for span in spans}) == len(spans) == 3
    assert len({trace_id(span.id) for span in spans}) == 1


def test_a_session_that_was_interrupted_ends_with_its_last_event(growing) -> None:
    last = growing.run.store.read()
    last_at = [recorded.at for recorded in last][-1]
    growing.run.append(RunStarted(Budget(), TASKS, resumed=True))
    growing.run.append(RunStopped("stopped"))
    interrupted, stopped = spans_of(growing)
    assert (interrupted.ended, interrupted.attributes["dgm.end"]) == (last_at, "interrupted")
    assert trace_id(interrupted.id) != trace_id(stopped.id)
