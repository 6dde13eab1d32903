"""`folkmoot doctor`: finds what is wrong, says what to do, changes nothing."""

from __future__ import annotations

import json
import socket
from contextlib import closing
from typing import TYPE_CHECKING

import apsw
import pytest

from folkmoot.app import Hub
from folkmoot.cli import doctor
from folkmoot.cli.doctor import required
from folkmoot.cli.output import ExitCode
from tests.certificates import certificate
from tests.cli.conftest import Cli, Run, let_run

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def examined(cli: Cli) -> Run:
    """Run the doctor and answer its findings by subject, with its exit code."""

    def run(*arguments: str, **variables: str) -> tuple[int, dict[str, dict[str, str]]]:
        ran = cli("doctor", "--json", "--port", "0", *arguments, **variables)
        assert ran.err == ""
        told = json.loads(ran.out)
        assert told["ok"] is (ran.code == 0)
        return ran.code, {finding["subject"]: finding for finding in told["findings"]}

    return run


@pytest.fixture
def problem(examined: Run) -> Run:
    """Run the doctor, who finds a problem with a subject."""

    def run(subject: str, *arguments: str, **variables: str) -> dict[str, str]:
        code, findings = examined(*arguments, **variables)
        assert (code, findings[subject]["level"]) == (ExitCode.FAILED, "problem")
        return findings[subject]

    return run


def test_before_the_first_start_all_is_well_and_nothing_is_made(examined, tmp_path):
    code, findings = examined()
    assert code == ExitCode.OK
    assert {finding["level"] for finding in findings.values()} == {"ok"}
    assert "created at the first start" in findings["data folder"]["text"]
    assert list(tmp_path.iterdir()) == []


def test_a_folder_in_good_order_is_well_and_stays_as_it_is(examined, data):
    before = snapshot(data)
    code, findings = examined()
    assert code == ExitCode.OK
    assert "matches the database" in findings["master key"]["text"]
    assert "intact" in findings["database"]["text"]
    assert findings["hub"]["text"] == "not running"
    assert snapshot(data) == before


def test_a_hub_on_the_network_without_tls_is_warned_of_at_its_start_and_by_the_doctor(
    cli, start_hub
):
    out = cli.says("doctor", "--host", "0.0.0.0", "--port", "0")
    assert "warning  settings     --host: the hub listens on 0.0.0.0 without TLS" in out
    assert "→ Set tls.certificate and tls.key, or put a proxy" in out
    assert "listens on 0.0.0.0 without TLS" in start_hub("--host", "0.0.0.0").stop().err
    assert "without TLS" not in start_hub().stop().err


def test_a_running_hub_is_asked(examined, start_hub):
    hub = start_hub()
    code, findings = examined("--port", hub.url.rpartition(":")[2])
    assert code == ExitCode.OK
    assert hub.url in findings["control"]["text"]
    assert findings["port"]["text"].endswith("in use by the running hub")
    _, elsewhere = examined("--port", "0")
    assert elsewhere["port"] == findings["port"]


def test_what_is_wrong_is_told_with_what_to_do(cli, data):
    data.chmod(0o755)
    (data / "master.key").unlink()
    ran = cli("doctor", "--port", "0")
    assert ran.code == ExitCode.FAILED
    assert f"→ Run: chmod 700 {data}" in ran.out
    assert "problem  master key" in ran.out
    assert ran.out.endswith("\nFound 1 problem and 1 warning.\n")


def test_another_key_is_a_problem_and_is_not_shown(problem, data):
    assert "5f5f" not in problem("master key", FOLKMOOT_MASTER_KEY="5f" * 32)["text"]


def test_a_key_that_is_none_is_a_problem_before_the_first_start(problem):
    problem("master key", FOLKMOOT_MASTER_KEY="shorty12345")


@pytest.mark.parametrize(("file", "subject"), [("master.key", "master key"), ("hub.lock", "hub")])
def test_a_link_that_a_hub_refuses_is_a_problem(problem, data, file, subject):
    (data / file).unlink(missing_ok=True)
    (data / file).symlink_to("nowhere")
    problem(subject)


def test_a_folder_in_the_place_of_the_database_is_named_as_one(examined, data):
    (data / "folkmoot.db").unlink()
    (data / "folkmoot.db").mkdir()
    code, findings = examined()
    assert code == ExitCode.FAILED
    assert "is a folder" in findings["database"]["text"]
    assert findings["master key"]["level"] == "ok"


def test_a_key_others_can_read_is_a_problem(problem, data):
    (data / "master.key").chmod(0o644)
    assert problem("permissions")["advice"] == f"Run: chmod 600 {data / 'master.key'}"


def test_a_file_that_is_no_database_is_a_problem(problem, data):
    (data / "folkmoot.db").write_bytes(b"not a database" * 1000)
    assert "-wal and -shm" in problem("database")["advice"]


def test_a_database_of_another_version_is_a_problem(problem, data):
    with closing(apsw.Connection(str(data / "folkmoot.db"))) as database:
        database.execute("INSERT INTO schema_migrations VALUES (999, 'later')").fetchall()
    found = problem("database")
    assert found["text"].endswith("was written by another version of Folkmoot.")
    assert "folkmoot export" in found["advice"]


def test_a_taken_port_is_a_problem(problem):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        found = problem("port", "--port", str(taken.getsockname()[1]))
    assert "--port" in found["advice"]


def test_a_folder_that_cannot_be_is_a_problem(problem, tmp_path):
    (tmp_path / "file").touch()
    problem("data folder", "--data", "file/below")


def test_wrong_settings_are_a_problem_and_the_rest_is_still_told(examined, tmp_path):
    (tmp_path / "moot.toml").write_text("port = true\n")
    code, findings = examined("--config", "moot.toml")
    assert code == ExitCode.FAILED
    assert findings["settings"]["text"].startswith("moot.toml:1: port must be")
    assert findings["program"]["level"] == "ok"


def test_a_certificate_is_tried_with_its_key(examined, tmp_path):
    assert examined()[1]["tls"]["text"] == "off"
    cert, key = certificate(tmp_path / "one")
    _, other = certificate(tmp_path / "other")
    chosen = {"FOLKMOOT_TLS_CERTIFICATE": str(cert), "FOLKMOOT_TLS_KEY": str(key)}
    code, findings = examined(**chosen)
    assert (code, findings["tls"]["text"]) == (ExitCode.OK, f"{cert}: matches its key")
    for wrong, said in {
        str(other): f"tls.key: {other} is not the key of {cert}",
        str(tmp_path / "none"): f"tls.key: there is no file {tmp_path / 'none'}",
    }.items():
        code, findings = examined(**{**chosen, "FOLKMOOT_TLS_KEY": wrong})
        assert code == ExitCode.FAILED
        assert (findings["tls"]["level"], findings["tls"]["text"]) == ("problem", said)
        assert findings["port"]["level"] == "ok"


def test_the_findings_fit_a_terminal(cli):
    shown = cli.shown("doctor", "--port", "0", NO_COLOR="1")
    assert max(map(len, shown.splitlines())) <= 80
    assert shown.endswith("\nNo problems found.\n")


def test_the_packages_looked_for_are_those_of_the_project_itself():
    assert {"apsw", "msgspec", "typer", "uvicorn"} <= set(required())
    assert "pytest" not in required()


def test_a_program_that_runs_without_being_installed_is_told_so(monkeypatch):
    monkeypatch.setattr(doctor, "PROGRAM", "no-such-package")
    finding = doctor.check_packages()
    assert (finding.level, finding.text) == ("warning", "Folkmoot itself is not installed")


def snapshot(folder: Path) -> dict[str, tuple[int, bytes]]:
    """Every file with its mode and content."""
    return {
        file.name: (file.stat().st_mode, file.read_bytes()) for file in sorted(folder.iterdir())
    }


def test_tapes_that_cannot_be_written_and_rules_that_cannot_be_read_are_found(examined, tmp_path):
    (tmp_path / "rules.toml").write_text('[[rule]]\nname = "one"\naction = "blok"\n')
    (tmp_path / "file").write_text("")
    chosen = {"FOLKMOOT_INTERCEPTORS_RULES": "rules.toml", "FOLKMOOT_RECORD_FOLDER": "file/tapes"}
    code, findings = examined(**chosen)
    assert code == ExitCode.FAILED
    assert findings["recording"]["text"].endswith("file: is not a folder")
    assert "did you mean 'block'?" in findings["rules"]["text"]
    (tmp_path / "rules.toml").write_text('[[rule]]\nname = "one"\naction = "block"\n')
    (tmp_path / "open").mkdir(mode=0o755)
    code, findings = examined(**{**chosen, "FOLKMOOT_RECORD_FOLDER": "open"})
    assert (code, findings["rules"]["text"]) == (0, "rules.toml")
    assert findings["recording"]["level"] == "warning"


def sent(folder: Path, count: int) -> None:
    """Let ada have sent some mail to bob."""

    async def send(hub: Hub) -> None:
        ada, _ = [(await hub.accounts.register(name)).account for name in ("ada", "bob")]
        for _ in range(count):
            await hub.mail.send(ada, "bob", body="x" * 1_000)

    let_run(folder, send)


@pytest.mark.requirement("hub.quota-told")
def test_whoever_is_near_a_quota_is_named_and_a_full_disk_is_a_problem(examined, data):
    sent(data, 5)
    before = snapshot(data)
    code, findings = examined()
    assert (code, findings["quotas"]["level"]) == (ExitCode.OK, "ok")
    assert findings["quotas"]["text"].startswith("mail 9.1 KiB of 64.0 GiB, rooms 0 bytes of ")
    code, findings = examined(FOLKMOOT_QUOTAS_MAIL_BYTES_PER_ACCOUNT="10000")
    assert (code, findings["quotas"]["level"]) == (ExitCode.OK, "warning")
    assert "nearly used up: @ada (mail 93%)" in findings["quotas"]["text"]
    code, findings = examined(FOLKMOOT_QUOTAS_MAIL_BYTES="10000")
    assert "the hub's mail (93%)" in findings["quotas"]["text"]
    code, findings = examined(FOLKMOOT_QUOTAS_MIN_FREE_DISK_BYTES=str(1 << 50))
    assert (code, findings["quotas"]["level"]) == (ExitCode.FAILED, "problem")
    assert snapshot(data) == before


@pytest.mark.requirement("hub.quota-told")
def test_a_share_that_was_counted_wrong_is_found(examined, data):
    sent(data, 2)
    with closing(apsw.Connection(str(data / "folkmoot.db"))) as connection:
        connection.execute("UPDATE mail_shares SET bytes = bytes - 1")
    code, findings = examined()
    assert (code, findings["quotas"]["level"]) == (ExitCode.OK, "warning")
    assert findings["quotas"]["text"].endswith("miscounted: mail: 1 of the shares")


def test_a_database_and_a_bus_that_cannot_be_reached_are_problems_without_their_passwords(examined):
    with closing(socket.create_server(("127.0.0.1", 0))) as server:
        port = server.getsockname()[1]
    code, findings = examined(
        FOLKMOOT_STORE_URL=f"postgresql://hub:hush@127.0.0.1:{port}/moot",
        FOLKMOOT_BUS_URL=f"nats://hub:hush@127.0.0.1:{port}",
        FOLKMOOT_CLUSTER_ADDRESS="http://node1:8420",
        FOLKMOOT_MASTER_KEY="5f" * 32,
    )
    assert code == ExitCode.FAILED
    for subject in ("database", "bus"):
        assert findings[subject]["level"] == "problem"
        assert f"127.0.0.1:{port}" in findings[subject]["text"]
        assert "hush" not in json.dumps(findings[subject])
