"""A proxy of the environment never stands between an agent and the daemon (BerriAI/litellm#8510)."""

import pytest

from reef_cli.proxies import around


@pytest.mark.parametrize("name", ["http_proxy", "HTTP_PROXY", "https_proxy", "ALL_PROXY"])
def test_where_there_is_one_the_daemon_is_excepted(name: str) -> None:
    assert around({name: "http://proxy.example:3128"}) == {"NO_PROXY": "127.0.0.1", "no_proxy": "127.0.0.1"}


@pytest.mark.parametrize(
    ("exceptions", "told"),
    [
        ({"NO_PROXY": "a.example"}, "a.example,127.0.0.1"),
        ({"no_proxy": "a.example, b.example"}, "a.example,b.example,127.0.0.1"),
        ({"NO_PROXY": "a.example", "no_proxy": "b.example"}, "a.example,b.example,127.0.0.1"),
        ({"NO_PROXY": "127.0.0.1,a.example"}, "127.0.0.1,a.example"),
        ({"NO_PROXY": "*"}, "*"),
    ],
)
def test_what_was_excepted_stays_so_in_both_spellings(exceptions: dict[str, str], told: str) -> None:
    """Programs read one of them, most the lower-case one first."""
    found = around({"http_proxy": "http://proxy.example", **exceptions})
    assert found == {"NO_PROXY": told, "no_proxy": told}
    assert around({"http_proxy": "http://proxy.example", **found}) == found


@pytest.mark.parametrize("environment", [{}, {"NO_PROXY": "a.example"}, {"http_proxy": ""}])
def test_without_one_nothing_changes(environment: dict[str, str]) -> None:
    assert around(environment) == {}
