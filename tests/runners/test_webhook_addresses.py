"""Where webhooks may connect to: addresses, their many spellings, and names that lead to them."""

from __future__ import annotations

import ipaddress
import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hookturn.runners.addresses import Allowed, BadUrl, Forbidden, Network, is_public, parse_url

pytestmark = pytest.mark.usefixtures("no_leak")


@pytest.mark.parametrize(
    "address",
    [
        "0.0.0.0", "0.1.2.3", "10.0.0.1", "100.64.0.1", "127.0.0.1", "127.255.255.254", "169.254.169.254", "172.16.0.1",
        "172.31.255.255", "192.0.0.1", "192.0.0.9", "192.0.0.192", "192.0.2.1", "192.88.99.1", "192.168.1.1", "198.18.0.1",
        "198.51.100.1", "203.0.113.1", "224.0.0.1", "239.255.255.250", "240.0.0.1", "255.255.255.255",
        "::", "::1", "::ffff:127.0.0.1", "::ffff:10.0.0.1", "::ffff:169.254.169.254", "::127.0.0.1", "64:ff9b::a00:1",
        "64:ff9b::7f00:1", "64:ff9b::808:808", "64:ff9b:1::a00:1", "100::1", "2001::1", "2001:0:4136:e378::1", "2001:2::1",
        "2001:10::1", "2001:db8::1", "2002:7f00:1::", "2002:a00:1::1", "3fff::1", "5f00::1", "fc00::1", "fd12:3456::1",
        "fe80::1", "fec0::1", "ff02::1", "ff0e::1", "4000::1",
    ],
)  # fmt: skip
def test_addresses_that_are_not_public(address):
    found = ipaddress.ip_address(address)
    assert not is_public(found)
    host = f"[{address}]" if ":" in address else address
    url = parse_url(f"http://{host}/")
    with pytest.raises(Forbidden) as refused:
        Network().check(url, [found])
    assert "webhooks: {allow: [" in refused.value.remedy


@pytest.mark.parametrize(
    "address", ["1.1.1.1", "8.8.8.8", "172.32.0.1", "::ffff:8.8.8.8", "2606:4700::1111", "2a00:1450:4001::1"]
)
def test_addresses_that_are_public(address):
    assert is_public(ipaddress.ip_address(address))


@given(st.ip_addresses(v=4))
def test_no_form_of_ipv6_hides_an_ipv4_address(address):
    number = int(address)
    public = is_public(address)
    assert is_public(ipaddress.IPv6Address((0xFFFF << 32) | number)) == public
    for hidden in (
        ipaddress.IPv6Address(number),  # IPv4-compatible
        ipaddress.IPv6Address((0x2002 << 112) | (number << 80) | 1),  # 6to4
        ipaddress.IPv6Address((0x64FF9B << 96) | number),  # NAT64
        ipaddress.IPv6Address((0x64FF9B0001 << 80) | number),  # NAT64, local
        ipaddress.IPv6Address((0x20010000 << 96) | (number ^ 0xFFFFFFFF)),  # Teredo
        ipaddress.IPv6Address((0xFE80 << 112) | 0x5EFE << 32 | number),  # ISATAP
    ):
        assert not is_public(hidden)


@given(st.ip_addresses())
def test_public_is_never_more_than_python_says(address):
    if is_public(address):
        plain = getattr(address, "ipv4_mapped", None) or address
        assert plain.is_global and not plain.is_private and not plain.is_multicast


@pytest.mark.parametrize(
    "host",
    [
        "0x7f.1", "0x7f000001", "2130706433", "017700000001", "0177.0.0.1", "127.1", "127.0.1", "127.0.0.01", "127.0.0.0x1",
        "127.0.0.1.", "1.2.3.4.5", "256.1.1.1", "1.2.3", "0", "0x", "00000177.1", "example.1", "example.0x1", "127。0。0。1",
        "①②⑦.0.0.1", "１２７.0.0.1", "localhost%00.example.com", "%31%32%37.0.0.1", "ex ample.com", "exa\tmple.com", "a..b",
        ".example.com", "", "-.%", "a" * 64 + ".com", ".".join(["a" * 60] * 5), "[::1", "::1", "[127.0.0.1]", "[::1]x",
        "[fe80::1%eth0]", "[fe80::1%25eth0]", "[::ffff:0x7f.1]", "[1::2::3]", "example.com:", "example.com:0",
        "example.com:65536", "example.com:80x", "example.com:+80", "example.com:８０", "example.com:080000",
    ],
)  # fmt: skip
def test_hosts_that_are_refused(host):
    with pytest.raises(BadUrl):
        parse_url(f"http://{host}/")


@pytest.mark.parametrize(
    "text",
    [
        "", "http", "http:/example.com/", "//example.com/", "file:///etc/passwd", "gopher://example.com/", "ftp://example.com/",
        "HTTPS//example.com", "javascript://example.com/", "http://user@example.com/", "http://u:p@example.com/",
        "http://example.com@127.0.0.1/", "http://127.0.0.1\\@example.com/", "http://example.com\\.evil/", "http://example.com/ x",
        "http://example.com/\r\nX: y", "http://example.com/\x00", " http://example.com/", "http://example.com/ü",
        "http://example.com/#x", "http://example.com#@evil/", "http://a/" + "x" * 9000,
    ],
)  # fmt: skip
def test_urls_that_are_refused(text):
    with pytest.raises(BadUrl) as refused:
        parse_url(text)
    assert "evil" not in str(refused.value) and "example" not in str(refused.value)


@given(st.text() | st.text(alphabet="htps:/.@[]0123456789xabf%#?\\ \r\n").map(lambda text: f"http://{text}"))
def test_no_text_breaks_the_parser(text):
    try:
        url = parse_url(text)
    except BadUrl:
        return
    assert url.scheme in ("http", "https") and 0 < url.port < 65_536
    assert all("!" <= c <= "~" for c in url.target) and url.target.startswith("/")
    again = parse_url(url.origin + url.target)
    assert (again.host, again.port, again.target, again.address) == (
        url.host,
        url.port,
        url.target,
        url.address,
    )
    if url.address is None:  # the system's resolver sees a name, whatever it thinks of numbers
        assert set(url.host) <= set(string.ascii_lowercase + string.digits + "-_.")
        assert not url.host.rstrip(".").rsplit(".", 1)[-1].isdigit()


@given(
    st.integers(0, 2**32 - 1),
    st.sampled_from(["{0}", "{0:#x}", "0{0:o}", "{1}.{2}", "{1:#x}.{2}", "0{1:o}.{2}"]),
)
def test_no_number_is_an_address(number, form):
    host = form.format(number, number >> 24, number & 0xFFFFFF)
    with pytest.raises(BadUrl):
        parse_url(f"http://{host}/")


@given(st.ip_addresses(), st.integers(1, 65_535))
def test_addresses_are_seen_as_such(address, port):
    host = f"[{address}]" if address.version == 6 else str(address)
    url = parse_url(f"https://{host}:{port}/x")
    mapped = getattr(address, "ipv4_mapped", None)
    assert url.address == (mapped or address)
    assert parse_url(f"{url.origin}/").port == port


# -- allow ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("entry", "url", "fits"),
    [
        ("127.0.0.1:8080", "http://127.0.0.1:8080/", True),
        ("127.0.0.1:8080", "http://127.0.0.1:8081/", False),
        ("127.0.0.1:8080", "http://127.0.0.2:8080/", False),
        ("127.0.0.1", "http://127.0.0.1:9/", True),
        ("127.0.0.1", "http://[::ffff:127.0.0.1]:9/", True),
        ("10.0.0.0/8", "https://10.255.0.1/", True),
        ("10.0.0.0/8:443", "https://10.255.0.1/", True),
        ("10.0.0.0/8:443", "http://10.255.0.1/", False),
        ("10.0.0.0/8", "https://11.0.0.1/", True),  # public anyway
        ("::1", "http://[::1]:1/", True),
        ("[::1]:8080", "http://[::1]:8080/", True),
        ("[::1]:8080", "http://[::1]:80/", False),
        ("[fd00::]/8:443", "https://[fd00::1]/", True),
        ("fd00::/8", "https://[fd00::1]/", True),
        ("0.0.0.0/0", "http://[::1]/", False),
        ("LOCALHOST:80", "http://127.0.0.1/", False),
    ],
)
def test_allow_entries(entry, url, fits):
    parsed = parse_url(url)
    network = Network([entry])
    if fits:
        network.check(parsed, [parsed.address])
    else:
        with pytest.raises(Forbidden):
            network.check(parsed, [parsed.address])


@pytest.mark.parametrize(
    "entry",
    ["", ":80", "10.0.0.1/8", "10.0.0.0/33", "127.1", "0x7f.1", "*", "*.internal", "http://127.0.0.1", "[::1", "host:0", "a b"],
)  # fmt: skip
def test_allow_entries_that_are_none(entry):
    with pytest.raises(ValueError):
        Allowed(entry)


@given(st.text())
def test_no_text_breaks_an_allow_entry(text):
    try:
        Allowed(text).covers("example.com", ipaddress.ip_address("127.0.0.1"), 80)
    except ValueError:
        return


@given(st.ip_addresses(v=4), st.ip_addresses(v=4), st.integers(0, 32))
def test_a_network_allows_exactly_itself(address, base, bits):
    network = ipaddress.ip_network((int(base), bits), strict=False)
    entry = Allowed(str(network))
    assert entry.covers("x", address, 1) == (address in network)


# -- names ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("address", ["127.0.0.1", "10.0.0.1", "169.254.169.254", "::1", "64:ff9b::7f00:1"])
def test_a_name_that_leads_inside(serve, remote, names, address):
    server = serve()
    names["hook.test"] = [address]
    message = remote(f"http://hook.test:{server.port}/", allow=()).failure()
    assert f"hook.test leads to {address}" in message and "allow:" not in message
    assert server.connections == 0 and names.asked == ["hook.test"]


def test_one_bad_address_is_enough(serve, remote, names):
    server = serve()
    names["hook.test"] = ["93.184.216.34", "127.0.0.1"]
    assert "leads to 127.0.0.1" in remote(f"http://hook.test:{server.port}/", allow=()).failure()
    assert server.connections == 0


def test_a_name_that_changes_between_tries(serve, remote, names):
    """Each try looks the name up once, checks what it got, and connects to that."""
    server, inside = serve(b""), serve()
    names["hook.test"] = [["127.0.0.1"], ["127.0.0.2"]]
    hook = remote(f"http://hook.test:{server.port}/", allow=["127.0.0.1"], backoff=[0.01, 0.01])
    assert "hook.test leads to 127.0.0.2" in hook.failure()
    assert names.asked == ["hook.test", "hook.test"]
    assert (server.connections, inside.connections) == (1, 0)


def test_the_connection_goes_to_the_address_that_was_checked(serve, remote, names):
    """A resolver that answers otherwise the next time is not asked a next time."""
    server = serve()
    names["hook.test"] = [["127.0.0.1"]]
    outcome = remote(f"http://hook.test:{server.port}/", allow=["127.0.0.1"]).fire()
    assert outcome.failures == () and names.asked == ["hook.test"]
    assert server.requests[0].headers["host"] == f"hook.test:{server.port}"


def test_a_name_may_be_allowed(serve, remote, names):
    server = serve()
    names["hook.test"] = ["127.0.0.1"]
    names["other.test"] = ["127.0.0.1"]
    allow = [f"hook.test:{server.port}"]
    assert remote(f"http://hook.test:{server.port}/", allow=allow).fire().failures == ()
    assert "other.test leads to" in remote(f"http://other.test:{server.port}/", allow=allow).failure()
    assert server.connections == 1


def test_the_next_address_is_tried(serve, remote, names):
    server = serve()
    names["hook.test"] = ["127.0.0.2", "127.0.0.1"]
    assert remote(f"http://hook.test:{server.port}/", allow=["127.0.0.0/8"]).fire().failures == ()
    assert server.connections == 1


def test_a_name_that_does_not_exist(remote, monkeypatch):
    def fail(*rest, **options):
        raise OSError(-2, "Name or service not known")

    monkeypatch.setattr("socket.getaddrinfo", fail)
    message = remote("http://hook.test/", backoff=[0.01, 0.01]).failure()
    assert "hook.test cannot be looked up: Name or service not known (3 tries)" in message
