"""Check that settings are as strict as those that were imported (imported.json), then run the command that follows.

Rules of "allow" and MCP servers may go, rules of "deny" and "ask" may be added, and all else stays as it was. In the
front matter of Markdown only what grants nothing may change.
"""

import json
import os
import re
import sys
from pathlib import Path

MAY_SHRINK = ("permissions.allow", "permissions.additionalDirectories", "tools.allowed", "mcpServers", "mcp")
MAY_GROW = ("permissions.deny", "permissions.ask", "tools.exclude")
FREE = {
    *(
        "name",
        "description",
        "argument-hint",
        "arguments",
        "when_to_use",
        "model",
        "color",
        "effort",
        "paths",
    ),
    *(
        "globs",
        "license",
        "metadata",
        "version",
        "compatibility",
        "user-invocable",
    ),
    *("temperature", "top_p", "mode", "agent", "applyTo", "alwaysApply"),
}
"""Keys of front matter that grant nothing."""


def find_weaker(old, new, where=""):
    """Return the first key at which settings are not as strict as they were, or an empty text."""
    if old == new:
        return ""
    if where in MAY_SHRINK or where in MAY_GROW:
        old, new = (type(old or new or [])() if value is None else value for value in (old, new))
        least, most = (new, old) if where in MAY_SHRINK else (old, new)
        if where in ("mcpServers", "mcp") and isinstance(least, dict) and isinstance(most, dict):
            return "" if all(key in most and most[key] == least[key] for key in least) else where
        # With other values than texts, programs drop the whole file.
        fits = isinstance(least, list) and isinstance(most, list) and all(item in most for item in least)
        return "" if fits and all(isinstance(item, str) or item in old for item in new) else where
    if where == "permissions":
        old, new = old or {}, new or {}
    if isinstance(old, dict) and isinstance(new, dict):
        faults = (
            find_weaker(old.get(key), new.get(key), f"{where}.{key}".lstrip(".")) for key in {**old, **new}
        )
        return next(filter(None, faults), "")
    return where or "its form"


def read_front_matter(text):
    """Return key → text of what may grant something in the front matter of Markdown."""
    lines = re.sub(r"^[\s\ufeff]+", "", text).split("\n")
    if not lines[0].startswith("---"):
        return {}
    found, key = {}, ""
    for number, line in enumerate(lines):
        # Programs do not agree on other line breaks, and on an end that is indented.
        if len(line.splitlines()) > 1:
            raise ValueError("front matter: a line break that is none everywhere: " + ascii(line))
        if number == 0:
            continue
        if line.rstrip() == "---":
            return {key: value for key, value in found.items() if key not in FREE}
        start = re.match(r"([\w-]+):", line)
        if start:
            key = start[1]
            if key in found:
                raise ValueError("the key " + key + " stands there twice")
        elif line.strip() and not line.startswith(("  ", "-", "#")):
            raise ValueError("front matter: not a line of the form key: value: " + line)
        found[key] = found.get(key, "") + line.rstrip("\r") + "\n"
    raise ValueError("its front matter has no end")


def find_faults(root, imported):
    """Yield a line for each file below a folder that grants more than it did when it was imported."""
    for name, old in sorted(imported["settings"].items()):
        try:
            where = find_weaker(old, json.loads((root / name).read_text("utf-8")))
        except (OSError, ValueError) as error:
            where = str(error)
        if where:
            yield f"{name}: must stay as strict as it was: {where}"
    for path in sorted(root.rglob("*")):
        name = path.relative_to(root).as_posix()
        old = imported["front_matter"].get(name, {})
        if name.partition("/")[0] == "node_modules":
            continue
        if path.is_symlink():
            yield f"{name}: must be no link"
        if old is None or path.suffix.lower() not in (".md", ".mdc") or not path.is_file():
            continue
        try:
            new = read_front_matter(path.read_text("utf-8"))
        except ValueError as error:
            yield f"{name}: {error}"
            continue
        changed = sorted(key for key in {**old, **new} if old.get(key) != new.get(key))
        if changed:
            yield f"{name}: front matter must stay as it was: {', '.join(changed)}"


if __name__ == "__main__":
    here = Path(__file__).resolve().parent
    faults = list(find_faults(here.parent, json.loads((here / "imported.json").read_text("utf-8"))))
    if faults:
        sys.exit("\n".join(faults))
    os.execvp(sys.argv[1], sys.argv[1:])
