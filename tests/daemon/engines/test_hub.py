import pytest

from daemon.core.errors import NotFound, Unauthorised, UpstreamUnreachable, UsageError
from daemon.engines.hub import locate
from tests.daemon.engines.conftest import OTHER, REPO, TINY, sha256
from tests.fakes.hub import COMMIT, Hub


async def test_a_file_is_found_with_size_checksum_commit_and_licence(hub: Hub) -> None:
    found = await locate(f"hf:{REPO}/tiny-Q8_0.gguf")
    assert found.url == f"{hub.url}/{REPO}/resolve/{COMMIT}/tiny-Q8_0.gguf"
    assert (found.filename, found.bytes, found.sha256) == ("tiny-Q8_0.gguf", len(OTHER), sha256(OTHER))
    assert found.licence == "mit"


@pytest.mark.parametrize(
    ("source", "data"),
    [(f"hf:{REPO}:Q8_0", OTHER), (f"hf:{REPO}:q4_k_m", TINY), (f"hf:{REPO}", TINY), (f"hf:{REPO}@refs/pr/1", TINY)],
)
async def test_a_quantisation_chooses_among_many(hub: Hub, source: str, data: bytes) -> None:
    assert (await locate(source)).sha256 == sha256(data)


async def test_the_only_model_of_a_repository_needs_no_name(hub: Hub) -> None:
    hub.files["someone/one"] = {"sub/only.gguf": OTHER, "mmproj-only.gguf": TINY}
    found = await locate("hf:someone/one")
    assert found.filename == "only.gguf"
    assert found.url.endswith("/sub/only.gguf")


async def test_a_quantisation_is_a_whole_word(hub: Hub) -> None:
    hub.files["someone/some"] = {"a-Q4_K_M.gguf": TINY, "a-IQ4_K.gguf": OTHER}
    with pytest.raises(NotFound, match="no GGUF file for Q4_K") as caught:
        await locate("hf:someone/some:Q4_K")
    assert caught.value.hint == "there are: a-IQ4_K.gguf, a-Q4_K_M.gguf"


async def test_a_listing_that_goes_on_elsewhere_is_not_followed(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_TOKEN", "hf_canary")
    hub.page, hub.next_page_at = 1, hub.cdn
    with pytest.raises(UpstreamUnreachable, match="another host"):
        await locate(f"hf:{REPO}:Q8_0")
    assert all(path.startswith("/api/") for _, path, _ in hub.asked)
    assert len(hub.asked) == 2


async def test_a_long_listing_is_read_page_by_page(hub: Hub) -> None:
    hub.page = 1
    assert (await locate(f"hf:{REPO}:Q8_0")).sha256 == sha256(OTHER)


async def test_a_model_in_parts_is_refused(hub: Hub) -> None:
    hub.files["someone/big"] = {"big-00001-of-00002.gguf": TINY}
    with pytest.raises(UsageError, match="one part of several"):
        await locate("hf:someone/big")


async def test_several_files_of_one_quantisation_must_be_told_apart(hub: Hub) -> None:
    hub.files["someone/two"] = {"a-Q8_0.gguf": TINY, "b-Q8_0.gguf": OTHER}
    with pytest.raises(UsageError, match="several files for Q8_0"):
        await locate("hf:someone/two:Q8_0")


async def test_a_repository_without_models_says_where_to_look(hub: Hub) -> None:
    hub.files["someone/safetensors"] = {"model.safetensors": b"x"}
    with pytest.raises(NotFound) as caught:
        await locate("hf:someone/safetensors")
    assert caught.value.hint is not None
    assert "GGUF" in caught.value.hint


async def test_a_missing_file_names_those_there_are(hub: Hub) -> None:
    with pytest.raises(NotFound) as caught:
        await locate(f"hf:{REPO}/tiny-Q2_K.gguf")
    assert caught.value.hint == "there are: tiny-Q4_K_M.gguf, tiny-Q8_0.gguf"


@pytest.mark.parametrize("source", ["hf:", "hf:one-part", "hf:a/b/../c d", "hf:a/b:Q4:Q5", f"hf:{REPO}@"])
async def test_a_source_that_cannot_be_read_is_refused(hub: Hub, source: str) -> None:
    with pytest.raises((UsageError, NotFound)):
        await locate(source)


async def test_an_unknown_repository_is_not_found(hub: Hub) -> None:
    with pytest.raises(NotFound, match="nobody/nothing"):
        await locate("hf:nobody/nothing")


async def test_a_gated_repository_asks_for_a_token(hub: Hub) -> None:
    hub.token = "hf_secret"
    with pytest.raises(Unauthorised) as caught:
        await locate(f"hf:{REPO}")
    assert caught.value.hint is not None
    assert "HF_TOKEN" in caught.value.hint


async def test_the_token_opens_it_and_goes_on_to_the_download(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    hub.token = "hf_secret"
    monkeypatch.setenv("HF_TOKEN", "hf_secret")
    found = await locate(f"hf:{REPO}")
    assert found.token == "hf_secret"
    assert "hf_secret" not in repr(found)


@pytest.mark.parametrize(
    ("card", "licence"),
    [
        ({"license": "other", "license_name": "gemma"}, "gemma"),
        ({"license": "other"}, "other"),
        ({}, "mit"),  # from the tags
    ],
)
async def test_the_licence_is_the_cards(hub: Hub, card: dict[str, str], licence: str) -> None:
    hub.card = card
    assert (await locate(f"hf:{REPO}")).licence == licence


async def test_a_hub_in_trouble_is_unreachable(hub: Hub) -> None:
    hub.faults.status = 503
    with pytest.raises(UpstreamUnreachable, match="503"):
        await locate(f"hf:{REPO}")


async def test_a_hub_that_is_not_there_is_unreachable(monkeypatch: pytest.MonkeyPatch, free_port: int) -> None:
    monkeypatch.setenv("HF_ENDPOINT", f"http://127.0.0.1:{free_port}")
    with pytest.raises(UpstreamUnreachable, match=str(free_port)):
        await locate(f"hf:{REPO}")
