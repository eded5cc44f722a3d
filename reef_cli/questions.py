"""What a person asked, of a recorded answer: the prompt of a task that is made of it."""

from collections.abc import Mapping
from typing import Any

from daemon.core.client import Client, segment
from daemon.core.errors import NotFound
from reef_cli.outbox import last_answer


def question(client: Client, receipt: str) -> tuple[str, str]:
    """Their last words before that answer, in full, and the scenario. Raises NotFound where nobody asked anything."""
    record = client.get(f"/reef/records/{segment(receipt)}")
    before: str | None = str(record["seq"] + 1)
    while before is not None:  # an agent that calls tools has many answers to one question
        page = client.get(f"/reef/traces/{segment(record['session'])}", before=before)
        for entry in reversed(page["records"]):
            if words := _asked(entry):
                return words, str(record["scenario"])
        before = page["before"]
    raise NotFound(f"nobody's words stand before {receipt}", hint="reef traces show, reef tasks add PROMPT")


def of_session(client: Client, session: str) -> tuple[str, str]:
    """The same of a session's last answer."""
    return question(client, str(last_answer(client, session)["receipt"]))


def _asked(entry: Mapping[str, Any]) -> str:
    """What a record added of a person's."""
    for message in reversed(entry["new_messages"]):
        if message["role"] != "user" or message.get("earlier"):
            continue
        texts = [part.get("written", part["text"]) for part in message["parts"] if part["type"] == "text"]
        if words := "\n".join(texts).strip():
            return words
    return ""
