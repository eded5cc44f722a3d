"""User agents and prompts as the agents send them → the agent's name."""

import pytest

from daemon.core.agents import by_prompt, by_user_agent


@pytest.mark.parametrize(
    ("user_agent", "name"),
    [
        ("pi/1.6.0 (linux; node/v26.12.1; x64)", "pi"),
        ("claude-cli/2.1.332 (external, sdk-cli)", "claude-code"),
        ("codex-tui/0.171.0 (Debian 12)", "codex"),
        ("QwenCode/0.24.4 (linux; x64)", "qwen-code"),
        ("OpenAI/Python 3.57.0", "OpenAI"),
        ("", None),
    ],
)
def test_a_user_agent_names_its_agent_or_its_first_word(user_agent: str, name: str | None) -> None:
    assert by_user_agent(user_agent) == name


@pytest.mark.parametrize(
    ("prompt", "name"),
    [
        ("Act as an expert software developer.\nAlways use best practices when coding.\nRespect and use", "aider"),
        ("You are an expert software engineer that generates concise, one-line Git commit messages based", "aider"),
        ("You are a helpful assistant that can interact with a computer.", "mini-swe-agent"),
        ("You are Hermes Agent, an intelligent AI assistant created by Nous Research. You are", "hermes"),
        ("Generate a short, descriptive title (3-7 words) for a conversation that starts with the", "hermes"),
        ("You are operating as and within Mistral Vibe, a CLI coding-agent built by Mistral AI", "mistral-vibe"),
    ],
)
@pytest.mark.parametrize("library", ["OpenAI", "python-httpx", None])
def test_where_only_the_library_is_named_the_prompt_tells_the_agent(prompt: str, name: str, library: str) -> None:
    assert by_prompt(library, prompt) == name


def test_a_script_with_a_prompt_of_its_own_keeps_its_name() -> None:
    assert by_prompt("OpenAI", "Act as an expert software developer. Write a haiku.") == "OpenAI"
    assert by_prompt("OpenAI", "") == "OpenAI"
    assert by_prompt(None, "hello") is None


def test_what_an_agent_says_of_itself_counts_before_its_prompt() -> None:
    assert by_prompt("claude-code", "You are Hermes Agent, an intelligent AI assistant") == "claude-code"
