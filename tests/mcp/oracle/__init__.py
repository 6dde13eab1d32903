"""The official SDK as the oracle: the same requests go to a hub and to a server of the SDK.

- `corpus`: good, bad and hostile requests of both eras
- `places`: the hub, and the SDK's server beside it
- `deviations`: where the two answer differently, and why
"""
