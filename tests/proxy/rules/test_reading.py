"""The file of rules: everything wrong with it is told before any of it applies."""

from __future__ import annotations

import os

import pytest

from folkmoot.core import errors as e
from folkmoot.proxy.rules import Rules
from tests.proxy.rules.support import Clock, loaded

HEAD = '[[rule]]\nname = "one"\n'


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[[rule]\n", "is not TOML: .* line 1"),
        ("a = 1\nb = \n", "is not TOML: .* line 2"),
        ("a = " + "[" * 100_000, "is not TOML: "),
        ("a = " + "9" * 10_000, "is not TOML: "),
        ("rules = []", "'rules' is not known"),
        ("rule = 3", r"rules are written as \[\[rule\]\]"),
        ('[[rule]]\naction = "block"', r"rule 1 \(line 1\): 'name' must be a text"),
        ('[[rule]]\nname = "a\\u0007"\naction = "block"', "must not hold control characters"),
        (HEAD, "rule 1 'one' .*needs either 'action' or 'use'"),
        (HEAD + 'action = "block"\nuse = "redact"', "needs either 'action' or 'use'"),
        (HEAD + 'action = "blok"', "action 'blok' is not known; did you mean 'block'?"),
        (HEAD + "action = 3", "action 3 is not known"),
        (HEAD + 'action = "block"\nmesage = "x"', "option 'mesage' is not known; .*'message'"),
        (HEAD + 'action = "block"\ncode = "x"', "option 'code': expected int"),
        (HEAD + 'action = "block"\noptions = {}', "'options' are for 'use'"),
        (HEAD + 'action = "mock"', "needs either 'result' or 'error'"),
        (HEAD + 'action = "mock"\nerror = { code = 1 }', "option 'message' is needed"),
        (HEAD + 'action = "modify"', "needs 'set' or 'remove'"),
        (HEAD + 'action = "modify"\nremove = ["$.method"]', r"must begin with \$.params"),
        (HEAD + 'action = "modify"\nremove = ["$.params"]', r"must lead into \$.params"),
        (HEAD + 'action = "modify"\nremove = ["params"]', r"must start with \$"),
        (HEAD + 'action = "modify"\nremove = ["$..x"]', "must begin with"),
        (HEAD + 'action = "delay"', "option 'seconds' is needed"),
        (HEAD + 'action = "delay"\nseconds = -1', "'seconds' must be a time from 0 to 3600"),
        (HEAD + 'action = "delay"\nseconds = [2, 1]', "'seconds' must be a time"),
        (HEAD + 'action = "hold"\nseconds = 0', "option 'seconds': expected float > 0"),
        (HEAD + 'action = "block"\nwhen = 3', "a condition is a table"),
        (HEAD + 'action = "block"\nwhen = { tol = "x" }', "condition 'tol' .* mean 'tool'?"),
        (HEAD + 'action = "block"\nwhen = { tool = 3 }', "condition 'tool' must be a text"),
        (HEAD + 'action = "block"\nwhen = { direction = "up" }', "condition 'direction': 'up'"),
        (HEAD + 'action = "block"\nwhen = { type = "reply" }', "condition 'type': 'reply'"),
        (HEAD + 'action = "block"\nwhen = { kind = "a b" }', "condition 'kind': 'a b' is no"),
        (HEAD + 'action = "block"\nwhen = { kind = "!mcp.*" }', "takes no '!'"),
        (HEAD + 'action = "block"\nwhen = { path = "$.x" }', "needs a comparison"),
        (HEAD + 'action = "block"\nwhen = { is = 3 }', "condition 'is' needs 'path'"),
        (HEAD + 'action = "block"\nwhen = { path = "$.x", gt = "3" }', "'gt' must be a number"),
        (HEAD + 'action = "block"\nwhen = { path = "$.x", in = 3 }', "'in' must be a list"),
        (HEAD + 'action = "block"\nwhen = { path = "$.x", exists = 1 }', "'exists' must be true"),
        (HEAD + 'action = "block"\nwhen = { path = "$.x", matches = 1 }', "'matches' must be"),
        (HEAD + 'action = "block"\nwhen = { any = [] }', "condition 'any' must be a list"),
        (HEAD + f'action = "block"\nwhen = {"{ not = " * 17}{{}}{"}" * 17}', "at most 16 deep"),
        (HEAD + 'use = "redakt"', "no interceptor 'redakt' to use; did you mean 'redact'?"),
        (HEAD + "use = 3", "'use' must be a text"),
        (HEAD + 'use = "redact"\noptions = 3', "'options' must be a table"),
        (HEAD + 'use = "redact"', "needs 'paths', 'names' or 'patterns'"),
        (HEAD + 'use = "redact"\npaths = []', "'paths' is not known"),
        (HEAD + 'use = "rate-limit"', "option 'per_minute' is needed"),
        (HEAD + 'use = "rate-limit"\noptions = { per_minute = "5" }', "'per_minute': expected fl"),
        (HEAD + 'use = "rate-limit"\noptions = { per_min = 5 }', "'per_min' .* 'per_minute'?"),
        (HEAD + 'use = "size-limit"\noptions = { bytes = 0 }', "option 'bytes': expected int >= 1"),
        (HEAD + 'use = "tools"', "needs 'allow' or 'deny'"),
        (HEAD + 'use = "faults"\noptions = { error = 0.6, drop = 0.6 }', "must add up to"),
        (HEAD + 'use = "plugin:nobody"', "No interceptor 'nobody' is installed"),
        (
            HEAD + 'action = "block"\n\n' + HEAD + 'action = "block"',
            r"rule 2 'one' \(line 5\): ano",
        ),
    ],
)
def test_what_is_wrong_is_told_with_file_rule_and_place(text, expected):
    with pytest.raises(e.RulesInvalid, match=expected) as caught:
        loaded(text)
    assert "rules.toml: " in caught.value.message
    assert caught.value.message.endswith((".", "?")) or "TOML" in expected
    assert not caught.value.message.endswith("?.")


def test_a_file_that_cannot_be_read_is_told_and_nobody_waits_for_a_pipe(tmp_path):
    (tmp_path / "odd").write_bytes(b"# fine\n# \xff\n")
    (tmp_path / "large").write_bytes(b"#" * (1024 * 1024 + 1))
    os.mkfifo(tmp_path / "pipe")
    for name, why in {
        "none": "cannot be read: No such file",
        "odd": "line 2 is not UTF-8",
        "large": "more than 1,048,576 bytes",
        "pipe": "is not a file",
    }.items():
        with pytest.raises(e.RulesInvalid, match=why):
            Rules.load(tmp_path / name, clock=Clock())


def test_a_line_is_left_out_where_it_could_be_wrong_and_an_empty_file_has_no_rules():
    text = f'{HEAD}action = "block"\nmessage = """\n[[rule]]\n"""\nextra = 1\n'
    with pytest.raises(e.RulesInvalid, match="rule 1 'one': option 'extra'"):
        loaded(text)
    assert loaded("").ruleset.rules == ()
