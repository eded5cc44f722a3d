"""How a coding agent that a person already has is pointed at Reef: variables, one file, one command. Data only.

`reef env AGENT` prints it, the README's table is made of it, and tests/e2e runs each agent with exactly this. Nothing
here writes a file: the agent's configuration is the person's. Measured on the versions in tests/e2e/agents.py.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

#: What the texts below say; `Pointing.filled` puts what is true in its place.
ADDRESS: Final = "http://127.0.0.1:8900"
#: Tokens of the longest conversation, and of the longest answer in it.
_CONTEXT: Final = 128_000
_ANSWER: Final = 8192

#: Folders below a home that agents look for elsewhere where a variable says so.
_MOVED: Final = {
    ".codex/": "CODEX_HOME",
    ".config/": "XDG_CONFIG_HOME",
    ".hermes/": "HERMES_HOME",
    ".pi/agent/": "PI_CODING_AGENT_DIR",
    ".qwen/": "QWEN_HOME",
}


@dataclass(frozen=True, slots=True)
class Pointing:
    """``variables`` are names of those that `reef env` sets; ``fixed`` are the agent's own switches. ``file`` is below
    the person's home; its ``text`` names the key's variable and never holds a key."""

    title: str
    variables: tuple[str, ...]
    command: str
    fixed: Mapping[str, str] = field(default_factory=dict)
    file: str = ""
    text: str = ""

    def filled(self, address: str, context: int | None = None) -> str:
        """The file's text for the Reef that is at ``address``, with or without a token in it. ``context``: tokens in
        the longest conversation of the model that it serves; None: unknown."""
        if context is None:
            return self.text.replace(ADDRESS, address)
        answer = str(min(_ANSWER, context // 4))
        return self.text.replace(str(_ANSWER), answer).replace(str(_CONTEXT), str(context)).replace(ADDRESS, address)

    def place(self, environment: Mapping[str, str]) -> str:
        """The file's path as a person may write it: below ``~``, or where a variable of the agent's says."""
        for folder, variable in _MOVED.items():
            if self.file.startswith(folder) and environment.get(variable):
                return f"{environment[variable]}/{self.file.removeprefix(folder)}"
        return f"~/{self.file}"


def _json(data: object) -> str:
    return json.dumps(data, indent=2) + "\n"


_PI: Final = {
    "providers": {
        "reef": {
            "baseUrl": f"{ADDRESS}/v1",
            "apiKey": "!printenv OPENAI_API_KEY",
            "api": "openai-completions",
            "headers": {"x-reef-adapter": "pi"},
            "compat": {
                "sendSessionAffinityHeaders": True,
                "sessionAffinityFormat": "openai",
                "promptCacheKeyMode": "enabled",
            },
            "models": [{"id": "default", "contextWindow": _CONTEXT, "maxTokens": _ANSWER}],
        }
    }
}
_OPENCODE: Final = {
    "provider": {
        "reef": {
            "npm": "@ai-sdk/openai-compatible",
            "options": {"baseURL": f"{ADDRESS}/v1", "apiKey": "{env:OPENAI_API_KEY}"},
            "models": {"default": {"limit": {"context": _CONTEXT, "output": _ANSWER}}},
        }
    },
    "model": "reef/default",
    "small_model": "reef/default",
}
_CODEX: Final = f"""\
model = "default"
model_provider = "reef"

[model_providers.reef]
name = "Reef"
base_url = "{ADDRESS}/v1"
env_key = "OPENAI_API_KEY"
wire_api = "responses"
"""
_HERMES: Final = f"""\
model:
  provider: custom
  base_url: {ADDRESS}/v1
  api_key: ${{OPENAI_API_KEY}}
  default: default
"""
_BASE: Final = ("OPENAI_API_BASE", "OPENAI_API_KEY")

AGENTS: Final[Mapping[str, Pointing]] = {
    "claude-code": Pointing("Claude Code", ("ANTHROPIC_BASE_URL", "ANTHROPIC_AUTH_TOKEN"), "claude"),
    "codex": Pointing("Codex", ("OPENAI_API_KEY",), "codex", file=".codex/config.toml", text=_CODEX),
    "pi": Pointing("Pi", ("OPENAI_API_KEY",), "pi --model reef/default", file=".pi/agent/models.json", text=_json(_PI)),
    "opencode": Pointing(
        "OpenCode",
        ("OPENAI_API_KEY",),
        "opencode",
        file=".config/opencode/opencode.json",
        text=_json(_OPENCODE),
    ),
    "qwen-code": Pointing(
        "Qwen Code",
        ("OPENAI_BASE_URL", "OPENAI_API_KEY"),
        "qwen --model default",
        file=".qwen/settings.json",
        text=_json({"security": {"auth": {"selectedType": "openai"}}}),
    ),
    "aider": Pointing("aider", _BASE, "aider --model openai/default"),
    "mini-swe-agent": Pointing(
        "mini-swe-agent",
        _BASE,
        "mini -m openai/default",
        # Without the second its first start asks for a model and a key.
        fixed={"MSWEA_COST_TRACKING": "ignore_errors", "MSWEA_CONFIGURED": "true"},
    ),
    "hermes": Pointing("Hermes", ("OPENAI_API_KEY",), "hermes chat", file=".hermes/config.yaml", text=_HERMES),
}
