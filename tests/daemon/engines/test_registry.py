from pathlib import Path

import pytest

from daemon.core.errors import StoreError
from daemon.engines.registry import Registry


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "",
        '{"version": 2, "models": []}',
        "[]",
        '{"version": 1}',
        '{"version": 1, "active": "x", "models": ["x"]}',
        '{"version": 1, "active": "x", "models": [{"name": "x"}]}',
        '{"version": 1, "active": null, "models": [{"name": "x", "file": "../../precious", "bytes": 1, "sha256": "",'
        ' "licence": "", "source": ""}]}',
    ],
)
def test_a_registry_that_cannot_be_read_is_said_not_overwritten(tmp_path: Path, text: str) -> None:
    (tmp_path / "registry.json").write_text(text)
    with pytest.raises(StoreError, match=r"registry\.json"), Registry(tmp_path).changing():
        pytest.fail("it was opened")
    assert (tmp_path / "registry.json").read_text() == text


def test_a_newer_version_s_file_says_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "registry.json").write_text('{"version": 2, "catalogue": {}}')
    with pytest.raises(StoreError, match="newer Reef") as caught:
        Registry(tmp_path).read()
    assert caught.value.hint == "upgrade with install.sh"


def test_a_change_that_fails_is_not_written(tmp_path: Path) -> None:
    def fail() -> None:
        with Registry(tmp_path).changing() as state:
            state.active = "half"
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert Registry(tmp_path).read().active is None
