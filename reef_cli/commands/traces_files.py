"""`reef traces export · import`: traces as files of JSON lines. `daemon.core.interchange` knows the forms."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

from daemon.core.errors import NotFound, UsageError
from daemon.core.interchange import Form, envelopes
from daemon.core.paths import home, write_private
from reef_cli import diagnostics, output
from reef_cli.lifecycle import ensure_daemon
from reef_cli.parameters import AsJson, Help

#: A batch, in lines and in bytes: far below what the daemon takes, so that agents beside it do not wait.
_BATCH = 500
_BATCH_BYTES = 512 << 10


def export_traces(
    query: Annotated[str | None, Help("Only sessions with such records: `reef traces search --help`.")] = None,
    *,
    form: Annotated[Form, Help("records (to import again), openai (messages) or atif (trajectories).")] = "records",
    out: Annotated[str | None, Help("Write to this file, readable by you alone.", "--out", "-o")] = None,
    as_json: AsJson = False,
) -> None:
    """JSON lines, whatever --json says; with --out it tells what was written. What was redacted stays so."""
    rows = ensure_daemon(home()).rows("/reef/export", form=form, q=query)
    if out is None:
        for row in rows:
            output.raw(row.decode())
        return
    path = Path(out)
    part = path.with_name(f"{path.name}.part")
    write_private(part, b"")
    lines = 0
    with part.open("ab") as file:
        for row in rows:
            file.write(row)
            lines += 1
    part.replace(path)
    if as_json:
        output.json({"path": str(path), "lines": lines, "form": form})
    else:
        output.line(f"{output.count(lines, 'line')} in {output.visible(str(path))}")


def import_traces(
    file: Annotated[str, Help("A file of JSON lines, an ATIF trajectory, or - for stdin.")],
    *,
    scenario: Annotated[str | None, Help("Where the records belong.")] = None,
    as_json: AsJson = False,
) -> None:
    """Envelopes with reports, OpenAI's {"messages": […]} or ATIF trajectories, line by line. Each is kept once, however
    often the file is imported: after an interruption just run it again.
    """
    client = ensure_daemon(home())
    sent = {"inference": 0, "report": 0}
    for batch in _batches(file):
        for one in client.post("/reef/records/batch", {"records": batch}, scope=scenario)["records"]:
            sent[one["request_type"]] += 1
        diagnostics.say(f"{output.count(sent['inference'], 'record')} so far")
    if as_json:
        output.json({"records": sent["inference"], "reports": sent["report"]})
    else:
        told = f"{output.count(sent['inference'], 'record')}, {output.count(sent['report'], 'report')}"
        output.line(f"{told}: in Reef now, or there already")


def _batches(file: str) -> Iterator[list[dict[str, Any]]]:
    batch: list[dict[str, Any]] = []
    size = 0
    for number, line in _objects(file):
        try:
            found = list(envelopes(line))
        except UsageError as error:
            raise UsageError(f"{file}, line {number}: {error.message}", hint=error.hint) from None
        for one in found:
            length = len(json.dumps(one))
            if batch and (len(batch) == _BATCH or size + length > _BATCH_BYTES):
                yield batch
                batch, size = [], 0
            batch.append(one)
            size += length
    if batch:
        yield batch


def _objects(file: str) -> Iterator[tuple[int, dict[str, Any]]]:
    """Each line's object with its number; a file that is one object over many lines is line 1."""
    try:
        with sys.stdin if file == "-" else Path(file).open(encoding="utf-8") as lines:
            for number, line in enumerate(lines, start=1):
                if number == 1 and line.strip() == "{":
                    yield 1, _object(file, 1, line + lines.read())
                elif line.strip():
                    yield number, _object(file, number, line)
    except FileNotFoundError:
        raise NotFound(f"no file {file!r}", hint="ls") from None
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"cannot read {file!r}: {error}", hint="a file of JSON lines in UTF-8") from None


def _object(file: str, number: int, text: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except ValueError as error:
        raise UsageError(f"{file}, line {number} is not JSON: {error}", hint="one JSON object a line") from None
    if not isinstance(value, dict):
        raise UsageError(f"{file}, line {number} is {type(value).__name__}, not an object")
    return value
