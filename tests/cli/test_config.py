"""`folkmoot config`: show, check and schema."""

from __future__ import annotations

import json
import re

from folkmoot.cli.output import ExitCode
from folkmoot.settings import FIELDS


def test_show_tells_each_value_and_where_it_came_from(cli, tmp_path):
    (tmp_path / "moot.toml").write_text('\n[log]\nlevel = "debug"\n')
    ran = cli(
        "config", "show", "--config", "moot.toml", "--data", "here",
        FOLKMOOT_PORT="9000", FOLKMOOT_MASTER_KEY="hush",
    )  # fmt: skip
    assert (ran.code, ran.err) == (0, "")
    rows = {line.split()[0]: line.split()[1:] for line in ran.out.splitlines()}
    assert list(rows) == list(FIELDS)
    assert rows["host"] == ['"127.0.0.1"', "default"]
    assert rows["log.level"] == ['"debug"', "moot.toml:3"]
    assert (rows["port"], rows["data"]) == (["9000", "FOLKMOOT_PORT"], ['"here"', "--data"])
    assert rows["master_key"] == ['"***"', "FOLKMOOT_MASTER_KEY"]
    assert "hush" not in ran.out


def test_show_is_json_for_programs(cli):
    ran = cli("config", "show", "--json", FOLKMOOT_MASTER_KEY="hush")
    told = json.loads(ran.out)
    assert (told["file"], told["settings"]["port"]) == (None, {"value": 8420, "origin": "default"})
    assert told["settings"]["http.allowed_hosts"]["value"] == []
    assert "hush" not in ran.out


def test_show_fits_a_terminal(cli):
    shown = cli.shown("config", "show", FOLKMOOT_TELEMETRY_SERVICE_NAME="x" * 100)
    shown = re.sub(r"\x1b\[[0-9;]*m", "", shown)
    assert max(map(len, shown.splitlines())) <= 80
    assert all(path in shown for path in FIELDS)


def test_check_says_that_a_file_is_right(cli, tmp_path):
    (tmp_path / "moot.toml").write_text("port = 1\n")
    ran = cli("config", "check", "moot.toml")
    assert ran == (0, "moot.toml is valid: 1 setting in effect.\n", "")
    assert cli("config", "check", "--config", "moot.toml") == ran
    told = "give the file once"
    cli.fails(
        "config", "check", "moot.toml", "--config", "other.toml", told=told, code=ExitCode.USAGE
    )
    assert cli("config", "check").out == ("There is no settings file. The environment is valid.\n")


def test_check_tells_everything_wrong_a_line_each(cli, tmp_path):
    (tmp_path / "moot.toml").write_text('port = "abc"\n\n[http]\nnope = 7\n')
    ran = cli("config", "check", "moot.toml")
    assert (ran.code, ran.out) == (ExitCode.SETTINGS, "")
    assert ran.err.splitlines() == [
        'folkmoot: error: moot.toml:1: port must be an integer between 0 and 65535, not "abc"',
        "folkmoot: error: moot.toml:4: unknown setting 'nope' in [http]",
    ]


def test_every_command_that_reads_settings_ends_the_same_on_a_broken_file(cli):
    (cli.folder / "moot.toml").write_text("port = \n")
    for command in (["serve"], ["config", "show"], ["status"], ["backup", "x"]):
        ran = cli(*command, "--config", "moot.toml")
        assert ran == (ExitCode.SETTINGS, "", "folkmoot: error: moot.toml:1:8: invalid value\n")
