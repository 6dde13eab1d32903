"""REST: mail, people, accounts and rooms for programs, described by an OpenAPI document.

An *operation* is a row of the `table`: method, path, what it takes, what it answers and the
*handler* that does it. Those of mail, people and accounts are made from the hub's own table of
operations (`rows`), and their handler calls the tool. The routes are made from the table, and so
are the `openapi` document and the reference page, so none of them can say something else. A
`resource` is one path: it finds the operation, makes out the *visitor*, reads the request
(`reading`) and turns errors into answers.
"""

from __future__ import annotations

from folkmoot.transports.rest.api import RestApi

__all__ = ["RestApi"]
