"""Tool calls of a chat.completions answer, as their fragments come.

Tolerates what OpenAI-compatible servers do: arguments as an object, every call at index 0, a new id on every fragment,
the legacy ``function_call``.
"""

from typing import Any

from daemon.wire import jsontext


class ChatCall:
    """One tool call as its fragments come."""

    def __init__(self, id: str, name: str) -> None:
        self.id = id
        self.name = name
        self.pieces: list[str] = []

    @property
    def arguments(self) -> str:
        self.pieces = ["".join(self.pieces)]
        return self.pieces[0]

    def other(self, id: str, name: str) -> bool:
        """Whether a fragment at the same index starts another call.

        Some servers put every call at index 0, others give each fragment of one call a new id: it is another call
        only when it has a name, another id, and the arguments so far are whole.
        """
        if not name or not id or id == self.id:
            return False
        last = next((piece for piece in reversed(self.pieces) if not piece.isspace() and piece), "")
        if not last:
            return name != self.name
        # The look at the end first: reading all of it at each of many fragments takes minutes.
        return last.rstrip().endswith("}") and jsontext.arguments(self.arguments) is not None


class ChatCalls:
    """The calls so far, in the order in which they began."""

    def __init__(self) -> None:
        self.calls: list[ChatCall] = []
        #: The last call at each index.
        self._open: dict[str, ChatCall] = {}

    def delta(self, delta: dict[str, Any]) -> list[tuple[ChatCall, str]]:
        """What a chunk (or a whole message) adds: each call that it is about, and the arguments' new text."""
        calls = delta.get("tool_calls")
        pieces = [
            self._piece(call, position)
            for position, call in enumerate(calls if isinstance(calls, list) else [])
            if isinstance(call, dict)
        ]
        if isinstance(function := delta.get("function_call"), dict):
            pieces.append(self._piece({"index": "function_call", "function": function}, 0))
        return pieces

    def _piece(self, piece: dict[str, Any], position: int) -> tuple[ChatCall, str]:
        function = piece.get("function")
        function = function if isinstance(function, dict) else {}
        id, name = _text(piece.get("id")), _text(function.get("name"))
        index = piece.get("index")
        place = str(position if index is None else index)
        call = self._open.get(place)
        if call is None or call.other(id, name):
            call = self._open[place] = ChatCall(id, name)
            self.calls.append(call)
        call.id, call.name = call.id or id, call.name or name
        written = function.get("arguments")
        if isinstance(written, str):
            call.pieces.append(written)
            return call, written
        if written is None:
            return call, ""
        call.pieces = [jsontext.text(written)]
        return call, call.pieces[0]


def is_more_of_one(calls: object, written: str) -> bool:
    """Whether these calls of a chunk are only more of the arguments of one, whichever that is."""
    if not (isinstance(calls, list) and len(calls) == 1 and isinstance(calls[0], dict)):
        return False
    function = calls[0].get("function")
    return (
        isinstance(function, dict)
        and function.get("arguments") == written
        and not (calls[0].get("id") or function.get("name"))
    )


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
