"""Which addresses a webhook may reach: URLs without tricks, and public addresses only, unless the user allows more."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ipaddress import IPv4Network, IPv6Network

    Address = IPv4Address | IPv6Address

SCHEMES = {"http": 80, "https": 443}
"""Schemes of a webhook's URL, and their ports."""

LONGEST_URL = 8_000
"""Characters of a URL."""

# Sources: the IANA IPv4 and IPv6 Special-Purpose Address Registries. ``is_global`` of older Pythons does not know
# all of them, and calls addresses global that lead to any other one (6to4, NAT64, Teredo).
_CLOSED_4 = tuple(
    map(
        ip_network,
        (
            "0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.0.0.0/24",
            "192.0.2.0/24", "192.31.196.0/24", "192.52.193.0/24", "192.88.99.0/24", "192.168.0.0/16", "192.175.48.0/24",
            "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4",
        ),
    )
)  # fmt: skip
_OPEN_6 = ip_network(
    "2000::/3"
)  # all that is global unicast; NAT64, site- and link-local and so on lie outside
_CLOSED_6 = tuple(
    map(ip_network, ("2001::/23", "2001:db8::/32", "2002::/16", "2620:4f:8000::/48", "3fff::/20"))
)

_HOST = frozenset("abcdefghijklmnopqrstuvwxyz0123456789-_.")
_DIGITS = frozenset("0123456789")


class BadUrl(ValueError):
    """A URL that a webhook does not take; the text says why, without the URL (it may be a secret)."""


class Forbidden(Exception):
    """An address that a webhook may not reach; ``remedy`` says what would allow it."""

    def __init__(self, cause: str, remedy: str) -> None:
        super().__init__(cause)
        self.remedy = remedy


class Url:
    """A checked URL.

    Attributes:
        scheme: http or https.
        host: the host in lower case, an IPv6 address without brackets.
        port: its port.
        target: path and query, as a request line has them.
        address: the address that the host is, or None for a name.
    """

    __slots__ = ("address", "host", "port", "scheme", "target")

    def __init__(self, scheme: str, host: str, port: int, target: str, address: Address | None) -> None:
        self.scheme = scheme
        self.host = host
        self.port = port
        self.target = target
        self.address = address

    @property
    def authority(self) -> str:
        """Host and port as a Host header has them."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == SCHEMES[self.scheme] else f"{host}:{self.port}"

    @property
    def origin(self) -> str:
        """The URL for messages: without path and query, which may hold secrets."""
        return f"{self.scheme}://{self.authority}"

    @property
    def place(self) -> str:
        """Host and port as an allow entry has them."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def parse_url(text: str) -> Url:
    """Return a URL's parts.

    Parameters:
        text: an absolute URL. It must be ASCII; no user, no fragment, no other forms of numeric addresses than
            the usual ones.

    Raises:
        BadUrl: for anything else.
    """
    if len(text) > LONGEST_URL:
        raise BadUrl(f"the URL is longer than {LONGEST_URL:,} characters")
    if not text.isascii():
        raise BadUrl("the URL holds characters that are not ASCII; write a host as xn--..., others as %XX")
    if any(not "!" <= c <= "~" or c in '\\"<>^`{|}' for c in text):
        raise BadUrl("the URL holds blanks or characters that no URL has")
    scheme, mark, rest = text.partition("://")
    scheme = scheme.lower()
    if not mark or scheme not in SCHEMES:
        raise BadUrl("a webhook's URL begins with https:// or http://")
    if "#" in rest:
        raise BadUrl("the URL has a fragment (#...), which no server would see")
    end = min((at for at in map(rest.find, "/?") if at >= 0), default=len(rest))
    authority, target = rest[:end], rest[end:]
    if "@" in authority:
        raise BadUrl("the URL holds a user or password; put credentials into 'headers:'")
    host, port = _host_and_port(authority, SCHEMES[scheme])
    if not target.startswith("/"):
        target = f"/{target}"
    address = _address(host)
    return Url(scheme, str(address) if address is not None else host, port, target, address)


def _host_and_port(authority: str, default: int) -> tuple[str, int]:
    if authority.startswith("["):
        host, mark, rest = authority[1:].partition("]")
        if not mark or (rest and not rest.startswith(":")):
            raise BadUrl("the host's brackets do not match")
        if ":" not in host:
            raise BadUrl("only an IPv6 address stands in brackets")
        colon, port = rest[:1], rest[1:]
    else:
        host, colon, port = authority.partition(":")
        if ":" in port:
            raise BadUrl("an IPv6 address stands in brackets")
    if not host:
        raise BadUrl("the URL has no host")
    if not colon:
        return host.lower(), default
    if not (_DIGITS.issuperset(port) and 0 < len(port) <= 5 and 0 < int(port) < 65_536):
        raise BadUrl("the port is no number from 1 to 65535")
    return host.lower(), int(port)


def _address(host: str) -> Address | None:
    """Return the address that a host is, or None for a name.

    Raises:
        BadUrl: for a host that is neither. ``0x7f.1``, ``2130706433`` and ``017700000001`` are addresses to some
            and names to others; the rule is that of the URL Standard: a host that ends in a number is an IPv4
            address. Source: https://url.spec.whatwg.org/#ends-in-a-number-checker
    """
    if ":" in host:
        try:
            found = ip_address(host)
        except ValueError:
            raise BadUrl("the host is no valid IPv6 address") from None
        if not isinstance(found, IPv6Address) or found.scope_id:
            raise BadUrl("an IPv6 address with a zone cannot be reached by a webhook")
        return plain(found)
    if not _HOST.issuperset(host):
        raise BadUrl("the host holds characters that no host name has")
    labels = host.removesuffix(".").split(".")
    if not all(0 < len(label) <= 63 for label in labels) or len(host) > 253:
        raise BadUrl("the host is no valid name")
    last = labels[-1]
    if _DIGITS.issuperset(last) or last.startswith("0x"):
        try:
            return IPv4Address(host)
        except ValueError:
            raise BadUrl("an IPv4 address is written as four decimal numbers, such as 192.0.2.1") from None
    return None


def plain(address: Address) -> Address:
    """Return the IPv4 address that an IPv4-mapped IPv6 address stands for; any other as it is."""
    mapped = getattr(address, "ipv4_mapped", None)
    return mapped if mapped is not None else address


def loopback(host: str) -> Address | None:
    """Return the loopback's address for a name that means it everywhere, or None. Source: RFC 6761, 6.3."""
    last = host.removesuffix(".").rpartition(".")[2]
    return IPv4Address("127.0.0.1") if last == "localhost" else None


def is_public(address: Address) -> bool:
    """Tell whether an address is one of the open internet, and leads to no other one."""
    address = plain(address)
    if not address.is_global or address.is_multicast:
        return False
    if isinstance(address, IPv4Address):
        return not any(address in network for network in _CLOSED_4)
    return address in _OPEN_6 and not any(address in network for network in _CLOSED_6)


def kind_of_address(address: Address) -> str:
    """Return in a word or two why an address is not public, for messages."""
    address = plain(address)
    if address.is_loopback:
        return "this machine itself"
    if address.is_link_local:
        return "link-local"
    if address.is_multicast:
        return "multicast"
    if address.is_unspecified:
        return "no address of a host"
    return "private" if address.is_private else "reserved"


class Allowed:
    """One entry of the user's ``webhooks: {allow: [...]}``: an address, a network or a host name, and a port or any.

    Parameters:
        text: ``127.0.0.1:8080``, ``[::1]:8080``, ``10.0.0.0/8``, ``10.0.0.0/8:443``, ``localhost:8080`` or
            ``build.internal``. A name allows whatever this very name resolves to.

    Raises:
        ValueError: for anything else; the text says why.
    """

    __slots__ = ("name", "network", "port", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        self.name = ""
        self.network: IPv4Network | IPv6Network | None = None
        host, self.port = self._split(text)
        if ":" in host or "/" in host:
            self.network = ip_network(host)
            return
        try:
            address = _address(host)
        except BadUrl as error:
            raise ValueError(str(error)) from None
        if address is None:
            self.name = host
        else:
            self.network = ip_network(address)

    @staticmethod
    def _split(text: str) -> tuple[str, int]:
        """Return host or network in lower case, and the port (0 for any)."""
        text = text.strip().lower()
        if text.startswith("["):
            host, mark, rest = text[1:].partition("]")
            if not mark or (rest and rest[0] not in ":/"):
                raise ValueError("the brackets do not match")
            if rest.startswith("/"):
                size, colon, port = rest.partition(":")
                host += size
            else:
                colon, port = rest[:1], rest[1:]
        elif text.count(":") > 1:
            return text, 0
        else:
            host, colon, port = text.partition(":")
        if not host:
            raise ValueError("the host is missing")
        if not colon:
            return host, 0
        if not (_DIGITS.issuperset(port) and 0 < len(port) <= 5 and 0 < int(port) < 65_536):
            raise ValueError("the port is no number from 1 to 65535")
        return host, int(port)

    def covers(self, host: str, address: Address, port: int) -> bool:
        """Tell whether this entry allows to connect to an address and port, for a URL's host."""
        if self.port and self.port != port:
            return False
        if self.network is None:
            return host.removesuffix(".") == self.name.removesuffix(".")
        return address.version == self.network.version and address in self.network


class Network:
    """Where webhooks may connect to beside public addresses, and how. Only the user and the administrator say so.

    Parameters:
        allow: entries of ``webhooks: {allow: [...]}``.
        proxy: a proxy for all webhooks (``http://host:port``), or "". Variables such as HTTPS_PROXY do not count.

    Raises:
        ValueError: for an entry or a proxy that cannot be read.
    """

    __slots__ = ("allow", "proxy")

    def __init__(self, allow: tuple[str, ...] | list[str] = (), proxy: str = "") -> None:
        self.allow = tuple(Allowed(text) for text in allow)
        self.proxy = parse_proxy(proxy) if proxy else None

    def check(self, url: Url, addresses: list[Address]) -> None:
        """Refuse a URL if any of its host's addresses is neither public nor allowed.

        Parameters:
            url: where the request goes.
            addresses: what its host is, or was resolved to.

        Raises:
            Forbidden: naming the address, and what would allow it.
        """
        for address in map(plain, addresses):
            if is_public(address) or any(entry.covers(url.host, address, url.port) for entry in self.allow):
                continue
            what = kind_of_address(address)
            leads = (
                f"{url.host} is" if url.address is not None else f"{url.host} leads to {address}, which is"
            )
            place = f"[{address}]:{url.port}" if address.version == 6 else f"{address}:{url.port}"
            raise Forbidden(
                f"{leads} {what}, where no webhook may go",
                f'Allow it in {own_file()}, your own configuration: webhooks: {{allow: ["{place}"]}}.',
            )


def own_file() -> str:
    """Return the user's own configuration: a project's says nothing of where webhooks may go."""
    from os.path import join

    from ..paths import config_root

    return join(config_root(), "hookturn.yaml")


def parse_proxy(text: str) -> Url:
    """Return a proxy's URL.

    Raises:
        BadUrl: for anything but ``http://host:port``.
    """
    url = parse_url(text)
    if url.scheme != "http" or url.target != "/":
        raise BadUrl("a proxy is written as http://host:port")
    return url


NOTHING_ALLOWED = Network()
"""Public addresses only, without a proxy."""
