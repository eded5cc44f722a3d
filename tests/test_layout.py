"""What the tree promises: sizes, mirrored tests, light imports, locks that fit, nothing of ours shadowed."""

import ast
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from recipes.lora.environment import TORCH

ROOT = Path(__file__).parents[1]
SOURCES = ("reef_cli", "daemon", "adapters", "recipes")
TOP_LEVEL = {
    "reef_cli", "daemon", "adapters", "recipes", "harness_templates", "tests", "assets", "bench", "requirements",
    "constraints", "pyproject.toml", "install.sh", "README.md", "AGENTS.md", "CHANGELOG.md", "LICENSE", ".ci",
    ".gitignore",
}  # fmt: skip

FILE_LINES = 500
FUNCTION_LINES = 60
POSITIONAL = 4


def modules(*folders: str) -> Iterator[Path]:
    for folder in folders:
        yield from sorted((ROOT / folder).rglob("*.py"))


def relative(path: Path) -> str:
    return str(path.relative_to(ROOT))


def functions(path: Path) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def lines(path: Path) -> int:
    return len(path.read_text("utf-8").splitlines())


def agreed(what: str, exceptions: list[str]) -> None:
    """Fails with one line for each exception."""
    assert not exceptions, f"{what}:\n  " + "\n  ".join(exceptions)


def does_something(path: Path) -> bool:
    """Whether a module has code of its own to test: a function whose body is more than a docstring or ``...``."""
    return any(not isinstance(body.body[-1], ast.Expr) or len(body.body) > 2 for body in functions(path))


def tracked() -> set[str]:
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True)
    if listed.returncode != 0:
        pytest.skip("not a git clone")
    return {line.partition("/")[0] for line in listed.stdout.splitlines()}


def test_the_top_level_is_the_agreed_one() -> None:
    assert tracked() <= TOP_LEVEL


def test_files_have_at_most_500_lines() -> None:
    agreed("longer than 500 lines", [relative(p) for p in modules(*SOURCES, "tests") if lines(p) > FILE_LINES])


def test_functions_have_at_most_60_lines() -> None:
    long = [
        f"{relative(path)}:{function.lineno} {function.name}"
        for path in modules(*SOURCES)
        for function in functions(path)
        if function.end_lineno is not None and function.end_lineno - function.lineno >= FUNCTION_LINES
    ]
    agreed("longer than 60 lines", long)


def test_functions_take_at_most_four_positional_parameters() -> None:
    many = [
        f"{relative(path)}:{function.lineno} {function.name}"
        for path in modules(*SOURCES)
        for function in functions(path)
        if len([a for a in function.args.posonlyargs + function.args.args if a.arg not in ("self", "cls")]) > POSITIONAL
    ]
    agreed("more than four positional parameters", many)


def test_no_module_is_a_drawer_for_odds_and_ends() -> None:
    drawers = {"utils", "util", "helpers", "helper", "common", "manager", "misc"}
    assert [relative(path) for path in modules(*SOURCES, "tests") if path.stem in drawers] == []


def test_test_folders_mirror_packages() -> None:
    folders = {path.parent.relative_to(ROOT / "tests") for path in modules(*(f"tests/{name}" for name in SOURCES))}
    agreed("lead nowhere", [str(folder) for folder in folders if not (ROOT / folder / "__init__.py").exists()])


def test_every_module_is_tested() -> None:
    """By its mirror, by a test that imports it, or end to end by one that names it: ``COVERS = ("daemon/x/y.py",)``."""
    texts = "\n".join(path.read_text("utf-8") for path in modules("tests"))
    covered = set(re.findall(r'"([\w/]+\.py)"', " ".join(re.findall(r"^COVERS = \([^)]*\)", texts, re.M))))
    missing = []
    for path in modules(*SOURCES):
        if path.name.startswith("__") or not does_something(path) or relative(path) in covered:
            continue
        mirror = ROOT / "tests" / path.relative_to(ROOT).with_name(f"test_{path.name}")
        package = re.escape(".".join(path.relative_to(ROOT).parent.parts))
        imported = rf"^(from|import) {package}\.{path.stem}\b|^from {package} import .*\b{path.stem}\b"
        if not mirror.exists() and not re.search(imported, texts, re.M):
            missing.append(relative(path))
    agreed("no test imports or names", missing)


def test_every_module_says_what_it_owns() -> None:
    silent = [relative(path) for path in modules(*SOURCES) if not ast.get_docstring(ast.parse(path.read_text("utf-8")))]
    agreed("no docstring", [name for name in silent if lines(ROOT / name) > 0])


def test_the_daemon_has_at_least_as_many_lines_of_tests_as_of_source() -> None:
    source = sum(lines(path) for path in modules("daemon"))
    tests = sum(lines(path) for path in modules("tests/daemon", "tests/e2e", "tests/fakes"))
    assert tests >= source


@pytest.mark.parametrize("name", ["daemon", "adapters", "recipes", "reef_cli"])
def test_the_packages_are_ours(name: str) -> None:
    """python-daemon and AdapterHub install packages of the same names."""
    code = f"import {name}; print({name}.__file__)"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert Path(done.stdout.strip()) == ROOT / name / "__init__.py"


def test_the_command_starts_without_what_only_some_commands_need() -> None:
    heavy = {"typer", "rich", "asyncio", "yaml", "aiohttp", "starlette", "msgspec", "textual", "subprocess"}
    code = "import sys, reef_cli.main; print(' '.join(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert heavy & set(done.stdout.split()) == set()


@pytest.mark.parametrize("package", SOURCES)
def test_nothing_happens_at_import(package: str, tmp_path: Path) -> None:
    """Every module imports in an empty home without writing there or printing."""
    code = (
        "import importlib, pkgutil, sys\n"
        f"import {package}\n"
        f"for module in pkgutil.walk_packages({package}.__path__, '{package}.'):\n"
        "    if not module.name.endswith('__main__'):\n"
        "        importlib.import_module(module.name)\n"
    )
    environment = {"HOME": str(tmp_path), "PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin"}
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert list(tmp_path.iterdir()) == []


def locked(name: str) -> dict[str, str]:
    text = (ROOT / "requirements" / name).read_text("utf-8")
    pins = re.findall(r"^([\w.-]+)==([\w.+!]+)", text, re.M)
    return {re.sub(r"[-_.]+", "-", package.lower()): version for package, version in pins}


def declared() -> tuple[list[str], list[str]]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    return project["project"]["dependencies"], project["dependency-groups"]["dev"]


@pytest.mark.parametrize("name", ["core.txt", "dev.txt"])
def test_the_locks_fit_the_declarations(name: str) -> None:
    """`tests/check --lock` rewrites them."""
    core, dev = declared()
    pins = locked(name)
    for line in core if name == "core.txt" else core + dev:
        requirement = Requirement(line)
        assert requirement.specifier.contains(pins[re.sub(r"[-_.]+", "-", requirement.name.lower())]), line


def test_the_checks_run_on_what_a_person_installs() -> None:
    core, dev = locked("core.txt"), locked("dev.txt")
    assert {name: dev.get(name) for name in core} == core


def test_the_training_lock_fits_the_extra_and_leaves_torch_to_its_own_install() -> None:
    extra = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]["train"]
    pins = {**locked("train.txt"), "torch": TORCH}
    for requirement in map(Requirement, extra):
        assert requirement.specifier.contains(pins[requirement.name]), requirement
    assert "torch" not in locked("train.txt")
    assert f"torch=={TORCH}\n" in (ROOT / "constraints" / "torch-cpu.txt").read_text("utf-8")


@pytest.mark.parametrize("name", ["core.txt", "dev.txt", "build.txt", "train.txt"])
def test_every_locked_file_has_hashes_and_no_address(name: str) -> None:
    text = (ROOT / "requirements" / name).read_text("utf-8")
    for block in re.split(r"\n(?=[\w.-]+==)", text)[1:]:
        assert "--hash=sha256:" in block, block
    assert "://" not in text
