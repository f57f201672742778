from .build import MS, Row, back, i8, i32, i64, op

QKV = [(2, 4, 5, 8), (2, 2, 7, 8), (2, 2, 7, 6)]
# 2 batches x 4 heads x 5 queries x 7 keys
SCORES = 2 * 4 * 5 * 7  # 280
ATTENTION = op("Attention", QKV, (2, 4, 5, 6))
SELF = op("Attention", [(2, 5, 12), (12, 36), (36,)], (2, 5, 12), {"num_heads": 3}, MS)
MHA = op("MultiHeadAttention", [(2, 5, 12), (2, 7, 12), (2, 7, 9)], (2, 5, 9), {"num_heads": 3}, MS)
GQA_ATTRS = {"num_heads": 4, "kv_num_heads": 2}
# one new token, a shared cache of 10, 6 positions in use
GQA = op(
    "GroupQueryAttention",
    [(1, 1, 32), (1, 1, 16), (1, 1, 16), (1, 2, 10, 8), (1, 2, 10, 8), i32(1), i32(1)],
    [(1, 1, 32), (1, 2, 10, 8), (1, 2, 10, 8)],
    GQA_ATTRS,
    MS,
    values={6: (6,)},
)

ROWS = {
    # 10 a score: scale and softmax
    "attention-grouped": Row(ATTENTION, 2 * SCORES * (8 + 6), 10 * SCORES, 4 * (320 + 224 + 168), 4 * 240),
    "attention-packed-heads": Row(
        op(
            "Attention",
            [(2, 5, 32), (2, 7, 16), (2, 7, 12)],
            (2, 5, 24),
            {"q_num_heads": 4, "kv_num_heads": 2},
        ),
        2 * SCORES * 14,
        2800,
        4 * 712,
        960,
    ),
    # 3 past + 7 new keys; a mask adds one, a soft cap six
    "attention-past-mask-cap": Row(
        op(
            "Attention",
            [*QKV, (5, 10), (2, 2, 3, 8), (2, 2, 3, 6)],
            [(2, 4, 5, 6), (2, 2, 10, 8), (2, 2, 10, 6)],
            {"softcap": 30.0},
        ),
        2 * 400 * 14,
        17 * 400,
        4 * (712 + 50 + 96 + 72),
        4 * (240 + 320 + 240),
    ),
    # k v^T and S^T q: 2 heads and 4 heads; 3 x 5 state, 2 x 6 tokens
    "linear-attention": Row(
        op(
            "LinearAttention",
            [(2, 6, 12), (2, 6, 6), (2, 6, 10)],
            [(2, 6, 20), (2, 2, 3, 5)],
            {"q_num_heads": 4, "kv_num_heads": 2, "update_rule": "linear"},
        ),
        2 * 12 * 15 * (2 + 4),
        0,
        4 * (144 + 72 + 120),
        4 * (240 + 60),
    ),
    # twice the heads' products, decay of 2 x 12 states, 2 FLOPs on 120 values, exp of 24 decays
    "linear-attention-gated-delta": Row(
        op(
            "LinearAttention",
            [(2, 6, 12), (2, 6, 6), (2, 6, 10), None, (2, 6, 2), (2, 6, 2)],
            (2, 6, 20),
            {"q_num_heads": 4, "kv_num_heads": 2},
        ),
        2 * 12 * 15 * (4 + 4),
        12 * 15 * 2 + 240 + 96,
        4 * (144 + 72 + 120 + 24 + 24),
        960,
    ),
    # 10 tokens x 12 x 36 projected; 2 x 3 x 5 x 5 scores over heads of 4; bias on 10 x 36
    "ms-attention": Row(SELF, 2 * 10 * 12 * 36 + 2 * 150 * 8, 10 * 150 + 360, 4 * (120 + 432 + 36), 480),
    # 3 past keys: 2 x 3 x 5 x 8 scores
    "ms-attention-past": Row(
        op(
            "Attention",
            [(2, 5, 12), (12, 36), None, None, (2, 2, 3, 3, 4)],
            [(2, 5, 12), (2, 2, 3, 8, 4)],
            {"num_heads": 3},
            MS,
        ),
        8640 + 2 * 240 * 8,
        2400,
        4 * (120 + 432 + 144),
        4 * (120 + 384),
    ),
    "ms-attention-unequal": Row(
        op(
            "Attention",
            [(2, 5, 12), (12, 30)],
            (2, 5, 6),
            {"num_heads": 3, "qkv_hidden_sizes": [12, 12, 6]},
            MS,
        ),
        2 * 10 * 12 * 30 + 2 * 150 * (4 + 2),
        1500,
        4 * (120 + 360),
        240,
    ),
    "qattention": Row(
        op("QAttention", [i8(2, 5, 12), i8(12, 36), (36,), (), ()], (2, 5, 12), {"num_heads": 3}, MS),
        8640 + 2400,
        1860,
        120 + 432 + 144 + 8,
        480,
    ),
    # 8 tokens stay of 2 x 5; the square is padded
    "packed-attention": Row(
        op("PackedAttention", [(8, 12), (12, 36), (36,), i32(2, 5), i32(3)], (8, 12), {"num_heads": 3}, MS),
        2 * 8 * 12 * 36 + 2400,
        1500 + 8 * 36,
        4 * (96 + 432 + 36 + 10 + 3),
        384,
    ),
    "decoder-masked-self": Row(
        op(
            "DecoderMaskedSelfAttention",
            [(2, 1, 12), (12, 36), (36,), None, (2, 2, 3, 9, 4), None, i32(1)],
            [(2, 1, 12), (2, 2, 3, 9, 4)],
            {"num_heads": 3},
            MS,
            values={6: (4,)},
        ),
        # 2 x 3 x 1 x 5 scores; of 9 positions 4 are read, 1 is written, 48 elements each
        2 * 2 * 12 * 36 + 2 * 30 * 8,
        300 + 72,
        4 * (24 + 432 + 36 + 1 + 4 * 48),
        4 * (24 + 48),
    ),
    # 2 x 3 x 5 x 7 scores, heads of 4 and 3
    "mha": Row(MHA, 2 * 210 * 7, 2100, 4 * (120 + 168 + 126), 360),
    "mha-packed-qkv": Row(
        op("MultiHeadAttention", [(2, 5, 3, 3, 4)], (2, 5, 12), {"num_heads": 3}, MS), 2400, 1500, 1440, 480
    ),
    "mha-packed-kv-bias": Row(
        op("MultiHeadAttention", [(2, 5, 12), (2, 7, 3, 2, 4), None, (36,)], (2, 5, 12), {"num_heads": 3}, MS),
        2 * 210 * 8,
        2100 + 360,
        4 * (120 + 336 + 36),
        480,
    ),
    "mha-cross-cache": Row(
        op("MultiHeadAttention", [(2, 5, 12), (2, 3, 7, 4), (2, 3, 7, 4)], (2, 5, 12), {"num_heads": 3}, MS),
        3360,
        2100,
        4 * (120 + 168 + 168),
        480,
    ),
    "mha-past": Row(
        op(
            "MultiHeadAttention",
            [(2, 1, 12), (2, 1, 12), (2, 1, 12), None, None, None, (2, 3, 6, 4), (2, 3, 6, 4)],
            [(2, 1, 12), (2, 3, 7, 4), (2, 3, 7, 4)],
            {"num_heads": 3},
            MS,
        ),
        2 * 42 * 8,
        420,
        4 * (72 + 288),
        4 * (24 + 336),
    ),
    "decoder-masked-mha": Row(
        op(
            "DecoderMaskedMultiHeadAttention",
            [(2, 1, 12), (2, 1, 12), (2, 1, 12), None, None, (2, 3, 9, 4), (2, 3, 9, 4), i32(1)],
            [(2, 1, 12), (2, 3, 9, 4), (2, 3, 9, 4)],
            {"num_heads": 3},
            MS,
            values={7: (6,)},
        ),
        # 7 keys in a buffer of 9: 6 read, 1 written, 24 elements each
        672,
        420,
        4 * (72 + 2 * 144 + 1),
        4 * (24 + 48),
    ),
    "packed-mha": Row(
        op(
            "PackedMultiHeadAttention",
            [(8, 3, 3, 4), None, None, None, i32(2, 5), i32(3)],
            (8, 12),
            {"num_heads": 3},
            MS,
        ),
        2400,
        1500,
        4 * (288 + 13),
        384,
    ),
    # 4 heads x 6 keys, of 8; cache: 5 old positions read, 1 written, 16 elements each
    "gqa-decode": Row(GQA, 2 * 24 * 16, 240, 4 * (32 + 16 + 16 + 2 * 5 * 16 + 2), 4 * (32 + 2 * 16)),
    # packed (4 + 2 x 2) heads of 8; 3 queries, 3 keys; rotary turns 4 + 2 heads of each
    "gqa-packed-rotary": Row(
        op(
            "GroupQueryAttention",
            [(1, 3, 64), None, None, None, None, i32(1), i32(1), (10, 4), (10, 4)],
            [(1, 3, 32), (1, 2, 3, 8), (1, 2, 3, 8)],
            {**GQA_ATTRS, "do_rotary": 1},
            MS,
        ),
        2 * 36 * 16,
        360 + 3 * 144,
        4 * (192 + 2 + 80),
        4 * (96 + 96),
    ),
    "gqa-growing": Row(
        op(
            "GroupQueryAttention",
            [(1, 1, 32), (1, 1, 16), (1, 1, 16), (1, 2, 5, 8), (1, 2, 5, 8), i32(1), i32(1)],
            [(1, 1, 32), (1, 2, 6, 8), (1, 2, 6, 8)],
            GQA_ATTRS,
            MS,
        ),
        768,
        240,
        4 * (64 + 160 + 2),
        4 * (32 + 192),
    ),
    # 3 FLOPs an element; both caches whole
    "rotary": Row(
        op("RotaryEmbedding", [(2, 4, 5, 8), (2, 5, 4), (2, 5, 4)], (2, 4, 5, 8)),
        0,
        960,
        4 * (320 + 80),
        1280,
    ),
    # 5 positions of a cache of 50 rows of 4
    "rotary-ms": Row(
        op("RotaryEmbedding", [(1, 5, 32), i64(1, 5), (50, 4), (50, 4)], (1, 5, 32), None, MS),
        0,
        480,
        640 + 40 + 4 * 40,
        640,
    ),
}

BACK = {
    # dV and dP cost 2*280*6 each, dQ and dK 2*280*8 each: twice the forward
    "attention-all": back(ATTENTION, {0, 1, 2}, 2 * 7840, 5 * SCORES, 4 * 712 + 2 * 960, 4 * 712),
    "attention-value": back(ATTENTION, {2}, 3360, 0, 4 * 712 + 2 * 960, 672),
    "attention-query": back(ATTENTION, {0}, 7840, 1400, 4 * 712 + 2 * 960, 1280),
    "ms-attention": back(SELF, {0, 1}, 2 * 8640 + 2 * 2400, 750, 4 * 588 + 960, 4 * 552),
    "mha": back(MHA, {0, 1, 2}, 2 * 2940, 1050, 4 * 414 + 720, 4 * 414),
    "gqa": back(GQA, {0, 1, 2}, 2 * 768, 120, 4 * (64 + 320 + 2) + 256, 256),
    "rotary": back(ROWS["rotary"].node, {0}, 0, 960, 1280, 1280),
}
