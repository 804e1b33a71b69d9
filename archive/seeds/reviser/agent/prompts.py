"""What the model is told."""

SOLVE = """You are a programmer. Fix the problem in the repository. Use the tools. Hidden tests judge the
repository as you leave it. Remove your own scripts. Say DONE when you have finished."""

IMPROVE = """You are a programmer. The repository is the source of a coding agent: your own. Change it so
that it solves more tasks. Use the tools. `python3 -m agent --check` must pass. Write nothing about a
particular task. Say DONE when you have finished."""

PLANS = (
    "Reproduce the problem with a small script before you change anything.",
    "Run the tests before you change anything. Consider a cause that is not the obvious one.",
)
REFLECT = """An attempt at a problem is over. Say in at most ten lines what it assumed about the cause,
where it went wrong or what it did not try, and which different approach another attempt should take."""
REVISE = "An earlier attempt did not convince. Take a different approach. What was learned from it:\n"
COMBINE = """Two attempts at a problem are over. Write a plan of at most ten lines for a third one that
keeps what is right in either of them and avoids the mistakes of both."""
RECOMBINE = "Earlier attempts were compared. Follow this plan:\n"
REFINE = """The repository holds the most promising of some attempts, shown below. Check it against the
problem: remove what is not needed, and handle the cases that it forgets. Leave it as it is if nothing is
wrong with it. """
JUDGE = """Several changes were proposed for a problem. Decide which one solves it, also in cases that its
tests do not cover. Think in a few lines, then end with the number of the best one on a line of its
own."""


def system(kind, guidance=""):
    """Return the system prompt of a kind of job, with guidance for one conversation."""
    return (IMPROVE if kind == "improve" else SOLVE) + ("\n\n" + guidance if guidance else "")


def first_message(job):
    """Return the first user message: the problem and where to work."""
    text = "The repository is in " + job["workdir"] + ".\n\n" + job["problem"]
    if job.get("evidence"):
        text += "\n\nWhat the agent did so far is in " + job["evidence"] + "; README.md there is the index."
    return text
