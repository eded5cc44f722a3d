"""Who is calling: scenario, agent, conversation and place, read from the headers alone.

Facts per agent are in the tests (recorded headers of real ones). What the body tells about the conversation is the
store's business: it matches messages, and knows agents by their prompts.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import unquote

from daemon.core.agents import by_user_agent
from daemon.core.errors import UsageError
from daemon.wire import jsontext

DEFAULT_SCENARIO: Final = "default"
_SCENARIO: Final = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._/-]{0,126}[A-Za-z0-9])?")
_TAG: Final = "x-reef-tag-"

#: Headers in which agents send the conversation's id, strongest first: the wrapper's own, then each vendor's.
_SESSION_HEADERS: Final = (
    "x-reef-session-id",
    "x-reef-tag-session",
    "x-claude-code-session-id",
    "session-id",
    "session_id",
    "x-session-id",
    "x-session-affinity",
    "x-affinity",
)

_MAX_FIELD: Final = 512
#: 4096 bytes, each as ``%xx``: a path that is cut is another folder.
_MAX_PATH: Final = 3 * 4096


@dataclass(frozen=True, slots=True)
class Identity:
    scenario: str
    agent: str | None
    session_keys: tuple[str, ...]
    subagent: str | None
    spawner: str | None
    #: Its headers say that it is no turn of the conversation.
    side: bool
    cwd: str | None
    commit: str | None
    #: Whether the tree differs from that commit, where the agent says so itself.
    dirty: bool | None
    tags: Mapping[str, str]


def scenario_name(name: str | None) -> str:
    """The scenario named, or ``default``. Raises UsageError for a name that could not be a folder or a Git ref."""
    if not name:
        return DEFAULT_SCENARIO
    if not _SCENARIO.fullmatch(name) or ".." in name or "//" in name:
        raise UsageError(
            f"{name[:80]!r} is not a scenario name",
            hint="1 to 128 of A-Z a-z 0-9 . _ - /, beginning and ending with a letter or digit",
        )
    return name


def identify(headers: Mapping[str, str]) -> Identity:
    """Read lower-case headers. Raises UsageError for a bad scenario name; everything else is taken as it comes,
    cut to size.
    """
    field = {name: value[:_MAX_FIELD] for name, value in headers.items()}
    keys = dict.fromkeys(field[name] for name in _SESSION_HEADERS if field.get(name))
    codex = _codex(headers.get("x-codex-turn-metadata"))
    cwd, commit, dirty = _workspace(codex)
    declared = field.get("x-reef-commit") or field.get(f"{_TAG}commit")
    return Identity(
        scenario=scenario_name(headers.get("x-reef-scenario")),
        agent=field.get("x-reef-adapter") or by_user_agent(field.get("user-agent", "")),
        session_keys=tuple(keys),
        subagent=field.get("x-claude-code-agent-id") or _thread(field),
        spawner=field.get("x-claude-code-parent-agent-id") or _other(field, "x-codex-parent-thread-id"),
        side=_aside(codex) or field.get("x-openai-memgen-request") == "true",
        # A header is ASCII, a path may be anything.
        cwd=unquote(headers["x-reef-cwd"][:_MAX_PATH]) if "x-reef-cwd" in field else field.get(f"{_TAG}cwd") or cwd,
        commit=declared or commit,
        dirty=None if declared else dirty,
        tags={name.removeprefix(_TAG): value for name, value in field.items() if name.startswith(_TAG)},
    )


def _thread(field: Mapping[str, str]) -> str | None:
    """Codex: the threads of its sub-agents have ids of their own beside the session's; a review says its name."""
    return _other(field, "thread-id") or field.get("x-openai-subagent")


def _other(field: Mapping[str, str], name: str) -> str | None:
    """A thread's id where it is not the main one, whose id is the session's."""
    session = field.get("session-id") or field.get("session_id")
    found = field.get(name)
    return found if session and found and found != session else None


def _codex(turn: str | None) -> dict[str, Any]:
    try:
        value = jsontext.decode(turn) if turn else None
    except jsontext.NotJson:
        return {}
    return value if isinstance(value, dict) else {}


def _aside(codex: dict[str, Any]) -> bool:
    """Codex: a call that is no turn, or one for a title, which has a thread and a session of its own."""
    return codex.get("request_kind", "turn") != "turn" or codex.get("thread_source") == "thread_title"


def _workspace(codex: dict[str, Any]) -> tuple[str | None, str | None, bool | None]:
    """Codex's first workspace: its path and, where it is a repository, the commit and whether the tree differs."""
    workspaces = codex.get("workspaces")
    for path, known in workspaces.items() if isinstance(workspaces, dict) else ():
        told = known if isinstance(known, dict) else {}
        commit, dirty = told.get("latest_git_commit_hash"), told.get("has_changes")
        whole = commit[:_MAX_FIELD] if isinstance(commit, str) else None
        return path[:_MAX_FIELD], whole, dirty if isinstance(dirty, bool) else None
    return None, None, None
