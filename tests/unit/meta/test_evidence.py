"""What an agent sees of its own work."""

from dgm.archive.conversations import collect_threads, thread_of
from dgm.domain import Evaluation, Tally, TaskId, Verdict
from dgm.messages import Message, Reply, Request, Role, Tool
from dgm.meta.evidence import (
    begin_with_actions,
    conversation_text,
    count_problems,
    cut_middle,
    folder,
    program_end_of,
    prompts_text,
)
from dgm.protocols import Case, ProgramEnd


def case(verdict=Verdict.UNRESOLVED, run=None, **traces):
    kept = {"patch": b"", "failures": b"", "log": b"", "conversation": b""} | traces
    evaluation = Evaluation(0, TaskId("lru-ttl"), 0, verdict, "1 of 2 tests fail")
    return Case(evaluation, "the problem", kept, run or ProgramEnd())


def test_failures_are_counted_by_kind():
    cases = [
        case(run=ProgramEnd(exit_code=1)),
        case(run=ProgramEnd(exit_code=1, crashed=True), patch=b"diff"),
        case(run=ProgramEnd(truncated=True, context=True), patch=b"diff"),
        case(Verdict.RESOLVED, run=ProgramEnd(exit_code=1), patch=b"diff"),
    ]
    assert count_problems(Tally(3, 4), cases) == {
        "resolved": 3,
        "evaluations": 7,
        "failures": 3,
        "step_limit": 1,
        "truncated": 1,
        "wrong": 1,
        "crashed": 1,
        "empty": 1,
        "context": 1,
    }


def test_the_folder_has_an_index_and_a_folder_a_case():
    files = folder([case(patch=b"diff", failures=b"FAILED")])
    assert "lru-ttl-0/" in files["README.md"].data.decode()
    assert files["lru-ttl-0/patch.diff"].data == b"diff"
    assert files["lru-ttl-0/failed-tests.txt"].data == b"FAILED"
    assert files["lru-ttl-0/problem.md"].data == b"the problem"


def test_long_traces_keep_both_ends():
    text = cut_middle(b"a" * 500 + b"z" * 500, 100)
    assert text.startswith(b"a" * 50)
    assert text.endswith(b"z" * 50)
    assert b"900 bytes left out" in text


def test_a_truncated_tool_result_is_noticed_and_a_system_prompt_is_not():
    said = [Message(Role.SYSTEM, "never say truncated"), Message(Role.TOOL, "x [output truncated]")]
    assert program_end_of(0, False, b"", [thread_of(said)]).truncated
    assert not program_end_of(0, False, b"", [thread_of(said[:1])]).truncated


def test_a_request_that_was_too_long_is_noticed():
    assert program_end_of(1, False, b"", [], ("too_many_requests", "context_length_exceeded")).context
    assert not program_end_of(1, False, b"", [], ("action_limit_exceeded",)).context


def test_a_conversation_reads_as_turns():
    text = conversation_text([thread_of([Message(Role.USER, "mend it"), Message(Role.ASSISTANT, "DONE")])])
    assert text == "## user\n\nmend it\n\n## assistant\n\nDONE\n"


LONG = "You are an agent.\n" * 100
TOOL = Tool("bash", "runs a command", {"type": "object"})


def test_system_prompt_and_tools_are_a_line_with_their_size():
    threads = collect_threads(
        [(1, Request((Message(Role.SYSTEM, LONG), Message(Role.USER, "mend it")), (TOOL,)), Reply("DONE"))]
    )
    size = len(prompts_text(threads).strip())
    folded = f"[system prompt and tool definitions: {size:,} characters, 1 tools]"
    assert conversation_text(threads) == f"{folded}\n\n## user\n\nmend it\n\n## assistant\n\nDONE\n"
    assert LONG.strip() in prompts_text(threads)
    assert "runs a command" in prompts_text(threads)


def test_evidence_begins_with_the_first_answer_and_says_where_the_rest_is():
    text = b"[system prompt and tool definitions: 1,900 characters, 1 tools]\n\n## user\n\nmend it\n\n"
    head, _, rest = begin_with_actions(text + b"## assistant\n\nDONE\n").partition(b"\n\n")
    assert rest == b"## assistant\n\nDONE\n"
    assert b"1,900 characters" in head
    assert b"`problem.md`" in head
    assert b"`prompts.md`" in head
    assert begin_with_actions(b"## user\n\nnever answered\n") == b"## user\n\nnever answered\n"


def test_prompts_are_one_file_for_all_cases():
    files = folder([case(), case(prompts=b"You are"), case(prompts=b"You are, later")])
    assert files["prompts.md"].data == b"You are"
    assert "prompts.md" not in folder([case()])


def test_a_long_system_message_between_the_turns_is_its_size():
    threads = collect_threads(
        [(1, Request((Message(Role.USER, "mend it"), Message(Role.SYSTEM, LONG))), Reply("DONE"))]
    )
    assert f"## system\n\n[{len(LONG):,} characters]" in conversation_text(threads)
    assert LONG in prompts_text(threads)
