"""SWE-bench: what an evaluation costs beside its parts, and listing the full size.

The bounds are 1.2 times the parts by hand, and 2 s for 2,294 instances. By hand means, with the engine's own
command-line client: start the instance's image, copy the workspace, run the agent, ``git diff``, remove; then start
it again, apply that patch and the hidden tests', run the test command, remove. Nothing is confined, checked, recorded
or parsed. It is done in two ways: one use of the client for each step, and all of a container in one use, which is
the least that it can cost. All are measured in turn, on a miniature instance whose tests take less than a second, and
once more with tests that wait for some seconds before: what dgm adds hardly grows with the tests, so it weighs most
where they are short.

    python tests/perf/bench_swebench.py [evaluation|listing ...] [--rounds 8]
"""

import argparse
import asyncio
import io
import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
from contextlib import asynccontextmanager
from pathlib import Path
from statistics import median

from dgm import assemble
from dgm.config import Settings
from dgm.domain import ActionId, Evaluate, Split
from dgm.sandboxes.choose import choose
from dgm.search.orders import EvaluateOrder

PLACE = Path(__file__).parents[1] / "docker" / "swebench"
DOCKERFILE = """\
FROM {base}
COPY repo /testbed
RUN cd /testbed && git init -q -b main && git add -A \\
    && git -c user.name=dgm -c user.email=dgm commit -q -m start \\
    && ln -sf /usr/bin/python3 /usr/local/bin/python
"""
CONTRACT = """\
[agent]
name = "fixed"
command = ["python3", "agent.py"]
check = ["python3", "agent.py", "--check"]
"""
AGENT = """\
import json, pathlib, subprocess, sys
here = pathlib.Path(__file__).resolve().parent
if sys.argv[1] != "--check":
    work = json.loads(pathlib.Path(sys.argv[1]).read_text())["workdir"]
    subprocess.run(["git", "apply", str(here / "fix.patch")], cwd=work, check=True)
"""
COPY, UNPACK = "cp -a /testbed/. /work", "tar -x -C /"
RUN = "python3 /agent/agent.py /job/job.json"
DIFF = "git add -A && git diff --cached --binary HEAD"
TESTS = "git apply /job/model.patch && git apply /job/tests.patch && {{ {command}; }}"
BARE = ("--network", "none", "--init", "--tmpfs", "/work:rw,exec", "-w", "/work")
START, END = ": '>>>>> Start Test Output'\n", "\n: '>>>>> End Test Output'"
LISTING = """\
import sys
from dgm.benchmarks.opening import open_suite
from dgm.domain import Split
engine = type("Engine", (), {"name": "none"})()
print(len(open_suite("swebench:" + sys.argv[1], engine).tasks(Split.SEARCH)))
print(*sorted({"swebench", "datasets", "docker", "pyarrow"} & set(sys.modules)))
"""
INSTANCES = 2294
WAITED_S = 5
"""A real instance's tests take longer, most often minutes."""


class Clock:
    """An engine that adds up how long its sandboxes were open, what they were used for included."""

    def __init__(self, engine):
        self.engine, self.name, self.seconds = engine, engine.name, 0.0

    def __getattr__(self, name):
        return getattr(self.engine, name)

    @asynccontextmanager
    async def open(self, spec):
        began = time.perf_counter()
        async with self.engine.open(spec) as sandbox:
            yield sandbox
        self.seconds += time.perf_counter() - began


def first_row() -> dict:
    """The instance that is measured."""
    return json.loads((PLACE / "instances.jsonl").read_text(encoding="utf-8").splitlines()[0])


def build(engine, row) -> None:
    """Makes the instance's image from the repository beside the instances."""
    with tempfile.TemporaryDirectory(prefix="dgm-bench-") as context:
        name = row["repo"].partition("/")[2]
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(PLACE / "repos" / name, Path(context, "repo"), ignore=ignored)
        dockerfile = DOCKERFILE.format(base=engine.build("polyglot-python"))
        Path(context, "Dockerfile").write_text(dockerfile, encoding="utf-8")
        docker("build", "-q", "--network", "none", "-t", row["image"], context)


def docker(*words: str, stdin: bytes = b"") -> bytes:
    """One use of the engine's client."""
    return subprocess.run(["docker", *words], input=stdin, check=True, capture_output=True).stdout


def packed(files) -> bytes:
    """A tar of files by path."""
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as tar:
        for path, text in files.items():
            info = tarfile.TarInfo(path)
            info.size = len(text)
            tar.addfile(info, io.BytesIO(text))
    return stream.getvalue()


def by_hand(container, row, agent) -> None:
    """The agent in one container, the tests in another."""
    job = {"job/job.json": json.dumps({"workdir": "/work"}).encode()}
    files = packed({**{f"agent/{path}": text.encode() for path, text in agent.items()}, **job})
    patch = container(row["image"], files, RUN, DIFF)
    files = packed({"job/model.patch": patch, "job/tests.patch": row["test_patch"].encode()})
    said = container(
        row["image"], files, TESTS.format(command=row["eval_script"].partition(START)[2].partition(END)[0])
    )
    assert b" passed" in said, said
    assert b" failed" not in said, said


def step_by_step(image: str, files: bytes, *commands: str) -> bytes:
    """What the last command says."""
    ident = docker("run", "-d", *BARE, image, "sleep", "600").decode().strip()
    try:
        docker("exec", ident, "sh", "-c", COPY)
        docker("exec", "-i", ident, "sh", "-c", UNPACK, stdin=files)
        return [docker("exec", ident, "sh", "-c", command) for command in commands][-1]
    finally:
        docker("rm", "-f", ident)


def at_once(image: str, files: bytes, *commands: str) -> bytes:
    """What the commands say, the container's only ones."""
    script = " && ".join([COPY, UNPACK, *commands])
    return docker("run", "--rm", "-i", *BARE, image, "sh", "-c", script, stdin=files)


async def measure(rounds: int, folder: Path, waited_s: int) -> None:
    """Prints what evaluations take by dgm and by hand, in turn."""
    row, recorder = first_row(), Clock(choose("docker"))
    build(recorder.engine, row)
    row["eval_script"] = row["eval_script"].replace(START, f"{START}sleep {waited_s}; ")
    (folder / "instances.jsonl").write_text(json.dumps(row) + "\n", encoding="utf-8")
    agent = {"agent.toml": CONTRACT, "agent.py": AGENT, "fix.patch": row["patch"]}
    seed = folder / "seed"
    seed.mkdir()
    for path, text in agent.items():
        (seed / path).write_text(text, encoding="utf-8")
    name = f"swebench:{folder / 'instances.jsonl'}"
    settings = Settings(model="offline", sandbox="docker", benchmark=name, seed_agent=str(seed))
    parts = assemble.RunParts(recorder, assemble.open_suite(name, recorder, settings.benchmarks))
    task = parts.benchmark.tasks(Split.SEARCH)[0].id
    ours, inside, steps, once = [], [], [], []
    with assemble.create(folder / "run", settings, parts) as run:
        async with assemble.open_worker(run, settings, parts) as worker:
            for n in range(rounds + 1):
                recorder.seconds = 0.0
                order = EvaluateOrder(
                    ActionId(n + 1), Evaluate(run.tree.agents[0].id, task), run.tree.agents[0]
                )
                began = time.perf_counter()
                outcome = await worker.perform(order)
                ours.append(time.perf_counter() - began)
                assert outcome.verdict == "resolved", outcome.reason
                inside.append(recorder.seconds)
                for container, times in ((step_by_step, steps), (at_once, once)):
                    began = time.perf_counter()
                    await asyncio.to_thread(by_hand, container, row, agent)
                    times.append(time.perf_counter() - began)
    # The first round derives the image.
    print(
        f"tests after {waited_s} s: first evaluation {ours[0]:.2f} s; others {median(ours[1:]):.2f} s", end=""
    )
    print(f" ({median(inside[1:]):.2f} s of it with a sandbox open)")
    for how, times in (("step by step", steps), ("all at once", once)):
        ratio = sum(ours[1:]) / sum(times[1:])
        pairs = median(a / b for a, b in zip(ours[1:], times[1:], strict=True))
        print(
            f"by hand, {how:<12} {median(times[1:]):5.2f} s   ratio {ratio:4.2f} (median of pairs {pairs:4.2f})"
        )


def synthetic(file: Path) -> None:
    """A file of the full data set's size: statements, patches and names of tests as long as theirs are."""
    repositories = ("django/django", "sympy/sympy", "psf/requests", "sphinx-doc/sphinx")
    row = first_row()
    row |= {"problem_statement": "Something is broken. " * 80, "test_patch": row["test_patch"] * 5}
    row |= {"PASS_TO_PASS": json.dumps([f"tests/test_some.py::Some::test_thing_{n}" for n in range(120)])}
    with file.open("w", encoding="utf-8") as lines:
        for n in range(INSTANCES):
            repo = repositories[n % len(repositories)]
            ident = f"{repo.replace('/', '__')}-{n}"
            lines.write(json.dumps({**row, "instance_id": ident, "repo": repo}) + "\n")


def measure_listing(rounds: int, folder: Path) -> None:
    """Prints how long a fresh Python takes to open the file and list its tasks."""
    file = folder / "full.jsonl"
    synthetic(file)
    times, idle = [], []
    for _ in range(rounds):
        began = time.perf_counter()
        subprocess.run([sys.executable, "-c", "pass"], check=True)
        idle.append(time.perf_counter() - began)
        began = time.perf_counter()
        done = subprocess.run(
            [sys.executable, "-c", LISTING, str(file)], check=True, capture_output=True, text=True
        )
        times.append(time.perf_counter() - began)
    count, heavy = done.stdout.split("\n")[:2]
    print(
        f"listing {count} instances ({file.stat().st_size / 1e6:.1f} MB): {median(times):.2f} s in a fresh process"
        f" (python -c pass: {median(idle):.2f} s); of swebench, datasets, docker, pyarrow imported: {heavy or 'none'}"
    )


def main() -> None:
    """Measures what is asked for; both by default."""
    parser = argparse.ArgumentParser()
    parser.add_argument("what", nargs="*", default=["evaluation", "listing"])
    parser.add_argument("--rounds", type=int, default=8)
    given = parser.parse_args()
    print(f"load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    with tempfile.TemporaryDirectory(prefix="dgm-bench-") as scratch:
        if "evaluation" in given.what:
            for waited_s, rounds in ((0, given.rounds), (WAITED_S, given.rounds // 2)):
                folder = Path(scratch, f"waited-{waited_s}")
                folder.mkdir()
                asyncio.run(measure(rounds, folder, waited_s))
        if "listing" in given.what:
            measure_listing(given.rounds, Path(scratch))
    print(f"load average {os.getloadavg()[0]:.1f} at the end")


if __name__ == "__main__":
    main()
