"""How requests leave this machine: through the environment's proxy, and never so what is for this machine itself."""

from ipaddress import ip_address
from urllib.request import getproxies_environment, proxy_bypass

from yarl import URL


def proxy_for(url: URL) -> URL | None:
    """The environment's proxy for a URL. Raises ValueError for one of a kind that is not spoken here."""
    host = url.host or ""
    if is_here(host) or proxy_bypass(host):
        return None
    proxies = getproxies_environment()
    proxy = proxies.get(url.scheme) or proxies.get("all")
    if not proxy:
        return None
    parsed = URL(proxy if "://" in proxy else f"http://{proxy}")
    if parsed.scheme not in ("http", "https"):
        raise ValueError(f"the environment's proxy speaks {parsed.scheme}, only http and https are spoken here")
    return parsed


def is_here(host: str) -> bool:
    """Whether it is this machine's loopback, by any of its names."""
    try:
        return host == "localhost" or host.endswith(".localhost") or ip_address(host).is_loopback
    except ValueError:
        return False
