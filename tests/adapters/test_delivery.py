"""What may reach an agent: signed by this home's key, whole, unchanged. Real releases, then damaged in every way."""

import json
from collections.abc import Callable

import pytest

from adapters import delivery
from adapters.delivery import BASE, Delivery
from daemon.core import sshsig
from daemon.core.errors import Untrusted
from daemon.core.paths import Home
from daemon.core.releases import BASE_RELEASE
from reef_cli.wrapped import key_of
from tests.fakes import chain


@pytest.fixture
def told(reef_home: Home) -> Delivery:
    chain.publish(reef_home)
    return chain.delivered(reef_home)


def test_a_release_is_what_was_published(reef_home: Home, told: Delivery) -> None:
    assert delivery.checked(told, key_of(reef_home)) == told
    assert told.files == chain.HARNESS
    assert (told.number, told.kind) == (1, "learned")
    assert (told.reason, told.verdict) == ("rule added: Use uv, not pip.", "accepted 9\u20130")


def test_it_survives_being_kept(reef_home: Home, told: Delivery) -> None:
    assert delivery.checked(delivery.parse(json.loads(told.dump())), key_of(reef_home)) == told


def test_the_base_needs_no_signature(reef_home: Home) -> None:
    assert BASE == BASE_RELEASE
    told = chain.delivered(reef_home)
    assert told.release_id == BASE
    assert delivery.checked(told, key_of(reef_home)).files == {}


Damage = Callable[[Delivery], Delivery]
DAMAGES: dict[str, tuple[Damage, str]] = {
    "changed": (lambda t: t._replace(files={**t.files, "rules.md": "rm -rf"}), "'rules.md' was changed"),
    "added": (lambda t: t._replace(files={**t.files, "skills/x/SKILL.md": "x"}), "not in its manifest"),
    "removed": (lambda t: t._replace(files={}), "is missing"),
    "unsigned": (lambda t: t._replace(signature=None), "it is not signed"),
    "without manifest": (lambda t: t._replace(manifest=None), "it is not signed"),
    "manifest": (lambda t: t._replace(manifest=(t.manifest or "").replace("uv", "rm")), "signature"),
    "signature": (lambda t: t._replace(signature=(t.signature or "")[:-60]), "signature"),
    "number": (lambda t: t._replace(number=9), "its manifest says number '1'"),
    "name": (lambda t: t._replace(release_id="r9-00000000"), "its manifest says id"),
    "scenario": (lambda t: t._replace(scenario="other"), "its manifest says scenario"),
    "base with files": (lambda t: t._replace(release_id="base"), "nobody signed"),
}


@pytest.mark.parametrize("name", DAMAGES)
def test_damage_is_refused(reef_home: Home, told: Delivery, name: str) -> None:
    damage, why = DAMAGES[name]
    with pytest.raises(Untrusted, match=why):
        delivery.checked(damage(told), key_of(reef_home))


@pytest.mark.parametrize("name", DAMAGES)
def test_damage_is_refused_though_the_release_was_checked_before(reef_home: Home, told: Delivery, name: str) -> None:
    damage, why = DAMAGES[name]
    known = delivery.seal(told, key_of(reef_home))
    with pytest.raises(Untrusted, match=why):
        delivery.checked(damage(told), key_of(reef_home), known)


def test_a_signature_is_computed_again_only_when_something_of_it_is_new(reef_home: Home, told: Delivery) -> None:
    forged = told._replace(signature="nobody's")
    known = delivery.seal(forged, key_of(reef_home))  # as if it had passed: it shows that this is all that is looked at
    assert delivery.checked(forged, key_of(reef_home), known) == forged
    key_of(reef_home).write_text(f"{key_of(reef_home).read_text()}\n")
    with pytest.raises(Untrusted, match="signature"):
        delivery.checked(forged, key_of(reef_home), known)
    with pytest.raises(Untrusted, match="signature"):
        delivery.checked(forged, key_of(reef_home))


def test_another_key_is_refused_though_it_came_along(reef_home: Home, module_home: Home) -> None:
    chain.publish(module_home)
    theirs = chain.delivered(module_home)
    sshsig.signer(reef_home)
    with pytest.raises(Untrusted, match="another key"):
        delivery.checked(theirs, key_of(reef_home))


def test_without_a_key_nothing_is_believed(reef_home: Home, told: Delivery) -> None:
    key_of(reef_home).unlink()
    with pytest.raises(Untrusted, match="no key to check it with"):
        delivery.checked(told, key_of(reef_home))


@pytest.mark.parametrize(
    "answer",
    [
        {},
        {"release_id": "r1-00000000"},
        {"release_id": "../../x", "number": 1, "scenario": "s", "files": {}},
        {"release_id": "r1-0000000g", "number": 1, "scenario": "s", "files": {}},
        {"release_id": "base", "number": "x", "scenario": "s", "files": {}},
        {"release_id": "base", "number": 0, "scenario": "s", "files": []},
    ],
)
def test_what_is_no_release_is_refused(answer: dict[str, object]) -> None:
    with pytest.raises(Untrusted):
        delivery.parse(answer)


@pytest.mark.parametrize(
    "path",
    ["../x", "/etc/x", "skills/../../x", "skills/a//SKILL.md", ".hidden", "extensions/pi/../../x", "hooks/a.sh",
     "extensions/pi/.git/config", "extensions/pi/.GITMODULES", "extensions/pi/a\\b", "extensions/pi/NUL.ts",
     "extensions/pi/a.", "skills/con/SKILL.md", "memory/caf\u00e9.md", "memory/cafe\u0301.md", "rules\u200b.md",
     f"extensions/pi/{'a' * 65}", f"extensions/pi/{'a/' * 99}a", f"memory/{'a' * 5000}.md", ""],
)  # fmt: skip
def test_a_path_that_is_none_is_refused_however_well_it_is_signed(reef_home: Home, told: Delivery, path: str) -> None:
    with pytest.raises(Untrusted, match="is not a path for a release"):
        delivery.checked(chain.signed(reef_home, told, {path: "echo"}), key_of(reef_home))


@pytest.mark.parametrize("path", ["../x", ".gitmodules", ".git/hooks/post-checkout", "bin/x", "weights/../../x", "x"])
def test_nor_may_a_path_lead_out_beside_the_harness(reef_home: Home, told: Delivery, path: str) -> None:
    forged = chain.signed(reef_home, told, {}, listed={path: "echo"})
    with pytest.raises(Untrusted, match="is not a path for a release"):
        delivery.checked(forged, key_of(reef_home))


def test_what_the_manifest_lists_is_there(reef_home: Home, told: Delivery) -> None:
    listed = {"harness/rules.md": "a", "harness/memory/b.md": "b", "weights/adapter.gguf": "c", "routing.json": "d"}
    with pytest.raises(Untrusted, match=r"'memory/b\.md' is missing"):
        delivery.checked(chain.signed(reef_home, told, {"rules.md": "a"}, listed=listed), key_of(reef_home))
    whole = chain.signed(reef_home, told, {"rules.md": "a", "memory/b.md": "b"}, listed=listed)
    assert delivery.checked(whole, key_of(reef_home)) == whole


@pytest.mark.parametrize("second", ["extensions/pi/A.ts", "extensions/pi/a.ts/b", "extensions/pi/a.TS/b"])
def test_two_that_some_file_system_takes_for_one_are_refused(reef_home: Home, told: Delivery, second: str) -> None:
    forged = chain.signed(reef_home, told, {"extensions/pi/a.ts": "1", second: "2"})
    with pytest.raises(Untrusted, match="has no place beside"):
        delivery.checked(forged, key_of(reef_home))


@pytest.mark.parametrize(
    "odd",
    [{"files": {"rules.md": "\ud800"}}, {"reason": "\ud800"}, {"signature": "\udfff"}, {"manifest": "\ud800"},
     {"scenario": "\ud800"}, {"number": float("inf")}, {"number": float("nan")}, {"manifest": 1}, {"signature": []},
     {"files": {"rules.md": None}}, {"files": None}, {"release_id": None}],
)  # fmt: skip
def test_nonsense_in_an_answer_is_refused_and_nothing_worse(
    reef_home: Home, told: Delivery, odd: dict[str, object]
) -> None:
    with pytest.raises(Untrusted):
        delivery.checked(delivery.parse(told._asdict() | odd), key_of(reef_home))
