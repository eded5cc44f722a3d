"""A working copy on disk: made, brought from release to release, edited meanwhile, killed at any moment."""

import os
import random
import signal
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from pathlib import Path

import pytest

from daemon.core.errors import StoreError
from daemon.core.paths import Home
from daemon.store.working import copy, tree
from daemon.store.working.copy import State, WorkingCopy
from daemon.store.working.merge import merged

ROOT = Path(__file__).parents[4]
ONE = {"rules.md": "One.\n", "memory/a.md": "A.\n", "prompts/gone.md": "Gone.\n"}
TWO = {"rules.md": "Two.\n", "memory/a.md": "A.\n", "skills/new/SKILL.md": "new\n"}


@pytest.fixture
def copied(reef_home: Home) -> WorkingCopy:
    made = WorkingCopy(reef_home, "work/api")
    made.make("r1-00000000", ONE)
    return made


def files(copied: WorkingCopy) -> dict[str, str]:
    return {
        path.relative_to(copied.root).as_posix(): path.read_text()
        for path in copied.root.rglob("*")
        if path.is_file() and not path.is_symlink()
    }


def settled(copied: WorkingCopy, head: str, base: Mapping[str, str], theirs: Mapping[str, str]) -> State:
    state = copied.state()
    copied.recover(state)
    mine = tree.look(copied.root, base.keys())
    return copied.settle(state, head, merged(base, mine.files, theirs, unread=mine.unread), mine.files)


def test_made_of_plain_private_files(reef_home: Home, copied: WorkingCopy) -> None:
    assert copied.root == reef_home.harness / "work%2Fapi"
    assert files(copied) == ONE
    assert {stat.S_IMODE(path.stat().st_mode) for path in copied.root.rglob("*.md")} == {0o600}
    for folder in (reef_home.harness, copied.root, copied.root / "memory", reef_home.harness / ".reef"):
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert copied.state() == State("work/api", "r1-00000000")
    assert copy.known(reef_home) == ["work/api"]
    assert copy.place_of(reef_home, str(copied.root / "memory" / "a.md")) == ("work/api", "memory/a.md")
    assert copy.place_of(reef_home, str(reef_home.harness / ".reef" / "x"))[0] is None
    assert copy.place_of(reef_home, str(reef_home.root))[0] is None


def test_what_lay_there_before_stays(reef_home: Home) -> None:
    made = WorkingCopy(reef_home, "default")
    made.root.mkdir(parents=True)
    (made.root / "rules.md").write_text("mine\n")
    made.make("r1-00000000", ONE)
    assert files(made) == ONE | {"rules.md": "mine\n"}


def test_b192_a_new_release_updates_what_was_not_touched_and_keeps_what_was(copied: WorkingCopy) -> None:
    (copied.root / "rules.md").write_text("mine\n")
    (copied.root / "prompts" / "own.md").write_text("own\n")
    state = settled(copied, "r2-00000000", ONE, TWO)
    assert files(copied) == TWO | {"rules.md": "mine\n", "prompts/own.md": "own\n"}
    assert (state.base, state.settling) == ("r2-00000000", None)
    assert state.conflicts == {"rules.md": "r2-00000000"}
    assert copied.state() == state
    copied.recover(state)
    assert [path for path in (copied.root.parent / ".reef").rglob("*") if path.is_file()] == [
        copied.root.parent / ".reef" / "work%2Fapi" / "state.json"
    ]


def test_a_file_that_was_written_just_now_may_not_be_whole(copied: WorkingCopy) -> None:
    now = time.time()
    assert copied.being_saved(["rules.md"], now)
    for age, read, expected in (
        (60, now, False),
        (-60, now, False),  # a clock that was set back is no reason to wait
        (1, now - 5, True),  # a machine so busy that it was written between the reading and this question
    ):
        os.utime(copied.root / "rules.md", (now - age, now - age))
        assert copied.being_saved(["rules.md", "gone.md"], read) is expected


def test_folders_that_are_empty_go_and_giving_up_takes_the_releases_text(copied: WorkingCopy) -> None:
    (copied.root / "rules.md").write_text("mine\n")
    (copied.root / "memory" / "a.md").unlink()
    state = settled(copied, "r2-00000000", ONE, TWO)
    assert not (copied.root / "prompts").exists()
    here = files(copied)
    state = copied.give_up(state, TWO, here, ["rules.md", "memory/a.md"])
    assert (files(copied), state.conflicts) == (TWO, {})


def test_a_folder_that_leads_elsewhere_is_not_written_through(copied: WorkingCopy, tmp_path: Path) -> None:
    (copied.root / "skills").symlink_to(tmp_path)
    state = settled(copied, "r2-00000000", ONE, TWO)
    assert list(tmp_path.iterdir()) == []
    assert state.conflicts == {"skills/new/SKILL.md": "r2-00000000"}


def test_what_is_saved_into_a_file_that_was_moved_aside_is_not_lost(copied: WorkingCopy) -> None:
    with (copied.root / "rules.md").open("r+") as editor:  # an editor that keeps its file open
        state = settled(copied, "r2-00000000", ONE, TWO)
        editor.write("LATE")
    (problem,) = copied.recover(state)
    assert problem.path == "rules.md"
    kept = Path(problem.message.rpartition(" ")[2])
    assert kept.read_text() == "LATE\n"
    assert copied.recover(state) == [problem]
    (copied.root / "rules.md").unlink()
    assert copied.recover(state) == []
    assert (copied.root / "rules.md").read_text() == "LATE\n"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        '{"odd": 1}',
        '{"scenario": "a", "base": 5}',
        '{"scenario": "a", "proposal": 7}',
        '{"scenario": "a", "conflicts": [1]}',
        '{"scenario": "a", "conflicts": {"rules.md": 1}}',
    ],
)
def test_a_state_that_cannot_be_read_is_named(copied: WorkingCopy, text: str) -> None:
    (copied.root.parent / ".reef" / "work%2Fapi" / "state.json").write_text(text)
    with pytest.raises(StoreError, match=r"state\.json") as caught:
        copied.state()
    assert str(copied.root) in str(caught.value.hint)


MANY = {f"memory/m{number}.md": "{}\n" for number in range(30)}
ENDLESS = """
import sys
from pathlib import Path
from daemon.core.paths import Home
from tests.daemon.store.working import test_copy as t
made = t.WorkingCopy(Home(Path(sys.argv[1])), "default")
print("begun", flush=True)
t.to_and_fro(made, 10**6)
"""


def version(number: int) -> dict[str, str]:
    """Release ``number`` of many files, some of which come and go."""
    return {path: text.format(number) for path, text in MANY.items() if number % 2 or not path.endswith("7.md")}


def to_and_fro(made: WorkingCopy, times: int) -> int:
    """From release to release; the number of the last one."""
    number = int(made.state().base.removeprefix("r"))
    for following in range(number + 1, number + 1 + times):
        settled(made, f"r{following}", version(number), version(following))
        number = following
    return number


def test_killed_at_any_moment_it_goes_on_and_no_edit_is_lost(reef_home: Home) -> None:
    made = WorkingCopy(reef_home, "default")
    made.make("r1", version(1))
    (made.root / "memory" / "m3.md").write_text("mine\n")
    (made.root / "rules.md").write_text("added\n")
    (made.root / "memory" / "m4.md").unlink()
    chance = random.Random(7)
    for _ in range(25):
        words = [sys.executable, "-c", ENDLESS, str(reef_home.root)]
        with subprocess.Popen(words, stdout=subprocess.PIPE, cwd=ROOT) as child:
            assert child.stdout is not None
            child.stdout.readline()
            time.sleep(chance.uniform(0, 0.05))  # the moment is what is tried
            child.send_signal(signal.SIGKILL)
        number = to_and_fro(made, 1)
        wanted = version(number) | {"memory/m3.md": "mine\n", "rules.md": "added\n"}
        del wanted["memory/m4.md"]
        assert files(made) == wanted
    assert made.recover(made.state()) == []


def test_saved_at_any_moment_the_last_thing_saved_is_there(reef_home: Home) -> None:
    made = WorkingCopy(reef_home, "default")
    made.make("r1", version(1))
    target, over = made.root / "memory" / "m1.md", threading.Event()
    saved: list[str] = []

    def edit() -> None:
        """As editors do: written over in place, then by a new file in its place, then gone and there again."""
        while not over.is_set():
            saved.append(f"edit {len(saved)}\n")
            if len(saved) % 2:
                target.write_text(saved[-1])
            else:
                fresh = target.with_name("m1.md.tmp")
                fresh.write_text(saved[-1])
                fresh.replace(target)
            over.wait(0.001)

    person = threading.Thread(target=edit)
    person.start()
    to_and_fro(made, 40)
    over.set()
    person.join()
    made.recover(made.state())
    assert target.read_text() == saved[-1]
    number = to_and_fro(made, 1)
    assert files(made) == version(number) | {"memory/m1.md": saved[-1]}
