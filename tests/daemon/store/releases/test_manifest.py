"""The bytes that get signed, and what may be read from them."""

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as some

from daemon.core.errors import Untrusted
from daemon.core.releases import Guard, Release, ReleaseKind, ReleaseState, Weights
from daemon.store.releases import manifest
from tests.fakes.releases import ACCEPTED

RELEASE = Release(
    id="r3-0123abcd", scenario="work/api", number=3, kind=ReleaseKind.LEARNED, parent="r2-00000000",
    created_ns=1_796_000_000_123_456_789, reason="schärfer\n\u2028 'kürzer'", recipe="sft", job="job_1",
    config={"rate": 1e-4, "deep": {"list": [1, None, "x"]}}, records=("rec_1",), instructions=("ins_1",),
    weights=Weights("a" * 64, "b" * 64, 10**9, 8, 16.0, "c" * 64), files={"harness/rules.md": "d" * 64},
    gate=replace(ACCEPTED, guard=Guard(20, 19, 1, 1, True)), environment={"gpu": "none"},
)  # fmt: skip


def test_what_is_written_is_read_again() -> None:
    assert manifest.load(manifest.dump(RELEASE)) == RELEASE


def test_the_same_release_is_the_same_bytes_and_says_nothing_that_changes() -> None:
    moved = replace(RELEASE, state=ReleaseState.PENDING, commit="f" * 40, head=True, note="x")
    shuffled = replace(RELEASE, config=dict(reversed(list(RELEASE.config.items()))))
    assert manifest.dump(moved) == manifest.dump(shuffled) == manifest.dump(RELEASE)


@pytest.mark.parametrize(
    "change",
    [
        {"format": 2}, {"format": None}, {"id": "base"}, {"id": "r4-0123abcd"}, {"id": "r3"}, {"id": "r3-0123ABCD"},
        {"id": "r3-0123abcd\r\nx-evil: 1"}, {"number": "3"}, {"number": -3}, {"kind": "odd"}, {"files": ["x"]},
        {"gate": {"verdict": "accept"}}, {"weights": {}}, {"created_ns": 1.5},
    ],
)  # fmt: skip
def test_anything_else_is_untrusted(change: dict[str, object]) -> None:
    told = json.loads(manifest.dump(RELEASE)) | change
    with pytest.raises(Untrusted):
        manifest.load(json.dumps(told).encode())


@given(some.binary(max_size=200) | some.text(max_size=50).map(str.encode) | some.just(b"[" * 100_000))
def test_no_bytes_are_half_understood(raw: bytes) -> None:
    with pytest.raises(Untrusted):
        manifest.load(raw)


@pytest.mark.parametrize(
    ("id", "number"),
    [("r0-0123abcd", 0), ("r12-0123abcd", 12), ("r12", 12), ("base", None), ("r0", None), ("r012", None), ("", None)],
)
def test_ids_hold_their_number(id: str, number: int | None) -> None:
    assert manifest.number_of(id) == number
