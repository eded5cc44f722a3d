"""Signatures that OpenSSH and Git can check: SSHSIG with Ed25519 (openssh/PROTOCOL.sshsig).

Owns the key that signs this home's releases. Byte-equal to what ``ssh-keygen -Y sign`` makes, so nobody has to trust
this code to check a release. Whatever cannot be read as a signature by that one key is refused: there is no way here
to say "unsigned, but fine". Imports `cryptography` only when used; ``ssh-keygen`` alone can check a manifest too.
"""

import base64
import binascii
import hashlib
import os
import struct
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from daemon.core.errors import ConfigError, Untrusted
from daemon.core.paths import Home, write_private

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

#: What a signature is for, so that one kind can never pass as the other.
MANIFEST_NAMESPACE: Final = "reef-release"
COMMIT_NAMESPACE: Final = "git"
PRINCIPAL: Final = "reef"

_KIND: Final = b"ssh-ed25519"
_HASH: Final = b"sha512"
_MAGIC: Final = b"SSHSIG"
_BEGIN: Final = "-----BEGIN SSH SIGNATURE-----"
_END: Final = "-----END SSH SIGNATURE-----"
_LINE: Final = 70  # as ssh-keygen breaks them
_LONGEST: Final = 4096  # an Ed25519 signature has some 300 bytes


@dataclass(frozen=True, slots=True)
class Signer:
    """This home's signing key. ``public`` is its 32 raw bytes."""

    key: "Ed25519PrivateKey"
    public: bytes

    def sign(self, message: bytes, namespace: str) -> str:
        """An armored signature, as ``ssh-keygen -Y sign -n namespace`` prints it."""
        signature = self.key.sign(_signed(message, namespace.encode()))
        blob = (
            _MAGIC
            + struct.pack(">I", 1)
            + _string(_public_blob(self.public))
            + _string(namespace.encode())
            + _string(b"")
            + _string(_HASH)
            + _string(_string(_KIND) + _string(signature))
        )
        text = base64.b64encode(blob).decode()
        lines = [text[at : at + _LINE] for at in range(0, len(text), _LINE)]
        return "\n".join([_BEGIN, *lines, _END, ""])

    @property
    def allowed(self) -> str:
        """The line of an ``allowed_signers`` file that trusts this key."""
        return allowed_line(self.public)


def signer(home: Home) -> Signer:
    """The key of this home, made on first use: 0600 in OpenSSH's format, ``.pub`` and ``.allowed`` beside it.

    Two processes that start together end up with the same key. Raises ConfigError for a file that holds none.
    """
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import load_ssh_private_key

    path = home.release_key
    if not path.exists():
        _make(path)
    try:
        key = load_ssh_private_key(path.read_bytes(), None)
    except (OSError, ValueError, TypeError, UnsupportedAlgorithm) as error:
        raise ConfigError(
            f"{path} is not a key that can sign releases: {error}",
            hint=f"restore it, or rm {path}: a new one is made, and releases signed until now are refused",
        ) from error
    if not isinstance(key, Ed25519PrivateKey):
        raise ConfigError(f"{path} is not an Ed25519 key", hint=f"rm {path}: a new one is made")
    made = Signer(key, key.public_key().public_bytes_raw())
    for suffix, line in ((".pub", public_line(made.public)), (".allowed", made.allowed)):
        beside = path.with_name(path.name + suffix)
        if not beside.exists() or beside.read_text("utf-8", "replace") != f"{line}\n":
            write_private(beside, f"{line}\n".encode())
    return made


def _make(path: Path) -> None:
    from cryptography.hazmat.primitives import serialization as form
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    raw = Ed25519PrivateKey.generate().private_bytes(form.Encoding.PEM, form.PrivateFormat.OpenSSH, form.NoEncryption())
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(raw)
            file.flush()
            os.fsync(file.fileno())
        os.link(name, path)  # unlike a rename, it never replaces another process's key
    except FileExistsError:
        pass
    finally:
        Path(name).unlink()


def public_line(public: bytes) -> str:
    """As in a ``.pub`` file."""
    return f"{_KIND.decode()} {base64.b64encode(_public_blob(public)).decode()} {PRINCIPAL}"


def allowed_line(public: bytes) -> str:
    """As in an ``allowed_signers`` file (ssh-keygen(1)), for releases and their commits and nothing else."""
    key = base64.b64encode(_public_blob(public)).decode()
    return f'{PRINCIPAL} namespaces="{MANIFEST_NAMESPACE},{COMMIT_NAMESPACE}" {_KIND.decode()} {key}'


def public_of(allowed: str) -> bytes:
    """The raw public key in an `allowed_line`. Raises Untrusted for anything else."""
    words = allowed.split()
    try:
        at = words.index(_KIND.decode())
        fields = _strings(base64.b64decode(words[at + 1], validate=True))
    except (ValueError, IndexError, binascii.Error, struct.error):
        fields = []
    if len(fields) != 2 or fields[0] != _KIND or len(fields[1]) != 32:
        raise Untrusted(f"{allowed[:80]!r} is not an allowed_signers line with an Ed25519 key")
    return fields[1]


def verify(message: bytes, signature: str, namespace: str, public: bytes) -> None:
    """Return when ``signature`` is that key's over ``message`` for ``namespace``. Raises Untrusted otherwise."""
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    raw = _checked(signature, namespace, public)
    try:
        Ed25519PublicKey.from_public_bytes(public).verify(raw, _signed(message, namespace.encode()))
    except InvalidSignature:
        raise Untrusted("the signature does not belong to this content") from None


def verify_manifest(manifest: bytes, signature: str, allowed: str) -> None:
    """What a client does before it activates a release: ``allowed`` is the `allowed_line` it trusts, fetched once and
    kept. Needs `cryptography` or ``ssh-keygen``. Raises Untrusted.
    """
    try:
        import cryptography  # noqa: F401
    except ImportError:
        _verify_with_ssh_keygen(manifest, signature, allowed)
        return
    verify(manifest, signature, MANIFEST_NAMESPACE, public_of(allowed))


def _verify_with_ssh_keygen(manifest: bytes, signature: str, allowed: str) -> None:
    _checked(signature, MANIFEST_NAMESPACE, public_of(allowed))
    with tempfile.TemporaryDirectory(prefix="reef-verify-") as folder:
        keys, sig = Path(folder) / "allowed", Path(folder) / "sig"
        keys.write_text(f"{allowed_line(public_of(allowed))}\n", encoding="ascii")
        sig.write_text(signature, encoding="ascii")
        words = ["ssh-keygen", "-Y", "verify", "-n", MANIFEST_NAMESPACE, "-f", str(keys), "-I", PRINCIPAL]
        words += ["-s", str(sig)]
        try:
            done = subprocess.run(words, input=manifest, capture_output=True, timeout=30, check=False)
        except (OSError, subprocess.TimeoutExpired) as error:
            raise Untrusted(
                f"nothing here can check a release's signature: {error}",
                hint="install OpenSSH's ssh-keygen, or pip install cryptography",
            ) from error
    if done.returncode != 0:  # the status alone: ssh-keygen prints "Good" for keys that nobody trusts
        raise Untrusted("the signature does not belong to this content")


def _checked(signature: str, namespace: str, public: bytes) -> bytes:
    """The raw 64 bytes of an armored signature whose every other field is as it must be. Raises Untrusted."""
    try:
        fields = _fields(signature)
    except (ValueError, struct.error) as error:
        raise Untrusted(f"there is no readable signature: {error}") from None
    key, name, reserved, digest, *parts = fields
    if key != _public_blob(public):
        raise Untrusted("the signature is of another key than this Reef's")
    if name != namespace.encode() or reserved or digest != _HASH:
        raise Untrusted(f"the signature is not one for {namespace}")
    if len(parts) != 2 or parts[0] != _KIND or len(parts[1]) != 64:
        raise Untrusted("the signature is not an Ed25519 one")
    return parts[1]


def _fields(signature: str) -> list[bytes]:
    """Public key, namespace, reserved, hash, then the kind of signature and its bytes."""
    if len(signature) > _LONGEST:
        raise ValueError(f"{len(signature)} characters")
    lines = signature.strip().split("\n")
    if len(lines) < 3 or lines[0] != _BEGIN or lines[-1] != _END:
        raise ValueError("no SSH SIGNATURE block")
    blob = base64.b64decode("".join(lines[1:-1]), validate=True)
    if blob[:10] != _MAGIC + struct.pack(">I", 1):
        raise ValueError("not SSHSIG, version 1")
    fields = _strings(blob[10:])
    if len(fields) != 5:
        raise ValueError(f"{len(fields)} fields")
    return [*fields[:4], *_strings(fields[4])]


def _signed(message: bytes, namespace: bytes) -> bytes:
    """What the key signs in the message's place."""
    return _MAGIC + _string(namespace) + _string(b"") + _string(_HASH) + _string(hashlib.sha512(message).digest())


def _public_blob(public: bytes) -> bytes:
    return _string(_KIND) + _string(public)


def _string(raw: bytes) -> bytes:
    return struct.pack(">I", len(raw)) + raw


def _strings(blob: bytes) -> list[bytes]:
    found: list[bytes] = []
    at = 0
    while at < len(blob):
        (length,) = struct.unpack_from(">I", blob, at)
        if at + 4 + length > len(blob):
            raise ValueError("cut off")
        found.append(blob[at + 4 : at + 4 + length])
        at += 4 + length
    return found
