from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from folkmoot.core import errors as e
from folkmoot.operations.openapi import document
from folkmoot.operations.routes import COMPONENTS as SCHEMAS
from folkmoot.operations.routes import ENDPOINTS
from tests.transports.rest.support import house, path_of

MADE = document(version="x")


def nodes(value: Any) -> Iterator[Any]:
    """Every object of a document."""
    if isinstance(value, dict):
        yield value
        value = list(value.values())
    if isinstance(value, list):
        for each in value:
            yield from nodes(each)


@pytest.mark.requirement("room.rest-openapi")
async def test_the_hub_serves_its_document_to_everyone(tmp_path):
    public_url = "https://hub.example/moot"
    async with house(tmp_path, public_url=public_url) as here:
        served = await here.stranger.get("/v1/openapi.json")
    assert served["openapi"].startswith("3.1.")
    assert served["servers"] == [{"url": public_url}]
    assert served["paths"] == MADE["paths"]


def described(made: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """The path, the method and the description of every operation of a document."""
    for path, item in made["paths"].items():
        for method, operation in item.items():
            if method != "parameters":
                yield path, method, operation


def test_every_operation_of_the_table_is_described_once_and_no_other():
    found = [(path, method, it["operationId"]) for path, method, it in described(MADE)]
    table = [(row.path, row.method.lower(), row.id) for row in ENDPOINTS]
    assert sorted(found) == sorted(table)
    assert len({id_ for *_, id_ in table}) == len(table)


@pytest.mark.requirement("room.rest-openapi")
async def test_every_path_of_the_document_is_served(hub):
    for operation in ENDPOINTS:
        path = path_of(operation.path)
        answer = await hub.stranger.ask(operation.method, path, b"{}")
        expected = {"describe": 200, "getSession": 200, "signOut": 204, "beginSignIn": 403}
        if operation.id in expected:
            assert answer.status == expected[operation.id]
        else:
            code = answer.json()["error"]["code"]
            assert code in {"authentication_required", "argument_invalid", "origin_not_allowed"}


def test_every_reference_leads_somewhere_and_nothing_is_left_over():
    referred = {node["$ref"].rpartition("/")[2] for node in nodes(MADE) if "$ref" in node}
    assert referred == set(SCHEMAS)


def test_every_parameter_of_a_path_is_described():
    for path, item in MADE["paths"].items():
        described = [each["name"] for each in item.get("parameters", ())]
        assert described == re.findall(r"\{([a-z_]+)\}", path)


def test_every_schema_is_one_and_every_example_fits_its_own():
    for schema in SCHEMAS.values():
        Draft202012Validator.check_schema(schema)
    for operation in ENDPOINTS:
        if operation.body:
            schema = {**SCHEMAS[operation.body], "components": MADE["components"]}
            Draft202012Validator(schema).validate(operation.route.example)


@pytest.mark.requirement("room.rest-openapi")
def test_every_default_and_example_fits_the_schema_it_stands_in():
    given = 0
    for node in nodes(MADE):
        schema = {**node.get("schema", node), "components": MADE["components"]}
        for member in ("default", "example"):
            # A member of an object can have this name, too: then a schema stands there.
            if member in node and not is_schema(node[member]):
                Draft202012Validator(schema).validate(node[member])
                given += 1
    assert given > 10


def is_schema(value: Any) -> bool:
    return isinstance(value, dict) and ("type" in value or "$ref" in value)


def test_every_error_is_described_with_its_own_status():
    for _, _, operation in described(MADE):
        for status, response in operation["responses"].items():
            content = response.get("content", {}).get("application/json", {})
            if parts := content.get("schema", {}).get("allOf"):
                codes = parts[1]["properties"]["error"]["properties"]["code"]["enum"]
                assert {e.ERRORS[code].http for code in codes} == {int(status)}


def test_what_needs_no_token_says_so_and_nothing_else_does():
    assert MADE["security"] == [{"bearer": []}]
    public = {row.id for row in ENDPOINTS if row.public}
    assert public == {
        *("exchangeInvitation", "describe", "createAccount", "recoverAccount", "setUp"),
        *("getSession", "signIn", "signInWithCode", "signOut"),
        *("beginSignIn", "signInWithPasskey"),
    }
    for _, _, operation in described(MADE):
        assert ("security" in operation) == (operation["operationId"] in public)
