"""Plain values become typed settings, or an error that names the place."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import pytest

from daemon.core.errors import ConfigError
from daemon.core.settings import plain_values, typed


@dataclass(frozen=True, slots=True)
class Inner:
    name: str
    weight: float = 1.0


@dataclass(frozen=True, slots=True)
class Outer:
    many: Mapping[str, tuple[Inner, ...]] = field(default_factory=dict)
    words: tuple[str, ...] = ()


@pytest.mark.parametrize(
    ("value", "made"),
    [
        ("a", (Inner("a"),)),
        (["a", {"name": "b", "weight": 2}], (Inner("a"), Inner("b", 2.0))),
        ({"name": "b"}, (Inner("b"),)),
        ([], ()),
    ],
)
def test_one_or_many_plain_or_whole(value: object, made: tuple[Inner, ...]) -> None:
    assert typed(Outer, {"many": {"x": value}}, "file").many == {"x": made}


def test_a_list_of_words() -> None:
    assert typed(Outer, {"words": ["a", "b"]}, "file").words == ("a", "b")


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ({"weight": 1}, "file: many.x: name is missing"),
        ([3], "file: many.x: expected a mapping, got 3"),
        ({"name": "a", "wieght": 1}, "file: many.x: unknown key 'wieght'"),
    ],
)
def test_what_does_not_fit_is_named(value: object, said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        typed(Outer, {"many": {"x": value}}, "file")
    assert caught.value.message == said


def test_a_key_that_is_there_twice_is_no_configuration() -> None:
    assert plain_values("a: 1\nb: {a: 2}", "file") == {"a": 1, "b": {"a": 2}}
    with pytest.raises(ConfigError, match="file, line 3: not YAML: 'a' is there twice"):
        plain_values("a: 1\nb: 2\na: 3", "file")


@pytest.mark.parametrize("text", ["a: " + "[" * 20_000, "{a: " * 5_000])
def test_what_is_deeper_than_anything_is_no_configuration(text: str) -> None:
    with pytest.raises(ConfigError, match="file: nothing here is that deep"):
        plain_values(text, "file")
