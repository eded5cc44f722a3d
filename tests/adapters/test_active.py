"""Which release is in use: remembered per scenario, never going back."""

from pathlib import Path

import pytest

from adapters import active
from adapters.active import Active
from adapters.delivery import Delivery
from daemon.core.errors import Untrusted


def told(release_id: str, number: int) -> Delivery:
    return Delivery(release_id, number, "default", {}, None, None, None, "", "")


def test_it_is_remembered_per_scenario(tmp_path: Path) -> None:
    path = tmp_path / "active.json"
    assert active.load(path, "default") is None
    one, two = Active("r1-00000000", 1, {"url": "u"}), Active("base", 0, {})
    active.save(path, "default", one)
    active.save(path, "work/x", two)
    assert (active.load(path, "default"), active.load(path, "work/x")) == (one, two)
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_slower_start_undoes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "active.json"
    active.save(path, "default", Active("r2-00000000", 2, {}))
    active.save(path, "default", Active("r1-00000000", 1, {}))
    assert active.load(path, "default") == Active("r2-00000000", 2, {})


def test_all_scenarios_releases(tmp_path: Path) -> None:
    path = tmp_path / "active.json"
    assert active.releases(path) == set()
    active.save(path, "default", Active("r2-00000000", 2, {}))
    active.save(path, "work", Active("base", 0, {}))
    assert active.releases(path) == {"r2-00000000", "base"}


def test_a_removed_scenario_is_forgotten_and_the_others_are_not(tmp_path: Path) -> None:
    path = tmp_path / "active.json"
    active.forget(path, "work")
    for scenario in ("work", "other"):
        active.save(path, scenario, Active("r3-00000000", 3, {}))
    active.forget(path, "work")
    active.forget(path, "nobody")
    assert active.load(path, "work") is None
    assert active.load(path, "other") == Active("r3-00000000", 3, {})


def test_a_broken_file_is_none(tmp_path: Path) -> None:
    path = tmp_path / "active.json"
    typed = '{"default": {"release_id": "x", "number": "1", "serves": {}}}'
    for text in ("", '{"default": 3}', '{"default": {"release_id": "x"}}', typed, "[]"):
        path.write_text(text)
        assert active.load(path, "default") is None
        active.save(path, "default", Active("base", 0, {}))
        assert active.load(path, "default") == Active("base", 0, {})


@pytest.mark.parametrize(("number", "release_id"), [(3, "r3-00000000"), (4, "r4-11111111"), (9, "r9-11111111")])
def test_forward(tmp_path: Path, number: int, release_id: str) -> None:
    now = Active("r3-00000000", 3, {})
    assert active.forward(now, told(release_id, number), tmp_path) == told(release_id, number)


@pytest.mark.parametrize(("number", "release_id"), [(2, "r2-00000000"), (0, "base"), (3, "r3-99999999")])
def test_never_back_nor_sideways(tmp_path: Path, number: int, release_id: str) -> None:
    """BUGS B219."""
    with pytest.raises(Untrusted, match="was in use already") as refused:
        active.forward(Active("r3-00000000", 3, {}), told(release_id, number), tmp_path / "active.json")
    assert "active.json" in str(refused.value.hint)


def test_the_first_is_taken_as_it_is(tmp_path: Path) -> None:
    assert active.forward(None, told("r7-00000000", 7), tmp_path).number == 7
