from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from graphcost import device_db
from graphcost.device_db import (
    CLUSTER_ALIASES,
    DEVICE_ALIASES,
    cluster_names,
    device_names,
    load_cluster,
    load_device,
    load_server,
    server_names,
)
from graphcost.errors import DataFileError, UnknownNameError
from graphcost.hardware import LinkKind

FOLDER = Path(device_db.__file__).parent

DEVICE = """
name = "Test GPU"
vendor = "Nobody"
arch = "Test"
confidence = "measured"
mem_bytes = 80e9
mem_bytes_per_s = 2e12
compute_units = 108
launch_s = 5e-6
vector_dtypes = ["float32"]
fabric_bytes_per_s = 300e9
source = "made up for a test"

[peak_flops_per_s]
float32 = 19.5e12
tf32 = 156e12
float16 = 312e12
int8 = 624e12

[clock_hz]
vector = 1410e6
matrix = 1410e6

[fma_per_unit]
float32 = 64
float16 = 1024
"""

SERVER = """
confidence = "measured"
gpus = 4
nics = 2
source = "made up for a test"

[scale_up]
kind = "nvlink"
bytes_per_s = 75e9
pair_bytes_per_s = 25e9
latency_s = 3e-6

[pcie]
kind = "pcie"
bytes_per_s = 12e9
latency_s = 5e-6

[nic]
kind = "infiniband"
bytes_per_s = 25e9
latency_s = 5e-6
"""

CLUSTER = """
device = "a100"
server = "dgx-a100"
source = "made up for a test"
"""


def write(folder: Path, text: str, name: str = "mine.toml") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


# ---- the files that ship


def test_every_file_loads_and_is_named_after_its_stem() -> None:
    for name in device_names():
        assert load_device(name).id == name
    for name in server_names():
        assert load_server(name).id == name
    for name in cluster_names():
        assert load_cluster(name).id == name
    assert (len(device_names()), len(server_names()), len(cluster_names())) == (68, 51, 62)


def test_names_are_the_files_that_lie_there() -> None:
    assert device_names() == tuple(sorted(path.stem for path in FOLDER.glob("devices/*.toml")))
    assert cluster_names() == tuple(sorted(path.stem for path in FOLDER.glob("clusters/*.toml")))


def test_every_server_and_device_has_a_use() -> None:
    used = {load_cluster(name).server.id for name in cluster_names()}
    assert used == set(server_names())


def test_aliases_lead_to_files_and_hide_none() -> None:
    for aliases, names in ((DEVICE_ALIASES, device_names()), (CLUSTER_ALIASES, cluster_names())):
        assert set(aliases.values()) <= set(names)
        assert not set(aliases) & set(names)
    assert load_device("h100") is load_device("h100-sxm") is load_device("H100-SXM")


def test_no_source_text_is_a_stub() -> None:
    for name in device_names():
        for field, text in load_device(name).sources.items():
            assert len(text) > 3, f"{name}: {field}"


# id              dtype       dense FLOP/s   bytes    bytes/s     one direction of all links
DEVICES = {
    "p100-sxm2-16": ("float16", 21.2e12, 16e9, 732e9, 160e9 / 2),
    "v100-sxm2-32": ("float16", 125e12, 32e9, 900e9, 300e9 / 2),
    "v100-pcie-16": ("float32", 14.0e12, 16e9, 900e9, None),
    "t4": ("float16", 65e12, 16e9, 320e9, None),
    "a100-pcie-40": ("bfloat16", 312e12, 40e9, 1555e9, 600e9 / 2),
    "a100-sxm-80": ("tf32", 156e12, 80e9, 2.039e12, 600e9 / 2),
    "l4": ("float8", 242e12, 24e9, 300e9, None),
    "h100-sxm": ("bfloat16", 989.4e12, 80e9, 3350e9, 900e9 / 2),
    "h100-pcie": ("bfloat16", 756e12, 80e9, 2000e9, 600e9 / 2),
    "h200-sxm": ("float8", 1979e12, 141e9, 4800e9, 900e9 / 2),
    "b200-sxm": ("float4", 9000e12, 180e9, 7700e9, 1800e9 / 2),
    "rtx2080ti": ("float16", 53.8e12, 11e9, 616e9, 100e9 / 2),
    "rtx3090": ("bfloat16", 71e12, 24e9, 936e9, 112.5e9 / 2),
    "rtx4090": ("float16", 165.2e12, 24e9, 1008e9, None),
    "mi210": ("float32", 45.3e12, 64e9, 1638e9, 300e9 / 2),
    "mi300x": ("float16", 1307.4e12, 192e9, 5300e9, 7 * 64e9),
    "tpu-v4": ("bfloat16", 275e12, 32 * 2**30, 1200e9, 6 * 45e9),
    "gaudi2": ("bfloat16", 432e12, 96e9, 2460e9, 21 * 12.5e9),
    "trainium2": ("bfloat16", 667e12, 96 * 2**30, 2900e9, 1280e9 / 2),
    "pai-paper-gpu": ("float32", 11e12, 16e9, 1e12, None),
}


@pytest.mark.parametrize("name", DEVICES)
def test_published_device_figures(name: str) -> None:
    dtype, flops_per_s, mem_bytes, mem_bytes_per_s, fabric_bytes_per_s = DEVICES[name]
    device = load_device(name)
    assert device.peak(dtype) == flops_per_s
    assert (device.mem_bytes, device.mem_bytes_per_s) == (mem_bytes, mem_bytes_per_s)
    assert device.fabric_bytes_per_s == fabric_bytes_per_s


# id                  GPUs  GPU link  NICs x Gb/s / 8  kind
CLUSTERS = {
    "dgx1-v100": (8, 150e9, 4 * 100e9 / 8, "infiniband"),
    "dgx2": (16, 150e9, 8 * 100e9 / 8, "infiniband"),
    "dgx-a100": (8, 300e9, 8 * 200e9 / 8, "infiniband"),
    "dgx-h100": (8, 450e9, 8 * 400e9 / 8, "infiniband"),
    "gb200-nvl72": (72, 900e9, 18 * 4 * 400e9 / 8, "infiniband"),
    "mi300x-8": (8, 448e9, 8 * 400e9 / 8, "infiniband"),
    "gaudi3-8": (8, 525e9, 24 * 200e9 / 8, "roce"),
    "pai-paper-base": (8, 50e9, 3.125e9, "tcp"),
    "pai-server-nonvl": (8, None, 3.125e9, "tcp"),
    "aws-p3.16xlarge": (8, 150e9, 3.125e9, "tcp-cloud"),
    "aws-p4d": (8, 300e9, 4 * 100e9 / 8, "efa"),
    "aws-p5": (8, 450e9, 3200e9 / 8, "efa"),
    "aws-trn1.32xl": (16, 384e9, 800e9 / 8, "efa"),
    "gcp-a2-highgpu-8g": (8, 300e9, 100e9 / 8, "tcp-cloud"),
    "gcp-a3-ultragpu-8g": (8, 450e9, 8 * 400e9 / 8, "roce"),
    "azure-nd-a100-v4": (8, 300e9, 8 * 200e9 / 8, "infiniband"),
    "pcie-8x-gen3": (8, None, 25e9 / 8, "tcp"),
}


@pytest.mark.parametrize("name", CLUSTERS)
def test_published_cluster_figures(name: str) -> None:
    gpus, scale_up_bytes_per_s, network_bytes_per_s, kind = CLUSTERS[name]
    cluster = load_cluster(name)
    assert cluster.server.gpus == gpus
    rate = cluster.server.scale_up and cluster.server.scale_up.bytes_per_s
    assert rate == scale_up_bytes_per_s
    assert cluster.network.bytes_per_s == network_bytes_per_s
    assert cluster.network.kind == LinkKind(kind)


def test_pai_constants_give_the_papers_two_ratios() -> None:
    """PS sends weights over Ethernet and PCIe; AllReduce over NVLink, or Ethernet and NVLink."""
    cluster = load_cluster("pai-paper-base")
    scale_up = cluster.server.scale_up
    assert scale_up is not None
    eth, pcie, nvlink = cluster.network.bytes_per_s, cluster.server.pcie.bytes_per_s, scale_up.bytes_per_s
    assert (1 / eth + 1 / pcie) / (1 / nvlink) == pytest.approx(21.0)
    assert (1 / eth + 1 / pcie) / (1 / eth + 1 / nvlink) == pytest.approx(0.42 / 0.34)  # 1.235
    assert cluster.utilisation == 0.7
    assert cluster.server.pcie_gpus_sharing == 8


# ---- names and files


def test_unknown_names_suggest() -> None:
    with pytest.raises(UnknownNameError, match=r"no device named 'h100-smx'; did you mean 'h100-sxm'\?"):
        load_device("h100-smx")
    with pytest.raises(UnknownNameError, match=r"no cluster named 'dgx-a1000'; did you mean 'dgx-a100'\?"):
        load_cluster("dgx-a1000")


def test_a_users_cluster_from_names_paths_and_tables(tmp_path: Path) -> None:
    write(tmp_path, DEVICE, "gpu.toml")
    named = load_cluster(write(tmp_path, CLUSTER))
    assert (named.id, named.device.id, named.server.id) == ("mine", "a100-sxm-80", "dgx-a100")
    beside = load_cluster(str(write(tmp_path, CLUSTER.replace('"a100"', '"gpu.toml"'))))
    assert (beside.device.id, beside.device.peak("fp32")) == ("gpu", 19.5e12)
    inline = 'server = "dgx-a100"\nsource = "own"\nmax_servers = 3\n[device]\n' + DEVICE.replace("\n[", "\n[device.")
    cluster = load_cluster(write(tmp_path, inline))
    assert (cluster.device.id, cluster.device.mem_bytes_per_s, cluster.max_gpus) == ("mine-device", 2e12, 24)


def test_an_existing_file_needs_no_suffix(tmp_path: Path) -> None:
    assert load_device(str(write(tmp_path, DEVICE, "gpu"))).name == "Test GPU"


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(DataFileError, match=r"gone\.toml: No such file or directory; a device is a TOML file"):
        load_device(tmp_path / "gone.toml")
    with pytest.raises(DataFileError, match=r"mine\.toml: not valid TOML, .*line 1"):
        load_device(write(tmp_path, "name = \n"))
    (tmp_path / "bytes.toml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(DataFileError, match="not a text file"):
        load_device(tmp_path / "bytes.toml")


# ---- each check fires on its planted mistake: (what is right, what is planted, message)

DEVICE_MISTAKES = {
    "sparse, identity": (
        "float16 = 312e12",
        "float16 = 624e12",
        r"float16 is 624 TFLOP/s; twice: a figure for 2:4",
    ),
    "clock identity": (
        "tf32 = 156e12\nfloat16 = 312e12",
        "float16 = 280e12",
        r"within 3% of 108 units x 1410 MHz",
    ),
    "sparse, no identity": (
        "int8 = 624e12",
        "int8 = 1248e12",
        r"int8 is 4\.0 times float16; a figure for 2:4",
    ),
    "order": (
        "int8 = 624e12",
        "int8 = 100e12",
        r"int8 is 100 TFLOP/s, slower than float16; it must be at least",
    ),
    "no units": ("compute_units = 108", "", r"fma_per_unit\.float32 is given without compute_units"),
    "unknown key": ("mem_bytes =", "mem_byte =", r"unknown key 'mem_byte'; did you mean 'mem_bytes'"),
    "unknown dtype": (
        "float16 = 312",
        "bf16 = 312",
        r"unknown key 'peak_flops_per_s\.bf16'; did you mean 'bfloat16'",
    ),
    "no source": (
        'source = "made up for a test"',
        "",
        r"sources is missing; say for every figure where it is from",
    ),
    "one source missing": (
        'source = "made up for a test"\n',
        'sources = {mem_bytes = "a", mem_bytes_per_s = "b", launch_s = "c", compute_units = "d"}\n',
        r"fabric_bytes_per_s has no source; add sources\.fabric_bytes_per_s",
    ),
    "source of nothing": (
        "source =",
        'sources = {mem_byte = "a"}\nsource =',
        r"sources\.mem_byte speaks of a field",
    ),
    "negative": ("mem_bytes = 80e9", "mem_bytes = -1", r"mem_bytes is -1, but it must be more than zero"),
    "infinite": ("mem_bytes = 80e9", "mem_bytes = inf", r"mem_bytes is inf, but it must be"),
    "not a number": (
        "mem_bytes = 80e9",
        'mem_bytes = "80 GB"',
        r"mem_bytes is '80 GB', but it must be a number",
    ),
    "a boolean": ("mem_bytes = 80e9", "mem_bytes = true", r"mem_bytes is True, but it must be a number"),
    "GB for bytes": ("mem_bytes = 80e9", "mem_bytes = 80", r"mem_bytes is 80; it must be between 1e\+08"),
    "fraction of a unit": (
        "compute_units = 108",
        "compute_units = 1.5",
        r"1\.5, but it must be a whole number",
    ),
    "missing": ("mem_bytes = 80e9", "", r"mem_bytes is missing; it must be a number"),
    "confidence": ('"measured"', '"sure"', r"confidence is 'sure'; it must be one of verified"),
    "vector dtype": ('["float32"]', '["float8"]', r"vector_dtypes names float8, which has no peak"),
    "exception": ("[clock_hz]", '[exceptions]\nfloat4 = "x"\n[clock_hz]', r"exceptions\.float4 has no peak"),
    "us for s": ("launch_s = 5e-6", "launch_s = 5", r"launch_s is 5; it must be between"),
}


@pytest.mark.parametrize("mistake", DEVICE_MISTAKES)
def test_device_mistakes(mistake: str, tmp_path: Path) -> None:
    right, wrong, message = DEVICE_MISTAKES[mistake]
    assert DEVICE.count(right) == 1
    with pytest.raises(DataFileError, match=r"mine\.toml: .*" + message):
        load_device(write(tmp_path, DEVICE.replace(right, wrong)))


def test_a_declared_exception_is_accepted(tmp_path: Path) -> None:
    text = DEVICE.replace("int8 = 624e12", "int8 = 62e12") + '[exceptions]\nint8 = "vector units only"\n'
    assert load_device(write(tmp_path, text)).peak("int8") == 62e12


SERVER_MISTAKES = {
    "bits as bytes": (
        '"infiniband"\nbytes_per_s = 25e9',
        '"infiniband"\nbytes_per_s = 200e9',
        r"nic\.bytes_per_s is 200 GB/s; it must be .*bits\?",
    ),
    "both directions": (
        "bytes_per_s = 12e9",
        "bytes_per_s = 126e9",
        r"pcie\.bytes_per_s is 126 GB/s; it must be one direction",
    ),
    "mesh": (
        "bytes_per_s = 75e9",
        "bytes_per_s = 150e9",
        r"scale_up\.bytes_per_s is 150 GB/s; it must be 3 wires x 25",
    ),
    "kind of NIC": ('"infiniband"', '"pcie"', r"nic\.kind is pcie; it must be a network \(efa"),
    "unknown kind": ('"infiniband"', '"infinband"', r"nic\.kind is 'infinband'; did you mean 'infiniband'"),
    "us for s": ("latency_s = 3e-6", "latency_s = 3", r"scale_up\.latency_s is 3; it must be seconds"),
    "sharing": (
        "gpus = 4",
        "gpus = 4\npcie_gpus_sharing = 8",
        r"pcie_gpus_sharing is 8; it must be at most gpus = 4",
    ),
    "wire to nowhere": ("gpus = 4", "gpus = 4\ngpu_links = [[0, 4, 1]]", r"gpu_links has \[0, 4, 1\]"),
    "not a wire": (
        "gpus = 4",
        "gpus = 4\ngpu_links = [[0, 1]]",
        r"gpu_links must be a list of \[GPU, other GPU",
    ),
    "unknown key": ("nics = 2", "nic_count = 2", r"unknown key 'nic_count'"),
    "no source": (
        'source = "made up for a test"',
        'sources = {gpus = "a", nics = "b", pcie = "c", nic = "d"}',
        r"scale_up\.bytes_per_s has no source",
    ),
}


@pytest.mark.parametrize("mistake", SERVER_MISTAKES)
def test_server_mistakes(mistake: str, tmp_path: Path) -> None:
    right, wrong, message = SERVER_MISTAKES[mistake]
    assert SERVER.count(right) == 1
    with pytest.raises(DataFileError, match=r"mine\.toml: .*" + message):
        load_server(write(tmp_path, SERVER.replace(right, wrong)))


CLUSTER_MISTAKES = {
    "more than the device has": (
        '"dgx-a100"',
        '"dgx-h100"',
        r"scale_up\.bytes_per_s is 450 GB/s; the sum of both",
    ),
    "unknown device": ('"a100"', '"a1oo"', r"device: no device named 'a1oo'"),
    "no server": (
        'server = "dgx-a100"',
        "",
        r"server is None, but it must be a name, a \.toml file or a table",
    ),
    "utilisation": ("source", "utilisation = 70\nsource", r"utilisation is 70; it must be a share"),
    "unknown key": (
        "source",
        "max_server = 3\nsource",
        r"unknown key 'max_server'; did you mean 'max_servers'",
    ),
}


@pytest.mark.parametrize("mistake", CLUSTER_MISTAKES)
def test_cluster_mistakes(mistake: str, tmp_path: Path) -> None:
    right, wrong, message = CLUSTER_MISTAKES[mistake]
    with pytest.raises(DataFileError, match=r"mine\.toml: .*" + message):
        load_cluster(write(tmp_path, CLUSTER.replace(right, wrong)))


def test_loading_a_cluster_imports_nothing_heavy() -> None:
    code = (
        "import sys; from graphcost.device_db import load_cluster; load_cluster('dgx-a100');"
        "print(sorted({'numpy', 'networkx', 'onnx', 'torch'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
