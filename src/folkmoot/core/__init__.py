"""The core of Folkmoot, without I/O: bytes and values in, values out.

A *message* is what JSON-RPC says; an *envelope* adds the context it travelled in. A *kind* names
what a message is, a *capability* is a pattern over kinds, and *policy* decides by them. Nothing
here opens a socket, reads a clock or looks at the environment; `defaults` has the clock that the
package gives it.
"""
