"""What is written for a project that follows the conventions.

A `Plan` is every file as it will be, looked at before any is written. `namespaces_md` is the
register of a project's names, and `server` makes a new project, with a module that makes and checks
names.
"""
