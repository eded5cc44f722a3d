"""Programs that are pointed at the daemon, kept off the environment's proxy on their way there.

A proxy cannot reach this machine's loopback: httpx, curl and Node's agents ask it all the same unless they are told.
"""

from collections.abc import Mapping
from typing import Final

#: Where the daemon's address lies.
_HERE: Final = "127.0.0.1"
_PROXIES: Final = ("http_proxy", "https_proxy", "all_proxy")
_EXCEPTIONS: Final = ("NO_PROXY", "no_proxy")


def around(environment: Mapping[str, str]) -> dict[str, str]:
    """``NO_PROXY`` in both spellings, as it is and the daemon too; nothing where there is no proxy."""
    if not any(environment.get(name) for name in environment if name.lower() in _PROXIES):
        return {}
    named = ",".join(filter(None, (environment.get(name) for name in _EXCEPTIONS)))
    hosts = dict.fromkeys(host for part in named.split(",") if (host := part.strip()))
    return dict.fromkeys(_EXCEPTIONS, "*" if "*" in hosts else ",".join({**hosts, _HERE: None}))
