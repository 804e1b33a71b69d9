"""The environment variables that dgm reads: secrets and locations, which are no settings of a run."""

from collections.abc import Sequence
from typing import NamedTuple


class Variable(NamedTuple):
    """One environment variable, or several that mean the same to different providers."""

    name: str
    meaning: str


VARIABLES: Sequence[Variable] = (
    Variable("DGM_ARCHIVE", "Folder in which runs are made and looked for; default: ./archive."),
    Variable("DGM_DEBUG", "1: print the traceback of whatever ends a command, before its one line."),
    Variable("OPENAI_API_KEY", "Key for openai/… models; models.openai.key_env names another variable."),
    Variable(
        "ANTHROPIC_API_KEY", "Key for anthropic/… models; models.anthropic.key_env names another variable."
    ),
    Variable("OPENAI_COMPATIBLE_API_KEY", "Key for openai-compatible/… models, where the server wants one."),
    Variable("OPENAI_BASE_URL", "Address of OpenAI's API, where models.openai.base_url does not say it."),
    Variable(
        "ANTHROPIC_BASE_URL", "Address of Anthropic's API, where models.anthropic.base_url does not say it."
    ),
    Variable("OPENAI_API_VERSION", "Version of Azure's API, where models.azure.api_version does not say it."),
    Variable("AWS_REGION", "Region of Amazon Bedrock, where models.bedrock.region does not say it."),
    Variable("AWS_PROFILE", "Profile of AWS's credentials, where models.bedrock.profile does not say it."),
    Variable("GOOGLE_CLOUD_PROJECT", "Project of Vertex AI, where models.vertex.project does not say it."),
    Variable("GOOGLE_CLOUD_LOCATION", "Region of Vertex AI, where models.vertex.region does not say it."),
    Variable("HTTPS_PROXY", "Proxy for model calls; NO_PROXY names hosts that are reached without it."),
    Variable("DOCKER_HOST", "Address of the Docker engine."),
    Variable("NO_COLOR", "Not empty: print without colours."),
    Variable("PAGER", "Program with which the browser shows long texts."),
    Variable("LC_ALL", "C or POSIX (also LC_CTYPE and LANG): draw with ASCII alone."),
    Variable(
        "XDG_CACHE_HOME", "Folder for caches (dgm/ below it): downloads, unpacked runs; default: ~/.cache."
    ),
    Variable("XDG_CONFIG_HOME", "Folder for what you agreed to pay for (dgm/ below it); default: ~/.config."),
)
