"""Localisation: from the repository to files, from files to definitions, from these to the text that is shown."""

import os
import re

SKIPPED = (".git", "__pycache__", "node_modules", ".venv", "target", "dist")
CODE = re.compile(r"(?!.*(?:^|/)tests?[/_]).*\.(?:py|js|ts|go|rs|java|c|cc|cpp|h|rb)")
DEFINITION = re.compile(
    r"\s*(?:(?:async|export|pub|static|public|private) )*(?:def|class|func|fn|function|interface)\b"
)
PLACE = re.compile(r"^[\s*`-]*([\w./-]+\.\w+)`?\s*:\s*`?([\w.]+)", re.M)
MOST_LISTED = 1500
MOST_FILES = 5
COMPLETE_UP_TO = 15000
MOST_SHOWN = 40000
BEFORE, AFTER = 10, 60


def list_files(root):
    """Return the paths of all files of a repository."""
    paths = []
    for folder, folders, names in os.walk(root):
        folders[:] = sorted(name for name in folders if name not in SKIPPED)
        paths += [os.path.relpath(os.path.join(folder, name), root) for name in sorted(names)]
    return paths[:MOST_LISTED]


def read(root, path):
    """Return a file's text; empty if it is none."""
    try:
        with open(os.path.join(root, path), encoding="utf-8", newline="") as file:
            return file.read()
    except (OSError, ValueError):
        return ""


def rank(problem, root, paths):
    """Return the code files that have most of the problem's words first, for where the model names no file."""
    words = set(re.findall(r"[a-z_]{4,}", problem.lower()))
    texts = {path: (path + " " + read(root, path)).lower() for path in paths if CODE.match(path)}
    return sorted(
        texts, key=lambda path: (-len(words.intersection(re.findall(r"[a-z_]{4,}", texts[path]))), path)
    )


def read_paths(text, known):
    """Return the known paths that an answer names, in its order; a name alone is enough if it is the only one."""
    paths = []
    for line in text.splitlines():
        name = re.sub(r"^[\s*`-]*(?:\d+[.)]\s*)?`?(?:\./)?|[`\s:,]+$", "", line)
        same = [path for path in known if os.path.basename(path) == name]
        paths += [name] if name in known else same if len(same) == 1 else []
    return list(dict.fromkeys(paths))[:MOST_FILES]


def skeleton(text):
    """Return the lines of a file that define something, with their numbers."""
    return "\n".join("%5d %s" % row for row in enumerate(text.splitlines(), 1) if DEFINITION.match(row[1]))


def show(root, paths, places):
    """Return the text of the chosen files: short ones complete, of long ones the chosen places with lines around."""
    parts = []
    for path in paths:
        text = read(root, path)
        wanted = [name for file, name in places if os.path.basename(file) == os.path.basename(path)]
        if len(text) > COMPLETE_UP_TO:
            lines = text.splitlines(keepends=True)
            numbers = chosen_lines(lines, wanted) or set(range(200))
            chosen = [(at, line) for at, line in enumerate(lines) if at in numbers]
            gaps = ["[lines left out]\n" if at and at - 1 not in numbers else "" for at, _ in chosen]
            text = "".join(gap + line for gap, (_, line) in zip(gaps, chosen))
        parts.append("### %s\n%s" % (path, text))
    return "\n".join(parts)[:MOST_SHOWN]


def chosen_lines(lines, wanted):
    """Return the indices of lines at named definitions, and at numbered lines."""
    names = {name.split(".")[-1] for name in wanted if not name.isdigit()}
    hits = {int(name) - 1 for name in wanted if name.isdigit()}
    hits.update(
        at
        for at, line in enumerate(lines)
        if DEFINITION.match(line) and names & set(re.findall(r"\w+", line))
    )
    return {number for hit in hits for number in range(hit - BEFORE, hit + AFTER)}
