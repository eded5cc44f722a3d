"""A release told to people: its card as text, as JSON and as a page, and who put each line of it there."""

from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response

from daemon.core.errors import UsageError
from daemon.core.releases import Release
from daemon.server.control import answer, read, runtime
from daemon.server.heads import row
from daemon.server.releases import scenario_of
from daemon.server.runtime import Runtime
from daemon.store.said import Said
from recipes.gate import card as cards
from recipes.gate import page as pages

_FORMATS: Final = ("json", "text", "html")
_HEADERS: Final = {
    "content-security-policy": pages.POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cache-control": "no-store",
}
#: Of each release that put lines there, what is told of what people said.
_MOST_SAID: Final = 20


async def card(request: Request) -> Response:
    """``?format=json`` (the default), ``text`` or ``html``."""
    daemon, scenario = runtime(request), scenario_of(request)
    form = request.query_params.get("format", "json")
    if form not in _FORMATS:
        raise UsageError(f"format={form[:40]!r} is unknown", hint=f"one of {', '.join(_FORMATS)}")
    release = await read(daemon.releases.get, scenario, request.path_params["id"])
    if form == "text":
        return Response(f"{cards.text(release)}\n", media_type="text/plain", headers=_HEADERS)
    if form == "html":
        return await _page(daemon, release)
    acts = await read(daemon.releases.acts, release)
    said = await read(_said, daemon, release)
    gate = release.gate
    return answer(row(release) | {"gate": gate, "card": cards.text(release), "acts": acts, "said": said})


async def page(request: Request) -> Response:
    """The published protocol's name for the same page."""
    daemon, scenario = runtime(request), scenario_of(request)
    return await _page(daemon, await read(daemon.releases.get, scenario, request.path_params["id"]))


async def _page(daemon: Runtime, release: Release) -> Response:
    said = [(_who(one), one.text) for one in await read(_said, daemon, release)]
    diff = await read(daemon.releases.diff, release.scenario, release.id)
    text = await read(pages.html, release, said, diff)
    return Response(text, media_type="text/html", headers=_HEADERS)


async def blame(request: Request) -> Response:
    """``?path=``: a file of the release; its lines, and the releases that put them there with what people said."""
    daemon, path = runtime(request), request.query_params.get("path")
    if not path:
        raise UsageError("path is missing", hint="for example path=rules.md")
    lines = await read(daemon.releases.blame, scenario_of(request), request.path_params["id"], path)
    put: dict[str, dict[str, Any]] = {}
    for _, release in lines:
        if release.id not in put:
            put[release.id] = row(release) | {"said": await read(_said, daemon, release)}
    told = [{"text": text, "release": release.id} for text, release in lines]
    return answer({"path": path, "lines": told, "releases": put})


def _said(daemon: Runtime, release: Release) -> list[Said]:
    return daemon.store.words(release.scenario, (*release.instructions, *release.reports)[:_MOST_SAID])


def _who(said: Said) -> str:
    score = "" if said.score is None else f", {said.score:g}"
    return f"{said.kind}{score}\n{said.id}"
