"""An MCP server over stdio with one tool, as a release may name it; run as a program, standard library only.

Each method that it is asked goes as a line into the file that its first argument names.
"""

import json
import sys
from pathlib import Path
from typing import Any, Final

TOOL: Final = "lighthouse"
_SCHEMA: Final = {"type": "object", "properties": {}}


def named(log: Path) -> str:
    """A release's ``mcp.json`` with this server in it."""
    return json.dumps({"mcpServers": {"beacon": {"command": sys.executable, "args": [__file__, str(log)]}}})


def answer(method: str, params: dict[str, Any]) -> dict[str, Any]:
    """The result of a request (modelcontextprotocol.io, 2025-06-18)."""
    if method == "initialize":
        info = {"name": "beacon", "version": "1"}
        version = params.get("protocolVersion", "2025-06-18")
        return {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": info}
    if method == "tools/list":
        return {"tools": [{"name": TOOL, "description": "Tells where the light is.", "inputSchema": _SCHEMA}]}
    if method == "tools/call":
        return {"content": [{"type": "text", "text": "The light is in the east."}]}
    return {}


def main(log: Path) -> None:
    for line in sys.stdin:
        asked = json.loads(line)
        with log.open("a") as file:
            file.write(f"{asked.get('method')}\n")
        if "id" in asked:
            told = {"jsonrpc": "2.0", "id": asked["id"], "result": answer(asked["method"], asked.get("params") or {})}
            print(json.dumps(told), flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
