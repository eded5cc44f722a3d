"""Whatever lists show, by the beginning of its name: what a person types instead of thirty characters."""

import shlex
from collections.abc import Iterator, Sequence
from typing import Any

from daemon.core.client import Client
from daemon.core.errors import NotFound, UsageError

_PAGE = 500
#: How far back a beginning is looked for.
_PAGES = 20
_FULL = len("ses_") + 26
#: The kind and the moment: what a list shows of a name at least.
_SHORT = len("ses_") + 10
#: Kind → route, the name's field there, and the command that lists them.
_LISTS = {
    "session": ("/reef/sessions", "id", "reef traces list"),
    "receipt": ("/reef/records", "receipt", "reef traces list"),
    "job": ("/reef/jobs", "id", "reef jobs list"),
    "task": ("/reef/tasks", "id", "reef tasks list"),
}


def resolved(client: Client, name: str, *kinds: str, scenario: str | None = None) -> str:
    """The id that ``name`` means: itself, or the only recent one of those kinds (keys of `_LISTS`) that begins so.
    ``scenario``: of that one, where the daemon takes no list of all.

    Raises NotFound, or UsageError for a beginning of several.
    """
    if len(name) >= _FULL:
        return name
    matches: set[str] = set()
    for kind in kinds:
        path, key, _ = _LISTS[kind]
        rows = _recent(client, path, scenario)
        matches |= {found for row in rows if (found := str(row[key])).startswith(name)}
    what = " or ".join(kinds)
    if name in matches:  # a receipt from elsewhere may be as short as it likes
        return name
    if not matches:
        raise NotFound(f"no {what} begins with {name!r}", hint=_LISTS[kinds[0]][2])
    if len(matches) > 1:
        some = ", ".join(sorted(matches)[:4])
        raise UsageError(f"more than one {what} begins with {name!r}: {len(matches)}", hint=f"for example {some}")
    return matches.pop()


def unknown(client: Client, scenario: str | None) -> str:
    """What to say where nothing is found in a scenario that does not exist: its name may be a slip. Else nothing."""
    if scenario is None or any(row["name"] == scenario for row in client.get("/reef/scenarios")["items"]):
        return ""
    return f"no scenario is called {scenario!r} yet; which there are: reef scenarios list"


def only(scenario: str | None) -> str:
    """The option of a command that goes on in the same scenario."""
    return f" --scenario {shlex.quote(scenario)}" if scenario not in (None, "default") else ""


def beginnings(names: Sequence[str]) -> list[str]:
    """The names of a list as short as `resolved` can still tell them apart."""
    length = _SHORT
    while len({name[:length] for name in names}) < len(set(names)):
        length += 1
    return [name[:length] for name in names]


def _recent(client: Client, path: str, scenario: str | None) -> Iterator[dict[str, Any]]:
    before = None
    for _ in range(_PAGES):
        page = client.get(path, limit=_PAGE, before=before, scenario=scenario)
        yield from page["items"]
        before = page["next"]
        if before is None:
            return
