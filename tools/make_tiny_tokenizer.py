#!/usr/bin/env python3
"""Write the vocabulary of the tiny model, or a part of it, as a tokenizer.json of Hugging Face.

    make_tiny_tokenizer.py FILE.json [--words 80] [--bos]

Standard library only. Byte-level BPE as make_tiny_model.py makes it: with all words it cuts texts as the server of
tools/llama_cpp.sh does; with some, the others are several tokens each, as in a vocabulary of another language.
tests/data/tokenizer.json is made by `--words 80 --bos`.
"""

import argparse
import json

from make_tiny_model import SPECIALS, byte_letters, listed_words


def merged(words):
    """(pieces, merges): all pieces by token number, and merges in order, by which each word after a blank is one."""
    letters = byte_letters()
    pieces, merges, known = list(letters), [], set()
    for word in words:
        spelled = [letters[byte] for byte in f" {word}".encode()]
        piece = spelled[0]
        for letter in spelled[1:]:
            if piece + letter not in known:
                known.add(piece + letter)
                pieces.append(piece + letter)
                merges.append([piece, letter])
            piece += letter
    return pieces + SPECIALS, merges


def special(number, text):
    return {"id": number, "content": text, "single_word": False, "lstrip": False, "rstrip": False,
            "normalized": False, "special": True}


def tokenizer(words, bos):
    pieces, merges = merged(words)
    number = {piece: at for at, piece in enumerate(pieces)}
    mark = SPECIALS[0]
    post = {
        "type": "TemplateProcessing",
        "single": [{"SpecialToken": {"id": mark, "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
        "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}],
        "special_tokens": {mark: {"id": mark, "ids": [number[mark]], "tokens": [mark]}},
    }
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [special(number[text], text) for text in SPECIALS],
        "normalizer": None,
        "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True},
        "post_processor": post if bos else None,
        "decoder": {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True},
        "model": {"type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None,
                  "end_of_word_suffix": None, "fuse_unk": False, "byte_fallback": False, "ignore_merges": False,
                  "vocab": number, "merges": merges},
    }


def main():
    options = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    options.add_argument("file")
    options.add_argument("--words", type=int, default=None, help="how many of the words are one token; all by default")
    options.add_argument("--bos", action="store_true", help="texts begin with a token of their own")
    asked = options.parse_args()
    with open(asked.file, "w") as file:
        json.dump(tokenizer(listed_words()[: asked.words], asked.bos), file, separators=(",", ":"))
        file.write("\n")


if __name__ == "__main__":
    main()
