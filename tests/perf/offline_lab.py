"""A developer's laboratory for the offline model: a scaffold folder on the starter tasks, without containers.

    python tests/perf/offline_lab.py --agent archive/seeds/plain [--tasks 'ledger-*'] [--split search] [--verbose]

It runs the scaffold's program on this machine with no sandbox around it, so it is only for scaffolds that are
trusted: the seed and its hand-made variants. Results are a table; nothing is kept.
"""

import argparse
import fnmatch
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import tomllib
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from dgm.messages import Message, Reply, Request, RequestRefused, Role, Tool, ToolCall
from dgm.offline import decide

STARTER = Path(__file__).parents[2] / "benchmarks" / "starter"
TIME_LIMIT_S = 120


@dataclass
class Ledger:
    """What passed over the wire for one task."""

    requests: list[Request] = field(default_factory=list)
    replies: list[Reply] = field(default_factory=list)
    seconds: float = 0.0
    error: str = ""


@dataclass(frozen=True)
class Outcome:
    """One task tried by one scaffold."""

    task: str
    kind: str
    solved: bool
    calls: int
    seconds: float
    model_seconds: float
    note: str
    ledger: Ledger


def parse(body: dict) -> Request:
    """An OpenAI chat request as a neutral one."""
    messages = []
    for item in body["messages"]:
        calls = tuple(
            ToolCall(call["id"], call["function"]["name"], call["function"]["arguments"])
            for call in item.get("tool_calls") or []
        )
        text = item.get("content") or ""
        messages.append(Message(Role(item["role"]), text, calls, item.get("tool_call_id", "")))
    tools = [
        Tool(t["function"]["name"], t["function"].get("description", ""), t["function"].get("parameters", {}))
        for t in body.get("tools") or []
    ]
    return Request(messages, tools, body.get("model", ""), body.get("temperature"))


def render(reply: Reply) -> dict:
    """A neutral reply as an OpenAI chat completion."""
    message: dict = {"role": "assistant", "content": reply.text}
    if reply.calls:
        message["tool_calls"] = [
            {"id": c.id, "type": "function", "function": {"name": c.name, "arguments": c.arguments}}
            for c in reply.calls
        ]
    return {
        "choices": [{"index": 0, "message": message, "finish_reason": str(reply.stop)}],
        "object": "chat.completion",
    }


class Server:
    """A chat-completions endpoint on the loopback; each task has a path of its own."""

    def __init__(self, call_limit: int) -> None:
        self.ledgers: dict[str, Ledger] = {}
        outer = self

        class Answer(BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                status, answer = outer.answer(self.path.split("/")[1], body, call_limit)
                data = json.dumps(answer).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *arguments):
                pass

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Answer)
        threading.Thread(target=self.http.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self.http.server_port}"

    def answer(self, name: str, body: bytes, call_limit: int) -> tuple[int, dict]:
        ledger = self.ledgers[name]
        if len(ledger.replies) >= call_limit:
            return 429, {"error": {"message": "call limit", "code": "call_limit"}}
        started = time.perf_counter()
        try:
            request = parse(json.loads(body))
            ledger.requests.append(request)
            reply = decide(request)
        except RequestRefused as refusal:
            return 400, {"error": {"message": str(refusal), "code": refusal.code}}
        except Exception as error:  # noqa: BLE001  (shown in the table)
            import traceback

            ledger.error = traceback.format_exc()
            return 500, {"error": {"message": repr(error)}}
        finally:
            ledger.seconds += time.perf_counter() - started
        ledger.replies.append(reply)
        return 200, render(reply)


def attempt(agent: Path, task: Path, server: Server) -> Outcome:
    """Lets the scaffold work on a task and grades what it leaves."""
    meta = tomllib.loads((task / "task.toml").read_text())
    ledger = server.ledgers[task.name] = Ledger()
    with tempfile.TemporaryDirectory() as folder:
        work, program = Path(folder) / "work", Path(folder) / "agent"
        shutil.copytree(STARTER / "repos" / meta["repo"], work, ignore=shutil.ignore_patterns("__pycache__"))
        shutil.copytree(agent, program, ignore=shutil.ignore_patterns("__pycache__"))
        git = ["git", "-c", "user.name=lab", "-c", "user.email=lab@localhost"]
        subprocess.run([*git, "init", "-q"], cwd=work, check=True)
        subprocess.run([*git, "apply", str((task / "start.patch").resolve())], cwd=work, check=True)
        subprocess.run([*git, "add", "-A"], cwd=work, check=True)
        subprocess.run([*git, "commit", "-qm", "start"], cwd=work, check=True)
        job = {"kind": "solve", "problem": (task / "problem.md").read_text(), "workdir": str(work)}
        started = time.perf_counter()
        note = _run_agent(program, job, f"{server.url}/{task.name}")
        seconds = time.perf_counter() - started
        solved = _graded(work, task, [*meta["fail_to_pass"], *meta.get("pass_to_pass", [])])
    kind = f"{meta['statement'][0].upper()} {meta['kind']} {meta['difficulty']}"
    last = ledger.replies[-1].text if ledger.replies else ""
    note = ledger.error.strip().split("\n")[-1] if ledger.error else note
    return Outcome(
        task.name, kind, solved, len(ledger.replies), seconds, ledger.seconds, note or last[:40], ledger
    )


def _environment(**more: str) -> dict[str, str]:
    return {
        "PATH": os.environ["PATH"],
        "PYTHONHASHSEED": "0",
        "PYTHONDONTWRITEBYTECODE": "1",
        "LANG": "C.UTF-8",
        **more,
    }


def _run_agent(program: Path, job: dict, url: str) -> str:
    file = program.parent / "job.json"
    file.write_text(json.dumps({**job, "time_limit_s": TIME_LIMIT_S}))
    environment = _environment(OPENAI_BASE_URL=url, OPENAI_API_KEY="none")
    command = tomllib.loads((program / "agent.toml").read_text())["agent"]["command"]
    import signal

    child = subprocess.Popen(
        ["prlimit", "--cpu=12", "--as=1500000000", *command, str(file)],
        cwd=program,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    try:
        _, err = child.communicate(timeout=TIME_LIMIT_S)
    except subprocess.TimeoutExpired:
        return "timed out"
    finally:
        try:
            os.killpg(child.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        for one in Path("/proc").iterdir():
            try:
                if one.name.isdigit() and os.readlink(one / "cwd").startswith(str(program.parent)):
                    os.kill(int(one.name), 9)
            except OSError:
                pass
    done = subprocess.CompletedProcess(command, child.returncode, b"", err)
    lines = done.stderr.decode(errors="replace").strip().split("\n")
    return lines[-1][:80] if done.returncode and lines[-1] else ""


def _graded(work: Path, task: Path, tests: list[str]) -> bool:
    for file in (task / "tests").glob("*.py"):
        shutil.copy(file, work / "tests" / file.name)
    command = [sys.executable, "-m", "unittest", *tests]
    try:
        done = subprocess.run(
            command, cwd=work, env=_environment(), capture_output=True, timeout=30, check=False
        )
    except subprocess.TimeoutExpired:
        return False
    return done.returncode == 0


def transcript(ledger: Ledger, width: int) -> str:
    """What was said, with results shortened."""
    rows: list[str] = []
    for number, (request, reply) in enumerate(zip(ledger.requests, ledger.replies, strict=False), 1):
        for message in request.messages[len(ledger.requests[number - 2].messages) + 1 if number > 1 else 0 :]:
            rows.append(f"   [{message.role}] {message.text[:width]}")  # noqa: PERF401
        rows.append(f"{number:3} {reply.text}")
        rows += [f"      -> {call.name} {call.arguments[:width]}" for call in reply.calls]
    return "\n".join(rows + ([ledger.error] if ledger.error else []))


def choose(pattern: str, split: str) -> list[Path]:
    """The task folders that match, by name."""
    found = []
    for folder in sorted((STARTER / "tasks").iterdir()):
        file = folder / "task.toml"
        matches = any(fnmatch.fnmatch(folder.name, one) for one in pattern.split(","))
        ready = file.exists() and (folder / "start.patch").exists()
        if matches and ready and tomllib.loads(file.read_text()).get("split") == split:
            found.append(folder)
    return found


def shown(o):
    print("+" if o.solved else "-", o.task, o.calls, o.note, file=sys.stderr, flush=True)
    return o


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--agent", type=Path, default=STARTER.parents[1] / "archive" / "seeds" / "plain")
    parser.add_argument("--tasks", default="*")
    parser.add_argument("--split", default="search")
    parser.add_argument("--verbose", action="store_true", help="print the transcripts")
    parser.add_argument("--width", type=int, default=600)
    parser.add_argument("--calls", type=int, default=60)
    parser.add_argument("--quiet", action="store_true", help="only the total")
    chosen = parser.parse_args()
    server = Server(chosen.calls)
    tasks = choose(chosen.tasks, chosen.split)
    with ThreadPoolExecutor(2) as pool:
        outcomes = list(pool.map(lambda task: shown(attempt(chosen.agent, task, server)), tasks))
    for outcome in outcomes:
        if not chosen.quiet:
            sign = "+" if outcome.solved else "-"
            print(
                f"{sign} {outcome.task:44} {outcome.kind:34} {outcome.calls:3} {outcome.seconds:5.1f}s  {outcome.note}"
            )
        if chosen.verbose:
            print(transcript(outcome.ledger, chosen.width))
    calls = sum(outcome.calls for outcome in outcomes)
    solved = [outcome for outcome in outcomes if outcome.solved]
    letters = " ".join(
        f"{letter}{sum(o.kind[0] == letter for o in solved)}/{sum(o.kind[0] == letter for o in outcomes)}"
        for letter in "TEP"
    )
    mean = sum(outcome.model_seconds for outcome in outcomes) / max(1, calls)
    print(
        f"solved {len(solved)} of {len(outcomes)} ({letters}); {calls} calls, {1000 * mean:.0f} ms each: {chosen.agent}"
    )
    print(" ".join(outcome.task for outcome in solved))


if __name__ == "__main__":
    main()
