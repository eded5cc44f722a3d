"""SSHSIG signatures, against the real ssh-keygen and git."""

import base64
import multiprocessing
import os
import subprocess
import sys
from pathlib import Path

import pytest

from daemon.core import sshsig
from daemon.core.errors import ConfigError, Untrusted
from daemon.core.paths import Home
from daemon.core.sshsig import COMMIT_NAMESPACE, MANIFEST_NAMESPACE, Signer

MESSAGE = b'{"id":"r1-00000000"}\n'


@pytest.fixture
def signer(reef_home: Home) -> Signer:
    return sshsig.signer(reef_home)


def ssh_keygen(*words: str | Path, message: bytes = MESSAGE) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(["ssh-keygen", "-q", *map(str, words)], input=message, capture_output=True, check=False)


def verified_by_ssh_keygen(home: Home, folder: Path, signature: str, namespace: str, message: bytes = MESSAGE) -> bool:
    (folder / "sig").write_text(signature)
    allowed = home.release_key.with_name("release.allowed")
    done = ssh_keygen(
        "-Y", "verify", "-f", allowed, "-I", "reef", "-n", namespace, "-s", folder / "sig", message=message
    )
    return done.returncode == 0


def test_the_key_is_made_once_and_private(reef_home: Home) -> None:
    first, again = sshsig.signer(reef_home), sshsig.signer(reef_home)
    assert first.public == again.public
    assert reef_home.release_key.stat().st_mode & 0o777 == 0o600
    assert reef_home.release_key.read_bytes().startswith(b"-----BEGIN OPENSSH PRIVATE KEY-----\n")
    left = sorted(path.name for path in reef_home.release_key.parent.iterdir())
    assert left == ["release", "release.allowed", "release.pub"]


def test_the_public_files_are_what_ssh_keygen_reads_from_the_key(reef_home: Home, signer: Signer) -> None:
    told = ssh_keygen("-y", "-f", reef_home.release_key).stdout.split()
    assert reef_home.release_key.with_name("release.pub").read_bytes().split()[:2] == told[:2]
    assert sshsig.public_of(signer.allowed) == signer.public
    assert reef_home.release_key.with_name("release.allowed").read_text() == f"{signer.allowed}\n"


def _make(root: str) -> bytes:
    return sshsig.signer(Home(Path(root))).public


def test_processes_that_start_together_get_one_key(reef_home: Home) -> None:
    with multiprocessing.get_context("spawn").Pool(3) as pool:
        keys = pool.map(_make, [str(reef_home.root)] * 6)
    assert len(set(keys)) == 1


@pytest.mark.parametrize("content", [b"", b"not a key", b"-----BEGIN OPENSSH PRIVATE KEY-----\nAAAA\n"])
def test_a_file_that_is_no_key_is_said_so_and_kept(reef_home: Home, content: bytes) -> None:
    reef_home.release_key.write_bytes(content)
    with pytest.raises(ConfigError, match="not a key"):
        sshsig.signer(reef_home)
    assert reef_home.release_key.read_bytes() == content


def test_a_key_of_another_kind_is_refused(reef_home: Home) -> None:
    ssh_keygen("-t", "ecdsa", "-N", "", "-f", reef_home.release_key)
    with pytest.raises(ConfigError, match="Ed25519"):
        sshsig.signer(reef_home)


@pytest.mark.parametrize("namespace", [MANIFEST_NAMESPACE, COMMIT_NAMESPACE])
@pytest.mark.parametrize("message", [b"", MESSAGE, os.urandom(100_000)], ids=["empty", "text", "binary"])
def test_signatures_equal_ssh_keygens_to_the_byte(
    reef_home: Home, signer: Signer, namespace: str, message: bytes
) -> None:
    made = ssh_keygen("-Y", "sign", "-f", reef_home.release_key, "-n", namespace, message=message)
    assert made.returncode == 0, made.stderr
    assert signer.sign(message, namespace) == made.stdout.decode()


def test_ssh_keygen_verifies_ours_and_we_verify_its(reef_home: Home, signer: Signer, tmp_path: Path) -> None:
    ours = signer.sign(MESSAGE, MANIFEST_NAMESPACE)
    assert verified_by_ssh_keygen(reef_home, tmp_path, ours, MANIFEST_NAMESPACE)
    assert not verified_by_ssh_keygen(reef_home, tmp_path, ours, MANIFEST_NAMESPACE, MESSAGE + b" ")
    theirs = ssh_keygen("-Y", "sign", "-f", reef_home.release_key, "-n", MANIFEST_NAMESPACE).stdout.decode()
    sshsig.verify(MESSAGE, theirs, MANIFEST_NAMESPACE, signer.public)
    sshsig.verify_manifest(MESSAGE, theirs, signer.allowed)


def test_the_key_is_allowed_for_releases_and_commits_only(reef_home: Home, signer: Signer, tmp_path: Path) -> None:
    assert not verified_by_ssh_keygen(reef_home, tmp_path, signer.sign(MESSAGE, "file"), "file")


def test_git_verifies_a_commit_signed_here(reef_home: Home, signer: Signer, tmp_path: Path) -> None:
    def git(*words: str, data: bytes = b"") -> subprocess.CompletedProcess[bytes]:
        return subprocess.run(["git", "-C", str(tmp_path), *words], input=data, capture_output=True, check=False)

    git("init", "-q")
    git("config", "gpg.ssh.allowedSignersFile", str(reef_home.release_key.with_name("release.allowed")))
    tree = git("write-tree").stdout.strip()
    head = b"tree %s\nauthor r <r@x> 1700000000 +0000\ncommitter r <r@x> 1700000000 +0000\n" % tree
    for signed in (head + b"\nrelease 1\n", head + b"\nrelease 2\n"):  # the second one signs other words
        signature = signer.sign(signed, COMMIT_NAMESPACE).rstrip("\n").replace("\n", "\n ").encode()
        commit = git(
            "hash-object", "-w", "-t", "commit", "--stdin", data=head + b"gpgsig " + signature + b"\n\nrelease 1\n"
        )
        done = git("verify-commit", commit.stdout.decode().strip())
        assert (done.returncode == 0) is signed.endswith(b"release 1\n"), done.stderr


def flipped(signature: str, at: int) -> str:
    lines = signature.strip().split("\n")
    raw = bytearray(base64.b64decode("".join(lines[1:-1])))
    raw[at] ^= 1
    return "\n".join([lines[0], base64.b64encode(raw).decode(), lines[-1], ""])


def test_every_changed_byte_of_a_signature_is_noticed(signer: Signer) -> None:
    good = signer.sign(MESSAGE, MANIFEST_NAMESPACE)
    length = len(base64.b64decode("".join(good.strip().split("\n")[1:-1])))
    sshsig.verify_manifest(MESSAGE, good, signer.allowed)
    for at in range(length):
        with pytest.raises(Untrusted):
            sshsig.verify_manifest(MESSAGE, flipped(good, at), signer.allowed)


@pytest.mark.parametrize(
    "signature", ["", "x", "-----BEGIN SSH SIGNATURE-----\n-----END SSH SIGNATURE-----\n", "A" * 5000, "\x00", "é"]
)
def test_what_is_no_signature_is_untrusted(signer: Signer, signature: str) -> None:
    with pytest.raises(Untrusted):
        sshsig.verify_manifest(MESSAGE, signature, signer.allowed)


def test_another_key_another_namespace_and_other_content_are_untrusted(signer: Signer, tmp_path: Path) -> None:
    other = Home(tmp_path)
    other.release_key.parent.mkdir(parents=True)
    stranger = sshsig.signer(other)
    with pytest.raises(Untrusted, match="another key"):
        sshsig.verify_manifest(MESSAGE, stranger.sign(MESSAGE, MANIFEST_NAMESPACE), signer.allowed)
    with pytest.raises(Untrusted, match="not one for reef-release"):
        sshsig.verify_manifest(MESSAGE, signer.sign(MESSAGE, COMMIT_NAMESPACE), signer.allowed)
    with pytest.raises(Untrusted, match="does not belong"):
        sshsig.verify_manifest(MESSAGE + b" ", signer.sign(MESSAGE, MANIFEST_NAMESPACE), signer.allowed)


@pytest.mark.parametrize("allowed", ["", "reef ssh-ed25519", "reef ssh-ed25519 AAAA", "reef ssh-ed25519 !", "a b c"])
def test_a_line_without_a_key_trusts_nobody(signer: Signer, allowed: str) -> None:
    with pytest.raises(Untrusted, match="allowed_signers"):
        sshsig.verify_manifest(MESSAGE, signer.sign(MESSAGE, MANIFEST_NAMESPACE), allowed)


def test_without_cryptography_ssh_keygen_decides(signer: Signer) -> None:
    """As in a client's own Python, where only the standard library is."""
    code = (
        "import sys; sys.modules['cryptography'] = None\n"
        "from daemon.core.sshsig import verify_manifest\n"
        "from daemon.core.errors import Untrusted\n"
        "allowed, signature = sys.argv[1:3]\n"
        "verify_manifest(sys.argv[3].encode(), signature, allowed)\n"
        "try: verify_manifest(b'other', signature, allowed)\n"
        "except Untrusted as error: print(error.message)\n"
    )
    words = [signer.allowed, signer.sign(MESSAGE, MANIFEST_NAMESPACE), MESSAGE.decode()]
    done = subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True, check=False)
    assert done.stdout == "the signature does not belong to this content\n", done.stderr
