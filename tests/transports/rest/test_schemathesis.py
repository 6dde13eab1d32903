"""The hub as a client none of us wrote sees it: by its document, and with whatever else it sends.

Every answer must have a status, type, headers and content that the document names; none may be a
failure of the hub's; what the document does not allow must be refused.
"""

from __future__ import annotations

import asyncio
import os
import sys
from asyncio.subprocess import PIPE, STDOUT
from pathlib import Path

import pytest

from tests.amounts import times
from tests.harness import ask, run
from tests.transports.rest.support import House, house

CONFIG = Path(__file__).with_name("schemathesis.toml")
IN_A_ROOM = '"path.room" = "planning"\n'

# Without its account everything after would be refused, and a stream of events has no end.
STAY = ("--exclude-operation-id", "deleteAccount", "--exclude-operation-id", "followEvents")

WAYS = [
    pytest.param("", STAY, id="any-room"),
    pytest.param(
        IN_A_ROOM, (*STAY, "--exclude-operation-id", "deleteRoom"), id="a-room-that-is-there"
    ),
]


async def schemathesis(
    here: House, folder: Path, token: str, config: str, *arguments: str
) -> tuple[int, str]:
    """How a run against the hub ended, and what it said."""
    path = folder / "schemathesis.toml"
    path.write_text(CONFIG.read_text("utf-8") + config, "utf-8")
    process = await asyncio.create_subprocess_exec(
        str(Path(sys.executable).with_name("schemathesis")),
        "--config-file",
        str(path),
        "run",
        f"http://127.0.0.1:{here.port}/v1/openapi.json",
        *arguments,
        cwd=folder,
        env={**os.environ, "FOLKMOOT_REST_TOKEN": token},
        stdout=PIPE,
        stderr=STDOUT,
    )
    try:
        output, _ = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    return process.returncode or 0, output.decode()


def conforms(folder: Path, config: str, arguments: tuple[str, ...], examples: int) -> None:
    async def main() -> None:
        async with house(folder / "hub", rooms={"max_rooms_each": 100_000}) as here:
            ada, _ = await here.people("ada", "bob")
            await ada.create("planning")
            await ada.say("planning", "Good morning!")
            code, output = await schemathesis(
                here, folder, ada.token, config, "--max-examples", str(examples), *arguments
            )
            assert code == 0, output
            assert "Fuzzing" in output
            assert ada.token not in output
            assert (await ask(here.port, "/health/ready")).status == 200

    run(main(), seconds=800)


@pytest.mark.long
@pytest.mark.timeout(900)
@pytest.mark.requirement("room.rest-openapi")
@pytest.mark.parametrize(("config", "arguments"), WAYS)
def test_the_hub_answers_as_its_document_says(tmp_path, config, arguments):
    conforms(tmp_path, config, arguments, examples=times(10))
