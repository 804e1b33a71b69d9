"""What a request shows: tools by their schemas, files by what was printed of them, habits by the system text."""

import json

import pytest

from dgm.messages import Message, Request, Role, ToolCall
from dgm.offline.talk import Change, Edit, FileView, Habit, Window, asks, fold, read_shown, recognise, show
from tests.support.offline_talk import TOOLS, tool

FILE = "2 a.py\n1:x = 1\n2:y = 2\n== end"


def talk(*turns, tools=TOOLS):
    """The talk after calls, each with its result."""
    messages = [Message(Role.USER, "Fix it.")]
    for number, (name, arguments, result) in enumerate(turns):
        messages.append(Message(Role.ASSISTANT, "", (ToolCall(str(number), name, json.dumps(arguments)),)))
        messages.append(Message(Role.TOOL, result, call_id=str(number)))
    return fold(Request(messages, tools))


@pytest.mark.parametrize(
    ("offered", "roles"),
    [
        (tool("terminal", "Execute a command.", "cmd"), {"shell": {"command": "cmd"}}),
        (
            tool("substitute", "Replace text in a file.", "filename", "search", "replacement"),
            {"replace": {"path": "filename", "old": "search", "new": "replacement"}},
        ),
        (
            tool("str_replace", "Edit.", "path", "old_str", "new_str"),
            {"replace": {"path": "path", "old": "old_str", "new": "new_str"}},
        ),
        (
            tool("view", "Show lines.", "path", "first", "last"),
            {"view": {"path": "path", "first": "first", "last": "last"}},
        ),
        (tool("bash", "Run a command.", "command", "password"), {}),
        (tool("search_web", "Look on the web.", "query"), {}),
    ],
)
def test_tools_are_recognised_by_their_schemas(offered, roles):
    assert {role: slots for role, (_, slots) in recognise([offered]).items()} == roles


@pytest.mark.parametrize(
    ("text", "only", "found"),
    [
        (FILE, "", [("a.py", {1: "x = 1", 2: "y = 2"}, 2)]),
        (
            "9 a.py\n1:x = 1\n2:y = 2\n3:zz = \n[output truncated]",
            "",
            [("a.py", {1: "x = 1", 2: "y = 2"}, 9)],
        ),
        ("[output truncated]\n:tail\n7:a\n8:b\n9:c\n== end", "a.py", [("a.py", {8: "b", 9: "c"}, None)]),
        (
            "1 a.py\n1:x\n[output truncated]\n5:p\n6:q\n2 b.py\n1:r\n2:s\n== end",
            "",
            [("a.py", {}, 1), ("b.py", {1: "r", 2: "s"}, 2)],
        ),
    ],
)
def test_only_lines_whose_neighbours_are_shown_are_believed(text, only, found):
    assert list(read_shown(text, only)) == found


def test_a_file_is_known_after_an_edit_and_so_is_what_changed():
    seen = talk(
        ("bash", {"command": show(Window("a.py"))}, FILE),
        ("edit", Edit("a.py", "y = 2", "y = 3\nz = 4")._asdict(), "edited"),
    )
    view = seen.files["a.py"]
    assert view.lines == {1: "x = 1", 2: "y = 3", 3: "z = 4"}
    assert view.base == {1: "x = 1", 2: "y = 2"}
    assert view.change == Change(2, ("y = 2",), ("y = 3", "z = 4"))
    assert seen.steps[-1].state == {("a.py", view.change)}


def test_lines_behind_an_edit_are_known_of_the_file_before_it():
    view = FileView("a.py")
    view.see({1: "x = 1", 2: "y = 2"}, 4)
    view.replace("y = 2", "y = 3\nz = 4")
    view.see({3: "z = 4", 4: "p = 5", 5: "q = 6"}, 5)
    assert view.base == {1: "x = 1", 2: "y = 2", 3: "p = 5", 4: "q = 6"}
    assert view.lines[4] == "p = 5"


def test_a_viewing_tool_stands_in_for_a_shell():
    tools = (tool("view", "Show lines.", "path", "first", "last"), TOOLS[1])
    seen = talk(("view", {"path": "a.py"}, "     1\tx = 1\n     2\t  y = 2"), tools=tools)
    assert seen.files["a.py"].lines == {1: "x = 1", 2: "  y = 2"}
    assert seen.files["a.py"].gap is None
    call = seen.call(show(Window("b.py", 3, 9)), "c")
    assert call is not None
    assert json.loads(call.arguments) == {"path": "b.py", "first": 3, "last": 9}
    assert seen.call("ls", "c") is None


def test_the_gap_is_what_must_still_be_read():
    view = FileView("a.py")
    assert view.gap == Window("a.py", 1, 0)
    view.see({1: "a", 2: "b", 7: "c"}, 9)
    assert view.gap == Window("a.py", 3, 6)
    view.see({2: "other"}, None)
    assert view.gap == Window("a.py", 1, 1)


@pytest.mark.parametrize(
    ("text", "habit"),
    [
        ("You may call several tools in one reply.", Habit.SEVERAL),
        ("Run the tests before you change anything.", Habit.TESTS_FIRST),
        ("First, run all unit tests.", Habit.TESTS_FIRST),
        ("Reproduce the problem with a small script before you fix it.", Habit.REPRODUCE),
        ("Run only the test modules that matter.", Habit.TARGETED),
        ("Do not run the tests.", Habit.NO_TESTS),
    ],
)
def test_a_habit_is_recognised_and_its_opposite_is_not(text, habit):
    assert asks(text, habit)
    if habit is not Habit.NO_TESTS:
        assert not asks(f"Never {text.lower()}", habit)
    assert not asks("You are a programmer. Use the tools. Say DONE when you have finished.", habit)
