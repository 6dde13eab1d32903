"""A recorded conversation, made to be had again with either side.

- `Script` is a tape seen from its client: each `Call` with the `Beat`s that the server answered it
- a `Mode` says what makes a live request the same as a recorded one: its `Subject`
- `Prompter` finds the call for a request, and says what is nearest when there is none
- `Voice` makes what was recorded fit the live request: its id, its progress token
- `Part` is the tape seen from its server: what the client said, and what it had waited for
- `PlayReport` tells how the answers of a live server compare with those on the tape
"""
