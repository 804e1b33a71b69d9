"""Hostile agents in a real search, in both engines: each ends as data, and nobody else notices.

The acts are played once an engine, five at a time; the tests look at what is left.
"""

import functools
import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

from dgm.errors import UserError
from dgm.sandboxes import scratch
from dgm.sandboxes.choose import choose
from tests.docker.hostile import stage

ACTS = sorted(stage.acts())
TESTS_FAIL = r"[12] of 2 tests still fail"
NOTHING = r"empty patch"
EXPECTED = {
    "grading_hang": ("unresolved", "did not end within"),
    "grading_exit_at_import": ("unresolved", r"ended early \(exit status 0\)"),
    "grading_patch_the_reporter": ("unresolved", "tampering: .* must fail with another expected value"),
    "grading_read_the_nonce": ("unresolved", "tampered with: one that must fail did not"),
    "grading_kill_the_runner": ("unresolved", "the graded code ended the test runner"),
    "improve_broken": ("stillborn", "check: the self-check exits 1: SyntaxError"),
    "improve_check_prints": ("stillborn", "check: the self-check (exits 3: |took more than 5 s)"),
    "improve_check_without_end": (
        "stillborn",
        "check: the self-check (took more than 5 s|did not end within)",
    ),
    "improve_five_megabytes": ("stillborn", "size: more than 4,000,000 bytes"),
    "improve_hooks_and_links": ("born", "plain data"),
    "improve_many_files": ("stillborn", "size: the agent's source has 60. files; 500 are allowed"),
    "improve_never_asks": ("stillborn", "improve: an improve job never asks the model"),
    "improve_nothing": ("stillborn", "unchanged: "),
    "improve_protected_file": ("stillborn", r"protected: changed files .*: agent\.toml"),
    "improve_source_is_a_link": ("stillborn", "get: /work/agent is a link now and no folder"),
    "improve_without_end": (
        "stillborn",
        "improve: an improve job, to which the model only says DONE, did not end",
    ),
    "solve_binary_patch": ("unresolved", TESTS_FAIL),
    "solve_close_workdir": ("unresolved", TESTS_FAIL),
    "solve_deep_folders": ("unresolved", "the patch does not apply: error: deep/deep"),
    # Where a busy machine is slow to hand out memory, its time is over first; without a control group it is refused.
    "solve_eat_memory": ("unresolved", r"empty patch \(the agent (ran out of (memory|time)|exits 1)\)"),
    "solve_hollow_terabyte": ("unresolved", f"{NOTHING} .*left out of the patch: 1 new file"),
    "solve_leave_a_daemon": ("unresolved", f"{TESTS_FAIL}|{NOTHING}"),
    "solve_links_out": ("unresolved", TESTS_FAIL),
    "solve_odd_names": ("unresolved", TESTS_FAIL),
    "solve_patch_of_200_mb": (
        "unresolved",
        rf"({NOTHING}|{TESTS_FAIL}) .*left out of the patch: \d+ new files",
    ),
    "solve_patch_of_30_mb": (
        "unresolved",
        f"{NOTHING} .*left out of the patch: 1 new file of 30,000,000 bytes",
    ),
    "solve_remove_workdir": ("unresolved", "get: there is no folder /work/repo to read"),
    "solve_sleep_for_ever": ("unresolved", r"empty patch \(the agent ran out of time\)"),
    "solve_twenty_five_thousand_files": (
        "unresolved",
        rf"{TESTS_FAIL} \(left out of the patch: \d+ new files",
    ),
    "solve_workdir_is_a_link": ("unresolved", "get: /work/repo is a link now and no folder"),
}
"""Act → how it must end, and words of its reason. Other acts that solve leave nothing, other patches fail the tests."""


def expected(act):
    return EXPECTED.get(act) or ("unresolved", TESTS_FAIL if act.startswith("grading_") else NOTHING)


@functools.cache
def _play(engine):
    try:
        choose(engine)
    except UserError as error:
        return str(error)
    return stage.play(engine, Path(tempfile.mkdtemp(prefix=f"dgm-hostile-{engine}-")))


def _forget(played):
    played.run.close()
    shutil.rmtree(played.scratch.parent)


@pytest.fixture(
    scope="module",
    params=[
        pytest.param("docker", marks=[pytest.mark.docker, pytest.mark.sandbox, pytest.mark.slow]),
        pytest.param("bubblewrap", marks=[pytest.mark.sandbox, pytest.mark.slow]),
    ],
)
def played(request):
    """Everything, done once in each engine."""
    found = _play(request.param)
    if isinstance(found, str):
        pytest.skip(f"NOT RUN with {request.param}: {found}")
    yield found
    _forget(found)
    _play.cache_clear()


@pytest.mark.parametrize("act", ACTS)
def test_ends_as_data_with_its_reason(played, act):
    how, words = expected(act)
    ends = played.hostile[act]
    assert len(ends) == 1, ends
    (end,) = ends
    assert (end.how, bool(re.search(words, end.reason))) == (how, True), end.reason
    assert all(c.isprintable() for c in end.reason)
    assert len(end.reason) < 600


def test_nothing_was_lost_or_performed_twice(played):
    assert {act: [end.how for end in ends] for act, ends in played.hostile.items() if len(ends) != 1} == {}
    assert not {"lost", "invalid"} & {end.how for ends in played.hostile.values() for end in ends}
    assert not played.run.tree.pending


def test_honest_agents_beside_them_resolve_their_task(played):
    assert {(end.how, end.reason) for end in played.honest} == {("resolved", "all 4 tests pass")}


def test_each_act_had_an_honest_agent_beside_it(played):
    def beside(end):
        return any(other.began < end.ended and end.began < other.ended for other in played.honest)

    assert [act for act, ends in played.hostile.items() if not all(map(beside, ends))] == []


def test_the_host_outside_is_untouched(played):
    assert [path.name for path in played.outside.iterdir()] == ["kept.txt"]
    assert (played.outside / "kept.txt").read_text() == "untouched\n"


def test_no_process_is_left(played):
    left = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            line = (process / "cmdline").read_bytes()
        except OSError:
            continue
        if played.mark.encode() in line:
            left.append(line)
    assert left == []


def test_no_sandbox_and_no_temporary_file_is_left(played):
    label = played.run.config["id"]
    assert [path for path in played.scratch.rglob("*") if path.name != scratch.base_folder().name] == []
    # Other tests' groups come and go meanwhile, which a glob would stumble over.
    groups = {name for _, folders, _ in os.walk("/sys/fs/cgroup") for name in folders}
    assert not groups & played.sandboxes
    if played.run.config["sandbox"] == "bubblewrap":
        assert len(played.sandboxes) > len(ACTS)
    else:
        asked = ["docker", "ps", "-aq", "--filter", f"label=dgm.run={label}"]
        assert subprocess.run(asked, capture_output=True, check=True).stdout == b""


def test_the_archive_is_sound(played):
    played.run.repository.fsck()
    kept = {path.name for path in played.run.folder.iterdir()} - {
        "run.db-wal",
        "run.db-shm",
        "run.lock",
    }
    assert kept == {"run.json", "run.db", "agents.git"}
    assert not (played.run.folder / "agents.git" / "hooks").exists()


def test_agents_in_the_archive_are_what_was_put_there(played):
    names = {agent.rationale: agent.id for agent in played.run.tree.agents}
    assert all(played.run.source(names[act]) == source for act, source in played.sources.items())


def test_hooks_links_and_odd_names_of_a_child_are_plain_data(played):
    child = played.run.repository.source(played.hostile["improve_hooks_and_links"][0].born.outcome.commit)
    assert (child["passwd"].mode, child["passwd"].data) == (0o120000, b"/etc/passwd")
    assert (child["outside"].mode, child["outside"].data) == (0o120000, str(played.outside).encode())
    assert {"new\nline.txt", "\x1b[31mred.txt", ".gitattributes", ".githooks/post-checkout"} <= child.keys()
    assert not [name for name in child if ".git" in name.split("/")]


def test_the_host_process_did_not_swell(played):
    # Reading back up to 128 MB of one agent's files takes several times that while they are unpacked and compared.
    assert played.grown_mb < 1500


def test_calls_beyond_the_limit_are_refused_and_free(played):
    (end,) = played.hostile["solve_thousand_calls"]
    assert 0 < end.cost.usage.calls <= 80
    assert re.search(rb"403: [1-9]", played.trace("solve_thousand_calls", "log"))


def test_malformed_requests_are_answered_and_not_paid(played):
    log = played.trace("solve_malformed_requests", "log")
    # Six are well-formed JSON with odd values, which are for the provider to refuse.
    assert played.hostile["solve_malformed_requests"][0].cost.usage.calls <= 6
    assert b"HTTPError 400" in log
    assert b"HTTPError 401" in log
    assert b"HTTPError 5" not in log
    assert b"bodies" in log


def test_nothing_hidden_is_found(played):
    assert b"found: []" in played.trace("solve_look_for_hidden_tests", "log")


def test_no_socket_reaches_anything(played):
    assert b"reached: []" in played.trace("solve_open_sockets", "log")


def test_only_the_sandboxes_own_folders_can_be_written(played):
    log = played.trace("solve_write_outside", "log").decode()
    written = set(re.findall(r"write_text \('written from inside',\) did", log))
    refused = len(re.findall(r"write_text .* failed", log))
    assert written
    assert refused >= 9, log


def test_output_is_cut(played):
    assert len(played.trace("solve_print_a_gigabyte", "log")) <= 200_100
