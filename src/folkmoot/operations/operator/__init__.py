"""The operations of operators: the hub, people and grants, servers, held messages.

They are served on the operator's socket, and by commands where no hub runs; a hub, a stopped hub
and a proxy have those whose services they have.
"""
