"""What the query of a request for `/ws` can say."""

from __future__ import annotations

from urllib.parse import parse_qs

import pytest

from folkmoot.core import errors as e
from folkmoot.core.closecodes import CloseCode
from folkmoot.transports.rooms.door import JoinQuery, read_join_query


def read(query: str) -> JoinQuery:
    return read_join_query(parse_qs(query, keep_blank_values=True))


@pytest.mark.parametrize(
    ("query", "wish"),
    [
        ("room=plaza", JoinQuery("plaza")),
        ("topic=plaza", JoinQuery("plaza")),
        ("room=plaza&topic=plaza&token=x&other=thing", JoinQuery("plaza")),
        ("room=plaza&after=0", JoinQuery("plaza", after=0)),
        ("room=plaza&after=007&epoch=e-1.2", JoinQuery("plaza", after=7, epoch="e-1.2")),
        (f"room=plaza&conn={'~' * 64}", JoinQuery("plaza", conn="~" * 64)),
        ("room=Not%20a%20name", JoinQuery("Not a name")),
        ("room=plaza&serve=1", JoinQuery("plaza", serve=True)),
        ("room=plaza&serve=0", JoinQuery("plaza")),
    ],
)
def test_the_query_names_the_room_and_where_to_go_on(query, wish):
    assert read(query) == wish


BAD = f"""
room= topic= Room=plaza room=plaza&topic=square room=plaza&room=square room=plaza&after=
room=plaza&after=-1 room=plaza&after=1.5 room=plaza&after=%D9%A3 room=plaza&after=1&after=2
room=plaza&after={"9" * 19} room=plaza&epoch= room=plaza&epoch={"e" * 65} room=plaza&conn=
room=plaza&conn={"c" * 65} room=plaza&conn=b%C3%B8b room=plaza&conn=a%0ab room=plaza&serve=
room=plaza&serve=yes room=plaza&serve=1&serve=1
"""


@pytest.mark.parametrize("query", ["", *BAD.split()])
def test_a_query_that_cannot_be_meant_is_a_bad_request(query):
    with pytest.raises(e.QueryInvalid) as refused:
        read(query)
    assert refused.value.close == CloseCode.BAD_REQUEST
    assert len(refused.value.message.encode()) <= 123
