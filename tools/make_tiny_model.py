#!/usr/bin/env python3
"""Write a tiny random Llama model as a GGUF file, for tests that need a real server but no real model.

    make_tiny_model.py FILE.gguf [--eos-mean 32] [--seed 1]

Standard library only. Two layers of width 64 with random weights: what it says has no meaning, but it goes through
tokenizer, attention, sampler and detokenizer like any other model.

The vocabulary is byte-level BPE: the 256 bytes, the words of tokload's synthetic prompts with a blank before
them, and the prefixes through which each word is merged; the chat template puts a blank before the content. So one
word of a prompt is one token. Only whole words are likely to be sampled, so one token of an answer is one visible
piece of valid UTF-8. For that, dimension 0 of the hidden state is the same for every token and no layer writes to it:
column 0 of the output matrix then acts as a bias per token. It also sets how likely the end token is.
"""

import argparse
import array
import math
import os
import random
import re
import struct
import sys

WORD_LIST = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../src/workload/words.rs")
WIDTH, HEADS, KV_HEADS, FFN, LAYERS, CONTEXT = 64, 2, 1, 128, 2, 4096
SPECIALS = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
CHAT = (
    "{% for m in messages %}{{ '<|im_start|>' + m['role'] + '\\n ' + m['content'] + '<|im_end|>\\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"
)
# Logit of a token that is not to be sampled.
NEVER = -40.0

# Value types of GGUF metadata, and the type of a float32 tensor.
U32, I32, F32, BOOL, STRING, ARRAY = 4, 5, 6, 7, 8, 9
TENSOR_F32, ALIGNMENT = 0, 32
# Token types of llama.cpp.
NORMAL, CONTROL = 1, 3


def byte_letters():
    """The printable letter that stands for each byte in a byte-level vocabulary, by byte."""
    printable = {*range(33, 127), *range(161, 173), *range(174, 256)}
    others = iter(range(256, 512))
    return [chr(byte if byte in printable else next(others)) for byte in range(256)]


def listed_words():
    with open(WORD_LIST) as source:
        table = source.read().split("static WORDS", 1)[1]
    return re.findall(r'"([a-z]+)"', table)


def vocabulary():
    """(pieces, merges, words): all pieces by token number, merges in order, the numbers of words after a blank."""
    letters = byte_letters()
    pieces, merges, numbers = list(letters), [], {}
    for word in listed_words():
        spelled = [letters[byte] for byte in f" {word}".encode()]
        piece = spelled[0]
        for letter in spelled[1:]:
            if piece + letter not in numbers:
                numbers[piece + letter] = len(pieces)
                pieces.append(piece + letter)
                merges.append(f"{piece} {letter}")
            piece += letter
    words = [numbers[letters[32] + word] for word in listed_words()]
    return pieces + SPECIALS, merges, words


def weights(tokens, words, end, eos_mean, seed):
    """Name -> (rows, columns, values) of every tensor, row by row."""
    draw = random.Random(seed)

    def matrix(rows, columns, deviation, constant=None):
        values = array.array("f", (draw.gauss(0, deviation) for _ in range(rows * columns)))
        if constant == "zero row":
            values[:columns] = array.array("f", bytes(4 * columns))
        elif constant is not None:
            for row in range(rows):
                values[row * columns] = constant[row]
        return rows, columns, values

    def ones():
        return 1, WIDTH, array.array("f", [1.0] * WIDTH)

    # Half of the energy of a hidden state is in dimension 0, which the last normalisation brings to about this.
    unit, deviation = math.sqrt(WIDTH / 2), 0.15
    bias = [NEVER / unit] * tokens
    for word in words:
        bias[word] = 0.0
    # The log of the sum of the words' exponentials: the end token is drawn about once in eos_mean tokens.
    level = math.log(len(words)) + (deviation * unit) ** 2 / 2
    bias[end] = (level - math.log(eos_mean)) / unit if eos_mean else NEVER / unit
    kv = WIDTH // HEADS * KV_HEADS
    tensors = {"token_embd.weight": matrix(tokens, WIDTH, 1.0, [math.sqrt(WIDTH)] * tokens)}
    for layer in range(LAYERS):
        tensors |= {
            f"blk.{layer}.attn_norm.weight": ones(),
            f"blk.{layer}.attn_q.weight": matrix(WIDTH, WIDTH, 0.1),
            f"blk.{layer}.attn_k.weight": matrix(kv, WIDTH, 0.1),
            f"blk.{layer}.attn_v.weight": matrix(kv, WIDTH, 0.1),
            f"blk.{layer}.attn_output.weight": matrix(WIDTH, WIDTH, 0.05, "zero row"),
            f"blk.{layer}.ffn_norm.weight": ones(),
            f"blk.{layer}.ffn_gate.weight": matrix(FFN, WIDTH, 0.1),
            f"blk.{layer}.ffn_up.weight": matrix(FFN, WIDTH, 0.1),
            f"blk.{layer}.ffn_down.weight": matrix(WIDTH, FFN, 0.05, "zero row"),
        }
    return tensors | {"output_norm.weight": ones(), "output.weight": matrix(tokens, WIDTH, deviation, bias)}


def metadata(pieces, merges):
    number = {piece: at for at, piece in enumerate(pieces)}
    kinds = [CONTROL if piece in SPECIALS else NORMAL for piece in pieces]
    return {
        "general.architecture": (STRING, "llama"),
        "general.name": (STRING, "tiny-random"),
        "general.alignment": (U32, ALIGNMENT),
        "general.file_type": (U32, 0),
        "llama.context_length": (U32, CONTEXT),
        "llama.embedding_length": (U32, WIDTH),
        "llama.block_count": (U32, LAYERS),
        "llama.feed_forward_length": (U32, FFN),
        "llama.attention.head_count": (U32, HEADS),
        "llama.attention.head_count_kv": (U32, KV_HEADS),
        "llama.attention.layer_norm_rms_epsilon": (F32, 1e-5),
        "llama.rope.dimension_count": (U32, WIDTH // HEADS),
        "llama.vocab_size": (U32, len(pieces)),
        "tokenizer.ggml.model": (STRING, "gpt2"),
        "tokenizer.ggml.pre": (STRING, "gpt-2"),
        "tokenizer.ggml.tokens": (STRING, pieces),
        "tokenizer.ggml.token_type": (I32, kinds),
        "tokenizer.ggml.merges": (STRING, merges),
        "tokenizer.ggml.bos_token_id": (U32, number["<|endoftext|>"]),
        "tokenizer.ggml.eos_token_id": (U32, number["<|im_end|>"]),
        "tokenizer.ggml.add_bos_token": (BOOL, False),
        "tokenizer.chat_template": (STRING, CHAT),
    }


def text(value):
    data = value.encode()
    return struct.pack("<Q", len(data)) + data


def scalar(kind, value):
    if kind == STRING:
        return text(value)
    return struct.pack({U32: "<I", I32: "<i", F32: "<f", BOOL: "<?"}[kind], value)


def entry(key, kind, value):
    if not isinstance(value, list):
        return text(key) + struct.pack("<I", kind) + scalar(kind, value)
    head = struct.pack("<IIQ", ARRAY, kind, len(value))
    return text(key) + head + b"".join(scalar(kind, one) for one in value)


def padded(length):
    return (length + ALIGNMENT - 1) // ALIGNMENT * ALIGNMENT


def gguf(entries, tensors):
    """The file's bytes: header, metadata, table of tensors, tensors; dimensions are stored innermost first."""
    out = bytearray(struct.pack("<4sIQQ", b"GGUF", 3, len(tensors), len(entries)))
    for key, (kind, value) in entries.items():
        out += entry(key, kind, value)
    offset = 0
    for name, (rows, columns, values) in tensors.items():
        dimensions = (columns,) if rows == 1 else (columns, rows)
        out += text(name) + struct.pack(f"<I{len(dimensions)}Q", len(dimensions), *dimensions)
        out += struct.pack("<IQ", TENSOR_F32, offset)
        offset += padded(4 * len(values))
    out += bytes(padded(len(out)) - len(out))
    for _, _, values in tensors.values():
        if sys.byteorder == "big":
            values.byteswap()
        out += values.tobytes()
        out += bytes(padded(4 * len(values)) - 4 * len(values))
    return out


def model_of(eos_mean, seed):
    """(pieces, merges, tensors) of the model."""
    pieces, merges, words = vocabulary()
    return pieces, merges, weights(len(pieces), words, pieces.index("<|im_end|>"), eos_mean, seed)


def main():
    options = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    options.add_argument("file")
    options.add_argument("--eos-mean", type=float, default=32,
                         help="tokens until the end token, about; 0 for answers without an end; default 32")
    options.add_argument("--seed", type=int, default=1)
    asked = options.parse_args()
    pieces, merges, tensors = model_of(asked.eos_mean, asked.seed)
    with open(asked.file, "wb") as file:
        file.write(gguf(metadata(pieces, merges), tensors))


if __name__ == "__main__":
    main()
