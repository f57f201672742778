"""Gradient buckets as DDP, Horovod and a size of one's own group them; when they leave, and what is exposed."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphcost.analysis import predict
from graphcost.engine.timeline import BUCKETINGS, Bucket, Overlap, buckets, exposure
from graphcost.graph import build_graph
from graphcost.models_zoo import build
from graphcost.placing import AnalysisOptions, bucketing_of, resolve
from graphcost.predict import StepTime
from graphcost.training import plan_step
from graphcost.units import MIB

DDP, HOROVOD = BUCKETINGS["ddp"], BUCKETINGS["horovod"]
KIB = 1024


def sizes(found: tuple[Bucket, ...]) -> list[float]:
    return [bucket.size_bytes for bucket in found]


def test_ddp_closes_its_first_bucket_at_one_mebibyte_then_at_25() -> None:
    """Ten gradients of 10 MiB: the first alone is over 1 MiB, then three are over 25 MiB each time."""
    found = buckets([(10 * MIB, index / 10) for index in range(10)], DDP)
    assert sizes(found) == [10 * MIB, 30 * MIB, 30 * MIB, 30 * MIB]
    assert [bucket.ready_s for bucket in found] == [0.0, 0.3, 0.6, 0.9]  # when the last member is there
    assert [(bucket.first, bucket.last) for bucket in found] == [(0, 0), (1, 3), (4, 6), (7, 9)]


def test_ddp_against_torchs_own_assignment() -> None:
    """``dist._compute_bucket_assignment_by_size`` with the same limits puts the same tensors together."""
    torch = pytest.importorskip("torch")
    if not torch.distributed.is_available():
        pytest.skip("torch.distributed is not in this build")
    assert DDP.first_bytes == torch.distributed._DEFAULT_FIRST_BUCKET_BYTES
    for counts in ([300_000, 10, 5_000_000, 20, 9_000_000, 1], [1] * 40, [7_000_000] * 5):
        tensors = [torch.empty(count, device="meta") for count in counts]
        theirs, _ = torch.distributed._compute_bucket_assignment_by_size(
            tensors, [int(DDP.first_bytes), int(DDP.cap_bytes)], [False] * len(tensors)
        )
        ours = buckets([(4.0 * count, 0.0) for count in counts], DDP)
        assert [list(range(one.first, one.last + 1)) for one in ours] == sorted(theirs), counts


def test_horovod_waits_for_its_cycle() -> None:
    """128 MiB at once; the coordinator looks every millisecond."""
    found = buckets([(60 * MIB, 0.0002), (60 * MIB, 0.0004), (10 * MIB, 0.0104), (1 * MIB, 0.0111)], HOROVOD)
    assert sizes(found) == [130 * MIB, 1 * MIB]
    assert [bucket.ready_s for bucket in found] == pytest.approx([0.011, 0.012])


def test_a_size_of_ones_own() -> None:
    own = bucketing_of("4MiB")
    assert (own.first_bytes, own.cap_bytes, own.cycle_s) == (MIB, 4 * MIB, 0)
    assert sizes(buckets([(3.0 * MIB, 0)] * 5, own)) == [3 * MIB, 6 * MIB, 6 * MIB]
    small = bucketing_of("100KiB")  # the first bucket is no larger than the others
    assert small.first_bytes == small.cap_bytes == 100 * KIB


def stepped(how: str, **options: object) -> StepTime:
    plan = plan_step(build_graph(build("resnet50", batch=8)))
    chosen = AnalysisOptions(**{"gpus": 16, "cluster": "aws-p3.16xlarge", "buckets": how, **options})  # type: ignore
    return predict(plan, resolve(chosen), chosen)


def test_buckets_of_resnet50_begin_with_the_classifier() -> None:
    """2 048 x 1 000 weights and 1 000 biases are ready first: 8.2 MB, over 1 MiB; four full ones and a rest."""
    message = stepped("ddp").messages[0]  # what is lost beyond the wire comes after it
    first, *others, last = message.sends
    assert first.bytes in (4 * 2048 * 1000, 4 * (2048 * 1000 + 1000))
    assert all(send.bytes >= 25 * MIB for send in others) and last.bytes < 25 * MIB
    assert sum(send.bytes for send in message.sends) == 4 * 25_557_032
    assert len(message.sends) == 5
    assert sum(send.bytes for send in stepped("horovod").messages[0].sends) == 4 * 25_557_032
    assert len(stepped("horovod").messages[0].sends) == 1 < 5 < len(stepped("1MiB").messages[0].sends)


def test_one_large_bucket_hides_little() -> None:
    """Only the first bucket, of 1 MiB or more, leaves before the backward pass is over; small ones leave earlier."""
    late, early = stepped("1GiB", gpus=8), stepped("ddp", gpus=8)
    first, rest = late.messages[0].sends
    assert 0 < late.hidden_comm_s <= first.end_s - first.start_s
    assert early.exposed_comm_s < late.exposed_comm_s
    assert late.backward is not None and rest.start_s == pytest.approx(late.backward.wall_s)


gradients = st.lists(st.tuples(st.integers(1, 60 * MIB), st.floats(0, 1)), max_size=50)


@given(gradients, st.sampled_from(["ddp", "horovod", "2MiB"]))
def test_every_gradient_is_in_one_bucket(made: list[tuple[int, float]], how: str) -> None:
    bucketing = bucketing_of(how)
    ordered = sorted(((float(size), ready) for size, ready in made), key=lambda one: one[1])
    found = buckets(ordered, bucketing)
    members = [index for bucket in found for index in range(bucket.first, bucket.last + 1)]
    assert members == list(range(len(ordered)))
    for index, bucket in enumerate(found):
        mine = ordered[bucket.first : bucket.last + 1]
        cap = bucketing.first_bytes if index == 0 else bucketing.cap_bytes
        assert bucket.size_bytes == sum(size for size, _ in mine)
        assert bucket.ready_s >= max(ready for _, ready in mine)
        assert sum(size for size, _ in mine[:-1]) < cap  # it closed no later than it had to
        assert bucket.size_bytes >= cap or bucket is found[-1]


@given(gradients, st.floats(1e7, 1e11), st.floats(0, 0.4), st.sampled_from(list(Overlap)))
def test_sends_follow_each_other(
    made: list[tuple[int, float]], rate: float, interference: float, overlap: Overlap
) -> None:
    ordered = sorted(((float(size), ready) for size, ready in made), key=lambda one: one[1])
    sent = buckets(ordered, DDP)
    found = exposure(sent, lambda size_bytes: size_bytes / rate, 1.0, overlap, interference)
    end = 0.0
    for bucket, send in zip(sent, found.sends, strict=True):
        earliest = {Overlap.NONE: 1.0, Overlap.IDEAL: 0.0, Overlap.BUCKETED: bucket.ready_s}[overlap]
        assert send.start_s == max(end, earliest) and send.bytes == bucket.size_bytes
        end = send.end_s
    assert found.total_s == pytest.approx(sum(send.end_s - send.start_s for send in found.sends), abs=1e-12)
    assert 0 <= found.exposed_s <= found.total_s * (1 + 1e-9)
    assert found.exposed_s >= max(0.0, min(found.total_s, end - 1.0)) * (1 - 1e-9)
