"""The card as a page: every fact is there, and nothing in it acts."""

from dataclasses import replace
from html.parser import HTMLParser

from recipes.gate import page
from tests.recipes.gate.test_card import RELEASE

HOSTILE = "<script>alert(1)</script><img src=x onerror=alert(1)>\"'&\u202e"


class Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.seen: list[tuple[str, list[tuple[str, str | None]]]] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, attrs))

    def handle_data(self, data: str) -> None:
        self.text += data


def read(text: str) -> Tags:
    tags = Tags()
    tags.feed(text)
    return tags


def test_the_page_has_the_card_the_pairs_the_words_and_the_diff() -> None:
    tags = read(page.html(RELEASE, [("report, 0\nrep_1", "Too long.")], "+++ rules.md\n-a\n+b <c>\n"))
    for part in ("accepted: it is better", "What is snow?", "fail: Fog? Fog?", "Too long.", "+b <c>", "0" * 64):
        assert part in tags.text
    assert ("ins", []) in tags.seen
    assert ("del", []) in tags.seen


def test_whatever_anybody_wrote_is_text() -> None:
    assert RELEASE.gate is not None
    pair = replace(RELEASE.gate.pairs[0], prompt=HOSTILE, candidate_answer=HOSTILE)
    hostile = replace(
        RELEASE, reason=HOSTILE, note=HOSTILE, scenario=HOSTILE, files={HOSTILE: "0" * 64},
        gate=replace(RELEASE.gate, reason=HOSTILE, pairs=(pair,)),
    )  # fmt: skip
    tags = read(page.html(hostile, [(HOSTILE, HOSTILE)], f"+{HOSTILE}"))
    allowed = {
        "html", "head", "meta", "title", "style", "body", "h1", "h2", "p", "pre", "table", "tr", "th", "td", "ins",
        "del",
    }  # fmt: skip
    assert {tag for tag, _ in tags.seen} <= allowed
    assert {name for tag, attrs in tags.seen if tag != "meta" for name, _ in attrs} == {"lang"}
    assert "\u202e" not in tags.text
    assert "⟨U+202E⟩" in tags.text


def test_the_policy_lets_nothing_run_or_load_and_fits_the_style() -> None:
    text = page.html(RELEASE, [], "")
    (meta,) = [dict(attrs)["content"] for tag, attrs in read(text).seen if dict(attrs).get("http-equiv")]
    assert str(meta).startswith("default-src 'none'; style-src 'sha256-")
    assert page.POLICY.startswith(str(meta))
    assert "frame-ancestors 'none'" in page.POLICY
