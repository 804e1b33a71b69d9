"""The solid seed's loop against a scripted server that speaks the chat protocol."""

import json
import os
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import pairwise

import pytest

from tests.unit.seeds.conftest import SOLID

pytestmark = pytest.mark.starts_processes


class Provider:
    """Answers one request after another from a script and keeps what was asked; the last answer repeats."""

    def __init__(self):
        self.script = []
        self.asked = []
        outer = self

        class Answer(BaseHTTPRequestHandler):
            def do_POST(self):
                outer.asked.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
                answer = outer.script.pop(0) if len(outer.script) > 1 else outer.script[0]
                status, body = answer
                data = json.dumps(body).encode()
                if status == 0:
                    self.close_connection = True
                    return
                self.send_response(status)
                self.send_header("Retry-After", "0")
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *_):
                pass

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Answer)
        threading.Thread(target=self.http.serve_forever, args=(0.02,), daemon=True).start()
        self.url = f"http://127.0.0.1:{self.http.server_port}/v1"


@pytest.fixture
def provider(monkeypatch):
    server = Provider()
    monkeypatch.setenv("OPENAI_BASE_URL", server.url)
    monkeypatch.setenv("OPENAI_API_KEY", "token")
    yield server
    server.http.shutdown()
    server.http.server_close()


def said(text="", finish="stop", **calls):
    """Return an answer with a text and native calls: ``bash="ls"``, ``submit=""``."""
    given = [
        {
            "id": name,
            "type": "function",
            "function": {"name": name, "arguments": json.dumps({"command": value})},
        }
        for name, value in calls.items()
    ]
    message = {"role": "assistant", "content": text, **({"tool_calls": given} if given else {})}
    return 200, {"choices": [{"message": message, "finish_reason": finish}]}


def refused(status, text, code=None):
    return status, {"error": {"message": text, "code": code}}


SUBMIT = said(submit="")


def work(solid, provider, repository, *script, **job):
    provider.script = list(script)
    found = {"kind": "solve", "problem": "p", "workdir": str(repository), "time_limit_s": 60}
    return solid.loop.work({**found, **job})


def told(provider, number):
    """Return the texts that were new in a request."""
    before = provider.asked[number - 1]["messages"] if number else []
    return [message["content"] for message in provider.asked[number]["messages"][len(before) :]][1:]


def test_several_calls_run_and_the_second_submit_ends(solid, provider, repository):
    calls = said(bash="echo hi > new.txt", view="", submit="")
    assert work(solid, provider, repository, calls, SUBMIT) == 0
    assert (repository / "new.txt").read_text() == "hi\n"
    results = told(provider, 1)
    assert results[0] == "(no output)"
    assert results[1].startswith("error: view needs path")
    assert "+hi" in results[2]
    assert len(provider.asked) == 2


def test_a_reply_without_an_action_is_reminded_three_times(solid, provider, repository):
    assert work(solid, provider, repository, said("Hm.")) == 1
    assert len(provider.asked) == 4
    assert all("calls no tool" in told(provider, number)[-1] for number in (1, 2, 3))


def test_the_same_calls_with_the_same_results_end_the_work(solid, provider, repository):
    polls = [said(bash="echo x >> log; wc -l < log")] * 20
    assert work(solid, provider, repository, *polls, SUBMIT) == 0
    provider.asked.clear()
    assert work(solid, provider, repository, said(bash="ls")) == 1
    assert len(provider.asked) == 14
    assert [number for number in range(1, 14) if "did this before" in told(provider, number)[-1]] == list(
        range(2, 14)
    )


def test_a_name_that_is_no_text_can_be_asked_with(solid, provider, repository):
    (repository / os.fsdecode(b"\xff.txt")).touch()
    assert work(solid, provider, repository, SUBMIT) == 0
    assert "?.txt" in provider.asked[0]["messages"][1]["content"]


def test_half_a_character_of_a_reply_ends_nothing(provider, repository, tmp_path):
    provider.script = [said("\ud83d", submit=""), SUBMIT]
    (tmp_path / "job.json").write_text(json.dumps({"problem": "p", "workdir": str(repository)}))
    command = [sys.executable, "-B", "-m", "agent", str(tmp_path / "job.json")]
    done = subprocess.run(command, cwd=SOLID, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_done_ends_like_submit(solid, provider, repository):
    assert work(solid, provider, repository, said("DONE")) == 0
    assert len(provider.asked) == 2
    assert "Nothing is changed" in told(provider, 1)[-1]


@pytest.mark.parametrize(
    ("fault", "passes"),
    [
        (refused(429, "slow"), True),
        (refused(502, "bad gateway"), True),
        ((0, None), True),
        (refused(403, "the job's calls are used up", "action_limit_exceeded"), False),
        (refused(503, "the model cannot be reached now", "model_unavailable"), False),
        (refused(401, "no such key"), False),
    ],
)
def test_a_passing_fault_is_asked_again_and_a_lasting_one_ends_the_work(
    solid, provider, repository, fault, passes, monkeypatch
):
    monkeypatch.setattr(solid.model.time, "sleep", lambda _: None)
    assert work(solid, provider, repository, fault, fault, SUBMIT) == (0 if passes else 1)
    assert len(provider.asked) == (4 if passes else 1)
    assert provider.asked[0] == provider.asked[min(2, len(provider.asked) - 1)]


def test_a_full_context_is_made_shorter_and_asked_again(solid, provider, repository):
    script = [said(bash="seq 2000")] * 8
    full = refused(400, "maximum context length is 8192 tokens", "context_length_exceeded")
    assert work(solid, provider, repository, *script, full, full, SUBMIT) == 0
    sizes = [len(json.dumps(body)) for body in provider.asked[8:11]]
    assert all(later < earlier * 0.8 for earlier, later in pairwise(sizes))


def test_refused_tools_make_it_go_on_with_text(solid, provider, repository):
    block = said("```bash\nsubmit\n```")
    no_tools = refused(400, "this model does not support tools")
    assert work(solid, provider, repository, said(bash="ls"), no_tools, block) == 0
    assert "tools" in provider.asked[1]
    assert "tools" not in provider.asked[2]
    assert provider.asked[2]["messages"][4]["content"] == "```bash\nls\n```"


def test_a_call_written_as_text_twice_makes_it_go_on_with_text(solid, provider, repository):
    written = said('{"name": "bash", "arguments": {"command": "echo a > b"}}')
    assert work(solid, provider, repository, written, written, said("```bash\nsubmit\n```")) == 0
    assert "wrote a call as text" in told(provider, 1)[-1]
    assert (repository / "b").exists()
    assert "tools" not in provider.asked[2]


def test_the_job_may_fix_the_form_of_actions(solid, provider, repository):
    assert work(solid, provider, repository, said("```bash\nsubmit\n```"), actions="text") == 0
    assert all("tools" not in body for body in provider.asked)
    provider.asked.clear()
    assert work(solid, provider, repository, said("```bash\nls\n```"), actions="tools") == 1
    assert all("tools" in body for body in provider.asked)


def test_a_reply_that_was_cut_off_is_not_run(solid, provider, repository):
    cut = said("```bash\nrm a.py", finish="length")
    assert work(solid, provider, repository, cut, said("```bash\nsubmit\n```"), actions="text") == 0
    assert (repository / "a.py").exists()
    assert len(provider.asked[1]["messages"]) == len(provider.asked[0]["messages"]) == 4
    assert "cut off" in provider.asked[1]["messages"][-1]["content"]


def test_whole_blocks_of_a_reply_that_was_cut_off_are_run_and_its_rest_is_forgotten(
    solid, provider, repository
):
    cut = said("```bash\necho a > b\n```\n" + "And again. " * 90, finish="length")
    assert work(solid, provider, repository, cut, said("```bash\nsubmit\n```"), actions="text") == 0
    assert (repository / "b").read_text() == "a\n"
    assert "cut off" in told(provider, 1)[-1]
    assert provider.asked[1]["messages"][-2]["content"] == "```bash\necho a > b\n```"


def test_what_is_answered_again_and_again_is_asked_with_a_higher_temperature(solid, provider, repository):
    script = [said(bash="ls"), said(bash="ls"), said(bash="pwd"), said("Hm."), SUBMIT]
    assert work(solid, provider, repository, *script) == 0
    assert ["did this before" in told(provider, number)[-1] for number in (1, 2, 3)] == [False, True, False]
    assert [body["temperature"] > 0 for body in provider.asked] == [False, False, True, False, True, False]


def test_the_number_of_calls_and_the_time_end_the_work(solid, provider, repository):
    assert work(solid, provider, repository, said(bash="true"), calls=12) == 1
    assert len(provider.asked) == 12
    assert [number for number in range(1, 12) if "Little time or few" in told(provider, number)[-1]] == [7]
    assert work(solid, provider, repository, said(bash="sleep 9"), time_limit_s=1.5) == 1


def test_evidence_and_files_are_in_the_first_message(solid, provider, repository):
    work(solid, provider, repository, SUBMIT, kind="improve", evidence="/job/evidence")
    system, first = (message["content"] for message in provider.asked[0]["messages"])
    assert "coding agent: your own" in system
    assert "The repository is in " in first
    assert first.endswith("\na.py")
    assert "/job/evidence" in first
