"""Code in colours: lexed once, no further than what has been in view, and within bounds. Roles are those of the themes.

A lexer is a set of regular expressions that meets hostile text here: what is long, or has long lines, stays plain.
"""

from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any, Final, overload

from rich.cells import cell_len
from rich.syntax import Syntax

from reef_cli.tui.window import Span

_MOST: Final = 64_000
_WIDEST: Final = 1000
#: The beginnings of pygments' names of tokens.
_ROLES: Final = (
    ("Token.Comment", "comment"), ("Token.Literal.String", "string"), ("Token.Literal.Number", "number"),
    ("Token.Keyword", "keyword"), ("Token.Operator.Word", "keyword"), ("Token.Name.Function", "name"),
    ("Token.Name.Class", "name"), ("Token.Name.Builtin", "name"), ("Token.Name.Tag", "name"),
)  # fmt: skip


class Code:
    """``lines`` are inert. Asked for a line's colours, it lexes up to there and remembers."""

    def __init__(self, lines: Sequence[str], language: str) -> None:
        self._lines = lines
        self._found: list[list[tuple[int, int, str]]] = [[] for _ in lines]
        self._done = 0
        lexer = _lexer(language) if _small(lines) else None
        self._tokens = iter(()) if lexer is None else _walk(lexer, "\n".join(lines))

    def spans(self, line: int, start: int, end: int, *, indent: int) -> list[Span]:
        """Of the characters ``start`` to ``end`` of a line that is drawn ``indent`` columns in."""
        while self._done <= line and (token := next(self._tokens, None)) is not None:
            self._done, first, last, role = token
            if role and self._done < len(self._found):
                found = self._found[self._done]
                joined = found and found[-1][1:] == (first, role)
                found.append((found.pop()[0] if joined else first, last, role))
        text = self._lines[line]
        return [
            Span(
                indent + cell_len(text[start : max(first, start)]),
                indent + cell_len(text[start : min(last, end)]),
                role,
            )
            for first, last, role in self._found[line]
            if first < end and last > start
        ]


class Lazy(Sequence[Span]):
    """A row's colours, found when it is drawn."""

    def __init__(self, code: Code, line: int, start: int, end: int, *, indent: int) -> None:
        self._code, self._line, self._start, self._end, self._indent = code, line, start, end, indent

    def _spans(self) -> list[Span]:
        return self._code.spans(self._line, self._start, self._end, indent=self._indent)

    def __len__(self) -> int:
        return len(self._spans())

    @overload
    def __getitem__(self, index: int) -> Span: ...
    @overload
    def __getitem__(self, index: slice) -> list[Span]: ...
    def __getitem__(self, index: int | slice) -> Span | list[Span]:
        return self._spans()[index]

    def __iter__(self) -> Iterator[Span]:
        return iter(self._spans())


def _small(lines: Sequence[str]) -> bool:
    return sum(map(len, lines)) <= _MOST and max(map(len, lines), default=0) <= _WIDEST


def _lexer(language: str) -> Any:
    """By a language's name or a file's; None where nobody knows it."""
    if not language:
        return None
    name = Syntax.guess_lexer(language) if "." in language or "/" in language else language
    return Syntax("", name).lexer if name != "default" else None


def _walk(lexer: Any, text: str) -> Iterator[tuple[int, int, int, str]]:
    """Line, first and last character, and role of each piece of a token, in order."""
    line = column = 0
    for kind, value in lexer.get_tokens(text):
        role = _role(kind)
        for n, part in enumerate(value.split("\n")):
            if n:
                line, column = line + 1, 0
            yield line, column, column + len(part), role
            column += len(part)


@cache
def _role(kind: object) -> str:
    return next((role for begins, role in _ROLES if str(kind).startswith(begins)), "")
