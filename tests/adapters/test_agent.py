"""Adapters as data: Reef's own are whole, a person's is one file more, and what is wrong with one is said."""

import json
import os

import pytest

from adapters import agent, described, template
from daemon.core.errors import ConfigError, NotFound
from daemon.core.paths import Home

OWN = {
    "title": "Own",
    "command": "reef-own",
    "summary": "mine",
    "program": "own",
    "check": ["Hello"],
    "modes": {"isolated": {"environment": {"OWN_HOME": "$REEF_SESSION_DIRECTORY", "OTHER": None}}},
}


def write(home: Home, name: str, text: str) -> None:
    (home.root / "adapters").mkdir(exist_ok=True)
    (home.root / "adapters" / f"{name}.json").write_text(text)


def test_every_one_that_comes_with_reef_is_whole(reef_home: Home) -> None:
    commands = set()
    for name in agent.names(reef_home):
        adapter = agent.load(reef_home, name)
        assert (adapter.name, adapter.modes.keys() <= set(agent.MODES)) == (name, True)
        commands.add(adapter.command)
        for mode in adapter.modes.values():
            assert template.places(mode.release, adapter.folder) <= described.OF_RELEASE
            assert template.places([mode.session, mode.seeds], adapter.folder) <= described.OF_RUN
            for source in [*mode.release.values(), *mode.session.values(), *mode.seeds.values()]:
                if not isinstance(source, str) and "file" in source:
                    assert (adapter.folder / source["file"]).is_file(), source
            assert not {*mode.release, *mode.session} & set(mode.shared)
    assert len(commands) == len(agent.names(reef_home))
    assert "pi" in agent.names(reef_home)


def test_a_persons_own(reef_home: Home) -> None:
    write(reef_home, "own", json.dumps(OWN))
    write(reef_home, "My own (old)", json.dumps(OWN))  # no name that a command could take
    assert "own" in agent.names(reef_home)
    assert not [name for name in agent.names(reef_home) if "old" in name]
    own = agent.load(reef_home, "own")
    assert (own.version, own.mode("isolated").environment["OTHER"]) == (None, None)
    with pytest.raises(NotFound, match="own has no mode 'overlay'"):
        own.mode("overlay")


def test_skills_are_listed_in_rules_that_are_told_anew_each_run(reef_home: Home) -> None:
    fills = {"environment": {"RULES": "$REEF_RULES"}}
    modes: list[tuple[dict[str, object], bool]] = [
        ({**fills}, True),
        ({"arguments": [{"only": "REEF_RULES", "words": ["--rules", "$REEF_RULES"]}]}, True),
        ({"session": {"rules.json": {"json": ["$REEF_RULES"]}}}, True),
        ({"release": {"RULES.md": "$REEF_RULES"}}, False),
        ({"environment": {"URL": "$REEF_URL"}}, False),
        ({**fills, "skills": "s"}, False),
    ]
    for mode, listed in modes:
        write(reef_home, "own", json.dumps({**OWN, "modes": {"overlay": mode}}))
        assert agent.load(reef_home, "own").mode("overlay").listed == listed


def test_what_is_no_file_is_none(reef_home: Home) -> None:
    write(reef_home, "own", json.dumps(OWN))
    folder = reef_home.root / "adapters"
    (folder / "folder.json").mkdir()
    (folder / "nowhere.json").symlink_to("gone")
    os.mkfifo(folder / "pipe.json")
    whole, wrong = agent.found(reef_home)
    assert ("own" in [one.name for one in whole], wrong) == (True, [])
    with pytest.raises(NotFound):
        agent.load(reef_home, "pipe")


def test_a_persons_own_in_the_place_of_reefs(reef_home: Home) -> None:
    write(reef_home, "pi", json.dumps({**OWN, "title": "My Pi"}))
    assert agent.load(reef_home, "pi").title == "My Pi"


def test_whose_own_key_goes_on(reef_home: Home) -> None:
    claude, pi = agent.load(reef_home, "claude-code"), agent.load(reef_home, "pi")
    mode = claude.mode(claude.first_mode(keep_keys=True), keep_keys=True)
    assert "ANTHROPIC_BASE_URL" in mode.environment
    assert not mode.environment.keys() & {"ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_API_KEY", "ANTHROPIC_MODEL"}
    assert set(mode.own) <= claude.modes["overlay"].environment.keys()
    for other, name, hint in (
        (claude, "isolated", "--mode overlay"),
        (pi, "overlay", "give it to Reef: key: env:NAME"),
    ):
        with pytest.raises(NotFound, match="cannot send a key of its own") as refused:
            other.mode(name, keep_keys=True)
        assert str(refused.value.hint).startswith(hint)


@pytest.mark.parametrize("name", ["claude", "claud", "claude-code-cli"])
def test_a_name_that_means_one_agent_leads_to_it(reef_home: Home, name: str) -> None:
    with pytest.raises(NotFound) as wrong:
        agent.load(reef_home, name)
    assert wrong.value.hint == "--adapter claude-code"


@pytest.mark.parametrize("name", ["emacs", "../pi", "", "PI", "x" * 100])
def test_a_name_that_nobody_has(reef_home: Home, name: str) -> None:
    with pytest.raises(NotFound, match="no adapter is called"):
        agent.load(reef_home, name)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "Expecting property name"),
        ("[" * 100_000, "recursion"),
        (json.dumps({**OWN, "summary": "x" * (1 << 20)}), "more than 1048576 bytes"),
        (json.dumps({**OWN, "command": "rm"}), "command: 'rm' is no command"),
    ],
)
def test_what_is_wrong_with_one_is_said(reef_home: Home, text: str, said: str) -> None:
    write(reef_home, "own", text)
    with pytest.raises(ConfigError, match=r"own\.json: ") as raised:
        agent.load(reef_home, "own")
    assert said in raised.value.message
    whole, wrong = agent.found(reef_home)
    assert ("pi" in [one.name for one in whole], [error.message for error in wrong]) == (True, [raised.value.message])


def test_a_version_lacks_what_came_later(reef_home: Home) -> None:
    pi = agent.load(reef_home, "pi")
    assert (pi.at("1.6.0"), pi.at("0.99.0"), pi.at("0.74.2").mcp) == (pi, pi, {})


def test_versions_compare_by_their_numbers() -> None:
    assert agent.numbers("1.10.0-beta.2") > agent.numbers("1.9")
    assert agent.numbers("latest") == ()


def test_a_mode_may_list_models_otherwise(reef_home: Home) -> None:
    codex = agent.load(reef_home, "codex")
    assert codex.listing(codex.modes["isolated"]) == codex.model
    assert codex.listing(codex.modes["overlay"]) == {**codex.model, "visibility": "hide"}
