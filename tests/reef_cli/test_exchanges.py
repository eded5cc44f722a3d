"""A body as inert text that is still the same JSON."""

import json

from reef_cli.exchanges import escaped


def test_what_a_terminal_could_act_on_becomes_the_same_json() -> None:
    body = '{"a": "\u202e \x9b2J \U000e0041 é 漢字",\n\t"b": 1}'
    text = escaped(body)
    assert text.replace("\n", "").replace("\t", "").isprintable()
    assert json.loads(text) == json.loads(body)
    assert escaped("plain") == "plain"
