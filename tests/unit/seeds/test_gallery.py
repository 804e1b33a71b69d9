"""Decisions of the shipped designs that need no process: selection, bandit, vote, recombination, patches, replies."""

import hashlib
import io
import json
import re
from collections import defaultdict
from types import SimpleNamespace
from urllib.error import HTTPError

import pytest

from dgm.paths import seed_folder, seed_names

GALLERY = [name for name in seed_names() if name not in ("plain", "solid")]
MOST_LINES = 400


@pytest.mark.parametrize("name", GALLERY)
def test_a_design_is_small_and_names_its_paper(name):
    lines = [line for file in seed_folder(name).rglob("*.py") for line in file.read_text().splitlines()]
    assert sum(bool(line.strip()) for line in lines) <= MOST_LINES
    readme = (seed_folder(name) / "README.md").read_text()
    assert re.search(r"arXiv:\d{4}\.\d{5}", readme)
    assert "## Differences" in readme


def test_copied_modules_are_the_same_in_all_designs():
    copies = defaultdict(set)
    for name in GALLERY:
        for module in ("model", "workspace", "tools"):
            file = seed_folder(name) / "agent" / f"{module}.py"
            if file.is_file() and not (name in ("live", "workflow") and module != "model"):
                copies[module].add(hashlib.sha256(file.read_bytes()).hexdigest())
    assert {module: len(digests) for module, digests in copies.items()} == dict.fromkeys(copies, 1)


# The model's client


class Wire:
    """Gives a model's answers one after another; an exception among them is raised."""

    def __init__(self, model, *answers):
        self.bodies, self.answers = [], list(answers)
        model.post = self.post

    def post(self, body):
        self.bodies.append(json.loads(json.dumps(body)))
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


def refusal(status, text):
    return HTTPError("http://model", status, "", {}, io.BytesIO(text.encode()))


@pytest.fixture
def client(module_of, monkeypatch):
    """The client's module, which never sleeps."""
    module = module_of("debate", "model")
    monkeypatch.setattr(module.time, "sleep", lambda _: None)
    return module


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ({"content": None}, {"role": "assistant", "content": ""}),
        ({"content": ["x"], "tool_calls": None}, {"role": "assistant", "content": ""}),
        ({"content": "hi", "refusal": None, "tool_calls": []}, {"role": "assistant", "content": "hi"}),
    ],
)
def test_a_reply_is_cleaned(client, message, expected):
    assert client.clean(message) == expected


@pytest.mark.parametrize("arguments", ['{"command": "l', "[]", '"ls"', None, {"command": "ls"}])
def test_a_malformed_call_has_no_arguments(client, arguments):
    call = {"function": {"name": "bash", "arguments": arguments}}
    (cleaned,) = client.clean({"tool_calls": [call]})["tool_calls"]
    assert cleaned == {"id": "call_0", "type": "function", "function": {"name": "bash", "arguments": "{}"}}


def test_a_failure_that_passes_and_a_malformed_answer_are_asked_again(client):
    model = client.Model({"calls": 2})
    wire = Wire(
        model, refusal(500, "busy"), OSError("reset"), {"content": "a", "tool_calls": [3]}, {"content": "b"}
    )
    assert model.ask([])["content"] == "b"
    assert (len(wire.bodies), model.calls) == (4, 1)


@pytest.mark.parametrize(
    ("status", "text"), [(403, "action_limit_exceeded"), (503, "model_unavailable"), (400, "malformed")]
)
def test_a_refusal_ends_the_job(client, status, text):
    model = client.Model({})
    Wire(model, refusal(status, text))
    with pytest.raises(client.Ended, match=text):
        model.ask([])


def test_calls_and_time_end_the_job(client):
    with pytest.raises(client.Ended, match="no calls left"):
        client.Model({"calls": 0}).ask([])
    model = client.Model({"calls": 1})
    model.end = 0.0
    with pytest.raises(client.Ended, match="no time left"):
        model.ask([])


def test_a_conversation_that_is_too_long_is_cut_behind_its_start(client):
    model = client.Model({})
    messages = [{"role": "user", "content": letter * 5000} for letter in "abcd"]
    wire = Wire(model, refusal(400, "context_length_exceeded"), {"content": "ok"})
    model.ask(messages)
    assert [len(message["content"]) for message in wire.bodies[0]["messages"]] == [5000] * 4
    lengths = [len(message["content"]) for message in wire.bodies[1]["messages"]]
    assert lengths[:2] == [5000, 5000]
    assert sorted(length < 1000 for length in lengths[2:]) == [False, True]


# The loop with tools


def test_a_loop_survives_unknown_tools_and_missing_arguments_and_ends_with_done(module_of, tmp_path):
    tools = module_of("debate", "tools")
    (tmp_path / "a.py").write_text("x = 1\n")

    def call(name, **arguments):
        return {"id": "1", "function": {"name": name, "arguments": json.dumps(arguments)}}

    replies = [
        {"content": "", "tool_calls": [call("fly"), call("edit", path="a.py"), call("bash")]},
        {"content": "hm"},
        {"content": "", "tool_calls": [call("edit", path="a.py", old="x = 1", new="x = 2")]},
        {"content": "DONE"},
    ]
    model = SimpleNamespace(ask=lambda *_: {"role": "assistant", **replies.pop(0)}, left_s=lambda: 9.0)
    messages = []
    assert tools.work(model, messages, str(tmp_path), 9)
    results = [message["content"] for message in messages if message["role"] == "tool"]
    assert [result[:5] for result in results] == ["error", "error", "error", "edite"]
    assert tools.REMINDER in [message["content"] for message in messages]
    assert (tmp_path / "a.py").read_text() == "x = 2\n"


@pytest.mark.parametrize(
    ("status", "output", "expected"),
    [
        (0, "OK", 1.0),
        (5, "no tests ran", 1.0),
        (1, "2 failed, 1 error, 5 passed in 0.1s", 0.25),
        (1, "FAILED (failures=1, errors=2)", 0.25),
        (1, "Traceback", 0.0),
    ],
)
def test_tests_are_scored_by_their_failures(module_of, status, output, expected):
    assert module_of("debate", "workspace").score(status, output) == expected


# treesearch


@pytest.fixture
def tree(module_of):
    """The module, and a function that adds a node with a value and as many visits."""
    search = module_of("treesearch", "treesearch")

    def add(parent, value, **given):
        node = search.Node(f"state of {value}", (), parent, given.pop("diff", "+x"), **given)
        node.value = value
        if parent:
            parent.children.append(node)
        search.backpropagate(node, value)
        return node

    return search, add


def test_a_value_counts_for_all_nodes_above(tree):
    _, add = tree
    root = add(None, 0.5)
    child = add(root, 0.2)
    add(child, 0.8)
    assert (root.visits, root.total, child.visits, child.total) == (3, 1.5, 2, 1.0)


def test_the_promising_child_is_expanded_and_a_bad_one_sends_the_search_back(tree):
    search, add = tree
    root = add(None, 0.5)
    good = add(root, 0.9)
    assert search.select(root) is good
    other = add(None, 0.5)
    add(other, 0.0)
    assert search.select(other) is other


def test_closed_and_full_nodes_are_not_expanded(tree):
    search, add = tree
    root = add(None, 0.5)
    children = [add(root, value, finished=True) for value in (0.1, 0.2)]
    assert search.select(root) is root
    add(root, 0.3).closed = True
    assert search.select(root) is None
    assert {child.depth for child in children} == {1}


def test_seldom_visited_and_early_nodes_score_more(tree):
    search, add = tree
    root = add(None, 0.5)
    seldom, often = add(root, 0.5), add(root, 0.5)
    search.backpropagate(often, 0.5)
    assert search.uct(seldom) > search.uct(often)
    early = search.uct(seldom)
    seldom.depth = 5
    assert search.uct(seldom) < early


def test_finished_nodes_of_different_states_are_the_finalists(tree):
    search, add = tree
    root = add(None, 0.5, diff="")
    add(root, 0.99)
    best, twin, close, far = (add(root, value, finished=True) for value in (0.9, 0.9, 0.85, 0.4))
    assert search.finalists(root) == [best, close]
    assert twin.state == best.state
    assert far.finished


@pytest.mark.parametrize(
    ("text", "value"),
    [("VALUE: 70", 0.7), ("VALUE: 10\nVALUE: 300", 1.0), ("**VALUE**: 5", 0.05), ("good", None)],
)
def test_a_value_is_read(module_of, text, value):
    assert module_of("treesearch", "treesearch").read_value(text) == value


# team


def test_the_bandit_tries_all_then_prefers_who_helped(module_of):
    team = module_of("team", "team")
    bandit = team.Bandit({"edit": {"a": "", "b": ""}, "check": {"c": ""}})
    order = []
    for _ in range(12):
        name = bandit.choose("edit")
        order.append(name)
        bandit.reward("edit", name, 1.0 if name == "b" else 0.5)
    assert order[:2] == ["a", "b"]
    assert order.count("b") > order.count("a") > 1
    assert bandit.choose("check") == "c"


@pytest.mark.parametrize(
    ("text", "order"),
    [
        ("EDIT: change split()", ("edit", "change split()")),
        ("**localise** the parser", ("localise", "the parser")),
        ("DONE", ("done", "")),
        ("There is no tool. DONE", ("edit", "")),
        ("", ("edit", "")),
    ],
)
def test_the_orchestrators_first_word_counts(module_of, text, order):
    assert module_of("team", "team").read_order(text, "edit") == order


def test_the_usual_order_repeats_the_edit_until_a_check_passes(module_of):
    team = module_of("team", "team")
    reports = []
    order = [team.usual_order(reports, False)]
    for role in ("localise", "edit", "check"):
        reports.append(team.Report(role, "", ""))
        order.append(team.usual_order(reports, False))
    assert order == ["localise", "edit", "check", "edit"]
    assert team.usual_order(reports, True) == "done"


def test_a_verdict_and_the_use_of_a_report_are_read(module_of):
    team = module_of("team", "team")
    assert [team.read_verdict(text) for text in ("VERDICT: PASS", "verdict: fail", "fine")] == [
        True,
        False,
        None,
    ]
    diff = "diff --git a/x/a.py b/x/a.py\ndiff --git a/b.py b/b.py\n"
    assert [team.helped(text, diff) for text in ("see a.py", "x/a.py, b.py", "")] == [0.5, 1.0, 0.0]


# debate and reviser


@pytest.mark.parametrize(("seed", "name"), [("debate", "vote"), ("reviser", "chosen_number")])
@pytest.mark.parametrize(
    ("text", "number"), [("2", 2), ("3 is wrong.\n1\n**2**", 2), ("9", 0), ("the second", 0), ("1\n9", 1)]
)
def test_a_choice_is_the_last_number_on_a_line(module_of, seed, name, text, number):
    assert getattr(module_of(seed, seed), name)(text, 3) == number


def answers(module, *rows):
    return [module.Answer(number, *row) for number, row in enumerate(rows)]


def test_answers_are_ranked_by_change_tests_and_votes(module_of):
    debate = module_of("debate", "debate")
    rows = [("start", 1.0, True, ""), ("a", 0.5, True, "+a"), ("b", 1.0, True, "+b"), ("c", 1.0, False, "+c")]
    given = answers(debate, *rows, ("c", 1.0, True, "+c"))
    assert [answer.state for answer in debate.candidates(given)] == ["c", "b", "a", "start"]
    assert debate.candidates([]) == []


def test_only_finished_passing_answers_make_a_majority(module_of):
    debate = module_of("debate", "debate")
    same, failing = ("a", 1.0, True, "+a"), ("a", 0.5, True, "+a")
    assert not debate.majority(answers(debate, same), 3)
    assert debate.majority(answers(debate, same, same), 3)
    assert not debate.majority(answers(debate, failing, failing), 3)


@pytest.mark.parametrize(
    ("replies", "chosen"),
    [(["1", "1", "2"], "b"), (["2", "2", "who knows"], "b"), (["?", "?", "?"], "a"), (["1", "2", "no"], "a")],
)
def test_the_judge_decides_then_the_votes_then_the_rank(module_of, replies, chosen):
    debate = module_of("debate", "debate")
    model = SimpleNamespace(ask=lambda *_: {"content": replies.pop(0)})
    ranked = answers(debate, ("a", 1.0, True, "+a"), ("b", 1.0, True, "+b"), ("start", 1.0, True, ""))
    assert debate.decide({"problem": "p"}, model, ranked).state == chosen


def attempts(module, *rows):
    return [module.Attempt("explore", state, score, done, diff, "") for state, score, done, diff in rows]


def test_the_best_attempt_is_recombined_with_the_most_different_one(module_of):
    reviser = module_of("reviser", "reviser")
    rows = [("a", 1.0, True, "+x\n+y"), ("b", 0.5, True, "+x\n+z"), ("c", 0.0, False, "+p\n-q")]
    pool = attempts(reviser, *rows)
    assert [attempt.state for attempt in reviser.parents(pool)] == ["a", "c"]
    assert reviser.distance(pool[0], pool[1]) == pytest.approx(2 / 3)
    assert reviser.distance(pool[0], pool[0]) == 0


def test_the_most_frequent_of_the_best_attempts_comes_first(module_of):
    reviser = module_of("reviser", "reviser")
    right, other = ("b", 1.0, True, "+b"), ("a", 1.0, True, "+a")
    pool = attempts(reviser, other, right, ("c", 0.5, True, "+c"), right, ("start", 1.0, True, ""))
    assert [attempt.state for attempt in reviser.select(pool)] == ["b", "a"]


def test_attempts_agree_if_they_end_in_one_state_that_passes(module_of):
    reviser = module_of("reviser", "reviser")
    assert reviser.agreed(attempts(reviser, ("a", 1.0, True, "+a"), ("a", 1.0, True, "+a")))
    for other in (("b", 1.0, True, "+b"), ("a", 0.5, True, "+a"), ("a", 1.0, False, "+a")):
        assert not reviser.agreed(attempts(reviser, ("a", 1.0, True, "+a"), other))


# workflow


def test_blocks_are_read_and_applied_exactly_once(module_of, tmp_path):
    patches = module_of("workflow", "patches")
    (tmp_path / "a.py").write_text("x = 1\ny = 1\n")
    block = "### {}\n<<<<<<< SEARCH\n{}=======\n{}>>>>>>> REPLACE\n"
    right = (
        "Because.\n" + block.format("a.py", "x = 1\n", "x = 2\n") + block.format("new/b.py", "", "z = 3\n")
    )
    assert patches.apply(str(tmp_path), patches.BLOCK.findall(right)) == ""
    assert (tmp_path / "a.py").read_text() == "x = 2\ny = 1\n"
    assert (tmp_path / "new" / "b.py").read_text() == "z = 3\n"
    for path, old in (("a.py", "q\n"), ("a.py", ""), ("../c.py", ""), ("none.py", "x\n")):
        assert patches.apply(str(tmp_path), patches.BLOCK.findall(block.format(path, old, "w\n")))
    assert patches.apply(str(tmp_path), patches.BLOCK.findall("no block")) == "no blocks"
    assert not (tmp_path.parent / "c.py").exists()


def test_patches_that_differ_in_comments_count_as_one(module_of):
    patches = module_of("workflow", "patches")
    one, two = {"a.py": "x = 1  # why\n"}, {"a.py": "x = 1\n\n"}
    assert patches.normal_form(one) == patches.normal_form(two) != patches.normal_form({"a.py": "x = 2\n"})
    assert patches.normal_form({"a.py": "x ="}) == patches.normal_form({"a.py": "x="})


def test_tests_then_the_script_then_the_majority_choose(module_of):
    patches = module_of("workflow", "patches")
    rows = [("a", "A", 0.5, 0), ("b", "B", 0.0, 1), ("b", "B", 0.0, 1), ("c", "C", 0.0, 0)]
    rows += [("d", "D", 0.0, 0), ("e", "D", 0.0, 0)]
    candidates = [patches.Candidate(*row) for row in rows]
    assert patches.choose(candidates).state == "d"
    assert patches.choose(candidates[:4]).state == "c"
    assert patches.choose(candidates[1:3]).state == "b"
    assert patches.choose([]) is None


def test_files_and_places_are_read_from_an_answer(module_of):
    localise = module_of("workflow", "localise")
    known = ["pkg/a.py", "pkg/b.py", "x/c.py", "y/c.py"]
    text = "1. `pkg/b.py`\n- a.py\n* ./pkg/b.py\nc.py\nnowhere.py\n"
    assert localise.read_paths(text, known) == ["pkg/b.py", "pkg/a.py"]
    assert localise.PLACE.findall("- `pkg/a.py`: `Cache.get`\npkg/a.py: 12\nnone") == [
        ("pkg/a.py", "Cache.get"),
        ("pkg/a.py", "12"),
    ]


def test_a_long_file_is_shown_at_its_places(module_of, tmp_path):
    localise = module_of("workflow", "localise")
    filler = "".join(f"value_{number} = {number}\n" for number in range(1000))
    (tmp_path / "a.py").write_text(filler + "def wanted():\n    return 1\n" + filler)
    shown = localise.show(str(tmp_path), ["a.py"], [("a.py", "wanted")])
    assert "def wanted" in shown
    assert "[lines left out]" in shown
    assert "value_500 " not in shown
    assert "def wanted" in localise.skeleton((tmp_path / "a.py").read_text())
    paths = localise.list_files(str(tmp_path))
    assert localise.rank("what is wanted returns", str(tmp_path), paths) == ["a.py"]


# codeact and live


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("Look.\n```python\nx = 1\nprint(x)\n```\nthen", "x = 1\nprint(x)"),
        ("```py\na\n```\nand\n```python\nb\n```", "a\nb"),
        ("```bash\nls\n```", "sh('ls\\n')"),
        ("<execute>\nx\n</execute>", "x"),
        ("```python\nunclosed", "unclosed"),
        ("DONE", ""),
        ("```json\n{}\n```", ""),
    ],
)
def test_code_is_read_from_a_reply(module_of, text, code):
    assert module_of("codeact", "codeact").read_code(text) == code


@pytest.mark.parametrize(
    ("name", "source", "result"),
    [
        ("find_it", "#!/bin/sh\necho hi\n", "made the tool"),
        ("bash", "#!/bin/sh\n", "error: a name"),
        ("../up", "#!/bin/sh\n", "error: a name"),
        ("find_it", "echo hi\n", "error: the source must begin"),
        ("find_it", "#!/usr/bin/env python3\nx =\n", "error: SyntaxError"),
    ],
)
def test_a_tool_is_made_only_if_it_can_be_started(module_of, tmp_path, monkeypatch, name, source, result):
    live = module_of("live", "live")
    monkeypatch.setattr(live.tempfile, "tempdir", str(tmp_path))
    box = live.Toolbox(str(tmp_path))
    before = len(box.schemas())
    arguments = {"name": name, "description": "d", "source": source}
    assert box.perform("create_tool", arguments, 9.0).startswith(result)
    assert len(box.schemas()) - before == result.startswith("made")
    assert box.perform("create_tool", {}, 9.0).startswith("error: the argument")
    box.close()
    assert not list(tmp_path.iterdir())
