"""Reading a request's fields strictly: a wrong value becomes a BadRequest that names the field and shows the value."""

from collections.abc import Mapping
from typing import Any, Final, TypeVar

from daemon.core.errors import BadRequest
from daemon.wire import jsontext

_SHOWN: Final = 80
_T = TypeVar("_T")


def shown(value: object) -> str:
    """A value for an error message, cut short."""
    written = jsontext.text(value)
    return written if len(written) <= _SHOWN else written[:_SHOWN] + "…"


def wrong(where: str, expected: str, value: object) -> BadRequest:
    return BadRequest(f"{where}: expected {expected}, got {shown(value)}")


def read_object(body: bytes) -> "Fields":
    """A request body. Raises BadRequest when it is not a JSON object."""
    try:
        value = jsontext.decode(body)
    except jsontext.NotJson as error:
        raise BadRequest(f"the body is not JSON: {error}") from None
    return Fields(value, "")


class Fields:
    """One JSON object. Absent and null are the same: None."""

    def __init__(self, value: object, where: str) -> None:
        if not isinstance(value, dict):
            raise wrong(where or "the body", "an object", value)
        self.raw: Mapping[str, Any] = value
        self._where = where

    def at(self, name: str) -> str:
        """The field's full name, as in ``messages.3.content``."""
        return f"{self._where}.{name}" if self._where else name

    def _is(self, name: str, kind: type[_T], expected: str) -> _T | None:
        value = self.raw.get(name)
        if value is not None and not isinstance(value, kind):
            raise wrong(self.at(name), expected, value)
        return value

    def text(self, name: str) -> str | None:
        return self._is(name, str, "a string")

    def flag(self, name: str) -> bool | None:
        return self._is(name, bool, "true or false")

    def whole(self, name: str, low: int | None = None, high: int | None = None) -> int | None:
        """An integer; ``8192.0`` counts as one."""
        value = self.raw.get(name)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int | float) or value != int(value):
            raise wrong(self.at(name), "an integer", value)
        if low is not None and value < low:
            raise wrong(self.at(name), f"at least {low}", value)
        if high is not None and value > high:
            raise wrong(self.at(name), f"at most {high}", value)
        return int(value)

    def number(self, name: str, low: float, high: float) -> float | None:
        value = self.raw.get(name)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise wrong(self.at(name), "a number", value)
        if not low <= value <= high:
            raise wrong(self.at(name), f"a number from {low:g} to {high:g}", value)
        return float(value)

    def items(self, name: str) -> list[Any]:
        return self._is(name, list, "a list") or []

    def inner(self, name: str) -> "Fields | None":
        value = self.raw.get(name)
        return None if value is None else Fields(value, self.at(name))

    def texts(self, name: str) -> tuple[str, ...]:
        """A string, or a list of strings."""
        value = self.raw.get(name)
        if value is None:
            return ()
        found = [value] if isinstance(value, str) else value
        if not isinstance(found, list) or not all(isinstance(one, str) for one in found):
            raise wrong(self.at(name), "a string or a list of strings", value)
        return tuple(one for one in found if one)
