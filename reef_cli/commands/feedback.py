"""`reef good · bad · note · undo`: one word after an answer. Each is reversible, none asks back."""

import os
from typing import Annotated, Any

from daemon.core.client import Client, segment
from daemon.core.errors import UsageError
from daemon.core.paths import home
from reef_cli import diagnostics, output
from reef_cli.conversation import verdict
from reef_cli.lifecycle import ensure_daemon
from reef_cli.names import resolved
from reef_cli.parameters import AsJson, Help, Record
from reef_cli.scoring import scales, scored, without


def good(record: Record = None, *, as_json: AsJson = False) -> None:
    """The same as reporting a score of 1."""
    _report("good", record, {"score": 1.0}, as_json)


def bad(record: Record = None, *, as_json: AsJson = False) -> None:
    """The same as reporting a score of 0."""
    _report("bad", record, {"score": 0.0}, as_json)


def note(
    text: Annotated[str, Help("What to say about it.")], record: Record = None, *, as_json: AsJson = False
) -> None:
    if not text.strip():
        raise UsageError(f"a note has words, not {text!r}", hint="reef note 'use uv, not pip'")
    _report("noted", record, {"feedback": text}, as_json)


def score(
    mark: Annotated[int, Help("On the scenario's scale: scenarios: {NAME: {scores: [1, 5]}} in the configuration.")],
    record: Record = None,
    *,
    as_json: AsJson = False,
) -> None:
    """Kept as a share of the scale, so that 3 of 1 to 5 is 0.5: neither good nor bad."""
    client = ensure_daemon(home())
    rated = _record(client, record)
    scale = scales(client.get("/reef/status")).get(str(rated["scenario"]))
    if scale is None:
        raise without(str(rated["scenario"]))
    _send(client, f"{mark} of {scale[1]}", rated, scored(mark, scale), as_json=as_json)


def undo(
    record: Annotated[str | None, Help("A receipt (rec_…); by default whatever was rated or noted last.")] = None,
    *,
    as_json: AsJson = False,
) -> None:
    """The report stays on record as taken back."""
    client = ensure_daemon(home())
    body = {} if record is None else {"record": resolved(client, record, "receipt")}
    report = client.post("/reef/undo", body)
    if as_json:
        output.json(report)
        return
    output.line(f"undone: {output.one_line(verdict(report))} on {', '.join(report['references'])}")


def _report(word: str, record: str | None, content: dict[str, object], as_json: bool) -> None:
    client = ensure_daemon(home())
    _send(client, word, _record(client, record), content, as_json=as_json)


def _send(client: Client, word: str, rated: dict[str, Any], content: dict[str, Any], *, as_json: bool) -> None:
    receipt = str(rated["receipt"])
    if why := rated.get("unrecorded"):
        diagnostics.say(f"a later answer was not recorded ({why}); this is about the last one that was")
    body = {**content, "references": [receipt]}
    report = client.post("/reef/report", body, scope=str(rated["scenario"]))
    if as_json:
        output.json({**report, "preview": rated["preview"]})
    else:
        output.line(f"{word}  {receipt}  {output.one_line(str(rated['preview'] or ''))}")


def _record(client: Client, receipt: str | None) -> dict[str, Any]:
    """The one that is named, else the last one: of this shell's run, where an agent that Reef started has opened it."""
    answer: dict[str, Any]
    if receipt is not None:
        answer = client.get(f"/reef/records/{segment(resolved(client, receipt, 'receipt'))}")
    elif run := os.environ.get("REEF_RUN"):
        answer = client.get("/reef/last", run=run, scenario=os.environ.get("REEF_SCENARIO"))
    else:
        answer = client.get("/reef/last")
    return answer
