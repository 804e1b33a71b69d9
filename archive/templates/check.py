"""Check the settings, skills, agents and commands beside this file: JSON, TOML and the front matter of Markdown.

With the name of a settings file: print it with absolute paths of the files beside this one.
"""

import json
import re
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
REQUIRED = {"skills": ("name", "description"), "agents": ("description",), "agent": ("description",)}
"""Folder → keys that the front matter of its files must have."""


def find_fault(path):
    """Return what is wrong with a file (a path from this folder), or an empty text."""
    text = (HERE / path).read_text("utf-8")
    if path.suffix == ".json":
        json.loads(text)
    elif path.suffix == ".toml" and sys.version_info >= (3, 11):
        import tomllib

        tomllib.loads(text)
    elif path.suffix == ".md":
        folder = path.parent.parent if path.name == "SKILL.md" else path.parent
        return find_front_matter_fault(text.splitlines(), REQUIRED.get(folder.name, ()))
    return ""


def find_front_matter_fault(lines, required):
    """Return what is wrong with the front matter; each line that is not indented is ``key: value``."""
    if lines[:1] != ["---"]:
        return "has no front matter; begin with a line ---" if required else ""
    if "---" not in lines[1:]:
        return "its front matter has no end; write a line ---"
    keys = set()
    for line in lines[1 : lines.index("---", 1)]:
        key, colon, value = line.partition(":")
        if not line.strip() or line[0] in " #-":
            continue
        if not colon or (value.strip()[:1] not in tuple("'\"[{>|") and ": " in value.strip()):
            return f"its front matter is not YAML, quote the value: {line}"
        keys.add(key)
    return "".join(f"its front matter has no {key}. " for key in required if key not in keys).strip()


def with_absolute_paths(text):
    """Return settings in which each text that names a file below this folder is its absolute path, for MCP servers."""

    def locate(match):
        path = HERE / match[1]
        return json.dumps(str(path)) if path.is_file() else match[0]

    return re.sub(r'"(?:\./|\$\{CLAUDE_PROJECT_DIR(?::-\.)?\}/)?([\w.-]+(?:/[\w.-]+)*)"', locate, text)


def main():
    """Print the first fault of each file; return 1 if there is one."""
    status = 0
    for path in sorted(HERE.rglob("*")):
        name = path.relative_to(HERE)
        if path.is_file() and name.parts[0] != "node_modules":
            try:
                fault = find_fault(name)
            except ValueError as error:
                fault = str(error)
            if fault:
                print(f"{name}: {fault}")
                status = 1
    return status


if __name__ == "__main__":
    if sys.argv[1:]:
        sys.exit(print(with_absolute_paths(Path(sys.argv[1]).read_text("utf-8"))))
    sys.exit(main())
