"""Another model's name in a request, and not a byte more."""

import json

import pytest

from daemon.core.errors import BadRequest
from daemon.wire.rename import renamed


@pytest.mark.parametrize(
    ("body", "changed"),
    [
        (b'{"model":"a","x":1}', b'{"model":"b","x":1}'),
        (b' {\n "x": 1.50,\n "model" : "a"\n}', b' {\n "x": 1.50,\n "model" : "b"\n}'),
        (b'{"x":{"model":"a"},"model":"a"}', b'{"x":{"model":"a"},"model":"b"}'),
        (b'{"m":"\\"model\\":\\"a\\"","model":"\\u0061"}', b'{"m":"\\"model\\":\\"a\\"","model":"b"}'),
        (b'{"model":null}', b'{"model":"b"}'),
        (b'{"x":1}', b'{"model":"b","x":1}'),
        (b"{ }", b'{"model":"b" }'),
        (b'{"model":"b"}', b'{"model":"b"}'),
        (b'{"x":"\\ud83d","model":"a"}', b'{"x":"\\ud83d","model":"b"}'),  # half an emoji stays half an emoji
    ],
)
def test_only_the_name_changes(body: bytes, changed: bytes) -> None:
    assert renamed(body, "b") == changed


def test_any_name_is_written_as_json() -> None:
    assert json.loads(renamed(b'{"model":"a"}', 'ö"\n'))["model"] == 'ö"\n'


def test_what_is_no_request_is_refused() -> None:
    with pytest.raises(BadRequest):
        renamed(b"[]", "b")
    with pytest.raises(BadRequest, match="cannot be found"):
        renamed(b'{"mod\\u0065l":"a"}', "b")
