"""What was changed of an agent's files is named, whether that agent is still installed or not."""

import pytest

from adapters import edits
from adapters.session import Place
from daemon.core.paths import Home
from reef_cli import by_hand


def test_every_agents_are_named_and_cannot_act_on_the_terminal(
    reef_home: Home, capsys: pytest.CaptureFixture[str]
) -> None:
    assert by_hand.found(reef_home) == {}
    place = Place(reef_home.agents / "gone")
    place.root.mkdir(parents=True)
    (mine := place.root / "mine\x1b[2J").write_text("mine")
    edits.keep(mine, place.edited / mine.name)
    (reef_home.agents / "pi").mkdir()
    changed = by_hand.found(reef_home)
    assert changed == {"gone": [str(place.edited / mine.name)]}
    by_hand.tell(changed)
    told = capsys.readouterr().err
    assert "changed by hand of gone's files" in told
    assert "hint: reef harness edit" in told
    by_hand.tell({"own\x1b[2J": ["/x"]})
    assert "\x1b" not in told + capsys.readouterr().err
    assert sorted(path.name for path in reef_home.agents.rglob("*")) == ["edited", "gone", mine.name, "pi"]
