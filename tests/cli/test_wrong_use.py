"""Command lines that make no sense: each is told in a line, and nothing is begun."""

from __future__ import annotations

import re
import shlex

import pytest

from folkmoot.cli.operator import QUOTING
from folkmoot.cli.output import ExitCode

CLIENTS = (
    "claude-desktop, claude-code, vscode, cursor, codex, gemini, windsurf, zed, goose or mcpservers"
)
WRONG = {
    "docto": "no such command 'docto'. Did you mean 'doctor'?",
    "--nope": "no such option: --nope",
    "serve --nope": "no such option: --nope",
    "serve --port abc": '--port must be an integer between 0 and 65535, not "abc"',
    "serve --log-level loud": '--log-level must be "debug", "info", "warning" or "error", not',
    "inbox --wait 100": "--wait must be a whole number from 0 to 55, not '100'",
    "inbox --limit x": "--limit must be a whole number from 1 to 100, not 'x'",
    "account profile --privacy secret": "--privacy must be public, contacts_only or private, not",
    "send bob Hi --priority high": "--priority must be urgent, normal, low or fyi, not 'high'",
    "connect emacs": f"CLIENT must be {CLIENTS}, not 'emacs'",
    "connect mcpservers": "--file is needed for this client",
    "connect cursor --bridge --search": "--bridge goes with neither --search nor --no-token",
    "connect cursor --scope ' '": "--scope must name",
    "config check a b": "got unexpected extra argument(s) (b)",
    "mail contacts --as bob add cy": "options come after 'add', not before it",
    "mail contacts --json list": "options come after 'list', not before it",
    "account --json use bob": "options come after 'use', not before it",
    "bridge --keyring key show": "options come after 'key', not before it",
    "people --json add zoe": "options come after 'add', not before it",
    "register ada --url localhost:8420": "--url must ",
    "register ada --url ftp://x": "--url must ",
    "register ada --url http://": "--url must ",
    "register ada --url http://a:b@c": "--url must ",
    "keys rotate-master --cancel --discard-old": "--cancel ",
    "keys rotate-master --from a --to b": "--from ",
    "keys rotate-master --keep-old a --discard-old": "--keep-old ",
    "audit --since soon": "must be a time such as 30m, 12h or 7d",
    "audit --last 0": "must be a whole number from 1 to 10000",
    "audit --follow --export x": "give --follow or --export, not both",
    "grant alice": "missing argument 'PATTERN…'",
    "revoke alice": "give the patterns to revoke, or --all",
    "invite --for gina --as me": "--for can only be combined with",
    "invite --days 2": "need --for",
    "tokens create --data .": "--data and --config need --for",
    "tokens create --for alice --as alice": "--for cannot be combined with --url or --as",
    "open --operate": "--operate needs --for HANDLE",
    "open --for ada --as ada": "--for cannot be combined with --url or --as",
    "new server notes --sdk other": "must be mcp or fastmcp, not 'other'",
    "new server": "missing argument 'NAME'",
    "names doc nowhere": "nowhere: there is no such file or folder",
    "names doc --check --diff": "give either --check or --diff",
    "names doc --header a=b": "--header needs --url",
    "names doc . -- y": "give a FILE, or --url URL, or a command after --",
    "room show ../x": "NAME must be 1 to 64 lower-case letters, digits, dots, underscores and",
    "room create x --access secret": "--access must be open, invite or private, not 'secret'",
    "room create x --grant bob": "--grant must be HANDLE=PATTERN, not 'bob'",
    "room create x --capability {": "'{' is neither a pattern nor JSON",
    "room change x": "give at least one setting to change",
    "room change x --grant bob=a.b --ungrant bob": "--grant and --ungrant both name 'bob'",
    "room history x --after 1 --before 2": "--after and --before cannot be combined",
    "room history x --limit 0": "--limit must be a whole number from 1 to 10000, not '0'",
    "room invite x": "give either a HANDLE or --guest",
    "room invite x bob --guest grace": "give either a HANDLE or --guest",
    "room invite x bob --grant a.b": "--grant is for a --guest; use 'room change --grant' for a ha",
    "room join x --invitation --as bob": "--invitation and --as cannot be combined",
    "room join x --invitation": "no invitation in FOLKMOOT_INVITATION or on the standard input",
    "room say x ' '": "the text is empty",
    "room --json list": "options come after 'list', not before it",
    "room --as bob say x y": "options come after 'say', not before it",
    "backends add abc": "give one NAME, and either --url URL or a command after --",
    "backends add abc --url http://h -- x": "give one NAME, and either --url",
    "backends add a-b -- x": '"a-b" is not a valid namespace; give it one with --namespace',
    "backends add 'Bad Name' -- x": '"Bad Name" is not a valid namespace; ',
    "backends add abc --env sesame -- x": "--env must be NAME=VALUE, NAME=env:VARI",
    "backends add abc --url http://me:sesame@h": "abc.url must be an http:// or https://",
    "backends add chat -- x": "the namespace chat is reserved; choose another",
    "backends add --from x.json --url http://h": "--from imports servers as they are",
    "backends test": "give a NAME, or --url URL, or a command after --",
    "backends test abc --env A=b": "--namespace, --env and --header are for other servers",
    "backends accept": "give the tools or backends to accept, or --all",
    "call --header a:b -- x": "--header needs the URL of a server",
    "call port=Rye -- x": "arguments are for a tool or a --prompt",
    "call tide --read x -- x": "arguments are for a tool or a --prompt",
    "call --read x --prompt y -- x": "give a TOOL, or --read, or --prompt",
    "call 127.0.0.1:9": "give the server's URL, or its command after --",
    "call": "give the server's URL, or its command after --",
    "proxy": "give either --upstream URL or a command after --",
    "proxy --upstream http://x/mcp -- cat": "give either --upstream URL or a command",
    "proxy npx -y server": "no such command 'npx' (put a server's command after --)",
    "proxy --upstream nowhere": "--upstream must be a URL such as",
    "proxy --upstream ftp://x/": "--upstream must be a URL such as",
    "proxy --listen here -- cat": "--listen must be HOST:PORT",
    "proxy --listen 127.0.0.1:65536 -- cat": "a port from 0 to 65535",
    "proxy --record a --record-dir b -- cat": "either --record or --record-dir",
    "proxy --redact $.a -- cat": "--redact needs --record or --record-dir",
    "proxy --record a --redact pin -- cat": "'pin' is not a path in a message",
    "proxy --hold-in square -- cat": "--hold-in needs --rules or --interceptor",
    "proxy --as ada -- cat": "--as needs --hold-in",
    "proxy --header x:y -- cat": "--header needs --upstream",
    "proxy --record a held list": "options come after 'held', not before it",
    "tape show a --kind mcp..x": "is not a valid capability pattern",
    "tape show a --direction up": "must be client or server, not 'up'",
    "tape show a --limit 0": "must be a whole number from 1",
    "tape show a --follow --pairs": "--follow and --pairs cannot be combined",
    "tape show a --last 1 --limit 1": "--limit and --last cannot be combined",
    "tape show a --slower-than soon": "must be a time such as 500ms or 2s, not 'soon'",
    "tape diff a b --ignore result": "'result' is not a path in a message",
    "tape serve a --mode fuzzy": "must be exact, arguments or order",
    "tape serve a --timing -1": "must be a number from 0 to 100",
    "tape serve a --listen here": "HOST:PORT",
    "tape serve a --ignore params": "is not a path in a message",
    "tape play a": "give either --upstream URL or a command",
    "tape play a --secret x=y -- x": "--secret must be",
    "tape play a --secret [redacted:token:0123456789ab]=NOT_THERE -- x": "NOT_THERE is not set",
}


@pytest.mark.parametrize("line", WRONG)
def test_a_wrong_command_line_is_told_in_a_line_and_nothing_is_begun(cli, line):
    ran = cli.fails(*shlex.split(line), told=WRONG[line], code=ExitCode.USAGE)
    told = re.fullmatch(r"folkmoot: error: (.*)\nTry '(folkmoot.*) --help'\.\n", ran.err)
    assert told is not None, ran.err
    assert WRONG[line] in told[1]
    assert f"folkmoot {line}".startswith(told[2])
    assert "sesame" not in ran.err
    assert list(cli.folder.iterdir()) == []


REFUSED = {
    "people suspend nobody": "Nobody has the handle @nobody.",
    "people suspend no!": "'no!' is not a valid handle.",
    "people add alice": "Handle already taken.",
    "people add no!": "Invalid handle.",
    "grant nobody msg/send": "Nobody has the handle @nobody.",
    "grant alice Files:*": f"at character 1. {QUOTING}",
    "grant alice system.*": "nobody else can hold it.",
    "revoke alice msg/*": "as every account does; deny it to take it away.",
    "rights nobody": "Nobody has the handle @nobody.",
    "invite --for alice": "an account has this handle.",
    "tokens create --for nobody": "Nobody has the handle @nobody.",
    "tokens create --for alice --scope run": "There is no scope 'run'.",
}


def test_what_an_operator_cannot_do_is_one_line_that_says_why(cli, data):
    for line, told in REFUSED.items():
        assert told in cli.fails(*line.split(), told=told).err.splitlines()[0]
    told = "no terminal to ask for confirmation; use --yes"
    cli.fails("people", "remove", "alice", told=told, code=ExitCode.USAGE)
    assert cli.json("audit", "--by", "operator") == {"lines": []}
