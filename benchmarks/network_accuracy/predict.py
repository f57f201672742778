"""graphcost's own exchanges and overlap, with the measured single-GPU step in place of the predicted one."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from itertools import accumulate

from benchmarks.network_accuracy.rows import Run
from graphcost.arch import ARCHITECTURES, Placement, PsStyle
from graphcost.device_db import load_cluster, load_device
from graphcost.engine.roofline import DeviceModel
from graphcost.engine.timeline import BUCKETINGS, Bucket, Bucketing, Overlap, buckets, exposure
from graphcost.frontends.options import LoadOptions
from graphcost.graph import build_graph
from graphcost.hardware import Cluster
from graphcost.network.overhead import multi_gpu_overhead_s
from graphcost.sources import load_model
from graphcost.training import Gradient, StepPlan, plan_step

BACKWARD_SHARE = 2 / 3
"""Of the measured single-GPU step: backward costs two forward passes."""

ZOO = {
    "resnet50": "resnet50", "resnet152": "resnet152", "vgg16": "vgg16", "alexnet": "alexnet",
    "bert_base": "bert-base", "electra_base": "bert-base",
}  # fmt: skip

MILLION_PARAMETERS = {
    "yolov3": 61.9, "deepspeech2": 50.6, "neumf": 1.6, "transformer_gavel_multi30k": 49.0, "lstm_lm_wikitext2": 14.0,
    "jasper10x5": 333.0, "quartznet15x5": 18.9, "resnext101_32x4d": 44.2, "efficientnet_b0": 5.3,
    "maskrcnn_r50": 44.4, "ssd300_resnet50": 22.9, "bart_large": 406.0, "nnunet_2d": 30.0, "nnunet_3d": 31.0,
    "unet2d": 31.0, "unet3d": 19.0, "mobilefacenet_y1": 1.2,
}  # fmt: skip
"""Networks outside the zoo, from their public code's defaults (recalled); DeepSpeech2, U-Nets least sure."""

EVEN_LAYERS = 50
"""Networks outside the zoo are taken as so many equal layers (assumed), but for those of ``LAYOUTS``."""

LAYOUTS: dict[str, tuple[tuple[float, float], ...]] = {
    "neumf": ((1.0, 1.0),),  # embedding tables but for a percent
    "lstm_lm_wikitext2": ((0.477, 0.25), (0.046, 0.75), (0.477, 1.0)),  # decoder, cells, encoder
    # heads, the stages of 1024 and 512 channels, the rest; time by FLOPs, which stages share evenly
    "yolov3": (
        *((0.34 / 5, 0.06 * i) for i in range(1, 6)),
        *((0.42 / 6, 0.30 + 0.025 * i) for i in range(1, 7)),
        *((0.19 / 4, 0.45 + 0.04 * i) for i in range(1, 5)),
        (0.05, 1.0),
    ),
}
"""(share of the bytes, share of the backward pass after which they are ready), from public code (recalled)."""

OTHER_BUCKETINGS = {"unfused": Bucketing("unfused", 0.0, 0.0)}


@dataclass(frozen=True)
class Predicted:
    """Seconds: exposed beyond the single-GPU step, and the part of it that is no wire time."""

    wire_s: float
    overhead_s: float

    @property
    def wait_s(self) -> float:
        return self.wire_s + self.overhead_s


@dataclass(frozen=True)
class Gradients:
    """A plan whose gradients count, and when each backward operator is done, as a share of the pass."""

    plan: StepPlan
    done: tuple[float, ...]


@cache
def gradients_of(model: str) -> Gradients | None:
    """Gradients in order of readiness; None where nothing is known of the network."""
    if model in ZOO:
        plan = plan_step(build_graph(load_model(f"zoo:{ZOO[model]}", LoadOptions(batch=32))))
        device = load_device("v100-sxm2-16")
        timing = DeviceModel(device, plan.recipe)
        ends = list(accumulate(timing.time(op).time_s for op in plan.backward))
        return Gradients(plan, tuple(end / ends[-1] for end in ends))
    if model not in MILLION_PARAMETERS:
        return None
    plan = plan_step(build_graph(load_model("zoo:mlp", LoadOptions(batch=32))))
    even = tuple((1 / EVEN_LAYERS, (i + 1) / EVEN_LAYERS) for i in range(EVEN_LAYERS))
    layout = LAYOUTS.get(model, even)
    total_bytes = 4e6 * MILLION_PARAMETERS[model]
    sent = tuple(Gradient(f"layer {i}", round(share * total_bytes), i) for i, (share, _) in enumerate(layout))
    return Gradients(replace(plan, gradients=sent), tuple(done for _, done in layout))


@cache
def cluster_of(name: str, device: str) -> Cluster:
    cluster = load_cluster(name)
    return cluster.with_overrides(device=load_device(device)) if device else cluster


def predict(model: str, run: Run, single_s: float) -> Predicted | None:
    """What the step waits for beyond ``single_s``."""
    found = gradients_of(model)
    if found is None:
        return None
    place = Placement(run.gpus, run.servers, run.ps, cluster_of(run.cluster, run.device), PsStyle(run.style))
    backward_s = BACKWARD_SHARE * single_s
    bucketing = BUCKETINGS.get(run.bucketing) or OTHER_BUCKETINGS[run.bucketing]
    wire_s = 0.0
    for part in ARCHITECTURES[run.arch].exchanges(found.plan, place):
        sent: tuple[Bucket, ...] = (Bucket(part.size_bytes, backward_s),)
        if part.hides:
            ready = ((size, found.done[index] * backward_s) for size, index in part.payload)
            sent = buckets(ready, part.bucketing or bucketing)
        mode = run.overlap if part.hides else Overlap.NONE
        wire_s += exposure(sent, part.seconds, backward_s, mode, part.interference).exposed_s
    return Predicted(wire_s, multi_gpu_overhead_s(single_s, place.gpus_per_server, place.servers))
