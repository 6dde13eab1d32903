"""A recorded conversation, made to be had again with either side.

- `script`: a tape seen from its client: each `Call` with the `Beat`s that the server answered it
- `matching`: what makes a live request the same as a recorded one, and which one that is
- `answers`: what was recorded, made to fit the live request
- `playing`: a tape seen from its server, and how a live server's answers compare with it
"""
