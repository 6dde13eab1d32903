"""`[backends]`, `[groups]` and `[grants]`: what they say, and every sentence about a wrong one."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from folkmoot.core import errors as e
from folkmoot.names import RESERVED_NAMES
from folkmoot.names.safe_names import OF_A_BACKEND
from folkmoot.settings import BACKEND_FIELDS, BackendSpec, SecretReference, load
from folkmoot.settings.fields import in_effect
from tests.settings.conftest import load_text, problems, refused

WHOLE = """\
[backends.github]
command = ["npx", "-y", "server-github"]
cwd = "work"
tools = ["get_*"]
call_seconds = 5
per_user = true
env = { GITHUB_TOKEN = { env = "GH_TOKEN" }, LEVEL = "debug" }

[backends.docs-of-ours]
namespace = "docs"
url = "https://docs.example.org/mcp?tenant=7"
everyone = true

[backends.docs-of-ours.headers]
Authorization = { file = "token", prefix = "Bearer " }

[groups]
ops = ["gina", "@Tom", "gina"]

[grants]
"@ops" = ["mcp.request.tools/call:github:*"]
Anna = [{ kind = "mcp.request.tools/call:files:*", payload = { params = { name = "read_*" } } }]
"""


def test_tables_become_a_gateway(tmp_path):
    gateway = load_text(WHOLE).gateway
    token = SecretReference(file=str(tmp_path / "token"), prefix="Bearer ")
    assert gateway.backends == {
        "github": BackendSpec(
            name="github",
            namespace="github",
            command=("npx", "-y", "server-github"),
            cwd=str(tmp_path / "work"),
            tools=("get_*",),
            call_seconds=5,
            per_user=True,
            env={"GITHUB_TOKEN": SecretReference(env="GH_TOKEN"), "LEVEL": "debug"},
        ),
        "docs": BackendSpec(
            name="docs-of-ours",
            namespace="docs",
            url="https://docs.example.org/mcp?tenant=7",
            everyone=True,
            headers={"Authorization": token},
        ),
    }
    assert gateway.groups == {"ops": ("gina", "tom")}
    limited = {
        "kind": "mcp.request.tools/call:files:*", "payload": {"params": {"name": "read_*"}},
    }  # fmt: skip
    assert gateway.grants == {"@ops": ("mcp.request.tools/call:github:*",), "anna": (limited,)}


@pytest.mark.requirement("gateway.grants-as-shown")
def test_grants_have_the_short_forms_of_the_command_and_become_full_patterns():
    call = "mcp.request.tools/call"
    limit = "payload = { params = { arguments = { n = 1 } } }"
    grants = load_text(
        f"""[backends.files]\n{ONE_URL}\n[grants]
gina = ["files:read_*", "!files_write_file", "msg_send", "!room/create", "files://notes/*"]
tom = ["files"]
ada = [{{ kind = "files_read_file", {limit} }}, "mcp.request.*"]
"""
    ).gateway.grants
    assert grants["gina"] == (
        f"{call}:files:read_*", f"!{call}:files:write_file", f"{call}:msg/send",
        f"!{call}:room/create", "mcp.request.resources/*:files://notes/*",
    )  # fmt: skip
    assert grants["tom"] == tuple(each.format("files") for each in OF_A_BACKEND)
    limited = {"kind": f"{call}:files:read_file", "payload": {"params": {"arguments": {"n": 1}}}}
    assert grants["ada"] == (limited, "mcp.request.*")


def test_everything_is_known_by_the_line_it_stands_on():
    origins = load_text(WHOLE).gateway_origins
    lines = {path: int(where.rpartition(":")[2]) for path, where in origins.items()}
    assert (lines["backends.github"], lines["backends.github.env"]) == (1, 7)
    assert lines["backends.docs-of-ours.headers"] == 14
    assert (lines["groups.ops"], lines["grants.@ops"], lines["grants.anna"]) == (18, 21, 22)


def test_without_tables_nothing_stands_behind_the_hub():
    loaded = load_text("port = 1\n")
    assert not loaded.gateway.backends
    assert not loaded.notes


def test_neither_a_variable_nor_an_option_reaches_these_tables():
    with pytest.raises(e.SettingsError, match="FOLKMOOT_BACKENDS_X_URL: unknown variable"):
        load(environ={"FOLKMOOT_BACKENDS_X_URL": "http://h"})


ONE_URL = 'url = "http://h/mcp"'
NOT_A_URL = "must be an http:// or https:// URL without user, password or fragment, not"
NOT_NAMES = (
    "must be a list of at most 1000 names of tools, in which `*` may stand for anything, not"
)
NOT_A_LIST = 'must be a list: write it as ["npx", "-y", "s", "--token", "***", "--key=***"]'
ADD_NAMESPACE = 'is not a valid namespace; add namespace = "myfiles"'
NOT_A_PATTERN = (
    "is not a valid capability pattern: protocol and operation are lower-case letters, digits, "
    "hyphens and *, 1 to 32 of them"
)
# What is wrong in the table of a backend, and what is said of it; both begin as in the key.
WRONG: dict[tuple[str, str], list[tuple[str, str]]] = {
    ("", "1: backends.abc"): [
        ("everyone = true", " needs command or url"),
        (f'{ONE_URL}\ncommand = ["x"]', " has both command and url; give only one"),
    ],
    ("", "2: backends.abc."): [
        ('command = "npx -y s --token abc --key=def"', f"command {NOT_A_LIST}"),
        ("command = []", "command must start with the program to run"),
        ('url = "https://me:pw@h/mcp"', f'url {NOT_A_URL} "https://…@h/mcp"'),
        ('url = "ftp://h"', f'url {NOT_A_URL} "ftp://h"'),
    ],
    ('command = ["x"]\n', "3: "): [
        ('headers = { A = "b" }', "backends.abc.headers can only be used with url"),
        ('args = ["-y"]', "unknown setting 'args' in [backends.abc]; put them into command, after"),
        ('env = { A = { fiel = "b" } }', "unknown setting 'fiel' in backends.abc.env.A; did you"),
    ],
    ('command = ["x"]\nenv = ', "3: backends.abc.env."): [
        ('{ "A-B" = "c" }', "A-B is not a valid variable name"),
        ("{ PIN = 1234 }", 'PIN must be text, { env = "NAME" } or { file = "PATH" }'),
        ('{ A = { env = "B", file = "c" } }', "A must have either env or file"),
        ('{ A = { prefix = "Bearer " } }', "A must have either env or file"),
    ],
    (f"{ONE_URL}\n[backends.abc.headers]\n", ""): [
        ('X-A = "1"\nx-a = "2"', "3: backends.abc.headers has one header twice (case is ignored)"),
    ],
    (f"{ONE_URL}\n[backends.abc.headers]\n", "4: backends.abc.headers."): [
        ('X-A = "a\\nb"', "X-A cannot be sent in a header"),
        ('"X A" = "a"', '"X A" is not a valid header name'),
        ('Mcp-Session-Id = "a"', "Mcp-Session-Id is a header that the hub sets itself"),
    ],
    (f"{ONE_URL}\n", "3: "): [
        ("everone = true", "unknown setting 'everone' in [backends.abc]; did you mean 'everyone'?"),
        (f"[backend.x]\n{ONE_URL}", "unknown table [backend]; did you mean [backends]?"),
        (f"[backends.my-files]\n{ONE_URL}\n", f'backends.my-files: "my-files" {ADD_NAMESPACE}'),
        (f'[backends.other]\n{ONE_URL}\nnamespace = "abc"', "the namespace abc is already used by"),
    ],
    (f"{ONE_URL}\n", "3: backends.abc."): [
        ("call_seconds = 0", "call_seconds must be a number between 0.1 and 86400, not 0"),
        ('tools = ["get_*", 3]', f"tools {NOT_NAMES} 3"),
        ('tools = ["!get_*"]', f'tools {NOT_NAMES} "!get_*"'),
        ('namespace = "My"', "namespace must be a namespace: a lower-case letter, and 2 to 19"),
    ],
    (f'{ONE_URL}\nauth = "oauth"\n', "4: backends.abc."): [
        ("single = true", 'single cannot be used with auth = "oauth"'),
        ('trusted_issuers = ["http://sso.example"]', "trusted_issuers must be a list of at most"),
        ('trusted_issuers = ["https://sso.example?x"]', "trusted_issuers must be a list of at"),
        ('scopes = ["a b"]', "scopes must be a list of at most 64 scopes, such as"),
        ('client_secret = "x"', "client_secret needs client_id"),
    ],
    (f"{ONE_URL}\n", "3: backends.abc"): [
        ("shared = true", '.shared can only be used with auth = "oauth"'),
        ('headers.authorization = "x"\nauth = "oauth"', " has both auth and the header"),
    ],
    (f"{ONE_URL}\n[backends]\n", "4: "): [("other = 7", "backends.other must be a table, not 7")],
    (f"{ONE_URL}\n[groups]\n", "4: groups."): [
        ("Ops = []", "Ops: a group's name is a lower-case letter and up to 31 letters, digits, "),
        ('ops = "gina"', 'ops must be a list of handles, not "gina"'),
        ('ops = ["g"]', 'ops: "g" is not a valid handle'),
        ('ops = ["abc"]', "ops: abc is a backend, and nobody's handle"),
    ],
    (f"{ONE_URL}\n[groups]\nops = ", ""): [
        ('["gina"]\nall = ["@ops"]', "5: groups.all: @ops is a group; a group can only contain"),
        ('[]\n[grants]\n"@opps" = ["*"]', '6: grants."@opps": there is no group opps; did you'),
    ],
    (f"{ONE_URL}\n[grants]\n", "4: grants."): [
        ('abc = ["*"]', "abc: abc is a backend, and nobody's handle"),
        ('msg = ["*"]', "msg: msg is a reserved name, and nobody's handle"),
        ('"a b" = ["*"]', '"a b": "a b" is neither a handle nor a @GROUP'),
    ],
    (f"{ONE_URL}\n[grants]\ngina = ", "5: grants."): [
        ('["*"]\nGina = ["*"]', "Gina: gina already has an entry"),
    ],
    (f"{ONE_URL}\n[grants]\ngina = ", "4: grants.gina"): [
        ('"*"', ' must be a list of at most 1,000 capabilities, not "*"'),
        ('["MCP.x"]', f": 'MCP.x' {NOT_A_PATTERN}"),
        ('["other_read_file"]', f": 'other_read_file' {NOT_A_PATTERN}"),
        ('["system.*"]', ": system.* belongs to the gateway; nobody else can hold it"),
        ('["!abc_delete_a_0123abcd"]', ': "!abc_delete_a_0123abcd" may be a name that the hub'),
        ('[{ kind = "mcp.request.*", to = "abc" }]', ': "to" is for rights in a room; what is'),
    ],
}
EVERY = [
    (f"{begun}{text}", f"{where}{said}")
    for (begun, where), rows in WRONG.items()
    for text, said in rows
]


@pytest.mark.parametrize(("text", "said"), EVERY)
def test_what_is_wrong_is_said_with_its_line(text, said):
    (told,) = problems(f"[backends.abc]\n{text}\n")
    assert told.startswith(f"hub.toml:{said}")


@pytest.mark.requirement("gateway.reserved-names")
@pytest.mark.parametrize("name", sorted(RESERVED_NAMES))
def test_no_backend_takes_a_reserved_name(name):
    told = f"backends.{name}: the namespace {name} is reserved; choose another"
    assert problems(f"[backends.{name}]\n{ONE_URL}\n") == [f"hub.toml:1: {told}"]


def test_all_problems_are_told_together():
    told = problems(
        'port = "x"\n[backends.a]\nurl = 1\n[backends.b]\n[grants]\n"@x" = []\n[log]\nlevel = 1\n'
    )
    lines = [int(re.match(r"hub.toml:(\d+)", line)[1]) for line in told]  # type: ignore[index]
    assert lines == sorted(lines)
    assert len(told) == 7


def test_no_sentence_repeats_what_may_be_secret():
    told = problems(
        '[backends.abc]\nurl = "http://h/?key=sesame#x"\n[backends.abc.headers]\n'
        'Authorization = ["sesame"]\nX = "sesame\\n"\n'
    )
    assert len(told) == 3
    assert "sesame" not in "\n".join(told)


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ('url = "http://h"\nheaders.Authorization = "Bearer x"', "3: the secret of backends.abc.h"),
        ('command = ["x"]\nenv.API_KEY = "x"', "3: the secret of backends.abc.env.API_KEY is in"),
        ('command = ["x", "--token", "y"]', "2: a secret of backends.abc.command is in the file"),
        ('url = "http://h"\nauth = "oauth"\nclient_id = "x"\nclient_secret = "y"', "5: the secr"),
        ('command = ["x"]\nenv.API_KEY = ""', None),
        ('command = ["x"]\nenv.API_KEY = { env = "K" }', None),
        ('command = ["x", "Authorization: Bearer y"]', "2: a secret of backends.abc.com"),
        ('command = ["x", "--token=$T", "--key", "${K}", "http://h/token:1"]', None),
        ('command = ["x", "--keyboard", "--token"]', None),
    ],
)
def test_a_secret_in_the_file_is_noted_and_allowed(text, where):
    notes = load_text(f"[backends.abc]\n{text}\n").notes
    assert len(notes) == (where is not None)
    assert all(note.startswith(f"hub.toml:{where}") for note in notes)


def test_nothing_of_a_gateway_shows_its_secrets():
    loaded = load_text(
        '[backends.abc]\ncommand = ["x"]\nenv.API_KEY = "sesame"\n',
        {"SESAME": "open-sesame"},
    )
    assert "sesame" not in repr(loaded).lower()


def test_settings_can_be_loaded_again_as_they_were_asked_for(tmp_path):
    loaded = load(environ={"FOLKMOOT_DATA": str(tmp_path)}, options={"port": 7})
    assert (loaded.file, loaded.place) == (None, str(tmp_path / "config.toml"))
    (tmp_path / "config.toml").write_text(f"[backends.abc]\n{ONE_URL}\n")
    again = loaded.again()
    assert (again.settings.port, again.file) == (7, str(tmp_path / "config.toml"))
    assert list(again.gateway.backends) == ["abc"]


VALUES = ["1", '"x"', '""', "[]", '["a"]', "{}", '{ env = "A" }', "true", '"http://h"', "nan"]
RULES = """\
[groups]
ops = ["gina"]

[backends.shell]
command = ["shell"]

[asks.deploy]
what = [
    "shell_deploy",
    { kind = "shell:run", payload = { params = { arguments = { root = true } } } },
]
who = ["@ops", "Tom"]
callers = "agents"
to = "Ada"

[asks.rest]
what = ["shell"]
verdict = "deny"
"""


def test_rules_are_read_in_their_order_with_the_short_forms_of_grants():
    deploy, rest = load_text(RULES).gateway.asks
    assert (deploy.name, deploy.who, deploy.callers, deploy.to) == (
        "deploy", ("@ops", "tom"), "agents", "ada",
    )  # fmt: skip
    assert deploy.what[0] == "mcp.request.tools/call:shell:deploy"
    assert deploy.what[1]["kind"] == "mcp.request.tools/call:shell:run"
    assert (rest.name, rest.verdict, rest.wait_seconds) == ("rest", "deny", 30)


WRONG_RULES = {
    '[[asks]]\nwhat = ["x:y"]': "write [asks.NAME] in place of [[asks]]",
    "[asks]\ndeploy = 7": "asks.deploy must be a table",
    "[asks.Deploy]\nwhat = []": "is no name for a rule",
    "[asks.deploy]": "asks.deploy needs what",
    "[asks.deploy]\nwhat = []": "asks.deploy.what must be a list",
    "[asks.deploy]\nwhat = ['a b']": "asks.deploy.what: ",
    "[asks.deploy]\nwhat = ['!mcp.request.tools/call:x:y']": "denies; see verdict",
    "[asks.deploy]\nwhat = ['x:y']\nto = 'no one'": "asks.deploy.to must be a handle",
    "[asks.deploy]\nwhat = ['x:y']\nwho = ['@ops']": "there is no group ops",
    "[asks.deploy]\nwhat = ['x:y']\nverdict = 'maybe'": 'must be "ask", "allow" or "deny"',
    "[asks.deploy]\nwhat = ['x:y']\nwhom = 'ada'": "did you mean 'who'?",
}


@pytest.mark.parametrize(("text", "told"), WRONG_RULES.items())
def test_every_mistake_in_a_rule_is_told_with_its_line(text, told):
    with pytest.raises(e.SettingsError) as caught:
        load_text(text)
    assert told in caught.value.message
    assert caught.value.message.startswith("hub.toml:")


KEYS = [*BACKEND_FIELDS, "env.A", "headers.A", "x"]
STATEMENTS = st.one_of(
    st.sampled_from(
        ["[backends]", "[backends.abc]", "[backends.a-b]", "[backends.abc.env]", "[[backends.z]]",
         "[groups]", "[grants]", "[asks.a]", "[[asks]]", 'what = ["x:y", 7]', 'ops = ["gina"]',
         '"@ops" = ["*"]', "gina = [{ kind = 7 }]"]
    ),
    st.builds("{} = {}".format, st.sampled_from(KEYS), st.sampled_from(VALUES)),
)  # fmt: skip


@given(st.lists(STATEMENTS, max_size=8).map("\n".join))
def test_any_tables_give_a_gateway_or_a_settings_error(text):
    Path("any.toml").write_text(text, encoding="utf-8")
    told: Any
    try:
        told = load("any.toml", environ={}).gateway
    except e.SettingsError:
        return
    for name, spec in told.backends.items():
        assert name == spec.namespace
        assert bool(spec.command) is not bool(spec.url)
        msgspec.json.encode(msgspec.structs.asdict(spec))


@pytest.mark.parametrize(
    ("arguments", "member"),
    [
        ('path = "notes/*"', "path"),
        ('targetDir = ["a", "b/*"]', "targetDir"),
        ('path = { under = "notes/" }', None),
        ('path = "notes/a"', None),
        ('title = "draft*"', None),
    ],
)
def test_a_path_that_is_compared_as_text_is_noted_and_allowed(arguments, member):
    constraint = f"payload = {{ params = {{ arguments = {{ {arguments} }} }} }}"
    text = f'[grants]\ngina = [{{ kind = "mcp.request.tools/call:x:y", {constraint} }}]\n'
    notes = load_text(text).notes
    assert len(notes) == (member is not None)
    for note in notes:
        assert note.startswith(f"hub.toml:2: grants.gina: {member} is compared as text")
        assert f'{member} = {{ under = "FOLDER/" }}' in note


def test_a_folder_that_is_none_is_refused():
    constraint = 'payload = { params = { arguments = { path = { under = "notes/*" } } } }'
    text = f'[grants]\ngina = [{{ kind = "mcp.request.tools/call:x:y", {constraint} }}]\n'
    (problem,) = problems(text)
    assert "one folder" in problem


def test_how_people_sign_in_is_read_and_its_secret_is_not_shown(tmp_path):
    file = tmp_path / "config.toml"
    file.write_text(
        '[backends.one]\nurl = "http://h/mcp"\nauth = "oauth"\nclient_id = "hub"\nshared = true\n'
        'client_secret = "sesame"\nscopes = ["a", "b:c"]\n'
        'trusted_issuers = ["https://sso.example", "http://localhost:7/x"]\n'
    )
    loaded = load(file, environ={})
    one = loaded.gateway.backends["one"]
    assert (one.client_id, one.client_secret, one.scopes) == ("hub", "sesame", ("a", "b:c"))
    assert one.trusted_issuers == ("https://sso.example", "http://localhost:7/x")
    shown = {path: value for path, value, _ in in_effect(loaded)}
    assert shown["backends.one.client_secret"] == "***"
    assert (one.owner("ada"), one.owner("bob")) == ("", "")
    with pytest.raises(e.ConsentNeeded):
        one.owner("")


def test_how_a_backend_is_isolated_is_read_and_what_means_nothing_is_refused(tmp_path):
    file = tmp_path / "config.toml"
    file.write_text(
        '[backends.one]\ncommand = ["true"]\nuser = "nobody"\nsandbox = "bwrap"\n'
        'folders = ["data", "/srv"]\nwritable_folders = ["out"]\nnetwork = false\n'
    )
    one = load(file, environ={}).gateway.backends["one"]
    assert (one.user, one.sandbox, one.network) == ("nobody", "bwrap", False)
    assert one.folders == (str(tmp_path / "data"), "/srv")
    assert one.writable_folders == (str(tmp_path / "out"),)
    file.write_text(
        '[backends.one]\ncommand = ["true"]\nfolders = ["data"]\n'
        '[backends.two]\nurl = "http://h/"\nuser = "nobody"\n'
    )
    assert refused(file) == [
        f"{file}:3: backends.one.folders can only be used with sandbox",
        f"{file}:6: backends.two.user can only be used with command",
    ]
