"""PyTorch: ``torch.export`` archives without torch, live modules and exports with it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from graphcost.errors import GraphcostError
from graphcost.frontends.options import LoadOptions
from graphcost.ir import Model, OpNode

if TYPE_CHECKING:
    from graphcost.frontends.torch.records import Exported

CostOf = Callable[[Sequence[OpNode]], tuple[int, int]]


def load_archive(path: Path, options: LoadOptions, cost_of: CostOf) -> Model:
    """Read a ``.pt2`` file; torch need not be installed, weights are never read."""
    from graphcost.frontends.torch.archive import read_archive

    return _model(read_archive(path), path.stem, str(path), options, cost_of)


def load_module(
    source: Any, example_inputs: Any, options: LoadOptions, cost_of: CostOf, *, label: str | None = None
) -> Model:
    """Read a torch module, an ``ExportedProgram`` or an fx ``GraphModule``. Needs torch."""
    from graphcost.frontends.torch.live import export_live

    name = label or type(source).__name__
    exported, options = export_live(source, example_inputs, options, name)
    return _model(exported, name.rpartition(":")[2] or name, name, options, cost_of)


def open_sizes_archive(path: Path) -> tuple[str, ...]:
    """Names of the sizes that an archive leaves open."""
    from graphcost.frontends.onnx.bindings import open_sizes
    from graphcost.frontends.torch.archive import read_archive
    from graphcost.frontends.torch.binding import declared

    return tuple(size.name for size in open_sizes(declared(read_archive(path))))


def _model(exported: Exported, name: str, label: str, options: LoadOptions, cost_of: CostOf) -> Model:
    # The modules fill the table of names.
    from graphcost.frontends.torch import names_control, names_layers, names_signal, names_simple, names_views  # noqa: F401
    from graphcost.frontends.torch.binding import bind_export
    from graphcost.frontends.torch.lower import Lowering

    try:
        bound, symbols = bind_export(exported, options)
        trips = {key: int(value[0]) for key, value in options.input_values.items()}
        walk = Lowering(exported, symbols, cost_of, trips)
        walk.run()
    except GraphcostError as error:
        if label in str(error):
            raise
        raise type(error)(f"{label}: {error}") from error
    used = {param.name for node in walk.nodes for _, param in node.params}
    return Model(
        name=name,
        source=label,
        format="torch",
        nodes=tuple(walk.nodes),
        inputs=bound.inputs,
        outputs=exported.graph.outputs,
        batch=bound.batch,
        batch_source=bound.batch_source,
        bindings=bound.dims,
        notes=(*bound.notes, *walk.notes),
        folded=walk.folded,
        untaken_params=tuple(param for key, param in walk.untaken.items() if key not in used),
    )
