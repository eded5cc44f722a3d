"""What a person asked, of a recorded answer."""

import pytest

from daemon.core.client import Client
from daemon.core.errors import NotFound
from reef_cli.questions import of_session, question
from tests.reef_cli.commands.conftest import Served, served  # noqa: F401  (a fixture)


def test_the_words_before_an_answer_also_where_tools_ran_between(served: Served) -> None:  # noqa: F811
    client = Client(served.home.socket)
    asked: dict[str, object] = {"role": "user", "content": "list the files\nplease"}
    first = served.converse(asked)
    call = {"id": "c1", "type": "function", "function": {"name": "ls", "arguments": "{}"}}
    said = served.daemon.get(f"/reef/traces/{first}")["records"][0]["answer"]["parts"][0]["text"]
    second = served.converse(
        asked,
        {"role": "assistant", "content": said, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": "a b"},
    )
    assert question(client, first) == ("list the files\nplease", "default")
    assert question(client, second)[0] == "list the files\nplease"
    session = served.daemon.get(f"/reef/records/{second}")["session"]
    assert of_session(client, session)[0] == "list the files\nplease"


def test_nobody_asked(served: Served) -> None:  # noqa: F811
    receipt = served.converse({"role": "system", "content": "you are brief"})
    with pytest.raises(NotFound, match=f"nobody's words stand before {receipt}"):
        question(Client(served.home.socket), receipt)
