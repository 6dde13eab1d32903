"""What is for operators: the metrics, and why a hub is ready or not."""

from __future__ import annotations

import asyncio
import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from folkmoot.app import Hub
from folkmoot.cli.output import ExitCode
from folkmoot.core import errors as e
from folkmoot.settings import Settings
from folkmoot.store import meta
from folkmoot.telemetry.redaction import redactor
from tests.clocks import Later
from tests.forge import forked
from tests.harness import Answer, ask, run
from tests.mcp_harness import settings
from tests.nodes import port
from tests.operator import read_socket
from tests.process import Process, environment

TOKEN = "operators-token-0123456789"
PROXIED = (
    {"forwarded": "for=10.0.0.1"},
    {"x-forwarded-for": "10.0.0.1"},
    {"x-forwarded-proto": "https"},
    {"X-Real-IP": "10.0.0.1"},
    {"Via": "1.1 proxy"},
    {"cf-connecting-ip": "10.0.0.1"},
    {"host": "moot.localhost.example"},
)


async def get(hub: Hub, path: str, **headers: str) -> Answer:
    return await ask(port(hub), path, headers=headers)


def made(folder: Path, **values: Any) -> Settings:
    return settings(folder, http={"allowed_hosts": ["moot.localhost.example"]}, **values)


async def shows(hub: Hub, **headers: str) -> bool:
    """Whether a request is an operator's; every address must say the same."""
    metrics = await get(hub, "/metrics", **headers)
    ready = await get(hub, "/health/ready", **headers)
    page = await get(hub, "/", **headers)
    assert ready.status == 200
    open_to = metrics.status == 200
    assert ("folkmoot_uptime_seconds" in metrics.text) is open_to
    expected = {"status", "checks", "backends", "held_tools"} if open_to else {"status"}
    assert ready.json().keys() == expected
    assert ready.json()["status"] == "ready"
    assert ("/metrics" in page.text) is open_to
    return open_to


async def test_on_its_own_machine_a_hub_tells_operators_and_no_proxy(tmp_path):
    async with Hub(made(tmp_path)).running() as hub:
        assert await shows(hub)
        for headers in PROXIED:
            assert not await shows(hub, **headers), headers
            refused = await get(hub, "/metrics", **headers)
            assert refused.status == 404
            assert "operator" in refused.json()["error"]["message"]


@pytest.mark.parametrize(
    "behind",
    [{"public_url": "http://moot.example"}, {"http": {"trusted_proxies": ["10.0.0.0/8"]}}],
    ids=["public_url", "trusted_proxies"],
)
async def test_behind_a_proxy_nobody_is_an_operator_without_the_token(behind, tmp_path):
    async with Hub(settings(tmp_path / "a", **behind)).running() as hub:
        assert not await shows(hub)
        assert not await shows(hub, authorization=f"Bearer {TOKEN}")
    async with Hub(settings(tmp_path / "b", telemetry={"token": TOKEN}, **behind)).running() as hub:
        assert await shows(hub, authorization=f"Bearer {TOKEN}")
        assert await shows(hub, authorization=f"bearer {TOKEN}", **{"x-real-ip": "10.0.0.1"})
        for wrong in (f"Bearer {TOKEN}x", "Bearer x", f"Basic {TOKEN}", f"Bearer \xff{TOKEN}"):
            assert not await shows(hub, authorization=wrong)
        refused = await get(hub, "/metrics")
        assert (refused.status, refused.headers["www-authenticate"]) == (401, "Bearer")
        assert (await get(hub, f"/metrics?token={TOKEN}")).status == 401
        assert TOKEN not in repr(hub.settings)
        assert TOKEN not in redactor.redact(f"scraped with {TOKEN}")


async def test_the_token_may_stand_in_a_file_and_must_be_long_enough(tmp_path):
    file = tmp_path / "token"
    file.write_text(f"{TOKEN}\n")
    behind = {"public_url": "http://moot.example", "telemetry": {"token_file": str(file)}}
    async with Hub(settings(tmp_path / "a", **behind)).running() as hub:
        assert await shows(hub, authorization=f"Bearer {TOKEN}")
        assert TOKEN not in redactor.redact(f"scraped with {TOKEN}")
    for telemetry in ({"token": "short"}, {"token_file": str(tmp_path / "nowhere")}):
        with pytest.raises(e.SettingsError, match=r"telemetry\.token"):
            async with Hub(settings(tmp_path / "b", telemetry=telemetry)).running():
                pytest.fail("The hub started.")
    assert not (tmp_path / "b").exists()


async def test_a_setting_opens_them_to_everyone(tmp_path):
    open_to_all = {"public_url": "http://moot.example", "telemetry": {"access": "everyone"}}
    async with Hub(made(tmp_path, **open_to_all)).running() as hub:
        for headers in ({}, *PROXIED):
            assert await shows(hub, **headers)


async def test_readiness_writes_once_a_second_however_many_ask(tmp_path, monkeypatch):
    marks: list[object] = []
    write_probe = meta.write_probe

    def noted(probe: meta.Probe) -> object:
        marks.append(probe)
        return write_probe(probe)

    monkeypatch.setattr(meta, "write_probe", noted)
    clock = Later()
    async with Hub(settings(tmp_path), clock).running() as hub:
        for second in range(3):
            clock.ahead = 10.0 * second
            answers = await asyncio.gather(*(get(hub, "/health/ready") for _ in range(30)))
            assert {answer.status for answer in answers} == {200}
            assert len(marks) == second + 1


def test_the_control_socket_tells_operators_wherever_the_hub_stands(tmp_path):
    with Process(tmp_path, FOLKMOOT_PUBLIC_URL="http://moot.example") as hub:
        told = json.loads(read_socket(tmp_path / "control.sock", "/health/ready")[1])
        assert told["checks"] == {"database": {"ok": True}}

        def status(option: str) -> subprocess.CompletedProcess[str]:
            return forked.run(
                ["status", "--data", str(tmp_path), option], env=environment(), timeout=60
            )

        ready = status("--ready")
        assert (ready.returncode, '"ready"' in ready.stdout) == (ExitCode.OK, True)
        metrics = status("--metrics")
        assert metrics.returncode == ExitCode.OK
        assert "folkmoot_uptime_seconds" in metrics.stdout
        assert run(ask(hub.port, "/metrics")).status == 404
        hub.stop()
