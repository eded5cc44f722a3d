"""A model hub and a package index on loopback, speaking the protocols of the real ones, faults included.

Like the Hugging Face hub: ``/api/models/…`` tells commit, licence and files; ``/…/resolve/…`` redirects to another
origin (the CDN), whose URLs are signed. Like a package index: ``/simple/NAME/`` lists wheels with their checksums. Set
`Faults` to make it misbehave; `asked` holds what every request brought.
"""

import asyncio
import hashlib
import io
import zipfile
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from aiohttp import web

COMMIT = "0123456789abcdef0123456789abcdef01234567"


@dataclass(slots=True)
class Faults:
    """``drops``: how many transfers break off after ``drop_at`` bytes. ``corrupt``: one byte is wrong."""

    drops: int = 0
    drop_at: int = 1000
    corrupt: bool = False
    ranges: bool = True
    status: int | None = None
    redirect_loop: bool = False


@dataclass(slots=True)
class Hub:
    """``files``: repository → path → contents. ``card``: what the model card's front matter says."""

    files: dict[str, dict[str, bytes]]
    packages: dict[str, dict[str, bytes]] = field(default_factory=dict)
    card: dict[str, str] = field(default_factory=lambda: {"license": "mit"})
    token: str | None = None
    page: int = 1000
    next_page_at: str | None = None  # another host; None: here
    faults: Faults = field(default_factory=Faults)
    asked: list[tuple[str, str, Mapping[str, str]]] = field(default_factory=list)
    url: str = ""
    cdn: str = ""

    def sent_to_cdn(self) -> list[Mapping[str, str]]:
        """The headers of every request for file contents."""
        return [headers for _, path, headers in self.asked if path.startswith("/blob/")]


@asynccontextmanager
async def serve(hub: Hub) -> AsyncIterator[Hub]:
    """Run ``hub`` on two free ports until the block ends."""
    front, back = web.Application(), web.Application()
    front.add_routes(
        [
            web.get("/api/models/{owner}/{repo}/revision/{revision:.+}", _handler(hub, _info)),
            web.get("/api/models/{owner}/{repo}/tree/{commit}", _handler(hub, _tree)),
            web.get("/{owner}/{repo}/resolve/{commit}/{path:.+}", _handler(hub, _resolve)),
            web.get("/simple/{name}/", _handler(hub, _simple)),
        ]
    )
    back.add_routes([web.get("/blob/{digest}/{name:.*}", _handler(hub, _blob))])
    runners = web.AppRunner(front, shutdown_timeout=0.1), web.AppRunner(back, shutdown_timeout=0.1)
    urls = []
    for runner in runners:
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        urls.append(f"http://127.0.0.1:{runner.addresses[0][1]}")
    hub.url, hub.cdn = urls
    try:
        yield hub
    finally:
        for runner in runners:
            await runner.cleanup()


def wheel(name: str, version: str, contents: Mapping[str, bytes], *, licence: str | None = "Apache-2.0") -> bytes:
    """A wheel that carries ``contents``, and a module that must never run."""
    info = f"{name}-{version}.dist-info"
    metadata = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
    files = {
        f"{name}/__init__.py": b"raise SystemExit('this code must not run')\n",
        **{f"{name}/{path}": data for path, data in contents.items()},
        f"{info}/METADATA": (metadata + (f"License: {licence}\n" if licence else "")).encode(),
        f"{info}/WHEEL": b"Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{info}/RECORD": b"",
    }
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for path, data in files.items():
            archive.writestr(path, data)
    return buffer.getvalue()


Answer = Callable[[Hub, web.Request], Awaitable[web.StreamResponse]]


def _handler(hub: Hub, answer: Answer) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
    async def handle(request: web.Request) -> web.StreamResponse:
        hub.asked.append((request.host, request.path, dict(request.headers)))
        if hub.faults.status is not None:
            return web.Response(status=hub.faults.status)
        public = request.path.startswith(("/blob/", "/simple/"))
        if hub.token and not public and request.headers.get("Authorization") != f"Bearer {hub.token}":
            return web.json_response({"error": "Invalid username or password."}, status=401)
        return await answer(hub, request)

    return handle


def _files(hub: Hub, request: web.Request) -> dict[str, bytes]:
    repo = f"{request.match_info['owner']}/{request.match_info['repo']}"
    if repo not in hub.files or request.match_info.get("commit", COMMIT) != COMMIT:
        raise web.HTTPNotFound
    return hub.files[repo]


async def _info(hub: Hub, request: web.Request) -> web.StreamResponse:
    _files(hub, request)
    if request.match_info["revision"] not in ("main", "refs/pr/1"):
        raise web.HTTPNotFound
    return web.json_response({"sha": COMMIT, "cardData": hub.card, "tags": ["gguf", "license:mit"]})


async def _tree(hub: Hub, request: web.Request) -> web.StreamResponse:
    entries: list[dict[str, object]] = [{"type": "directory", "path": "sub", "oid": "0", "size": 0}]
    for path, data in _files(hub, request).items():
        entry: dict[str, object] = {"type": "file", "path": path, "size": len(data), "oid": "0" * 40}
        if path.endswith(".gguf"):
            entry["lfs"] = {"oid": hashlib.sha256(data).hexdigest(), "size": len(data), "pointerSize": 134}
        entries.append(entry)
    start = int(request.query.get("cursor", "0"))
    response = web.json_response(entries[start : start + hub.page])
    if start + hub.page < len(entries):
        response.headers["Link"] = (
            f'<{hub.next_page_at or hub.url}{request.path}?recursive=true&cursor={start + hub.page}>; rel="next"'
        )
    return response


async def _resolve(hub: Hub, request: web.Request) -> web.StreamResponse:
    data = _files(hub, request).get(request.match_info["path"])
    if data is None:
        raise web.HTTPNotFound
    if hub.faults.redirect_loop:
        raise web.HTTPFound(request.path)
    # A signature with escapes in it: decoded or encoded twice on the way, it no longer matches.
    return web.Response(status=302, headers={"Location": f"{_blob_url(hub, data, 'model')}?sig=a%2Fb%3D"})


def _blob_url(hub: Hub, data: bytes, name: str) -> str:
    return f"{hub.cdn}/blob/{hashlib.sha256(data).hexdigest()}/{name}"


async def _simple(hub: Hub, request: web.Request) -> web.StreamResponse:
    wheels = hub.packages.get(request.match_info["name"])
    if wheels is None:
        raise web.HTTPNotFound
    links = (
        f'<a href="{_blob_url(hub, data, name)}#sha256={hashlib.sha256(data).hexdigest()}">{name}</a>'
        for name, data in wheels.items()
    )
    return web.Response(text=f"<!DOCTYPE html><html><body>{''.join(links)}</body></html>", content_type="text/html")


async def _blob(hub: Hub, request: web.Request) -> web.StreamResponse:
    everything = [data for group in (hub.files, hub.packages) for files in group.values() for data in files.values()]
    digests = {hashlib.sha256(data).hexdigest(): data for data in everything}
    data = digests.get(request.match_info["digest"])
    if data is None or request.raw_path.partition("?")[2] not in ("", "sig=a%2Fb%3D"):
        raise web.HTTPNotFound
    start, wanted = 0, request.headers.get("Range", "")
    if wanted and hub.faults.ranges:
        start = int(wanted.removeprefix("bytes=").rstrip("-"))
        if start >= len(data):
            raise web.HTTPRequestRangeNotSatisfiable
    if hub.faults.corrupt:
        data = data[:-1] + bytes([data[-1] ^ 1])
    headers = {"Content-Length": str(len(data) - start)}
    if start:
        headers["Content-Range"] = f"bytes {start}-{len(data) - 1}/{len(data)}"
    response = web.StreamResponse(status=206 if start else 200, headers=headers)
    await response.prepare(request)
    if hub.faults.drops:
        hub.faults.drops -= 1
        await response.write(data[start : start + hub.faults.drop_at])
        await asyncio.sleep(0.05)  # a client sees what came before it sees the end
        assert request.transport is not None
        request.transport.close()
        return response
    await response.write(data[start:])
    return response
