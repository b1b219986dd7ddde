"""A directed acyclic graph of agents: on each edge a critic instructs, at its end an actor revises; joins aggregate.

Source: Qian et al. 2024, arXiv 2406.07155 (MacNet).

A source answers. On an edge the critic reads the solution of the node before and writes instructions, and the node's
actor revises that solution by them. A node with several parents has one revision from each and merges them; where the
graph ends in several nodes, one more call merges their solutions. Only solutions travel on, never the talk.

- `chain`: 0 → 1 → 2 …; `star`: the first node to all others; `tree`: each node to two others.
- `net`: each node to all after it; `mlp`: layers, each node to all of the next layer.
- `random`: each node has a parent drawn among those before it, and each other earlier one with probability ½.

Nodes of equal depth work at the same time; a turn's round is its node's depth. Seats cycle over the nodes first and
then over the edges' critics, so one agent can play all parts, and more agents than parts leave the last ones idle.

Differences: one exchange of critique and revision per edge, where the paper has several. A critique or a revision that
fails lets the solution pass as it is; a node that nothing reaches answers like a source.
"""

from __future__ import annotations

import random
from asyncio import gather
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise, product
from typing import Literal

from pluribus.agents import Agent
from pluribus.answers import read
from pluribus.consensus.votes import plurality
from pluribus.methods import first_to_close, missing, require
from pluribus.prompts import Peer
from pluribus.types import Outcome, Question, Turn

AGENTS = 5
PROMPTS = ("answer", "macnet_critique", "macnet_revise", "aggregate")

Topology = Literal["chain", "star", "tree", "net", "mlp", "random"]
Edge = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Settings:
    agent_num: int = 5
    """Nodes of the graph, at least 1."""
    topology: Topology = "chain"

    def __post_init__(self) -> None:
        if self.agent_num < 1:
            raise ValueError(f"agent_num is {self.agent_num}; it counts the nodes of the graph, 1 or more")


def calls(settings: Settings, n_agents: int) -> tuple[int, int]:
    """Exact, but for `random`: from the sparsest to the densest graph that can be drawn."""
    n = settings.agent_num
    if settings.topology == "random":
        return _calls(n, graph("chain", n)), _calls(n, graph("net", n))
    exact = _calls(n, graph(settings.topology, n))
    return exact, exact


def _calls(n: int, edges: Sequence[Edge]) -> int:
    parents = [sum(end == node for _, end in edges) for node in range(n)]
    sinks = n - len({start for start, _ in edges})
    return parents.count(0) + 2 * len(edges) + sum(number > 1 for number in parents) + (sinks > 1)


def graph(topology: Topology, n: int, seed: object = 0) -> tuple[Edge, ...]:
    """The edges of a topology over the nodes 0 … n − 1, sorted; each runs from a lower to a higher node.

    >>> graph("tree", 5)
    ((0, 1), (0, 2), (1, 3), (1, 4))
    >>> graph("mlp", 5)
    ((0, 3), (0, 4), (1, 3), (1, 4), (2, 3), (2, 4))

    Args:
        n: nodes, at least 1.
        seed: of `random`; the others do not depend on it.
    """
    if topology == "chain":
        return tuple(pairwise(range(n)))
    if topology == "star":
        return tuple((0, node) for node in range(1, n))
    if topology == "tree":
        return tuple(((node - 1) // 2, node) for node in range(1, n))
    if topology == "net":
        return tuple(combinations(range(n), 2))
    if topology == "mlp":
        return tuple(sorted(edge for before, after in pairwise(_layers(n)) for edge in product(before, after)))
    return _random(n, random.Random(str(seed)))


def _layers(n: int) -> list[range]:
    """⌊log₂ n⌋ layers, two at least where there are two nodes, as even as can be; the first ones take what is over."""
    count = min(n, max(2, n.bit_length() - 1))
    size, over = divmod(n, count)
    ends = [size * number + min(number, over) for number in range(count + 1)]
    return [range(start, end) for start, end in pairwise(ends)]


def _random(n: int, rng: random.Random) -> tuple[Edge, ...]:
    edges = set()
    for node in range(1, n):
        chosen = rng.randrange(node)
        edges |= {(other, node) for other in range(node) if other == chosen or rng.random() < 0.5}
    return tuple(sorted(edges))


async def solve(question: Question, agents: Sequence[Agent], settings: Settings, seed: int) -> Outcome:
    n = settings.agent_num
    work = _Work(question, agents, n, graph(settings.topology, n, f"{seed}:{question.id}"))
    turns: list[Turn] = []
    solutions: dict[int, Turn] = {}
    for round, level in enumerate(_levels(n, work.edges)):
        made = await gather(*(_node(work, node, round, solutions) for node in level))
        turns += [turn for said, _ in made for turn in said]
        solutions |= {node: s for node, (_, s) in zip(level, made, strict=True) if s is not None}
    require(list(solutions.values()), turns)
    goes_on = {start for start, _ in work.edges}
    ends = _distinct([solution for node, solution in sorted(solutions.items()) if node not in goes_on])
    if len(ends) > 1:
        said, merged = await _merge(work, ends, n - 1, 1 + turns[-1].round, "aggregate")
        return Outcome((*turns, *said), (merged,) if merged else tuple(ends), missing([*turns, *said]))
    return Outcome(tuple(turns), tuple(ends), missing(turns))


@dataclass(frozen=True, slots=True)
class _Work:
    """One question on its way through the graph."""

    question: Question
    agents: Sequence[Agent]
    nodes: int
    edges: tuple[Edge, ...]

    def player(self, part: int) -> tuple[Agent, int]:
        """The agent of a part, and its sample: seats that come round again draw anew."""
        seat = part % len(self.agents)
        return self.agents[seat], part - seat


def _levels(n: int, edges: Sequence[Edge]) -> list[list[int]]:
    """The nodes by depth: all that a node needs stands in the levels before its own."""
    depth = [0] * n
    for start, end in sorted(edges):
        depth[end] = max(depth[end], depth[start] + 1)
    return [[node for node in range(n) if depth[node] == level] for level in range(max(depth) + 1)]


async def _node(work: _Work, node: int, round: int, solutions: Mapping[int, Turn]) -> tuple[list[Turn], Turn | None]:
    """What is said for a node, and its solution, from those of the nodes before."""
    reaching = [edge for edge in work.edges if edge[1] == node and edge[0] in solutions]
    if not reaching:
        agent, sample = work.player(node)
        turn = await agent.speak("answer", round=round, sample=sample)
        return [turn], turn if turn.ok else None
    role = "answer" if len(reaching) == 1 else "revision"
    revised = await gather(*(_edge(work, edge, solutions[edge[0]], round, role) for edge in reaching))
    turns = [turn for said, _ in revised for turn in said]
    versions = _distinct([version for _, version in revised])
    if len(versions) == 1:
        return turns, versions[0]
    said, merged = await _merge(work, versions, node, round, "answer")
    return turns + said, merged or _most_backed(work.question, versions)


async def _edge(work: _Work, edge: Edge, carried: Turn, round: int, role: str) -> tuple[list[Turn], Turn]:
    """Critique and revision of the solution that the edge carries; it passes as it is when either fails."""
    critic, sample = work.player(work.nodes + work.edges.index(edge))
    solution = Peer("the author", carried.text)
    critique = await critic.speak("macnet_critique", round=round, role="critique", sample=sample, peers=[solution])
    if not critique.ok:
        return [critique], carried
    actor, sample = work.player(edge[1])
    heard = [solution, Peer("the critic", critique.text)]
    revised = await actor.speak("macnet_revise", round=round, role=role, sample=sample, peers=heard)
    return [critique, revised], revised if revised.ok else carried


async def _merge(
    work: _Work, versions: Sequence[Turn], node: int, round: int, role: str
) -> tuple[list[Turn], Turn | None]:
    """One solution out of several, by the node's actor or the next agent in line; None when all fail."""
    peers = [Peer(f"solution {place}", version.text) for place, version in enumerate(versions, 1)]
    _, sample = work.player(node)

    async def close(agent: Agent) -> Turn:
        return await agent.speak("aggregate", round=round, role=role, sample=sample, peers=peers)

    return await first_to_close(work.agents, close, node % len(work.agents))


def _distinct(turns: Sequence[Turn]) -> list[Turn]:
    """Each turn once: a solution that passed several edges as it was is still one."""
    return list({id(turn): turn for turn in turns}.values())


def _most_backed(question: Question, versions: Sequence[Turn]) -> Turn:
    """The first version with the answer that most versions give."""
    answers = [read(question, version.text) for version in versions]
    winner = plurality(answers).winner
    return versions[answers.index(winner)] if winner is not None else versions[0]
