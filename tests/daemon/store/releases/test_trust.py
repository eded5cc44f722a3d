"""What somebody else put into the repository: changed, unsigned, swapped, older, cut off. Serving goes on."""

from collections.abc import Callable
from pathlib import Path

import pytest

from daemon.core import sshsig
from daemon.core.errors import BadWeights, NotFound, Untrusted
from daemon.core.paths import Home
from daemon.core.releases import Release, ReleaseState
from daemon.core.sshsig import COMMIT_NAMESPACE, Signer
from daemon.store.releases import Releases
from tests.daemon.store.releases.conftest import Git
from tests.fakes.releases import ACCEPTED, candidate, released, write_weights

COVERS = ("daemon/store/releases/commits.py", "daemon/store/releases/links.py", "daemon/store/releases/seen.py")

REF = "refs/reef/default"


class Forger:
    """Somebody who can write the repository, with plain git; with ``signer`` even in this home's name."""

    def __init__(self, git: Git) -> None:
        self._git = git

    def tree(self, commit: str, changes: dict[str, bytes | None], mode: str = "100644") -> str:
        lines = self._git("ls-tree", "-r", commit).splitlines()
        entries = {line.partition("\t")[2]: line.partition("\t")[0].split()[::2] for line in lines}
        for path, content in changes.items():
            entries.pop(path, None)
            if content is not None:
                entries[path] = [mode, self._git("hash-object", "-w", "--stdin", data=content)]
        return self._mktree({path: (first, sha) for path, (first, sha) in entries.items()})

    def _mktree(self, entries: dict[str, tuple[str, str]]) -> str:
        here: list[str] = []
        below: dict[str, dict[str, tuple[str, str]]] = {}
        for path, (mode, sha) in entries.items():
            first, slash, rest = path.partition("/")
            if slash:
                below.setdefault(first, {})[rest] = (mode, sha)
            else:
                here.append(f"{mode} blob {sha}\t{first}\n")
        here += [f"040000 tree {self._mktree(inner)}\t{name}\n" for name, inner in below.items()]
        return self._git("mktree", data="".join(here).encode())

    def raw(self, kind: str, content: bytes) -> str:
        """Any bytes as an object."""
        return self._git("hash-object", "-w", "-t", kind, "--literally", "--stdin", data=content)

    def commit(self, tree: str, *parents: str, signer: Signer | None = None, signature: str | None = None) -> str:
        lines = [f"tree {tree}", *(f"parent {parent}" for parent in parents)]
        lines += [f"{role} x <x@x> 1700000000 +0000" for role in ("author", "committer")]
        head, body = "\n".join(lines) + "\n", "\nforged\n"
        if signer is not None:
            signature = signer.sign((head + body).encode(), COMMIT_NAMESPACE)
        if signature is not None:
            head += "gpgsig " + signature.rstrip("\n").replace("\n", "\n ") + "\n"
        return self._git("hash-object", "-w", "-t", "commit", "--stdin", data=(head + body).encode())

    def point(self, commit: str, ref: str = REF) -> None:
        self._git("update-ref", ref, commit)


@pytest.fixture
def forger(git: Git) -> Forger:
    return Forger(git)


@pytest.fixture
def chain(releases: Releases) -> tuple[Release, Release]:
    first = released(releases, "job_1")
    return first, released(releases, "job_2", first.id)


@pytest.fixture
def mine(reef_home: Home) -> Signer:
    return sshsig.signer(reef_home)


def good(releases: Releases, release: Release, *, because: str) -> None:
    """``release`` is what serves, and what is wrong is told."""
    standing = releases.standing("default")
    assert standing.release is not None
    assert standing.release.id == release.id
    assert standing.trouble is not None
    assert because in standing.trouble
    assert releases.files(standing.release)


Forge = Callable[[Forger, str, Signer], str]

#: What is wrong with a commit on top of the second release; given to the forger with that release's commit.
FORGERIES: dict[str, tuple[Forge, str]] = {
    "an unsigned commit": (lambda f, head, _: f.commit(f.tree(head, {}), head), "is not signed"),
    "a changed file": (
        lambda f, head, s: f.commit(f.tree(head, {"harness/rules.md": b"obey me\n"}), head, signer=s),
        "not the file that was signed",
    ),
    "a file more": (
        lambda f, head, s: f.commit(f.tree(head, {"harness/skills/x/SKILL.md": b"x"}), head, signer=s),
        "in the tree but not signed",
    ),
    "a file less": (
        lambda f, head, s: f.commit(f.tree(head, {"harness/rules.md": None}), head, signer=s),
        "signed but not in the tree",
    ),
    "a changed manifest": (
        lambda f, head, s: f.commit(f.tree(head, {"release.json": b'{"format":1}'}), head, signer=s),
        "does not belong to this content",
    ),
    "no manifest": (
        lambda f, head, s: f.commit(f.tree(head, {"release.json": None}), head, signer=s),
        "no signed release.json",
    ),
    "no signature": (
        lambda f, head, s: f.commit(f.tree(head, {"release.json.sig": b""}), head, signer=s),
        "no readable signature",
    ),
    "an attribute that runs a filter": (
        lambda f, head, s: f.commit(f.tree(head, {".gitattributes": b"* filter=x\n"}), head, signer=s),
        ".gitattributes is not Reef's",
    ),
    "an executable": (
        lambda f, head, s: f.commit(f.tree(head, {"harness/rules.md": b"x"}, mode="100755"), head, signer=s),
        "not a plain file",
    ),
    "a link": (
        lambda f, head, s: f.commit(f.tree(head, {"harness/rules.md": b"/etc/passwd"}, "120000"), head, signer=s),
        "not a plain file",
    ),
    "a submodule": (
        lambda f, head, s: f.commit(f.raw("tree", b"160000 harness\0" + b"a" * 20), head, signer=s),
        "not a plain file",
    ),
    "a file that is there twice": (
        lambda f, head, s: f.commit(f.raw("tree", 2 * (b"100644 release.json\0" + b"a" * 20)), head, signer=s),
        "twice",
    ),
    "the same manifest again": (
        lambda f, head, s: f.commit(f.tree(head, {}), head, signer=s),
        "says it follows",
    ),
    "a tree without end": (
        lambda f, head, s: f.commit(f.tree(head, {f"harness/{'x/' * 50}rules.md": b"x"}), head, signer=s),
        "not a plain file",
    ),
    "a tree that is none": (
        lambda f, head, s: f.commit(f.raw("tree", b"100644 rules.md"), head, signer=s),
        "is damaged",
    ),
    "a merge": (lambda f, head, s: f.commit(f.tree(head, {}), head, head, signer=s), "2 parents"),
    "a signature of something else": (
        lambda f, head, s: f.commit(f.tree(head, {}), head, signature=s.sign(b"x", COMMIT_NAMESPACE)),
        "does not belong to this content",
    ),
}


@pytest.mark.parametrize("name", FORGERIES)
def test_a_forged_tip_is_refused_and_the_release_before_it_serves(
    releases: Releases, chain: tuple[Release, Release], forger: Forger, mine: Signer, name: str
) -> None:
    forge, because = FORGERIES[name]
    assert chain[1].commit is not None
    forger.point(forge(forger, chain[1].commit, mine))
    good(releases, chain[1], because=because)


def test_the_next_release_goes_on_from_what_is_trusted_and_keeps_the_rest_aside(
    releases: Releases, chain: tuple[Release, Release], forger: Forger, git: Git
) -> None:
    assert chain[1].commit is not None
    forged = forger.commit(forger.tree(chain[1].commit, {}), chain[1].commit)
    forger.point(forged)
    third = released(releases, "job_3", chain[1].id)
    assert (third.number, third.parent) == (3, chain[1].id)
    assert releases.standing("default") == (third, None)
    assert git("rev-parse", f"{REF}^") == chain[1].commit
    assert git("rev-parse", f"refs/reef-cut/default/{forged[:12]}") == forged


def test_an_older_manifest_in_a_new_commit_is_a_downgrade(
    releases: Releases, chain: tuple[Release, Release], forger: Forger, mine: Signer
) -> None:
    """Every byte of it was signed by the right key once."""
    first, second = chain
    assert first.commit is not None
    assert second.commit is not None
    forger.point(forger.commit(forger.tree(first.commit, {}), second.commit, signer=mine))
    good(releases, second, because=f"says it follows base, it stands after {second.id}")


def test_a_ref_that_was_set_back_is_noticed_and_the_newer_release_serves(
    releases: Releases, chain: tuple[Release, Release], forger: Forger
) -> None:
    first, second = chain
    assert first.commit is not None
    forger.point(first.commit)
    good(releases, second, because="the chain ends before release 2")
    third = released(releases, "job_3", second.id)
    assert (third.number, releases.standing("default").trouble) == (3, None)


def test_a_ref_that_is_gone_is_noticed(releases: Releases, chain: tuple[Release, Release], git: Git) -> None:
    git("update-ref", "-d", REF)
    good(releases, chain[1], because="the chain ends before release 2")
    assert releases.scenarios() == ["default"]


def test_a_candidate_that_was_never_released_cannot_be_made_the_head(
    releases: Releases, chain: tuple[Release, Release], forger: Forger
) -> None:
    """It is signed, but not as a release."""
    waits = releases.propose(candidate("job_3", chain[1].id), ACCEPTED)
    assert waits.commit is not None
    forger.point(waits.commit)
    good(releases, chain[1], because="a candidate that was not released")


def test_another_scenarios_chain_is_not_this_ones(
    releases: Releases, chain: tuple[Release, Release], forger: Forger
) -> None:
    third = released(releases, "job_3", chain[1].id)
    for number in range(4):
        parent = releases.standing("other").id
        other = released(releases, f"job_other_{number}", parent, scenario="other")
    assert other.commit is not None
    forger.point(other.commit)
    good(releases, third, because="is a release of 'other'")


def test_another_key_made_nothing_here(
    releases: Releases, chain: tuple[Release, Release], reef_home: Home, tmp_path: Path
) -> None:
    for name in ("release", "release.pub", "release.allowed"):
        (reef_home.release_key.parent / name).rename(tmp_path / name)
    stranger = Releases.open(reef_home)
    standing = stranger.standing("default")
    assert standing.release is None
    assert standing.trouble is not None
    assert "of another key" in standing.trouble
    with pytest.raises(NotFound):
        stranger.get("default", chain[1].id)


def test_a_damaged_object_is_not_served(releases: Releases, chain: tuple[Release, Release], git: Git) -> None:
    blob = git("rev-parse", f"{REF}:harness/rules.md")
    path = releases.path / "objects" / blob[:2] / blob[2:]
    path.chmod(0o644)
    path.write_bytes(path.read_bytes()[:-4] + b"oops")
    good(releases, chain[0], because="or it is damaged")
    with pytest.raises(Untrusted):
        releases.files(chain[1])


def test_a_stored_object_with_other_content_is_not_served(
    releases: Releases, chain: tuple[Release, Release], git: Git
) -> None:
    """Whole to zlib, of the right length: only the signed hash tells."""
    ours, theirs = (git("rev-parse", f"{rev}:harness/rules.md") for rev in (REF, f"{REF}^"))
    source, path = (releases.path / "objects" / sha[:2] / sha[2:] for sha in (theirs, ours))
    path.chmod(0o644)
    path.write_bytes(source.read_bytes())
    good(releases, chain[0], because="harness/rules.md")


@pytest.mark.parametrize("damage", ["truncated", "changed", "gone", "pointer"])
def test_weights_that_are_not_what_was_signed_are_refused(releases: Releases, tmp_path: Path, damage: str) -> None:
    release = released(releases, "job_1", weights=write_weights(tmp_path))
    lora = releases.lora(release)
    assert lora is not None
    content = lora.path.read_bytes()
    lora.path.chmod(0o644)
    pointer = f"version https://git-lfs.github.com/spec/v1\noid sha256:{lora.sha256}\nsize {len(content)}\n".encode()
    other = {"truncated": content[:-1], "changed": content[:-1] + b"\xff", "pointer": pointer}
    if damage == "gone":
        lora.path.unlink()
    else:
        lora.path.write_bytes(other[damage])
    with pytest.raises(BadWeights, match="not in the store" if damage == "gone" else "damaged"):
        releases.lora(release)


def test_weights_swapped_in_the_tree_are_refused(
    releases: Releases, forger: Forger, mine: Signer, tmp_path: Path, git: Git
) -> None:
    """An LFS pointer to another release's object, which is whole."""
    first = released(releases, "job_1", weights=write_weights(tmp_path / "a", 1))
    second = released(releases, "job_2", first.id, weights=write_weights(tmp_path / "b", 2))
    pointer = git("cat-file", "blob", f"{first.commit}:weights/adapter.gguf") + "\n"
    assert second.commit is not None
    tree = forger.tree(second.commit, {"weights/adapter.gguf": pointer.encode()})
    forger.point(forger.commit(tree, second.commit, signer=mine))
    good(releases, second, because="weights/adapter.gguf is not the file that was signed")


def test_a_forged_candidate_is_not_listed(
    releases: Releases, chain: tuple[Release, Release], forger: Forger, mine: Signer
) -> None:
    assert chain[1].commit is not None
    forger.point(forger.commit(forger.tree(chain[1].commit, {}), chain[1].commit), "refs/reef-candidates/job_x")
    forger.point(chain[1].commit, "refs/reef-candidates/job_y")
    assert releases.list("default", states=frozenset({ReleaseState.PENDING, ReleaseState.REJECTED})) == ([], None)


def test_a_lost_record_of_what_was_seen_stops_nothing(
    releases: Releases, chain: tuple[Release, Release], reef_home: Home
) -> None:
    for content in (b"", b"[]", b'{"default": 3}', b'{"default": ["x", "y"]}', b'{"default": [9, "a\\nb"]}'):
        reef_home.releases_seen.write_bytes(content)
        assert releases.standing("default") == (chain[1], None)
