"""The release card as a web page: the same facts, every pair the gate ran, the words it came from, the diff.

Everything in it was written by models and people: all of it is escaped, what cannot be seen is written out, and the
page runs nothing and loads nothing (`POLICY`), wherever it is opened.
"""

import base64
import hashlib
from collections.abc import Sequence
from html import escape
from typing import Final

from daemon.core.plaintext import marked
from daemon.core.releases import GateResult, Pair, Release
from recipes.gate import card

_STYLE: Final = """
body { font: 15px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem }
pre { white-space: pre-wrap; overflow-wrap: anywhere; background: #8881; padding: .8rem; border-radius: 4px }
table { border-collapse: collapse; width: 100% } th, td { text-align: left; vertical-align: top; padding: .3rem .6rem }
tr + tr > * { border-top: 1px solid #8884 } td { overflow-wrap: anywhere; white-space: pre-wrap }
ins { color: #1a7f37; text-decoration: none } del { color: #b42318; text-decoration: none }
"""
_HASH: Final = base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()
#: The Content-Security-Policy of the page: its own style and nothing else.
POLICY: Final = "; ".join(
    (
        "default-src 'none'",
        f"style-src 'sha256-{_HASH}'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
        "sandbox",
    )
)
#: A page that is saved keeps what a page can say of itself.
_META: Final = POLICY.partition("; frame-ancestors")[0]


def html(release: Release, said: Sequence[tuple[str, str]], diff: str) -> str:
    """``said``: what people said that it came from, as (who or what, the words)."""
    title = f"{release.id} · {release.scenario}"
    parts = [
        f"<h1>{_text(title)}</h1>",
        f"<pre>{_text(card.text(release))}</pre>",
        *([f"<p>{_text(release.note)}</p>"] if release.note else []),
        *_section("What it came from", _rows(("", ""), said)),
        *(_pairs(release.gate) if release.gate else []),
        *_section("What it changed", f"<pre>{_diff(diff)}</pre>" if diff else ""),
        *_section("Files, by their sha256", _rows(("file", "sha256"), sorted(release.files.items()))),
    ]
    head = (
        f'<meta charset="utf-8"><meta http-equiv="Content-Security-Policy" content="{escape(_META)}">'
        f'<meta name="viewport" content="width=device-width"><title>{_text(title)}</title><style>{_STYLE}</style>'
    )
    return "\n".join(("<!doctype html>", f'<html lang="en"><head>{head}</head><body>', *parts, "</body></html>", ""))


def _section(title: str, inner: str) -> list[str]:
    return [f"<h2>{escape(title)}</h2>", inner] if inner else []


def _rows(heads: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    if not rows:
        return ""
    head = f"<tr>{''.join(f'<th>{escape(name)}</th>' for name in heads)}</tr>" if any(heads) else ""
    cells = ("".join(f"<td>{_text(cell)}</td>" for cell in row) for row in rows)
    return f"<table>{head}{''.join(f'<tr>{row}</tr>' for row in cells)}</table>"


def _pairs(gate: GateResult) -> list[str]:
    heads = ("task", "before", "after")
    rows = [(pair.prompt, *_answers(pair)) for pair in gate.pairs]
    return _section("What the gate saw", _rows(heads, rows))


def _answers(pair: Pair) -> tuple[str, str]:
    sides = ((pair.incumbent, pair.incumbent_answer), (pair.candidate, pair.candidate_answer))
    before, after = (f"{'pass' if passed else 'fail'}: {said or '(nothing)'}" for passed, said in sides)
    return before, after


def _diff(diff: str) -> str:
    tags = {"+": "ins", "-": "del"}
    lines = ((tags.get(line[:1]), _text(line)) for line in diff.rstrip("\n").split("\n"))
    return "\n".join(f"<{tag}>{line}</{tag}>" if tag else line for tag, line in lines)


def _text(text: str) -> str:
    return escape(marked(text, keep="\n\t"))
