import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest
from aiohttp import web

from daemon.core.errors import NotFound, ReefError, Unauthorised, UpstreamUnreachable
from daemon.engines.download import Origin, client, digest, fetch, get, need_space
from tests.daemon.engines.conftest import REPO, TINY, sha256
from tests.fakes.hub import COMMIT, Hub

Steps = list[tuple[str, int, int]]


def origin(hub: Hub, *, checked: bool = True, token: str | None = None) -> Origin:
    url = f"{hub.url}/{REPO}/resolve/{COMMIT}/tiny-Q4_K_M.gguf"
    return Origin(url, "tiny.gguf", sha256(TINY) if checked else None, len(TINY) if checked else None, token=token)


def ignore(phase: str, done: int, total: int) -> None:
    pass


async def test_a_file_arrives_whole_private_and_with_progress(hub: Hub, tmp_path: Path) -> None:
    steps: Steps = []
    await fetch(origin(hub), tmp_path / "part", lambda *step: steps.append(step))
    assert (tmp_path / "part").read_bytes() == TINY
    assert (tmp_path / "part").stat().st_mode & 0o777 == 0o600
    assert steps[0] == ("download", 0, len(TINY))
    assert ("download", len(TINY), len(TINY)) in steps


async def test_a_partial_file_is_resumed_where_it_ends(hub: Hub, tmp_path: Path) -> None:
    (tmp_path / "part").write_bytes(TINY[:20_000])
    await fetch(origin(hub), tmp_path / "part", ignore)
    assert (tmp_path / "part").read_bytes() == TINY
    assert [headers.get("Range") for headers in hub.sent_to_cdn()] == ["bytes=20000-"]


async def test_a_broken_connection_is_taken_up_again(hub: Hub, tmp_path: Path) -> None:
    hub.faults.drops, hub.faults.drop_at = 2, 15_000
    await fetch(origin(hub), tmp_path / "part", ignore)
    assert (tmp_path / "part").read_bytes() == TINY
    ranges = [headers.get("Range") for headers in hub.sent_to_cdn()]
    assert ranges == [None, "bytes=15000-", "bytes=30000-"]


async def test_without_range_support_it_starts_over(hub: Hub, tmp_path: Path) -> None:
    hub.faults.ranges = False
    (tmp_path / "part").write_bytes(TINY[:20_000])
    await fetch(origin(hub), tmp_path / "part", ignore)
    assert (tmp_path / "part").read_bytes() == TINY


async def test_a_partial_of_another_file_is_thrown_away(hub: Hub, tmp_path: Path) -> None:
    (tmp_path / "part").write_bytes(b"x" * 20_000)
    await fetch(origin(hub), tmp_path / "part", ignore)
    assert (tmp_path / "part").read_bytes() == TINY


async def test_a_partial_that_is_too_long_is_thrown_away(hub: Hub, tmp_path: Path) -> None:
    (tmp_path / "part").write_bytes(TINY + b"more")
    await fetch(origin(hub), tmp_path / "part", ignore)
    assert (tmp_path / "part").read_bytes() == TINY


async def test_a_whole_partial_is_not_asked_for_again(hub: Hub, tmp_path: Path) -> None:
    (tmp_path / "part").write_bytes(TINY)
    await fetch(origin(hub), tmp_path / "part", ignore)
    assert hub.sent_to_cdn() == []


async def test_wrong_bytes_are_refused_and_not_kept(hub: Hub, tmp_path: Path) -> None:
    hub.faults.corrupt = True
    with pytest.raises(ReefError, match="not what was promised"):
        await fetch(origin(hub), tmp_path / "part", ignore)
    assert not (tmp_path / "part").exists()


async def test_a_file_nobody_vouches_for_is_never_pieced_together(hub: Hub, tmp_path: Path) -> None:
    (tmp_path / "part").write_bytes(b"x" * 20_000)
    await fetch(origin(hub, checked=False), tmp_path / "part", ignore)
    assert (tmp_path / "part").read_bytes() == TINY
    assert [headers.get("Range") for headers in hub.sent_to_cdn()] == [None]


async def test_a_server_that_never_delivers_is_given_up_and_the_part_kept(hub: Hub, tmp_path: Path) -> None:
    (tmp_path / "part").write_bytes(TINY[:20_000])
    hub.faults.drops, hub.faults.drop_at = 99, 0
    with pytest.raises(UpstreamUnreachable, match="after 5 attempts") as caught:
        await fetch(origin(hub), tmp_path / "part", ignore)
    assert caught.value.hint is not None
    assert (tmp_path / "part").stat().st_size == 20_000


async def test_the_token_does_not_follow_a_redirect_to_another_origin(hub: Hub, tmp_path: Path) -> None:
    hub.token = "hf_secret"
    await fetch(origin(hub, token="hf_secret"), tmp_path / "part", ignore)
    assert hub.asked[0][2]["Authorization"] == "Bearer hf_secret"
    assert ["Authorization" in headers for headers in hub.sent_to_cdn()] == [False]


async def test_the_token_shows_in_no_error(hub: Hub, tmp_path: Path) -> None:
    hub.token = "another"
    wanted = origin(hub, token="hf_secret")
    with pytest.raises(Unauthorised) as caught:
        await fetch(wanted, tmp_path / "part", ignore)
    assert "hf_secret" not in f"{caught.value.envelope()} {wanted!r}"


@pytest.mark.parametrize(
    ("status", "expected"), [(401, Unauthorised), (403, Unauthorised), (404, NotFound), (418, UpstreamUnreachable)]
)
async def test_a_refusal_is_final_and_named(hub: Hub, tmp_path: Path, status: int, expected: type[ReefError]) -> None:
    hub.faults.status = status
    with pytest.raises(expected):
        await fetch(origin(hub), tmp_path / "part", ignore)
    assert len(hub.asked) == 1


async def test_redirects_in_circles_end(hub: Hub, tmp_path: Path) -> None:
    hub.faults.redirect_loop = True
    with pytest.raises(UpstreamUnreachable, match="in circles"):
        await fetch(origin(hub), tmp_path / "part", ignore)


async def test_a_closed_port_is_named(free_port: int, tmp_path: Path) -> None:
    with pytest.raises(UpstreamUnreachable, match=str(free_port)):
        await fetch(Origin(f"http://127.0.0.1:{free_port}/x.gguf", "x.gguf"), tmp_path / "part", ignore)


async def test_a_get_gives_the_answer_of_the_last_hop(hub: Hub) -> None:
    async with client() as session, get(session, origin(hub).url, None, {}) as response:
        assert response.url.path.startswith("/blob/")
        assert await response.read() == TINY


async def test_a_disk_without_room_is_refused_before_the_first_byte(hub: Hub, tmp_path: Path) -> None:
    free = shutil.disk_usage(tmp_path).free
    huge = Origin(origin(hub).url, "huge.gguf", "0" * 64, free + 10**15)
    with pytest.raises(ReefError, match=r"huge\.gguf needs .* MB more"):
        await fetch(huge, tmp_path / "part", ignore)
    assert not (tmp_path / "part").exists()


async def test_a_file_of_unknown_size_never_fills_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def endless(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        while True:
            await response.write(b"x" * 65_536)

    def shrinking(folder: Path) -> SimpleNamespace:
        used = sum(file.stat().st_size for file in folder.iterdir())
        return SimpleNamespace(free=(70 << 20) - used)

    monkeypatch.setattr(shutil, "disk_usage", shrinking)
    server = web.Application()
    server.add_routes([web.get("/model.gguf", endless)])
    runner = web.AppRunner(server, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        unknown = Origin(f"http://127.0.0.1:{runner.addresses[0][1]}/model.gguf", "model.gguf")
        with pytest.raises(ReefError, match="MB more"):
            await fetch(unknown, tmp_path / "part", ignore)
    finally:
        await runner.cleanup()
    assert not (tmp_path / "part").exists()


def test_there_is_room_for_a_small_file(tmp_path: Path) -> None:
    need_space(tmp_path, 1, "small")


async def test_the_digest_is_computed_off_the_loop(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(TINY)
    assert await digest(tmp_path / "file", ignore) == sha256(TINY)


def test_a_file_url_is_a_file_here() -> None:
    assert Origin("file:///tmp/a%20b.whl", "a b.whl").local == Path("/tmp/a b.whl")
    assert Origin("https://example.org/a.whl", "a.whl").local is None
