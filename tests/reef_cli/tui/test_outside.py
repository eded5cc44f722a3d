"""What a person's editor and pager are given."""

import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path

import pytest

from daemon.core.errors import ReefError
from reef_cli.tui import outside


def test_the_file_is_the_persons_alone_and_goes_away() -> None:
    with outside.written(iter(["one", "漢字"]), "trace.md") as path:
        assert path.read_text(encoding="utf-8") == "one\n漢字\n"
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert not path.parent.exists()


def test_it_goes_away_when_something_fails() -> None:
    with pytest.raises(RuntimeError), outside.written(["one"], "trace.md") as path:
        raise RuntimeError
    assert not path.parent.exists()


def test_a_program_has_words_and_ends_well_or_not(tmp_path: Path) -> None:
    file = tmp_path / "read.md"
    file.write_text("text")
    copy = f"{sys.executable} -c 'import sys, shutil; shutil.copy(sys.argv[1], sys.argv[1] + \".seen\")'"
    outside.read(copy, file, nullcontext())
    assert (tmp_path / "read.md.seen").read_text() == "text"
    with pytest.raises(ReefError, match="exit code 3"):
        outside.read(f"{sys.executable} -c 'raise SystemExit(3)'", file, nullcontext())
    for command in ("no-such-editor", "'unbalanced"):
        with pytest.raises(ReefError, match="cannot be started") as error:
            outside.read(command, file, nullcontext())
        assert error.value.hint == "set EDITOR and PAGER"


@contextmanager
def suspended(back: list[str]) -> Iterator[None]:
    """As Textual's: what is raised inside leaves the terminal to nobody."""
    yield
    back.append("here")


@pytest.mark.parametrize("command", ["no-such-editor", "/", "'unbalanced"])
def test_the_dashboard_comes_back_where_there_is_no_such_program(tmp_path: Path, command: str) -> None:
    back: list[str] = []
    with pytest.raises(ReefError, match="cannot be started"):
        outside.read(command, tmp_path / "read.md", suspended(back))
    assert back == (["here"] if "unbalanced" not in command else [])


def test_which_program(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("VISUAL", "EDITOR", "PAGER"):
        monkeypatch.delenv(name, raising=False)
    assert (outside.editor(), outside.pager()) == ("vi", "less")
    monkeypatch.setenv("EDITOR", "nano")
    monkeypatch.setenv("PAGER", "most")
    assert (outside.editor(), outside.pager()) == ("nano", "most")
    monkeypatch.setenv("VISUAL", "code -w")
    assert outside.editor() == "code -w"
