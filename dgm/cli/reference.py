"""All commands as one cyclopts app, from which the documentation's reference is generated (``mkdocs.yml``)."""

from importlib import import_module

from cyclopts import App, Parameter

from dgm.cli.commands import COMMANDS

app = App(name="dgm", help_format="markdown", default_parameter=Parameter(negative=()))
_groups: dict[str, App] = {}

for _command in COMMANDS.values():
    _module, _, _attribute = _command.target.partition(":")
    _group, _, _name = _command.name.rpartition(" ")
    if _group and _group not in _groups:
        _groups[_group] = App(name=_group)
        app.command(_groups[_group])
    (_groups[_group] if _group else app).command(getattr(import_module(_module), _attribute), name=_name)
