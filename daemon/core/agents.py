"""Which coding agent asks: by its user agent, or by how its prompt begins where that only names its client library.

Two tables, as the agents were seen to send. What is not in them keeps the first word of its user agent. A prompt must
be the agent's own: one that a person's script may have too would put that script's work under the agent's name.
"""

from typing import Final

#: First words of user agents.
_USER_AGENTS: Final = (
    ("pi/", "pi"),
    ("claude-cli/", "claude-code"),
    ("codex", "codex"),
    ("opencode/", "opencode"),
    ("QwenCode/", "qwen-code"),
)
#: First words of the user agents of libraries that agents are made with.
_LIBRARIES: Final = (
    "OpenAI", "AsyncOpenAI", "Anthropic", "AsyncAnthropic", "litellm", "python-httpx", "python-requests", "Python",
    "node", "undici",
)  # fmt: skip
#: How prompts begin, white space folded: the agent's own, and those of its titles, summaries and commit messages.
_PROMPTS: Final = (
    ("Act as an expert software developer. Always use best practices when coding.", "aider"),
    ("Act as an expert software developer. Take requests for changes to the supplied code.", "aider"),
    ("Act as an expert software developer who edits source code.", "aider"),
    ("Act as an expert software developer and make changes to source code.", "aider"),
    ("Act as an expert architect engineer and provide direction to your editor engineer.", "aider"),
    ("Act as an expert code analyst. Answer questions about the supplied code.", "aider"),
    ("Act as an expert code analyst. Understand the user's question or request, solely to", "aider"),
    ("You are an expert on the AI coding tool called Aider.", "aider"),
    ("You are an expert software engineer that generates concise, one-line Git commit messages", "aider"),
    ("*Briefly* summarize this partial conversation about programming.", "aider"),
    ("You are a helpful assistant that can interact with a computer.", "mini-swe-agent"),
    ("You are a helpful assistant that can interact with a computer shell to solve", "mini-swe-agent"),
    ("You are a helpful assistant that can interact multiple times with a computer shell", "mini-swe-agent"),
    ("You are Hermes Agent, an intelligent AI assistant created by Nous Research.", "hermes"),
    ("Generate a short, descriptive title (3-7 words) for a conversation", "hermes"),
    ("You are a summarization agent creating a context checkpoint.", "hermes"),
    ("You are operating as and within Mistral Vibe", "mistral-vibe"),
    ("You are a personal assistant running inside OpenClaw.", "openclaw"),
)
_LOOK: Final = 200
_MOST: Final = 40


def by_user_agent(user_agent: str) -> str | None:
    """The agent's name, else the first word; None where there is none."""
    for start, name in _USER_AGENTS:
        if user_agent.startswith(start):
            return name
    return user_agent.partition("/")[0][:_MOST] or None


def by_prompt(sender: str | None, prompt: str) -> str | None:
    """``sender``, but where that is a library or nothing, the agent whose prompt this is."""
    if sender is not None and sender not in _LIBRARIES:
        return sender
    beginning = " ".join(prompt[:_LOOK].split())
    return next((name for start, name in _PROMPTS if beginning.startswith(start)), sender)
