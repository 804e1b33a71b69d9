"""Edits the protected agent.toml"""

import task

task.write(
    "agent.toml",
    (task.WORKDIR / "agent.toml")
    .read_text()
    .replace('editable = ["**"]', 'editable = ["**"]\nprotected = []'),
)
