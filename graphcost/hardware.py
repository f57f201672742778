"""Devices, links, servers and clusters: what the machine can do, before any model runs on it.

Everything is in SI base units. Rates of links are **per direction**; data sheets
often print the sum of both. Peaks are **dense** (no 2:4 sparsity) and, where a
choice exists, with FP32 accumulation, which is what training uses.
The files of ``graphcost.device_db`` are read into these types.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Generic, TypeVar

from graphcost.curves import RateCurve
from graphcost.errors import UnknownNameError, UsageError
from graphcost.links import Link, LinkKind, positive
from graphcost.price import Price
from graphcost.registry import did_you_mean

__all__ = [
    "DTYPES", "Cluster", "Confidence", "Device", "FrozenMap", "Link", "LinkKind", "Server", "peak_dtype",
]  # fmt: skip

if TYPE_CHECKING:
    import networkx as nx

V_co = TypeVar("V_co", covariant=True)


class FrozenMap(Mapping[str, V_co], Generic[V_co]):
    """A read-only mapping that hashes, pickles and copies, so that frozen types can hold one.

    >>> FrozenMap({"float32": 19.5e12})["float32"]
    19500000000000.0
    """

    __slots__ = ("_items",)

    def __init__(self, items: Mapping[str, V_co] | None = None) -> None:
        self._items = dict(items or {})

    def __getitem__(self, key: str) -> V_co:
        return self._items[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)

    def __hash__(self) -> int:
        return hash(frozenset(self._items.items()))

    def __repr__(self) -> str:
        return f"FrozenMap({self._items!r})"


class Confidence(StrEnum):
    """How well the figures of a file are known."""

    VERIFIED = "verified"  # a vendor's page, or two independent sources
    CONSISTENT = "consistent"  # the usual published value, and it passes the clock identity
    RECALLED = "recalled"  # not checked against a source
    DISPUTED = "disputed"  # sources disagree
    MEASURED = "measured"  # on the machine itself


DTYPES = ("float64", "float32", "tf32", "bfloat16", "float16", "float8", "int8", "float6", "float4", "int4")
"""Keys that ``peak_flops_per_s`` may have. ``float8`` stands for all 8-bit float formats."""

_PRECISIONS: Mapping[str, str] = {
    **{dtype: dtype for dtype in DTYPES},
    "fp64": "float64", "fp32": "float32", "fp16": "float16", "bf16": "bfloat16",
    "amp-fp16": "float16", "amp-bf16": "bfloat16", "fp8": "float8", "fp6": "float6", "fp4": "float4",
}  # fmt: skip


def peak_dtype(precision: str) -> str:
    """The dtype whose peak a precision uses: ``"amp-fp16"`` -> ``"float16"``.

    Takes the command line's precisions and dtype names; raises :class:`UnknownNameError`.
    """
    try:
        return _PRECISIONS[precision]
    except KeyError:
        raise UnknownNameError(
            f"no precision named {precision!r}{did_you_mean(precision, _PRECISIONS)}"
            " (fp32, tf32, amp-fp16, amp-bf16, bf16 or a dtype name)"
        ) from None


@dataclass(frozen=True, slots=True)
class Device:
    """One accelerator.

    ``peak_flops_per_s``: dtype -> FLOP/s of matrix products, dense, FP32 accumulate.
    ``vector_dtypes``: the dtypes whose peak comes from the vector units because no
    matrix unit takes them; ``vector_flops_per_s``: vector rates that differ from the
    peak (AMD float32). ``fp16_accumulate_flops_per_s``: rates with FP16
    accumulation, twice the peak on GeForce cards, for information.
    ``fma_per_unit`` (dtype -> multiply-adds per compute unit and clock) and
    ``clock_hz`` (``vector`` and ``matrix``) explain the peaks: units x clock x FMA x 2.
    ``fabric_bytes_per_s``: all scale-up links together, one direction.
    ``launch_s``: fixed time of a kernel. ``curves``: measured on the machine itself, operator
    class and phase (``conv.backward``) or a kernel of it (``conv/conv_1x1.wgrad``) -> seconds
    over FLOPs or bytes, launches included.
    ``sources``: field -> where its figure is from.
    """

    id: str
    name: str
    vendor: str
    arch: str
    peak_flops_per_s: FrozenMap[float]
    mem_bytes: float
    mem_bytes_per_s: float
    launch_s: float
    confidence: Confidence
    sources: FrozenMap[str] = field(repr=False)
    vector_dtypes: tuple[str, ...] = ()
    vector_flops_per_s: FrozenMap[float] = field(default_factory=FrozenMap)
    fp16_accumulate_flops_per_s: FrozenMap[float] = field(default_factory=FrozenMap)
    l2_bytes: float | None = None
    compute_units: int | None = None
    clock_hz: FrozenMap[float] | None = None
    fma_per_unit: FrozenMap[float] | None = None
    fabric_bytes_per_s: float | None = None
    pcie_generation: int | None = None
    tdp_w: float | None = None
    curves: FrozenMap[RateCurve] = field(default_factory=FrozenMap, repr=False)
    notes: str = ""

    def peak(self, precision: str) -> float:
        """FLOP/s of matrix products in ``precision`` (``"fp32"``, ``"amp-bf16"``, ``"int8"``, ...).

        ``tf32`` is ``float32`` on a device that has no TF32: the setting does nothing there.
        Raises :class:`UsageError` if the device has no such peak, :class:`UnknownNameError`
        if there is no such precision.
        """
        dtype = peak_dtype(precision)
        peaks = self.peak_flops_per_s
        if dtype == "tf32" and dtype not in peaks:
            dtype = "float32"
        if dtype not in peaks:
            raise UsageError(
                f"device {self.id} has no published {dtype} peak; choose a precision among {', '.join(peaks)}"
            )
        return peaks[dtype]

    def vector_peak(self, dtype: str = "float32") -> float | None:
        """FLOP/s of the vector units, which elementwise operators use; None where unknown."""
        if dtype in self.vector_flops_per_s:
            return self.vector_flops_per_s[dtype]
        return self.peak_flops_per_s[dtype] if dtype in self.vector_dtypes else None


PCIE_PEERS = ("p2p", "host")
"""Peer to peer over PCIe, or staged through host memory (GeForce cards, roots that do not forward)."""


@dataclass(frozen=True, slots=True)
class Server:
    """A scale-up domain: what stands between the GPUs before the network does.

    ``scale_up``: a GPU's links to the others (None: only PCIe). ``pcie``: one uplink
    towards the host, usable rate; ``pcie_gpus_sharing`` GPUs hang on each (None: not
    known, taken as one). ``pcie_peer``: how GPUs reach each other over it, one of
    :data:`PCIE_PEERS` (None: not known). ``nic``: one of ``nics``. ``gpu_links``: (GPU, GPU, wires)
    of a mesh that is not uniform. ``curves``: measured on the machine itself, collective
    and group (``all-reduce.4``) -> seconds over bytes; ``interference``: the share of
    hidden communication that its steps still paid. ``overhead_w``: what a server draws beside its GPUs at full load.
    ``host_factor``: time of launches from Python over the mean machine's (1 where nobody measured it).
    """

    id: str
    gpus: int
    scale_up: Link | None
    pcie: Link
    nic: Link
    nics: int
    confidence: Confidence
    sources: FrozenMap[str] = field(repr=False)
    pcie_gpus_sharing: int | None = None
    pcie_peer: str | None = None
    interference: float | None = None
    overhead_w: float | None = None
    host_factor: float = 1.0
    curves: FrozenMap[RateCurve] = field(default_factory=FrozenMap, repr=False)
    gpu_links: tuple[tuple[int, int, int], ...] = ()
    notes: str = ""

    @property
    def node_network_bytes_per_s(self) -> float:
        """All NICs together, one direction."""
        return self.nics * self.nic.bytes_per_s


@dataclass(frozen=True, slots=True)
class Cluster:
    """Equal servers with one kind of device.

    ``max_servers``: None if unlimited. ``utilisation``: the share of every resource
    that is used, 0.7 in the Alibaba-PAI study; None leaves efficiencies to the model. ``price``: of one server.
    """

    id: str
    device: Device
    server: Server
    sources: FrozenMap[str] = field(repr=False)
    max_servers: int | None = None
    utilisation: float | None = None
    price: Price | None = None
    notes: str = ""

    @property
    def network(self) -> Link:
        """The link between servers at the rate of a whole server."""
        return replace(self.server.nic, bytes_per_s=self.server.node_network_bytes_per_s)

    @property
    def max_gpus(self) -> int | None:
        """GPUs of the whole cluster; None if unlimited."""
        return None if self.max_servers is None else self.max_servers * self.server.gpus

    def with_overrides(
        self,
        *,
        device: Device | None = None,
        network_bytes_per_s: float | None = None,
        nvlink_bytes_per_s: float | None = None,
        pcie_bytes_per_s: float | None = None,
        mem_bytes_per_s: float | None = None,
        peak_flops_per_s: float | None = None,
        network_kind: LinkKind | str | None = None,
    ) -> Cluster:
        """The same cluster with some figures replaced; ``device`` first, then the rates.

        ``network_bytes_per_s`` is a whole server's, over one NIC. ``nvlink_bytes_per_s``
        is a GPU's; the wires of a mesh scale along, and a server without scale-up links
        gets a switch. ``peak_flops_per_s`` becomes the peak of every dtype the device
        has. A new ``network_kind`` brings that kind's assumed latency. Raises
        :class:`UsageError` for a kind that is no network or a rate that is not positive.
        """
        server = _override_server(
            self.server, network_bytes_per_s, nvlink_bytes_per_s, pcie_bytes_per_s, network_kind
        )
        chosen = _override_device(device or self.device, mem_bytes_per_s, peak_flops_per_s)
        price = self.price if device in (None, self.device) else None  # other cards, another machine
        return replace(self, device=chosen, server=server, price=price)

    def graph(self) -> nx.Graph:
        """One server as a graph: ``gpu0`` ..., ``pcie0`` ..., ``host``, ``nic0`` ..., ``network``.

        A node has ``role``, an edge ``link`` (a :class:`Link` whose ``bytes_per_s`` is that
        edge's, one direction). Switched fabrics meet in one node, ``fabric``.
        """
        import networkx as nx

        graph = nx.Graph(server=self.server.id, device=self.device.id)
        server = self.server
        sharing = server.pcie_gpus_sharing or 1
        switches = -(-server.gpus // sharing)
        graph.add_node("host", role="host")
        for switch in range(switches):
            graph.add_node(f"pcie{switch}", role="pcie")
            graph.add_edge("host", f"pcie{switch}", link=server.pcie)
        for gpu in range(server.gpus):
            graph.add_node(f"gpu{gpu}", role="gpu")
            graph.add_edge(f"gpu{gpu}", f"pcie{gpu // sharing}", link=server.pcie)
        graph.add_node("network", role="network")
        for nic in range(server.nics):
            graph.add_node(f"nic{nic}", role="nic")
            graph.add_edge(f"nic{nic}", f"pcie{nic * switches // server.nics}", link=server.pcie)
            graph.add_edge(f"nic{nic}", "network", link=server.nic)
        _add_fabric(graph, server)
        return graph


def _add_fabric(graph: nx.Graph, server: Server) -> None:
    link = server.scale_up
    if link is None:
        return
    if link.pair_bytes_per_s is None:
        graph.add_node("fabric", role="fabric")
        for gpu in range(server.gpus):
            graph.add_edge(f"gpu{gpu}", "fabric", link=link)
        return
    full_mesh = tuple((a, b, 1) for a in range(server.gpus) for b in range(a + 1, server.gpus))
    for first, second, wires in server.gpu_links or full_mesh:
        rate = wires * link.pair_bytes_per_s
        graph.add_edge(f"gpu{first}", f"gpu{second}", link=replace(link, bytes_per_s=rate))


_ADDED_SCALE_UP = Link(LinkKind.NVSWITCH, 1.0, latency_s=3e-6)
"""assumed: what ``--nvlink`` means on a server that has none; its rate is always set."""


def _override_server(
    server: Server,
    network_bytes_per_s: float | None,
    nvlink_bytes_per_s: float | None,
    pcie_bytes_per_s: float | None,
    network_kind: LinkKind | str | None,
) -> Server:
    if network_bytes_per_s is not None:
        server = replace(server, nics=1, nic=server.nic.at_rate(network_bytes_per_s))
    if network_kind is not None:
        server = replace(server, nic=server.nic.as_network(network_kind))
    if nvlink_bytes_per_s is not None:
        scale_up = server.scale_up or _ADDED_SCALE_UP
        server = replace(server, scale_up=scale_up.at_rate(nvlink_bytes_per_s))
    if pcie_bytes_per_s is not None:
        server = replace(server, pcie=server.pcie.at_rate(pcie_bytes_per_s))
    return server


def _override_device(device: Device, mem_bytes_per_s: float | None, peak_flops_per_s: float | None) -> Device:
    if mem_bytes_per_s is not None:
        rate = positive(mem_bytes_per_s, "the memory's rate")
        device = replace(device, mem_bytes_per_s=rate)
    if peak_flops_per_s is not None:
        rate = positive(peak_flops_per_s, "the peak")
        # The clock no longer explains such a peak, so the FMA table goes.
        peaks = FrozenMap(dict.fromkeys(device.peak_flops_per_s, rate))
        device = replace(device, peak_flops_per_s=peaks, fma_per_unit=None)
    return device
