"""Layered settings from INI-like text."""

from .errors import BadValue, MissingKey, ReferenceLoop, SettingsError, SettingsSyntaxError
from .layers import Settings, environment_layer, merged
from .reader import read_file, read_text
from .values import as_bool, as_duration, as_list, as_size
from .writer import write_text

__all__ = [
    "BadValue",
    "MissingKey",
    "ReferenceLoop",
    "Settings",
    "SettingsError",
    "SettingsSyntaxError",
    "as_bool",
    "as_duration",
    "as_list",
    "as_size",
    "environment_layer",
    "merged",
    "read_file",
    "read_text",
    "write_text",
]
