"""One exchange as it went over the wire: its bodies as inert text, and the command that sends it again."""

import shlex
from typing import Final, Literal

from daemon.core.client import Client, segment

Side = Literal["request", "response"]

#: A command longer than this is no command to paste; terminals cut what they are given to copy, too.
_INLINE: Final = 32_000


def text(client: Client, receipt: str, side: Side) -> str:
    """A recorded body. Raises ReefError."""
    return escaped(client.content(f"/reef/records/{segment(receipt)}/{side}").decode("utf-8", "replace"))


def escaped(body: str) -> str:
    """What a terminal could act on as JSON escapes: within a JSON string they mean the same."""
    return "\n".join(line if line.isprintable() else _escaped(line) for line in body.split("\n"))


def _escaped(line: str) -> str:
    return "".join(char if char.isprintable() or char == "\t" else _escape(char) for char in line)


def _escape(char: str) -> str:
    units = char.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[n]:02x}{units[n + 1]:02x}" for n in range(0, len(units), 2))


def curl(client: Client, receipt: str) -> str:
    """The request for a shell in which `reef env` was read: token and address are variables, never values.

    A long body is not in it: `reef traces raw` pipes it in. Raises ReefError.
    """
    record = client.get(f"/reef/records/{segment(receipt)}")
    body = text(client, receipt, "request")
    headers = ["content-type: application/json", f"x-reef-scenario: {record['scenario']}"]
    if record["dialect"] == "messages":
        headers.append("anthropic-version: 2023-06-01")
    to = ("--noproxy", "'*'")  # a proxy cannot reach the daemon, and would be told the token
    words = [
        "curl",
        "-sS",
        *to,
        f'"$REEF_URL"{shlex.quote(record["path"])}',
        "-H",
        '"Authorization: Bearer $REEF_TOKEN"',
    ]
    for header in headers:
        words += ["-H", shlex.quote(escaped(header))]
    if len(body) <= _INLINE:
        return " ".join([*words, "--data-binary", shlex.quote(body)])
    return " ".join([f"reef traces raw {shlex.quote(receipt)} |", *words, "--data-binary", "@-"])
