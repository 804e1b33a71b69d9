"""What the model is asked."""

SOLVE = "You are a programmer. A problem in a repository is to be solved by a small change."
IMPROVE = """You are a programmer. The repository is the source of a coding agent: your own. It is to be
changed so that it solves more tasks: its prompts, tools, loop or limits. Write nothing about a particular
task."""

FILES = """Which files have to be changed? Write their paths, the most likely one first, each on a line of
its own, at most five. Write nothing else."""
PLACES = """These are the definitions in the files. Which classes, functions or lines have to be changed,
or read to make the change? Write each on a line of its own, as `path: name` or `path: line number`. Write
nothing else."""
REPAIR = """Write the change. Say in a few lines what the cause is, then write one or more blocks of this
form:

### path/of/the/file.py
<<<<<<< SEARCH
lines of the file, exactly as they are
=======
lines to put in their place
>>>>>>> REPLACE

The SEARCH part must occur exactly once in the file, indentation included. An empty SEARCH part makes a
new file."""
REPRODUCE = """Write a Python script that shows the problem, to be run at the top of the repository. It
prints REPRODUCED if the problem is there, RESOLVED if it is solved, and OTHER if something else goes
wrong. Write it as one block of Python."""


def question(job, step, context):
    """Return the messages of one question; each stands alone."""
    system = IMPROVE if job.get("kind") == "improve" else SOLVE
    text = "=== The problem ===\n%s\n\n%s\n\n=== Your answer ===\n%s" % (job["problem"], context, step)
    return [{"role": "system", "content": system}, {"role": "user", "content": text}]
