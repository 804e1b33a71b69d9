"""What can go wrong with settings."""


class SettingsError(Exception):
    """The base of all errors of this package."""


class SettingsSyntaxError(SettingsError, ValueError):
    """A line of a settings file can not be read."""

    def __init__(self, message, source, line):
        super().__init__(f"{source}:{line}: {message}")
        self.source = source
        self.line = line


class MissingKey(SettingsError, KeyError):
    """No layer has the key."""

    def __str__(self):
        return f"no such setting: {self.args[0]}"


class BadValue(SettingsError, ValueError):
    """A value is not of the type that was asked for."""


class ReferenceLoop(SettingsError, RecursionError):
    """A value refers to itself, maybe by way of others."""
