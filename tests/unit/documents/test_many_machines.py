"""The script on the page on many machines is one that bash can read."""

import re
import subprocess
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[3] / "docs" / "many-machines.md"


def blocks(language):
    return re.findall(
        rf"^```{language}\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE
    )


@pytest.mark.starts_processes
def test_bash_can_read_the_script_for_slurm():
    (text,) = blocks("bash")
    lines = text.splitlines()
    assert lines[0] == "#!/bin/bash"
    first = next(number for number, line in enumerate(lines) if not line.startswith("#"))
    assert all(number < first for number, line in enumerate(lines) if line.startswith("#SBATCH"))
    done = subprocess.run(["bash", "-n"], input=text, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
