"""What a redactor takes out of messages, and what it leaves."""

from __future__ import annotations

import json
import re
import time
from base64 import b64encode
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from folkmoot.core import errors as e
from folkmoot.core.message import Request, decode_message, encode_message
from folkmoot.core.strict import Limits
from folkmoot.core.transport import Headers
from folkmoot.proxy.redaction import PLACEHOLDER, TapeRedactor
from tests.proxy.redaction.secrets import FORMED, KEY, SOME, message, redacted, redactor, request

pytestmark = pytest.mark.requirement("proxy.record-no-secrets")

TOKEN = "sk_0123456789abcdef0123456789abcdef"
CODE = "AB3K-9TW2-HNPQ"
PLAIN = "hunter2 is not a long password"


def mark(secret: str, by: TapeRedactor | None = None) -> str:
    """The placeholder of a secret, as a member with a telling name gets it."""
    result = redacted({"id": 1, "result": {"password": secret}}, by=by)["result"]["password"]
    assert PLACEHOLDER.fullmatch(result)
    return str(result)


@SOME
@given(FORMED | st.text(min_size=1, max_size=30))
def test_equal_secrets_have_equal_placeholders_and_others_have_others(secret):
    assert mark(secret + "x1") == mark(secret + "x1")
    assert mark(secret + "x1") != mark(secret + "x2")
    assert mark(secret + "x1") != mark(secret + "x1", TapeRedactor(b"another" * 8))


@SOME
@given(secret=FORMED)
def test_a_secret_has_one_placeholder_wherever_it_stands(secret):
    by = redactor()
    wanted = mark(secret)
    assert by.headers(Headers.of([("authorization", f"Bearer {secret}")])).pairs == (
        ("authorization", f"Bearer {wanted}"),
    )
    assert by.text(f"the {secret}, see") == f"the {wanted}, see"
    assert by.text(f'{{"token": "{secret}"') == f'{{"token": "{wanted}"'
    assert by.text(f"Authorization: Bearer {secret}") == f"Authorization: Bearer {wanted}"
    assert by.uri(f"/x?api_key={secret}&a=b") == f"/x?api_key={wanted}&a=b"
    spelled = "".join(f"%{ord(letter):02x}" for letter in secret[:2]) + secret[2:]
    assert by.text(f"https://a/?token={spelled}") == f"https://a/?token={wanted}"


def test_a_placeholder_says_what_kind_of_secret_it_was():
    kinds = {
        TOKEN: "token",
        CODE: "code",
        PLAIN: "secret",
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJhIn0.c2ln": "jwt",
        "-----BEGIN PRIVATE KEY-----\nMIIB\n-----END PRIVATE KEY-----": "key",
    }
    assert {secret: mark(secret).split(":")[1] for secret in kinds} == kinds
    assert mark(TOKEN).startswith("[redacted:token:")


@SOME
@given(
    secret=FORMED, text=st.sampled_from(["{}", "token={}", "Authorization: Bearer {}", "a {} b"])
)
def test_what_was_redacted_before_stays_as_it_is(secret, text):
    body = {
        "id": secret,
        "result": {"content": [{"type": "text", "text": text.format(secret)}], "token": secret},
    }
    once, _ = redactor().message(message(body))
    for by in redactor(), TapeRedactor(b"another" * 8):
        assert by.message(decode_message(once)) == (None, ())


def test_requests_and_answers_still_fit_together():
    by = redactor()
    asked = redacted({"id": TOKEN, "method": "x", "params": {"token": PLAIN}}, by=by)
    answered = redacted({"id": TOKEN, "result": {"echo": {"token": PLAIN}}}, by=by)
    cancelled = redacted({"method": "notifications/cancelled", "params": {"requestId": TOKEN}})
    assert asked["id"] == answered["id"] == cancelled["params"]["requestId"]
    assert asked["params"]["token"] == answered["result"]["echo"]["token"]


def test_places_and_reasons_are_told():
    inner = json.dumps({"list": [{"api_key": PLAIN}]})
    body = {"id": 1, "result": {"content": [{"type": "text", "text": inner}], "odd name": CODE}}
    _, places = redactor().message(message(body))
    assert [(place.path, place.kind) for place in places] == [
        ("$.result.content[0].text::$.list[0].api_key", "name"),
        ('$.result["odd name"]', "form"),
    ]


def test_a_message_with_very_many_secrets_tells_of_some_and_leaves_out_all():
    raw, places = redactor().message(message({"method": "x", "params": {"all": [TOKEN] * 500}}))
    assert TOKEN.encode() not in raw
    assert len(places) == 257
    assert (places[-1].path, places[-1].kind) == ("$", "more")


def test_numbers_and_lists_and_objects_under_a_telling_name_are_secrets():
    given = {"password": 12345678, "tokens": ["a", 2, None, True], "secrets": {"a": "b", "c": 1.5}}
    given |= {"pwd": "hunter2", "DB_PWD": "hunter2", "userPwd": "hunter2"}
    found = redacted({"method": "x", "params": given})["params"]
    for name in ("password", "pwd", "DB_PWD", "userPwd"):
        assert PLACEHOLDER.fullmatch(found[name])
    assert PLACEHOLDER.fullmatch(found["tokens"][0])
    assert found["tokens"][2:] == [None, True]
    assert all(map(PLACEHOLDER.fullmatch, found["secrets"].values()))


@pytest.mark.parametrize(
    "given",
    [
        {"arguments": {"key": "b", "date": "2026-01-02", "n": 2**70}, "_meta": {}},
        {"env": {"PWD": "/home/ann", "OLDPWD": "/home", "HOME": "/home/ann"}},
        {"pairs": [{"name": "PWD", "value": "/home/ann"}]},
        {"max_tokens": 100, "tokens": 7},
        {"token": None, "password": True, "secret": ""},
        {"properties": {"token": {"type": "string", "description": "What opens it."}}},
        {"required": ["token", "password"]},
        {"progressToken": "abcdefgh"},
        {"note": "token: null"},
    ],
)
def test_what_only_sounds_like_a_secret_stays(given):
    assert redactor().message(message({"id": 7, "method": "x", "params": given})) == (None, ())


def test_definitions_keep_their_descriptions():
    tools = [
        {
            "name": "login",
            "description": "Takes a password: the one you chose. Basic bearer authentication.",
            "inputSchema": {"properties": {"token": {"type": "string", "x": "Your token: a word"}}},
        },
        {"name": "leaky", "description": f"Use {TOKEN}."},
    ]
    listing = Request(id=1, method="tools/list", params={})
    found = redacted({"id": 1, "result": {"tools": tools}}, answering=listing)["result"]["tools"]
    assert found[0] == tools[0]
    assert TOKEN not in found[1]["description"]


def test_a_secret_that_its_name_told_is_found_in_the_rest_of_the_message():
    result = {"content": [{"type": "text", "text": f"It is {PLAIN}!"}], "structuredContent": {}}
    result["structuredContent"] = {"password": PLAIN}
    found = redacted({"id": 1, "result": result})["result"]
    assert found["content"][0]["text"] == f"It is {mark(PLAIN)}!"


def test_credentials_of_a_connection_are_found_wherever_they_turn_up():
    by = redactor()
    plain = {"id": 1, "result": "you came with opaque.credential/9, in 5e551045e551"}
    assert redacted(plain, by=by) == {"jsonrpc": "2.0", **plain}
    by.headers(Headers.of([("authorization", "Bearer opaque.credential/9")]))
    session = by.headers(Headers.of([("mcp-session-id", "5e551045e551")])).get("mcp-session-id")
    assert session.startswith("[redacted:session:")
    assert session == by.session_id("5e551045e551")
    assert redacted(plain, by=by)["result"] == (
        f"you came with {mark('opaque.credential/9')}, in {session}"
    )
    for number in range(40):
        by.session_id(f"another session {number}")
    assert redacted(plain, by=by) == {"jsonrpc": "2.0", **plain}


def test_headers_keep_their_order_and_what_opens_nothing():
    wrapped = b64encode(b"file:///a?token=opaque")
    mark = r"\[redacted:[^]]*\]"
    told = {
        "accept": ("text/plain", "text/plain"),
        "authorization": ("Basic dXNlcjpwYXNz", f"Basic {mark}"),
        "www-authenticate": ('Bearer resource_metadata="https://a/x"',) * 2,
        "x-api-key": ("k", mark),
        "cookie": ("a=b", mark),
        "mcp-name": (f"=?base64?{wrapped.decode()}?=", rf"file:///a\?token={mark}"),
        "mcp-method": ("tools/call", "tools/call"),
    }
    found = redactor().headers(Headers.of([(name, given) for name, (given, _) in told.items()]))
    assert [name for name, _ in found] == list(told)
    for name, value in found.pairs:
        assert re.fullmatch(told[name][1], value)
    plain = Headers.of([("accept", "a")])
    assert redactor().headers(plain) is plain


def test_a_url_loses_its_password_and_its_keys():
    found = redactor().text("see https://ann:pa55word@host/x?sig=abc&page=2 and git@host")
    assert "pa55word" not in found
    assert "sig=[redacted:" in found
    assert found.endswith("&page=2 and git@host")


@pytest.mark.parametrize(
    ("path", "params", "kept"),
    [
        ("$.params.arguments.ssn", {"arguments": {"ssn": "078-05-1120"}}, []),
        ("$.params.*.ssn", {"a": {"ssn": 78}, "ssn": "x"}, ["x"]),
        ("$.params.list[*]", {"list": ["a", {"b": "c"}]}, []),
        ("$.params.list[1]", {"list": ["a", "b"]}, ["a"]),
        ("$..pin", {"a": [{"pin": "1234"}]}, []),
        ("$.params.data.ssn", {"data": '{"ssn": "x", "n": 1}'}, [1]),
        ("$.params", {"a": "b", "c": None}, [None]),
    ],
)
def test_what_a_configured_path_leads_to_is_left_out(path, params, kept):
    found = redacted({"method": "x", "params": params}, by=redactor(paths=[path]))["params"]
    leaves = list(_leaves(found))
    assert leaves != list(_leaves(params))
    assert [leaf for leaf in leaves if not PLACEHOLDER.fullmatch(str(leaf))] == kept


def _leaves(value: Any) -> Any:
    if isinstance(value, str) and value.startswith("{"):
        value = json.loads(value)
    if isinstance(value, dict | list):
        for member in value.values() if isinstance(value, dict) else value:
            yield from _leaves(member)
    else:
        yield value


def test_a_message_stays_a_message_whatever_is_configured():
    by = redactor(paths=["$.jsonrpc", "$.error.code", "$.error", "$.id", "$.method"])
    for body in (
        {"id": 1, "error": {"code": 5, "message": "no"}},
        {"id": 1, "method": "x"},
    ):
        raw, _ = by.message(message(body))
        decode_message(raw)
    with pytest.raises(e.PathSyntax):
        redactor(paths=["params.x"])


def test_what_is_nested_beyond_measure_goes_whole():
    value: Any = TOKEN
    for _ in range(250):
        value = [value]
    for _ in range(2):
        value = json.dumps(value)
        for _ in range(250):
            value = [value]
    raw, _ = redactor().message(
        decode_message(
            json.dumps({"jsonrpc": "2.0", "method": "x", "params": value}).encode(),
            Limits(nesting=300),
        )
    )
    assert TOKEN.encode() not in raw


def test_a_key_must_be_a_key():
    with pytest.raises(ValueError, match="32 to 64 bytes"):
        TapeRedactor(b"short")
    assert redactor().key_id == TapeRedactor(KEY).key_id != TapeRedactor(KEY[::-1]).key_id
    assert KEY.hex()[:12] not in redactor().key_id


def test_bytes_that_are_ours_are_redacted_too():
    raw, _ = redactor().message(request("x", {"token": PLAIN}))
    assert PLAIN.encode() not in raw
    assert encode_message(decode_message(raw)) == raw


@SOME
@given(
    secret=FORMED,
    before=st.integers(0, 6000),
    behind=st.integers(0, 6000),
    form=st.sampled_from(["{}", "token={} ", "Authorization: Bearer {}\n", "https://a/?sig={}&"]),
)
def test_a_secret_in_a_long_text_is_found_wherever_it_stands(secret, before, behind, form):
    text = "key İ " + "so it goes. " * (before // 12) + form.format(secret) + " and" * behind
    assert redactor().text(text) == text.replace(secret, mark(secret))


def test_a_secret_that_is_long_itself_goes_whole():
    key = "-----BEGIN PRIVATE KEY-----\n" + "MIIBx\n" * 2000 + "-----END PRIVATE KEY-----"
    assert redactor().text(f"so. {key} so.") == f"so. {mark(key)} so."
    long = "x1" * 5000
    assert redactor().text(f"token={long} so.") == f"token={mark(long)} so."


def test_binary_data_in_letters_is_not_looked_into():
    blob = "iVBORw0KGgo" * 1000 + "sk_0123456789abcdef=="
    for text in (blob, f"data:image/png;base64,{blob}"):
        assert redactor().text(text) == text
    assert TOKEN not in redactor().text(f"{blob} {TOKEN}")


def test_a_very_long_message_takes_little_time():
    def took(text: str) -> float:
        given = message({"id": 1, "result": {"content": [{"type": "text", "text": text}]}})
        began = time.process_time()
        redactor().message(given)
        return time.process_time() - began

    assert took("The fox looked for a word in the text. " * 20_000 + "a token: x") < 2
    assert took("aGVsbG8" * 100_000) < 1


@pytest.mark.parametrize(
    "url",
    [
        r"https:\/\/bob:hunter22@h/x",
        r"https:/\/bob:hunter22@h/x",
        r"see \"https:\\\/\\\/bob:hunter22@h\" there",
        "https://bob:hunter22à@h/x",
        "https://bob:hunter22\ufeff@h/x",
    ],
)
def test_a_password_in_a_url_is_found_however_json_spells_it(url):
    raw = f'{{"jsonrpc":"2.0","id":1,"method":"x","params":{{"url":"{url}"}}}}'.encode()
    written, places = redactor().message(decode_message(raw))
    assert [place.path for place in places] == ["$.params.url"]
    assert b"hunter22" not in written


@pytest.mark.parametrize(
    ("secret", "spelled"),
    [
        ("abcd/efghij==", r"abcd\/efghij=="),
        ('ab"cdefghij', r"ab\"cdefghij"),
        (r"ab\cdefghij", r"ab\\cdefghij"),
        ("ab€cdefghij", r"ab\u20ACcdefghij"),
        ("€€€€€€€€", r"\u20ac\u20ac\u20ac\u20ac\u20ac\u20ac\u20ac\u20ac"),
        ("abcd/efghij==", r"it was \"abcd\\/efghij==\" then"),
        ('ab"cdefghij', r"it was \"ab\\\"cdefghij\" then"),
    ],
)
def test_a_known_credential_is_found_however_json_spells_it(secret, spelled):
    by = redactor()
    wanted = mark(secret, by)
    by.recall(((secret, "secret"),))
    raw = f'{{"jsonrpc":"2.0","id":1,"method":"x","params":{{"said":"{spelled}"}}}}'.encode()
    written, _ = by.message(decode_message(raw))
    assert wanted.encode() in written
    assert "cdefghij" not in written.decode()
    assert "efghij==" not in written.decode()


def test_half_of_a_letter_as_a_credential_lets_others_be_remembered():
    by = redactor()
    by.recall((("\ud800 and more", "secret"), ("a plain credential", "secret")))
    assert "plain" not in by.text("it was a plain credential")
