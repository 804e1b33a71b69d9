"""The steps of ``action.yml``: search within a night's budget, promote, and propose the certified agent.

Each step looks at the run and the repository, not at what an earlier step said. So a night that failed half-way is
finished by the next one, and an agent is proposed once.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import dgm
from dgm.errors import DgmError, UserError
from dgm.render.safe import one_line

CERTIFICATE = ".certificate.json"
"""Ending of the certificate's file, which lies beside the agent's folder as its provenance does."""
GIT = ("-c", "user.name=dgm", "-c", "user.email=dgm@localhost", "-c", "core.hooksPath=/dev/null")
GITHUB = ("-c", "credential.helper=", "-c", "credential.helper=!gh auth git-credential")
URLS = ("--json", "url", "--jq", ".[].url")
LINE_CELLS = 1_000
BODY = Path(__file__).with_name("pull-request.md")


def search() -> None:
    """Begin the run, or continue it with the budget of another night."""
    usd, evaluations = read_number("MAX_USD"), round(read_number("MAX_EVALUATIONS", "0"))
    if (archive() / read_input("RUN") / "run.json").exists():
        with dgm.open(archive() / read_input("RUN")) as before:
            spent, graded = before.spent.usd, before.view.evaluations.graded
            done = before.resume(
                max_usd=spent + usd, max_evaluations=graded + evaluations if evaluations else None
            )
    else:
        archive().mkdir(parents=True, exist_ok=True)
        done = dgm.evolve(
            read_input("CONFIG"),
            name=read_input("RUN"),
            agent=Path(read_input("AGENT")).resolve(),
            max_usd=usd,
            max_evaluations=evaluations or None,
        )
    with done as run:
        view = run.view
        counts = f"{view.agents} agents, {view.evaluations.graded} evaluations, {run.spent.usd:.2f} USD"
        summarise(f"{run.ending.message}; {counts}")


def promote() -> None:
    """Perform a round of promotion if there is a new best agent, or finish the one that was begun."""
    usd = read_number("PROMOTION_USD", read_input("MAX_USD"))
    view = dgm.promote(archive() / read_input("RUN"), max_usd=usd)
    certified = view.promotions.certified if view.promotions else None
    write_output("certified", "" if certified is None else str(certified))
    summarise(
        f"promotion: {view.outcome}" + ("" if certified is None else f"; agent {certified} is certified")
    )


def propose() -> None:
    """Push a branch with the certified agent and open a pull request, unless there is one."""
    with dgm.open(archive() / read_input("RUN")) as run:
        promotions = run.view.promotions
        if promotions is None or promotions.certified is None:
            summarise("no agent is certified, so none is proposed")
            return
        number, target = promotions.certified, agent_folder()
        branch = f"dgm/{run.name}-agent-{number}"
        # A merged branch may be gone, and one may be there without a pull request: that failed the night before.
        if before := call("gh", "pr", "list", "--head", branch, "--state", "all", *URLS):
            summarise(f"agent {number} was proposed before: {before}")
            return
        (certificate,) = (run.folder / "certificates").glob(f"round-*-agent-{number}.json")
        title = f"Certified agent {number} of run {run.name}"
        if not git("ls-remote", "--heads", "origin", f"refs/heads/{branch}", github=True):
            git("checkout", "--quiet", "-B", branch)
            files = write_files(run, number, target, certificate)
            git("add", "--all", "--force", "--", *map(str, files))
            git("commit", "--quiet", "--message", title)
            git("push", "--quiet", "origin", f"{branch}:refs/heads/{branch}", github=True)
        body = describe(run, certificate, target)
    with tempfile.NamedTemporaryFile("w", suffix=".md", encoding="utf-8") as file:
        file.write(body)
        file.flush()
        words = ("--title", title, "--body-file", file.name, "--head", branch, "--base", read_input("BASE"))
        address = call("gh", "pr", "create", *words)
    write_output("pull-request", address)
    summarise(f"agent {number} is proposed: {address}")


def write_files(run: dgm.Evolution, number: int, target: Path, certificate: Path) -> list[Path]:
    """Replace the agent's files, write its documents and its certificate beside them, and return their paths."""
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, target.name)
        exported = run.export(number, f"{source}/")
        shutil.rmtree(source / ".git")
        shutil.rmtree(target, ignore_errors=True)
        shutil.copytree(source, target, symlinks=True)
        documents = [shutil.copy(document, target.parent) for document in exported.documents]
    sealed = target.with_name(target.name + CERTIFICATE)
    shutil.copy(certificate, sealed)
    return [target, sealed, *map(Path, documents)]


def describe(run: dgm.Evolution, certificate: Path, target: Path) -> str:
    """Return the text of the pull request. It has numbers only, and nothing that an agent or a model wrote."""
    facts = json.loads(certificate.read_text(encoding="utf-8"))
    test, path = facts["test"], target.relative_to(Path.cwd())
    promotions, view = run.view.promotions, run.view
    return BODY.read_text(encoding="utf-8").format(
        agent=promotions.certified,
        run=run.name,
        incumbent="the seed" if test["promotions"] == 0 else "the agent certified before",
        tasks=facts["tasks"],
        wins=test["wins"],
        losses=test["losses"],
        p=test["p_value"],
        level=test["level"],
        alpha=facts["alpha"],
        low=test["gain"][0],
        high=test["gain"][1],
        suite=facts["suite"],
        version=facts["version"],
        digest=facts["digest"],
        usd=view.spend.usd,
        tokens=run.spent.tokens,
        evaluations=view.evaluations.graded,
        certificate=f"{path}{CERTIFICATE}",
        path=path,
    )


def agent_folder() -> Path:
    """Return the agent's folder, which must be below the repository's and none of git or GitHub.

    Raises:
        UserError: it is not.
    """
    path, root = Path(read_input("AGENT")).resolve(), Path.cwd()
    if (
        not path.is_relative_to(root)
        or path == root
        or path.relative_to(root).parts[0] in (".git", ".github")
    ):
        raise UserError(
            f"{path}: must be a folder below {root}, and not in .git or .github", argument="agent"
        )
    return path


def archive() -> Path:
    """Return the folder of runs."""
    return Path(os.environ["DGM_ARCHIVE"])


def read_input(name: str, default: str | None = None) -> str:
    """Return an input of the action.

    Raises:
        UserError: it is empty and has no default.
    """
    value = os.environ.get(f"INPUT_{name}", "") or default
    if value is None:
        raise UserError("must be set", argument=name.lower().replace("_", "-"))
    return value


def read_number(name: str, default: str | None = None) -> float:
    """Return an input of the action that is a number.

    Raises:
        UserError: it is none.
    """
    value = read_input(name, default)
    try:
        return float(value)
    except ValueError as error:
        raise UserError(f"{value!r} is no number", argument=name.lower().replace("_", "-")) from error


def write_output(name: str, value: str) -> None:
    """Set an output of the step."""
    with Path(os.environ["GITHUB_OUTPUT"]).open("a", encoding="utf-8") as file:
        file.write(f"{name}={value}\n")


def summarise(text: str) -> None:
    """Print a line and write it on the job's page; a line of a provider's own could be a command to GitHub."""
    text = one_line(text, LINE_CELLS)
    sys.stdout.write(f"{text}\n")
    with Path(os.environ["GITHUB_STEP_SUMMARY"]).open("a", encoding="utf-8") as file:
        file.write(f"{text}\n\n")


def git(*words: str, github: bool = False) -> str:
    """Return git's output; ``github`` lets it use the token."""
    return call("git", *GIT, *(GITHUB if github else ()), *words)


def call(*command: str) -> str:
    """Return a program's output; the keys of providers are not in its environment."""
    variables = {name: value for name, value in os.environ.items() if not name.endswith("_API_KEY")}
    return subprocess.run(
        command, env=variables, stdout=subprocess.PIPE, text=True, check=True
    ).stdout.strip()


if __name__ == "__main__":
    try:
        {"search": search, "promote": promote, "propose": propose}[sys.argv[1]]()
    except (DgmError, subprocess.CalledProcessError) as error:
        sys.exit(f"::error::{one_line(str(error), LINE_CELLS)}")
