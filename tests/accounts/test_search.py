from __future__ import annotations

from typing import Any

import pytest

from folkmoot.accounts import Account
from folkmoot.accounts.queries import grams_of
from folkmoot.core.ports import NewRows, Tx
from tests.accounts.support import World


async def found(here: World, viewer: Account, query: str) -> list[str]:
    return [one.handle for one in await here.accounts.search(viewer, query)]


@pytest.mark.requirement(
    "tool.search-users.contains", "tool.search-users.output", "handle.localhost"
)
async def test_users_are_found_by_any_part_of_handle_or_display_name_in_any_case(world, viewer):
    await world.join("alice", display_name="Straße Ümläut", bio="Hello!")
    await world.join("bobby", display_name="Σίσυφος \U0001f600 100% sure_thing")
    for query in ("a", "LI", "ice", "Alic", "@alice", "@ALICE@localhost", "straSSE", "e üm", "ÜM"):
        assert await found(world, viewer, query) == ["alice"], query
    for query in ("bobby", "\U0001f600", "σίσυφος", "ΣΊΣΥΦΟΣ", "0% sure"):
        assert await found(world, viewer, query) == ["bobby"], query
    for query in ("alicf", "ecila", "alice\nbobby", "aliceStraße"):
        assert await found(world, viewer, query) == [], query
    [alice] = await world.accounts.search(viewer, "alice")
    assert (alice.handle, alice.display_name, alice.bio) == ("alice", "Straße Ümläut", "Hello!")
    assert set(alice.__struct_fields__) == {"handle", "display_name", "bio", "account_type"}


@pytest.mark.requirement("tool.search-users.literal")
async def test_percent_and_underscore_mean_themselves(world, viewer):
    await world.join("percent", display_name="100% wool")
    await world.join("under_score")
    await world.join("backslash", display_name="a\\b*c?d[e]'f\"g")
    assert await found(world, viewer, "%") == ["percent"]
    assert await found(world, viewer, "0% w") == ["percent"]
    assert await found(world, viewer, "_") == ["under_score"]
    assert await found(world, viewer, "r_s") == ["under_score"]
    for query in ("%%", "p%t", "p_rcent", "__", "percent%"):
        assert await found(world, viewer, query) == [], query
    for query in ("\\", "*", "?", "[e]", "'", '"', "b*c?d["):
        assert await found(world, viewer, query) == ["backslash"], query


@pytest.mark.requirement("privacy.contacts-only-search")
async def test_someone_contacts_only_is_found_by_the_two_names_alone(world, viewer):
    alice = await world.join("alice", privacy="contacts_only", bio="for friends", status="here")
    [seen] = await world.accounts.search(viewer, "alice")
    assert (seen.handle, seen.display_name) == ("alice", "alice")
    assert (seen.bio, seen.account_type) == (None, None)
    [own] = await world.accounts.search(alice, "alice")
    assert own.bio == "for friends"
    await world.accounts.add_contact(viewer, "alice")
    [seen] = await world.accounts.search(viewer, "alice")
    assert (seen.bio, seen.account_type) == (None, None)
    await world.accounts.add_contact(alice, "viewer")
    for query in ("alice", "ali", ""):
        found_now = await world.accounts.search(viewer, query)
        [seen] = [each for each in found_now if each.handle == "alice"]
        looked_up = await world.accounts.lookup(viewer, "alice")
        assert (seen.bio, seen.account_type) == (looked_up.bio, looked_up.account_type)
        assert seen.bio == "for friends"


@pytest.mark.requirement("privacy.private-search", "tool.search-users.private-left-out")
async def test_someone_private_is_found_by_those_in_their_own_contacts_alone(world):
    accounts = world.accounts
    viewer = await world.join("viewer")
    alice = await world.join("alice", privacy="private", display_name="Secret", bio="hidden")
    await accounts.add_contact(viewer, "alice")
    for query in ("alice", "ali", "a", "Secret", "secr", "@alice", ""):
        assert "alice" not in await found(world, viewer, query), query
    assert await found(world, alice, "secre") == ["alice"]
    await accounts.add_contact(alice, "viewer")
    for query in ("alice", "ali", "a", "Secret", "@alice"):
        [seen] = await accounts.search(viewer, query)
        assert (seen.handle, seen.bio) == ("alice", "hidden")
    await accounts.remove_contact(alice, "viewer")
    assert await found(world, viewer, "alice") == []
    await accounts.set_profile(alice, privacy="public")
    assert await found(world, viewer, "alice") == ["alice"]


async def test_a_changed_name_is_found_and_the_one_before_is_not(world, viewer):
    alice = await world.join("alice", display_name="First Name")
    await world.accounts.set_profile(alice, display_name="Second Name")
    assert await found(world, viewer, "first") == []
    assert await found(world, viewer, "second") == ["alice"]
    await world.accounts.change_handle(alice, "renamed")
    assert await found(world, viewer, "alice") == []
    assert await found(world, viewer, "renamed") == ["renamed"]


@pytest.mark.requirement("tool.search-users.limit")
async def test_at_most_fifty_are_found_and_the_best_match_is_among_them(world, viewer):
    for number in range(70):
        await world.join(f"someone_{number}")
    await world.join("someone")
    for query in ("", "o", "some", "someone", "@SOMEONE"):
        assert len(await found(world, viewer, query)) == 50, query
    for query in ("someone", "@SOMEONE"):
        assert (await found(world, viewer, query))[0] == "someone"
    assert await found(world, viewer, "someone_6") == ["someone_6"] + [
        f"someone_{number}" for number in range(60, 70)
    ]


@pytest.mark.parametrize("query", ["\0", "a\0", "\ud800", "x" * 101, "x" * 1_000_000, "\u202e"])
async def test_what_no_name_holds_finds_nobody_and_asks_nothing(world, viewer, query):
    world.store.statements.clear()
    assert await world.accounts.search(viewer, query) == []
    assert world.store.statements == []


async def test_all_pages_of_candidates_are_read_until_enough_match(world, viewer):
    # Every one has all grams of the query, and only the last have it in one piece.
    for number in range(205):
        await world.join(f"nearly_{number}", display_name="abcd bcde")
    for number in range(3):
        await world.join(f"truly_{number}", display_name="abcde")
    assert await found(world, viewer, "abcde") == ["truly_0", "truly_1", "truly_2"]


@pytest.mark.sqlite("asks for its query plans")
async def test_every_question_is_answered_from_an_index(world):
    async def plan(here: World, sql: str, params: Any) -> str:
        rows = await here.rows(f"EXPLAIN QUERY PLAN {sql}", *params)
        return "\n".join(row[-1] for row in rows)

    new = await world.register("viewer")
    viewer = new.account
    for number in range(30):
        await world.join(f"someone_{number}")
        await world.accounts.add_contact(viewer, f"someone_{number}")
    world.store.statements.clear()
    for query in ("s", "some", "someone_1"):
        await world.accounts.search(viewer, query)
    await world.accounts.lookup(viewer, "someone_1")
    await world.accounts.authenticate(new.token)
    await world.accounts.contacts(viewer, 5)
    await world.may_write(viewer, "someone_1")
    await world.accounts.change_handle(viewer, "another")
    await world.accounts.delete(viewer)
    assert len(world.store.statements) > 15
    for sql, params in list(world.store.statements):
        told = await plan(world, sql, params)
        reads = [line for line in told.splitlines() if line.startswith("SCAN")]
        assert reads in ([], ["SCAN CONSTANT ROW"]) or reads[0].startswith("SCAN probed"), sql


async def test_a_short_query_reads_no_more_than_it_shows_and_a_long_one_follows_the_rarest_gram(
    world, viewer
):
    for number in range(60):
        await world.join(f"common_{number}")
    await world.join("common_rare")
    world.store.statements.clear()
    await world.accounts.search(viewer, "com")
    limits = [params[-1] for sql, params in world.store.statements if "FROM user_grams g" in sql]
    assert limits == [50]
    world.store.statements.clear()
    assert await found(world, viewer, "common_rare") == ["common_rare"]
    [led] = [params[0] for sql, params in world.store.statements if "FROM user_grams g" in sql]
    [(users,)] = await world.rows("SELECT COUNT(*) FROM user_grams WHERE gram = ?", led)
    assert users == 1


async def crowd(here: World, count: int, names: str) -> None:
    """So many users with names like these, made without keys of their own."""
    fields = "bio, privacy, status, account_type, public_key, private_key, created_at, updated_at"

    async def unit(tx: Tx) -> None:
        [alike] = await tx.fetch(f"SELECT {fields} FROM users WHERE handle = 'viewer'")
        named = {f"{n:08}": f"{names.lower().replace(' ', '_')}_{n}" for n in range(count)}
        users = [(id_, handle, names, "", *alike) for id_, handle in named.items()]
        grams = [(gram, id_) for id_, handle in named.items() for gram in grams_of(handle, names)]
        columns = ("id", "handle", "display_name", "recovery_hash")
        await tx.insert(NewRows("users", (*columns, *fields.split(", ")), users))
        await tx.insert(NewRows("user_grams", ("gram", "user_id"), grams))

    await here.inner.write(unit)


async def test_a_name_that_very_many_have_is_found_by_a_short_read(world, viewer):
    await crowd(world, 1_100, "Alice Johnson")
    before = world.inner.stats().given_up_reads
    for query in ("alice", "johnson", "Alice John", "alice_johnson_"):
        assert len(await found(world, viewer, query)) == 50, query
    assert world.inner.stats().given_up_reads == before
    assert await found(world, viewer, "alice_johnson_1099") == ["alice_johnson_1099"]
