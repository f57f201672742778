"""The kinds of jobs: PAI's workload types, each an architecture on one server or on several.

Source: PAI study, Table II. How weights move and who shares a PCIe is asked of
``graphcost.arch``, so that a table of jobs and a single job cannot differ.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from graphcost.arch import ARCHITECTURES, Placement
from graphcost.engine.paper import Medium
from graphcost.hardware import Cluster


@dataclass(frozen=True, slots=True)
class JobKind:
    """A workload type. ``id`` is the word of tables and options, ``title`` the study's.

    ``one_server``: whether its cNodes must be on one server; ``across``: whether its
    weights cross servers however few the cNodes are.
    """

    code: int
    id: str
    title: str
    arch: str
    one_server: bool = False
    across: bool = False
    aliases: tuple[str, ...] = ()

    def media(self, cluster: Cluster, *, alone: bool = False) -> tuple[Medium, ...]:
        """What carries weights; ``alone``: for a job of one cNode."""
        cnodes = 1 if alone or self.id == SINGLE.id else 2
        return ARCHITECTURES[self.arch].paper_media(Placement(cnodes, 2 if self.across else 1, 0, cluster))

    def input_sharing(self, cnodes: Any, cluster: Cluster, most: int | None = None) -> Any:
        """cNodes that contend for one PCIe, per job; at most ``most``, where that is given.

        Divisions are slow and numbers of cNodes repeat, so that all but huge jobs look theirs up.
        """
        if len(cnodes) and cnodes.max() < _LOOKED_UP:
            table = _sharing_table(self, cluster)
            sharing = table if np.isscalar(table) else np.take(table, cnodes.astype(np.intp))
        else:
            sharing = self._input_sharing(cnodes, cluster)
        return sharing if most is None else np.minimum(sharing, most)

    def _input_sharing(self, cnodes: Any, cluster: Cluster) -> Any:
        servers = -(-cnodes // cluster.server.gpus)
        return ARCHITECTURES[self.arch].paper_input_sharing(Placement(cnodes, servers, 0, cluster))


_LOOKED_UP = 4096
_tables: dict[tuple[str, int], Any] = {}


def _sharing_table(kind: JobKind, cluster: Cluster) -> Any:
    """Sharing by number of cNodes, from 0 (which no job has), or one number for all."""
    key = kind.id, cluster.server.gpus
    if key not in _tables:
        _tables[key] = kind._input_sharing(np.arange(_LOOKED_UP, dtype=float).clip(min=1), cluster)
    return _tables[key]


SINGLE = JobKind(0, "single", "1w1g", "single", aliases=("1w1g",))
LOCAL = JobKind(1, "local", "1wNg", "local", one_server=True, aliases=("1wng",))
PS = JobKind(2, "ps", "PS/Worker", "ps", aliases=("ps/worker", "ps-worker"))
ALLREDUCE_LOCAL = JobKind(3, "allreduce-local", "AllReduce-Local", "allreduce", one_server=True)
ALLREDUCE_CLUSTER = JobKind(4, "allreduce-cluster", "AllReduce-Cluster", "allreduce", across=True)
PEARL = JobKind(5, "pearl", "PEARL", "pearl", one_server=True)

KINDS = (SINGLE, LOCAL, PS, ALLREDUCE_LOCAL, ALLREDUCE_CLUSTER, PEARL)
BY_SIZE = 250
"""Code of ``allreduce`` in a table: local or cluster by the number of cNodes."""

WORDS: Mapping[str, int] = {
    "allreduce": BY_SIZE,
    **{word: kind.code for kind in KINDS for word in (kind.id, *kind.aliases)},
}
"""What a table's column ``arch`` may say, in any case."""
