"""The page itself, read and in a real browser: hostile texts stay texts, nothing comes from outside, all can use it."""

from __future__ import annotations

import re
import shutil
import subprocess
import threading
from base64 import b64encode
from hashlib import sha256
from html.parser import HTMLParser
from http.server import BaseHTTPRequestHandler, HTTPServer
from itertools import pairwise
from pathlib import Path
from zlib import decompress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hookturn import Deny, Engine, Warn, hookimpl
from hookturn_builtins.session_summary import plugin

TAGS = set(
    re.findall(
        r"\w+",
        "html head meta title style body a header p h1 h2 h3 h4 dl div dt dd time bdi code ul ol li strong small nav main section pre "
        "details summary span table caption thead tbody tr th td figure figcaption svg line text rect g footer",
    )
)
ATTRIBUTES = set(
    re.findall(
        r"[\w-]+",
        "lang charset http-equiv content name class href id tabindex dir datetime role aria-label aria-labelledby aria-hidden scope "
        "open viewbox focusable x x1 x2 y y1 y2 width height",
    )
)
VOID = {"meta"}

NASTY = (
    "<script>document.title='pwned';document.body.id='pwned'</script>",
    "</style></title></pre></code><img src=http://127.0.0.1:9/x onerror=\"document.body.id='pwned'\">",
    "\"><svg onload=alert(1)> ' onfocus=alert(1) autofocus=' --> ]]> <!-- <iframe srcdoc='<b>'>",
    "javascript:alert(1) &lt;b&gt; &#0; &amp;quot; ${7*7} {{7*7}}",
    "\u202egnp.exe\u202c \u2066x\u2069 \u200b\ufeff\u2028\U000e0041",
    "\x1b[31mred\x1b[0m \x1b]8;;http://x\x07link\x1b]8;;\x07 \x07\x08\x7f\x9b",
    "\ud800 lone \udfff \x00NUL\x00 \ufffe\uffff",
    "w" * 1_000_000,
    "\n" * 5000 + "end",
    "שלום עולם مرحبا 😀👩‍👩‍👧 日本語",
)


class Nasty:
    @hookimpl
    def pre_tool_execution(self, event):
        if event.args.get("deny"):
            return [Deny(event.args["deny"], advice=NASTY[0]), Warn(NASTY[4])]
        return None


def page_of(project: Path, texts: tuple[str, ...] = NASTY) -> str:
    """Return the page of a session in which each text stands wherever a text can stand."""
    with Engine(plugins=[Nasty()], project_dir=project) as made:
        made.register(plugin(), "session-summary", layer="builtin")
        first = texts[0]
        with made.session(
            session_id="s1", agent=first, cwd=f"/p/{first}", host=first, model=first
        ) as session:
            for text in texts:
                session.submit(text)
                with session.turn() as turn:
                    turn.model_response(
                        text=text, usage={"input_tokens": 5, "output_tokens": 2}, model=text[:50]
                    )
                    turn.call_tool("bash", {"command": text}, execute=lambda **_: "")
                    turn.call_tool(text or "tool", {text: text, "deny": ""}, execute=lambda **_: "")
                    turn.call_tool("bash", {"command": text, "deny": text or "no"}, execute=lambda **_: "")
                    turn.call_tool("write", {"file_path": f"/p/{text}"}, execute=lambda **_: "")
                    turn.end_tool("e", tool="bash", args={"command": "x"}, status="error", error=text)
                    with turn.subagent(text or "sub", agent_id=text or "sub") as sub:
                        sub.call_tool("fetch", {"url": text}, execute=lambda **_: "")
                    session.fail(text or "Error", text)
                    turn.complete(text)
            session.end(first)
    return (project / ".hookturn" / "sessions" / "s1" / "report.html").read_text("utf-8")


class Page(HTMLParser):
    """What a page is made of; fails where an element is not closed by its own end."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str]]] = []
        self.open: list[str] = []
        self.texts: dict[str, list[str]] = {}
        self.declarations: list[str] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, {name: value or "" for name, value in attrs}))
        assert len({name for name, _ in attrs}) == len(attrs)
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open:
            self.texts.setdefault(self.open[-1], []).append(data)

    def handle_decl(self, decl):
        self.declarations.append(decl)

    def handle_comment(self, data):
        raise AssertionError(f"a comment: {data[:80]}")

    def of(self, tag: str) -> list[dict[str, str]]:
        return [attrs for name, attrs in self.elements if name == tag]


@pytest.fixture(scope="module")
def text(tmp_path_factory) -> str:
    return page_of(tmp_path_factory.mktemp("page"))


@pytest.fixture(scope="module")
def page(text) -> Page:
    return Page(text)


def test_there_is_nothing_in_it_but_what_the_page_is_made_of(page: Page) -> None:
    assert {tag for tag, _ in page.elements} <= TAGS
    assert {name for _, attrs in page.elements for name in attrs} <= ATTRIBUTES
    assert page.declarations == ["DOCTYPE html"]


def test_nothing_comes_from_outside(page: Page, text: str) -> None:
    assert all(attrs["href"].startswith("#") for attrs in page.of("a"))
    [style] = page.texts["style"]
    assert "url(" not in style and "@import" not in style and "expression" not in style
    policy = next(attrs["content"] for attrs in page.of("meta") if "http-equiv" in attrs)
    digest = b64encode(sha256(style.encode()).digest()).decode()
    assert policy == f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"


def test_texts_can_be_read_as_they_were(page: Page) -> None:
    shown = "".join(part for parts in page.texts.values() for part in parts)
    assert NASTY[0] in shown and NASTY[1] in shown and NASTY[3] in shown
    assert "שלום עולم"[:4] in shown and "👩‍👩‍👧" in shown
    assert r"\u202egnp.exe\u202c \u2066x\u2069 \u200b\ufeff\u2028\U000e0041" in shown
    assert r"\x1b[31mred\x1b[0m" in shown
    assert r"\ud800 lone \udfff \x00NUL\x00" in shown


def test_nothing_in_it_hides_or_turns(text: str) -> None:
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff]", text)
    assert len(text) < 2_000_000


def test_a_screen_reader_finds_its_way(page: Page) -> None:
    assert page.of("html") == [{"lang": "en"}]
    for landmark in ("header", "nav", "main", "footer"):
        assert len(page.of(landmark)) == 1
    ids = [attrs["id"] for _, attrs in page.elements if "id" in attrs]
    assert len(ids) == len(set(ids))
    targets = {attrs["href"][1:] for attrs in page.of("a")}
    targets |= {attrs["aria-labelledby"] for _, attrs in page.elements if "aria-labelledby" in attrs}
    assert targets <= set(ids)
    levels = [int(tag[1]) for tag, _ in page.elements if re.fullmatch("h[1-4]", tag)]
    assert levels[0] == 1 and levels.count(1) == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))
    assert len(page.of("caption")) == len(page.of("table")) > 5
    assert all(attrs.get("scope") in ("col", "row") for attrs in page.of("th"))
    charts = [attrs for attrs in page.of("svg") if attrs.get("aria-hidden") != "true"]
    assert len(charts) == 3
    assert all(attrs["role"] == "img" and len(attrs["aria-label"]) > 20 for attrs in charts)
    assert len(page.of("summary")) == len(page.of("details")) > 3
    assert page.of("a")[0] == {"class": "skip", "href": "#main"}
    assert all(attrs["aria-label"] for _, attrs in page.elements if attrs.get("role") == "region")


def contrast(one: str, other: str) -> float:
    """Return the contrast of two colours (WCAG 2.2, relative luminance)."""

    def luminance(colour: str) -> float:
        digits = colour[1:] if len(colour) == 7 else "".join(c * 2 for c in colour[1:])
        parts = [int(digits[at : at + 2], 16) / 255 for at in (0, 2, 4)]
        linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    high, low = sorted((luminance(one), luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("scheme", [0, 1])
def test_colours_can_be_told_apart(page: Page, scheme: int) -> None:
    [style] = page.texts["style"]
    colours = dict(re.findall(r"--([\w-]+):(#[0-9a-f]+)", style.split("@media (prefers-color-scheme:dark)")[scheme].split("*{")[0]))  # fmt: skip
    for name in ("ink", "soft", "link", "fine", "wrong", "denied"):
        for ground in ("bg", "card"):
            assert contrast(colours[name], colours[ground]) >= 4.5, (name, ground)
    assert contrast(colours["wrong"], colours["wrong-bg"]) >= 4.5
    assert contrast(colours["denied"], colours["denied-bg"]) >= 4.5
    for name in ("in", "out", "tool", "hook", "wrong", "denied"):
        assert contrast(colours[name], colours["card"]) >= 3, name


@settings(max_examples=25)
@given(st.text(st.characters() | st.sampled_from("<>&\"'`=\n-!/")))
def test_no_text_becomes_a_part_of_the_page(tmp_path_factory, nasty: str) -> None:
    made = Page(page_of(tmp_path_factory.mktemp("any"), (nasty,)))
    assert {tag for tag, _ in made.elements} <= TAGS
    assert {name for _, attrs in made.elements for name in attrs} <= ATTRIBUTES
    assert all(attrs["href"].startswith("#") for attrs in made.of("a"))


# -- in a browser --------------------------------------------------------------------------------------

BROWSER = next(
    (found for found in map(shutil.which, ("chromium", "chromium-browser", "google-chrome")) if found), None
)


def in_browser(test):
    """Mark a test that needs a browser."""
    missing = pytest.mark.skipif(BROWSER is None, reason="there is no Chromium (Debian package chromium)")
    return pytest.mark.service(missing(test))


class Browser:
    """Loads pages in a new, empty browser.

    Parameters:
        profile: where it may keep its files.
    """

    def __init__(self, profile: Path) -> None:
        self.profile = profile
        self.said = ""

    def __call__(self, page: Path, *options: str) -> str:
        assert BROWSER is not None
        done = subprocess.run(
            [BROWSER, "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
             "--disable-background-networking", "--disable-component-update", "--disable-sync", "--hide-scrollbars",
             "--enable-logging=stderr", "--v=0", f"--user-data-dir={self.profile}", *options, page.as_uri()],
            capture_output=True, text=True, encoding="utf-8", timeout=120, check=True,
        )  # fmt: skip
        self.said = "\n".join(line for line in done.stderr.splitlines() if "CONSOLE" in line)
        return done.stdout


@pytest.fixture
def browser(tmp_path: Path) -> Browser:
    return Browser(tmp_path / "profile")


@pytest.fixture(scope="module")
def asked() -> list[str]:
    """Addresses that somebody asked the server for that the hostile texts name."""
    return []


@pytest.fixture(scope="module")
def opened(tmp_path_factory, asked: list[str]):
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            self.send_error(404)

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    server = HTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    address = f"http://127.0.0.1:{server.server_port}"
    project = tmp_path_factory.mktemp("browser")
    texts = (
        *NASTY,
        f'<img src="{address}/img"><link rel=stylesheet href="{address}/css"><script src="{address}/js"></script>',
        f"</pre></section><meta http-equiv=refresh content='0;url={address}/refresh'><style>@import '{address}/i';*{{color:red}}</style>",
    )
    page_of(project, texts)
    yield project / ".hookturn" / "sessions" / "s1" / "report.html"
    server.shutdown()
    server.server_close()


@in_browser
def test_hostile_texts_stay_texts(browser: Browser, opened: Path, asked: list[str]) -> None:
    dom = browser(opened, "--dump-dom")
    assert "<title>Session s1</title>" in dom and "pwned" not in re.findall(r'<body[^>]*id="([^"]*)"', dom)
    assert not re.search(r"<(script|img|iframe|link|object|embed|form|input|base)\b", dom)
    assert not re.search(r"<[^>]*\son\w+=", dom)
    assert len(re.findall(r"<style", dom)) == 1 and len(re.findall(r"<meta", dom)) == 5
    assert "document.title='pwned'" in dom
    assert dom.rstrip().endswith("</html>") and "</footer>" in dom
    assert asked == []
    assert browser.said == ""  # no complaint of its content security policy about the page's own style


@in_browser
def test_the_policy_would_stop_what_got_in(
    browser: Browser, opened: Path, tmp_path: Path, asked: list[str]
) -> None:
    address = next(found for found in re.findall(r"http://127\.0\.0\.1:\d{4,5}", opened.read_text("utf-8")))
    broken = tmp_path / "broken.html"
    attack = (
        f"<script>document.body.id='pwned'</script><img src='{address}/x'><style>body{{display:none}}</style>"
    )
    broken.write_text(opened.read_text("utf-8").replace("<footer>", f"{attack}<footer>"), encoding="utf-8")
    dom = browser(broken, "--dump-dom")
    assert "<img" in dom and 'id="pwned"' not in dom
    assert asked == []
    assert "Content Security Policy" in browser.said or "Content-Security-Policy" in browser.said


def first_pixel(picture: Path) -> tuple[int, int, int]:
    """Return the upper left pixel of a PNG: no filter changes it (PNG specification, section 9)."""
    data = picture.read_bytes()
    at, parts = 8, []
    while at < len(data):
        length = int.from_bytes(data[at : at + 4], "big")
        if data[at + 4 : at + 8] == b"IDAT":
            parts.append(data[at + 8 : at + 8 + length])
        at += length + 12
    raw = decompress(b"".join(parts))
    return raw[1], raw[2], raw[3]


@in_browser
@pytest.mark.parametrize(("scheme", "colour"), [("light", (0xF7, 0xF8, 0xFA)), ("dark", (0x12, 0x16, 0x1D))])
def test_it_is_light_and_dark(
    browser: Browser, opened: Path, tmp_path: Path, scheme: str, colour: tuple
) -> None:
    picture = tmp_path / "page.png"
    options = [f"--screenshot={picture}", "--window-size=1280,2000"]
    if scheme == "dark":
        options += ["--force-dark-mode", "--blink-settings=preferredColorScheme=0"]
    browser(opened, *options)
    assert first_pixel(picture) == colour
