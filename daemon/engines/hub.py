"""Finding a model on the Hugging Face hub, by its HTTP protocol: which file, how big, its checksum, its licence.

``hf:OWNER/REPO[/FILE.gguf | :QUANT][@REVISION]``. The revision is resolved to a commit first, so that the
listing and the download speak of the same files. ``HF_ENDPOINT`` names a mirror, ``HF_TOKEN`` opens private and gated
repositories.
"""

import json
import os
import re
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import quote

import aiohttp
from yarl import URL

from daemon.core.errors import NotFound, UpstreamUnreachable, UsageError
from daemon.engines.download import Origin, client, get

FORM: Final = "hf:OWNER/REPO[/FILE.gguf | :QUANT][@REVISION]"

_SOURCE: Final = re.compile(
    r"hf:(?P<repo>[\w.-]+/[\w.-]+)(?:/(?P<file>[^:@]+)|:(?P<quant>[\w.-]+))?(?:@(?P<revision>[\w./-]+))?"
)
_NEXT: Final = re.compile(r'<([^>]+)>;\s*rel="next"')
#: Which one a repository with many is taken to mean: small, and close to the original.
_PREFERRED: Final = ("Q4_K_M", "Q4_0", "Q8_0")


async def locate(source: str) -> Origin:
    """The file that ``source`` names. Raises UsageError, NotFound, Unauthorised or UpstreamUnreachable."""
    match = _SOURCE.fullmatch(source)
    if match is None:
        raise UsageError(f"cannot read {source!r}", hint=f"write {FORM}")
    endpoint = os.environ.get("HF_ENDPOINT", "").rstrip("/") or "https://huggingface.co"
    token = os.environ.get("HF_TOKEN") or None
    repo = match["repo"]
    api = f"{endpoint}/api/models/{repo}"
    async with client() as session:
        info, _ = await _json(session, f"{api}/revision/{quote(match['revision'] or 'main', safe='')}", token)
        commit = str(info["sha"])
        files = await _listing(session, f"{api}/tree/{commit}?recursive=true", token)
    path = _choose(files, repo, file=match["file"], quant=match["quant"])
    entry = files[path]
    lfs = entry.get("lfs") or {}
    return Origin(
        url=f"{endpoint}/{repo}/resolve/{commit}/{quote(path)}",
        filename=path.rpartition("/")[2],
        sha256=lfs.get("oid"),
        bytes=lfs.get("size", entry.get("size")),
        licence=_licence(info),
        token=token,
    )


async def _listing(session: aiohttp.ClientSession, url: str | None, token: str | None) -> dict[str, Mapping[str, Any]]:
    files: dict[str, Mapping[str, Any]] = {}
    while url is not None:
        page, following = await _json(session, url, token)
        files.update({entry["path"]: entry for entry in page if entry["type"] == "file"})
        if following is not None and URL(following).origin() != URL(url).origin():
            # The token goes to the hub alone, whoever it names.
            raise UpstreamUnreachable(
                f"{url} goes on at another host, {following}", hint="set HF_ENDPOINT to that host"
            )
        url = following
    return files


async def _json(session: aiohttp.ClientSession, url: str, token: str | None) -> tuple[Any, str | None]:
    """The body, and the URL of the next page where there is one."""
    try:
        async with get(session, url, token, {}) as response:
            following = _NEXT.search(response.headers.get("Link", ""))
            return json.loads(await response.read()), following[1] if following else None
    except (aiohttp.ClientError, TimeoutError, ValueError) as error:
        raise UpstreamUnreachable(
            f"{url} cannot be read: {error or type(error).__name__}", hint="check the network, or set HF_ENDPOINT"
        ) from error


def _choose(files: Mapping[str, object], repo: str, *, file: str | None, quant: str | None) -> str:
    if file is not None:
        if file not in files:
            raise NotFound(f"{repo} has no file {file!r}", hint=_offer(files))
        return file
    models = [path for path in files if path.endswith(".gguf") and "mmproj" not in path.lower()]
    wanted = [quant] if quant else ["", *_PREFERRED]
    for name in wanted:
        found = [path for path in models if not name or _has(path, name)]
        if len(found) == 1:
            return _whole(found[0])
        if found and name:
            raise UsageError(f"{repo} has several files for {name}", hint=_offer(found))
    what = f"GGUF file for {quant}" if quant else "single GGUF file"
    raise NotFound(f"{repo} has no {what}", hint=_offer(models))


def _has(path: str, quant: str) -> bool:
    return re.search(rf"(?<![a-z0-9]){re.escape(quant.lower())}(?![a-z0-9_])", path.lower()) is not None


def _whole(path: str) -> str:
    if re.search(r"-\d{5}-of-\d{5}\.gguf$", path):
        raise UsageError(f"{path} is one part of several", hint="choose a quantisation that is one file")
    return path


def _offer(files: Mapping[str, object] | list[str]) -> str:
    names = sorted(path for path in files if path.endswith(".gguf"))
    return f"there are: {', '.join(names[:12])}" if names else "it has no GGUF files; look for one named …-GGUF"


def _licence(info: Mapping[str, Any]) -> str | None:
    card = info.get("cardData") or {}
    licence = card.get("license")
    if licence in (None, "other"):
        licence = card.get("license_name") or licence
    tags = (tag.removeprefix("license:") for tag in info.get("tags", ()) if tag.startswith("license:"))
    return licence if isinstance(licence, str) else next(tags, None)
