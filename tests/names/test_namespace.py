"""One namespace with all that can be done in it."""

from __future__ import annotations

import pytest

from folkmoot.names import InvalidName, Namespace, ResourceUri, ToolName


def test_a_namespace_makes_reads_and_checks_its_own_names() -> None:
    ours = Namespace("myproject")
    assert ours.parse_tool_name(ours.tool("create_task")) == ToolName("myproject", "create_task")
    assert ours.parse_resource_uri(ours.make_resource_uri("docs", "a", {"b": "c d"})) == (
        ResourceUri("myproject", "docs", "a", {"b": "c d"})
    )
    ours.validate_tool_name("myproject:create_task")
    ours.validate_resource_uri("myproject://docs/a")
    ours.validate_resource_template("myproject://docs/{id}")


def test_a_namespace_refuses_the_names_of_others() -> None:
    ours = Namespace("myproject")
    for refuse, name in (
        (ours.validate_tool_name, "projecta:create_task"),
        (ours.parse_tool_name, "projecta:create_task"),
        (ours.validate_resource_uri, "projecta://docs/a"),
        (ours.parse_resource_uri, "projecta://docs/a"),
        (ours.validate_resource_template, "projecta://docs/{id}"),
    ):
        with pytest.raises(InvalidName, match=r"Wrong namespace.* Did you mean myproject:"):
            refuse(name)


def test_a_namespace_owns_whatever_begins_with_it() -> None:
    ours = Namespace("myproject")
    assert ours.owns("myproject:create_task")
    assert ours.owns("myproject://docs/a")
    assert ours.owns("myproject://https/example.org/Not%20Ours")
    for other in ("myproject", "myprojecta:x", "projecta:myproject:x", "MyProject:x", ""):
        assert not ours.owns(other)


def test_a_namespace_is_its_name() -> None:
    ours = Namespace("myproject")
    assert str(ours) == "myproject"
    assert repr(ours) == "Namespace('myproject')"
    assert {ours, Namespace("myproject")} == {ours}
    assert ours != Namespace("projecta")
    assert ours != "myproject"
    with pytest.raises(InvalidName, match="Invalid namespace"):
        Namespace("my-project")
