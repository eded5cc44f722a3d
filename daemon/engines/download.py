"""One file over HTTP: resumed where it broke off, checked, and never more trusted than its checksum.

A token goes to the host it was meant for and to no other; a redirect elsewhere loses it. Bytes arrive in the partial
file only, which the caller moves into place, so that a file under its final name is always whole and checked.
"""

import asyncio
import errno
import hashlib
import shutil
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

import aiohttp
from yarl import URL

from daemon.core.errors import NotFound, ReefError, Unauthorised, UpstreamUnreachable, UsageError
from daemon.engines.egress import proxy_for

#: Called on the event loop with a phase (``download``, ``verify``, …) and bytes done of total; total 0 is unknown.
Progress = Callable[[str, int, int], None]

_CHUNK: Final = 1 << 20
_ATTEMPTS: Final = 5
_TIMEOUT: Final = aiohttp.ClientTimeout(total=None, sock_connect=15, sock_read=60)
_SPARE: Final = 64 << 20  # bytes of disk that a download leaves free


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a file comes from. ``bytes`` and ``sha256`` are None where nobody promised them."""

    url: str
    filename: str
    sha256: str | None = None
    bytes: int | None = None
    licence: str | None = None
    token: str | None = field(default=None, repr=False)

    @property
    def local(self) -> Path | None:
        """The file itself where it is on this machine already (a package index can be a folder)."""
        parts = urlsplit(self.url)
        return Path(unquote(parts.path)) if parts.scheme == "file" else None


class _BrokenOff(aiohttp.ClientError):
    """The connection ended early; what arrived is kept."""


@asynccontextmanager
async def client() -> AsyncIterator[aiohttp.ClientSession]:
    """A session for `get`."""
    async with aiohttp.ClientSession(timeout=_TIMEOUT) as session:
        yield session


async def fetch(origin: Origin, partial: Path, progress: Progress) -> None:
    """Complete ``partial`` from what it already holds and check it. Raises ReefError; what arrived then stays.

    Only a file whose sha256 is known is resumed: nothing else could tell that both halves belong together.
    """
    fresh = not partial.exists()
    failures = 0
    async with client() as session:
        while True:
            before = _size(partial)
            try:
                await _transfer(session, origin, partial, progress)
                break
            except (aiohttp.ClientError, TimeoutError) as error:
                grew = origin.sha256 is not None and _size(partial) > before
                failures = 1 if grew else failures + 1
                if failures >= _ATTEMPTS:
                    detail = str(error) or type(error).__name__
                    raise UpstreamUnreachable(
                        f"downloading {origin.filename} failed after {_ATTEMPTS} attempts: {detail}",
                        hint="run the same command again to go on where it stopped",
                    ) from error
                await asyncio.sleep(0.1 * 2**failures)
            except ReefError:
                if origin.sha256 is None:
                    partial.unlink(missing_ok=True)  # of no use to the next attempt
                raise
    if origin.sha256 is None:
        return
    found = await digest(partial, progress)
    if found == origin.sha256:
        return
    partial.unlink()
    if fresh:
        raise ReefError(
            f"{origin.filename} is not what was promised: sha256 {found}, not {origin.sha256}",
            hint="the source or something on the way changed it; nothing was kept",
        )
    await fetch(origin, partial, progress)  # the old half was of another file


async def _transfer(session: aiohttp.ClientSession, origin: Origin, partial: Path, progress: Progress) -> None:
    have = _size(partial) if origin.sha256 else 0
    if origin.bytes is not None and have >= origin.bytes:
        return
    headers = {"Accept-Encoding": "identity"} | ({"Range": f"bytes={have}-"} if have else {})
    async with get(session, origin.url, origin.token, headers) as response:
        if response.status == 416:  # nothing after what is here: whole, or of another file; the checksum tells
            return
        resumed = response.status == 206 and response.headers.get("Content-Range", "").startswith(f"bytes {have}-")
        have = have if resumed else 0
        length = response.content_length
        total = origin.bytes or (have + length if length is not None else 0)
        need_space(partial.parent, total - have, origin.filename)
        await _receive(response, partial, progress, have=have, total=total)
    if total and _size(partial) != total:
        raise _BrokenOff(f"{_size(partial)} of {total} bytes arrived")


async def _receive(
    response: aiohttp.ClientResponse, partial: Path, progress: Progress, *, have: int, total: int
) -> None:
    with await asyncio.to_thread(partial.open, "ab" if have else "wb") as file:
        partial.chmod(0o600)
        progress("download", have, total)
        try:
            async for chunk in response.content.iter_chunked(_CHUNK):
                await asyncio.to_thread(file.write, chunk)
                have += len(chunk)
                progress("download", have, total)
                if not total:
                    need_space(partial.parent, _CHUNK, partial.name)
        except OSError as error:
            if error.errno != errno.ENOSPC:
                raise
            raise ReefError(f"the disk is full at {partial}", hint="free some space and run this again") from error


@asynccontextmanager
async def get(
    session: aiohttp.ClientSession, url: str, token: str | None, headers: Mapping[str, str]
) -> AsyncIterator[aiohttp.ClientResponse]:
    """GET; raises unless the answer is 2xx or 416. Redirects are followed here: the token must not follow them away."""
    here = URL(url, encoded=True)
    home = here.origin()
    for _ in range(6):
        credentials = {"Authorization": f"Bearer {token}"} if token and here.origin() == home else {}
        sent = {**headers, **credentials}
        async with session.get(here, headers=sent, allow_redirects=False, proxy=_proxy(here)) as response:
            if response.status not in (301, 302, 303, 307, 308):
                _check(response, token)
                yield response
                return
            there = here.join(URL(response.headers.get("Location", ""), encoded=True))
        if here.scheme == "https" and there.scheme != "https":
            raise UsageError(f"{here.host} redirects to plain {there.scheme}; not followed")
        here = there
    raise UpstreamUnreachable(f"{home.host} redirects in circles")


def _check(response: aiohttp.ClientResponse, token: str | None) -> None:
    where = f"{response.url.host}{response.url.path}"
    if response.status in (401, 403):
        raise Unauthorised(
            f"{response.url.host} refuses access to {response.url.path} (status {response.status})",
            hint="the token may lack access to it"
            if token
            else "misspelt, private or gated; for the hub's private and gated models set HF_TOKEN, then `reef restart`",
        )
    if response.status == 404:
        raise NotFound(f"there is no {where}", hint="check the spelling and the revision")
    if response.status == 429 or response.status >= 500:
        raise _BrokenOff(f"{response.url.host} answers {response.status}")
    if response.status >= 400 and response.status != 416:
        raise UpstreamUnreachable(f"{where} answers {response.status}")


async def digest(path: Path, progress: Progress) -> str:
    """The file's sha256 in hex, computed off the loop."""
    loop, total = asyncio.get_running_loop(), path.stat().st_size

    def read() -> str:
        state, done = hashlib.sha256(), 0
        with path.open("rb") as file:
            while chunk := file.read(16 * _CHUNK):
                state.update(chunk)
                done += len(chunk)
                loop.call_soon_threadsafe(progress, "verify", done, total)
        return state.hexdigest()

    return await asyncio.to_thread(read)


def need_space(folder: Path, more: int, what: str) -> None:
    """Raises ReefError unless ``more`` bytes fit into ``folder``'s disk."""
    free = shutil.disk_usage(folder).free
    if more + _SPARE > free:
        raise ReefError(
            f"{what} needs {more / 1e6:,.0f} MB more, and {folder} has {free / 1e6:,.0f} MB free",
            hint="free some space, or set REEF_HOME to a larger disk",
        )


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


def _proxy(url: URL) -> URL | None:
    try:
        return proxy_for(url)
    except ValueError as error:
        raise UpstreamUnreachable(str(error), hint="set HTTPS_PROXY to an http proxy, or unset it") from None
