"""What the model is told."""

SOLVE = """You are a programmer. Fix the problem in the repository. Use the tools. Hidden tests judge the
repository as you leave it. Remove your own scripts from it. Say DONE when you have finished."""

IMPROVE = """You are a programmer. The repository is the source of a coding agent: your own. Change it so
that it solves more tasks. Use the tools. `python3 -m agent --check` must pass. Write nothing about a
particular task. Say DONE when you have finished."""

BUILD = """You begin with a shell. Build tools that make this work easier: small programs that search,
show, edit, run or analyse what you need for this very problem. Make one with create_tool; from then on
you can call it like any other tool, and by its name in the shell. Create a tool again to improve it. A
tool pays if it saves steps or mistakes: an editor that checks its edit, a search that shows code around
each match, a runner that shows failures alone."""
REFLECT = "Think about what you have done so far: would a new tool, or a better version of one, make the rest easier?"


def system(kind, guidance=""):
    """Return the system prompt of a kind of job, with guidance for one conversation."""
    return (IMPROVE if kind == "improve" else SOLVE) + ("\n\n" + guidance if guidance else "")


def first_message(job):
    """Return the first user message: the problem and where to work."""
    text = "The repository is in " + job["workdir"] + ".\n\n" + job["problem"]
    if job.get("evidence"):
        text += "\n\nWhat the agent did so far is in " + job["evidence"] + "; README.md there is the index."
    return text
