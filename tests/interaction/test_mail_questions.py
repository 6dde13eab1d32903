"""An argument that is for a person to give is asked of them, where the client can ask."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import mcp_types as types
import pytest

from tests.harness import run
from tests.mcp_harness import both_eras, meeting


def saying(action: Any, content: Any, asked: list[str]) -> Any:
    """A user who answers every question like this."""

    async def answer(_: Any, params: Any) -> types.ElicitResult:
        asked.append(params.message)
        return types.ElicitResult(action=action, content=content)

    return answer


@pytest.mark.requirement("mcp.input-required")
def test_the_user_confirms_the_end_of_an_account(tmp_path: Path) -> None:
    async def main() -> None:
        async with meeting(tmp_path, "stateless") as there:
            made = await there.hub.accounts.register("alice")
            asked: list[str] = []
            for action, content, sentence in (
                ("decline", None, "To delete your account, give your own handle as confirm."),
                ("accept", {"confirm": "bob"}, "To delete your account, give your own handle"),
                ("accept", {"confirm": 7}, "confirm must be a string."),
                ("accept", None, "To delete your account, give your own handle as confirm."),
            ):
                alice = await there.returning(
                    made.token, elicitation_callback=saying(action, content, asked)
                )
                assert (await alice.refused("msg/delete_account")).startswith(sentence)
            alice = await there.returning(
                made.token, elicitation_callback=saying("accept", {"confirm": "alice"}, asked)
            )
            gone = await alice.call("msg/delete_account")
            assert gone["handle"] == "alice"
            assert len(asked) == 5
            assert "This cannot be undone." in asked[0]

    run(main())


@both_eras
def test_nobody_is_asked_who_cannot_be_or_need_not_be(era: str, tmp_path: Path) -> None:
    async def main() -> None:
        async with meeting(tmp_path, era) as there:
            asked: list[str] = []
            answer = saying("accept", {"confirm": "alice"}, asked)
            stranger = await there.stranger(elicitation_callback=answer)
            sentence = await stranger.refused("msg/delete_account")
            assert sentence == "Authentication required."
            silent = await there.person("alice")
            assert await silent.refused("msg/delete_account") == "Missing argument: confirm."
            alice = await there.returning(silent.token, elicitation_callback=answer)
            await alice.call("msg/delete_account", confirm="alice")
            assert asked == []

    run(main())
