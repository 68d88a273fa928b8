"""Files that some tools want from a hub, made here: a tokenizer in which every word is a token, and prompts.

Laid out as a folder of a tokenizer (`tok`), and as the cache of a hub (`hf`) that has it as `local/tok` and the prompts as
the data set `local/prompts`. The words of the reference server are among the tokens, so every tool counts them exactly.
"""

import itertools
import json
import os

SERVED = ["alpha", "bravo", "delta", "gamma", "omega", "sigma", "kappa", "theta"]
SPECIALS = ["<unk>", "<s>", "</s>", "<pad>"]
WORDS = 1000
COMMIT = "0" * 40
PROMPTS = 64


def words():
    made = ("".join(letters) for letters in itertools.product("bdfklmnrst", "aeiou", "bdfklmnrst", "ae", "n"))
    return SERVED + list(itertools.islice((word for word in made if word not in SERVED), WORDS - len(SERVED)))


def tokenizer():
    """tokenizer.json and its companions, as objects by their names."""
    vocabulary = {word: number for number, word in enumerate(SPECIALS + words())}
    special = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    names = {"unk_token": "<unk>", "bos_token": "<s>", "eos_token": "</s>", "pad_token": "<pad>"}
    return {
        "tokenizer.json": {
            "version": "1.0",
            "truncation": None,
            "padding": None,
            "normalizer": None,
            "post_processor": None,
            "decoder": None,
            "added_tokens": [{"id": number, "content": text, **special} for number, text in enumerate(SPECIALS)],
            "pre_tokenizer": {"type": "WhitespaceSplit"},
            "model": {"type": "WordLevel", "vocab": vocabulary, "unk_token": "<unk>"},
        },
        "tokenizer_config.json": {
            "tokenizer_class": "PreTrainedTokenizerFast",
            **names,
            "model_max_length": 1 << 20,
            "clean_up_tokenization_spaces": False,
            "chat_template": "{% for m in messages %}{{ m['content'] }} {% endfor %}",
        },
        "special_tokens_map.json": names,
        "config.json": {
            "model_type": "gpt2",
            "architectures": ["GPT2LMHeadModel"],
            "vocab_size": len(vocabulary),
            "n_positions": 1 << 20,
        },
    }


def prompts():
    known = words()
    texts = (" ".join(known[(first * 31 + at) % WORDS] for at in range(512)) for first in range(PROMPTS))
    return [
        {"id": str(number), "conversations": [{"role": "user", "content": text}]} for number, text in enumerate(texts)
    ]


def make(folder):
    """Writes all of it into `folder`."""
    cached = {"models--local--tok": tokenizer(), "datasets--local--prompts": {"prompts.json": prompts()}}
    _write(os.path.join(folder, "tok"), tokenizer())
    for name, files in cached.items():
        entry = os.path.join(folder, "hf", "hub", name)
        _write(os.path.join(entry, "snapshots", COMMIT), files)
        os.makedirs(os.path.join(entry, "refs"), exist_ok=True)
        with open(os.path.join(entry, "refs", "main"), "w") as file:
            file.write(COMMIT)


def _write(folder, files):
    os.makedirs(folder, exist_ok=True)
    for name, content in files.items():
        with open(os.path.join(folder, name), "w") as file:
            json.dump(content, file)
