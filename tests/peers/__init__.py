"""The proxy and the hub between clients and servers that others wrote."""
