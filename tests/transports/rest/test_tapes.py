"""Tapes over REST: for whoever may run the hub, and nothing but tapes."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from folkmoot.core.scopes import OPERATE
from tests.proxy.tape.test_folder import NAME, tape
from tests.transports.rest.support import Asker, House, done, house, refused

TAPES = "/v1/tapes"


async def operator(here: House) -> Asker:
    """Someone with a token that may run the hub."""
    made = await here.hub.accounts.register("otto")
    authentication = here.hub.accounts.authentication
    token = await authentication.create(made.account, scope=f"* {OPERATE}", operated=True)
    return Asker(here.port, token.token)


async def test_an_operator_lists_reads_and_downloads_tapes_and_nobody_else_does(tmp_path):
    folder = tmp_path / "tapes"
    folder.mkdir()
    path = tape(folder)
    (tmp_path / "secret.jsonl").write_bytes(path.read_bytes())
    (folder / "link.jsonl").symlink_to(tmp_path / "secret.jsonl")
    async with house(tmp_path / "hub", record={"folder": str(folder)}) as here:
        ann, root = await here.person("ann"), await operator(here)
        # The hub records to the same folder, and its own tape is the newest.
        now, old = (await root.get(TAPES))["tapes"]
        assert (now["recording"], now["ended"]) == (True, None)
        assert (old["name"], old["messages"], old["recording"]) == (NAME, 6, False)
        first = await root.get(f"{TAPES}?limit=1")
        after = quote(first["next_cursor"], safe="")
        assert (await root.get(f"{TAPES}?limit=1&cursor={after}"))["tapes"] == [old]
        page = await root.get(f"{TAPES}/{NAME}?limit=2")
        assert [it["type"] for it in page["entries"]] == ["header", "message"]
        rest = await root.get(f"{TAPES}/{NAME}?cursor={page['next_cursor']}")
        assert rest["entries"][-1]["type"] == "end"
        whole = await root.ask("GET", f"{TAPES}/{NAME}/file")
        assert whole.body == path.read_bytes()
        assert whole.headers["content-disposition"] == f'attachment; filename="{NAME}"'
        for name in ("link.jsonl", "..%2fsecret.jsonl", "%2e%2e", "nothing.jsonl", "a%00b.jsonl"):
            for where in (f"{TAPES}/{name}", f"{TAPES}/{name}/file"):
                assert (await root.ask("GET", where)).status == 404
        for where in (TAPES, f"{TAPES}/{NAME}", f"{TAPES}/{NAME}/file"):
            assert (await ann.ask("GET", where)).status == 403
            refused(await here.stranger.ask("GET", where), 401, "authentication_required")
        assert done(await root.ask("HEAD", f"{TAPES}/{NAME}"), 200) is None


async def test_an_operator_reads_a_timeline_a_message_and_calls_and_is_audited_once(tmp_path):
    folder = tmp_path / "tapes"
    folder.mkdir()
    path = tape(folder)
    lines = path.read_bytes().splitlines(keepends=True)
    damaged = folder / "damaged.jsonl"
    damaged.write_bytes(lines[0] + b"rubbish\n" + b"".join(lines[1:]))
    async with house(tmp_path / "hub", record={"folder": str(folder)}) as here:
        ann, root = await here.person("ann"), await operator(here)
        one = f"{TAPES}/{NAME}"
        about = await root.get(f"{one}/about")
        assert (about["messages"], about["path"]) == (6, str(path))

        async def page(query: str, *seqs: int) -> Any:
            found = await root.get(f"{one}/messages?{query}")
            assert [it["seq"] for it in found["messages"]] == [*seqs]
            return found

        first = await page("limit=4", 1, 2, 3, 4)
        assert (first["previous_cursor"], first["recording"]) == (None, False)
        assert (await page(f"cursor={first['next_cursor']}", 5, 6))["next_cursor"] is None
        last = await page("last=true&limit=2", 5, 6)
        await page(f"before={last['previous_cursor']}&limit=2", 3, 4)
        assert (await page("errors=true"))["next_cursor"] is None
        offset = first["messages"][1]["offset"]
        pair = await root.get(f"{one}/messages/{offset}")
        assert (pair["line"]["seq"], pair["other"]["seq"]) == (2, 1)
        calls = await root.get(f"{one}/calls?compare=exact")
        assert [it["seq"] for it in calls["calls"]] == [1, 3, 5]
        assert (calls["messages"], calls["next_cursor"]) == (6, None)
        for wrong in ("messages?cursor=7", "messages?before=7", "messages/7", "calls?cursor=x"):
            refused(await root.ask("GET", f"{one}/{wrong}"), 400, "argument_invalid")
        told = await root.ask("GET", f"{TAPES}/damaged.jsonl/messages")
        assert "damaged at byte" in refused(told, 422, "tape_unreadable")["message"]
        for where in ("about", "messages", f"messages/{offset}", "calls"):
            assert (await ann.ask("GET", f"{one}/{where}")).status == 403
            for name in ("..%2fsecret.jsonl", "nothing.jsonl", ".", "a%00b.jsonl"):
                assert (await root.ask("GET", f"{TAPES}/{name}/{where}")).status in (400, 404)
            answer = await root.ask("GET", f"{one}/{where}?place=0123456789ab")
            refused(answer, 404, "tape_not_found")
        read = [it for it in (await root.get("/v1/audit"))["lines"] if it["action"] == "tape.read"]
        assert [(it["by"], it["about"]) for it in read] == [("otto", NAME)]
