"""What a Responses request goes on from by name, for engines that keep no conversations: it is in our records.

Only an answer of ours (embedded, translated) has a receipt in its id; a provider's own is the provider's to remember.
What was redacted in a record stays redacted.
"""

from typing import Any, Final

from daemon.core.errors import BadRequest, NotFound
from daemon.core.records import Dialect
from daemon.store.db import Store
from daemon.wire import jsontext

_OURS: Final = "resp_"
#: A conversation longer than this many answers is not put together.
_MOST: Final = 1000
_FIELD: Final = b'"previous_response_id"'


def whole(store: Store, scenario: str, body: bytes) -> bytes:
    """The same request with the whole conversation in its ``input``. Blocks. Raises BadRequest for an id that no record
    of the scenario has.
    """
    if _FIELD not in body:
        return body
    try:
        asked = jsontext.decode(body)
    except jsontext.NotJson:
        return body  # whoever parses it says what is wrong
    if not isinstance(asked, dict) or not isinstance(id := asked.pop("previous_response_id", None), str):
        return body
    items = _items(asked.get("input"))
    for _ in range(_MOST):
        before, id = _answered(store, scenario, id)
        items = [*before, *items]
        if id is None:
            return jsontext.encode({**asked, "input": items})
    raise BadRequest(f"the conversation has over {_MOST} answers", hint="send the last of it in input")


def _answered(store: Store, scenario: str, id: str) -> tuple[list[Any], str | None]:
    """What was said up to that answer and in it, and the answer that this went on from."""
    receipt = f"rec_{id.removeprefix(_OURS)}"
    unknown = BadRequest(f"previous_response_id: no answer {id!r} is recorded", hint="send the conversation in input")
    try:
        row, answer = store.record(receipt), store.answer(receipt)
        asked = jsontext.decode(store.request(receipt))
    except (NotFound, jsontext.NotJson):
        raise unknown from None
    if row.scenario != scenario or row.dialect is not Dialect.RESPONSES or not isinstance(asked, dict):
        raise unknown
    said = [] if answer is None else jsontext.decode(b"[" + answer.raw + b"]")
    previous = asked.get("previous_response_id")
    return [*_items(asked.get("input")), *said], previous if isinstance(previous, str) else None


def _items(given: object) -> list[Any]:
    if isinstance(given, str):
        return [{"role": "user", "content": given}]
    return given if isinstance(given, list) else []
