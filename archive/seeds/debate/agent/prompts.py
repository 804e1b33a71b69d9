"""What the model is told."""

SOLVE = """You are a programmer. Fix the problem in the repository. Use the tools. Hidden tests judge the
repository as you leave it. Remove your own scripts. Say DONE when you have finished."""

IMPROVE = """You are a programmer. The repository is the source of a coding agent: your own. Change it so
that it solves more tasks. Use the tools. `python3 -m agent --check` must pass. Write nothing about a
particular task. Say DONE when you have finished."""

AUTHORS = (
    "Make the smallest change that removes the cause.",
    "Reproduce the problem with a small script before you change anything.",
    "Run the tests before you change anything. Look for further places with the same fault.",
)
REBUT = """Some programmers, you among them, proposed changes for the same problem. Say in a few lines
which of them is right and what is wrong with the others. End with the number of the change that you would
hand in on a line of its own."""
JUDGE = """Several changes were proposed for a problem, and their authors debated them. You are the judge.
Decide which one solves the problem, also in cases that its tests do not cover. Think in a few lines, then
end with the number of the best one on a line of its own."""


def system(kind, guidance=""):
    """Return the system prompt of a kind of job, with guidance for one conversation."""
    return (IMPROVE if kind == "improve" else SOLVE) + ("\n\n" + guidance if guidance else "")


def first_message(job):
    """Return the first user message: the problem and where to work."""
    text = "The repository is in " + job["workdir"] + ".\n\n" + job["problem"]
    if job.get("evidence"):
        text += "\n\nWhat the agent did so far is in " + job["evidence"] + "; README.md there is the index."
    return text
