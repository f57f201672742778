"""Other names for devices and clusters: what people say, and vendors' full instance names."""

from __future__ import annotations

from collections.abc import Mapping

DEVICE_ALIASES: Mapping[str, str] = {
    "p100": "p100-sxm2-16",
    "p100-pcie": "p100-pcie-16",
    "p100-sxm2": "p100-sxm2-16",
    "v100": "v100-sxm2-16",
    "v100-sxm2": "v100-sxm2-16",
    "v100-pcie": "v100-pcie-16",
    "a100": "a100-sxm-80",
    "a100-sxm": "a100-sxm-80",
    "a100-40": "a100-sxm-40",
    "a100-80": "a100-sxm-80",
    "a100-pcie": "a100-pcie-80",
    "h100": "h100-sxm",
    "h200": "h200-sxm",
    "b200": "b200-sxm",
    "rtx2080ti-ref": "rtx2080ti",
    "tpu-v7": "tpu-v7x",
    "trn1": "trainium1",
    "trn2": "trainium2",
}

CLUSTER_ALIASES: Mapping[str, str] = {
    "dgx1": "dgx1-v100",
    "pcie-8x": "pcie-8x-gen4",
    "aws-g4dn": "aws-g4dn.12xlarge",
    "aws-p3": "aws-p3.16xlarge",
    "aws-p3dn": "aws-p3dn.24xlarge",
    "aws-p4d.24xlarge": "aws-p4d",
    "aws-p4de.24xlarge": "aws-p4de",
    "aws-p5.48xlarge": "aws-p5",
    "aws-p5e.48xlarge": "aws-p5e",
    "aws-p5en.48xlarge": "aws-p5en",
    "aws-p6-b200.48xlarge": "aws-p6-b200",
    "aws-trn1": "aws-trn1.32xl",
    "aws-trn1.32xlarge": "aws-trn1.32xl",
    "aws-trn1n.32xlarge": "aws-trn1n",
    "aws-trn1n.32xl": "aws-trn1n",
    "aws-trn2": "aws-trn2.48xl",
    "aws-trn2.48xlarge": "aws-trn2.48xl",
    "gcp-a4-highgpu-8g": "gcp-a4",
    "gcp-a4x-highgpu-4g": "gcp-a4x",
    "azure-ndm": "azure-ndm-a100-v4",
}
