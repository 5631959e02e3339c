"""Small language models and bridges for the tests of the reader."""

from pathlib import Path

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from homunculus.reader.bridge import Bridge, sizes_of
from homunculus.reader.talk import ASKED, BEFORE, END

SMALL = {"width": 96, "depth": 1, "heads": 3, "reading": 1}


def small_language(words: int = 200) -> LlamaForCausalLM:
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=words,
        hidden_size=64,
        intermediate_size=96,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
    )
    return LlamaForCausalLM(config).eval().requires_grad_(False)


def loud(bridge: Bridge) -> Bridge:
    """A bridge whose added matrices say something."""
    for added in bridge.added:
        torch.nn.init.normal_(added.up.weight, std=0.2)
    return bridge


def bridge_for(language: LlamaForCausalLM) -> Bridge:
    return Bridge(eye=96, rank=4, **sizes_of(language))


def tiny_language(folder: Path) -> Path:
    """A language model of two layers with a tokenizer of its own, on disk."""
    text = [ASKED.format("What is the total amount on this page?"), BEFORE, "Invoice 4711 Total 12.50 " + END]
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer, tokenizer.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
    letters = pre_tokenizers.ByteLevel.alphabet()
    special = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
    trainer = trainers.BpeTrainer(vocab_size=300, special_tokens=special, initial_alphabet=letters)
    tokenizer.train_from_iterator(text, trainer)
    PreTrainedTokenizerFast(tokenizer_object=tokenizer).save_pretrained(folder)
    small_language(300).save_pretrained(folder)
    return folder
