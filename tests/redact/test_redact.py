"""The secret rules: what is found in which surroundings, what is left alone, and that doing it twice changes nothing."""

from __future__ import annotations

import base64
import copy
import importlib.util
import json
import os
import pickle
import random
import re
import stat
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hookturn import redact as public
from hookturn.redact import RULES, Finding, Secret, find, redact, redact_value, workspace_key

_spec = importlib.util.spec_from_file_location("redact_samples", Path(__file__).with_name("samples.py"))
assert _spec is not None and _spec.loader is not None
samples = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(samples)

MARK = re.compile(r"\[REDACTED:[a-z0-9-]{1,40}:[0-9a-f]{8}\]")
KEY = b"k" * 32


def b64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def jwt(chance: random.Random) -> str:
    header = base64.urlsafe_b64encode(b'{"alg":"HS256","typ":"JWT"}').decode().rstrip("=")
    return f"{header}.{samples.fill('eyJ{url:60}.{url:43}', chance)}"


def private_key(kind: str = "RSA ", newline: str = "\n") -> str:
    body = newline.join(samples.fill("{b64:64}", random.Random(n)) for n in range(12))
    return f"-----BEGIN {kind}PRIVATE KEY-----{newline}{body}{newline}-----END {kind}PRIVATE KEY-----"


# -- recall -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("provider", samples.TOKENS)
def test_a_providers_tokens_are_found_everywhere(provider: str) -> None:
    chance = random.Random(provider)
    for template in samples.TOKENS[provider]:
        for context in samples.CONTEXTS:
            token = samples.fill(template, chance)
            text = context.format(name="my_value", NAME="MY_VALUE", token=token)
            found = [item for item in find(text) if item.specific]
            assert [item.rule for item in found] == [provider], text
            assert token[-16:] not in redact(text), text
            # Nothing but the token is taken out.
            assert redact(text).startswith(text[: found[0].start])
            assert redact(text).endswith(text[found[0].end :])


def test_there_are_many_providers() -> None:
    assert len({rule.name for rule in RULES if rule.specific}) >= 150
    assert len(samples.TOKENS) + len(samples.NAMED) >= 100


@pytest.mark.parametrize("name", samples.NAMED)
@pytest.mark.parametrize(
    "context",
    [
        '{n}_key = "{t}"',
        "{N}_KEY={t}",
        '{{"{n}_token": "{t}"}}',
        "the {w} key is {t}.",
        'env["{N}_KEY"] = "{t}"',
    ],
)
def test_secrets_without_a_form_are_found_beside_their_providers_name(name: str, context: str) -> None:
    chance = random.Random(name)
    for template in samples.NAMED[name]:
        token = samples.fill(template, chance)
        text = context.format(n=name, N=name.upper(), w=name.replace("_", " "), t=token)
        found = find(text)
        assert [text[item.start : item.end] for item in found] == [token], text
        assert found[0].specific


NAMES = ["password", "DB_PASSWORD", "api_key", "X-API-KEY", "secret", "clientSecret", "AUTH_TOKEN", "access-token", "apiKey",
         "private_key", "passwd", "PGPASSWORD", "db_pass", "encryption_key"]  # fmt: skip
VALUES = ["{b62:16}", "{b62:32}", "{hex:32}", "{hex:40}", "{url:43}", "{low:24}", "{b62:12}@#", "{uuid:36}"]
ASSIGNMENTS = ['{n} = "{v}"', "{n}: {v}\n", "{n}={v}\n", "export {n}={v}", '{{"{n}": "{v}"}}', "'{n}' => '{v}'", '{n} := "{v}"',
               "--{n}={v}", "--{n} {v}", "?{n}={v}&a=b", "<{n}>{v}</{n}>", 'const {n}: string = "{v}";', 'env["{n}"] = "{v}"',
               'set("{n}", "{v}")', "-e {n}={v}", '{n} = \\"{v}\\"', "- name: {n}\n  value: {v}", 'let {n} = String::from("{v}");',
               "my {n} is {v}."]  # fmt: skip


def test_most_assigned_secrets_are_found() -> None:
    chance = random.Random(1)
    missed = []
    for name in NAMES:
        for value in VALUES:
            for assignment in ASSIGNMENTS:
                secret = samples.fill(value, chance)
                text = assignment.format(n=name, v=secret)
                if secret in redact(text):
                    missed.append(text)
    assert len(missed) <= 0.05 * len(NAMES) * len(VALUES) * len(ASSIGNMENTS), missed[:20]


@pytest.mark.parametrize(
    ("text", "secret"),
    [
        ("postgres://admin:S3cr3tP4ss@db.example.com:5432/app", "S3cr3tP4ss"),
        ("redis://:mysupersecretwords9@cache:6379/0", "mysupersecretwords9"),
        ("https://bot:aB3dE5@[::1]:8443/x", "aB3dE5"),
        ("Authorization: Bearer abcDEF123456ghiJKL789", "abcDEF123456ghiJKL789"),
        (f"Authorization: Basic {b64('alice:s3cret-One!')}", b64("alice:s3cret-One!")),
        ('{"Authorization": "Token aB3dE5gH7jK9mN1pQ3"}', "aB3dE5gH7jK9mN1pQ3"),
        ("curl -u alice:s3cret-One! https://example.org", "s3cret-One!"),
        ("machine example.org login alice password s3cret-One!", "s3cret-One!"),
        ("sshpass -p s3cretOne9 ssh host", "s3cretOne9"),
        (
            "PrivateKey = " + samples.fill("{b64:42}", random.Random(3)) + "A=",
            samples.fill("{b64:42}", random.Random(3)),
        ),
        (json.dumps({"auths": {"r.io": {"auth": b64("alice:s3cret-One!")}}}), b64("alice:s3cret-One!")),
        ("Set-Cookie: sid=aB3dE5gH7jK9mN1pQ3rS; Path=/", "aB3dE5gH7jK9mN1pQ3rS"),
        ("//registry.npmjs.org/:_password=aB3dE5gH7jK9mN1p", "aB3dE5gH7jK9mN1p"),
        ('password = "Tr0ub4dor&3"', "Tr0ub4dor&3"),
    ],
)
def test_secrets_in_urls_headers_and_commands(text: str, secret: str) -> None:
    assert secret in text
    assert secret not in redact(text)


PEOPLES = ["hunter2", "hunter22", "Summer2024!", "correcthorse1", "monkey123", "dragonfire7", "trustno1", "michael1987",
           "blue42horse", "qwerty123", "Winter2023", "superman77", "jessica01", "tr0ub4dor", "L3tM3In"]  # fmt: skip


@pytest.mark.parametrize("password", PEOPLES)
@pytest.mark.parametrize(
    "form",
    [
        "password = '{}'",
        'passwd="{}"',
        "DB_PASSWORD={}",
        "db:\n  password: {}\n",
        '{{"password": "{}"}}',
        "$pwd = '{}';",
    ],
)
def test_passwords_as_people_make_them_are_found(password: str, form: str) -> None:
    assert password.rstrip("!") not in redact(form.format(password))


@pytest.mark.parametrize(
    "text",
    [
        'password_hash = "sha256"', 'password = "oauth2"', 'password = "password1"', "password: SecretBytes\n", "password: utf8\n",
        'PASSWORD = "mypass1"', 'MovedAttribute("HTTPPasswordMgr", "urllib2", "x")', "password: str1\n", 'pwd = "testuser1"',
        '"AWS::IAM::AccessKey": "62d91b17309e76c8"', "'Cloud::Auth::Secret': 'c85175a4ebcce361'", "passwd: ${DB_PASS2}\n",
    ],
)  # fmt: skip
def test_what_only_looks_like_a_persons_password_is_left(text: str) -> None:
    assert find(text) == []


def test_json_web_tokens() -> None:
    token = jwt(random.Random(4))
    assert redact(f"got {token} today", KEY).startswith("got [REDACTED:jwt:")
    assert token.split(".")[2] not in redact(f"got {token} today")
    assert find("eyJhbGciOiJub25lIn0 is only a header") == []


@pytest.mark.parametrize("kind", ["", "RSA ", "EC ", "OPENSSH ", "ENCRYPTED ", "DSA "])
@pytest.mark.parametrize("newline", ["\n", "\r\n", "\\n", "\n    "])
def test_private_keys(kind: str, newline: str) -> None:
    text = f"before\n{private_key(kind, newline)}\nafter"
    assert re.fullmatch(r"before\n\[REDACTED:private-key:[0-9a-f]{8}\]\nafter", redact(text))


def test_a_private_key_that_is_cut_off() -> None:
    text = private_key()[:400]
    assert "AAAA" not in redact(text) and len(redact(text)) < 60


def test_an_encrypted_key_with_headers() -> None:
    key = private_key().replace(
        "KEY-----\n", "KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,0123456789ABCDEF\n\n", 1
    )
    assert MARK.fullmatch(redact(key))


def test_a_right_checksum_counts_more_than_looks() -> None:
    from zlib import crc32

    digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
    body = "x" * 30
    number, check = crc32(body.encode()), ""
    while number:
        number, rest = divmod(number, 62)
        check = digits[rest] + check
    right = "ghp_" + body + check.rjust(6, "0")
    assert [item.rule for item in find(right)] == ["github"]
    assert find("ghp_" + "x" * 36) == []


# -- what is no secret --------------------------------------------------------------------------------

INNOCENT = """
"integrity": "sha512-{b64:86}=="
resolved "https://registry.npmjs.org/js-tokens/-/js-tokens-4.0.0.tgz#{hex:40}"
github.com/golang-jwt/jwt v3.2.2+incompatible h1:{b64:43}=
    {{file = "tokenize_rt-5.2.0-py2.py3-none-any.whl", hash = "sha256:{hex:64}"}},
{{ url = "https://files.pythonhosted.org/packages/ab/cd/secretstorage-3.3.3.tar.gz", hash = "sha256:{hex:64}", size = 19739 }}
checksum = "{hex:64}"
commit {hex:40}
index {hex:7}..{hex:7} 100644
request id {uuid:36}
ETag: "{hex:32}"
max_tokens=4096, input_tokens: 12345, "token_count": 7
password = os.environ["DB_PASSWORD"]
password = get_password(user)
token = self.tokens[0]
token: Optional[str] = None
api_key = config.get("API_KEY_NAME")
def login(user: str, password: str = "") -> Token:
PASSWORD=${{DB_PASSWORD}}
password: "{{{{ vault_password }}}}"
password: <your password>
API_KEY=your_api_key_here
SECRET_KEY=changeme
token = "xxxxxxxxxxxxxxxx"
if token == "identifier" or token.type == "STRING":
secret_name = "projects/x/secrets/my-secret"
password_file = "/run/secrets/db_password_1"
token_url = "https://auth.example.org/oauth2/v1/token"
"nextPageToken": "CAUQAA8f7d6e5c4b3a2"
primary_key = "user_id_2"
The password is required and must have 12 characters.
The token is valid for 3600 seconds; see https://user@example.org/path.
git@github.com:hookturn/hookturn.git
http://localhost:8080/a:b@c
data:image/png;base64,{b64:200}
<public-key>{b64:64}</public-key>
ssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAABAQ{b64:200} me@host
-----BEGIN CERTIFICATE-----
BEGIN_MARKER = "-----BEGIN RSA PRIVATE KEY-----"
class PasswordResetTokenGenerator(TokenGenerator):
from cryptography.hazmat.primitives.serialization import load_pem_private_key
keyring.get_password("service", "username")
""".strip().split("\n")


@pytest.mark.parametrize("template", INNOCENT)
def test_ordinary_text_is_left_alone(template: str) -> None:
    chance = random.Random(template)
    for _ in range(20):
        text = (
            samples.fill(template.replace("{{", "\1").replace("}}", "\2"), chance)
            .replace("\1", "{")
            .replace("\2", "}")
        )
        assert find(text) == [], text


def test_ordinary_source_has_next_to_no_findings() -> None:
    folder = Path(os.__file__).parent
    size = count = 0
    for path in sorted(folder.glob("*.py")) + sorted(folder.glob("*/*.py")):
        if "test" in path.parts or "site-packages" in path.parts or "tests" in path.parts:
            continue
        text = path.read_text("utf-8", "replace")
        size += len(text)
        count += len(find(text))
        if size > 8_000_000:
            break
    assert size > 1_000_000
    assert count <= 0.5 * size / 1_000_000


# -- marks and keys -----------------------------------------------------------------------------------


def test_equal_secrets_have_equal_marks_under_one_key() -> None:
    token = samples.fill("ghp_{b62:36}", random.Random(6))
    one = redact(f"a={token} b={token}", KEY)
    marks = MARK.findall(one)
    assert len(marks) == 2 and len(set(marks)) == 1
    assert redact(token, KEY) == marks[0]
    assert redact(token, b"other") != marks[0]
    assert redact(token) == redact(token)


def test_the_marks_of_a_process_mean_nothing_in_another() -> None:
    token = samples.fill("ghp_{b62:36}", random.Random(6))
    code = f"from hookturn.redact import redact; print(redact({token!r}))"
    other = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.strip()
    assert MARK.fullmatch(other) and other != redact(token)


def test_findings_are_in_order_and_apart() -> None:
    chance = random.Random(7)
    text = " ".join(samples.fill(templates[0], chance) for templates in samples.TOKENS.values())
    found = find(text)
    assert len(found) >= len(samples.TOKENS)
    assert all(one.end <= two.start for one, two in pairwise(found))
    assert found[0] == Finding(found[0].rule, found[0].start, found[0].end, found[0].specific)


PIECES = st.sampled_from(
    [samples.fill(template, random.Random(8)) for templates in samples.TOKENS.values() for template in templates]
    + ["password=", "token: ", "secret = '", '"api_key": "', "://a:", "@host", "'", '"', " ", "\n", "\\n", "=", "&", ".", "-",
       "Bearer ", "Authorization: ", "aB3$xYz9kQ", "[REDACTED:", "[REDACTED:github:0123abcd]", "]", "eyJ", "-----BEGIN ",
       "datadog_api_key=", "\ud800", "\0", "İ", "abc", "x" * 40]
)  # fmt: skip


@settings(max_examples=300)
@given(st.lists(PIECES | st.text(max_size=8), max_size=12).map("".join))
def test_doing_it_twice_changes_nothing(text: str) -> None:
    once = redact(text, KEY)
    assert redact(once, KEY) == once
    assert find(once) == []


@given(st.text())
def test_any_text_is_taken(text: str) -> None:
    for item in find(text):
        assert 0 <= item.start < item.end <= len(text)
    assert redact(redact(text, KEY), KEY) == redact(text, KEY)


@pytest.mark.parametrize(
    "piece",
    [
        "token=",
        "eyJ.",
        "-----BEGIN PRIVATE KEY-----",
        'password = "',
        "://x:",
        "datadog key ",
        "sk-",
        "-us",
        "SK",
        " key=",
        "'",
    ],
)
def test_hostile_repetition_ends(piece: str) -> None:
    text = piece * (300_000 // len(piece))
    assert len(redact(text)) > 0


# -- data ---------------------------------------------------------------------------------------------


def test_nested_data_is_walked_and_so_are_its_keys() -> None:
    token = samples.fill("ghp_{b62:36}", random.Random(9))
    data = {"a": [{"b": f"x {token}"}, (token, 1, None, True, 2.5)], token: "under it", "n": 3}
    clean = redact_value(data, KEY)
    mark = redact(token, KEY)
    assert clean == {"a": [{"b": f"x {mark}"}, [mark, 1, None, True, 2.5]], mark: "under it", "n": 3}
    assert data["a"][0]["b"] == f"x {token}"
    assert redact_value(clean, KEY) == clean


@pytest.mark.parametrize(
    "name",
    [
        "password",
        "Authorization",
        "API_KEY",
        "x-api-key",
        "clientSecret",
        "dbPassword",
        "access_token",
        "cookie",
        "private-key",
    ],
)
def test_a_value_under_a_secrets_name_is_replaced_whole(name: str) -> None:
    clean = redact_value({name: "ab", "other": "ab"}, KEY)
    assert MARK.fullmatch(clean[name]) and clean["other"] == "ab"
    assert MARK.fullmatch(redact_value({name: ["ab"]}, KEY)[name][0])
    assert redact_value({name: {"expires": 5, "who": "me"}}, KEY)[name] == {"expires": 5, "who": "me"}
    assert redact_value({name: ""}, KEY) == {name: ""}


@pytest.mark.parametrize(
    "name", ["max_tokens", "input_tokens", "tokenizer", "password_hint", "secretary", "keyboard", "path"]
)
def test_other_names_are_no_secrets(name: str) -> None:
    assert redact_value({name: "words"}, KEY) == {name: "words"}


def test_a_known_format_keeps_its_name_under_a_secrets_name() -> None:
    token = samples.fill("ghp_{b62:36}", random.Random(10))
    assert redact_value({"token": token}, KEY)["token"] == redact(token, KEY)


# -- Secret and the workspace's key -------------------------------------------------------------------


def test_a_secret_hides_itself_everywhere() -> None:
    secret = Secret("hunter2")
    for shown in (repr(secret), str(secret), f"{secret}", f"{secret:>5}", f"{secret!s}", json.dumps({"a": secret}),
                  repr({"a": [secret]}), "".join([secret]), secret[:], secret.lower()):  # fmt: skip
        assert "hunter2" not in shown
    assert str(secret).startswith("[REDACTED:secret:")
    assert str(Secret("x", name="slack-token")).startswith("[REDACTED:slack-token:")
    assert secret.reveal() == "hunter2"
    assert isinstance(secret, str)


def test_equal_secrets_are_equal_and_copies_keep_them() -> None:
    assert Secret("a") == Secret("a") != Secret("b")
    assert hash(Secret("a")) == hash(Secret("a"))
    assert Secret("a") != "a"
    data = {"token": Secret("a")}
    assert copy.deepcopy(data)["token"].reveal() == "a"
    assert copy.copy(data["token"]).reveal() == "a"


def test_a_pickled_secret_is_its_mark() -> None:
    assert b"hunter2" not in pickle.dumps(Secret("hunter2"))
    assert pickle.loads(pickle.dumps(Secret("hunter2"))) == str(Secret("hunter2"))


def test_redacting_a_secret_changes_nothing() -> None:
    assert redact(Secret("hunter2")) == str(Secret("hunter2"))


def test_a_workspaces_key_is_made_once_and_private(tmp_path: Path) -> None:
    folder = tmp_path / "state"
    key = workspace_key(folder)
    assert len(key) == 32
    assert workspace_key(folder) == key
    assert workspace_key(tmp_path / "other") != key
    [file] = folder.iterdir()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_a_key_whose_maker_was_killed_is_made_anew(tmp_path: Path) -> None:
    workspace_key(tmp_path / "s")
    [file] = (tmp_path / "s").iterdir()
    file.write_bytes(file.read_bytes()[:10])
    key = workspace_key(tmp_path / "s")
    assert len(key) == 32 and workspace_key(tmp_path / "s") == key


def test_processes_that_start_at_once_get_one_key(tmp_path: Path) -> None:
    code = "import sys; from hookturn.redact import workspace_key; print(workspace_key(sys.argv[1]).hex())"
    words = [sys.executable, "-c", code, str(tmp_path / "state")]
    children = [subprocess.Popen(words, stdout=subprocess.PIPE, text=True) for _ in range(8)]
    assert len({child.communicate()[0] for child in children}) == 1


def test_a_linked_key_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "state").mkdir()
    (tmp_path / "state" / "redact.key").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OSError):
        workspace_key(tmp_path / "state")
    assert not (tmp_path / "elsewhere").exists()


def test_the_module_names_what_is_public_and_loads_nothing_early() -> None:
    assert set(public.__all__) == {
        "RULES",
        "Finding",
        "Rule",
        "Secret",
        "find",
        "redact",
        "redact_value",
        "workspace_key",
    }
    assert all(getattr(public, name) is not None for name in public.__all__)
    code = "import sys, hookturn.redact; print(sorted({'re', 'hmac', 'base64', 'hookturn.redact.providers'} & set(sys.modules)))"
    env = {**os.environ, "PYTHONPATH": str(Path(public.__file__).parents[2])}
    out = subprocess.run(
        [sys.executable, "-S", "-c", code], capture_output=True, text=True, env=env, check=True
    )
    assert out.stdout.strip() == "[]"


def test_every_rule_has_its_literal_in_each_match() -> None:
    for rule in RULES:
        assert rule.literals and all(len(literal) >= 2 for literal in rule.literals), rule
        assert re.fullmatch(r"[a-z0-9-]{1,40}", rule.name), rule
