"""`make siege`: people work at a hub while strangers attack it; `make soak`: they work for long.

- A *host* (`host`) is a real hub process with two servers behind it, and what it takes of memory
  and disk.
- *People* (`people`) use mail, rooms, sessions and the gateway, time every answer, and check at the
  end that everything acknowledged is there exactly once.
- An *attack* (`attacks`) is a row of a table: what is sent, how often, from how many addresses.
  *Attackers* (`attackers`) carry the rows out, from addresses of 127.0.0.0/8.
- A *figure* (`figures`) is one number of a run and the bound it must keep.

People and attackers are processes of their own, which end by themselves or when their standard
input closes.
"""
