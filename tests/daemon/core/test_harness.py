"""The harness's tree: what each path is, what can act, and how its JSON files are read."""

import pytest

from daemon.core import harness
from daemon.core.harness import Config, Entry, Kind, Server, entry


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("rules.md", Entry("rules.md", Kind.RULES)),
        ("playbook.md", Entry("playbook.md", Kind.PLAYBOOK)),
        ("memory/the-team.md", Entry("memory/the-team.md", Kind.MEMORY, "the-team")),
        ("skills/fix/SKILL.md", Entry("skills/fix/SKILL.md", Kind.SKILL, "fix", file="SKILL.md")),
        ("skills/fix/FORMS.md", Entry("skills/fix/FORMS.md", Kind.SKILL, "fix", file="FORMS.md")),
        ("prompts/plan.md", Entry("prompts/plan.md", Kind.PROMPT, "plan")),
        ("config.json", Entry("config.json", Kind.CONFIG)),
        ("mcp.json", Entry("mcp.json", Kind.MCP)),
        ("extensions/pi/a.ts", Entry("extensions/pi/a.ts", Kind.EXTENSION, adapter="pi", file="a.ts")),
        (
            "extensions/a-b/.c/d.json",
            Entry("extensions/a-b/.c/d.json", Kind.EXTENSION, adapter="a-b", file=".c/d.json"),
        ),
    ],
)
def test_every_place_has_a_kind(path: str, expected: Entry) -> None:
    assert entry(path) == expected


@pytest.mark.parametrize(
    "path",
    [
        "", "AGENTS.md", "/rules.md", "../rules.md", "rules.md\n", "Rules.md", "memory/a/b.md", "memory/A.md",
        "skills/a", "skills/a/run.sh", "skills/a/b/SKILL.md", "skills/../SKILL.md", "prompts/a b.md", "mcp/x.json",
        "extensions/x.ts", "extensions/pi", "extensions/pi/", "extensions/pi/../x", "extensions/pi/./x",
        "extensions/pi/...", "extensions/pi/a//b", "extensions/pi/.git/config", "extensions/pi/.gitattributes",
        "extensions/pi/a/.GitModules", "extensions/Pi/x", "extensions/pi/a\\b", "extensions/pi/a\x00b",
        "extensions/pi/a/b/c/d/e/f", f"extensions/pi/{'a' * 65}", "extensions/pi/Con", "extensions/pi/lpt1.ts/a",
        "extensions/pi/a./b", "prompts/aux.md", "memory/nul.md",
    ],
)  # fmt: skip
def test_nothing_else_is_part_of_a_harness(path: str) -> None:
    assert entry(path) is None
    assert harness.executable(path), "what is not known counts as what can act"


def test_what_can_act_is_mcp_servers_and_extensions() -> None:
    paths = ("rules.md", "playbook.md", "memory/a.md", "skills/a/SKILL.md", "prompts/a.md", "config.json")
    assert not any(harness.executable(path) for path in paths)
    assert harness.executable("mcp.json")
    assert harness.executable("extensions/pi/a.ts")
    assert [kind for kind in Kind if not kind.is_text] == [Kind.CONFIG, Kind.MCP, Kind.EXTENSION]


def test_executable_changes_are_found_on_both_sides() -> None:
    before = {f"harness/{path}": "1" for path in ("mcp.json", "rules.md", "extensions/pi/a.ts", "extensions/pi/b.ts")}
    after = {"harness/mcp.json": "2", "harness/extensions/pi/a.ts": "1", "weights/adapter.gguf": "1"}
    after |= {"harness/extensions/pi/c.ts": "1"}
    assert harness.executable_changes(before, after) == ("extensions/pi/b.ts", "extensions/pi/c.ts", "mcp.json")
    assert harness.executable_changes(before, before) == ()


def test_config_says_the_model_and_how_much_it_thinks() -> None:
    assert harness.config('{"model": "openrouter/x-ai/grok:free", "thinking": "off"}') == Config(
        "openrouter/x-ai/grok:free", "off"
    )
    assert harness.config("{}") == Config()
    assert harness.config('{"model": null}') == Config()


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("", "not JSON"),
        ("[]", "not an object"),
        ('{"modle": "x"}', "'modle' is not let in; it has model, thinking"),
        ('{"model": ""}', "no model's name"),
        ('{"model": "--yolo"}', "no model's name"),
        ('{"model": "a b"}', "no model's name"),
        ('{"model": ["a"]}', "no model's name"),
        ('{"thinking": "max"}', "none of off, low, medium, high"),
        ('{"thinking": true}', "none of off"),
        ('{"model": "a", "model": "b"}', "'model' is there twice"),
        ('{"model": "a\\u202eb"}', r"hides U\+202E"),
        ("[" * 100_000, "nested too deep"),
    ],
)
def test_a_config_that_is_none_is_told_why(text: str, what: str) -> None:
    with pytest.raises(ValueError, match=what):
        harness.config(text)


def test_routing_says_which_model_answers() -> None:
    models = {"claude-sonnet-5": "openrouter/x-ai/grok", "gpt-5": "default"}
    assert harness.routing(harness.dump_routing(models)) == models
    assert harness.routing('{"models": {}}') == {}


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("[]", "not an object"),
        ("{}", "has no .*models"),
        ('{"models": []}', "has no .*models"),
        ('{"models": {"a": 1}}', "1 is no model's name"),
        ('{"models": {"a b": "c"}}', "'a b' is no model's name"),
        ('{"models": {"a": "https://elsewhere/x y"}}', "is no model's name"),
        ('{"models": {}, "engines": {}}', "'engines' is not let in"),
    ],
)
def test_a_routing_that_is_none_is_told_why(text: str, what: str) -> None:
    with pytest.raises(ValueError, match=what):
        harness.routing(text)


def test_servers_are_commands_or_addresses() -> None:
    text = """{"mcpServers": {
        "web": {"url": "https://example.com/mcp", "headers": {"authorization": "Bearer x"}},
        "docs": {"command": "npx", "args": ["-y", "docs"], "env": {"LEVEL": "1"}},
        "plain": {"command": "serve"}
    }}"""
    assert harness.mcp(text) == (
        Server("docs", "npx", ("-y", "docs"), {"LEVEL": "1"}),
        Server("plain", "serve"),
        Server("web", url="https://example.com/mcp", headers={"authorization": "Bearer x"}),
    )
    assert harness.mcp('{"mcpServers": {}}') == ()


@pytest.mark.parametrize(
    ("servers", "what"),
    [
        ("[]", "mcpServers"),
        ('{"a b": {"command": "x"}}', "no name for a server"),
        ('{"a": []}', 'either a "command"'),
        ('{"a": {}}', 'either a "command"'),
        ('{"a": {"command": "x", "url": "http://y"}}', 'either a "command"'),
        ('{"a": {"command": " "}}', "no program's name"),
        ('{"a": {"command": 1}}', "no program's name"),
        ('{"a": {"command": "x", "args": "y"}}', "not a list of texts"),
        ('{"a": {"command": "x", "args": [1]}}', "not a list of texts"),
        ('{"a": {"command": "x", "env": {"A": 1}}}', "env .* does not map names to texts"),
        ('{"a": {"command": "x", "headers": {}}}', "'headers' is not let in"),
        ('{"a": {"command": "x", "cwd": "/"}}', "'cwd' is not let in"),
        ('{"a": {"url": "file:///etc/passwd"}}', "is not http"),
        ('{"a": {"url": "http://y", "env": {}}}', "'env' is not let in"),
        ('{"a": {"command": "x", "args": ["a\\u200bb"]}}', r"hides U\+200B"),
        ('{"a": {"command": "x"}, "a": {"command": "y"}}', "'a' is there twice"),
    ],
)
def test_a_server_that_is_none_is_told_why(servers: str, what: str) -> None:
    with pytest.raises(ValueError, match=what):
        harness.mcp(f'{{"mcpServers": {servers}}}')


def test_a_release_is_known_by_its_mark_the_last_one_counts() -> None:
    first, second = harness.mark("r1-0123abcd"), harness.mark("r12-89abcdef")
    assert harness.marked(f"Rules.\\n\\n{first} and {second}".encode()) == "r12-89abcdef"
    assert harness.marked(b"[reef release next] [reef release r1-0123ABCD] [reef release base]") is None


@pytest.mark.parametrize(
    ("paths", "two"),
    [
        (["a/b.md", "a/B.md"], ("a/B.md", "a/b.md")),
        (["a", "a/b"], ("a", "a/b")),
        (["A/b", "a/c"], ("A", "a/c")),
        (["a/b", "a/bc", "b", "ab/b"], None),
    ],
)
def test_two_paths_that_cannot_be_together(paths: list[str], two: tuple[str, str] | None) -> None:
    assert harness.clash(paths) == two


def test_a_release_holds_harness_weights_and_routing() -> None:
    held = ["harness/rules.md", "weights/adapter.gguf", "weights/peft/adapter_model.safetensors", "routing.json"]
    assert all(map(harness.holds, held))
    others = ["rules.md", "harness/x", "harness/", "weights/", "weights/../x", "weights/.git/x", ".gitattributes", ""]
    assert not any(map(harness.holds, others))


@pytest.mark.parametrize(
    ("head", "told"),
    [
        ("description: Say hello: twice.", "Say hello: twice."),
        ('description: "Say \\"hello\\"."', 'Say "hello".'),
        ('description: "Say\\n- other: \\u0000\\ud800"', "Say - other: ⟨U+0000⟩⟨U+D800⟩"),
        ("description: 'It''s a greeting.'", "It's a greeting."),
        ("description: >-\n  Say\n  hello.\ntriggers: [hi]", "Say hello."),
        ("description: Say\n  hello.", "Say hello."),
        ("triggers: [hi]", ""),
    ],
)
def test_what_a_skill_is_for_is_told_on_a_line(head: str, told: str) -> None:
    text = f"---\nname: greet\n{head}\n---\ndescription: of something else\n"
    assert harness.description(text) == told
