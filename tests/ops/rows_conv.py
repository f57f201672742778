from .build import MS, Row, back, i8, i32, i64, op

CONV = op("Conv", [(2, 3, 8, 8), (4, 3, 3, 3), (4,)], (2, 4, 6, 6))
OUT = 2 * 4 * 6 * 6  # 288
READ = 4 * (384 + 108 + 4)

ROWS = {
    "conv": Row(CONV, 2 * OUT * 3 * 9, OUT, READ, 4 * OUT),
    "conv-1d": Row(op("Conv", [(1, 2, 10), (3, 2, 5)], (1, 3, 6)), 2 * 18 * 2 * 5, 0, 4 * (20 + 30), 72),
    "conv-3d": Row(op("Conv", [(1, 1, 3, 3, 3), (2, 1, 2, 2, 2)], (1, 2, 2, 2, 2)), 2 * 16 * 8, 0, 4 * (27 + 16), 64),
    # dilation changes the output's size alone: 8 - 2 * 2 = 4
    "conv-dilated": Row(
        op("Conv", [(1, 1, 8, 8), (1, 1, 3, 3)], (1, 1, 4, 4), {"dilations": [2, 2]}),
        2 * 16 * 9,
        0,
        4 * 73,
        64,
    ),
    "conv-grouped": Row(
        op("Conv", [(1, 4, 5, 5), (6, 2, 3, 3)], (1, 6, 3, 3), {"group": 2}),
        2 * 54 * 2 * 9,
        0,
        4 * (100 + 108),
        216,
    ),
    "conv-depthwise": Row(
        op("Conv", [(1, 4, 5, 5), (4, 1, 3, 3)], (1, 4, 3, 3), {"group": 4}), 2 * 36 * 9, 0, 4 * 136, 144
    ),
    # 4 x 4 input, not the 9 x 9 output
    "conv-transpose": Row(
        op("ConvTranspose", [(1, 3, 4, 4), (3, 2, 3, 3), (2,)], (1, 2, 9, 9)),
        2 * 3 * 16 * 2 * 9,
        162,
        4 * (48 + 54 + 2),
        648,
    ),
    "conv-transpose-grouped": Row(
        op("ConvTranspose", [(1, 4, 4, 4), (4, 1, 2, 2)], (1, 2, 8, 8), {"group": 2}),
        2 * 64 * 1 * 4,
        0,
        4 * (64 + 16),
        512,
    ),
    "conv-transpose-pads": Row(
        op("ConvTransposeWithDynamicPads", [(1, 3, 4, 4), (3, 2, 3, 3), i64(4), (2,)], (1, 2, 9, 9), None, MS),
        1728,
        162,
        4 * 104 + 32,
        648,
    ),
    "conv-integer": Row(op("ConvInteger", [i8(2, 3, 8, 8), i8(4, 3, 3, 3)], i32(2, 4, 6, 6)), 15552, 0, 492, 1152),
    "qlinear-conv": Row(
        op(
            "QLinearConv",
            [i8(2, 3, 8, 8), (), i8(), i8(4, 3, 3, 3), (), i8(), (), i8(), i32(4)],
            i8(2, 4, 6, 6),
        ),
        15552,
        288 + 288,
        384 + 5 + 108 + 5 + 5 + 16,
        288,
    ),
    "qlinear-conv-nhwc": Row(
        op(
            "QLinearConv",
            [i8(2, 8, 8, 3), (), i8(), i8(4, 3, 3, 3), (), i8(), (), i8()],
            i8(2, 6, 6, 4),
            {"channels_last": 1},
            MS,
        ),
        15552,
        288,
        384 + 5 + 108 + 5 + 5,
        288,
    ),
    "fused-conv": Row(
        op("FusedConv", [*CONV.inputs, (2, 4, 6, 6)], (2, 4, 6, 6), {"activation": "Relu"}, MS),
        15552,
        3 * OUT,
        READ + 4 * OUT,
        4 * OUT,
    ),
    "nhwc-conv": Row(
        op("NhwcConv", [(2, 8, 8, 3), (4, 3, 3, 3)], (2, 6, 6, 4), None, MS), 15552, 0, 4 * 492, 4 * OUT
    ),
    "nhwc-fused-conv": Row(
        op("NhwcFusedConv", [(2, 8, 8, 3), (4, 3, 3, 3), (4,)], (2, 6, 6, 4), {"activation": "Sigmoid"}, MS),
        15552,
        5 * OUT,
        READ,
        4 * OUT,
    ),
    # offsets 2 x 9 a position
    "deform-conv": Row(
        op("DeformConv", [(2, 3, 8, 8), (4, 3, 3, 3), (2, 18, 6, 6), (4,)], (2, 4, 6, 6)),
        15552,
        OUT,
        READ + 4 * 1296,
        4 * OUT,
    ),
    "col2im": Row(op("Col2Im", [(1, 20, 25), i64(2), i64(2)], (1, 5, 25)), 0, 500, 2000 + 32, 500),
    "causal-conv": Row(
        op(
            "CausalConvWithState",
            [(2, 3, 7), (3, 1, 4), None, (2, 3, 3)],
            [(2, 3, 7), (2, 3, 3)],
            {"activation": "silu"},
        ),
        2 * 42 * 4,
        4 * 42,
        4 * (42 + 12 + 18),
        4 * (42 + 18),
    ),
}

BACK = {
    "conv-all": back(CONV, {0, 1, 2}, 2 * 15552, OUT, 4 * ((OUT + 108) + (OUT + 384) + OUT), 4 * (384 + 108 + 4)),
    "conv-first-layer": back(CONV, {1}, 15552, 0, 4 * (OUT + 384), 432),
    "conv-transpose": back(ROWS["conv-transpose"].node, {0}, 1728, 0, 4 * (162 + 54), 192),
    "col2im": back(ROWS["col2im"].node, {0}, 0, 0, 500, 2000),
    "deform-offset": back(ROWS["deform-conv"].node, {2}, 0, 1296, 4 * (384 + 1296), 4 * 1296),
}
