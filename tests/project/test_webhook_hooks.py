"""``run: {webhook: ...}`` in configurations: what is checked, who may allow what, what trust shows."""

from __future__ import annotations

import http.server
import json
import re
import threading

import pytest

from hookturn import events
from hookturn.paths import config_root
from hookturn.project.model import read_hooks, read_model
from hookturn.project.yaml_document import read_yaml

H = "hooks:\n  - name: h\n    timings: [pre_tool_execution]\n"


def problems(text, layer="user"):
    model = read_model(read_yaml(text.encode(), "hookturn.yaml"), layer, "/")
    read_hooks(model)
    return model, [(problem.path, problem.cause, problem.severity) for problem in model.problems]


def of_run(run):
    model, found = problems(f"{H}    run: {{webhook: {run}}}\n")
    assert all(path.startswith("hooks[0].run.webhook") for path, _, _ in found), found
    return model, [
        (path.removeprefix("hooks[0].run.webhook").removeprefix("."), cause, severity)
        for path, cause, severity in found
    ]


@pytest.mark.parametrize(
    ("run", "place", "cause"),
    [
        ("x", "", "expected a mapping with a url, got 'x'"),
        ("{}", "", "the webhook has no url"),
        ("{url: 7}", "url", "expected a URL, got 7"),
        ("{url: 'https://example.com', urll: x}", "urll", "unknown key 'urll' (did you mean 'url'?)"),
        ("{url: 'https://example.com', secrets: [x]}", "secrets", "unknown key 'secrets'"),
        ("{url: 'https://user@example.com'}", "url", "the URL holds a user or password"),
        ("{url: 'https://example.com', headers: x}", "headers", "expected a mapping, got 'x'"),
        ("{url: 'https://example.com', headers: {X: 1}}", "headers.X", "expected a text, got 1"),
        ("{url: 'https://example.com', headers: {Host: x}}", "headers.Host", "is set by the sender itself"),
        ('{url: "https://example.com", headers: {X: "a\\r\\nY: b"}}', "headers.X", "holds a line break or NUL"),
        ("{url: 'https://example.com', headers: {x-a: 1a, X-A: b}}", "headers.X-A", "is given twice"),
        ("{url: 'https://example.com', headers: {webhook-id: x}}", "headers.webhook-id", "belongs to the signature"),
        ("{url: 'https://example.com', secret: []}", "secret", "expected a secret or a list of them, got a list"),
        ("{url: 'https://example.com', secret: [1]}", "secret[0]", "expected a secret, got 1"),
        ("{url: 'https://example.com', secret: whsec_x}", "secret", "is not of the form whsec_<base64>"),
        ("{url: 'https://example.com', method: GET}", "method", "expected POST or PUT or PATCH, got 'GET'"),
        ("{url: 'https://example.com', method: post}", "method", "(did you mean 'POST'?)"),
        ("{url: 'https://example.com', method: [POST]}", "method", "got a list"),
        ("{url: 'https://example.com', retries: -1}", "retries", "expected a whole number from 0 to 100, got -1"),
        ("{url: 'https://example.com', retries: true}", "retries", "got True"),
        ("{url: 'https://example.com', timeout: 0}", "timeout", "expected the seconds of one try, got 0"),
        ("{url: 'https://example.com', timeout: 1s}", "timeout", "got '1s'"),
        ("{url: 'https://example.com', observe: 1}", "observe", "expected true or false, got 1"),
        ("{url: 'https://example.com', redact: 'no'}", "redact", "expected true or false, got 'no'"),
    ],
)  # fmt: skip
def test_what_can_be_wrong(run, place, cause):
    model, found = of_run(run)
    assert len(found) == 1
    assert found[0][0] == place and cause in found[0][1] and found[0][2] == "error"
    assert model.hooks == []


@pytest.mark.parametrize(
    "run",
    [
        "{url: 'https://example.com'}",
        "{url: {env: HOOK_URL}, headers: {Authorization: {file: token}}, secret: {command: [pass, hook]}}",
        "{url: 'https://example.com', secret: [{env: NEW}, {env: OLD}], method: PUT, retries: 0, timeout: 0.5}",
        "{url: 'https://example.com', observe: true, redact: false}",
    ],
)
def test_what_is_right(run):
    model, found = of_run(run)
    assert found == [] and len(model.hooks) == 1


def test_secrets_that_are_written_out_are_warned_of():
    secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
    model, found = of_run(f"{{url: 'https://example.com', headers: {{Authorization: x}}, secret: {secret}}}")
    assert [(place, severity) for place, _, severity in found] == [
        ("headers.Authorization", "warning"),
        ("secret", "warning"),
    ]
    assert len(model.hooks) == 1


@pytest.mark.parametrize("option", ["guard: true", "on_failure: deny"])
def test_an_observer_decides_nothing(option):
    _, found = problems(
        f"{H}    run: {{webhook: {{url: 'https://example.com', observe: true}}}}\n    {option}\n"
    )
    assert "nobody waits for a webhook with 'observe: true'" in found[0][1]


@pytest.mark.parametrize(
    ("text", "path", "cause"),
    [
        ("webhooks: x\n", "webhooks", "expected a mapping, got 'x'"),
        ("webhooks: {allowed: []}\n", "webhooks.allowed", "unknown key 'allowed' (did you mean 'allow'?)"),
        ("webhooks: {allow: {}}\n", "webhooks.allow", "expected a list of addresses, got a mapping"),
        ("webhooks: {allow: [1]}\n", "webhooks.allow[0]", "expected a text, got 1"),
        ("webhooks: {allow: ['127.1']}\n", "webhooks.allow[0]", "four decimal numbers"),
        ("webhooks: {allow: ['10.0.0.1/8']}\n", "webhooks.allow[0]", "has host bits set"),
        ("webhooks: {proxy: 1}\n", "webhooks.proxy", "expected a text, got 1"),
        (
            "webhooks: {proxy: 'https://proxy:1'}\n",
            "webhooks.proxy",
            "a proxy is written as http://host:port",
        ),
        ("webhooks: {proxy: 'http://u:p@proxy:1'}\n", "webhooks.proxy", "holds a user or password"),
    ],
)
def test_what_can_be_wrong_with_the_network(text, path, cause):
    _, found = problems(text)
    assert len(found) == 1 and found[0][0] == path and cause in found[0][1]


def test_one_bad_entry_costs_only_itself():
    model, found = problems("webhooks: {allow: ['127.1', '10.0.0.0/8'], proxy: 'http://proxy:3128'}\n")
    assert len(found) == 1
    assert model.network == {"allow": ["10.0.0.0/8"], "proxy": "http://proxy:3128"}


def test_a_projects_file_allows_nothing():
    model, found = problems("webhooks: {allow: ['127.0.0.1']}\n", layer="project")
    assert "only your own and the managed configuration" in found[0][1]
    assert model.network == {}


# -- in force ---------------------------------------------------------------------------------------


@pytest.fixture
def server():
    """A server that denies what it is asked."""
    got = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            got.append((dict(self.headers), json.loads(self.rfile.read(int(self.headers["Content-Length"])))))
            body = b'{"deny": "remote"}'
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *rest):
            """Say nothing."""

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as running:
        thread = threading.Thread(target=running.serve_forever, args=(0.01,))
        thread.start()
        running.got = got
        yield running
        running.shutdown()
        thread.join()


def fire(project):
    with project.assemble().engine as engine:
        return engine.fire(events.PreToolExecution(tool="bash", args={"command": "ls"}, session_id="s"))


def webhook(server, **more):
    run = {"url": f"http://127.0.0.1:{server.server_port}/", **more}
    return f"{H}    run: {{webhook: {json.dumps(run)}}}\n"


def test_a_users_webhook(project, server, monkeypatch):
    monkeypatch.setenv("HOOK_TOKEN", "opensesame")
    text = webhook(server, headers={"X-Token": {"env": "HOOK_TOKEN"}})
    project.user(f"{text}webhooks: {{allow: ['127.0.0.1:{server.server_port}']}}\n")
    assert fire(project).reason == "remote"
    assert server.got[0][0]["X-Token"] == "opensesame"
    assert "opensesame" not in json.dumps(server.got[0][1])


def test_without_an_allow_entry(project, server):
    project.user(webhook(server))
    assembled = project.assemble()
    (problem,) = [item for item in assembled.problems if item.severity == "error"]
    assert "127.0.0.1 is this machine itself, where no webhook may go" in problem.cause
    assert f'webhooks: {{allow: ["127.0.0.1:{server.server_port}"]}}' in problem.remedy
    assembled.engine.close()


def test_a_guard_that_may_not_connect_denies(project, server):
    project.user(webhook(server).replace("    run:", "    guard: true\n    run:"))
    outcome = fire(project)
    assert outcome.decision == "deny" and "fails closed" in outcome.reason
    assert server.got == []
    only_the_user_reads_the_remedy(outcome)


def only_the_user_reads_the_remedy(outcome):
    """How to allow an address is for the user: with the file, which is no project's."""
    assert "where no webhook may go" in outcome.message
    assert not re.search("allow:|hookturn.yaml, ", outcome.message)
    (warning,) = outcome.warnings
    assert re.search(
        r'Allow it in \S.*/hookturn\.yaml, your own configuration: webhooks: {allow: \["', warning
    )


def test_a_guard_whose_name_leads_to_a_forbidden_address_denies(project, server):
    text = f"{H}    guard: true\n    run: {{webhook: {{url: 'http://localhost:{server.server_port}/'}}}}\n"
    project.user(text)
    outcome = fire(project)
    assert outcome.decision == "deny"
    assert server.got == []
    only_the_user_reads_the_remedy(outcome)


def test_a_project_is_told_which_file_says_where_webhooks_may_go(project):
    project.config("webhooks: {allow: ['127.0.0.1:1']}\n")
    (problem,) = project.assemble().problems
    assert problem.remedy == f"Write it into {config_root() / 'hookturn.yaml'}, which is yours."


def test_a_projects_webhook_waits_for_trust(project, server):
    project.user("webhooks: {allow: ['127.0.0.0/8']}\n")
    project.config(webhook(server, headers={"X-Token": {"env": "HOME"}}, redact=False))
    assert fire(project).decision is None and server.got == []
    (item,) = project.survey().pending()
    assert item.declaration.what == (
        f"sends its events to http://127.0.0.1:{server.server_port}, with {{env: HOME}} as the header X-Token, "
        "and the secrets in them at pre_tool_execution"
    )
    project.trust()
    assert fire(project).reason == "remote"


def test_a_project_allows_itself_nothing(project, server):
    project.config(webhook(server) + "webhooks: {allow: ['127.0.0.0/8']}\n")
    project.trust()
    assert fire(project).decision is None and server.got == []


def test_a_managed_file_allows(project, server):
    project.managed("webhooks: {allow: ['127.0.0.0/8']}\n")
    project.user(webhook(server))
    assert fire(project).reason == "remote"


def test_the_programs_of_its_secrets_are_shown_and_pinned(project):
    script = project.write("token.sh", "echo secret")
    project.config(
        f"{H}    run: {{webhook: {{url: 'https://example.com', headers: {{X: {{command: [sh, token.sh]}}}}}}}}\n"
    )
    (item,) = project.survey().pending()
    assert item.declaration.what.endswith(", runs sh token.sh")
    assert str(script) in item.declaration.files
    project.trust()
    assert project.survey().pending() == []
    script.write_text("echo other")
    assert project.survey().pending()[0].state == "changed"


def test_a_secret_that_is_not_there(project):
    project.user(f"{H}    run: {{webhook: {{url: {{env: NO_SUCH_VARIABLE}}}}}}\n")
    assembled = project.assemble()
    (problem,) = [item for item in assembled.problems if item.severity == "error"]
    assert problem.path == "hooks[0].run.webhook.url.env"
    assert "NO_SUCH_VARIABLE is not set" in problem.cause
    assembled.engine.close()


def test_a_secret_url_is_shown_nowhere(project, monkeypatch):
    monkeypatch.setenv("HOOK_URL", "https://10.0.0.7/services/T00/B00/topsecret")
    project.user(f"{H}    run: {{webhook: {{url: {{env: HOOK_URL}}}}}}\n")
    assembled = project.assemble()
    text = " ".join(map(str, assembled.problems)) + repr([row.to_json() for row in assembled.plugins])
    assert "10.0.0.7 is private" in text and "topsecret" not in text
    assembled.engine.close()


def test_check_tells_of_an_untrusted_one(project):
    from hookturn.project.unread import problems as untrusted

    project.config(
        f"{H}    run: {{webhook: {{url: 'http://169.254.169.254/latest', headers: {{X: {{env: NOPE}}}}}}}}\n"
    )
    assembled = project.assemble()
    causes = [problem.cause for problem in untrusted(assembled.survey)]
    assert causes == ["169.254.169.254 is link-local, where no webhook may go"]
    assembled.engine.close()


def test_dry_runs_send_nothing(project, server):
    project.user(f"{webhook(server)}webhooks: {{allow: ['127.0.0.1']}}\n")
    call = events.PreToolExecution(tool="bash", args={"command": "ls"}, session_id="s", dry_run=True)
    with project.assemble(dry_run=True).engine as engine:
        assert engine.fire(call).decision is None
    assert server.got == []
    assert [row.state for row in project.assemble(dry_run=True).plugins if row.name == "h"] == ["dry"]
    with project.assemble(dry_run=True, live=True).engine as engine:
        assert engine.fire(call).reason == "remote"
