from .build import MS, Row, back, i8, i32, op, u8

MM = op("MatMul", [(4, 5), (5, 6)], (4, 6))
GEMM = op("Gemm", [(5, 4), (6, 5), (6,)], (4, 6), {"transA": 1, "transB": 1})
SCALE = ()

# id: node, matmul FLOPs, elementwise FLOPs, bytes read, bytes written (f32)
ROWS = {
    "matmul": Row(MM, 2 * 4 * 6 * 5, 0, 4 * (20 + 30), 4 * 24),
    "matmul-batch": Row(
        op("MatMul", [(7, 1, 4, 5), (3, 5, 6)], (7, 3, 4, 6)),
        2 * 7 * 3 * 4 * 6 * 5,
        0,
        4 * (140 + 90),
        4 * 504,
    ),
    "matmul-vectors": Row(op("MatMul", [(5,), (5,)], ()), 10, 0, 40, 4),
    "matmul-vector-matrix": Row(op("MatMul", [(5,), (2, 5, 3)], (2, 3)), 60, 0, 4 * (5 + 30), 24),
    "matmul-empty": Row(op("MatMul", [(4, 0), (0, 6)], (4, 6)), 0, 0, 0, 96),
    "gemm": Row(GEMM, 240, 24, 4 * (20 + 30 + 6), 96),
    "gemm-no-bias": Row(op("Gemm", [(4, 5), (5, 6)], (4, 6)), 240, 0, 200, 96),
    "einsum": Row(op("Einsum", [(2, 3), (3, 4)], (2, 4), {"equation": "ij,jk->ik"}), 48, 0, 72, 32),
    "einsum-implicit": Row(op("Einsum", [(2, 3), (3, 4)], (2, 4), {"equation": b"ij, jk"}), 48, 0, 72, 32),
    "einsum-ellipsis": Row(
        op("Einsum", [(7, 2, 3), (3, 4)], (7, 2, 4), {"equation": "...ij,jk->...ik"}),
        2 * 7 * 2 * 3 * 4,
        0,
        4 * (42 + 12),
        4 * 56,
    ),
    "einsum-outer": Row(op("Einsum", [(3,), (4,)], (3, 4), {"equation": "i,j->ij"}), 0, 12, 28, 48),
    "einsum-trace": Row(op("Einsum", [(3, 3)], (), {"equation": "ii->"}), 0, 3, 36, 4),
    "einsum-transpose": Row(op("Einsum", [(3, 4)], (4, 3), {"equation": "ij->ji"}), 0, 0, 48, 48),
    # j belongs to the first operand alone: 6 sums, then a vector of 2 times a vector of 5
    "einsum-lone-sum": Row(op("Einsum", [(2, 3), (5,)], (2, 5), {"equation": "ij,k->ik"}), 0, 6 + 10, 44, 40),
    # (2x3 @ 3x4) 2*24, then (2x4 @ 4x5) 2*40
    "einsum-chain": Row(
        op("Einsum", [(2, 3), (3, 4), (4, 5)], (2, 5), {"equation": "ij,jk,kl->il"}), 128, 0, 4 * 38, 40
    ),
    "matmul-integer": Row(op("MatMulInteger", [i8(4, 5), i8(5, 6)], i32(4, 6)), 240, 0, 50, 96),
    "matmul-integer16": Row(op("MatMulInteger16", [i8(4, 5), i8(5, 6)], i32(4, 6), domain=MS), 240, 0, 50, 96),
    "qlinear-matmul": Row(
        op("QLinearMatMul", [i8(4, 5), SCALE, i8(), i8(5, 6), SCALE, i8(), SCALE, i8()], i8(4, 6)),
        240,
        24,
        20 + 5 + 30 + 5 + 5,
        24,
    ),
    "fused-gemm": Row(
        op("FusedGemm", [(4, 5), (5, 6), (6,)], (4, 6), {"activation": "Relu"}, MS), 240, 24 + 24, 224, 96
    ),
    "fused-matmul": Row(op("FusedMatMul", [(5, 4), (5, 6)], (4, 6), {"transA": 1}, MS), 240, 0, 200, 96),
    # [4, 7, 5] with its batch behind: 7 matrices of 4 x 5
    "fused-matmul-batch": Row(
        op("FusedMatMul", [(4, 7, 5), (7, 5, 6)], (7, 4, 6), {"transBatchA": 1}, MS),
        7 * 240,
        0,
        7 * 200,
        7 * 96,
    ),
    "transpose-matmul": Row(op("TransposeMatMul", [(4, 5), (6, 5)], (4, 6), {"transB": 1}, MS), 240, 0, 200, 96),
    "fused-matmul-act": Row(
        op("FusedMatMulActivation", [(4, 5), (5, 6)], (4, 6), {"activation": "Tanh"}, MS), 240, 96, 200, 96
    ),
    "gemm-fast-gelu": Row(op("GemmFastGelu", [(4, 5), (5, 6), (6,)], (4, 6), None, MS), 240, 24 + 96, 224, 96),
    # 4-bit weights for [64, 3]: two blocks of 32 a column, 16 bytes each
    "matmul-n-bits": Row(
        op("MatMulNBits", [(2, 64), u8(3, 2, 16), (6,)], (2, 3), {"K": 64, "N": 3, "bits": 4}, MS),
        2 * 2 * 64 * 3,
        64 * 3,
        4 * 128 + 96 + 24,
        24,
    ),
    "matmul-bnb4": Row(
        op("MatMulBnb4", [(2, 64), u8(96), (3,)], (2, 3), {"K": 64, "N": 3}, MS), 768, 192, 512 + 96 + 12, 24
    ),
    "matmul-int-to-float": Row(
        op("MatMulIntegerToFloat", [i8(4, 5), i8(5, 6), (), (6,)], (4, 6), None, MS), 240, 24, 50 + 28, 96
    ),
    # quantising A: 3 * 20
    "dynamic-quantize-matmul": Row(
        op("DynamicQuantizeMatMul", [(4, 5), i8(5, 6), ()], (4, 6), None, MS), 240, 60 + 24, 80 + 30 + 4, 96
    ),
    "qgemm": Row(
        op("QGemm", [i8(4, 5), (), i8(), i8(5, 6), (), i8(), i32(6)], i8(4, 6), None, MS),
        240,
        24 + 24,
        20 + 5 + 30 + 5 + 24,
        24,
    ),
    # 3 tokens of 4, 2 of 5 experts: 6 x (4x8 + 8x4) weights; softmax 9 x 15; relu 6x8; combine 2x6x4
    "moe": Row(
        op("MoE", [(3, 4), (3, 5), (5, 8, 4), None, (5, 4, 8)], (3, 4), {"k": 2}, MS),
        2 * 6 * 64,
        135 + 48 + 48,
        4 * (12 + 15 + 320),
        48,
    ),
    # one token and one expert touch a fifth of the 4-bit weights, stored two to a byte
    "qmoe": Row(
        op("QMoE", [(1, 4), (1, 5), u8(5, 8, 2), (5, 8), None, u8(5, 4, 4), (5, 4)], (1, 4), {"k": 1}, MS),
        2 * 64,
        45 + 8 + 8,
        4 * 9 + 16 + 32 + 16 + 16,
        16,
    ),
}

BACK = {
    "matmul-both": back(MM, {0, 1}, 480, 0, 4 * (24 + 30) + 4 * (24 + 20), 4 * (20 + 30)),
    "matmul-weight": back(MM, {1}, 240, 0, 4 * (24 + 20), 120),
    # the bias sums 24 elements to 6
    "gemm-all": back(GEMM, {0, 1, 2}, 480, 24, 4 * (24 + 30 + 24 + 20 + 24), 4 * 56),
    "matmul-integer": back(ROWS["matmul-integer"].node, {0, 1}, 0, 0, 0, 0),
    "n-bits": back(ROWS["matmul-n-bits"].node, {0}, 768, 0, 24 + 96, 512),
    "einsum": back(ROWS["einsum"].node, {0, 1}, 96, 0, 4 * (8 + 12 + 8 + 6), 72),
    # relu's mask first: reads dY and Y, writes dY
    "fused-gemm": back(ROWS["fused-gemm"].node, {0}, 240, 24, 2 * 96 + 96 + 120, 96 + 80),
    "moe": back(ROWS["moe"].node, {0, 2}, 2 * 768, 231, 4 * 347 + 48, 48 + 640),
}
