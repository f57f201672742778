"""Published figures against a run on a generated population: fitted ones, and held-out ones that judge it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from graphcost.fleet.kinds import ALLREDUCE_CLUSTER, ALLREDUCE_LOCAL, LOCAL, PS, SINGLE
from graphcost.fleet.population import Population
from graphcost.fleet.result import Characterization, Projection, Sweep, Target, TargetArch, TypeStats
from graphcost.fleet.sweep import PROJECTED

SOURCE = "Alibaba-PAI study, arXiv 1910.05930"


@dataclass(frozen=True, slots=True)
class Study:
    """The three commands on one table; the last two where they were run."""

    characterization: Characterization
    projection: Projection | None = None
    sweep: Sweep | None = None

    def type(self, title: str) -> TypeStats | None:
        """Figures of one type."""
        return next((one for one in self.characterization.types if one.type == title), None)


Metric = Callable[[Study], float | str | None]


def _overall(part: str) -> Metric:
    return lambda study: getattr(study.characterization.overall.by_cnode, part).mean


def _of(title: str, figure: Callable[[TypeStats], float]) -> Metric:
    def metric(study: Study) -> float | None:
        found = study.type(title)
        return None if found is None else figure(found)

    return metric


def _multi_input(study: Study) -> float:
    several = [one for one in study.characterization.types if one.type != SINGLE.title]
    jobs = sum(one.jobs for one in several)
    return sum(one.jobs * one.by_job.input.mean for one in several) / jobs if jobs else 0.0


def _memory_over_compute(study: Study) -> float:
    return min(
        one.by_job.memory.mean / one.by_job.compute.mean
        for one in study.characterization.types
        if one.by_job.compute.mean
    )


def _over_cnodes(stats: TypeStats, limit: int) -> tuple[float, float]:
    small = next(size for size in stats.sizes if size.at_most == limit)
    return 1 - small.jobs / stats.jobs, 1 - small.cnodes / stats.cnodes


def _under_10gb(study: Study) -> float | None:
    overall = study.characterization.overall
    return overall.models_under_10gb / overall.models_known if overall.models_known else None


def _moved(arch: str, figure: Callable[[TargetArch], float]) -> Metric:
    def metric(study: Study) -> float | None:
        if study.projection is None:
            return None
        return figure(next(one for one in study.projection.targets if one.to == arch))

    return metric


def _most_sensitive(title: str) -> Metric:
    def metric(study: Study) -> str | None:
        found = [] if study.sweep is None else [one for one in study.sweep.sensitivity if one.type == title]
        return found[0].order[0] if found else None

    return metric


METRICS: Mapping[str, Metric] = {
    "ps_job_share": _of(PS.title, lambda stats: stats.job_share),
    "ps_cnode_share": _of(PS.title, lambda stats: stats.cnode_share),
    "comm_share": _overall("communication"),
    "input_share": _overall("input"),
    "memory_share": _overall("memory"),
    "compute_share": _overall("compute"),
    "single_input_share": _of(SINGLE.title, lambda stats: stats.by_job.input.mean),
    "single_input_over_half": _of(SINGLE.title, lambda stats: stats.by_job.input.over_50),
    "multi_input_share": _multi_input,
    "ps_comm_over_80": _of(PS.title, lambda stats: stats.by_job.communication.over_80),
    "ps_comm_share": _of(PS.title, lambda stats: stats.by_job.communication.mean),
    "memory_over_compute": _memory_over_compute,
    "ps_over_8_cnodes": _of(PS.title, lambda stats: _over_cnodes(stats, 8)[0]),
    "jobs_over_128_cnodes": lambda study: _over_cnodes(study.characterization.overall, 128)[0],
    "cnodes_over_128": lambda study: _over_cnodes(study.characterization.overall, 128)[1],
    "models_under_10gb": _under_10gb,
    "allreduce_gain": _moved(ALLREDUCE_LOCAL.id, lambda one: one.gain_share),
    "allreduce_gain_of_fitting": _moved(ALLREDUCE_LOCAL.id, lambda one: one.gain_share_of_fitting),
    "ethernet_speedup": lambda study: None if study.sweep is None else study.sweep.ethernet_speedup,
    "single_most_sensitive": _most_sensitive(SINGLE.title),
    "local_most_sensitive": _most_sensitive(LOCAL.title),
    "ps_most_sensitive": _most_sensitive(PS.title),
    "projected_most_sensitive": _most_sensitive(PROJECTED),
    "local_not_faster": _moved(ALLREDUCE_LOCAL.id, lambda one: 1 - one.faster_per_cnode / max(1, one.jobs)),
    "cluster_gain": _moved(ALLREDUCE_CLUSTER.id, lambda one: one.gain_share),
    "cluster_helps_local_losers": lambda study: (
        None if study.projection is None else study.projection.local_losers_helped_by_cluster
    ),
}


def judge_targets(people: Population, study: Study) -> tuple[Target, ...]:
    """Every target that the study has a figure for, in the file's order."""
    found = []
    for entry in people.targets:
        got = METRICS[entry["name"]](study)
        if got is None:
            continue
        value, tolerance = entry["value"], entry.get("tolerance")
        found.append(
            Target(
                name=entry["name"], what=entry["what"], use=entry["use"], relation=entry["relation"], value=value,
                got=got, tolerance=tolerance, met=_met(entry["relation"], value, got, tolerance or 0.0),
                tag=entry["tag"], source=SOURCE,
            )
        )  # fmt: skip
    return tuple(found)


def _met(relation: str, value: float | str, got: float | str, tolerance: float) -> bool:
    if isinstance(value, str) or isinstance(got, str):
        return got == value
    if relation == "at least":
        return got >= value
    if relation == "over":
        return got > value
    return abs(got - value) <= tolerance
