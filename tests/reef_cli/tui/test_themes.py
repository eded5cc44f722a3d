"""Themes: each role can be read, and good is told from bad by any common colour vision."""

import re
from itertools import combinations
from pathlib import Path

import pytest
from rich.color import Color as RichColor
from rich.style import Style
from textual.color import Color

import reef_cli.tui
from reef_cli.tui.app import textual_themes
from reef_cli.tui.themes import ROLES, THEMES, Theme, style

#: What each kind of colour blindness makes of linear RGB, in full: Machado, Oliveira & Fernandes, "A Physiologically-
#: based Model for Simulation of Color Vision Deficiency", IEEE TVCG 15(6), 2009, table 1 (severity 1.0).
_SEEN = {
    "protanopia": ((0.152286, 1.052583, -0.204868), (0.114503, 0.786281, 0.099216), (-0.003882, -0.048116, 1.051998)),
    "deuteranopia": ((0.367322, 0.860646, -0.227968), (0.280085, 0.672501, 0.047413), (-0.011820, 0.042940, 0.968881)),
    "tritanopia": ((1.255528, -0.076749, -0.178779), (-0.078411, 0.930809, 0.147602), (0.004733, 0.691367, 0.303900)),
}

_TABLES = ("themes.py", "app.py")


def colour(theme: Theme, role: str) -> Color:
    found = style(theme, role).color
    assert found is not None
    return Color(*found.get_truecolor())


def linear(one: Color) -> tuple[float, ...]:
    return tuple(n / 12.92 if n <= 0.04045 else ((n + 0.055) / 1.055) ** 2.4 for n in one.normalized)


def seen(one: Color, deficiency: str) -> tuple[float, ...]:
    mixed = [sum(a * b for a, b in zip(row, linear(one), strict=True)) for row in _SEEN[deficiency]]
    return tuple(min(max(n, 0.0), 1.0) ** (1 / 2.2) for n in mixed)


def luminance(one: Color) -> float:
    red, green, blue = linear(one)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


@pytest.mark.parametrize("theme", [theme for theme in THEMES if theme != "ansi"])
def test_every_role_can_be_read(theme: Theme) -> None:
    """A contrast of at least 4.5 : 1 with the background (WCAG 2.2, success criterion 1.4.3)."""
    drawn = textual_themes()[theme].to_color_system().generate()
    ground = Color.parse(drawn["background"])
    words = {role: colour(theme, role) for role in ROLES} | {
        name: Color.parse(drawn[name]) for name in ("primary", "foreground")
    }
    for role, one in words.items():
        low, high = sorted((luminance(ground), luminance(one)))
        assert (high + 0.05) / (low + 0.05) >= 4.5, role


@pytest.mark.parametrize("deficiency", _SEEN)
@pytest.mark.parametrize(("one", "other"), [("good", "bad"), ("added", "removed"), ("good", "error")])
def test_the_safe_theme_tells_apart_what_matters(deficiency: str, one: str, other: str) -> None:
    colours = [seen(colour("safe", role), deficiency) for role in (one, other)]
    assert max(abs(a - b) for a, b in zip(*colours, strict=True)) > 0.2


def test_green_and_red_are_what_it_avoids() -> None:
    """The same measure finds the dark theme's pair nearer to each other for who sees no green."""
    far, near = [
        max(
            abs(a - b)
            for a, b in zip(*(seen(colour(theme, role), "deuteranopia") for role in ("good", "bad")), strict=True)
        )
        for theme in ("safe", "dark")
    ]
    assert far > near


@pytest.mark.parametrize("theme", THEMES)
def test_words_make_a_style(theme: Theme) -> None:
    assert style(theme, "") == Style.null()
    assert style(theme, "good bold") == style(theme, "good") + Style(bold=True)
    with pytest.raises(KeyError):
        style(theme, "green")


def test_a_theme_that_is_not_ours_looks_like_the_terminal() -> None:
    assert style("textual-dark", "good").color == RichColor.parse("green")


def test_each_role_has_its_look() -> None:
    assert all(
        style(a, role) != style(b, role) for a, b in combinations(("dark", "light", "ansi"), 2) for role in ROLES
    )


def test_no_screen_names_a_colour() -> None:
    """Only the tables do: a colour is right in one theme and unreadable in another."""
    named = re.compile(r"""["'](?:[a-z_]+ )*(?:red|green|blue|yellow|cyan|magenta|orange|purple|#[0-9a-fA-F]{6})["']""")
    sources = [path for path in Path(reef_cli.tui.__file__).parent.rglob("*.py") if path.name not in _TABLES]
    assert [path.name for path in sources if named.search(path.read_text("utf-8"))] == []
