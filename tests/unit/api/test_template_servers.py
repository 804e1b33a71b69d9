"""The check that the templates of programs share: MCP servers of the agent's folder are found by absolute paths."""

import json
import shutil
import subprocess
import sys

import pytest

from dgm.paths import asset

SETTINGS = {
    "mcpServers": {
        "notes": {"command": "python3", "args": ["tools/notes.py", "--file", "README.md"]},
        "more": {
            "command": "./tools/notes.py",
            "args": ["${CLAUDE_PROJECT_DIR:-.}/tools/notes.py", "/etc/passwd"],
        },
    }
}


@pytest.mark.starts_processes
def test_files_of_the_agent_are_named_by_absolute_paths(tmp_path):
    (tmp_path / "tools").mkdir()
    (tmp_path / "tools" / "notes.py").write_text("")
    (tmp_path / "settings.json").write_text(json.dumps(SETTINGS, indent=1))
    shutil.copy(asset("archive", "templates", "check.py"), tmp_path)
    words = [sys.executable, tmp_path / "check.py", tmp_path / "settings.json"]
    printed = subprocess.run(words, cwd="/", capture_output=True, check=True).stdout
    notes = str(tmp_path / "tools" / "notes.py")
    assert json.loads(printed)["mcpServers"] == {
        "notes": {"command": "python3", "args": [notes, "--file", "README.md"]},
        "more": {"command": notes, "args": [notes, "/etc/passwd"]},
    }
