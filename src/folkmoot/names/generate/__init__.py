"""What is written for a project that follows the conventions.

A `Plan` is every file as it will be, looked at before any is written. `namespaces_md` is the
register of a project's names, `helper` the module that makes and checks them, `init` puts both
into a project that exists, `server` makes a new one, and `rename` changes a name everywhere.
"""
