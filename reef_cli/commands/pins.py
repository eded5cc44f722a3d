"""`reef traces pin · unpin`: golden sessions, which stay when others go."""

from typing import Annotated

from daemon.core.client import segment
from daemon.core.paths import home
from reef_cli import output
from reef_cli.lifecycle import ensure_daemon
from reef_cli.names import resolved
from reef_cli.parameters import AsJson, Help

Name = Annotated[str, Help("A session, a receipt, or the beginning of one.")]


def pin(name: Name, *, as_json: AsJson = False) -> None:
    """It is kept past privacy.retention_days and by purges that do not name it; reef traces list is:pinned finds it."""
    _pin(name, True, as_json)


def unpin(name: Name, *, as_json: AsJson = False) -> None:
    _pin(name, False, as_json)


def _pin(name: str, pinned: bool, as_json: bool) -> None:
    client = ensure_daemon(home())
    session = resolved(client, name, "session", "receipt")
    if not session.startswith("ses_"):
        session = client.get(f"/reef/records/{segment(session)}")["session"]
    told = client.post("/reef/pin", {"sessions": [session], "pinned": pinned})
    state = "pinned" if pinned else "not pinned"
    output.told(told, f"{session}  {state}{'' if told['changed'] else ' already'}", as_json)
