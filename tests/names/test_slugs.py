"""Choosing a namespace: from a project's slug, and only one that is free."""

from __future__ import annotations

import pytest

from folkmoot.names import (
    RESERVED_NAMES,
    RESERVED_NAMESPACES,
    InvalidName,
    check_free_namespace,
    namespace_from_slug,
    validate_namespace,
)
from tests.names.support import refusal


@pytest.mark.requirement("names.from-slug")
@pytest.mark.parametrize(
    ("slug", "namespace"),
    [
        ("my-awesome-server", "myawesomeserver"),
        ("my.awesome.server", "myawesomeserver"),
        ("My-Awesome-Server", "myawesomeserver"),
        ("s3-browser", "s3browser"),
        ("my-awesome-long-project", "myawesomelongproject"),  # twenty characters
    ],
)
def test_a_slug_without_its_hyphens_is_a_namespace(slug, namespace):
    assert namespace_from_slug(slug) == namespace


@pytest.mark.requirement("names.from-long-slug")
@pytest.mark.parametrize(
    ("slug", "proposal"),
    [
        ("my-awesome-long-projects", "malp"),
        ("MyAwesomeLongProjects", "malp"),
        ("internationalization-gateway", "internationalgateway"),
        ("pneumonoultramicroscopics", "pneumonoultramicrosc"),
        ("message-sending-gateways", "messagsendingatewa"),  # as `msg` is reserved
        ("-".join("abcdefghijklmnopqrstuvwxyz"), "abcdefghijklmnopqrst"),
    ],
)
def test_a_slug_that_is_too_long_is_not_cut_and_an_abbreviation_is_proposed(slug, proposal):
    found = refusal(namespace_from_slug, slug)
    assert (found.rule, found.nearest) == ("namespace-length", proposal)
    assert f"Did you mean {proposal}?" in str(found)
    validate_namespace(proposal)


@pytest.mark.requirement("names.from-slug")
@pytest.mark.parametrize(
    ("slug", "rule", "position", "proposal"),
    [
        ("@acme/my-thing", "slug-characters", 0, "mything"),
        ("acme/thing", "slug-characters", 4, "acmething"),
        ("my-server\n", "slug-characters", 9, "myserver"),
        ("café-tools", "slug-characters", 3, "cafetools"),
        ("3d-printer", "namespace-start", 0, "dprinter"),
        ("--3d-printer", "namespace-start", 2, "dprinter"),
        ("2048", "namespace-start", 0, None),
        ("m-p", "namespace-length", 3, "mptools"),
        ("", "namespace-length", 0, None),
        ("---", "namespace-length", 3, None),
        ("語", "slug-characters", 0, None),
    ],
)
def test_any_other_slug_is_refused_with_a_proposal_where_there_is_one(
    slug, rule, position, proposal
):
    found = refusal(namespace_from_slug, slug)
    assert (found.rule, found.position, found.nearest) == (rule, position, proposal)


@pytest.mark.requirement("wire-name.reserved-namespaces")
def test_the_reserved_names_include_the_hubs_own():
    assert len(RESERVED_NAMES) == 11
    assert {"ask", "msg", "room", "chat", "mmp", "folkmoot"} == RESERVED_NAMESPACES
    assert RESERVED_NAMESPACES < RESERVED_NAMES


@pytest.mark.requirement("wire-name.reserved-namespaces")
@pytest.mark.parametrize("name", sorted(RESERVED_NAMES))
def test_a_reserved_name_is_valid_and_cannot_be_taken(name):
    validate_namespace(name)
    found = refusal(check_free_namespace, name)
    assert (found.rule, found.nearest) == ("reserved-namespace", f"{name}tools")


def test_a_namespace_that_someone_has_cannot_be_taken():
    check_free_namespace("github", taken={"gitlab"})
    found = refusal(check_free_namespace, "github", taken={"github"})
    assert (found.rule, found.nearest) == ("taken-namespace", "githubtools")
    assert refusal(check_free_namespace, "github", taken={"github", "githubtools"}).nearest is None
    with pytest.raises(InvalidName, match="Invalid namespace"):
        check_free_namespace("git-hub")
