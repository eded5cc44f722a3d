"""What a person changed of the files that Reef rendered for their agents, where they ask how things are."""

from adapters import session
from adapters.session import Place
from daemon.core.paths import Home
from reef_cli import diagnostics
from reef_cli.output import visible


def found(where: Home) -> dict[str, list[str]]:
    """Agent → paths, for those whose files were changed; also of one that is not installed any more."""
    told = {folder.name: session.edited(Place(folder)) for folder in sorted(where.agents.glob("*/"))}
    return {name: list(map(str, paths)) for name, paths in told.items() if paths}


def tell(changed: dict[str, list[str]]) -> None:
    for name, paths in changed.items():
        for path in paths:
            diagnostics.say(visible(f"changed by hand of {name}'s files, and read by no new run: {path}", keep=""))
    if changed:
        diagnostics.say("  hint: reef harness edit changes them for every run; remove what you do not need")
