"""The proxy between clients and servers that others wrote."""
