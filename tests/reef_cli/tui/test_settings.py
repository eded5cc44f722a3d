"""A person's own theme and keys: read, refused with a reason, kept."""

import pytest

from daemon.core.errors import ConfigError
from daemon.core.paths import Home
from reef_cli.tui.settings import Settings, keep, load, rebound
from tests.fakes.dashboard import FakeDaemon, record, said, session
from tests.reef_cli.tui.seen import dashboard


def test_without_a_file_it_is_as_it_comes(reef_home: Home) -> None:
    assert load(reef_home) == Settings("ansi", hints=True, keys={})


def test_a_file_says_how_it_should_be(reef_home: Home) -> None:
    reef_home.dashboard.write_text('# mine\ntheme: safe\nhints: false\nkeys: {good: "G", bottom: [end, "}"]}\n')
    assert load(reef_home) == Settings("safe", hints=False, keys={"good": ("G",), "bottom": ("end", "}")})


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("theme: pink", "theme: 'pink' is not one of dark, light, ansi, safe", None),
        ("keys: {god: g}", "keys: no action is called 'god'", "did you mean 'good'?"),
        ("keys: {good: j}", "keys: j would mean both down and good in traces", "another key: down, or good"),
        ('keys: {good: "-"}', "keys: minus would mean both good and bad in traces", "good, or bad"),
        ("keys: {good: hyper+g}", "keys.good: there is no key 'hyper+g'", "for example g, +, f2"),
        ("keys: {good: ctrl+m}", "keys.good: many terminals keep ctrl+m", "for example g"),
        ("keys: {good: ctrl+c}", "keys.good: ctrl+c always leaves", None),
        ("keys: {good: g, good: h}", "line 1: not YAML: 'good' is there twice", "correct that line"),
        ("colour: pink", "unknown key 'colour'", "known keys: theme, hints, keys"),
    ],
)
def test_a_mistake_is_named(reef_home: Home, text: str, message: str, hint: str | None) -> None:
    reef_home.dashboard.write_text(text)
    with pytest.raises(ConfigError) as caught:
        load(reef_home)
    assert message in caught.value.message
    assert str(reef_home.dashboard) in caught.value.message
    assert hint is None or hint in str(caught.value.hint)


def test_two_keys_may_change_places() -> None:
    table = {key.id: key for key in rebound({"good": ("-",), "bad": ("+",)})}
    assert (table["good"].keys, table["good"].shown) == (("minus",), "-")
    assert (table["bad"].keys, table["bad"].shown) == (("plus",), "+")


def test_what_is_kept_leaves_the_rest_as_it_was(reef_home: Home) -> None:
    reef_home.dashboard.write_text("# mine\ntheme: dark # at night\nkeys: {good: G, bottom: end}")
    keep(reef_home, "theme", "safe")
    keep(reef_home, "hints", "false")
    assert reef_home.dashboard.read_text() == "# mine\ntheme: safe\nkeys: {good: G, bottom: end}\nhints: false\n"
    assert load(reef_home).theme == "safe"


def test_what_is_kept_makes_the_file(reef_home: Home) -> None:
    keep(reef_home, "theme", "light")
    assert load(reef_home) == Settings("light")
    assert reef_home.dashboard.stat().st_mode & 0o777 == 0o600


async def test_rebound_keys_act_and_are_shown(reef_home: Home, fake: FakeDaemon) -> None:
    fake.sessions = [session(n) for n in range(1, 4)]
    settings = Settings(hints=False, keys={"up": ("i", "up"), "jobs": ("J",), "help": ("E",)})
    async with dashboard(reef_home, settings=settings) as seen:
        await seen.until(lambda: "session 3" in seen.marked)
        assert "E help  q quit" in seen.screen.splitlines()[-1]
        await seen.press("k")  # means nothing any more
        await seen.press("i")
        await seen.until(lambda: "session 2" in seen.marked)
        await seen.press("E")
        await seen.shows("i up        one line up")
        await seen.press("escape", "3", "J")
        await seen.shows("no job yet")


async def test_messages_name_the_keys_as_they_are_bound(reef_home: Home, fake: FakeDaemon) -> None:
    fake.sessions = [session(1)]
    id = fake.sessions[0]["id"]
    entry = {"record": record("rec_1", id), "reports": [], "new_messages": [said("user", "asked")], "answer": None}
    fake.traces = {id: {"session": fake.sessions[0], "records": [entry]}}
    keys = {"undo": ("U",), "mark": ("M",), "reset": ("X",), "sort": ("O",), "find": ("F",)}
    async with dashboard(reef_home, settings=Settings(hints=False, keys=keys)) as seen:
        await seen.until(lambda: "session 1" in seen.marked)
        await seen.press("plus")
        await seen.shows("; U takes it back")
        await seen.press("V")
        await seen.shows("nothing is marked: M marks the first one")
        await seen.press("slash", *"nowhere", "enter")
        await seen.shows("no trace fits; X shows all of them")
        await seen.press("O")
        await seen.shows("in the order of activity; X shows all")
        await seen.press("X")
        await seen.until(lambda: "session 1" in seen.marked)
        await seen.press("enter", "n")
        await seen.shows("nothing is looked for yet: F finds")
