import pytest

from daemon.core.errors import UsageError
from daemon.engines.sources import locate, public


async def test_a_checksum_that_is_none_is_refused() -> None:
    with pytest.raises(UsageError, match="cannot read the checksum"):
        await locate("https://example.org/x.gguf#md5=abc")


async def test_an_unencrypted_stranger_is_not_believed() -> None:
    with pytest.raises(UsageError, match="without encryption"):
        await locate("http://example.org/x.gguf")


async def test_a_url_without_a_host_is_none() -> None:
    with pytest.raises(UsageError, match="not a URL"):
        await locate("https://")


def test_a_url_is_shown_without_password_query_or_checksum() -> None:
    assert public("https://me:pw@example.org/x.gguf?key=1#sha256=0") == "https://example.org/x.gguf"
    assert public("hf:owner/repo") == "hf:owner/repo"
