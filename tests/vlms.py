"""Vision-language models of ten families, tiny and untrained, each with a processor of its own, on disk.

Image sizes, tilings and special tokens are as in the families, only smaller. Image processors are those on PIL.
"""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
import transformers
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
from transformers import (
    AutoModelForImageTextToText,
    AutoProcessor,
    AutoTokenizer,
    PreTrainedModel,
    PreTrainedTokenizerFast,
    ProcessorMixin,
)
from transformers.models.smolvlm import processing_smolvlm

HEADS = {"num_attention_heads": 4, "num_key_value_heads": 2}
TEXT = {"hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 3, **HEADS}
VISION = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 3, "num_attention_heads": 2}
GRIDS = [f"<row_{row}_col_{column}>" for row in range(1, 7) for column in range(1, 7)]

NO_VIDEOS = SimpleNamespace(num_frames=None, fps=None)

# The processor of SmolVLM asks for num2words even where there are no videos, whose frames it spells out.
processing_smolvlm.num2words = processing_smolvlm.num2words or str


def without_videos(kind: type[ProcessorMixin]) -> Any:
    """The processor of a family less its part for videos, which cannot even be left empty without torchvision."""
    parts = classmethod(lambda cls: ["image_processor", "tokenizer"])
    return type(kind.__name__, (kind,), {"get_attributes": parts, "video_processor": NO_VIDEOS})


def tiny(name: str, folder: Path) -> tuple[PreTrainedModel, ProcessorMixin]:
    """Model and processor of a family as read from `folder`, built there first if need be."""
    if not (folder / "processor_config.json").exists():
        FAMILIES[name](folder)
    model = AutoModelForImageTextToText.from_pretrained(folder, dtype=torch.float32, attn_implementation="sdpa")
    return model.eval(), processor_from(folder)


def processor_from(folder: Path) -> ProcessorMixin:
    """What AutoProcessor gives where it can: it loads no processor with a part for videos without torchvision.

    Those are the processors of Qwen2-VL, Qwen2.5-VL, Qwen3-VL, LLaVA-OneVision, InternVL and SmolVLM.
    """
    settings, _ = ProcessorMixin.get_processor_dict(folder)
    kind = getattr(transformers, settings["processor_class"])
    if "video_processor" not in kind.get_attributes():
        return AutoProcessor.from_pretrained(folder)
    images = getattr(transformers, settings["image_processor"]["image_processor_type"])
    parts = [images.from_pretrained(folder), AutoTokenizer.from_pretrained(folder), None]
    return without_videos(kind).from_args_and_dict(parts, settings)


def tokenizer_of(special: list[str], pad: str, end: str, start: str | None = None, **named: str) -> Any:
    """One token a byte, then the special ones; `named` are attributes that a processor looks for."""
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    tokenizer = Tokenizer(models.BPE({letter: i for i, letter in enumerate(letters)}, []))
    tokenizer.pre_tokenizer, tokenizer.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
    tokenizer.add_special_tokens([AddedToken(token, special=True, normalized=False) for token in special])
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token=pad,
        eos_token=end,
        bos_token=start,
        padding_side="left",
        extra_special_tokens=named or None,
        clean_up_tokenization_spaces=False,
    )


def chat(image: str, turn: str, end: str, ask: str, start: str = "") -> str:
    """A chat template; `turn` opens a message and may name {{ role }}, `ask` opens the answer."""
    return (
        f"{start}{{% for message in messages %}}{{% set role = message['role'] %}}{turn}"
        "{% if message['content'] is string %}{{ message['content'] }}{% else %}{% for part in message['content'] %}"
        f"{{% if part['type'] == 'image' %}}{image}{{% elif part['type'] == 'text' %}}"
        "{{ part['text'] }}{% endif %}{% endfor %}{% endif %}"
        f"{end}{{% endfor %}}{{% if add_generation_prompt %}}{ask}{{% endif %}}"
    )


def chat_ml(image: str) -> str:
    line = "{{ '\\n' }}"
    return chat(image, f"<|im_start|>{{{{ role }}}}{line}", f"<|im_end|>{line}", f"<|im_start|>assistant{line}")


def text_of(tokenizer: Any, **more: Any) -> dict[str, Any]:
    """The settings of a language model that speaks these tokens."""
    names = ("pad_token_id", "eos_token_id", "bos_token_id")
    return TEXT | {"vocab_size": len(tokenizer)} | {name: getattr(tokenizer, name) for name in names} | more


def save(kind: type[PreTrainedModel], config: Any, processor: ProcessorMixin, folder: Path) -> Path:
    """A model whose logits depend on every part of it and on the image, and which answers in printable letters."""
    torch.manual_seed(1)  # of the first few, the one whose answers repeat themselves least
    model = kind(config)
    table = 0.02 if config.tie_word_embeddings else 1.0  # tied, a token with a loud row would follow itself for ever
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if weight.ndim == 1 and name.endswith("bias"):
                torch.nn.init.normal_(weight, std=0.1)
            elif "q_norm" in name or "k_norm" in name:
                weight += 1  # sharper attention
            elif weight.ndim > 1 and "embed" in name and "patch_embed" not in name:  # of tokens and of places
                torch.nn.init.normal_(weight, std=table if "embed_tokens" in name else 0.5)
            elif weight.ndim > 1:  # pixels of a patch are much alike and add up
                torch.nn.init.normal_(weight, std=(1.5 if weight.ndim == 2 else 0.5) * weight[0].numel() ** -0.5)
        printable = [processor.tokenizer.convert_tokens_to_ids(chr(code)) for code in range(33, 127)]
        silent = torch.ones(len(processor.tokenizer), dtype=torch.bool)
        silent[printable] = False
        model.get_output_embeddings().weight[silent] *= 0.1
    model.save_pretrained(folder)
    processor.save_pretrained(folder)
    return folder


def qwen_tokenizer() -> Any:
    vision = ["<|vision_start|>", "<|vision_end|>", "<|vision_pad|>", "<|image_pad|>", "<|video_pad|>"]
    return tokenizer_of(["<|endoftext|>", "<|im_start|>", "<|im_end|>", *vision], "<|endoftext|>", "<|im_end|>")


def qwen_processor(kind: str, patch: int, tokenizer: Any, most: int) -> Any:
    """A processor for images of at most so many pixels."""
    images = transformers.Qwen2VLImageProcessorPil(
        patch_size=patch, merge_size=2, size={"shortest_edge": 16 * patch**2, "longest_edge": most}
    )
    template = chat_ml("<|vision_start|><|image_pad|><|vision_end|>")
    return without_videos(getattr(transformers, kind))(images, tokenizer, None, chat_template=template)


def save_qwen(family: str, patch: int, text: dict[str, Any], vision: dict[str, Any], folder: Path) -> Path:
    tokenizer, side = qwen_tokenizer(), 2 * patch
    names = {"image": "<|image_pad|>", "video": "<|video_pad|>"}
    names |= {"vision_start": "<|vision_start|>", "vision_end": "<|vision_end|>"}
    config = getattr(transformers, f"{family}Config")(
        text_config=text_of(tokenizer, **text),
        vision_config={"depth": 3, "num_heads": 2, "patch_size": patch} | vision,
        **{f"{name}_token_id": tokenizer.convert_tokens_to_ids(token) for name, token in names.items()},
    )
    processor = qwen_processor(f"{family}Processor", patch, tokenizer, 256 * side**2)
    return save(getattr(transformers, f"{family}ForConditionalGeneration"), config, processor, folder)


def qwen3_vl(folder: Path) -> Path:
    """Features: tuple, a tensor [tokens, 64] an image; deepstack_features alike, two. Token: config.image_token_id."""
    rope = {"rope_type": "default", "rope_theta": 10000.0, "mrope_section": [6, 5, 5], "mrope_interleaved": True}
    vision = {"hidden_size": 32, "intermediate_size": 64, "out_hidden_size": 64}
    vision |= {"num_position_embeddings": 64, "deepstack_visual_indexes": [0, 1]}
    return save_qwen("Qwen3VL", 16, {"head_dim": 32, "rope_parameters": rope}, vision, folder)


def qwen2_5_vl(folder: Path) -> Path:
    """Features: tuple, a tensor [tokens, 64] an image. Token: config.image_token_id."""
    rope = {"rope_type": "default", "rope_theta": 10000.0, "mrope_section": [2, 3, 3]}
    vision = {"hidden_size": 32, "intermediate_size": 64, "out_hidden_size": 64}
    vision |= {"window_size": 56, "fullatt_block_indexes": [2]}
    return save_qwen("Qwen2_5_VL", 14, {"rope_parameters": rope}, vision, folder)


def qwen2_vl(folder: Path) -> Path:
    """Features: tuple, a tensor [tokens, 64] an image. Token: config.image_token_id."""
    rope = {"rope_type": "default", "rope_theta": 10000.0, "mrope_section": [2, 3, 3]}
    vision = {"embed_dim": 32, "mlp_ratio": 2, "hidden_size": 64}
    return save_qwen("Qwen2VL", 14, {"rope_parameters": rope}, vision, folder)


def llava(folder: Path) -> Path:
    """Features: list, a tensor [64, 64] an image of any size. Token: config.image_token_id (image_token_index)."""
    tokenizer = tokenizer_of(["<s>", "</s>", "<pad>", "<image>"], "<pad>", "</s>", "<s>")
    config = transformers.LlavaConfig(
        text_config={"model_type": "llama"} | text_of(tokenizer),
        vision_config={"model_type": "clip_vision_model", "image_size": 112, "patch_size": 14} | VISION,
        image_token_index=tokenizer.convert_tokens_to_ids("<image>"),
        image_seq_length=64,
    )
    processor = transformers.LlavaProcessor(
        transformers.CLIPImageProcessorPil(size={"shortest_edge": 112}, crop_size={"height": 112, "width": 112}),
        tokenizer,
        patch_size=14,
        vision_feature_select_strategy="default",
        num_additional_image_tokens=1,
        chat_template=chat("<image>{{ '\\n' }}", "{{ role | upper }}: ", " ", "ASSISTANT:", start="<s>"),
    )
    return save(transformers.LlavaForConditionalGeneration, config, processor, folder)


def llava_next(folder: Path) -> Path:
    """Features: list, a tensor [tokens, 64] an image. Token: config.image_token_id (image_token_index)."""
    tokenizer = tokenizer_of(["<s>", "</s>", "<pad>", "<image>"], "<pad>", "</s>", "<s>")
    tile = 84
    grids = [[tile * high, tile * wide] for high, wide in ((1, 2), (2, 1), (2, 2), (3, 1), (1, 3))]
    config = transformers.LlavaNextConfig(
        text_config={"model_type": "llama"} | text_of(tokenizer),
        vision_config={"model_type": "clip_vision_model", "image_size": tile, "patch_size": 14} | VISION,
        image_token_index=tokenizer.convert_tokens_to_ids("<image>"),
        image_grid_pinpoints=grids,
        image_seq_length=(tile // 14) ** 2,
    )
    processor = transformers.LlavaNextProcessor(
        transformers.LlavaNextImageProcessorPil(
            size={"shortest_edge": tile}, crop_size={"height": tile, "width": tile}, image_grid_pinpoints=grids
        ),
        tokenizer,
        patch_size=14,
        vision_feature_select_strategy="default",
        num_additional_image_tokens=1,
        chat_template=chat("<image>{{ '\\n' }}", "{{ role | upper }}: ", " ", "ASSISTANT:", start="<s>"),
    )
    return save(transformers.LlavaNextForConditionalGeneration, config, processor, folder)


def llava_onevision(folder: Path) -> Path:
    """Features: list, a tensor [tokens, 64] an image. Token: config.image_token_id (image_token_index)."""
    special = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<image>", "<video>"]
    tokenizer = tokenizer_of(special, "<|endoftext|>", "<|im_end|>")
    tile = 56
    grids = [[tile * high, tile * wide] for high in range(1, 7) for wide in range(1, 7)]
    config = transformers.LlavaOnevisionConfig(
        text_config={"model_type": "qwen2"} | text_of(tokenizer),
        vision_config={"model_type": "siglip_vision_model", "image_size": tile, "patch_size": 14}
        | {"vision_use_head": False}
        | VISION,
        image_token_index=tokenizer.convert_tokens_to_ids("<image>"),
        video_token_index=tokenizer.convert_tokens_to_ids("<video>"),
        image_grid_pinpoints=grids,
    )
    processor = without_videos(transformers.LlavaOnevisionProcessor)(
        transformers.LlavaOnevisionImageProcessorPil(size={"height": tile, "width": tile}, image_grid_pinpoints=grids),
        tokenizer,
        None,
        num_image_tokens=(tile // 14) ** 2,
        vision_feature_select_strategy="full",
        chat_template=chat_ml("<image>{{ '\\n' }}"),
    )
    return save(transformers.LlavaOnevisionForConditionalGeneration, config, processor, folder)


def internvl(folder: Path) -> Path:
    """Features: a tensor [tiles of all images, 16, 64]. Token: config.image_token_id."""
    named = {"start_image_token": "<img>", "end_image_token": "</img>", "context_image_token": "<IMG_CONTEXT>"}
    named |= {"video_token": "<video>"}
    special = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", *named.values()]
    tokenizer = tokenizer_of(special, "<|endoftext|>", "<|im_end|>", **named)
    config = transformers.InternVLConfig(
        text_config={"model_type": "qwen2"} | text_of(tokenizer),
        vision_config={"image_size": 112, "patch_size": 14, "layer_scale_init_value": 0.5} | VISION,
        image_token_id=tokenizer.convert_tokens_to_ids("<IMG_CONTEXT>"),
        image_seq_length=16,
        tie_word_embeddings=False,
    )
    processor = without_videos(transformers.InternVLProcessor)(
        transformers.GotOcr2ImageProcessorPil(size={"height": 112, "width": 112}, crop_to_patches=True, max_patches=6),
        tokenizer,
        None,
        image_seq_length=16,
        chat_template=chat_ml("<IMG_CONTEXT>{{ '\\n' }}"),
    )
    return save(transformers.InternVLForConditionalGeneration, config, processor, folder)


def save_tiled(family: str, processor: Callable[..., Any], patch: int, scale: int, folder: Path) -> Path:
    """SmolVLM or Idefics3: tiles of 96 pixels, four along the longer side, then the whole image as one more."""
    special = ["<|endoftext|>", "<|im_start|>", "<end_of_utterance>", "<fake_token_around_image>"]
    special += ["<image>", "<global-img>", *GRIDS]
    tokenizer = tokenizer_of(special, "<|endoftext|>", "<end_of_utterance>", "<|im_start|>")
    config = getattr(transformers, f"{family}Config")(
        text_config={"model_type": "llama"} | text_of(tokenizer),
        vision_config={"image_size": 96, "patch_size": patch} | VISION,
        image_token_id=tokenizer.convert_tokens_to_ids("<image>"),
        pad_token_id=tokenizer.pad_token_id,
        scale_factor=scale,
    )
    images = getattr(transformers, f"{family}ImageProcessorPil")(
        size={"longest_edge": 4 * 96}, max_image_size={"longest_edge": 96}
    )
    end = "<end_of_utterance>{{ '\\n' }}"
    template = chat("<image>", "{{ role | capitalize }}:", end, "Assistant:", start="<|im_start|>")
    whole = processor(images, tokenizer, image_seq_len=(96 // patch // scale) ** 2, chat_template=template)
    return save(getattr(transformers, f"{family}ForConditionalGeneration"), config, whole, folder)


def smolvlm(folder: Path) -> Path:
    """Features: list, a tensor [tiles of its images * 9, 64] a text. Token: config.image_token_id."""
    processor = partial(without_videos(transformers.SmolVLMProcessor), video_processor=None)
    return save_tiled("SmolVLM", processor, patch=8, scale=4, folder=folder)


def idefics3(folder: Path) -> Path:
    """Features: list, a tensor [tiles of its images * 9, 64] a text. Token: config.image_token_id."""
    return save_tiled("Idefics3", transformers.Idefics3Processor, patch=16, scale=2, folder=folder)


def gemma3(folder: Path) -> Path:
    """Features: a tensor [images, 16, 64], whatever their sizes. Token: config.image_token_id (image_token_index)."""
    named = {"image_token": "<image_soft_token>", "boi_token": "<start_of_image>", "eoi_token": "<end_of_image>"}
    special = ["<pad>", "<eos>", "<bos>", "<start_of_turn>", "<end_of_turn>", *named.values()]
    tokenizer = tokenizer_of(special, "<pad>", "<eos>", "<bos>", **named)
    layers = ["sliding_attention", "full_attention", "sliding_attention"]
    config = transformers.Gemma3Config(
        text_config=text_of(tokenizer, head_dim=16, query_pre_attn_scalar=16, sliding_window=12, layer_types=layers),
        vision_config={"image_size": 112, "patch_size": 14, "vision_use_head": False} | VISION,
        mm_tokens_per_image=16,
        image_token_index=tokenizer.image_token_id,
        boi_token_index=tokenizer.boi_token_id,
        eoi_token_index=tokenizer.eoi_token_id,
    )
    role, line = "{{ 'model' if role == 'assistant' else role }}", "{{ '\\n' }}"
    processor = transformers.Gemma3Processor(
        transformers.Gemma3ImageProcessorPil(size={"height": 112, "width": 112}),
        tokenizer,
        image_seq_length=16,
        chat_template=chat(
            "<start_of_image>",
            f"<start_of_turn>{role}{line}",
            f"<end_of_turn>{line}",
            f"<start_of_turn>model{line}",
            start="<bos>",
        ),
    )
    return save(transformers.Gemma3ForConditionalGeneration, config, processor, folder)


FAMILIES: dict[str, Callable[[Path], Path]] = {
    "qwen3_vl": qwen3_vl,
    "qwen2_5_vl": qwen2_5_vl,
    "qwen2_vl": qwen2_vl,
    "llava": llava,
    "llava_next": llava_next,
    "llava_onevision": llava_onevision,
    "internvl": internvl,
    "smolvlm": smolvlm,
    "idefics3": idefics3,
    "gemma3": gemma3,
}
