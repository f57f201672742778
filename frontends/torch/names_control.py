"""Higher-order operators: bodies become the operators that one step runs; flex attention is one operator."""

from __future__ import annotations

from graphcost.frontends.torch.lower import Lowering, handles
from graphcost.frontends.torch.names_layers import emit_attention
from graphcost.frontends.torch.records import Ref, TorchOp
from graphcost.ir import OpNode


@handles("higher_order.cond", "cond")
def _cond(walk: Lowering, op: TorchOp) -> None:
    """The dearer branch."""
    operands = op.args.get("operands", op.args.get("3", ()))
    branches: dict[str, list[OpNode]] = {}
    for name, graph in op.graphs.items():
        with walk.collecting() as nodes:
            walk.subgraph(op, name, graph, operands)
        branches[name] = nodes
    walk.dearer(op, branches)


@handles("higher_order.map_impl", "map_impl", "higher_order.map")
def _map(walk: Lowering, op: TorchOp) -> None:
    """The body once per slice of the leading axis."""
    graph = next(iter(op.graphs.values()))
    lists = [value for value in op.args.values() if isinstance(value, tuple)]
    scanned = [value for value in (lists[0] if lists else ()) if isinstance(value, Ref)]
    rest = [value for values in lists[1:] for value in values]
    trips = walk.need(op, scanned[0]).shape[0]
    walk.subgraph(op, "body", graph, [*scanned, *rest], repeat=trips)


@handles("higher_order.scan", "scan")
def _scan(walk: Lowering, op: TorchOp) -> None:
    """The body once per slice of the leading axis, with what it carries and what it closes over."""
    carried, scanned, rest = (op.args.get(key) or () for key in ("1", "2", "3"))
    trips = walk.need(op, scanned[0]).shape[0] if scanned else 1
    walk.subgraph(op, "body", next(iter(op.graphs.values())), [*carried, *scanned, *rest], repeat=trips)


@handles("higher_order.while_loop", "while_loop")
def _while(walk: Lowering, op: TorchOp) -> None:
    """Condition and body once per trip; the count must be given."""
    trips = walk.trip_count(op)
    operands = [value for values in op.args.values() if isinstance(values, tuple) for value in values]
    for name, graph in op.graphs.items():
        walk.subgraph(op, name, graph, operands, repeat=trips)


@handles("higher_order.wrap_with_set_grad_enabled", "higher_order.wrap_with_autocast", "wrap_with_set_grad_enabled",
         "wrap_with_autocast", "higher_order.wrap", "invoke_subgraph", "higher_order.invoke_subgraph")  # fmt: skip
def _wrapped(walk: Lowering, op: TorchOp) -> None:
    """A region under another mode: its operators, once."""
    graph = next(iter(op.graphs.values()))
    values = [value for value in op.args.values() if isinstance(value, Ref)]
    values += [
        value for items in op.args.values() if isinstance(items, tuple) for value in items if isinstance(value, Ref)
    ]
    walk.subgraph(op, "body", graph, values)


@handles("higher_order.flex_attention", "flex_attention")
def _flex_attention(walk: Lowering, op: TorchOp) -> None:
    """query, key, value ``[B, heads, S, D]``, score_mod, block mask, scale, options, tensors the two functions use.

    Those tensors stand where a bias of the scores does. The square is dense, as for any other
    attention: which blocks a mask leaves out is data.
    """
    used = [value for key in ("7", "8") for value in op.args.get(key, ()) if isinstance(value, Ref)]
    walk.note(
        f"{op.name} (flex_attention): counted as dense attention, an upper bound; what its block mask leaves out "
        "and the arithmetic of its score_mod are not counted"
    )
    emit_attention(walk, op, [op.args[key] for key in "012"], used)
