"""Who reads whom in a debate."""

from __future__ import annotations

HUB = 0
"""The seat at the centre of `centralized`."""


def heard(topology: str, listener: int, n_agents: int) -> list[int]:
    """The agents that one agent reads, in order.

    - `decentralized`: everybody reads everybody.
    - `sparse`: everybody reads the two neighbours on a ring.
    - `centralized`: the hub (the first seat) reads all, the others read the hub.

    >>> heard("sparse", 0, 5), heard("centralized", 3, 5), heard("decentralized", 1, 3)
    ([1, 4], [0], [0, 2])

    Args:
        listener: in [0, n_agents).

    Source: the topologies of Agent-Scaling (Yang et al. 2026, arXiv 2602.03794).
    """
    if topology == "sparse":
        return sorted({(listener - 1) % n_agents, (listener + 1) % n_agents} - {listener})
    if topology == "centralized" and listener != HUB:
        return [HUB]
    return [other for other in range(n_agents) if other != listener]
