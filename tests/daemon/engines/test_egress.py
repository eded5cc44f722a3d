"""Which requests go through the environment's proxy."""

import pytest
from yarl import URL

from daemon.core.errors import NotFound
from daemon.engines.download import client, get
from daemon.engines.egress import is_here, proxy_for
from tests.fakes.hub import Hub


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "127.8.0.1", "::1", "me.localhost"])
def test_this_machine_has_several_names(monkeypatch: pytest.MonkeyPatch, host: str) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://proxy.example:3128")
    monkeypatch.delenv("NO_PROXY", raising=False)
    assert is_here(host)
    assert proxy_for(URL.build(scheme="http", host=host, port=80)) is None


def test_others_go_through_it_unless_they_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "proxy.example:3128")
    monkeypatch.setenv("NO_PROXY", "near.example")
    assert proxy_for(URL("https://far.example/v1")) == URL("http://proxy.example:3128")
    assert proxy_for(URL("https://near.example/v1")) is None
    monkeypatch.setenv("HTTPS_PROXY", "socks5://proxy.example:1080")
    with pytest.raises(ValueError, match="speaks socks5"):
        proxy_for(URL("https://far.example/v1"))


async def test_a_mirror_on_this_machine_is_asked_directly(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    monkeypatch.delenv("NO_PROXY", raising=False)
    async with client() as session:
        with pytest.raises(NotFound):  # said by the mirror: no proxy stands at port 1
            async with get(session, f"{hub.url}/nothing", None, {}):
                pass
