"""Texts for the model: the work order, the rules of acting, reminders, the first message."""

from itertools import islice
from pathlib import Path

from agent import changes, editing

MOST_LISTED = 200
LESSONS = Path(__file__).parents[1] / "memory" / "lessons.md"

SOLVE = """You are a programmer. Solve the problem in the repository.

Work in this order:
1. Understand. Find the code that the problem speaks of. Read it and the tests of it.
2. Reproduce the problem with a small script before you fix it. Find out which lines the failing example runs.
3. Fix the cause with a small change. Look for more than one possible fix and take the one that explains all symptoms.
4. Verify. Run the script again, then the tests around the change. If they fail, go back to step 1.
5. Remove your scripts from the repository, then submit.

Hidden tests judge the repository as you leave it. Nobody answers questions: decide yourself."""

IMPROVE = """You are a programmer. The repository is the source code of a coding agent: your own. Change it so that it
solves more problems than today.

Work in this order:
1. Look at the evidence, if there is any: its README.md is the index. See how the agent works and where it fails.
2. Choose one weakness that costs it problems of many kinds: of its prompts, tools, loop, memory or output limits. Never
   write anything about a particular problem into the source.
3. Read the code concerned, and change it. Small, complete changes survive; half-done ones are thrown away.
4. Verify: `python3 -m agent --check` and `python3 -m unittest discover -s tests -t .` must pass in the repository. Add
   a small test of what you changed.
5. Submit, with a line `Rationale: ` that says what you changed and why it helps."""

RULES = """
- The working directory and exported variables persist from one command to the next.
- A command may take {timeout} seconds. Start what takes longer, such as a server, with `&` and its output in a file.
- A long output is shown in part, with the name of a file that holds all of it.
- Commands cannot ask anything: use options such as --yes, and no editor or pager."""

NATIVE = """
Rules:
- Act by calling tools. You may call several tools in one reply; they run in their order.
- A reply without a call changes nothing. The work ends when you call `submit` twice: the first call shows your
  changes."""

TEXT = """
Act by writing blocks. Each reply holds a short thought, then one block with a shell command, which is run in the
repository:

```bash
grep -rn "name" --include='*.py' .
```

To change a file, write a block with its path and the exact old and new lines (or change it by a shell command):

```edit path/to/file.py
<<<<<<< OLD
exact lines of the file
=======
new lines
>>>>>>> NEW
```

To create a file, write a block with its path and its whole text:

```create path/to/file.py
text
```

When the problem is solved, write:

```bash
submit
```

Rules:
- Several edits and at most one shell command in one reply; then wait for the results. Do not make up results.
- A reply without a block changes nothing. The work ends when you submit twice: the first time shows your
  changes."""

REMINDER = {
    "tools": "Your reply calls no tool, so nothing was done. Call a tool, or `submit` if the work is finished.",
    "text": "Your reply holds no whole block that can be run. Write one such as\n\n```bash\nls\n```\n\nor `submit` "
    "in it if the work is finished.",
}
# The first turn of a conversation in text: small models follow an example better than rules.
FIRST_LOOK = "I look at the files first.\n\n```bash\n%s\n```"
GO_ON = "Go on with the next command: read the code that the problem speaks of."
WRITTEN = "You wrote a call as text, so nothing was done. Use the tools that you were given."
CUT = "Your reply was cut off at its length limit. Write less at once: shorter thoughts, smaller edits."
REPEATED = (
    "You did this before, and the result is the same. Do something else now: read the code that the problem speaks of, "
    "change a file, or run the tests."
)
LAST = "[Little time or few replies are left. Bring the repository into a good state, then submit.]"


def system(kind, actions, timeout_s):
    """The system prompt for a kind of job and a form of actions (tools or text)."""
    order, acting = IMPROVE if kind == "improve" else SOLVE, TEXT if actions == "text" else NATIVE
    text = order + "\n" + acting + RULES.replace("{timeout}", str(timeout_s))
    return text if kind == "improve" else text + lessons()


def lessons():
    """The lessons of earlier attempts at other problems; nothing if there are none."""
    if not LESSONS.is_file():
        return ""
    lines = LESSONS.read_text("utf-8", "replace").splitlines()
    found = [line for line in lines if line.startswith("- ")]
    return "\n\nLessons of earlier attempts:\n" + "\n".join(found) if found else ""


def first_message(job):
    """The first user message: where to work, the problem."""
    text = "The repository is in %s.\n\n%s" % (job["workdir"], job["problem"])
    if job.get("evidence"):
        evidence = "\n\nEvidence of what the agent did so far is in %s (read README.md there first)."
        text += evidence % job["evidence"]
    return readable(text)


def list_files(root):
    """A command that lists all files where they are few, else what stands at the top; and its output."""
    found = list(islice(changes.paths(root), MOST_LISTED + 1))
    few = len(found) <= MOST_LISTED
    command, output = ("find * -type f", "\n".join(found)) if few else ("ls -p", editing.view(root))
    return command, readable(output)


def readable(text):
    """A text without the bytes of file names that no request can hold."""
    return text.encode("utf-8", "replace").decode()
