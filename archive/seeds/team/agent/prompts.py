"""What the model is told."""

SOLVE = """You are a programmer. Fix the problem in the repository. Use the tools. Hidden tests judge the
repository as you leave it. Remove your own scripts. Say DONE when you have finished."""

IMPROVE = """You are a programmer. The repository is the source of a coding agent: your own. Change it so
that it solves more tasks. Use the tools. `python3 -m agent --check` must pass. Write nothing about a
particular task. Say DONE when you have finished."""

ORCHESTRATE = """You lead a team that works on a problem in a repository. Say what comes next. The first
word of your answer is one of LOCALISE, EDIT, CHECK or DONE; after it, tell the team member in one or two
sentences what to look at."""
ROLES = {
    "localise": "You find the place and change nothing: what you change is undone. End with DONE and a report: "
    "the files, functions and lines to change, and the cause.",
    "edit": "You make the change.",
    "check": "You check a change and make none: what you change is undone. End with DONE and a report. "
    "Its last line is VERDICT: PASS or VERDICT: FAIL.",
}
MEMBERS = {
    "localise": {
        "names": "Search for the names and words of the problem.",
        "failures": "Reproduce the problem, and follow the error to its cause.",
    },
    "edit": {
        "smallest": "Make the smallest change that removes the cause.",
        "tests-first": "Run the tests before you change anything, and again afterwards.",
        "reproduce": "Reproduce the problem with a script of yours, and run it again after the change.",
    },
    "check": {
        "tests": "Run the tests around the change, then all.",
        "review": "Read the change and its callers. Try inputs that the problem does not name.",
    },
}


def system(kind, guidance=""):
    """Return the system prompt of a kind of job, with guidance for one conversation."""
    return (IMPROVE if kind == "improve" else SOLVE) + ("\n\n" + guidance if guidance else "")


def first_message(job):
    """Return the first user message: the problem and where to work."""
    text = "The repository is in " + job["workdir"] + ".\n\n" + job["problem"]
    if job.get("evidence"):
        text += "\n\nWhat the agent did so far is in " + job["evidence"] + "; README.md there is the index."
    return text
