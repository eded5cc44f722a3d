"""The script says what the plan says: same tree, byte for byte, and harmless when it is cut."""

import os
import shutil
import subprocess
import threading
from pathlib import Path

import pytest

from adapters import apply, receipt, script
from adapters.plan import InstallPlan
from daemon.core.errors import Conflict
from daemon.core.locks import is_locked
from tests.adapters.conftest import make_pip_plan, make_plan, tree
from tests.fakes.daemon import until

SHELLS = [shell for shell in ("sh", "dash", "bash", "busybox") if shutil.which(shell)]
HOSTILE = [
    "a b",
    "it's",
    'say "hi"',
    "$(touch gone)",
    "`touch gone`",
    "new\nline",
    "%s%n @HOME@ \\n",
    "-rf",
    "*",
    "ünï 項目",
]


def run(text: str, shell: str = "sh", **environment: str) -> "subprocess.CompletedProcess[str]":
    """As ``curl … | bash`` does: from stdin."""
    words = [shell, "sh"] if shell == "busybox" else [shell]
    return subprocess.run(
        words,
        input=text,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.mark.parametrize("shell", SHELLS)
def test_every_shell_takes_it(plan: InstallPlan, shell: str) -> None:
    words = [shell, "sh"] if shell == "busybox" else [shell]
    done = subprocess.run([*words, "-n"], input=script.script(plan), capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.skipif(shutil.which("shellcheck") is None, reason="shellcheck is not on this machine")
def test_shellcheck_has_nothing_to_say(plan: InstallPlan) -> None:
    done = subprocess.run(
        ["shellcheck", "-s", "sh", "-e", "SC2016,SC2086", "-"],
        input=script.script(plan),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("link", [False, True])
@pytest.mark.parametrize("shell", SHELLS)
def test_it_leaves_the_tree_that_apply_leaves(tmp_path: Path, npm: Path, user: Path, shell: str, link: bool) -> None:
    plan = make_plan(tmp_path / "reef", npm, link=link)
    apply.apply(plan, lambda _: None)
    applied, home = tree(plan.home), tree(user)
    receipt.uninstall(plan.home, "agent")
    shutil.rmtree(plan.home)
    done = run(script.script(plan), shell)
    assert done.returncode == 0, done.stderr
    assert tree(plan.home) == applied
    assert tree(user) == home
    assert f"is installed; run it: {user if link else plan.home}" in done.stderr
    assert done.stdout == ""


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_homes_are_only_names(tmp_path: Path, npm: Path, user: Path, name: str) -> None:
    """BUGS B211, B212, B214."""
    (tmp_path / "there").mkdir()
    plan = make_plan(tmp_path / "there" / name, npm)
    done = run(script.script(plan))
    assert done.returncode == 0, done.stderr
    by_script = tree(plan.home)
    assert (plan.home / "agents/agent/install.json").read_text() == plan.files[0].text
    assert [path.name for path in (tmp_path / "there").iterdir()] == [name]
    assert not list(tmp_path.rglob("gone"))
    apply.apply(plan, lambda _: None)
    assert tree(plan.home) == by_script


def test_cut_off_anywhere_it_runs_nothing(tmp_path: Path, npm: Path, user: Path) -> None:
    """Every length that ends in the last line, and every thirteenth before; a shell reads what has come and acts."""
    plan = make_plan(tmp_path / "reef", npm)
    text = script.script(plan)
    last = text.rstrip("\n").rfind("\n") + 1
    lengths = [*range(0, last, 13), *range(last, len(text) - 1)]
    for length in lengths:
        subprocess.run(["sh"], input=text[:length], capture_output=True, text=True, timeout=20, check=False)
        assert not plan.home.exists(), f"{length} of {len(text)} bytes: {text[:length][-40:]!r}"
    assert run(text[:-1]).returncode == 0  # only the last newline is missing
    assert plan.home.exists()


def test_again_it_installs_nothing_anew(plan: InstallPlan, npm: Path) -> None:
    text = script.script(plan)
    assert run(text).returncode == 0
    before = tree(plan.home)
    again = run(text)
    assert again.returncode == 0, again.stderr
    assert "installing" not in again.stderr
    assert len((npm.parent / "npm.calls").read_text().splitlines()) == 1
    assert tree(plan.home) == before


@pytest.mark.parametrize("first", ["apply", "script"])
def test_a_link_of_an_install_before_stays_on_the_receipt(tmp_path: Path, npm: Path, user: Path, first: str) -> None:
    linked, plain = (make_plan(tmp_path / "reef", npm, link=link) for link in (True, False))
    if first == "apply":
        apply.apply(linked, lambda _: None)
        assert run(script.script(plain)).returncode == 0
    else:
        assert run(script.script(linked)).returncode == 0
        apply.apply(plain, lambda _: None)
    link = user / ".local" / "bin" / "reef-agent"
    found = receipt.read(plain.home, "agent")
    assert found is not None
    assert str(link) in found.links
    receipt.uninstall(plain.home, "agent")
    assert not link.is_symlink()


def test_two_at_once_are_one_after_the_other(plan: InstallPlan, npm: Path) -> None:
    """Started and waited for in turn; what npm waits for comes when two others stand behind it."""
    gate = npm.parent / "gate"
    os.mkfifo(gate)
    text, environment = script.script(plan), {**os.environ, "FAKE_WAIT": str(gate)}
    first = begun(text, environment)
    assert first.stderr is not None
    assert "installing" in first.stderr.readline()
    second = begun(text, environment)
    assert second.stderr is not None
    assert second.stderr.readline() == "agent is being installed already; waiting\n"
    said: list[str] = []
    third = threading.Thread(target=apply.apply, args=(plan, said.append))
    third.start()
    until(lambda: said == ["agent is being installed already; waiting"], "the third waits")
    gate.write_text("go on")
    assert (first.wait(60), second.wait(60)) == (0, 0)
    third.join(60)
    assert said[-1].startswith("agent 1.2.3 is installed")
    assert len((npm.parent / "npm.calls").read_text().splitlines()) == 1
    for one in (first, second):
        one.communicate()


def test_npm_that_outlives_its_installer_is_waited_for(plan: InstallPlan, npm: Path) -> None:
    gate = npm.parent / "gate"
    os.mkfifo(gate)
    first = begun(script.script(plan), {**os.environ, "FAKE_WAIT": str(gate)})
    until((npm.parent / "npm.calls").exists, "npm runs")
    first.kill()
    first.wait(60)
    assert is_locked(plan.home / plan.lock)
    gate.write_text("go on")
    until(lambda: not is_locked(plan.home / plan.lock), "npm has ended")
    first.communicate()
    assert run(script.script(plan)).returncode == 0


def begun(text: str, environment: dict[str, str]) -> "subprocess.Popen[str]":
    return subprocess.Popen(["sh", "-c", text], env=environment, stderr=subprocess.PIPE, text=True)


def test_a_failing_npm_leaves_no_receipt(plan: InstallPlan) -> None:
    done = run(script.script(plan), FAKE_EXIT="1")
    assert done.returncode == 1
    assert done.stderr.splitlines()[-2:] == ["error: npm failed", "  hint: npm ping"]
    assert receipt.read(plan.home, "agent") is None
    assert not (plan.root / "private").exists()


def test_another_archive_is_refused_before_it_runs(plan: InstallPlan) -> None:
    done = run(script.script(plan), FAKE_INTEGRITY="sha512-evil")
    assert done.returncode == 1
    assert "error: npm brought another the-agent@1.2.3 than the one that Reef knows" in done.stderr
    assert receipt.read(plan.home, "agent") is None
    assert not (plan.root / "node_modules").exists()


def test_the_wrong_version_is_refused(plan: InstallPlan) -> None:
    done = run(script.script(plan), FAKE_VERSION="0.1")
    assert done.returncode == 1
    assert "error: agent 1.2.3 was asked for, 'agent 0.1 it's' answers" in done.stderr
    assert receipt.read(plan.home, "agent") is None


def test_it_is_not_installed_before_it_has_asked_reef(plan: InstallPlan) -> None:
    done = run(script.script(plan), FAKE_CHECK="nobody asked")
    assert done.returncode == 1
    assert "checked 1: nobody asked\nerror: agent 1.2.3 is in place, but no request of it reached Reef" in done.stderr
    assert "is installed" not in done.stderr
    again = run(script.script(plan))
    assert again.returncode == 0
    assert "agent 1.2.3 is installed" in again.stderr


def test_the_link_never_replaces_what_is_there(tmp_path: Path, npm: Path, user: Path) -> None:
    own = user / ".local" / "bin" / "reef-agent"
    own.write_text("mine")
    done = run(script.script(make_plan(tmp_path / "reef", npm, link=True)))
    assert done.returncode == 1
    assert "is not this Reef's" in done.stderr
    assert own.read_text() == "mine"
    assert not (tmp_path / "reef").exists()


def test_a_link_that_fits_no_line_of_the_receipt_is_not_made(tmp_path: Path, npm: Path, user: Path) -> None:
    plan = make_plan(tmp_path / "new\nline", npm, link=True)
    with pytest.raises(Conflict, match="fits no line of a receipt"):
        apply.apply(plan, lambda _: None)
    done = run(script.script(plan))
    assert (done.returncode, "fits no line of a receipt" in done.stderr) == (1, True)
    assert not list((user / ".local" / "bin").iterdir())


def test_by_pip_it_leaves_the_tree_that_apply_leaves(tmp_path: Path, user: Path, wheels: Path) -> None:
    plan = make_pip_plan(tmp_path / "re ef's")
    apply.apply(plan, lambda _: None)
    applied = tree(plan.home)
    receipt.uninstall(plan.home, "agent")
    shutil.rmtree(plan.home)
    done = run(script.script(plan))
    assert done.returncode == 0, done.stderr
    by_script = tree(plan.home)
    assert {path for path in applied.keys() | by_script.keys() if applied.get(path) != by_script.get(path)} == set()
    wheels.write_bytes(wheels.read_bytes() + b"evil")
    shutil.rmtree(plan.home)
    done = run(script.script(plan))
    assert (done.returncode, "error: pip failed" in done.stderr) == (1, True)
    assert receipt.read(plan.home, "agent") is None


def there(plan: InstallPlan, npm: Path) -> InstallPlan:
    program = npm.parent / "agent"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o700)
    return plan._replace(packages=(), version="1.3", command=(str(program),), asks_version=())


def test_what_is_there_is_used_where_it_works(plan: InstallPlan, npm: Path) -> None:
    found = there(plan, npm)
    apply.apply(found, lambda _: None)
    applied = tree(plan.home)
    shutil.rmtree(plan.home)
    done = run(script.script(plan, found))
    assert done.returncode == 0, done.stderr
    assert f"agent 1.3 is there: {found.command[0]}\n" in done.stderr
    assert tree(plan.home) == applied
    assert not (npm.parent / "npm.calls").exists()


def test_what_is_there_and_does_not_work_is_passed_over(plan: InstallPlan, npm: Path) -> None:
    failing = "#!/bin/sh\nexit 1\n"
    found = there(plan, npm)
    found = found._replace(files=(found.files[0], found.files[1]._replace(text=failing)))
    done = run(script.script(plan, found))
    assert done.returncode == 0, done.stderr
    assert "what is on PATH is not used; Reef installs its own\n" in done.stderr
    assert "agent 1.2.3 is installed" in done.stderr
    assert apply.is_installed(plan)
