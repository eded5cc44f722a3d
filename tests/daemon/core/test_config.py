"""Configuration: typed, checked, and errors that say what to change."""

from pathlib import Path

import pytest

from daemon.core.config import Config, load, parse
from daemon.core.errors import ConfigError
from daemon.core.prices import Price
from daemon.core.providers import RemoteConfig, Route

PRICED = "engines: {x: {base_url: 'https://x', prices: PRICES}}"

ARTICLE = """
reef:
  recipe: recipes.sao.recipe:SAORecipe   # Plug in an evolution recipe
  batch_size: 1                          # Recipe-specific configuration
  max_staleness: 18
"""


@pytest.mark.parametrize("text", ["", "\n# nothing\n", "{}"])
def test_nothing_said_means_the_defaults(text: str) -> None:
    assert parse(text) == Config()


def test_what_agents_count_on_is_so_unless_told_otherwise() -> None:
    """Pi gives up after 300 s without a byte, a history of screenshots has 25 MB, and a long prompt is slow to read."""
    server, remote = Config().server, RemoteConfig(base_url="http://x")
    assert 0 < server.keepalive_seconds < 15
    assert server.max_body_mb >= 64
    assert remote.connect_seconds < server.keepalive_seconds  # a provider that is not there is an error of its own
    assert remote.read_seconds > 310


def test_the_articles_file_loads_as_printed() -> None:
    assert parse(ARTICLE).reef == {"recipe": "recipes.sao.recipe:SAORecipe", "batch_size": 1, "max_staleness": 18}


def test_everything_can_be_set() -> None:
    config = parse("""
engine: claude
unknown_model: error
models: {"claude-*": claude, default: embedded}
server: {port: 9000, drain_seconds: 5}
embedded: {context: 4096, threads: null, idle_unload_seconds: 0}
engines:
  claude: {base_url: "https://api.anthropic.com", api: anthropic, key: "env:ANTHROPIC_API_KEY"}
store: {durability: normal}
""")
    assert (config.engine, config.unknown_model, config.models["claude-*"]) == ("claude", "error", (Route("claude"),))
    assert (config.server.port, config.server.drain_seconds, config.server.host) == (9000, 5.0, "127.0.0.1")
    assert (config.embedded.context, config.embedded.threads, config.embedded.idle_unload_seconds) == (4096, None, 0.0)
    remote = RemoteConfig("https://api.anthropic.com", "anthropic", "env:ANTHROPIC_API_KEY")
    assert config.engines == {"claude": remote}
    assert config.store.durability == "normal"


@pytest.mark.parametrize(
    ("text", "said", "hint"),
    [
        ("sever: {}", "unknown key 'sever'", "'server'"),
        ("server: {prot: 1}", "server: unknown key 'prot'", "'port'"),
        ("zzz: 1", "unknown key 'zzz'", "known keys"),
        ("server: {port: abc}", "server: port: expected int, got 'abc'", None),
        ("server: {port: true}", "expected int", None),
        ("server: {drain_seconds: -1}", "negative", None),
        ("server: {drain_seconds: .nan}", "not a finite number", None),
        ("server: {drain_seconds: .inf}", "not a finite number", None),
        ("server: {port: 99999}", "99999 is not a port", "1 to 65535"),
        ("engines: {x: {base_url: 'http://[x'}}", "is not a URL", "https://"),
        ("engines: {x: {base_url: 'http://'}}", "is not a URL", "https://"),
        ("engines: {x: {base_url: 'http://host:99999'}}", "is not a URL", "https://"),
        ("store: {durability: maybe}", "'maybe' is not one of full, normal", None),
        ("engine: claude", "no engine is called 'claude'", "embedded"),
        ("models: {x: claude}", "models.x: no engine is called 'claude'", "embedded"),
        ("engines: {embedded: {base_url: 'http://x'}}", "taken", "another name"),
        ("engines: {x: {base_url: 'api.openai.com'}}", "is not a URL", "https://"),
        ("engines: {x: {base_url: 'http://me:secret@x'}}", "engines.x.base_url holds more than", "keyring:NAME"),
        ("engines: {x: {base_url: 'http://x/v1?key=secret'}}", "engines.x.base_url holds more than", "keyring:NAME"),
        ("models: {x: []}", "models.x: no engine is named", "[embedded]"),
        (PRICED.replace("PRICES", "{m: 3}"), "prices.m: expected a mapping, got 3", None),
        (PRICED.replace("PRICES", "{m: {input: 3}}"), "prices.m: output is missing", None),
        (PRICED.replace("PRICES", "{m: {inptu: 3, output: 1}}"), "unknown key 'inptu'", "'input'"),
        (PRICED.replace("PRICES", "{m: {input: -3, output: 1}}"), "prices.m: input: -3.0 is negative", None),
        (PRICED.replace("PRICES", "{m: {input: '3 $', output: 1}}"), "input: expected float, got '3 $'", None),
        (
            PRICED.replace("PRICES", "{'*': {input: 1, output: 1}, 'a*': {input: 2, output: 2}}"),
            "engines.x.prices.a*: never used",
            "'a*' before '*'",
        ),
        ("models: {x: [{model: y}]}", "models.x: engine is missing", None),
        ("models: {x: {engine: embedded, modle: y}}", "models.x: unknown key 'modle'", "'model'"),
        ("models: {x: {engine: embedded, model: y}}", "models.x: the engine inside answers with one model", "use y"),
        ("models: {x: [embedded, lost]}", "models.x: no engine is called 'lost'", "embedded"),
        ("models: {'*': embedded, 'gpt-*': embedded}", "models.gpt-*: never asked", "put 'gpt-*' before '*'"),
        ("models: {x: embedded, x: embedded}", "'x' is there twice", None),
        ("- a\n- b", "expected a mapping", None),
        ("models: [a]", "models: expected a mapping", None),
        ("a: [", "serve.yaml, line 1: not YAML: ", "correct that line"),
        ("a: b\nc: {\nd", "serve.yaml, line 3: not YAML: ", "correct that line"),
        ("a: \x07", "serve.yaml: not YAML: ", None),
        ("server: {host: 0.0.0.0}", "server.host is '0.0.0.0'", "127.0.0.1"),
        ("server: {port: 65536}", "server.port: 65536 is not a port", "65535"),
        ("embedded: {parallel: 0}", "embedded.parallel: at least 1 is needed, got 0", None),
        ("telemetry: {endpoint: collector}", "telemetry.endpoint is not the URL", "http://127.0.0.1:4318"),
        ("embedded: {context: 0}", "embedded.context: at least 1 is needed, got 0", None),
    ],
)
def test_a_mistake_is_named_with_a_way_out(text: str, said: str, hint: str | None) -> None:
    with pytest.raises(ConfigError) as caught:
        parse(text, source="serve.yaml")
    assert said in caught.value.message
    assert "serve.yaml" in caught.value.message
    if hint is not None:
        assert hint in (caught.value.hint or "")


def test_a_key_in_the_configuration_is_refused_and_not_repeated() -> None:
    with pytest.raises(ConfigError) as caught:
        parse("engines: {x: {base_url: 'https://x:secret@x', key: sk-live-1234}}")
    assert "secret" not in f"{caught.value.message}{caught.value.hint}"
    with pytest.raises(ConfigError) as caught:
        parse("engines: {x: {base_url: 'https://x', key: sk-live-1234}}")
    assert "sk-live-1234" not in f"{caught.value.message}{caught.value.hint}"


def test_prices_are_what_a_person_wrote() -> None:
    prices = "{'gpt-5*': {input: 1.25, cached: 0.125, output: 10}, other: {input: 3, output: 15, cache_write: 3.75}}"
    assert parse(PRICED.replace("PRICES", prices)).engines["x"].prices == {
        "gpt-5*": Price(input=1.25, output=10.0, cached=0.125),
        "other": Price(input=3.0, output=15.0, cache_write=3.75),
    }


TWO = """
engines:
  near: {base_url: "https://near.example/v1"}
  far: {base_url: "https://far.example/v1", key: KEY}
models: {"gpt-*": [near, {engine: far, model: large}, embedded]}
"""


def test_a_name_may_go_to_several_engines_in_order() -> None:
    config = parse(TWO.replace("KEY", "env:FAR"))
    assert config.models["gpt-*"] == (Route("near"), Route("far", "large"), Route("embedded"))


def test_a_fallback_is_never_sent_the_key_of_another_provider() -> None:
    with pytest.raises(ConfigError, match="'far' would be sent the key that the agent has for 'near'") as caught:
        parse(TWO.replace("KEY", "agent"))
    assert "none, keyring:NAME" in str(caught.value.hint)
    assert parse(TWO.replace("KEY", "agent").replace("far.example", "near.example"))


def test_a_collectors_password_is_refused_and_not_repeated() -> None:
    with pytest.raises(ConfigError) as caught:
        parse("telemetry: {endpoint: 'https://me:hunter2@collector'}")
    assert "hunter2" not in f"{caught.value.message}{caught.value.hint}"


def test_a_file_is_read(tmp_path: Path) -> None:
    file = tmp_path / "serve.yaml"
    file.write_text(ARTICLE)
    assert load(file).reef["batch_size"] == 1


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no configuration at"):
        load(tmp_path / "none.yaml")
    (tmp_path / "odd.yaml").write_bytes(b"\xff\xfe\x00")
    for path in (tmp_path, tmp_path / "odd.yaml"):
        with pytest.raises(ConfigError, match="cannot read"):
            load(path)


def test_a_scenarios_scale() -> None:
    assert parse("scenarios: {work: {scores: [1, 5]}}").scenarios["work"].scores == (1, 5)
    assert parse("scenarios: {work: {}}").scenarios["work"].scores is None


@pytest.mark.parametrize("scores", ["[5, 1]", "[1]", "[1, 2, 3]", "[1, 10]", "[3, 3]"])
def test_what_is_no_scale(scores: str) -> None:
    with pytest.raises(ConfigError, match=r"scenarios\.work\.scores: .* is no scale"):
        parse(f"scenarios: {{work: {{scores: {scores}}}}}")
