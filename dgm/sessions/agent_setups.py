"""Where the programs that templates wrap keep a user's setup in a repository: one table for ``--import``."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum


class Kind(StrEnum):
    """The purpose of a file of a setup."""

    INSTRUCTIONS = "instructions"
    SKILLS = "skills"
    AGENTS = "agents"
    COMMANDS = "commands"
    HOOKS = "hooks"
    PERMISSIONS = "permissions"
    MCP = "mcp"


ON_REQUEST = (Kind.HOOKS, Kind.PERMISSIONS, Kind.MCP)
"""Kinds that evolution edits only where the user asks for it."""


@dataclass(frozen=True, slots=True)
class AgentSetup:
    """The setup of one program."""

    program: str
    """Its name on ``PATH``."""
    packages: str
    """Regular expression of the names of its packages."""
    paths: Mapping[Kind, tuple[str, ...]]
    """Kind → files and folders in the repository; the agent's folder has them at the same paths."""
    servers: str = "mcpServers"
    """Key of the MCP servers in its settings."""
    left_out: tuple[str, ...] = ()
    """Keys of its settings that name credentials or a model, or ask for what a sandbox lacks."""
    project: tuple[str, ...] = ()
    """Variables that stand for the repository in its settings."""


SETUPS: Mapping[str, AgentSetup] = {
    "claude-code": AgentSetup(
        "claude",
        r"@anthropic-ai/claude-code(-linux-\w+)?",
        {
            Kind.INSTRUCTIONS: ("CLAUDE.md", ".claude/rules", ".claude/output-styles"),
            Kind.SKILLS: (".claude/skills",),
            Kind.AGENTS: (".claude/agents",),
            Kind.COMMANDS: (".claude/commands",),
            Kind.HOOKS: (".claude/hooks",),
            Kind.PERMISSIONS: (".claude/settings.json",),
            Kind.MCP: (".mcp.json",),
        },
        left_out=(
            *("apiKeyHelper", "awsAuthRefresh", "awsCredentialExport", "gcpAuthRefresh", "otelHeadersHelper"),
            *("forceLoginMethod", "forceLoginOrgUUID", "model", "statusLine", "sandbox"),
            *("enabledPlugins", "extraKnownMarketplaces"),
        ),
        project=("$CLAUDE_PROJECT_DIR", "${CLAUDE_PROJECT_DIR}", "${CLAUDE_PROJECT_DIR:-.}"),
    ),
    "codex": AgentSetup(
        "codex",
        r"@openai/codex(-linux-\w+)?",
        {
            Kind.INSTRUCTIONS: ("AGENTS.md",),
            Kind.SKILLS: (".codex/skills",),
            Kind.PERMISSIONS: (".codex/config.toml", ".codex/rules"),
        },
        servers="mcp_servers",
        left_out=(
            *("model", "model_provider", "model_providers", "profile", "profiles", "review_model"),
            *("projects", "notify", "otel", "web_search", "forced_login_method", "openai_base_url"),
        ),
    ),
    "opencode": AgentSetup(
        "opencode",
        r"opencode-ai|opencode-linux-[\w-]+",
        {
            Kind.INSTRUCTIONS: ("AGENTS.md",),
            Kind.SKILLS: (".opencode/skills", ".opencode/skill"),
            Kind.AGENTS: (".opencode/agent", ".opencode/agents"),
            Kind.HOOKS: (".opencode/plugin", ".opencode/plugins", ".opencode/tool", ".opencode/tools"),
            Kind.PERMISSIONS: ("opencode.json",),
        },
        servers="mcp",
        left_out=("model", "small_model", "provider", "disabled_providers", "enabled_providers", "plugin"),
    ),
    "qwen-code": AgentSetup(
        "qwen",
        r"@qwen-code/qwen-code",
        {
            Kind.INSTRUCTIONS: ("QWEN.md", "AGENTS.md"),
            Kind.SKILLS: (".qwen/skills",),
            Kind.AGENTS: (".qwen/agents",),
            Kind.COMMANDS: (".qwen/commands",),
            Kind.HOOKS: (".qwen/hooks",),
            Kind.PERMISSIONS: (".qwen/settings.json",),
        },
        left_out=("model", "modelProviders", "security", "telemetry"),
    ),
    "cline": AgentSetup(
        "cline",
        r"cline|@cline/cli-linux-\w+",
        {
            Kind.INSTRUCTIONS: (".clinerules",),
            Kind.SKILLS: (".clinerules/skills",),
            Kind.COMMANDS: (".clinerules/workflows",),
            Kind.HOOKS: (".clinerules/hooks",),
        },
    ),
    "aider": AgentSetup(
        "aider",
        r"aider-chat",
        {Kind.INSTRUCTIONS: ("CONVENTIONS.md",), Kind.PERMISSIONS: (".aider.conf.yml",)},
        left_out=(
            *("model", "weak-model", "editor-model", "api-key", "openai-api-key", "anthropic-api-key"),
            *("openai-api-base", "set-env", "env-file", "notifications-command"),
        ),
    ),
    "copilot": AgentSetup(
        "copilot",
        r"@github/copilot(-linux-\w+)?",
        {
            Kind.INSTRUCTIONS: ("AGENTS.md", ".github/copilot-instructions.md", ".github/instructions"),
            Kind.SKILLS: (".github/skills",),
            Kind.AGENTS: (".github/agents",),
        },
    ),
}
