"""The order of work: localise by two questions, repair by several samples, validate, take the majority's patch."""

import os
import re

from agent import localise, patches, prompts
from agent.tools import run
from agent.workspace import Workspace

SAMPLES = 5
TEMPERATURE = 0.8
SCRIPT_TIMEOUT_S = 30
MOST_EVIDENCE = 8000


def solve(job, model):
    """Work on a job; True when the order is through, with a patch or without."""
    workspace = Workspace(job["workdir"])
    candidates, script = [], None
    try:
        context = localised(job, model)
        if workspace.test(model.left_s())[0] == 1 and job.get("kind") != "improve":
            script = reproduction(job, model, context, workspace)
        for number in range(SAMPLES):
            model.temperature = TEMPERATURE if number else 0.0
            candidate = repair(job, model, context, workspace, script)
            candidates += [candidate] if candidate else []
        return True
    finally:
        best = patches.choose(candidates)
        workspace.restore(best.state if best else workspace.start)
        print("%d candidates, %s" % (len(candidates), best.key[:200] if best else "none chosen"))
        workspace.close()


def localised(job, model):
    """Return the part of the repository that matters, as text."""
    root = job["workdir"]
    paths = localise.list_files(root)
    listing = "=== The files ===\n" + "\n".join(paths)
    if job.get("evidence"):
        listing += "\n\n=== Earlier work ===\n" + localise.read(job["evidence"], "README.md")[:MOST_EVIDENCE]
    answer = ask(job, model, prompts.FILES, listing)
    files = localise.read_paths(answer, paths) or localise.rank(job["problem"], root, paths)[:3]
    print("files: %s" % ", ".join(files))
    outline = "\n".join("### %s\n%s" % (path, localise.skeleton(localise.read(root, path))) for path in files)
    places = localise.PLACE.findall(ask(job, model, prompts.PLACES, "=== Definitions ===\n" + outline))
    return "=== The code ===\n" + localise.show(root, files, places)


def reproduction(job, model, context, workspace):
    """Return a script that shows the problem in the repository as it is; None if the model writes none that does."""
    blocks = re.findall(
        r"^```(?:python|py)?\n(.*?)^```", ask(job, model, prompts.REPRODUCE, context), re.M | re.S
    )
    script = blocks[-1] if blocks else ""
    return script if script and run_script(script, workspace) == "REPRODUCED" else None


def run_script(script, workspace):
    """Run a reproduction in the repository, and undo what it writes; return its verdict."""
    state, path = workspace.save(), os.path.join(workspace.store, "reproduce.py")
    with open(path, "w", encoding="utf-8") as file:
        file.write(script)
    env = dict(os.environ, PYTHONPATH=workspace.workdir)
    _, output = run("python3 '%s'" % path, workspace.workdir, SCRIPT_TIMEOUT_S, env)
    workspace.restore(state)
    verdicts = re.findall(r"\b(REPRODUCED|RESOLVED|OTHER)\b", output)
    return verdicts[-1] if verdicts else "OTHER"


def repair(job, model, context, workspace, script):
    """Return an applied and validated patch; None if the answer cannot be applied or changes nothing."""
    workspace.restore(workspace.start)
    blocks = patches.BLOCK.findall(ask(job, model, prompts.REPAIR, context))
    fault = patches.apply(workspace.workdir, blocks)
    state = workspace.save()
    if fault or state == workspace.start:
        print("not a patch: %s" % (fault or "nothing changes"))
        return None
    files = {path: localise.read(workspace.workdir, path) for path, _, _ in blocks}
    failures = 1 - workspace.test(model.left_s())[0]
    reproduced = int(bool(script) and run_script(script, workspace) != "RESOLVED")
    print("candidate: %.2f of the tests' score missing, reproduction %s" % (failures, reproduced))
    return patches.Candidate(state, patches.normal_form(files), failures, reproduced)


def ask(job, model, step, context):
    return model.ask(prompts.question(job, step, context))["content"]
