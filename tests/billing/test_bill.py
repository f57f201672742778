"""Energy and cost of a step: the arithmetic by hand, the same interval as the step, and what is not known."""

from __future__ import annotations

import csv
import json
from dataclasses import replace
from pathlib import Path

import jsonschema
import pytest
from helpers import RESNET50, VGG19, without_batch
from hypothesis import given
from hypothesis import strategies as st

from graphcost.analysis import analyze
from graphcost.cli.main import main
from graphcost.device_db import cluster_names, device_names, load_cluster, load_device
from graphcost.engine.power import power_model
from graphcost.errors import DataFileError, UsageError
from graphcost.result import Analysis
from graphcost.units import format_kwh, format_usd, parse_usd


def bill_parts(result: Analysis):
    assert result.bill.energy is not None and result.bill.cost is not None
    return result.bill.energy, result.bill.cost


def test_a_bill_by_hand() -> None:
    """16 GPUs of 300 W on two whole servers at 24.48 dollars an hour, which list no power of their own."""
    result = analyze(str(VGG19), gpus=16, batch=32, cluster="aws-p3.16xlarge")
    energy, cost = bill_parts(result)
    step = result.step
    busy_s = step.compute_s + step.memory_s
    waiting_s = step.input_s + step.host_s + step.exposed_comm_s
    joules = 16 * 300 * (0.86 * busy_s + 0.47 * waiting_s)
    assert energy.energy_j == pytest.approx(joules)
    assert energy.kwh_per_million_samples == pytest.approx(joules / 3.6e6 * 1e6 / (16 * 32))
    assert energy.gpu_kwh_per_million_samples == energy.kwh_per_million_samples
    assert energy.scope == "GPUs alone" and "assumed" in energy.source
    assert cost.usd_per_hour == pytest.approx(2 * 24.48)
    assert cost.cost_usd == pytest.approx(2 * 24.48 / 3600 * step.step_s)
    assert cost.usd_per_million_samples == pytest.approx(2 * 24.48 / 3600 * 1e6 / step.samples_per_s)
    assert result.bill.unknown == ()


def test_the_interval_is_the_steps() -> None:
    result = analyze(str(RESNET50), gpus=8, batch=32, cluster="aws-p4d")
    step, (energy, cost) = result.step, bill_parts(result)
    low, high = step.step_low_s / step.step_s, step.step_high_s / step.step_s
    assert low < 1 < high
    for best, least, most in (
        (energy.energy_j, energy.energy_low_j, energy.energy_high_j),
        (cost.cost_usd, cost.cost_low_usd, cost.cost_high_usd),
        (cost.usd_per_million_samples, cost.usd_per_million_samples_low, cost.usd_per_million_samples_high),
        (energy.kwh_per_million_samples, energy.kwh_per_million_samples_low, energy.kwh_per_million_samples_high),
    ):
        assert (least, most) == (pytest.approx(low * best), pytest.approx(high * best))


def test_a_servers_own_power_belongs_to_the_job_by_its_share_of_the_gpus() -> None:
    """A DGX A100 draws 6.5 kW at most, 3.3 kW of them beside its eight GPUs of 400 W."""
    half = analyze(str(RESNET50), gpus=4, batch=32, cluster="dgx-a100").bill.energy
    assert half is not None and half.scope == "GPUs and servers"
    assert half.mean_power_w == pytest.approx(half.power_share * 6500 * 4 / 8)
    assert half.gpu_kwh_per_million_samples == pytest.approx(half.kwh_per_million_samples * 3200 / 6500)


def test_accumulation_counts_its_samples() -> None:
    once = analyze(str(RESNET50), gpus=8, batch=32, cluster="aws-p4d", accumulate=4)
    _, cost = bill_parts(once)
    assert cost.usd_per_million_samples == pytest.approx(cost.cost_usd / (8 * 32 * 4) * 1e6)


@pytest.mark.parametrize(
    ("options", "energy", "cost", "says"),
    [
        ({"cluster": "dgx-a100"}, True, False, "cost: dgx-a100 has no price; --price-per-gpu-hour gives one"),
        ({"cluster": "aws-trn1.32xl"}, False, True, "energy: trainium1 has no board power (tdp_w)"),
        ({"cluster": "aws-p4d", "device": "h100-sxm"}, True, False, "cost: aws-p4d with h100-sxm has no price"),
        ({"cluster": "aws-p4d", "arch": "ps"}, True, True, "hosts of parameter servers"),
    ],
)
def test_what_is_not_known_is_null_and_said(options, energy: bool, cost: bool, says: str) -> None:
    bill = analyze(str(RESNET50), gpus=8, batch=32, **options).bill
    assert (bill.energy is not None, bill.cost is not None) == (energy, cost)
    assert len(bill.unknown) == 1 and bill.unknown[0].startswith(says)


def test_a_price_per_gpu_is_paid_for_the_gpus_of_the_job() -> None:
    cost = analyze(str(RESNET50), gpus=3, batch=32, cluster="aws-p4d", price_per_gpu_hour_usd=2.5).bill.cost
    assert cost is not None and cost.usd_per_hour == pytest.approx(7.5)
    assert (cost.scope, cost.source, cost.date) == ("3 GPUs", "--price-per-gpu-hour", None)
    listed = analyze(str(RESNET50), gpus=3, batch=32, cluster="aws-p4d").bill.cost
    assert listed is not None and listed.usd_per_hour == load_cluster("aws-p4d").price.usd_per_hour


def test_the_paper_claims_no_interval() -> None:
    energy, cost = bill_parts(analyze("zoo:mlp", gpus=8, batch=4, cluster="aws-p4d", profile="paper"))
    assert energy.energy_low_j == energy.energy_j == energy.energy_high_j > 0
    assert cost.cost_low_usd == cost.cost_usd == cost.cost_high_usd > 0


def test_a_model_without_a_batch_has_a_step_but_no_million_samples(tmp_path: Path) -> None:
    energy, cost = bill_parts(analyze(without_batch(tmp_path), gpus=8, cluster="aws-p4d"))
    assert energy.energy_j > 0 and energy.kwh_per_million_samples is None
    assert cost.cost_usd > 0 and cost.usd_per_million_samples is None


seconds = st.just(0.0) | st.floats(1e-12, 1e3)


@given(busy=seconds, waiting=seconds)
def test_power_lies_between_waiting_and_busy(busy: float, waiting: float) -> None:
    model = power_model()
    share = model.mean_share(busy, waiting)
    assert share == 0 if busy + waiting == 0 else model.waiting_share <= share * (1 + 1e-12)
    assert share <= model.busy_share * (1 + 1e-12)


def test_the_shares_are_those_of_their_source() -> None:
    """TPU v3: 123, 220, 262 W; TPU v4: 90, 170, 192 W (minimum, mean, maximum)."""
    model = power_model()
    assert model.busy_share == pytest.approx((220 / 262 + 170 / 192) / 2, abs=0.005)
    assert model.waiting_share == pytest.approx((123 / 262 + 90 / 192) / 2, abs=0.005)
    assert [load_device(name).tdp_w for name in ("tpu-v3", "tpu-v4")] == [262, 192]


def test_every_price_says_where_and_when() -> None:
    priced = {name: price for name in cluster_names() if (price := load_cluster(name).price) is not None}
    assert len(priced) >= 20
    for name, price in priced.items():
        gpus = load_cluster(name).server.gpus
        assert 0.3 <= price.usd_per_hour / gpus <= 20, name  # dollars per accelerator and hour, a slip of ten shows
        assert len(price.source) > 20 and 2015 <= int(price.date[:4]) <= 2026, name
    assert sum(load_device(name).tdp_w is None for name in device_names()) < 10


CLUSTER = 'device = "a100-sxm-80"\nserver = "dgx-a100"\nmax_servers = 4\n[sources]\nmax_servers = "ours"\n'


@pytest.mark.parametrize(
    ("lines", "says"),
    [
        ("price_per_hour_usd = 3", "price_source is missing"),
        ('price_per_hour_usd = 3\nprice_source = "invoice"', "price_date is missing"),
        ('price_source = "invoice"\nprice_date = "2025"', "price_per_hour_usd is missing"),
        ('price_per_hour_usd = -3\nprice_source = "invoice"\nprice_date = "2025"', "must be more than zero"),
        ('price_per_hour_usd = 3\nprice_source = "invoice"\nprice_date = "soon"', "price_date is 'soon'"),
        ('price_per_hour_usd = 3\nprice_source = "invoice"\nprice_date = "2025-13"', "price_date is '2025-13'"),
        ('price_per_hour_usd = 3\nprice_source = " "\nprice_date = "2025"', "price_source is empty"),
        ("price_per_hour = 3", "did you mean 'price_per_hour_usd'?"),
    ],
)
def test_a_price_in_part_is_refused(tmp_path: Path, lines: str, says: str) -> None:
    path = tmp_path / "ours.toml"
    path.write_text(f"{lines}\n{CLUSTER}", "utf-8")
    with pytest.raises(DataFileError, match=r"ours\.toml") as caught:
        load_cluster(str(path))
    assert says in str(caught.value)


def test_a_users_own_price(tmp_path: Path) -> None:
    path = tmp_path / "ours.toml"
    path.write_text(
        f'price_per_hour_usd = 8\nprice_source = "invoice"\nprice_date = "2026-01-31"\n{CLUSTER}', "utf-8"
    )
    cost = analyze(str(RESNET50), gpus=16, batch=32, cluster=str(path)).bill.cost
    assert cost is not None and (cost.usd_per_hour, cost.source, cost.date) == (16, "invoice", "2026-01-31")


def test_json_obeys_the_schema_and_null_is_unknown() -> None:
    schema = json.loads(Path("graphcost/report/analysis.schema.json").read_text("utf-8"))
    known = analyze(str(RESNET50), gpus=8, cluster="aws-p4d").to_dict()
    nothing = analyze(str(RESNET50), gpus=8, cluster="pai-paper-base", profile="paper").to_dict()
    for data in (known, nothing):
        jsonschema.validate(data, schema)
    assert nothing["bill"]["energy"] is None and nothing["bill"]["cost"] is None
    assert len(nothing["bill"]["unknown"]) == 2


def test_every_report_has_it(capsys: pytest.CaptureFixture[str]) -> None:
    base = ["analyze", str(RESNET50), "--gpus", "8", "--batch", "32", "--cluster", "aws-p4d", "--quiet"]
    assert main(base) == 0
    text = capsys.readouterr().out
    assert "of board power (assumed shares)" in text.replace("\n  ", " ")
    assert "1 whole server at $21.96 an hour, price of 2025" in text.replace("\n  ", " ")
    assert main([*base, "--format", "csv"]) == 0
    header, row = capsys.readouterr().out.splitlines()
    cells = dict(zip(header.split(","), row.split(","), strict=False))
    assert float(cells["cost_usd"]) > 0 and float(cells["kwh_per_million_samples"]) > 0
    assert main([*base, "--format", "markdown"]) == 0
    assert "USD/M samples" in capsys.readouterr().out
    compare = ["compare", *base[1:]]
    assert main(compare) == 0
    out = capsys.readouterr().out
    assert "energy and cost of a million samples" in out and "not known: ps: hosts of parameter servers" in out
    assert main([*compare[:-2], "dgx-a100", "--quiet", "--format", "csv"]) == 0
    rows = list(csv.DictReader(capsys.readouterr().out.splitlines()))
    assert {row["cost_usd"] for row in rows} == {""}  # unknown is not zero


@pytest.mark.parametrize("price", ["0", "-1", "nan", "lots", "3 EUR"])
def test_a_wrong_price_is_a_usage_error(capsys: pytest.CaptureFixture[str], price: str) -> None:
    assert main(["analyze", str(RESNET50), "--price-per-gpu-hour", price]) == 2
    assert "--price-per-gpu-hour" in capsys.readouterr().err
    with pytest.raises(UsageError):
        analyze(str(RESNET50), price_per_gpu_hour_usd=-1.0)


def test_amounts_as_people_write_and_read_them() -> None:
    assert [parse_usd(text) for text in ("2", "$2.50", "2.5 USD", "1_000")] == [2, 2.5, 2.5, 1000]
    assert [format_usd(value) for value in (24.48, 0.00123, 0, 98765.4)] == ["$24.48", "$0.00123", "$0", "$98,765"]
    assert [format_kwh(value) for value in (0.0112, 5.5, 12345.6)] == ["0.0112 kWh", "5.50 kWh", "12,346 kWh"]


def test_predictions_do_not_follow_the_price() -> None:
    one = analyze(str(RESNET50), gpus=8, cluster="aws-p4d")
    other = analyze(str(RESNET50), gpus=8, cluster="aws-p4d", price_per_gpu_hour_usd=9.0)
    assert one.step == other.step and replace(one, bill=other.bill).to_dict() == other.to_dict()
