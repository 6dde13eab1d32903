"""Which source wins, where values come from, and what is said when one is wrong."""

from __future__ import annotations

import re
from operator import attrgetter

import pytest

from folkmoot.core import errors as e
from folkmoot.settings import (
    FIELDS,
    Settings,
    load,
)
from tests.settings.conftest import load_text, problems, refused


def test_without_any_source_every_setting_has_its_default():
    loaded = load(environ={})
    assert (loaded.settings, loaded.file) == (Settings(), None)
    assert loaded.origins == dict.fromkeys(FIELDS, "default")


def test_the_command_line_wins_over_the_environment_over_the_file():
    text = 'host = "::1"\nport = 1\n\n[log]\nlevel = "error"\n'
    loaded = load_text(text, {"FOLKMOOT_PORT": "2", "FOLKMOOT_LOG_LEVEL": "warning"}, port=3)
    assert (loaded.settings.host, loaded.origins["host"]) == ("::1", "hub.toml:1")
    assert (loaded.settings.port, loaded.origins["port"]) == (3, "--port")
    assert loaded.settings.log.level == "warning"
    assert (loaded.origins["log.level"], loaded.file) == ("FOLKMOOT_LOG_LEVEL", "hub.toml")


def test_an_option_that_was_not_given_changes_nothing():
    assert load_text("port = 7\n", port=None).settings.port == 7


def test_options_may_be_text_or_values():
    assert load_text("", port="7").settings.port == 7
    assert load_text("", **{"log.level": "debug"}).origins["log.level"] == "--log-level"


def test_a_later_source_does_not_excuse_a_mistake_in_an_earlier_one():
    assert len(problems('port = "abc"\n', {"FOLKMOOT_PORT": "1"})) == 1


@pytest.mark.parametrize(
    ("variable", "text", "path", "value"),
    [
        ("FOLKMOOT_PORT", " 80 ", "port", 80),
        ("FOLKMOOT_HTTP_SHUTDOWN_SECONDS", "2.5", "http.shutdown_seconds", 2.5),
        ("FOLKMOOT_TELEMETRY_METRICS", "Off", "telemetry.metrics", False),
        ("FOLKMOOT_TELEMETRY_METRICS", "0", "telemetry.metrics", False),
        ("FOLKMOOT_TELEMETRY_METRICS", "off", "telemetry.metrics", False),
        ("FOLKMOOT_TELEMETRY_METRICS", "on", "telemetry.metrics", True),
        ("FOLKMOOT_HTTP_ALLOWED_HOSTS", "a.example, *.b.example", "http.allowed_hosts",
         ("a.example", "*.b.example")),
        ("FOLKMOOT_HTTP_ALLOWED_HOSTS", "", "http.allowed_hosts", ()),
        ("FOLKMOOT_STORE_SYNCHRONOUS", "normal", "store.synchronous", "normal"),
        ("FOLKMOOT_SIGN_IN_OIDC_OPERATORS", "ops, it", "sign_in.oidc.operators", ("ops", "it")),
        ("FOLKMOOT_PUBLIC_URL", "https://hub.example/moot", "public_url",
         "https://hub.example/moot"),
    ],
)  # fmt: skip
def test_variables_are_read_as_the_type_of_their_setting(variable, text, path, value):
    loaded = load(environ={variable: text})
    assert attrgetter(path)(loaded.settings) == value
    assert loaded.origins[path] == variable


NOT_A_PORT = "port must be an integer between 0 and 65535, not "
NOT_A_DATABASE = (
    "store.url must be empty, or an address such as postgresql://hub@db.example.org/folkmoot, not "
)
NOT_A_BUS = (
    "bus.url must be empty, or addresses such as nats://nats1:4222,nats2:4222, or with tls://, not "
)
NOT_A_URL = "must be empty, or an http:// or https:// URL without user, query or fragment, not "
NO_ENDPOINT = f"telemetry.otlp_endpoint {NOT_A_URL}"
NOT_A_NODE = (
    "cluster.address must be empty, or an http:// or https:// URL without user, path, query or "
    "fragment, not "
)
NOT_IN_HTTP = "unknown setting 'prot' in [http]; did you mean 'port' at the top of the file?"
NOT_A_HOST = "host must be a host name or an IP address, not "
NOT_SECONDS = "http.shutdown_seconds must be a number between 0 and 600, not "
IN_THE_ENVIRONMENT = (
    "is a secret and cannot be set in a file; set FOLKMOOT_MASTER_KEY in the environment"
)
NO_SECRET = (
    "sign_in.oidc.client_secret is a secret and cannot be set in a file; set "
    "FOLKMOOT_SIGN_IN_OIDC_CLIENT_SECRET in the environment"
)
NOT_A_LEVEL = 'log.level must be "debug", "info", "warning" or "error", not '


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('port = "abc"', f'1: {NOT_A_PORT}"abc"'),
        ("\n\nport = 65536", f"3: {NOT_A_PORT}65536"),
        ("port = true", f"1: {NOT_A_PORT}true"),
        ("port = 1979-05-27", f"1: {NOT_A_PORT}1979-05-27"),
        ("port = 0x" + "f" * 5000, f"1: {NOT_A_PORT}a number that large"),
        ("[port]", f"1: {NOT_A_PORT}a table"),
        ("[http]\nshutdown_seconds = nan", f"2: {NOT_SECONDS}nan"),
        ('log.level = "loud"', f'1: {NOT_A_LEVEL}"loud"'),
        ('log = "debug"', '1: log must be a table of settings, not "debug"'),
        ("[[log]]", "1: log must be a table of settings, not a list"),
        ("prot = 1", "1: unknown setting 'prot'; did you mean 'port'?"),
        ("[http]\nprot = 1", f"2: {NOT_IN_HTTP}"),
        ("level = 1", "1: unknown setting 'level'; did you mean 'level' in [log]?"),
        ("sign_in.oidc = 1", "1: sign_in.oidc must be a table of settings, not 1"),
        (
            '[sign_in.oidc]\nisuer = ""',
            "2: unknown setting 'isuer' in [sign_in.oidc]; did you mean 'issuer'?",
        ),
        ('[sign_in.oidc]\nclient_secret = "hush"', f"2: {NO_SECRET}"),
        ("[htpp]", "1: unknown table [htpp]; did you mean [http]?"),
        ("zzz = 1", "1: unknown setting 'zzz'"),
        ('public_url = "http://h/?token=pw"', f'1: public_url {NOT_A_URL}"http://h/?…"'),
        ('telemetry.otlp_endpoint = "http://me:pw@h"', f'1: {NO_ENDPOINT}"http://…@h"'),
        ('master_key = "hush"', f"1: master_key {IN_THE_ENVIRONMENT}"),
        ('store.url = "mysql://me:p/w@h/db"', f'1: {NOT_A_DATABASE}"mysql://…"'),
        ('store.url = "postgresql://h:pw"', f'1: {NOT_A_DATABASE}"postgresql://…"'),
        ('store.url = "host=h password=pw"', f'1: {NOT_A_DATABASE}"…"'),
        ('store.url = "postgresql://me:p@w@h/db"', f'1: {NOT_A_DATABASE}"postgresql://…"'),
        ('bus.url = "redis://me:p/w@h/0"', f'1: {NOT_A_BUS}"redis://…"'),
        ('bus.url = "nats://me:p@w@h"', f'1: {NOT_A_BUS}"nats://…"'),
        ('bus.url = "nats://h:pw"', f'1: {NOT_A_BUS}"nats://…"'),
        ('bus.url = "nats://h,,h"', f'1: {NOT_A_BUS}"nats://…"'),
        ('bus.url = "nats://h:99999"', f'1: {NOT_A_BUS}"nats://h:99999"'),
        ('store.url = "postgresql://h:0/x"', f'1: {NOT_A_DATABASE}"postgresql://h:0/x"'),
        ('bus.url = "h:4222"', f'1: {NOT_A_BUS}"…"'),
        ('cluster.address = "node1:8420"', f'1: {NOT_A_NODE}"node1:8420"'),
        ('cluster.address = "http://u:pw@n"', f'1: {NOT_A_NODE}"http://…@n"'),
        ('cluster.address = "http://n/moot"', f'1: {NOT_A_NODE}"http://n/moot"'),
        (f'host = "{"x " * 40}"', f'1: {NOT_A_HOST}"{("x " * 20)[:39]}…'),
    ],
)
def test_a_wrong_value_is_told_with_its_line(text, expected):
    assert problems(text) == [f"hub.toml:{expected}"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("port 8", ":1:6: expected '=' after a key in a key/value pair"),
        ("[a.b]\nx = 1\n[a.b]\n", ":3:5: the table [a.b] already exists"),
        ("\nport = 1\nport = 2\n", ":3:9: cannot overwrite a value"),
        ("host = 'a'\nport = [1", ":2: unclosed array (at the end of the file)"),
        ("port = " + "9" * 5000, ": a number has too many digits"),
        ("port = " + "[" * 5000, ": lists and tables are nested too deeply"),
    ],
)
def test_broken_toml_is_told_with_line_and_column(text, expected):
    assert problems(text) == [f"hub.toml{expected}"]


def test_everything_wrong_is_told_at_once_in_the_order_of_the_file():
    text = "[store]\nreaders = 0\n\n[http]\nnope = 1\n\n[log]\nformat = 1\n"
    told = problems(text, {"FOLKMOOT_PORT": "x", "FOLKMOOT_LOG_LEVEl": "info"}, host="a b")
    assert [line.split()[0] for line in told] == [
        *("hub.toml:2:", "hub.toml:5:", "hub.toml:8:"),
        *("FOLKMOOT_LOG_LEVEl:", "FOLKMOOT_PORT", "--host"),
    ]


def test_the_number_of_problems_told_is_bounded():
    told = problems("".join(f"x{number} = 1\n" for number in range(120)))
    assert len(told) == 51
    assert told[-1] == "… and 70 more"


def test_an_unknown_variable_is_an_error_that_names_the_nearest():
    assert problems("", {"FOLKMOOT_PROT": "1"}) == [
        "FOLKMOOT_PROT: unknown variable; did you mean 'FOLKMOOT_PORT'?"
    ]


def test_variables_that_are_no_settings_and_those_of_others_are_left_alone():
    environ = {"FOLKMOOT_DEBUG": "1", "FOLKMOOT_TEST_PROFILE": "deep", "HOME": "/", "_FOLKMOOT": ""}
    assert load(environ=environ).settings == Settings()


def test_the_file_named_by_the_variable_is_used_when_no_option_names_one(tmp_path):
    (tmp_path / "one.toml").write_text("port = 1")
    (tmp_path / "two.toml").write_text("port = 2")
    environ = {"FOLKMOOT_CONFIG": "two.toml"}
    assert load(environ=environ).settings.port == 2
    assert load("one.toml", environ=environ).settings.port == 1


def test_the_file_in_the_data_folder_is_used_when_none_is_named(tmp_path):
    for folder in (".folkmoot", "by_variable", "by_option"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "config.toml").write_text(f'telemetry.service_name = "{folder}"')
    environ = {"FOLKMOOT_DATA": "by_variable"}
    assert load(environ={}).settings.telemetry.service_name == ".folkmoot"
    assert load(environ=environ).settings.telemetry.service_name == "by_variable"
    loaded = load(environ=environ, options={"data": "by_option"})
    assert loaded.settings.telemetry.service_name == "by_option"
    assert loaded.file == "by_option/config.toml"


def test_the_data_folders_own_file_cannot_name_another_data_folder(tmp_path):
    (tmp_path / ".folkmoot").mkdir()
    (tmp_path / ".folkmoot/config.toml").write_text('data = "elsewhere"')
    with pytest.raises(e.SettingsError, match=r"^\.folkmoot/config\.toml:1: data cannot be set"):
        load(environ={})


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (None, "hub.toml: there is no such file"),
        (b"a = 1\nb = '\xff'\n", "hub.toml:2: is not UTF-8 text"),
        (b"#" * 1_048_577, "hub.toml: is larger than 1 MiB, too large for a settings file"),
    ],
)
def test_a_file_that_cannot_be_used_is_told_in_one_line(tmp_path, content, expected):
    if content is not None:
        (tmp_path / "hub.toml").write_bytes(content)
    assert refused("hub.toml") == [expected]


def test_what_is_no_name_of_a_settings_file_is_told_in_one_line():
    assert refused(".") == [".: is a folder, not a settings file"]
    assert "is not a file name" in refused("a\0b")[0]
    assert re.search("there is no such file|cannot be read", refused("a" * 5000)[0])
    assert refused("") == ["the name of the settings file is empty"]
    assert load(environ={"FOLKMOOT_CONFIG": ""}).file is None


def test_a_byte_order_mark_and_windows_line_ends_do_no_harm(tmp_path):
    (tmp_path / "hub.toml").write_bytes(b"\xef\xbb\xbfhost = '::1'\r\nport = 'x'\r\n")
    with pytest.raises(e.SettingsError, match=r"^hub\.toml:2: port must be"):
        load("hub.toml", environ={})


def test_the_secret_is_in_no_error_and_no_repr():
    settings = load(environ={"FOLKMOOT_MASTER_KEY": "hush"}).settings
    assert settings.master_key == "hush"
    assert "hush" not in repr(settings)
    assert "hush" not in str(refused(environ={"FOLKMOOT_MASTER_KEY": "hush\x07"}))


def test_what_container_platforms_make_for_a_service_is_ignored():
    links = {
        "FOLKMOOT_PORT": "tcp://10.0.0.1:8420",
        "FOLKMOOT_SERVICE_HOST": "10.0.0.1",
        "FOLKMOOT_SERVICE_PORT": "8420",
        "FOLKMOOT_SERVICE_PORT_HTTP": "8420",
        "FOLKMOOT_PORT_8420_TCP": "tcp://10.0.0.1:8420",
        "FOLKMOOT_PORT_8420_TCP_PROTO": "tcp",
        "FOLKMOOT_PORT_8420_TCP_PORT": "8420",
        "FOLKMOOT_PORT_8420_TCP_ADDR": "10.0.0.1",
        "FOLKMOOT_HUB_PORT": "tcp://10.0.0.2:80",
        "FOLKMOOT_HUB_SERVICE_HOST": "10.0.0.2",
    }
    assert set(load(environ=links).origins.values()) == {"default"}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("FOLKMOOT_PORT", "10.0.0.1:8420"),
        ("FOLKMOOT_HUB_PORT", "8420"),
        ("FOLKMOOT_SERVICE_NAME", "moot"),
        ("FOLKMOOT_PORT_8420", "tcp"),
    ],
)
def test_what_only_looks_like_a_service_link_is_refused(name, value):
    with pytest.raises(e.SettingsError, match=f"^{name}"):
        load(environ={name: value})


@pytest.mark.parametrize("hidden", ["\x9b", "\x7f", "\u202e", "\u2066", "\u2028", "\ufeff"])
def test_what_a_terminal_obeys_or_turns_around_is_refused_and_not_repeated(hidden):
    with pytest.raises(e.SettingsError, match="SERVICE_NAME must be") as caught:
        load(environ={"FOLKMOOT_TELEMETRY_SERVICE_NAME": f"moot{hidden}"})
    assert hidden not in caught.value.message


WITHOUT_TLS = "HOST: the hub listens on {} without TLS"


@pytest.mark.requirement("web.below-a-path")
@pytest.mark.parametrize(
    ("environ", "told"),
    [
        ({"HOST": "0.0.0.0"}, WITHOUT_TLS.format("0.0.0.0")),
        ({"HOST": "::"}, WITHOUT_TLS.format("::")),
        ({"HOST": "10.0.0.5", "PUBLIC_URL": "http://x.example"}, WITHOUT_TLS.format("10.0.0.5")),
        ({"HOST": "0.0.0.0", "PUBLIC_URL": "https://moot.example"}, None),
        ({"HOST": "0.0.0.0", "TLS_CERTIFICATE": "a.pem", "TLS_KEY": "b.pem"}, None),
        ({"HOST": "127.0.0.2"}, None),
        ({"HOST": "localhost"}, None),
        ({"PUBLIC_URL": "https://x.example"}, None),
        ({"PUBLIC_URL": "https://x.example/"}, None),
        ({"PUBLIC_URL": "https://x.example/moot/"}, "PUBLIC_URL: public_url has a path"),
        (
            {"PUBLIC_URL": "https://x.example", "SIGN_IN_TOKEN_IN_URL": "true"},
            "PUBLIC_URL: tokens in URLs, as in ?token=sk_…, get into the logs of proxies.",
        ),
        ({"SIGN_IN_TOKEN_IN_URL": "true"}, None),
    ],
)
def test_an_address_without_tls_with_a_path_or_with_tokens_in_urls_is_taken_with_advice(
    environ, told
):
    chosen = {"SIGN_IN_TOKEN_IN_URL": "false", **environ}
    loaded = load(environ={f"FOLKMOOT_{name}": value for name, value in chosen.items()})
    assert len(loaded.advice) == (told is not None)
    assert all(note.startswith(f"FOLKMOOT_{told}") for note in loaded.advice)
