"""The findings about an agent: what would stop a search, and what to write."""

import json
from dataclasses import replace

import pytest

from dgm.api.own_agent import judge_files, judge_inspection
from dgm.config import LimitSettings
from dgm.domain import Entry
from dgm.messages import WireProtocol
from dgm.meta.contract import Contract
from dgm.protocols import Completed, DryCalls, Work
from dgm.sandboxes.packages import find_install_scripts
from dgm.worker.agent_check import Inspection, PackagesInstalled

LIMITS = LimitSettings()
CONTRACT = Contract(command=("python3", "agent.py"), check=("python3", "agent.py", "--check"))
STARTED = Completed(0, b"", processor_s=1.0)
SOLVED = Work({}, b"", Completed(0, b"done", seconds=2.0), calls=2)


def find(part, contract=CONTRACT, **more):
    found = Inspection(
        **{"packages": PackagesInstalled(), "start": STARTED, "solve": SOLVED, "improved": True, **more}
    )
    return next(one for one in judge_inspection(contract, found) if one.part == part)


def test_a_good_agent_has_good_findings_only():
    found = Inspection(PackagesInstalled(), STARTED, SOLVED, improved=True)
    findings = [
        *judge_files({"agent.py": Entry(b"x\n")}, CONTRACT, LIMITS),
        *judge_inspection(CONTRACT, found),
    ]
    assert [one.part for one in findings] == [
        "sizes",
        "editable",
        "packages",
        "start",
        "solve",
        "litter",
        "improve",
    ]
    assert {one.level for one in findings} == {"ok"}
    assert not any(one.advice for one in findings)


LACKS = "agent.toml: a command that the image has; it lacks"


@pytest.mark.parametrize(
    ("done", "level", "advice"),
    [
        (Completed(1, b"No module named 'openai'"), "stop", 'agent.toml: requires = ["openai"]'),
        (Completed(127, b"no"), "stop", f"{LACKS} python3"),
        (Completed(127, b"run.sh: 10: exec: aider: not found"), "stop", f"{LACKS} aider"),
        (Completed(3, b"no"), "stop", "agent.toml: check = a command that exits with 0"),
        (Completed(124, b"", timed_out=True, out_of_processor=True), "stop", "the setting limits.check_s=30"),
    ],
)  # fmt: skip
def test_a_bad_start_says_what_to_write(done, level, advice):
    finding = find("start", start=done)
    assert finding.level is level
    assert finding.advice.startswith(advice)


@pytest.mark.parametrize(
    ("work", "level"),
    [
        (Work({}, b"", Completed(1, b"boom")), "stop"),
        (Work({}, b"", Completed(124, b"", timed_out=True), calls=9), "warn"),
        (Work({}, b"", Completed(1, b"boom"), calls=1), "warn"),
    ],
)
def test_a_conversation_that_goes_wrong_is_told(work, level):
    assert find("solve", solve=work).level is level


@pytest.mark.parametrize(
    ("fault", "advice"),
    [
        ("an improve job never asks the model (exit 1: no)", 'editor = "solid"'),
        ("an improve job took more than 10 s of processor time (limits.check_s)", "limits.check_s=30"),
    ],
)
def test_what_would_kill_every_child_stops_a_search(fault, advice):
    finding = find("improve", improve_fault=fault)
    assert finding.level == "stop"
    assert advice in finding.advice


def test_packages_that_cannot_be_installed_stop_everything():
    found = [*judge_inspection(CONTRACT, Inspection(PackagesInstalled("no such package")))]
    assert [(one.level, one.part) for one in found] == [("stop", "packages")]


def test_what_evolution_may_edit_is_counted():
    source = {"prompts/a.md": Entry(b"1\n2\n"), "agent.py": Entry(b"1\n")}
    (_, finding) = judge_files(
        source, Contract(command=("a",), check=("b",), editable=("prompts/**",)), LIMITS
    )
    assert finding.message == "1 file and 2 lines may change: prompts/a.md"


def test_nothing_to_edit_and_vendored_code_are_told():
    (_, nothing) = judge_files(
        {"agent.py": Entry(b"")}, Contract(command=("a",), check=("b",), editable=("x/**",)), LIMITS
    )
    assert (nothing.level, nothing.message) == ("stop", "no file matches x/**")
    (_, vendored) = judge_files({"vendor/lib.py": Entry(b"")}, CONTRACT, LIMITS)
    assert (vendored.level, vendored.advice) == ("warn", 'agent.toml: protected = ["vendor/**"]')


def test_an_agent_that_is_too_large_says_which_settings_take_it():
    source = {f"{number}.py": Entry(b"x") for number in range(LIMITS.agent_files + 1)}
    finding = next(iter(judge_files(source, CONTRACT, LIMITS)))
    assert finding.level == "stop"
    assert "limits.agent_files=1002" in finding.advice


def judge_calls(**more):
    """Return level, message and advice by part of the findings about a dry run's calls."""
    calls = DryCalls(**{"untranslatable": {WireProtocol.RESPONSES: ""}, **more})
    found = Inspection(PackagesInstalled(), STARTED, replace(SOLVED, dry_calls=calls), improved=True)
    return {one.part: one for one in judge_inspection(CONTRACT, found)}


def test_the_protocols_of_models_that_could_answer_are_listed():
    finding = judge_calls()["protocol"]
    assert finding.level == "ok"
    assert finding.message == "speaks responses; works behind: messages, responses, chat"


def test_calls_that_no_translation_carries_leave_their_own_protocol():
    finding = judge_calls(untranslatable={WireProtocol.RESPONSES: "'custom' is not offered"})["protocol"]
    assert finding.level == "warn"
    assert "works behind: responses. Others: 'custom' is not offered" in finding.message
    assert finding.advice.startswith("a model that is asked by responses")


def test_an_agent_that_speaks_two_protocols_of_which_one_does_not_translate():
    calls = {WireProtocol.CHAT: "", WireProtocol.MESSAGES: "'web_search' is not offered"}
    assert "works behind: messages. Others" in judge_calls(untranslatable=calls)["protocol"].message


def test_each_refusal_and_what_is_left_out_is_told_once():
    parts = judge_calls(
        refusals={"unsupported_tool": "no 'mcp'", "model_not_found": "no"},
        left_out=("mood", "a"),
        lost_in_translation=("effort",),
    )
    assert (parts["refused"].level, parts["refused"].message) == ("warn", "unsupported_tool: no 'mcp'")
    assert (parts["left out"].level, parts["left out"].message) == (
        "ok",
        "mood, a; behind another protocol: effort",
    )
    assert not {"refused", "left out"} & judge_calls().keys()


@pytest.mark.parametrize(("by_day", "when"), [(True, "on another day"), (False, "each time")])
def test_a_repetition_that_asks_something_else_is_told_with_what_makes_it_the_same(by_day, when):
    work = replace(SOLVED, dry_calls=DryCalls({}))
    finding = find("repeat", solve=work, differs="call 1: 'a' against 'b'", differs_by_day=by_day)
    assert finding.level == "warn"
    assert when in finding.message
    assert "volatile" in finding.advice
    assert find("repeat", solve=work).level == "ok"


def test_a_pinned_model_is_told_with_the_alias_to_set():
    finding = judge_calls(other_models=("gpt-4o",))["alias"]
    assert (finding.level, finding.advice) == (
        "warn",
        'for a model of another vendor, in the settings: models.aliases = {"gpt-4o" = "default"}',
    )


@pytest.mark.parametrize(("calls", "level"), [(0, "stop"), (2, "warn")])
def test_a_refused_model_is_told_in_the_gateways_words(calls, level):
    dry = DryCalls({}, refusals={"model_not_found": "the model 'claude-opus-5' is not offered"})
    finding = find("solve", solve=replace(SOLVED, calls=calls, dry_calls=dry))
    assert finding.level is level
    assert "'claude-opus-5' is not offered" in finding.message


def test_packages_for_a_newer_python_are_told_with_the_image_to_set():
    failure = "the `--python-version` value (>=3.11) is not supported"
    for cause, image in [
        (" (a==1 only supports >=3.12, <3.13)", "FROM python:3.12-slim"),
        ("", "a Python that"),
    ]:
        assert image in find("packages", packages=PackagesInstalled(failure + cause)).advice


def test_the_error_of_a_program_of_node_is_told():
    output = b"node:internal\n\nError: Cannot find module 'x'\n    at a\n  code: 1\n}\n\nNode.js v20.20.2\n"
    assert "exits 1: Error: Cannot find module 'x'" in find("start", start=Completed(1, output)).message


def test_an_agent_that_does_not_start_is_told_which_install_scripts_were_not_run():
    packages = PackagesInstalled(install_scripts=["opencode-ai"])
    finding = find("scripts", packages=packages, start=Completed(1, b"the native program is missing"))
    assert (finding.level, finding.message) == ("warn", "install scripts are not run: opencode-ai")
    with pytest.raises(StopIteration):
        find("scripts", packages=packages)


def test_install_scripts_are_read_from_the_lock():
    rows = {
        "": {"hasInstallScript": True},
        "node_modules/c": {"hasInstallScript": True},
        "node_modules/c/node_modules/@a/b": {"hasInstallScript": True},
        "node_modules/d": {},
    }
    lock = Entry(json.dumps({"packages": rows}).encode())
    assert find_install_scripts({"package-lock.json": lock}) == ["@a/b", "c"]
    assert find_install_scripts({"package-lock.json": Entry(b"[]")}) == find_install_scripts({}) == []
