"""Changes that a user can make, by effort; to add one of a kind is one entry of ``KINDS``.

A change that is searched for a value (batch, GPUs, rates) is an axis of ``advise.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, fields, replace
from enum import IntEnum
from functools import partial
from math import log
from typing import Any

from graphcost.arch import ARCHITECTURES, SYNCHRONOUS, Architecture, Placement, PsStyle
from graphcost.engine.timeline import Overlap
from graphcost.errors import PlacementError
from graphcost.hardware import peak_dtype
from graphcost.links import LinkKind
from graphcost.placing import AnalysisOptions, with_arch
from graphcost.predict import Profile
from graphcost.recipe import Precision
from graphcost.resources import RESOURCES
from graphcost.units import MIB, format_bytes
from graphcost.what_if import Outcome


class Effort(IntEnum):
    """What a change asks for, from least to most: the order of advice."""

    SETTING = 1
    BATCH = 2
    PLACEMENT = 3
    ARCHITECTURE = 4
    HARDWARE = 5

    @property
    def label(self) -> str:
        """As it is printed."""
        return self.name.lower()


Apply = Callable[[AnalysisOptions], AnalysisOptions]


@dataclass(frozen=True, slots=True)
class Change:
    """One thing done differently. ``size``: the logarithm of its ratio, 0 where it has none."""

    kind: str
    effort: Effort
    what: str
    why: str
    apply: Apply
    size: float = 0.0
    caution: str | None = None


def _set(**values: Any) -> Apply:
    return lambda options: replace(options, **values)


def _overlap(base: Outcome) -> Iterator[Change]:
    if base.choice.overlap is not Overlap.NONE:
        return
    if base.choice.profile is Profile.PAPER:
        yield Change(
            "overlap", Effort.SETTING, "overlap communication with computation", "the longer of both is what counts",
            _set(overlap="ideal"), caution="perfect overlap, the most that any implementation can reach",
        )  # fmt: skip
    else:
        yield Change(
            "overlap", Effort.SETTING, "send gradients during the backward pass",
            "buckets hide behind what is still computed", _set(overlap="bucketed"),
        )  # fmt: skip


_BUCKETS_MIB = (1, 2, 5, 10, 25, 50, 100, 200, 400)


def _buckets(base: Outcome) -> Iterator[Change]:
    """Smaller ones leave earlier, larger ones pay the latency less often."""
    if base.choice.profile is Profile.PAPER or base.choice.overlap is not Overlap.BUCKETED:
        return
    now_bytes = base.choice.bucketing.cap_bytes
    for mib in _BUCKETS_MIB:
        if mib * MIB == now_bytes:
            continue
        smaller = mib * MIB < now_bytes
        why = "the last bucket, which nothing hides, is smaller" if smaller else "fewer, larger messages"
        yield Change(
            "buckets", Effort.SETTING, f"buckets of {mib} MiB instead of {now_bytes / MIB:.4g} MiB", why,
            _set(buckets=f"{mib}MiB"), abs(log(mib * MIB / now_bytes)),
        )  # fmt: skip


def _precision(base: Outcome) -> Iterator[Change]:
    """Never to a slower format: that would lower the share by wasting time."""
    order = [Precision.FP32, Precision.TF32, Precision.AMP_FP16, Precision.AMP_BF16, Precision.BF16]
    now = base.choice.recipe.precision
    peaks = base.choice.placement.cluster.device.peak_flops_per_s
    for precision in order[order.index(now) + 1 :]:
        if peak_dtype(precision.value) not in peaks:
            continue  # no units for it; TF32 as a setting does nothing there
        sent = "; gradients of 2 bytes instead of 4" if precision.weight_bytes < now.weight_bytes else ""
        yield Change(
            "precision", Effort.SETTING, f"train in {precision} instead of {now}", f"less work per step{sent}",
            _set(precision=precision.value), caution="the numbers computed change; accuracy must be checked",
        )  # fmt: skip


def _half_gradients(base: Outcome) -> Iterator[Change]:
    recipe = base.choice.recipe
    if base.choice.arch.name == "allreduce" and recipe.precision.weight_bytes == 4 and not recipe.half_gradients:
        yield Change(
            "half-gradients", Effort.SETTING, "send gradients in fp16 or bf16 (a compression hook of DDP or Horovod)",
            "half the bytes on the wire, for two casts", _set(half_gradients=True),
            caution="gradients are rounded before they are summed; accuracy must be checked",
        )  # fmt: skip


def _rows(base: Outcome) -> Iterator[Change]:
    if base.choice.arch.name != "allreduce" or base.choice.placement.gather_rows:
        return
    sparse = [g for g in base.plan.gradients if g.sparse and g.rows_bytes is not None]
    if sparse:
        dense, rows = sum(g.bytes for g in sparse), sum(g.sent_bytes for g in sparse)
        yield Change(
            "gather-rows", Effort.SETTING, "gather the touched rows of sparse tables",
            f"a GPU sends {format_bytes(rows)} of rows instead of tables of {format_bytes(dense)}",
            _set(gather_rows=True),
        )  # fmt: skip


def _servers(base: Outcome) -> Iterator[Change]:
    """The same GPUs on fewer servers, or on more."""
    place = base.choice.placement
    fullest = place.cluster.server.gpus
    counts = {-(-place.gpus // fullest), 2 * place.servers, place.gpus} - {place.servers}
    for servers in sorted(count for count in counts if 1 <= count <= place.gpus):
        fewer = servers < place.servers
        why = "more neighbours inside a server" if fewer else "fewer GPUs share a server's network and PCIe"
        yield Change(
            "servers", Effort.PLACEMENT, f"{place.gpus} GPUs on {servers} servers instead of {place.servers}", why,
            _set(servers=servers), abs(log(servers / place.servers)),
        )  # fmt: skip


def _arch(base: Outcome) -> Iterator[Change]:
    """On the same GPUs where it can be; what one server holds, and AllReduce for its own links, also on one."""
    place, now = base.choice.placement, base.choice.arch.name
    if place.gpus == 1:
        return
    fullest = place.cluster.server.gpus
    for name in SYNCHRONOUS:
        arch = ARCHITECTURES[name]
        if name in (now, "single", "dataparallel") or (name == "pearl" and not base.plan.rows_bytes):
            continue  # nn.DataParallel is what torch advises against; without lookup tables PEARL is AllReduce
        held = _holds(arch, replace(place, servers=-(-place.gpus // fullest)))
        if held:
            yield Change(
                "arch", Effort.ARCHITECTURE, f"{name} instead of {now}", arch.title, partial(with_arch, name=name)
            )
        if place.gpus > fullest > 1 and (name == "allreduce" or not held):
            yield Change(
                "arch + gpus", Effort.ARCHITECTURE,
                f"{name} on {fullest} GPUs of one server instead of {now} on {place.gpus}", arch.title,
                partial(_on_one_server, name=name, gpus=fullest), log(place.gpus / fullest),
            )  # fmt: skip


def _holds(arch: Architecture, placement: Placement) -> bool:
    try:
        arch.check(placement)
    except PlacementError:
        return False
    return True


def _on_one_server(options: AnalysisOptions, name: str, gpus: int) -> AnalysisOptions:
    return with_arch(replace(options, gpus=gpus, servers=None), name)


def _ps_style(base: Outcome) -> Iterator[Change]:
    now = base.choice.placement.ps_style
    if base.choice.arch.name != "ps" or base.choice.profile is Profile.PAPER:
        return
    for style in PsStyle:
        beside = base.options.ps_colocated and not style.always_colocated
        if style is not now:
            yield Change(
                "ps-style", Effort.ARCHITECTURE, f"{style} parameter servers instead of {now}",
                "implementations move the same weights differently",
                _set(ps_style=style.value, ps_colocated=beside),
            )  # fmt: skip


def _network_kind(base: Outcome) -> Iterator[Change]:
    """The same nominal rate without the host's sockets."""
    network = base.choice.placement.cluster.network
    if base.choice.profile is Profile.PAPER or base.choice.placement.servers == 1:
        return
    better = [LinkKind.ROCE, LinkKind.INFINIBAND]
    for kind in [LinkKind.TCP, *better] if network.kind is LinkKind.TCP_CLOUD else better:
        if kind is not network.kind:
            yield Change(
                "network-kind", Effort.HARDWARE, f"{kind} instead of {network.kind} at the same nominal rate",
                "more of the nominal rate is reached", _set(network_kind=kind.value),
            )  # fmt: skip


KINDS: tuple[Callable[[Outcome], Iterable[Change]], ...] = (
    _overlap, _buckets, _half_gradients, _precision, _rows, _servers, _arch, _ps_style, _network_kind,
)  # fmt: skip


def combined(first: Change, second: Change) -> Change:
    """Both changes as one; the effort is the larger one's."""
    cautions = [one for one in (first.caution, second.caution) if one]
    return Change(
        f"{first.kind} + {second.kind}",
        max(first.effort, second.effort),
        f"{first.what}, and {second.what}",
        f"{first.why}; {second.why}",
        lambda options: second.apply(first.apply(options)),
        first.size + second.size,
        "; ".join(dict.fromkeys(cautions)) or None,
    )


_RATES = {f"{name.replace('-', '_')}_bytes_per_s": RESOURCES[name] for name in ("network", "nvlink", "pcie")}


def flags_of(before: AnalysisOptions, after: AnalysisOptions) -> str:
    """The command-line options that turn ``before`` into ``after``; one that must go is named with "without"."""
    found = []
    for one in fields(AnalysisOptions):
        old, new = getattr(before, one.name), getattr(after, one.name)
        flag = f"--{one.name.replace('_', '-')}"
        if old == new:
            continue
        if one.name == "load":
            found.append(f"--batch {new.batch}")
        elif one.name in _RATES:
            found.append(_RATES[one.name].flag(new))
        elif new is None or new is False:
            found.append(f"without {flag}")
        else:
            found.append(flag if new is True else f"{flag} {new}")
    return " ".join(found)
