"""Applying a plan: what is run, what is written, and that nothing outside Reef's home is touched."""

import subprocess
from pathlib import Path

import pytest

from adapters import apply, receipt, script
from adapters.agent import Package
from adapters.plan import InstallPlan
from daemon.core.errors import Conflict, NotFound, ReefError, Untrusted
from tests.adapters.conftest import Apply, make_pip_plan, make_plan, tree


def test_it_installs_pinned_versions_and_says_what_and_how_much(plan: InstallPlan, npm: Path, install: Apply) -> None:
    said = install()
    assert said[0] == f"installing the-agent@1.2.3 and node-x@26.0.0, 300 MB on disk, into {plan.root}"
    assert said[-1] == f"agent 1.2.3 is installed; run it: {plan.home}/bin/reef-agent"
    call = (npm.parent / "npm.calls").read_text().split()
    assert call[:3] == ["install", "--prefix", str(plan.root)]
    assert call[-2:] == ["the-agent@1.2.3", "node-x@26.0.0"]
    assert "--ignore-scripts" in call


def test_npm_is_told_where_its_folder_really_is(tmp_path: Path, npm: Path, user: Path) -> None:
    """With a link in its prefix it takes the folder for another project's, and removes what it installs there."""
    (tmp_path / "disk").mkdir()
    (tmp_path / "reef").symlink_to("disk")
    plan = make_plan(tmp_path / "reef", npm)
    apply.apply(plan, lambda _: None)
    real = str((tmp_path / "disk").resolve() / plan.folder)
    receipt.uninstall(plan.home, "agent")
    subprocess.run(["sh"], input=script.script(plan), text=True, capture_output=True, check=True)
    assert [call.split()[2] for call in (npm.parent / "npm.calls").read_text().splitlines()] == [real, real]


def test_files_are_private_and_rewritten_each_time(plan: InstallPlan, install: Apply) -> None:
    install()
    file, wrapper = (plan.home / planned.path for planned in plan.files)
    assert file.read_text() == plan.files[0].text
    assert (file.stat().st_mode & 0o777, wrapper.stat().st_mode & 0o777) == (0o600, 0o700)
    assert file.parent.stat().st_mode & 0o777 == 0o700
    file.write_text("changed")
    install()
    assert file.read_text() == plan.files[0].text


def test_what_is_installed_is_not_installed_again(plan: InstallPlan, npm: Path, install: Apply) -> None:
    install()
    assert apply.is_installed(plan)
    assert install() == [
        "waiting for a first request of agent to reach Reef",
        f"agent 1.2.3 is installed; run it: {plan.home}/bin/reef-agent",
    ]
    assert len((npm.parent / "npm.calls").read_text().splitlines()) == 1


def test_another_version_is_installed_over_it(
    plan: InstallPlan, install: Apply, monkeypatch: pytest.MonkeyPatch
) -> None:
    install()
    newer = plan._replace(
        version="2.0.0",
        says_version="agent 2.0.0 it's",
        packages=(Package("the-agent", "2.0.0", 100, "sha512-a/+="),),
    )
    assert not apply.is_installed(newer)
    monkeypatch.setenv("FAKE_VERSION", "2.0.0")
    apply.apply(newer, lambda _: None)
    assert apply.is_installed(newer)


def test_npm_gets_a_home_of_its_own_that_is_gone_afterwards(
    plan: InstallPlan, npm: Path, user: Path, install: Apply
) -> None:
    before = tree(user)
    install()
    lines = (npm.parent / "npm.env").read_text().splitlines()
    env = dict(line.split("=", 1) for line in lines if "=" in line)
    for name in ("HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME", "npm_config_cache"):
        assert env[name].startswith(str(plan.root / "private"))
    assert env["npm_config_userconfig"] == str(user / ".npmrc")
    assert tree(user) == before
    assert not (plan.root / "private").exists()


def test_a_failing_npm_is_quoted(plan: InstallPlan, install: Apply, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAKE_EXIT", "1")
    with pytest.raises(ReefError, match="npm failed"):
        install()
    assert not apply.is_installed(plan)
    assert not (plan.root / "private").exists()


def test_the_wrong_version_is_refused(plan: InstallPlan, install: Apply, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAKE_VERSION", "0.74.2")
    with pytest.raises(ReefError, match=r"1\.2\.3 was asked for, \"agent 0\.74\.2 it's\" answers"):
        install()
    assert not apply.is_installed(plan)


def test_another_archive_is_refused_before_it_runs(
    plan: InstallPlan, install: Apply, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_INTEGRITY", "sha512-evil")
    with pytest.raises(Untrusted, match="another the-agent@1"):
        install()
    assert not apply.is_installed(plan)
    assert not (plan.root / "node_modules").exists()


def test_an_npm_that_says_yes_and_brings_nothing(plan: InstallPlan, npm: Path, install: Apply) -> None:
    npm.write_text("#!/bin/sh\n")
    with pytest.raises(Untrusted, match="another the-agent@1"):
        install()
    assert not apply.is_installed(plan)


def test_it_is_not_installed_before_it_has_asked_reef(
    plan: InstallPlan, install: Apply, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_CHECK", "nobody asked")
    said: list[str] = []
    with pytest.raises(ReefError, match="no request of it reached Reef:\nchecked 1: nobody asked"):
        apply.apply(plan, said.append)
    assert not [line for line in said if "is installed" in line]
    monkeypatch.delenv("FAKE_CHECK")
    assert install()[-1].startswith("agent 1.2.3 is installed")


@pytest.mark.parametrize("damage", ["cut", "gone"])
def test_a_cut_install_does_not_count(plan: InstallPlan, install: Apply, damage: str) -> None:
    install()
    path = plan.home / plan.receipt
    if damage == "cut":
        path.write_text(path.read_text()[:20])
    else:
        Path(plan.command[0]).unlink()
    assert not apply.is_installed(plan)


def test_a_link_is_made_only_when_asked_and_is_on_the_receipt(tmp_path: Path, npm: Path, user: Path) -> None:
    plan = make_plan(tmp_path / "reef", npm, link=True)
    said: list[str] = []
    apply.apply(plan, said.append)
    link = user / ".local" / "bin" / "reef-agent"
    assert link.readlink() == plan.home / "bin" / "reef-agent"
    assert said[-1].endswith(f"run it: {link}")
    found = receipt.read(plan.home, "agent")
    assert found is not None
    assert found.links[str(link)] == str(plan.home / "bin" / "reef-agent")
    apply.apply(plan, said.append)  # again, with the link there


def test_a_file_of_the_persons_is_never_replaced_by_the_link(tmp_path: Path, npm: Path, user: Path) -> None:
    own = user / ".local" / "bin" / "reef-agent"
    own.write_text("mine")
    with pytest.raises(Conflict, match="is not this Reef's"):
        apply.apply(make_plan(tmp_path / "reef", npm, link=True), print)
    assert own.read_text() == "mine"
    assert not (npm.parent / "npm.calls").exists()


def test_a_folder_for_the_link_is_not_made(tmp_path: Path, npm: Path, user: Path) -> None:
    (user / ".local" / "bin").rmdir()
    with pytest.raises(NotFound, match="for the link"):
        apply.apply(make_plan(tmp_path / "reef", npm, link=True), print)
    assert not (user / ".local" / "bin").exists()


def test_pip_gets_an_environment_of_its_own(tmp_path: Path, user: Path, wheels: Path) -> None:
    plan, before = make_pip_plan(tmp_path / "reef"), tree(user)
    said: list[str] = []
    apply.apply(plan, said.append)
    assert said[0] == f"installing the-agent==1.2.3, 1 MB on disk, into {plan.root}"
    assert apply.is_installed(plan)
    assert not list(plan.root.rglob("*.pyc"))
    assert (tree(user), (plan.root / "private").exists()) == (before, False)
    apply.apply(plan, said.append)
    assert len(said) == 5
    assert receipt.uninstall(plan.home, "agent") == []
    assert not plan.root.exists()


def test_another_wheel_is_refused_before_it_runs(tmp_path: Path, user: Path, wheels: Path) -> None:
    plan = make_pip_plan(tmp_path / "reef")
    wheels.write_bytes(wheels.read_bytes() + b"evil")
    with pytest.raises(ReefError, match=r"(?s)pip failed.*HASHES"):
        apply.apply(plan, lambda _: None)
    assert not apply.is_installed(plan)


def test_what_is_there_is_not_installed(plan: InstallPlan, npm: Path, install: Apply) -> None:
    install()
    program = Path(plan.command[0]).rename(npm.parent / "agent")
    there = plan._replace(packages=(), command=(str(program),), asks_version=())
    said: list[str] = []
    apply.apply(there, said.append)
    assert said[0] == f"agent 1.2.3 is there: {program}"
    assert apply.is_installed(there)
    assert len((npm.parent / "npm.calls").read_text().splitlines()) == 1
