"""What an update reads and assigns, and in which order: looked up in the graph that TensorFlow executes.

    python -m tests.wgangp.graph_order CACHE STRATEGY SETTINGS

prints the faults of one update on two CPUs as a JSON list; SETTINGS is JSON too.
"""

import json
import sys
from collections import defaultdict
from graphlib import TopologicalSorter
from itertools import combinations
from pathlib import Path

from tensorflow.core.framework.graph_pb2 import GraphDef
from tensorflow.core.framework.node_def_pb2 import NodeDef
from tensorflow.python.eager import context

from wgangp.config import TrainConfig
from wgangp.prepared import Prepared, prepare
from wgangp.trainer import Trainer

CALLS = ("PartitionedCall", "StatefulPartitionedCall", "While", "StatelessWhile", "If", "StatelessIf")

Frame = tuple[str, ...]
"""The loops a node is in, the outermost first."""


def update_of(prepared: Prepared, config: TrainConfig, **layout) -> GraphDef:
    """The compiled update of these settings after all of TensorFlow's own changes to it."""
    trainer = Trainer(prepared, **layout)
    context.context().enable_run_metadata()
    context.context().enable_graph_collection()
    try:
        trainer.start(config)
        collected = context.context().export_run_metadata().function_graphs
    finally:
        context.context().disable_graph_collection()
        context.context().disable_run_metadata()
    return max((each.post_optimization_graph for each in collected), key=lambda graph: len(graph.node))


def disordered(graph: GraphDef) -> list[str]:
    """Pairs that touch one variable, one of them assigning it, and may run in either order.

    A pass through a loop counts as one, and is to be over, as far as variables go, before the next begins.
    """
    order = _Order(graph)
    touching = [node for node in graph.node if "ReadVariable" in node.op or "Assign" in node.op]
    assert len(touching) > 50 and any("Assign" in node.op for node in touching)
    left = [node.name for node in graph.node if node.op in CALLS]
    assert not left, f"these hide what they read: {left}"
    later = {node.name: order.after(node.name) for node in touching}
    faults = [
        f"the next pass does not wait for {node.name}"
        for node in touching
        if order.ends_of_pass(node.name) - later[node.name]
    ]
    for one, other in combinations(touching, 2):
        either = other.name not in later[one.name] and one.name not in later[other.name]
        assigned = "Assign" in one.op or "Assign" in other.op
        if either and assigned and order.variable(one) == order.variable(other):
            faults.append(f"{one.name} or {other.name} first")
    return faults


class _Order:
    """The edges of a graph without cycles: the end of a pass leads out of its loop instead of back."""

    def __init__(self, graph: GraphDef) -> None:
        self._nodes = {node.name: node for node in graph.node}
        self._next: dict[str, set[str]] = defaultdict(set)
        self._ends: dict[Frame, set[str]] = defaultdict(set)
        self._frames: dict[str, Frame] = {}
        exits: dict[Frame, set[str]] = defaultdict(set)
        inputs = {node.name: self._inputs(node) for node in graph.node}
        for name in TopologicalSorter(inputs).static_order():
            node = self._nodes[name]
            frame = self._frames[inputs[name][0]] if inputs[name] else ()
            if node.op == "Exit":
                exits[frame].add(name)
                frame = frame[:-1]
            elif node.op == "Enter":
                frame = (*frame, node.attr["frame_name"].s.decode())
            elif node.op == "NextIteration":
                self._ends[frame].add(name)
            self._frames[name] = frame
            for each in inputs[name]:
                self._next[each].add(name)
        for frame, names in self._ends.items():
            for name in names:
                self._next[name] |= exits[frame]

    def after(self, name: str) -> set[str]:
        """What waits for this node."""
        found, todo = set(), [name]
        while todo:
            new = self._next[todo.pop()] - found
            found |= new
            todo.extend(new)
        return found

    def ends_of_pass(self, name: str) -> set[str]:
        """Of the innermost loop the node is in."""
        return self._ends[self._frames[name]]

    def variable(self, node: NodeDef) -> str:
        """The argument of the graph that is read or assigned."""
        while node.op != "_Arg" and node.input:
            node = self._nodes[self._inputs(node)[0]]
        return node.name

    def _inputs(self, node: NodeDef) -> list[str]:
        names = [name.removeprefix("^").split(":")[0] for name in node.input]
        return [name for name in names if self._nodes[name].op != "NextIteration"]


def main(cache: str, strategy: str, settings: str) -> None:
    config = TrainConfig(**json.loads(settings))
    prepared = prepare(config, cache=Path(cache), say=lambda line: None)
    layout = {"placement": "split"} if strategy == "split" else {"strategy": strategy}
    print(json.dumps(disordered(update_of(prepared, config, cpus=2, **layout))))


if __name__ == "__main__":
    main(*sys.argv[1:])
