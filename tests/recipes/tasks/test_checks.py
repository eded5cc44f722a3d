"""What passes, what fails, and that a hostile check or answer costs its time limit and nothing else."""

import os
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from daemon.core.errors import UsageError
from daemon.core.learning import Check
from recipes.base import Answer
from recipes.tasks import checks, confine

ROOT = os.geteuid() == 0


def failure(check: Check, text: str = "the answer\n", *, ended: bool = True) -> str | None:
    return checks.failure(check, Answer(text, ended, 1, None))


def ran(command: str, text: str = "the answer\n") -> str | None:
    return failure(Check(command=command), text)


@pytest.fixture
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checks, "COMMAND_SECONDS", 1.0)


def left_running(word: str) -> list[str]:
    """Processes whose command line holds ``word``."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            line = path.read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        if word in line:
            found.append(line)
    return found


# -- forms and expressions ------------------------------------------------------------------------


def test_a_form_needs_an_answer_that_ended() -> None:
    check = Check(form="one_sentence")
    assert failure(check, "It is.") is None
    assert failure(check, "It is. So.") == "not one_sentence"
    assert failure(check, "It is.", ended=False) == "cut off"


@pytest.mark.parametrize(
    ("expression", "text", "found"),
    [
        (r"git rebase", "use git rebase -i", True),
        (r"git rebase", "use git merge", False),
        (r"\A(?!.*pip install)", "uv add it", True),
        (r"\A(?!.*pip install)", "pip install it", False),
        (r"^second$", "first\nsecond\nthird", True),
        (r"(?i)höre", "HÖRE", True),
        (r"-I", "an option -I", True),
        (r"x", "\ud800", False),
    ],
)
def test_an_expression_is_looked_for(expression: str, text: str, found: bool) -> None:
    assert (failure(Check(expression=expression), text) is None) is found


def test_an_expression_that_backtracks_without_end_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checks, "EXPRESSION_SECONDS", 0.5)
    assert failure(Check(expression=r"(a+)+$"), "a" * 60 + "b") == "the expression took longer than 0.5 s"


def test_a_machine_that_is_busy_fails_no_answer(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """What counts is the expression's own time of the processor, which a job of the lowest priority may wait for."""
    late = tmp_path / "python"
    late.write_text(f'#!/bin/sh\nsleep 0.6\nexec {sys.executable} "$@"\n')
    late.chmod(0o700)
    monkeypatch.setattr(checks, "EXPRESSION_SECONDS", 0.4)
    monkeypatch.setattr(sys, "executable", str(late))
    assert failure(Check(expression="Tokyo"), "It is Tokyo.") is None


def test_an_expression_too_deep_fails_the_answer_only() -> None:
    assert failure(Check(expression="(" * 300 + "a" + ")" * 300), "a") in (None, "the expression failed")


@pytest.mark.parametrize(
    ("check", "says"),
    [
        (Check(), "says nothing"),
        (Check(form="json", expression="x"), "has form and expression"),
        (Check(form="jsn"), "no form is called 'jsn'"),
        (Check(expression="(unclosed"), "'\\(unclosed' is not a regular expression"),
        (Check(expression="x{1,99999999999}"), "is not a regular expression"),
        (Check(command="echo 'unclosed"), "cannot be split"),
        (Check(command="  "), "the command is empty"),
        (Check(command="x" * 3000), "cannot be used"),
        (Check(expression="a\0b"), "cannot be used"),
    ],
)
def test_a_check_without_sense_is_refused_by_name(check: Check, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        checks.validate(check)


@pytest.mark.parametrize("check", [Check(form="max_words:3"), Check(expression="a|b"), Check(command="sh -c 'true'")])
def test_a_good_check_is_taken(check: Check) -> None:
    checks.validate(check)


# -- commands -------------------------------------------------------------------------------------


def test_a_command_gets_the_answer_on_stdin_and_in_a_file() -> None:
    assert checks.passes(Check(command="grep -qx 'the answer'"), Answer("the answer\n", True, 1, None))
    assert ran("grep -qx 'the answer' answer.txt") is None
    assert ran("grep -q nothing") == "the command's exit status was 1"
    assert ran("grep -q höre", "höre") is None
    assert ran("grep -q x", "\ud800") == "the command's exit status was 1"


def test_words_are_not_run_by_a_shell() -> None:
    assert ran("test '$HOME' != /") is None
    assert ran("true ; false") is None


def test_the_environment_is_bare_and_the_directory_empty() -> None:
    os.environ["REEF_TEST_SECRET"] = "s3cret"
    try:
        script = "import os; assert set(os.environ) <= {'PATH', 'HOME', 'TMPDIR', 'LC_CTYPE'}, os.environ"
        assert ran(f'python3 -c "{script}"') is None
    finally:
        del os.environ["REEF_TEST_SECRET"]
    assert (
        ran("""sh -c 'test "$(ls -A)" = answer.txt && test "$PWD" = "$HOME" && echo x > made && test -s made'""")
        is None
    )


def test_a_command_that_does_not_exist_is_named() -> None:
    assert ran("no-such-command-here") == "there is no command 'no-such-command-here'"
    assert ran("./no-such-file") == "'./no-such-file' could not be started"


@pytest.mark.usefixtures("hasty")
@pytest.mark.parametrize("command", ["sleep 6100", "yes", "sh -c 'trap \"\" TERM; while :; do sleep 0.1; done'"])
def test_what_does_not_end_is_ended(command: str) -> None:
    assert ran(command) == "the command took longer than 1 s"


@pytest.mark.usefixtures("hasty")
def test_a_fork_bomb_is_bounded_and_gone() -> None:
    code = "import os\nwhile True:\n    try: os.fork()\n    except OSError: pass  # bomb-7313"
    assert ran(f'python3 -c "{code}"') is not None
    assert left_running("bomb-7313") == []


def test_processes_are_counted() -> None:
    code = """import os, sys, time
try:
    for _ in range(300):
        if os.fork() == 0: time.sleep(7315)
except OSError: sys.exit(0)
sys.exit(3)"""
    assert ran(f"python3 -c '{code}'") is None
    assert left_running("sleep(7315)") == []


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux hands orphans to another process than init")
def test_what_detaches_itself_is_killed_too() -> None:
    assert ran("sh -c 'setsid sh -c \"sleep 7314\" >/dev/null 2>&1 & exit 0'") is None
    assert left_running("sleep 7314") == []


def test_memory_and_files_are_bounded() -> None:
    assert ran("python3 -c 'bytearray(5 << 30)'") == "the command's exit status was 1"
    assert ran("""python3 -c 'open("big", "wb").write(bytes(70 << 20))'""") is not None


@pytest.mark.skipif(sys.platform != "linux", reason="Landlock is Linux's")
def test_nothing_outside_is_written() -> None:
    with tempfile.TemporaryDirectory(prefix="outside-", dir="/tmp") as made:
        outside = Path(made)
        outside.chmod(0o777)
        (outside / "mine").write_text("whole")
        (outside / "mine").chmod(0o666)
        for script in (f"echo x > {made}/new", f"echo x > {made}/mine", f"rm {made}/mine", f"mkdir {made}/d"):
            assert ran(f"sh -c '{script}'") is not None, script
        assert [(path.name, path.read_text()) for path in outside.iterdir()] == [("mine", "whole")]
    assert ran("sh -c 'echo x > /dev/null'") is None


@pytest.mark.skipif(sys.platform != "linux", reason="seccomp is Linux's")
def test_no_socket_of_any_kind_is_opened() -> None:
    """Reef's control socket knows this user by the file system's word, and UDP carries data out as well as TCP."""
    with tempfile.TemporaryDirectory(prefix="control-", dir="/tmp") as made, socket.socket(socket.AF_UNIX) as control:
        Path(made).chmod(0o777)
        control.bind(f"{made}/socket")
        Path(made, "socket").chmod(0o777)
        control.listen()
        reached = f'import socket; socket.socket(socket.AF_UNIX).connect("{made}/socket")'
        assert ran(f"python3 -c '{reached}'") == "the command's exit status was 1"
        for kind in ("2, 2", "2, 1", "10, 2", "16, 3"):  # UDP, TCP, IPv6, netlink
            assert ran(f"python3 -c 'import socket; socket.socket({kind})'") is not None, kind
    assert ran("python3 -c 'import asyncio, socket; socket.socketpair(); asyncio.run(asyncio.sleep(0))'") is None


def test_nothing_is_left_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    with tempfile.TemporaryDirectory(prefix="checks-", dir="/tmp") as made:
        Path(made).chmod(0o755)
        monkeypatch.setattr(tempfile, "tempdir", made)
        assert ran("sh -c 'mkdir -p a/b && echo x > a/b/c && chmod 500 a/b'") is None
        assert list(Path(made).iterdir()) == []


@pytest.mark.skipif(not ROOT, reason="only root can become somebody else")
def test_root_is_dropped() -> None:
    assert ran(f"sh -c 'test $(id -u) = {confine.NOBODY} && test $(id -g) = {confine.NOBODY}'") is None
    assert ran("sh -c 'cat /etc/shadow >/dev/null 2>&1'") is not None


@pytest.mark.skipif(not ROOT, reason="somebody else is needed to be an ordinary user")
def test_it_holds_for_an_ordinary_user_too(tmp_path: Path) -> None:
    """As nobody, whose process cannot become another: the limits and Landlock remain."""
    with tempfile.TemporaryDirectory(prefix="ordinary-", dir="/tmp") as made:
        directory = Path(made)
        directory.chmod(0o777)
        script = directory / "confine.py"
        script.write_text(Path(confine.__file__).read_text("utf-8"))
        script.chmod(0o644)
        (directory / "inside").mkdir()
        (directory / "inside").chmod(0o777)
        bomb = "echo x > ../escaped; echo x > fine && test -s fine && test ! -e ../escaped"
        done = subprocess.run(
            ["/usr/bin/python3", "-I", "-S", str(script), "5", "sh", "-c", bomb],
            cwd=directory / "inside", user=65534, group=65534, extra_groups=[], capture_output=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        assert not (directory / "escaped").exists()


def test_an_answer_of_many_megabytes_is_no_trouble() -> None:
    assert ran("sh -c 'test $(wc -c < answer.txt) = 20000000'", "x" * 20_000_000) is None
    assert failure(Check(expression="y"), "x" * 20_000_000) == "the expression was not found"
