"""Small language models and LoRA matrices for the tests of the reader."""

from pathlib import Path

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from homunculus.reader.lora import Lora, sizes_of
from homunculus.reader.prompt import ASSISTANT, END, START


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


def loud_lora(seed: int = 0) -> Lora:
    """A LoRA for the small language model that changes what it says."""
    torch.manual_seed(seed)
    lora = Lora(rank=4, **sizes_of(small_language(300)))
    for weights in lora.weights:
        torch.nn.init.normal_(weights.b, std=0.1)
    return lora


def tiny_language(folder: Path) -> Path:
    """A language model of two layers with a tokenizer of its own, on disk."""
    text = [START + "\nWhat is the total amount on this page?" + ASSISTANT, "Invoice 4711 Total 12.50 " + END]
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer, tokenizer.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
    letters = pre_tokenizers.ByteLevel.alphabet()
    special = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
    trainer = trainers.BpeTrainer(vocab_size=300, special_tokens=special, initial_alphabet=letters)
    tokenizer.train_from_iterator(text, trainer)
    PreTrainedTokenizerFast(tokenizer_object=tokenizer).save_pretrained(folder)
    small_language(300).save_pretrained(folder)
    return folder
