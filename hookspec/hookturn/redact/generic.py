"""Likely secrets without a format: values assigned to names such as "password", passwords in URLs, headers.

What tells them from ordinary code is the value: it is no placeholder, no reference, and not made of words.
"""

from __future__ import annotations

import re

from .providers import Named
from .rules import Lazy, Rule, basic_credentials, is_weak
from .words import classes, random_part

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .rules import Hit


def spellings(words: tuple[str, ...]) -> tuple[str, ...]:
    """Return the ways in which words stand in names.

    ``api|key`` is apikey, APIKEY, Apikey, apiKey, ApiKey, and with "_", "-", "." or a blank between its parts.
    """
    forms: dict[str, None] = {}
    for word in words:
        parts = word.split("|")
        capitals = [part.capitalize() for part in parts]
        joined = "".join(parts)
        forms.update(dict.fromkeys((joined, joined.upper(), joined.capitalize(), "".join(capitals))))
        forms[parts[0] + "".join(capitals[1:])] = None
        if len(parts) > 1:
            for sign in "_-. ":
                forms.update(dict.fromkeys((sign.join(parts), sign.join(parts).upper(), sign.join(capitals))))
    return tuple(forms)


# Words that name a secret, with their parts for the spellings (apiKey, API_KEY, api-key ...).
_PASSWORDS = spellings(("pass|word", "passwd", "pass|phrase", "pwd", "pass|code"))
_TOKENS = (
    *spellings(("secret", "token", "credential", "api|key", "access|key", "auth|key", "private|key", "signing|key",
                "encryption|key", "account|key", "master|key", "client|key", "license|key")),
    "API key", "Access key", "creds", "CREDS", "_auth", "_AUTH",
    "_pat=", "_PAT=", "_pat:", "_PAT:",
)  # fmt: skip
_KEYS = (
    "_key",
    "_KEY",
    "-key",
    "-KEY",
    " key",
    " Key",
    "_salt",
    "_SALT",
    "app_key",
    "APP_KEY",
    "appKey",
    "AppKey",
)
_SHORT_PASSWORDS = ("_pass", "_PASS", "-pass", "PASS=", "_pw", "_PW")

# After the name: the rest of it and what closes it, an assignment in some language, the value.
_REST = Lazy(r"(\w{0,40}(?:[.-]\w{1,40}){0,3})(?:\\?[\"'`]|[\])]){0,3}")
_NEXT = frozenset(" \t\r\n=:!,(>-")
_ASSIGN = Lazy(
    r"\s{0,8}(?::=|=>|->|={1,3}|!==?|:(?:\s{0,2}[\w\[\].|?&<> ]{1,40}=(?!=))?)\s{0,8}"  # x = 1, x: str = 1
    r"|,\s{0,4}(?=\\?[\"'`])"  # set("x", "1")
    r"|\((?=[\"'`])"  # setX("1")
    r"|>\s{0,4}"  # <x>1</x>
    r"|,?\s{1,40}[\"']?[Vv]alue[\"']?\s{0,3}[:=]\s{0,3}"  # name: x, value: 1
    r"|\s{1,3}(?:is|was|to|as)\s{1,3}"  # the x is 1
)
_VALUE = Lazy(
    r"(?P<call>[A-Za-z_][\w.:]{0,40}!?\(\s{0,4}(?=[bru]?[\"'`]))?"  # String::from("1")
    r"(?:[bruf]{0,2}(?:\\\"(?P<e>[^\"\\\n]{4,300})\\\"|\"(?P<d>[^\"\n]{4,300})\"|'(?P<s>[^'\n]{4,300})'|`(?P<t>[^`\n]{4,300})`)"
    r"|\\?[\"'`]?(?P<u>[^\s\"'`,;<>(){}\[\]|&\\=]{6,300}={0,2}))"
)

# A name that goes on like this is not the secret itself.
_TAIL = Lazy(
    r"file|path|dir|url|uri|name|type|field|len|size|count|expir|last|date|time|fingerprint|ttl|timeout|format|regex|pattern|header|prefix|suffix|"
    r"class|manager|policy|hash|digest|label|title|hint|prompt|placeholder|error|message|valid|require|enabled|column|_id$|id$|"
    r"index|status|usage|limit|kind|scope|version|algorithm|provider|endpoint|param|attr|ize|ise|less|board|store|ring",
    re.IGNORECASE,
)

# Words before "token" and "key" that make something public of them.
_HEAD = Lazy(
    r"(?:next|page|paging|pagination|continuation|request|change|starting|previous|prev|idempotency|sync|cancel\w*|lifecycle|action|"
    r"public(?:_?key)?|recv|primary|foreign|partition|sort|cache|row|object|index|unique|composite|hash|range|map|dict|lookup|s3|"
    r"translation|message|i18n|l10n|locale|config|settings|event|hot|arrow|access_?log)[\s_-]{0,2}$",
    re.IGNORECASE,
)

# What a value looks like that names something instead of being it.
_REFERENCE = Lazy(
    r"[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+"  # the name of an environment variable
    r"|(?:sha\d{1,3}|md5|h1)[:-].*"  # the hash of a lock file
    r"|[a-z][a-z0-9+.-]*://.*"
    r"|[\d.,:/ -]+"  # numbers, dates, versions
    r"|(?:self|this|args|config|settings|options|request|req|ctx|context|event|process|os|data|params|user|opts)\.[\w.]+"
    r"|\.?/[\w./-]*|~/.*|[\w.-]+/[\w.-]+/[\w./-]*"  # paths
    r"|[\w.+-]+@[\w-]+\.[\w.]+"  # mail addresses
    r"|[A-Za-z]\w{0,11}(?:\.\w{1,12}){2,}"  # dotted names
    r"|arn:.*"
    r"|[\w.-]+\.(?:py|js|ts|json|ya?ml|txt|pem|key|crt|md|html?|whl|gz|zip|go|rs|java|c|h|com|org|net|io|toml|lock)"
)


_YAML_KEY = Lazy(r"[ ]{0,20}(?:- )?[A-Za-z][\w.-]{0,40}:[ ]{1,8}")


_providers: Named | None = None


def _named() -> Named:
    global _providers
    if _providers is None:
        _providers = Named()
    return _providers


# What patterns, templates and mark-up have and keys do not.
_CODE = Lazy(r"[|{}()<>\[\]\\*]")


# A word with a few digits, as people make passwords: hunter22, blue42horse. Algorithms have such names, too, and
# examples are called password1.
_PEOPLES = Lazy(
    r"(?!(?i:.*(?:sha|md|utf|pbkdf|pkcs|oauth|base|argon|aes|rsa|http|ipv|bit|lib|py|win)\d))"
    r"(?!(?i:(?:my|the|your|new|old|some|db|api|bad|good|valid|invalid|wrong|right|correct|other|test|type|arg|param|var|field|user|"
    r"name|key|pass|passwd|password|pwd|example|secret|token|value|string|str|text|item|step|page){1,4}\d))"
    r"[A-Za-z]{3,20}\d{1,6}(?:[A-Za-z]{0,20}[!?@#$%&*.+-]{0,2}|[A-Za-z]{1,20}\d{0,6})"
)


class Assignment(Rule):
    """A name that says "secret", an operator, and a value that looks like one."""

    __slots__ = ("password", "weak")

    def __init__(
        self, name: str, literals: tuple[str, ...], *, password: bool = False, weak: bool = False
    ) -> None:
        super().__init__(name, literals, "", specific=False)
        self.password = password
        self.weak = weak

    def match(self, text: str, at: int, literal: str, free: int = -1) -> Hit | None:
        """Return the assigned value, as (start, end, name, specific), or None."""
        rest = _REST.match(text, at + len(literal))
        assert rest is not None  # every part of it may be empty
        place = rest.end()
        if text[place : place + 1] not in _NEXT:
            return None
        if literal in _SHORT_PASSWORDS and rest[1][:1].isalpha():
            return None  # passive, passenger
        assign = _ASSIGN.match(text, place)
        if assign is not None:
            place = assign.end()
        elif text[place] == " " and _is_flag(text, at):
            place += 1
        else:
            return None
        found = _VALUE.match(text, place)
        if found is None:
            return None
        group = next(name for name in "duste" if found[name] is not None)
        start, end = found.span(group)
        while (
            group == "u"
            and end - start > 6
            and text[end - 1] in (".:" if self.password else ".:!?")
            and not text[end : end + 1].strip()
        ):
            end -= 1  # the end of a sentence
        value = text[start:end]
        if group == "u" and literal in value:
            return None  # one keyword after another, not a value
        if is_weak(value) or _REFERENCE.fullmatch(value) or self._named_otherwise(text, at, literal, rest[1]):
            return None
        operator = assign[0].strip() if assign else ""
        if operator == "," and not _is_argument(text, at):
            return None
        random = random_part(value)
        if random >= 8:
            provider = _named().name(text[max(0, at - 40) : start], value)
            if provider:
                return start, end, provider, True
        if not self.password and _CODE.search(value):
            return None
        if group == "u":
            return (start, end, self.name, False) if self._bare(text, literal, start, end, operator) else None
        if " " in value and (not self.password or value.count(" ") > 3 or random < 8):
            return None
        if operator == ":" and _is_type(text, at):
            return None
        strict = found["call"] is not None or operator in (",", "(")
        return (start, end, self.name, False) if self._secret(value, strict=strict) else None

    def _named_otherwise(self, text: str, at: int, literal: str, tail: str) -> bool:
        """Tell whether the words around the keyword make something else of it: a path, a type, a next page's token."""
        if tail and _TAIL.search(tail):
            return True
        return not self.password and bool(_HEAD.search(text, max(0, at - 16), at + (literal[0] in "_- ")))

    def _bare(self, text: str, literal: str, start: int, end: int, operator: str) -> bool:
        """Judge a value without quotes: in code it is mostly a name, in an environment file a secret."""
        following = text[end : end + 1]
        if following in ("(", "[", "{") or (following == "\\" and text[end + 1 : end + 2] not in "nrt\"'"):
            return False
        # NAME=value and name: value to the end of the line are no code.
        tight = (
            operator in ("=", ":", "")
            and (literal.isupper() or text[start - 1] in "=\"'")
            and (not following or following in "\n\r\"'&\\ ")
        ) or (operator == ":" and (not following or following in "\n\r") and _is_yaml(text, start, end))
        return self._secret(text[start:end], strict=not tight)

    def _secret(self, value: str, *, strict: bool) -> bool:
        length = len(value)
        kinds = classes(value)
        random = random_part(value)
        if self.password and not strict:
            return length >= 6 and (
                (kinds >= 3 and random >= 1)
                or (kinds >= 2 and random >= 4)
                or random >= 10
                or (length >= 7 and _PEOPLES.fullmatch(value) is not None)
            )
        if length < 8 or len(set(value)) < 6:
            return False
        if self.weak:  # many a key opens nothing
            return length >= 16 and kinds >= 2 and random >= max(12, length * 0.6)
        if strict and kinds < 2:
            return random >= 16
        return random >= max(8, length * 0.4) or (not strict and kinds >= 3 and random >= 6)


def _is_flag(text: str, at: int) -> bool:
    """Tell whether the name at ``at`` belongs to a command line option such as ``--db-password``."""
    start = at
    while start > 0 and at - start < 40 and (text[start - 1].isalnum() or text[start - 1] in "-_"):
        start -= 1
    return text[start : start + 2] == "--"


def _is_yaml(text: str, start: int, end: int) -> bool:
    """Tell whether a value, which has a digit, follows nothing but a name in its line, as in a YAML file."""
    line = text[max(text.rfind("\n", 0, start) + 1, start - 60) : start]
    return _YAML_KEY.fullmatch(line) is not None and any(c.isdigit() for c in text[start:end])


def _is_type(text: str, at: int) -> bool:
    """Tell whether the quoted name at ``at`` is that of a type, as in ``"AWS::IAM::AccessKey": "..."``."""
    start = at
    while start > 0 and at - start < 80 and (text[start - 1].isalnum() or text[start - 1] in "_:"):
        start -= 1
    return "::" in text[start:at] and text[start - 1 : start] in ('"', "'")


def _is_argument(text: str, at: int) -> bool:
    """Tell whether the quoted name at ``at`` comes first in a call or pair, as in ``set("api_key", ...)``."""
    start = at
    while start > 0 and at - start < 40 and (text[start - 1].isalnum() or text[start - 1] in "-_. "):
        start -= 1
    return text[start - 1 : start] in ('"', "'", "`") and text[start - 2 : start - 1] == "("


def _userinfo(text: str, start: int, end: int) -> bool:
    value = text[start:end]
    return not is_weak(value) and not value.isdigit()


def _bearer(text: str, start: int, end: int) -> bool:
    value = text[start:end]
    return not is_weak(value) and (random_part(value) >= 6 or (len(value) >= 16 and classes(value) >= 3))


def _quoted_password(text: str, start: int, end: int) -> bool:
    value = text[start:end]
    return not is_weak(value) and (classes(value) >= 2 or random_part(value) >= 6)


def generic_rules() -> list[Rule]:
    """Return the rules for likely secrets."""
    return [
        Rule("url-password", ("://",), r"://[^\s/?#@:\"'<>\\]{0,100}:(?P<secret>[^\s/?#\"'<>\\]{3,300})@[A-Za-z0-9\[]", _userinfo, specific=False),
        Rule("url-token", ("://",), r"://(?P<secret>[A-Za-z0-9_.~-]{20,300})@[A-Za-z0-9\[]", _bearer, specific=False),
        Rule("basic-auth", spellings(("basic",)), r"(?i:basic)\s{1,3}(?P<secret>[A-Za-z0-9+/]{8,400}={0,2})(?![A-Za-z0-9+/=])", basic_credentials, specific=False),
        Rule("bearer", spellings(("bearer",)), r"(?i:bearer)(?:\s{1,3}|%20)(?:\\?[\"'])?(?P<secret>[A-Za-z0-9_.~+/=-]{12,4000})", _bearer, specific=False),
        Rule("authorization", spellings(("authorization",)), r"(?<![A-Za-z0-9:])(?i:authorization)\\?[\"']?\s{0,3}[:=,]\s{0,3}(?:\\?[\"'])?(?:(?i:token|apikey|api-key|key|splunk|digest|signature|sso-key|discogs|bot|ghost|jwt|mac|hawk|negotiate|oauth|genie\w{3}|session|pat|zoho-oauthtoken|nlauth)(?:\s{1,3}|=))?(?:token=\\?[\"']?)?(?P<secret>(?!AWS4-HMAC)[A-Za-z0-9_.~+/=:-]{12,4000})", _bearer, specific=False),
        Rule("cookie", ("Cookie:", "cookie:", "COOKIE:"), r"(?i:cookie):\s{0,3}[\w.-]{1,60}=(?P<secret>[^\s;\"'\\]{16,2000})", _bearer, specific=False),
        Rule("netrc", ("login ",), r"login\s{1,4}\S{1,100}\s{1,40}password\s{1,4}(?P<secret>\S{4,200})", _quoted_password, specific=False),
        Rule("curl-user", (" -u ", " --user ", " -u", " --user="), r"\s(?:-u|--user)[ =]?[\"']?[^\s:\"'$]{1,80}:(?P<secret>[^\s\"']{4,200})", _quoted_password, specific=False),
        Rule("sshpass", ("sshpass",), r"sshpass\s{1,3}-p\s{0,3}[\"']?(?P<secret>[^\s\"']{4,200})", _quoted_password, specific=False),
        Assignment("password", (*_PASSWORDS, *_SHORT_PASSWORDS), password=True),
        Assignment("generic", _TOKENS),
        Assignment("generic", _KEYS, weak=True),
    ]  # fmt: skip
