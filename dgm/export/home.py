"""An agent for its owner: its files as a git repository with a branch for each step of its lineage, a patch, a text.

The commits are new ones with titles that say what changed; those of ``agents.git`` all have one title, so that their
ids depend on content and lineage alone. No hook, filter or setting takes part, as in ``branches``.
"""

from collections.abc import Mapping, Sequence
from html import escape
from importlib.resources import files
from pathlib import Path
from string import Template

from dgm.analysis.lineage import Lineage, LineageStep
from dgm.analysis.summary import models_of
from dgm.archive.git_process import run_git
from dgm.archive.identity import identity_of
from dgm.archive.objects import scratch_writer
from dgm.archive.run import Run
from dgm.domain import Agent, CommitId, Tally
from dgm.errors import AgentFault
from dgm.export.branches import copy_objects, make_git_folder
from dgm.export.fresh import new_file, new_folder
from dgm.export.standalone import inline_code
from dgm.meta.contract import read_contract
from dgm.meta.seed_origin import SeedOrigin, load_origin
from dgm.show.safe import neutralise, one_line

TITLE_CHARS = 72
NAME_CHARS = 30
"""Characters shown of a run's name."""
MAIN = "main"
_BY = "dgm <dgm@localhost>"


def write_home(run: Run, agent: Agent, target: Path) -> int:
    """Make a new folder with an agent's files, as a git repository; return the number of files.

    The branch ``agents/N`` ends with the step that made agent N of the lineage; ``main`` is the agent itself. Where the
    seed came from a git repository, the first commit is the one it came from, or follows it. Earlier history is not
    there, as in a shallow clone: ``git fetch --unshallow`` of the repository brings it, and a push needs none.

    Raises:
        UserError: the folder is not empty or cannot be made, or git is not installed.
        ArchiveCorrupt: a commit is missing or damaged.
        Infrastructure: git takes longer than two minutes for one step.
    """
    steps = list(Lineage(run.tree, agent.id).steps(run))
    with new_folder(target) as draft:
        git = draft / ".git"
        make_git_folder(git, MAIN, f"agent {agent.id} of {identity_of(run)}")
        trees = [CommitId(run.repository.tree_of(step.agent.commit)) for step in steps]
        copy_objects(run, trees, git)
        origin = load_origin(run.config, str(run.folder / "run.json"))
        last: CommitId | None = CommitId(origin.commit) if origin else None
        for step, tree in zip(steps, trees, strict=True):
            if origin and not step.agent.parents and origin.tree == tree:
                _put_original(origin, git)
            else:
                last = _put_commit(run, step, tree, last, git)
                if origin and not step.agent.parents:
                    _end_history(last, git)
            assert last is not None
            for name in (f"agents/{step.agent.id}", MAIN):
                _name_branch(git, name, last)
        run_git(git, "--work-tree=..", "read-tree", "-u", "--reset", "HEAD")
        (git / "info" / "attributes").unlink()
    return len(run.source(agent.id))


def _put_original(origin: SeedOrigin, git: Path) -> None:
    """Put the commit that the seed came from into an export; its own history stays where it is."""
    scratch_writer(git / "objects")("commit", origin.data)
    if origin.has_parents:
        _end_history(CommitId(origin.commit), git)


def _end_history(commit: CommitId, git: Path) -> None:
    """Let the history end at a commit whose parents are not there, as in a shallow clone."""
    (git / "shallow").write_text(f"{commit}\n")


def _name_branch(git: Path, name: str, commit: CommitId) -> None:
    ref = git / "refs" / "heads" / name
    ref.parent.mkdir(exist_ok=True)
    ref.write_text(f"{commit}\n")


def _put_commit(run: Run, step: LineageStep, tree: str, parent: CommitId | None, git: Path) -> CommitId:
    signature = f"{_BY} {int(run.config.get('created', 0))} +0000"
    lines = [f"tree {tree}", *([f"parent {parent}"] if parent else [])]
    lines += [f"author {signature}", f"committer {signature}", "", commit_message(run, step)]
    return CommitId(scratch_writer(git / "objects")("commit", "\n".join(lines).encode()))


def commit_message(run: Run, step: LineageStep) -> str:
    """Return the message of a step's commit: what changed, and where that comes from."""
    agent, name = step.agent, one_line(run.name, NAME_CHARS)
    rest = [
        f"{_tally_text(step.own)} of its own evaluations resolved.",
        f"Commit {agent.commit} of the archive.",
    ]
    if not agent.parents:
        return "\n\n".join([f"Agent {agent.id}, from which the run {name} started", " ".join(rest)]) + "\n"
    said = neutralise(" ".join(agent.rationale.split()))
    title = one_line(said or _describe_change(step), TITLE_CHARS)
    whole = [said] if len(said) > TITLE_CHARS else []
    operator = one_line(agent.operator, NAME_CHARS)
    made = f"Agent {agent.id} of the run {name}, made from agent {agent.parents[0]} by {operator}."
    return "\n\n".join([title, *whole, " ".join([made, *rest])]) + "\n"


def _describe_change(step: LineageStep) -> str:
    """Return a title for a step whose maker said nothing of it."""
    paths = changed_files(step.patch)
    more = f" and {len(paths) - 1} more" if len(paths) > 1 else ""
    return f"Change {neutralise(paths[0])}{more}" if paths else "Change the agent"


def write_patch(run: Run, agent: Agent, target: Path) -> int:
    """Write what a whole lineage changed, against the seed, to a new file; return the number of bytes.

    Raises:
        UserError: the file is there already, or cannot be written.
        ArchiveCorrupt: a commit is missing or damaged.
    """
    patch = run.repository.diff(run.tree.agents[0].commit, agent.commit)
    with new_file(target) as draft:
        draft.write_bytes(patch)
    return len(patch)


def write_request(run: Run, agent: Agent, target: Path) -> int:
    """Write the text of a pull request that proposes an agent's change to a new file; return the number of steps.

    Raises:
        UserError: the file is there already, or cannot be written.
        ArchiveCorrupt: a commit is missing or damaged.
    """
    steps = list(Lineage(run.tree, agent.id).steps(run))[1:]
    with new_file(target) as draft:
        text = Template(files("dgm.export").joinpath("request.md").read_text(encoding="utf-8"))
        draft.write_text(text.substitute(_request_values(run, agent, steps)), encoding="utf-8")
    return len(steps)


def _request_values(run: Run, agent: Agent, steps: Sequence[LineageStep]) -> Mapping[str, str]:
    return {
        "title": _title(steps),
        "steps": "\n".join(map(_step_line, steps))
        or "Nothing: this is the agent from which the run started.",
        "run": inline_code(run.name),
        "benchmark": inline_code(str(run.settings().get("benchmark", ""))),
        "model": inline_code(models_of(run)["solve"]),
        "own": _tally_text(run.tree.own(agent.id)),
        "seed": _tally_text(run.tree.own(run.tree.agents[0].id)),
        "check": inline_code(_check_text(run, agent)),
    }


def _step_line(step: LineageStep) -> str:
    said = " ".join(step.agent.rationale.split()) or f"a change by {step.agent.operator}"
    return f"- {_escape_markup(said)} ({', '.join(map(inline_code, changed_files(step.patch)))})"


def _escape_markup(text: str) -> str:
    """Return the text for Markdown, so that no element in it is read as one."""
    return escape(neutralise(text), quote=False)


def _title(steps: Sequence[LineageStep]) -> str:
    if len(steps) == 1:
        said = neutralise(" ".join(steps[0].agent.rationale.split()))
        return one_line(said or _describe_change(steps[0]), TITLE_CHARS)
    return f"Improve the agent in {len(steps)} steps"


def _check_text(run: Run, agent: Agent) -> str:
    try:
        return one_line(" ".join(read_contract(run.source(agent.id)).check), 120)
    except AgentFault:
        return "its own check"


def changed_files(patch: bytes) -> list[str]:
    """Return the paths that a patch of dgm's own changes, sorted."""
    lines = patch.decode("utf-8", "replace").splitlines()
    return sorted({line.rpartition(" b/")[2] for line in lines if line.startswith("diff --git ")})


def _tally_text(tally: Tally) -> str:
    return f"{tally.resolved} of {tally.n}"
