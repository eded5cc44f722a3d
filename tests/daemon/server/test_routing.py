"""Which engine answers which model name."""

import pytest

from daemon.core.config import Config, parse
from daemon.core.errors import NotFound
from daemon.core.paths import Home
from daemon.core.prices import Price
from daemon.core.providers import RemoteConfig
from daemon.core.records import Dialect
from daemon.engines.llama_cpp import LlamaCpp
from daemon.engines.models import Models
from daemon.engines.remote import Remote
from daemon.server.routing import Router


def router(home: Home, text: str) -> Router:
    config: Config = parse(text)
    models = Models(home)
    embedded = LlamaCpp(model=models.active, config=config.embedded, log=home.logs / "engine.log")
    remotes = {name: Remote(name, remote) for name, remote in config.engines.items()}
    return Router(config, embedded, remotes, models)


TWO = """
engine: openai
engines:
  openai: {base_url: "http://127.0.0.1:1/v1"}
  anthropic: {base_url: "http://127.0.0.1:1/v1", api: anthropic}
models: {"local-*": embedded, "claude-*": anthropic, exact: embedded}
"""


@pytest.mark.parametrize(
    ("model", "dialect", "engine"),
    [
        ("gpt-5", Dialect.CHAT, "openai"),
        ("claude-opus", Dialect.MESSAGES, "anthropic"),
        ("anything", Dialect.MESSAGES, "anthropic"),  # the default engine does not speak it, this one does
        ("local-small", Dialect.MESSAGES, "embedded"),
        ("exact", Dialect.CHAT, "embedded"),
        ("", Dialect.CHAT, "openai"),
        ("'; drop table record; --", Dialect.CHAT, "openai"),
    ],
)
def test_names_globs_default_and_dialect_decide(reef_home: Home, model: str, dialect: Dialect, engine: str) -> None:
    assert router(reef_home, TWO).choose(model, dialect).engine.name == engine


def test_each_engine_has_its_prices_the_one_inside_is_free(reef_home: Home) -> None:
    priced = 'engines: {o: {base_url: "http://x", prices: {"*": {input: 1, output: 2}}}}\nmodels: {m: o}'
    found = router(reef_home, priced)
    assert found.choose("m", Dialect.CHAT).prices == {"*": Price(1.0, 2.0)}
    assert found.choose("other", Dialect.CHAT).prices == {"*": Price(0.0, 0.0)}


def test_nothing_configured_means_the_engine_inside(reef_home: Home) -> None:
    assert router(reef_home, "").choose("gpt-5", Dialect.CHAT).engine.name == "embedded"


def test_where_nobody_speaks_the_dialect_the_default_engine_is_asked_in_its_own(reef_home: Home) -> None:
    one = 'engine: o\nengines: {o: {base_url: "http://127.0.0.1:1"}}'
    assert router(reef_home, one).choose("x", Dialect.MESSAGES).engine.name == "o"


def test_an_unknown_name_is_an_error_only_where_asked(reef_home: Home) -> None:
    strict = router(reef_home, "unknown_model: error")
    assert strict.choose("default", Dialect.CHAT).engine.name == "embedded"
    with pytest.raises(NotFound, match="gpt-5"):
        strict.choose("gpt-5", Dialect.CHAT)


def test_the_list_has_the_default_and_exact_names_but_no_globs(reef_home: Home) -> None:
    assert router(reef_home, TWO).model_names() == ["default", "exact"]


def test_engines_are_asked_in_the_order_given_by_the_names_they_have_for_the_model(reef_home: Home) -> None:
    config = TWO.replace("exact: embedded", "exact: [{engine: openai, model: large}, anthropic, embedded]")
    config = config.replace("api: anthropic", "api: anthropic, key: none")
    found = router(reef_home, config).targets("exact", Dialect.CHAT)
    assert [(target.engine.name, target.model) for target in found] == [
        ("openai", "large"),
        ("anthropic", None),
        ("embedded", None),
    ]


def test_every_engine_is_listed_once(reef_home: Home) -> None:
    assert [engine.name for engine in router(reef_home, TWO).engines()] == ["embedded", "openai", "anthropic"]
    assert RemoteConfig().api == "openai"


@pytest.mark.parametrize(
    ("instead", "engine", "model"),
    [
        ("anthropic/claude-opus", "anthropic", "claude-opus"),  # a provider by its name
        ("claude-opus", "anthropic", "claude-opus"),  # a model as the configuration has it
        ("gpt-6", "openai", "gpt-6"),  # one that only the default engine may know
        ("x-ai/grok", "openai", "x-ai/grok"),  # not every slash is a provider's
        ("local-small", "embedded", None),
    ],
)
def test_a_releases_routing_comes_first(reef_home: Home, instead: str, engine: str, model: str | None) -> None:
    found = router(reef_home, TWO)
    target = found.choose("asked", Dialect.CHAT, {"asked": instead})
    assert (target.engine.name, target.model) == (engine, model)
    assert found.choose("asked", Dialect.CHAT, {"other": instead}).model is None
