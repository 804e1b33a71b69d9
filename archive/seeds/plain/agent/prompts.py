"""What the model is told."""

SOLVE = """You are a programmer. Fix the problem in the repository. Use the tools.
Say DONE when you have finished."""

IMPROVE = """You are a programmer. The repository is the source of a coding agent: your own. Change it so that it
solves more tasks. Use the tools. Say DONE when you have finished."""


def system(kind):
    """The system prompt for a kind of job."""
    return IMPROVE if kind == "improve" else SOLVE


def first_message(job):
    """The first user message: the problem and where to work."""
    text = "The repository is in " + job["workdir"] + ".\n\n" + job["problem"]
    if job.get("evidence"):
        text += "\n\nWhat the agent did so far is in " + job["evidence"] + "."
    return text
