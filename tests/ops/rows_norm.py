from .build import MS, Row, back, i32, op

X = (2, 3, 4, 4)  # 96 elements
BN = op("BatchNormalization", [X, (3,), (3,), (3,), (3,)], X)
LN = op("LayerNormalization", [(2, 5, 8), (8,), (8,)], (2, 5, 8))

ROWS = {
    "batch-norm": Row(BN, 0, 480, 4 * (96 + 12), 384),
    "layer-norm": Row(LN, 0, 400, 4 * (80 + 16), 320),
    "instance-norm": Row(op("InstanceNormalization", [X, (3,), (3,)], X), 0, 480, 4 * 102, 384),
    "group-norm": Row(op("GroupNormalization", [X, (3,), (3,)], X, {"num_groups": 3}), 0, 480, 4 * 102, 384),
    "rms-norm": Row(op("RMSNormalization", [(2, 5, 8), (8,)], (2, 5, 8)), 0, 400, 352, 320),
    "simplified": Row(op("SimplifiedLayerNormalization", [(2, 5, 8), (8,)], (2, 5, 8)), 0, 400, 352, 320),
    "simplified-ms": Row(
        op("SimplifiedLayerNormalization", [(2, 5, 8), (8,)], (2, 5, 8), None, MS), 0, 400, 352, 320
    ),
    "lp-norm": Row(op("LpNormalization", [(2, 8)], (2, 8)), 0, 80, 64, 64),
    "mvn": Row(op("MeanVarianceNormalization", [X], X), 0, 480, 384, 384),
    "lrn": Row(op("LRN", [X], X, {"size": 5}), 0, 480, 384, 384),
    "skip-layer-norm": Row(
        op("SkipLayerNormalization", [(2, 5, 8), (2, 5, 8), (8,), (8,), (8,)], (2, 5, 8), None, MS),
        0,
        7 * 80,
        4 * (160 + 24),
        320,
    ),
    "skip-simplified": Row(
        op(
            "SkipSimplifiedLayerNormalization",
            [(2, 5, 8), (2, 5, 8), (8,)],
            [(2, 5, 8), None, None, (2, 5, 8)],
            None,
            MS,
        ),
        0,
        6 * 80,
        4 * 168,
        640,
    ),
    "group-norm-ms": Row(
        op("GroupNorm", [(2, 4, 4, 3), (3,), (3,)], (2, 4, 4, 3), {"activation": 1, "groups": 3}, MS),
        0,
        9 * 96,
        4 * 102,
        384,
    ),
    "skip-group-norm": Row(
        op("SkipGroupNorm", [(2, 4, 4, 3), (3,), (3,), (2, 4, 4, 3)], (2, 4, 4, 3), {"groups": 3}, MS),
        0,
        6 * 96,
        4 * 198,
        384,
    ),
    # 10 rows of 8 from each table; the position table has but 6 rows, the segment table 2
    "embed-norm": Row(
        op(
            "EmbedLayerNormalization",
            [i32(2, 5), i32(2, 5), (100, 8), (6, 8), (2, 8), (8,), (8,)],
            (2, 5, 8),
            None,
            MS,
        ),
        0,
        7 * 80,
        4 * (20 + 80 + 48 + 16 + 16),
        320,
    ),
}

BACK = {
    # x and dy twice, the scale once
    "batch-norm": back(BN, {0, 1, 2}, 0, 960, 4 * (4 * 96 + 3), 4 * 102),
    "layer-norm": back(LN, {0}, 0, 800, 4 * (4 * 80 + 8), 320),
    "skip": back(ROWS["skip-layer-norm"].node, {0, 1}, 0, 800, 4 * (320 + 8), 640),
    "embed": back(ROWS["embed-norm"].node, {2}, 0, 800 + 80, 4 * 320, 320),
}
