"""Objects that git makes of what we write, and what we make of what git has."""

import hashlib
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import pytest

from daemon.core.errors import Conflict, StoreError, Untrusted
from daemon.core.paths import Home
from daemon.store.releases.git import NONE, Move, Repository
from daemon.store.releases.objects import Reader, Writer
from tests.daemon.store.releases.conftest import Git


@pytest.fixture
def repository(reef_home: Home) -> Repository:
    return Repository.open(reef_home.releases, reef_home.release_key)


def commit(writer: Writer, tree: str, text: str = "x") -> str:
    who = "x <x@x> 1700000000 +0000"
    return writer.commit(f"tree {tree}\nauthor {who}\ncommitter {who}\n\n{text}\n".encode())


def test_git_reads_what_is_written(repository: Repository, git: Git) -> None:
    writer = Writer(repository)
    content = b"text\n" * 1000
    blob = writer.blob(content)
    tree = writer.tree({"a.txt": blob, "a/b.txt": blob, "a-b": blob, "a/c/ü.md": blob})
    made = commit(writer, tree)
    writer.settle()
    assert git("hash-object", "--stdin", data=content) == blob
    assert git("ls-tree", "-r", "--name-only", "-z", made).split("\0")[:-1] == ["a-b", "a.txt", "a/b.txt", "a/c/ü.md"]
    assert git("fsck", "--strict", "--no-dangling") == ""
    with Reader(repository) as reader:
        assert reader.get(blob, "blob") == content
        assert reader.tree(tree) == dict.fromkeys(["a-b", "a.txt", "a/b.txt", "a/c/ü.md"], blob)


def test_threads_may_write_the_same_object_at_once(repository: Repository) -> None:
    ready = threading.Barrier(6)

    def write(number: int) -> set[str]:
        ready.wait(30)
        return {Writer(repository).blob(b"%d" % shared) for shared in range(40)}

    with ThreadPoolExecutor(6) as pool:
        names = set().union(*pool.map(write, range(6)))
    assert len(names) == 40
    assert not list(repository.path.rglob("tmp_obj_*"))


def test_empty_trees_and_blobs(repository: Repository, git: Git) -> None:
    writer = Writer(repository)
    assert writer.tree({}) == git("hash-object", "-t", "tree", "--stdin", data=b"")
    blob = writer.blob(b"")
    with Reader(repository) as reader:
        assert reader.get(blob, "blob") == b""


def test_what_is_not_there_damaged_or_of_another_kind_is_untrusted_and_the_next_is_read(repository: Repository) -> None:
    writer = Writer(repository)
    good, bad = writer.blob(b"good"), writer.blob(hashlib.sha256(b"x").digest() * 9)
    path = repository.path / "objects" / bad[:2] / bad[2:]
    path.chmod(0o644)
    path.write_bytes(path.read_bytes()[:20])
    with Reader(repository) as reader:
        for name, kind in (("f" * 40, "blob"), (bad, "blob"), (good, "commit"), ("no such name", "blob"), ("", "blob")):
            with pytest.raises(Untrusted, match="lacks the"):
                reader.get(name, kind)
            assert reader.get(good, "blob") == b"good"


def test_refs_move_by_compare_and_swap_all_or_none(repository: Repository) -> None:
    writer = Writer(repository)
    first, second = (commit(writer, writer.tree({}), text) for text in "ab")
    with repository.locked() as lock:
        repository.move([Move("refs/reef/s", first, NONE)], lock)
        for moves in (
            [Move("refs/reef/s", second, NONE)],
            [Move("refs/reef/s", second, second)],
            [Move("refs/reef/t", second, NONE), Move("refs/reef/s", second, second)],
        ):
            with pytest.raises(Conflict, match="someone else moved the head"):
                repository.move(moves, lock)
        assert repository.refs("refs/reef/") == {"refs/reef/s": first}
        with pytest.raises(StoreError, match="could not be moved"):
            repository.move([Move("refs/reef/s", "f" * 40, first)], lock)
        repository.move([Move("refs/reef/s", NONE, first), Move("refs/reef/t", second, NONE)], lock)
    assert repository.refs("refs/reef/") == {"refs/reef/t": second}
    assert (repository.ref("refs/reef/s"), repository.ref("refs/reef/t")) == (None, second)


@pytest.mark.parametrize("packed", [False, True])
def test_a_ref_is_found_loose_or_packed(repository: Repository, git: Git, packed: bool) -> None:
    writer = Writer(repository)
    first = commit(writer, writer.tree({}))
    with repository.locked() as lock:
        repository.move([Move("refs/reef/s", first, NONE), Move("refs/reef/s.t", first, NONE)], lock)
    if packed:
        git("pack-refs", "--all", "--prune")
    assert (repository.ref("refs/reef/s"), repository.ref("refs/reef/x")) == (first, None)
    assert repository.ref("refs/reef/sxt") is None


def test_folders_that_a_gc_takes_away_meanwhile_stop_nobody(repository: Repository) -> None:
    """``git gc`` removes each folder of objects that is empty, at any moment."""
    stop = threading.Event()

    def sweep() -> None:
        while not stop.is_set():
            for folder in (repository.path / "objects").glob("??"):
                with suppress(OSError):
                    folder.rmdir()

    sweeping = threading.Thread(target=sweep)
    sweeping.start()
    try:
        for number in range(300):
            writer = Writer(repository)
            name = writer.blob(b"%d" % number)
            path = repository.path / "objects" / name[:2] / name[2:]
            assert path.exists()
            path.unlink()
            writer.settle()
    finally:
        stop.set()
        sweeping.join()


def test_many_objects_are_worth_packing(repository: Repository) -> None:
    writer = Writer(repository)
    first = commit(writer, writer.tree({}))
    with repository.locked() as lock:
        repository.move([Move("refs/reef/s", first, NONE)], lock)
    assert not repository.is_full()
    number = 0
    while len(list((repository.path / "objects/17").glob("*"))) < 16:
        content = b"%d" % number
        if hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest().startswith("17"):
            writer.blob(content)
        number += 1
    assert repository.is_full()


def test_a_changed_configuration_is_put_right(reef_home: Home, repository: Repository, git: Git) -> None:
    git("config", "core.hooksPath", "/tmp")
    git("config", "alias.x", "!touch /tmp/x")
    Repository.open(reef_home.releases, reef_home.release_key)
    assert git("config", "core.hooksPath") == "/dev/null"
    assert "alias.x" not in git("config", "--list")
    assert git("config", "core.fsync") == "all"
