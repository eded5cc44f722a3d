"""A stand-in for npm and the registry, and a plan that it can carry out in milliseconds."""

import hashlib
import io
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from adapters import apply
from adapters.agent import Package
from adapters.plan import InstallPlan, PlannedFile

#: Installs an agent that prints its version, with a link and a nested file, and tells how it was called.
NPM = r"""#!/bin/sh
prefix=$3
env > "$(dirname -- "$0")/npm.env"
echo "$@" >> "$(dirname -- "$0")/npm.calls"
[ -z "$FAKE_WAIT" ] || cat "$FAKE_WAIT"
mkdir -p "$prefix/node_modules/.bin" "$prefix/node_modules/the-agent/lib"
printf '#!/bin/sh\necho "agent %s it'"'"'s"\n' "${FAKE_VERSION:-1.2.3}" > "$prefix/node_modules/the-agent/agent"
chmod +x "$prefix/node_modules/the-agent/agent"
echo 'a file' > "$prefix/node_modules/the-agent/lib/file with spaces.js"
ln -sf ../the-agent/agent "$prefix/node_modules/.bin/agent"
cat > "$prefix/node_modules/.package-lock.json" <<LOCK
{"packages": {"node_modules/the-agent": {"integrity": "${FAKE_INTEGRITY:-sha512-a/+=}"},
"node_modules/node-x": {"integrity": "sha512-b/+="}}}
LOCK
echo '{}' > "$prefix/package.json"
echo '{}' > "$prefix/package-lock.json"
echo litter > "$HOME/litter"
exit ${FAKE_EXIT:-0}
"""
#: Its check fails as ``FAKE_CHECK`` says.
WRAPPER = '#!/bin/sh\necho "checked ${REEF_CHECK:-not}: ${FAKE_CHECK:-it runs}" >&2\nexit ${FAKE_CHECK:+1}\n'


def make_plan(home: Path, npm: Path, *, link: bool = False) -> InstallPlan:
    root = home / "agents" / "agent"
    command = (str(root / "node_modules" / "the-agent" / "agent"),)
    return InstallPlan(
        adapter="agent",
        version="1.2.3",
        home=home,
        packages=(Package("the-agent", "1.2.3", 100, "sha512-a/+="), Package("node-x", "26.0.0", 200, "sha512-b/+=")),
        files=(
            PlannedFile("agents/agent/install.json", '{"a": "it\'s $HOME `x` %s \\\\n"}\n'),
            PlannedFile("bin/reef-agent", WRAPPER, 0o700),
        ),
        command=command,
        wrapper="bin/reef-agent",
        installer=npm,
        asks_version=(*command, "--version"),
        says_version="agent 1.2.3 it's",
        environment={"AGENT_DIR": str(root / "private" / "it's")},
        link=link,
    )


def make_pip_plan(home: Path) -> InstallPlan:
    """By the real pip, from a wheel that `wheels` made."""
    package = Package("the-agent", "1.2.3", 1, f"sha256:{hashlib.sha256(_wheel()).hexdigest()}", "pip")
    program = str(home / "agents" / "agent" / "venv" / "bin" / "the-agent")
    return make_plan(home, Path(sys.executable))._replace(
        packages=(package,), command=(program,), asks_version=(program, "--version"), says_version="the agent 1.2.3"
    )


def _wheel() -> bytes:
    """The same bytes each time."""
    files = {
        "the_agent.py": "import json\ndef main(): print('the agent 1.2.3')\n",
        "the_agent-1.2.3.dist-info/METADATA": "Metadata-Version: 2.1\nName: the-agent\nVersion: 1.2.3\n",
        "the_agent-1.2.3.dist-info/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        "the_agent-1.2.3.dist-info/entry_points.txt": "[console_scripts]\nthe-agent = the_agent:main\n",
        "the_agent-1.2.3.dist-info/RECORD": "",
    }
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        for name, text in files.items():
            archive.writestr(zipfile.ZipInfo(name), text)
    return made.getvalue()


@pytest.fixture
def wheels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """pip's only index."""
    path = tmp_path / "wheels" / "the_agent-1.2.3-py3-none-any.whl"
    path.parent.mkdir()
    path.write_bytes(_wheel())
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(path.parent))
    return path


@pytest.fixture
def npm(tmp_path: Path) -> Path:
    path = tmp_path / "registry" / "npm"
    path.parent.mkdir()
    path.write_text(NPM)
    path.chmod(0o700)
    return path


@pytest.fixture
def user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A person's HOME, with things in it that must stay."""
    home = tmp_path / "user"
    (home / ".local" / "bin").mkdir(parents=True)
    (home / ".bashrc").write_text("# mine\n")
    (home / ".npmrc").write_text("registry=https://npm.example\n")
    monkeypatch.setenv("HOME", str(home))
    return home


@pytest.fixture
def plan(tmp_path: Path, npm: Path, user: Path) -> InstallPlan:
    return make_plan(tmp_path / "reef", npm)


Apply = Callable[[], list[str]]


@pytest.fixture
def install(plan: InstallPlan) -> Apply:
    """Apply the plan; what was said."""

    def run() -> list[str]:
        said: list[str] = []
        apply.apply(plan, said.append)
        return said

    return run


def tree(folder: Path) -> dict[str, tuple[int, bytes | str | None]]:
    """Every path below: mode, and content, target or None."""
    found: dict[str, tuple[int, bytes | str | None]] = {}
    for path in sorted(folder.rglob("*")):
        content = str(path.readlink()) if path.is_symlink() else None if path.is_dir() else path.read_bytes()
        found[str(path.relative_to(folder))] = (path.lstat().st_mode, content)
    return found
