"""Models by name: kind, size, and the exact shapes of well-known families.

Shapes are those of the checkpoints' config.json as gathered in litgpt 0.5.13
(litgpt/config.py), Qwen2 also in torchtune 0.6.1; the parameter count follows from the
shape, so a wrong figure shows.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Any, Optional

from flake8_gpu_training.facts import Document, known
from flake8_gpu_training.runs.model import Model


@dataclass(frozen=True)
class Shape:
    """A decoder's shape; ``experts`` and ``experts_used`` are 0 for dense models.

    ``intermediate`` is the width of a feed-forward block, of one expert in a mixture.
    ``tied``: the output layer shares the embedding. ``qkv_bias``, ``qk_norm`` add a few
    parameters; ``norms`` is the number of hidden-size norms per layer.
    """

    layers: int
    hidden: int
    intermediate: int
    heads: int
    kv_heads: int
    head_size: int
    vocabulary: int
    tied: bool = False
    qkv_bias: bool = False
    qk_norm: bool = False
    norms: int = 2
    experts: int = 0
    experts_used: int = 0

    def parameters(self, experts: Optional[int] = None) -> int:
        """Number of parameters; ``experts`` counts only so many experts a layer."""
        query, key = self.heads * self.head_size, self.kv_heads * self.head_size
        attention = self.hidden * (query + 2 * key) + query * self.hidden
        if self.qkv_bias:
            attention += query + 2 * key
        if self.qk_norm:
            attention += 2 * self.head_size
        feed_forward = 3 * self.hidden * self.intermediate
        if self.experts:
            count = self.experts if experts is None else experts
            feed_forward = count * feed_forward + self.hidden * self.experts
        layer = attention + feed_forward + self.norms * self.hidden
        embeddings = self.vocabulary * self.hidden * (1 if self.tied else 2)
        return self.layers * layer + embeddings + self.hidden


def _qwen25(*row: Any, tied: bool = False) -> Shape:
    return replace(Shape(*row[:7]), tied=tied, qkv_bias=True)


def _qwen3(*row: Any, tied: bool = False, experts: int = 0, used: int = 0) -> Shape:
    return replace(Shape(*row[:7]), tied=tied, qk_norm=True, experts=experts, experts_used=used)


def _gemma(*row: Any, norms: int = 4, qk_norm: bool = False) -> Shape:
    return replace(Shape(*row[:7]), tied=True, norms=norms, qk_norm=qk_norm)


_LLAMA2_7B = Shape(32, 4096, 11008, 32, 32, 128, 32000)
_LLAMA2_13B = Shape(40, 5120, 13824, 40, 40, 128, 32000)
_LLAMA2_70B = Shape(80, 8192, 28672, 64, 8, 128, 32000)
_LLAMA3_8B = Shape(32, 4096, 14336, 32, 8, 128, 128256)
_LLAMA3_70B = Shape(80, 8192, 28672, 64, 8, 128, 128256)
_QWEN25_05B = _qwen25(24, 896, 4864, 14, 2, 64, 151936, tied=True)
_QWEN25_15B = _qwen25(28, 1536, 8960, 12, 2, 128, 151936, tied=True)
_QWEN25_7B = _qwen25(28, 3584, 18944, 28, 4, 128, 152064)
_QWEN25_14B = _qwen25(48, 5120, 13824, 40, 8, 128, 152064)
_QWEN25_32B = _qwen25(64, 5120, 27648, 40, 8, 128, 152064)

# (pattern on the lower-case last part of the name, shape). The first match wins.
_SHAPES: tuple[tuple[str, Shape], ...] = (
    (r"deepseek-r1-distill-qwen-1\.5b", _qwen25(28, 1536, 8960, 12, 2, 128, 151936)),
    (r"deepseek-r1-distill-qwen-7b", _QWEN25_7B),
    (r"deepseek-r1-distill-qwen-14b", _QWEN25_14B),
    (r"deepseek-r1-distill-qwen-32b", _QWEN25_32B),
    (r"deepseek-r1-distill-llama-8b", _LLAMA3_8B),
    (r"deepseek-r1-distill-llama-70b", _LLAMA3_70B),
    (r"llama-?2-7b", _LLAMA2_7B),
    (r"llama-?2-13b", _LLAMA2_13B),
    (r"llama-?2-70b", _LLAMA2_70B),
    (r"llama-?3(\.[13])?-8b", _LLAMA3_8B),
    (r"llama-?3(\.[13])?-70b", _LLAMA3_70B),
    (r"llama-?3\.1-405b", Shape(126, 16384, 53248, 128, 8, 128, 128256)),
    (r"llama-?3\.2-1b", Shape(16, 2048, 8192, 32, 8, 64, 128256, tied=True)),
    (r"llama-?3\.2-3b", Shape(28, 3072, 8192, 24, 8, 128, 128256, tied=True)),
    (r"mistral-7b(-instruct)?-v0\.[12]", Shape(32, 4096, 14336, 32, 8, 128, 32000)),
    (r"mistral-7b(-instruct)?-v0\.3", Shape(32, 4096, 14336, 32, 8, 128, 32768)),
    (
        r"mixtral-8x7b",
        Shape(32, 4096, 14336, 32, 8, 128, 32000, experts=8, experts_used=2),
    ),
    (
        r"mixtral-8x22b",
        Shape(56, 6144, 16384, 48, 8, 128, 32768, experts=8, experts_used=2),
    ),
    (r"qwen2(\.5)?-(coder-|math-)?0\.5b", _QWEN25_05B),
    (r"qwen2(\.5)?-(coder-|math-)?1\.5b", _QWEN25_15B),
    (r"qwen2\.5-(coder-)?3b", _qwen25(36, 2048, 11008, 16, 2, 128, 151936, tied=True)),
    (r"qwen2(\.5)?-(coder-|math-)?7b", _QWEN25_7B),
    (r"qwen2\.5-(coder-)?14b", _QWEN25_14B),
    (r"qwen2\.5-(coder-)?32b|qwq-32b", _QWEN25_32B),
    (r"qwen2(\.5)?-(math-)?72b", _qwen25(80, 8192, 29568, 64, 8, 128, 152064)),
    (r"qwen3-0\.6b", _qwen3(28, 1024, 3072, 16, 8, 128, 151936, tied=True)),
    (r"qwen3-1\.7b", _qwen3(28, 2048, 6144, 16, 8, 128, 151936, tied=True)),
    (r"qwen3-4b", _qwen3(36, 2560, 9728, 32, 8, 128, 151936, tied=True)),
    (r"qwen3-8b", _qwen3(36, 4096, 12288, 32, 8, 128, 151936)),
    (r"qwen3-14b", _qwen3(40, 5120, 17408, 40, 8, 128, 151936)),
    (r"qwen3-32b", _qwen3(64, 5120, 25600, 64, 8, 128, 151936)),
    (
        r"qwen3-30b-a3b",
        _qwen3(48, 2048, 768, 32, 4, 128, 151936, experts=128, used=8),
    ),
    (
        r"qwen3-235b-a22b",
        _qwen3(94, 4096, 1536, 64, 4, 128, 151936, experts=128, used=8),
    ),
    (r"gemma-2b", _gemma(18, 2048, 16384, 8, 1, 256, 256000, norms=2)),
    (r"gemma-7b", _gemma(28, 3072, 24576, 16, 16, 256, 256000, norms=2)),
    (r"gemma-2-2b", _gemma(26, 2304, 9216, 8, 4, 256, 256000)),
    (r"gemma-2-9b", _gemma(42, 3584, 14336, 16, 8, 256, 256000)),
    (r"gemma-2-27b", _gemma(46, 4608, 36864, 32, 16, 128, 256000)),
    (r"gemma-3-1b", _gemma(26, 1152, 6912, 4, 1, 256, 262144, qk_norm=True)),
    (r"phi-3(\.5)?-mini", Shape(32, 3072, 8192, 32, 32, 96, 32064)),
    (r"phi-4(?!-mini|-multimodal)", Shape(40, 5120, 17920, 40, 10, 128, 100352)),
)
_COMPILED = tuple(
    (re.compile(rf"^(meta-)?(?:{pattern})(?![0-9a-z.]*b\b)"), shape) for pattern, shape in _SHAPES
)

# What a name says about the kind of model; the first match wins.
_KINDS: tuple[tuple[str, str], ...] = (
    (r"embed|rerank|\bbge\b|\bgte\b|\be5-", "embedding"),
    (r"whisper|wav2vec|hubert|cosyvoice|\btts\b|qwen\d*-audio|qwen2-audio", "audio"),
    (
        r"\bwan\d|wan-?2|cogvideo|hunyuanvideo|hunyuan-video|\bltx\b|ltx-|mochi|open-?sora|t2v|i2v",
        "video",
    ),
    (
        r"\bflux|stable-diffusion|sdxl|\bsd3|sd-turbo|qwen-image|z-image|kolors|pixart|sana|omnigen",
        "image",
    ),
    (
        r"\bvl\b|ocr|-vl-|vl\d|vision|llava|internvl|omni|minicpm-v|minicpm-o|glm-4v|glm-4\.\dv"
        r"|pixtral|molmo|paligemma|idefics|smolvlm|ovis|cogvlm|kimi-vl|emu3|qwen3\.5|gemma-3-(4|12|27)b"
        r"|gemma-3n|gemma-4|llama-?4|mllama|moss-vl|qvq",
        "MLLM",
    ),
    (r"resnet|\bvit\b|vit-|swin|convnext|deit|efficientnet|mobilenet|dinov|clip|siglip", "vision"),
    (r"roberta|\bbert\b|bert-|deberta|electra|modernbert", "encoder"),
    (
        r"qwen|qwq|llama|mistral|mixtral|ministral|gemma|\bphi-?\d|deepseek|internlm|glm|baichuan|\byi-"
        r"|bloom|falcon|\bopt-\d|gpt2|gpt-?(neo|j|oss)|pythia|olmo|smollm|granite|minicpm|starcoder"
        r"|codellama|vicuna|alpaca|zephyr|tinyllama|kimi|moonlight|hunyuan|ernie|seed-oss|nemotron|mpt-",
        "LLM",
    ),
)
_KIND = tuple((re.compile(pattern), kind) for pattern, kind in _KINDS)
_MIXTURE = re.compile(r"(?<![a-z0-9.])(\d+)x(\d+(?:\.\d+)?)b(?![a-z0-9])")
_ACTIVE = re.compile(r"(?<![a-z0-9.])(\d+(?:\.\d+)?)b-a(\d+(?:\.\d+)?)b(?![a-z0-9])")
_SIZE = re.compile(r"(?<![a-z0-9.])(\d+(?:[._]\d+)?)(b|m)(?![a-z0-9])")


def model_of(name: Optional[str], config: Optional[Document] = None) -> Model:
    """What ``name`` (hub id or path) and a ``config.json`` say about a model."""
    if config is not None:
        return _from_config(name, config)
    if not name:
        return Model()
    short = _short(name)
    kind = _kind(short)
    shape = next((shape for pattern, shape in _COMPILED if pattern.search(short)), None)
    if shape is not None:
        return _from_shape(name, kind, shape, "shape of the model family")
    total, active = _size(short)
    return Model(
        name=name,
        kind=kind,
        parameters=total,
        active_parameters=active,
        is_moe=_MIXTURE.search(short) is not None or _ACTIVE.search(short) is not None,
        is_hf_family=kind in ("LLM", "MLLM"),
        source="size in the model's name" if total else "the model's name",
    )


def parameters_named(text: str) -> Optional[int]:
    """Parameters that a size such as ``7B``, ``0.5b`` or ``8x7B`` stands for, or None."""
    return _size(text.strip().lower())[0]


def _short(name: str) -> str:
    parts = [part for part in re.split(r"[/\\]", name.strip().lower()) if part]
    if not parts:
        return ""
    # A checkpoint folder (…/Qwen2.5-7B/checkpoint-100) is named by its parent.
    for part in reversed(parts):
        if not re.match(r"^(checkpoint-.*|snapshots?|main|latest|final|[0-9a-f]{40}|v\d.*)$", part):
            return part
    return parts[-1]


def _kind(short: str) -> str:
    return next((kind for pattern, kind in _KIND if pattern.search(short)), "unknown")


def _size(short: str) -> tuple[Optional[int], Optional[int]]:
    active = _ACTIVE.search(short)
    if active:
        return _billions(active.group(1)), _billions(active.group(2))
    if _MIXTURE.search(short):
        # 8x7B shares attention among experts: the product is not the size.
        return None, None
    found = _SIZE.search(short)
    if found is None:
        return None, None
    number = float(found.group(1).replace("_", "."))
    total = round(number * (1e9 if found.group(2) == "b" else 1e6))
    return total, total


def _billions(text: str) -> int:
    return round(float(text) * 1e9)


def _from_shape(name: Optional[str], kind: str, shape: Shape, source: str) -> Model:
    used = shape.experts_used if shape.experts else None
    return Model(
        name=name,
        kind=kind,
        parameters=shape.parameters(),
        active_parameters=shape.parameters(experts=used),
        layers=shape.layers,
        hidden_size=shape.hidden,
        heads=shape.heads,
        kv_heads=shape.kv_heads,
        vocabulary=shape.vocabulary,
        intermediate_size=shape.intermediate,
        head_size=shape.head_size,
        is_moe=bool(shape.experts),
        is_hf_family=True,
        source=source,
    )


def _from_config(name: Optional[str], config: Document) -> Model:
    """A model from its ``config.json`` (of a text model, or its ``text_config``)."""
    prefix = "text_config." if config.get("text_config") is not None else ""

    def number(*keys: str) -> Optional[int]:
        for key in keys:
            node = config.get(prefix + key)
            value: Any = node.value if node is not None else None
            if known(value) and isinstance(value, int) and not isinstance(value, bool):
                return value
        return None

    layers, hidden = number("num_hidden_layers", "n_layer"), number("hidden_size", "n_embd")
    heads = number("num_attention_heads", "n_head")
    vocabulary, wide = number("vocab_size"), number("moe_intermediate_size", "intermediate_size")
    experts = number("num_experts", "n_routed_experts", "num_local_experts") or 0
    kind = "MLLM" if prefix or config.get("vision_config") is not None else "LLM"
    head_size = number("head_dim") or (hidden // heads if hidden and heads else None)
    kv_heads = number("num_key_value_heads") or heads
    tied_node = config.get("tie_word_embeddings")
    total = active = None
    if layers and hidden and heads and vocabulary and wide and kv_heads and head_size:
        shape = Shape(
            layers,
            hidden,
            wide,
            heads,
            kv_heads,
            head_size,
            vocabulary,
            tied=tied_node is not None and tied_node.value is True,
            experts=experts,
            experts_used=number("num_experts_per_tok") or 0,
        )
        total, active = shape.parameters(), shape.parameters(experts=shape.experts_used or None)
    return Model(
        name=name,
        kind=kind,
        parameters=total,
        active_parameters=active,
        layers=layers,
        hidden_size=hidden,
        heads=heads,
        kv_heads=kv_heads,
        vocabulary=vocabulary,
        intermediate_size=wide,
        head_size=head_size,
        is_moe=experts > 0,
        is_hf_family=True,
        source=config.path,
        location=config.root.location,
    )
