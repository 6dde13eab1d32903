"""A post office of real parts."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from folkmoot.accounts import Account
from tests.conftest import settings_of
from tests.mail.support import PostOffice, opened


@pytest.fixture
async def office(tmp_path: Path, request: pytest.FixtureRequest) -> AsyncIterator[PostOffice]:
    async with opened(tmp_path, **settings_of(request)) as made:
        yield made


@pytest.fixture
async def alice(office: PostOffice) -> Account:
    return await office.person("alice")


@pytest.fixture
async def bob(office: PostOffice) -> Account:
    return await office.person("bob")


@pytest.fixture
async def carol(office: PostOffice) -> Account:
    return await office.person("carol")


@pytest.fixture
async def dave(office: PostOffice) -> Account:
    return await office.person("dave")
