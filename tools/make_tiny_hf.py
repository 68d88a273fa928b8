#!/usr/bin/env python3
"""Write the tiny model of make_tiny_model.py as a folder of Hugging Face, for servers that read no GGUF.

    make_tiny_hf.py FOLDER [--eos-mean 32] [--seed 1]

Standard library only. The same vocabulary, template and weights; in this format the two halves of a head's dimensions
are rotated against each other, where GGUF has each pair side by side. It has more than 2000 tokens that are text, which
a mock engine that draws numbers between 1000 and 2000 wants.
"""

import argparse
import array
import json
import os
import struct
import sys

from make_tiny_model import CHAT, CONTEXT, FFN, HEADS, KV_HEADS, LAYERS, SPECIALS, WIDTH, model_of
from make_tiny_tokenizer import listed_words, tokenizer

NAMES = {
    "token_embd": "model.embed_tokens",
    "output_norm": "model.norm",
    "output": "lm_head",
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}


def renamed(name):
    """A tensor's name in this format, from GGUF's `blk.LAYER.PART.weight` or `PART.weight`."""
    *block, part, weight = name.split(".")
    layer = f"model.layers.{block[1]}." if block else ""
    return f"{layer}{NAMES[part]}.{weight}"


def in_halves(columns, values, heads):
    """The rows of each head: first those of even number, then the odd ones."""
    rows = [values[at : at + columns] for at in range(0, len(values), columns)]
    size = len(rows) // heads
    out = array.array("f")
    for head in range(heads):
        own = rows[head * size : (head + 1) * size]
        for row in own[0::2] + own[1::2]:
            out.extend(row)
    return out


def safetensors(tensors):
    """The file's bytes: length of the header, header, tensors."""
    header, body = {}, bytearray()
    for name, (rows, columns, values) in tensors.items():
        heads = {"attn_q": HEADS, "attn_k": KV_HEADS}.get(name.split(".")[-2])
        values = in_halves(columns, values, heads) if heads else values[:]
        if sys.byteorder == "big":
            values.byteswap()
        start = len(body)
        body += values.tobytes()
        shape = [columns] if name.endswith("norm.weight") else [rows, columns]
        header[renamed(name)] = {"dtype": "F32", "shape": shape, "data_offsets": [start, len(body)]}
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text + body


def files(eos_mean, seed):
    """Name -> contents of the small files, and the tensors."""
    pieces, _, tensors = model_of(eos_mean, seed)
    number = {piece: at for at, piece in enumerate(pieces)}
    begin, end = number["<|endoftext|>"], number["<|im_end|>"]
    ends = {"bos_token_id": begin, "eos_token_id": end, "pad_token_id": begin}
    config = {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "torch_dtype": "float32",
        "vocab_size": len(pieces),
        "hidden_size": WIDTH,
        "intermediate_size": FFN,
        "num_hidden_layers": LAYERS,
        "num_attention_heads": HEADS,
        "num_key_value_heads": KV_HEADS,
        "head_dim": WIDTH // HEADS,
        "hidden_act": "silu",
        "max_position_embeddings": CONTEXT,
        "rms_norm_eps": 1e-5,
        "rope_theta": 10000.0,
        "tie_word_embeddings": False,
        "attention_bias": False,
        "mlp_bias": False,
        **ends,
    }
    spoken = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "model_max_length": CONTEXT,
        "clean_up_tokenization_spaces": False,
        "bos_token": SPECIALS[0],
        "eos_token": SPECIALS[2],
        "pad_token": SPECIALS[0],
        "chat_template": CHAT,
    }
    return tensors, {
        "config.json": config,
        "generation_config.json": {"do_sample": True, **ends},
        "tokenizer.json": tokenizer(listed_words(), bos=False),
        "tokenizer_config.json": spoken,
    }


def main():
    options = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    options.add_argument("folder")
    options.add_argument("--eos-mean", type=float, default=32, help="as of make_tiny_model.py")
    options.add_argument("--seed", type=int, default=1)
    asked = options.parse_args()
    tensors, small = files(asked.eos_mean, asked.seed)
    os.makedirs(asked.folder, exist_ok=True)
    for name, content in small.items():
        with open(os.path.join(asked.folder, name), "w") as file:
            json.dump(content, file)
    with open(os.path.join(asked.folder, "model.safetensors"), "wb") as file:
        file.write(safetensors(tensors))


if __name__ == "__main__":
    main()
