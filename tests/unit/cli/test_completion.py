"""``dgm --install-completion`` writes a script for the user's shell that knows every command and option."""

import pytest

from dgm.cli.commands import COMMANDS
from dgm.cli.main import main


def run(*words, code=0):
    with pytest.raises(SystemExit) as ended:
        main(["--install-completion", *words])
    assert (ended.value.code or 0) == code


def test_the_script_of_bash_knows_every_command(tmp_path, monkeypatch, capsys):
    for name in ("HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.setenv(name, str(tmp_path))
    run("bash")
    file = next(path for path in tmp_path.rglob("dgm") if path.is_file())
    assert str(file) in capsys.readouterr().out
    script = file.read_text()
    derived = [name for name in COMMANDS if name.split()[0] in ("agent", "benchmark", "doctor")]
    assert {word for name in derived for word in name.split() if word not in script} == set()
    assert "--max-usd" in script
