"""The interpreter's process: runs blocks of code in one namespace. It imports nothing of the agent.

A request is a line of JSON, the code, on standard input; a line on standard output says that it ran. The code's own
output, that of its child processes included, goes to the file that is named on the command line.
"""

import ast
import json
import os
import subprocess
import sys
import traceback


def sh(command, timeout=60):
    """Run a shell command; return its output and, unless it is 0, its exit status."""
    words = ["bash", "-c", command]
    try:
        done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=timeout)
    except subprocess.TimeoutExpired:
        return "error: stopped after %s s" % timeout
    text = done.stdout.decode("utf-8", "replace")
    return text + "\nexit status %d" % done.returncode if done.returncode else text


def view(path, first=1, last=None):
    """Return lines of a file with their numbers."""
    with open(path, encoding="utf-8", errors="replace") as file:
        lines = file.read().split("\n")
    return "\n".join("%6d\t%s" % row for row in list(enumerate(lines, 1))[max(0, first - 1) : last])


def edit(path, old, new):
    """Replace a text that occurs exactly once in a file."""
    with open(path, encoding="utf-8", errors="surrogateescape", newline="") as file:
        text = file.read()
    if text.count(old) != 1:
        raise ValueError("the text occurs %d times in %s" % (text.count(old), path))
    with open(path, "w", encoding="utf-8", errors="surrogateescape", newline="") as file:
        file.write(text.replace(old, new))
    return "edited " + path


def execute(code, namespace):
    """Run code, and show the value of its last expression or what went wrong."""
    try:
        tree = ast.parse(code)
        last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
        exec(compile(tree, "<block>", "exec"), namespace)
        if last:
            value = eval(compile(ast.Expression(last.value), "<block>", "eval"), namespace)
            if value is not None:
                print(value if isinstance(value, str) else repr(value))
    except BaseException:
        # Also the end of the program, which a block may ask for.
        kind, error, frames = sys.exc_info()
        traceback.print_exception(kind, error, frames.tb_next)


def main(log):
    requests, answers = os.fdopen(os.dup(0)), os.fdopen(os.dup(1), "w")
    for number, target in ((0, os.devnull), (1, log), (2, log)):
        file = os.open(target, os.O_RDWR | os.O_APPEND)
        os.dup2(file, number)
        os.close(file)
    sys.path[0] = os.getcwd()
    namespace = {"__name__": "__main__", "sh": sh, "view": view, "edit": edit}
    for line in requests:
        execute(json.loads(line), namespace)
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        answers.write("done\n")
        answers.flush()


if __name__ == "__main__":
    main(sys.argv[1])
