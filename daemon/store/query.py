"""What a person types to find records: words, ``"phrases"``, ``-words`` and ``field:value``, all of which must hold.

    agent:pi status:error since:2d score:bad tokens:>50k has:feedback "a phrase" word wor* -word

`daemon.core.fields` has the fields. Pure. Values only ever become parameters of SQL, never its text.
"""

import re
import time
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from daemon.core.errors import UsageError
from daemon.core.fields import FIELDS, TIME_EXAMPLES, TIMES, bound, takes
from daemon.store.unspaced import is_pieced

#: ``field:"a value"``, ``"a phrase"`` or what stands between blanks, each with a minus before it or not.
_TERM: Final = re.compile(r'(-?)(?:([A-Za-z_]+):(?![/\\:])(?:"([^"]*)"|(\S+))|"([^"]*)"?|(\S+))')
#: What the index has for words: runs of letters and digits.
_WORD: Final = re.compile(r"[^\W_]+")
_SPAN: Final = re.compile(r"(\d{1,6})([mhdw])")
_SECONDS: Final = {"m": 60, "h": 3600, "d": 86_400, "w": 604_800}
_MOST: Final = 2000
_LATEST: Final = (1 << 63) - 1
#: Terms that are looked for; more of them find nothing that fewer would not.
_TERMS: Final = 32


@dataclass(frozen=True, slots=True)
class Field:
    """``name`` is ``value``, or, with ``without``, is not."""

    name: str
    value: str
    without: bool = False


@dataclass(frozen=True, slots=True)
class Query:
    """``words`` are runs of letters and digits, ``wor*`` for a beginning; ``phrases`` stand as they are in one message.

    Times are the wall clock's, in nanoseconds, both ends included.
    """

    words: tuple[str, ...] = ()
    without: tuple[str, ...] = ()
    phrases: tuple[str, ...] = ()
    fields: tuple[Field, ...] = ()
    since_ns: int | None = None
    until_ns: int | None = None

    @property
    def is_empty(self) -> bool:
        return self == Query()

    def one(self, name: str) -> str | None:
        """The value that a field must have, where exactly one is asked for."""
        values = [one.value for one in self.fields if one.name == name and not one.without]
        return values[0] if len(values) == 1 else None


@dataclass(slots=True)
class _Texts:
    words: list[str] = field(default_factory=list)
    without: list[str] = field(default_factory=list)
    phrases: list[str] = field(default_factory=list)

    def add(self, text: str, *, without: bool) -> None:
        parts = _WORD.findall(text)
        if not parts:
            raise UsageError(f"{text!r} holds no word", hint="letters or digits, for example: error timeout")
        if without and len(parts) > 1:
            raise UsageError(f"-{text!r} is more than one word", hint="leave single words out: -one -two")
        if without:
            self.without.append(parts[0])
            return
        beginning = text.endswith("*") and len(parts) == 1
        self.words += [f"{parts[0]}*"] if beginning else parts
        if is_pieced(text) or (not beginning and parts != [text]):
            self.phrases.append(text.strip("*"))


def parse(text: str, now_ns: int | None = None) -> Query:
    """Read a query. Raises UsageError that names the term and what there is."""
    if len(text) > _MOST:
        raise UsageError(f"the query has {len(text)} characters, at most {_MOST} are read")
    texts = _Texts()
    fields: list[Field] = []
    times: dict[str, int] = {}
    now = time.time_ns() if now_ns is None else now_ns
    for number, found in enumerate(_TERM.finditer(text)):
        if number == _TERMS:
            raise UsageError(f"the query has more than {_TERMS} terms")
        minus, name, quoted, value, phrase, bare = found.groups()
        if name is not None and name.lower() in TIMES:
            if minus:
                raise UsageError(f"-{name}: is no time", hint="since: and until: take no minus")
            times[name.lower()] = moment(name.lower(), quoted or value or "", now)
        elif name is not None:
            fields.append(_field(name.lower(), quoted if quoted is not None else value, bool(minus)))
        elif bare and bare.endswith(":") and (bare[:-1].lower() in FIELDS or bare[:-1].lower() in TIMES):
            raise UsageError(f"{bare} what?", hint=takes(bare[:-1].lower()))
        else:
            texts.add(phrase if phrase is not None else bare, without=bool(minus))
    return Query(
        tuple(texts.words), tuple(texts.without), tuple(texts.phrases), tuple(fields), times.get("since"),
        times.get("until"),
    )  # fmt: skip


def _field(name: str, value: str, minus: bool) -> Field:
    if name not in FIELDS:
        raise UsageError(f"no field {name!r}", hint=f"there are {', '.join([*FIELDS, *TIMES])}")
    known = FIELDS[name]
    if known.units is not None:
        bound(name, value)
    elif name == "status" and value.isascii() and value.isdigit() and len(value) <= 3:
        return Field(name, value, minus)
    elif known.values and value not in known.values:
        raise UsageError(f"{name}:{value} is not known", hint=takes(name))
    return Field(name, value, minus)


def moment(name: str, value: str, now_ns: int) -> int:
    """``2d`` is that long ago; else a date, with a time or not, in local time unless it says otherwise.

    Raises UsageError that calls the value by ``name``.
    """
    if span := _SPAN.fullmatch(value):
        return _known(now_ns - int(span[1]) * _SECONDS[span[2]] * 1_000_000_000)
    try:
        seconds = datetime.fromisoformat(value).timestamp()
    except (ValueError, OverflowError, OSError):
        raise UsageError(f"{name}:{value} is no time", hint=f"for example {TIME_EXAMPLES}") from None
    return _known(int(seconds * 1_000_000_000))


def _known(ns: int) -> int:
    """The same for all records, as SQLite takes it."""
    return min(max(ns, 0), _LATEST)
