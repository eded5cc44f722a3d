"""Chinese and Japanese are found wherever they stand, other scripts as before."""

import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daemon.core.privacy import Purge
from daemon.store import unspaced
from daemon.store.db import Store
from daemon.store.migrations import STEPS
from daemon.store.query import parse
from tests.daemon.store.older import downgraded
from tests.fakes.daemon import until
from tests.fakes.exchanges import Conversation, assistant, record, system, transcript, user

TEXT = "東京都の天気をGPUで計算してください。カタカナのテスト"


def found(store: Store, text: str) -> list[str]:
    until(lambda: store.search(parse("x")).unindexed == 0, "the index", 20)
    return [hit.record.receipt for hit in store.search(parse(text)).items]


def say(store: Store, text: str) -> str:
    return record(store, transcript([system("You help."), user(text)], "好的")).receipt


@pytest.mark.parametrize(
    "text", ["東京都", "京都", "天気", "計", "GPUで計算", "カタカナ", "テスト", "東京*", '"の天気を"']
)
def test_any_part_of_a_run_is_found(store: Store, text: str) -> None:
    wanted = say(store, TEXT)
    say(store, "something else 大阪")
    assert found(store, text) == [wanted]


@pytest.mark.parametrize("text", ["都京", "東天", "京気", "天気 大阪", "-東京都 天気", "計算機"])
def test_what_is_not_there_is_not_found(store: Store, text: str) -> None:
    say(store, TEXT)
    assert found(store, text) == []


def test_pairs_that_are_all_there_but_apart_are_none(store: Store) -> None:
    say(store, "東京 and 京都")
    assert found(store, "東京都") == []


def test_what_was_indexed_before_is_found_too(store: Store, path: Path) -> None:
    wanted = say(store, TEXT)
    store.close()
    downgraded(path, len(STEPS) - 1)
    again = Store.open(path, durability="normal")
    assert found(again, "天気") == [wanted]
    again.close()


def test_it_is_forgotten_whole(store: Store) -> None:
    """What is taken out of the index must be what was put in."""
    talk = Conversation(store, said=[system("s"), user("秘密の計画"), assistant("了解")])
    gone = talk.turn(TEXT, "はい、計算します")
    stays = say(store, "天気予報")
    assert set(found(store, "天気")) == {gone.receipt, stays}
    store.purges.run(Purge(sessions=(gone.session,)), lambda *_: None)
    assert found(store, "天気") == [stays]
    assert store.verify() == []


@given(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="々〆", max_codepoint=0x303F)))
def test_other_scripts_are_untouched(text: str) -> None:
    assert unspaced.spread(text) == text


def test_it_costs_nothing_where_there_is_none() -> None:
    text = "def function(argument): return argument  # a line of a program\n" * 10_000
    started = time.perf_counter()
    assert unspaced.spread(text) is text
    assert time.perf_counter() - started < 0.005
