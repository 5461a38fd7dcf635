"""Writes a Llama of random weights as GGUF, with the words of scripts/make-tiny-model as its tokenizer: tiny-gguf.py FILE.

Prompts of `t4`..`t1023`, divided by spaces, have as many tokens here as words and the same ids as in .tiny-model, so one
tokenizer file counts for both. llama.cpp knows no word-level tokenizer; its SentencePiece one joins neighbouring pieces as long
as the joined piece is in the vocabulary. So every beginning of a word is in it, and nothing else can be joined.
"""

import os
import sys

import gguf
import numpy

WORDS = 1024
CONTEXT = 4096
LAYERS = 6
WIDTH = 384
FEED_FORWARD = 1024
HEADS = 6
KV_HEADS = 2
SPECIALS = ["<unk>", "<s>", "</s>", "<pad>"]

SPACE = "\u2581"  # SentencePiece's mark of a word's beginning
words = SPECIALS + [f"{SPACE}t{i}" for i in range(len(SPECIALS), WORDS)]
beginnings = [SPACE, "t", f"{SPACE}t", *"0123456789", *(f"{SPACE}t{i}" for i in range(len(SPECIALS)))]
letters = [f"<0x{byte:02X}>" for byte in range(256)]
vocabulary = words + beginnings + letters


def kind_of(token: str) -> gguf.TokenType:
    if token in letters:
        return gguf.TokenType.BYTE
    if token == "<unk>":
        return gguf.TokenType.UNKNOWN
    return gguf.TokenType.CONTROL if token in SPECIALS else gguf.TokenType.NORMAL


random = numpy.random.default_rng(0)


def weights(rows: int, columns: int) -> numpy.ndarray:
    return (random.standard_normal((rows, columns)) / numpy.sqrt(columns)).astype(numpy.float32)


def main(path: str) -> None:
    os.makedirs(os.path.dirname(os.path.abspath(path)), exist_ok=True)
    part = f"{path}.part"
    writer = gguf.GGUFWriter(part, "llama")
    writer.add_name("bench")
    writer.add_context_length(CONTEXT)
    writer.add_embedding_length(WIDTH)
    writer.add_block_count(LAYERS)
    writer.add_feed_forward_length(FEED_FORWARD)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(KV_HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_dimension_count(WIDTH // HEADS)
    writer.add_vocab_size(len(vocabulary))
    writer.add_tokenizer_model("llama")
    writer.add_token_list(vocabulary)
    writer.add_token_scores([float(len(token)) for token in vocabulary])
    writer.add_token_types([kind_of(token) for token in vocabulary])
    writer.add_unk_token_id(0)
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_pad_token_id(3)
    writer.add_add_bos_token(False)
    writer.add_add_space_prefix(True)
    writer.add_chat_template("{{ messages | map(attribute='content') | join(' ') }}")

    head = WIDTH // HEADS
    writer.add_tensor("token_embd.weight", weights(len(vocabulary), WIDTH))
    output = weights(len(vocabulary), WIDTH)
    output[len(words) + len(beginnings) :] = 0  # a lone byte is no text: the server would hold it back until the character is whole
    writer.add_tensor("output.weight", output)
    writer.add_tensor("output_norm.weight", numpy.ones(WIDTH, numpy.float32))
    for layer in range(LAYERS):
        name = f"blk.{layer}"
        writer.add_tensor(f"{name}.attn_norm.weight", numpy.ones(WIDTH, numpy.float32))
        writer.add_tensor(f"{name}.ffn_norm.weight", numpy.ones(WIDTH, numpy.float32))
        writer.add_tensor(f"{name}.attn_q.weight", weights(WIDTH, WIDTH))
        writer.add_tensor(f"{name}.attn_k.weight", weights(KV_HEADS * head, WIDTH))
        writer.add_tensor(f"{name}.attn_v.weight", weights(KV_HEADS * head, WIDTH))
        writer.add_tensor(f"{name}.attn_output.weight", weights(WIDTH, WIDTH))
        writer.add_tensor(f"{name}.ffn_gate.weight", weights(FEED_FORWARD, WIDTH))
        writer.add_tensor(f"{name}.ffn_up.weight", weights(FEED_FORWARD, WIDTH))
        writer.add_tensor(f"{name}.ffn_down.weight", weights(WIDTH, FEED_FORWARD))

    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    os.replace(part, path)


main(sys.argv[1])
