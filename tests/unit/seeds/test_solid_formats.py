"""How the solid seed reads replies and keeps a conversation short."""

import json

import pytest

HEREDOC = "```bash\ncat > R.md <<'EOF'\n```\ncode\n```\nEOF\n```"


def calls(solid, text):
    return [(call.name, call.arguments) for call in solid.text_format.parse({"content": text}, 1)]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Look.\n```bash\nls -l\n```\n", [("bash", {"command": "ls -l"})]),
        ("```\nls\n```", [("bash", {"command": "ls"})]),
        ("```sh\nls", [("bash", {"command": "ls"})]),
        ("<think>```bash\nrm x\n```</think>```bash\nls\n```", [("bash", {"command": "ls"})]),
        ("```bash\none\n```\nand\n```bash\ntwo\n```", [("bash", {"command": "one"})]),
        (HEREDOC, [("bash", {"command": HEREDOC[8:-4]})]),
        ("```python\nprint()\n```", []),
        (
            "```edit a.py\n<<<<<<< OLD\nx\n=======\ny\n>>>>>>> NEW\n```",
            [("edit", {"path": "a.py", "old": "x\n", "new": "y\n"})],
        ),
        (
            "```edit a.py\n<<<<<<< OLD\nx\n=======\n>>>>>>> NEW\n```",
            [("edit", {"path": "a.py", "old": "x\n", "new": ""})],
        ),
        ("```edit a.py\nx\n```", [("edit", {"path": "a.py"})]),
        ("```create b/c.py\nx\n```", [("create", {"path": "b/c.py", "content": "x\n"})]),
        ('```json\n{"name": "bash", "arguments": {"command": "ls"}}\n```', [("bash", {"command": "ls"})]),
        (
            '<tool_call>\n{"name": "bash", "arguments": {"command": "ls"}}\n</tool_call>',
            [("bash", {"command": "ls"})],
        ),
        ('{"name": "other", "arguments": {}}', []),
        ("All is well.", []),
    ],
)
def test_actions_are_found_in_a_text(solid, text, found):
    assert calls(solid, text) == found


def test_edits_before_a_command_are_made_in_one_reply(solid):
    text = "```create a\nx\n```\n```create b\ny\n```\n```bash\nls\n```\n```create c\nz\n```"
    assert [name for name, _ in calls(solid, text)] == ["create", "create", "bash"]


def native(solid, arguments):
    message = {"content": None, "tool_calls": [{"function": {"name": "bash", "arguments": arguments}}]}
    return message, solid.native_format.parse(message, 3)


def test_a_native_call_without_an_id_gets_one(solid):
    message, (call,) = native(solid, '{"command": "a\nb"}')
    assert (call.id, call.arguments) == ("call_3_0", {"command": "a\nb"})
    assert message["tool_calls"][0]["id"] == "call_3_0"


@pytest.mark.parametrize("arguments", ['{"command": "l', "[]", '"ls"'])
def test_unreadable_arguments_are_answered_and_not_sent_again(solid, arguments):
    message, (call,) = native(solid, arguments)
    assert call.fault.startswith("error: the arguments are no JSON")
    assert message["tool_calls"][0]["function"]["arguments"] == "{}"


def long_history(solid, turns=12, size=20_000):
    history = solid.memory.History("the problem")
    for number in range(turns):
        call = solid.memory.Call(str(number), "bash", {"command": "ls"})
        turn = solid.memory.Turn({"role": "assistant", "content": "", "tool_calls": []}, "look", [call])
        turn.results = [f"begin {number}" + "x" * size + f"end {number}"]
        history.turns.append(turn)
    return history


def test_the_middle_of_old_outputs_is_dropped_first(solid):
    history = long_history(solid)
    history.fit()
    assert history.size() < 180_000
    assert len(history.turns) == 12
    oldest, newest = history.turns[0].results[0], history.turns[-1].results[0]
    assert oldest.startswith("begin 0")
    assert oldest.endswith("end 0")
    assert "characters left out" in oldest
    assert len(newest) > 20_000


def test_a_refusal_for_length_drops_more_until_nothing_is_left_to_drop(solid):
    history = long_history(solid)
    sizes = [history.size()]
    while history.refused():
        sizes.append(history.size())
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[-1] < 10_000
    assert "earlier replies" in history.opening


def test_a_conversation_with_tools_reads_as_text(solid):
    history = solid.memory.History("p")
    call = solid.memory.Call("1", "bash", {"command": "ls"})
    turn = solid.memory.Turn({"tool_calls": [{}]}, "look", [call])
    turn.results = ["a.py"]
    history.turns.append(turn)
    messages = solid.text_format.request("solve", history)["messages"]
    assert [message["role"] for message in messages] == ["system"] + ["user", "assistant"] * 2 + ["user"]
    assert messages[4]["content"] == "look\n\n```bash\nls\n```"


def test_every_tool_is_described_and_every_kind_has_a_prompt(solid):
    history = solid.memory.History("p")
    for kind in ("solve", "improve", "other"):
        body = solid.native_format.request(kind, history)
        assert "{" not in body["messages"][0]["content"]
        assert [tool["function"]["name"] for tool in body["tools"]] == [
            "bash",
            "edit",
            "create",
            "view",
            "submit",
        ]
        assert json.dumps(body)


@pytest.mark.parametrize(
    ("text", "whole"),
    [
        ("Look.\n```bash\nls\n```\nNow I look.\nNow I lo", "Look.\n```bash\nls\n```"),
        ("```bash\nls\n```\n```bash\nrm a", "```bash\nls\n```"),
        ("```bash\nrm a", ""),
        ("Now I look.", ""),
    ],
)
def test_of_a_text_that_was_cut_off_whole_blocks_are_kept(solid, text, whole):
    assert solid.text_format.keep_whole(text) == whole


def test_a_conversation_in_text_begins_with_an_example(solid, repository):
    job = {"kind": "solve", "problem": "p", "workdir": str(repository)}
    history = solid.memory.History(
        solid.prompts.first_message(job), solid.prompts.list_files(str(repository))
    )
    messages = solid.text_format.request("solve", history)["messages"]
    assert [message["role"] for message in messages] == ["system", "user", "assistant", "user"]
    assert calls(solid, messages[2]["content"]) == [("bash", {"command": "find * -type f"})]
    assert messages[3]["content"].startswith("a.py\n")


def test_lessons_stand_in_the_prompt_for_problems_only(solid, monkeypatch, tmp_path):
    before = solid.prompts.system("solve", "tools", 60)
    lessons = tmp_path / "lessons.md"
    lessons.write_text("# Lessons\n\n- Read the tests.\n<!-- evidence: [] -->\n")
    monkeypatch.setattr(solid.prompts, "LESSONS", lessons)
    assert (
        solid.prompts.system("solve", "tools", 60)
        == f"{before}\n\nLessons of earlier attempts:\n- Read the tests."
    )
    assert "Lessons" not in solid.prompts.system("improve", "tools", 60)
