"""Settings of models and providers, for tests that name a provider by a word of Python."""

from typing import Any

from dgm.config import Settings
from dgm.config.settings import KINDS


def make_settings(model: str = "offline", **sections: Any) -> Settings:
    """Return settings with these sections of providers (``compatible`` too), or else of models."""
    named = {name.replace("compatible", "openai-compatible"): value for name, value in sections.items()}
    providers = {name for name, value in named.items() if name in KINDS or "kind" in value}
    tables = ({name: named[name] for name in names} for names in (providers, named.keys() - providers))
    return Settings.model_validate(dict(zip(("providers", "models"), tables, strict=True)) | {"model": model})
