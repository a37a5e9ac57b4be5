"""Models by name or configuration: kind, size, and shape where it is known.

Exact shapes and published sizes, with their sources, are in ``_shapes`` and ``_sizes``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Callable, Optional

from flake8_gpu_training._shapes import Latent, Shape, shape_named
from flake8_gpu_training._sizes import Published, size_published
from flake8_gpu_training.facts import Document, Location, known
from flake8_gpu_training.runs.model import Model

# What a name says about the kind of model; the first match wins.
_KINDS: tuple[tuple[str, str], ...] = (
    (r"embed|rerank|\bbge\b|\bgte\b|\be5-", "embedding"),
    (
        r"whisper|voxtral|wav2vec|hubert|speecht5|cosyvoice|\btts\b|qwen\d*-audio|qwen2-audio",
        "audio",
    ),
    (
        r"\bwan\d|wan-?2|cogvideo|hunyuanvideo|hunyuan-video|\bltx\b|ltx-|mochi|open-?sora|t2v|i2v"
        r"|minimax-h\d|\bmova-|longlive|lingbot-|joyai-echo",
        "video",
    ),
    (
        r"\bflux|stable-diffusion|sdxl|\bsd3|sd-turbo|kolors|pixart|sana|omnigen"
        r"|(?:qwen|glm|ernie|hunyuan|longcat|\bz)[-_]?image|hunyuan-?3d|ideogram-|\bkrea-\d",
        "image",
    ),
    (
        r"\bvl\b|ocr|-vl-|vl\d|vision|llava|internvl|omni|minicpm-v|minicpm-o|glm-4v|glm-4\.\dv"
        r"|pixtral|molmo|paligemma|idefics|smolvlm|ovis|cogvlm|kimi-vl|emu3|qwen3\.[56]|gemma-3-(4|12|27)b"
        r"|gemma-3n|gemma-4|llama-?4|mllama|moss-vl|qvq|kimi-k2\.[5-9]"
        r"|kimi-k3|minimax-m3|ministral-3|mistral-(?:large-3|medium-3\.5)|intern-s1|step-?3\.7"
        r"|\bglyph\b|moondream|vlm2vec",
        "MLLM",
    ),
    (
        r"resnet|resnext|\bbeit\b|(?<![a-z0-9])vit(?![a-z])|vgg1|densenet|swin|convnext|deit|efficientnet|mobilenet|dinov|clip|siglip",
        "vision",
    ),
    (r"roberta|\bbert\b|bert-|deberta|electra|modernbert", "encoder"),
    (
        r"(?<![a-z0-9])(?:flan-|code|m|by|long-|u)?t5(?:-|x|p|$)|(?<![a-z])(?:distil|m)?bart-"
        r"|pegasus-|opus-mt|\bnllb-|m2m100|madlad|blenderbot|prophetnet",
        "encoder-decoder",
    ),
    (
        r"qwen|qwq|llama|mistral|mixtral|ministral|gemma|\bphi-?\d|deepseek|internlm|glm|baichuan|\byi-"
        r"|bloom|falcon|\bopt-\d|gpt2|gpt-?(neo|j|oss)|pythia|codegen-\d|xglm-\d|dialogpt-|cerebras-gpt|olmo|smollm|granite|minicpm|starcoder"
        r"|codellama|vicuna|alpaca|zephyr|tinyllama|kimi|moonlight|hunyuan|ernie|seed-oss|nemotron|mpt-"
        r"|lfm2|tiny-aya|command-r|\brnj-1|minimax|mimo-|(?:ring|ling)-(?:\d|mini|flash|lite|plus)"
        r"|trinity-(?:large|mini|nano)|step-?3\.5|llada2|laguna-|\bhy3\b",
        "LLM",
    ),
)
_KIND = tuple((re.compile(pattern), kind) for pattern, kind in _KINDS)
_MIXTURE = re.compile(r"(?<![a-z0-9.])(\d+)x(\d+(?:\.\d+)?)b(?![a-z0-9])")
_ACTIVE = re.compile(r"(?<![a-z0-9.])(\d+(?:\.\d+)?)b-a(\d+(?:\.\d+)?)b(?![a-z0-9])")
# Llama 4 and OLMoE name what works on a token first: 17B-16E, 1B-7B.
# Families of mixtures whose names tell no number of experts (vllm-project/recipes).
_EXPERTS = re.compile(
    r"deepseek-(?:v\d|r1(?!.*distill)|moe|coder-v2|vl2|ocr)|glm-5|glm-4\.[567](?!v-flash)|mistral-large-3"
    r"|hunyuan-a\d+b|minimax-m\d|mimo-v2|(?:ring|ling)-(?:\d|mini|flash|lite|plus)|llada2|laguna-|\bhy3\b|kimi-k3"
    r"|trinity-(?:large|mini|nano)|intern-s1(?!-mini)|step-?3\.\d|kimi-k2|gpt-oss|qwen3-next"
)
_WORKING = re.compile(
    r"(?<![a-z0-9.])(\d+(?:\.\d+)?)b-(?:\d+e|(?<=moe-\db-)(\d+(?:\.\d+)?)b)(?![a-z0-9])"
)
_SIZE = re.compile(r"(?<![a-z0-9.])(\d+(?:[._]\d+)?)(b|m)(?![a-z0-9])")


def model_of(name: Optional[str], config: Optional[Document] = None) -> Model:
    """What ``name`` (hub id or path) and a ``config.json`` say about a model."""
    if config is not None:
        return _from_config(name, config)
    if not name:
        return Model()
    short = last_part(name)
    kind = _kind(short)
    if _has_two_sizes(short):
        is_family = kind in ("LLM", "MLLM")
        return Model(name=name, kind=kind, is_hf_family=is_family, source="the model's name")
    shape = shape_named(short)
    if shape is not None:
        return _from_shape(name, kind, shape, "shape of the model family")
    published = size_published(short)
    if published is not None:
        return _from_published(name, kind, published)
    total, active = _size(short)
    language = language_model(short)
    if total and language is not None and (language.parameters or 0) > total:
        total, active = language.parameters, language.active_parameters
    return Model(
        name=name,
        kind=kind,
        parameters=total,
        active_parameters=active,
        is_moe=any(p.search(short) is not None for p in (_MIXTURE, _ACTIVE, _WORKING, _EXPERTS)),
        is_hf_family=kind in ("LLM", "MLLM"),
        source="size in the model's name" if total else "the model's name",
    )


# A name with this part left out is that of the language model it was built on: Qwen2.5-VL-7B
# on Qwen2.5-7B, Qwen3-Embedding-4B on Qwen3-4B (the models' technical reports).
_BUILT_ON = re.compile(r"(?i)^(.*?qwen[\d.]+)-(?:vl|embedding|reranker)-(\d.*)$")


def language_model(name: str) -> Optional[Model]:
    """The language model that a model of this name was built on, where the name tells."""
    built_on = _BUILT_ON.match(name)
    return model_of(f"{built_on[1]}-{built_on[2]}") if built_on is not None else None


def _has_two_sizes(short: str) -> bool:
    """Whether a name tells sizes of two models: of the one it began as, or was taught by."""
    mixtures = (_ACTIVE, _WORKING, _MIXTURE)
    if any(pattern.search(short) for pattern in mixtures):
        return False
    return len({number for number, unit in _SIZE.findall(short) if unit == "b"}) > 1


def parameters_named(text: str) -> Optional[int]:
    """Parameters that a size such as ``7B``, ``0.5b`` or ``8x7B`` stands for, or None."""
    return _size(text.strip().lower())[0]


def last_part(name: str) -> str:
    """The part of a name or path that tells the model, in lower case."""
    # ModelScope writes a dot in a folder's name as three underscores.
    plain = name.strip().lower().replace("___", ".")
    parts = [part for part in re.split(r"[/\\]", plain) if part]
    if not parts:
        return ""
    # A checkpoint folder (…/Qwen2.5-7B/checkpoint-100) is named by its parent; the Hub's cache
    # keeps models--Qwen--Qwen2.5-7B/snapshots/<revision>.
    for part in reversed(parts):
        if not re.match(r"^(checkpoint-.*|snapshots?|main|latest|final|[0-9a-f]{40}|v\d.*)$", part):
            return part.rpartition("--")[2] if part.startswith("models--") else part
    return parts[-1]


def _kind(short: str) -> str:
    return next((kind for pattern, kind in _KIND if pattern.search(short)), "unknown")


def _size(short: str) -> tuple[Optional[int], Optional[int]]:
    active = _ACTIVE.search(short)
    if active:
        return _billions(active.group(1)), _billions(active.group(2))
    working = _WORKING.search(short)
    if working:
        return _billions(working.group(2)) if working.group(2) else None, _billions(
            working.group(1)
        )
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


def _from_published(name: str, kind: str, size: Published) -> Model:
    active = size.active_millions or size.millions
    return Model(
        name=name,
        kind=kind,
        parameters=round(size.millions * 1e6),
        active_parameters=round(active * 1e6),
        layers=size.layers,
        hidden_size=size.hidden,
        heads=size.heads,
        kv_heads=size.heads,
        vocabulary=size.vocabulary,
        intermediate_size=size.intermediate,
        head_size=size.hidden // size.heads if size.hidden and size.heads else None,
        is_hf_family=kind in ("LLM", "MLLM", "encoder"),
        source="size as published" if size.layers is None else "shape of the model family",
    )


# Names that configurations give a number, over the families of models: transformers' classes,
# ChatGLM's and nanoGPT's, and Megatron's flags.
_NUMBERS: Mapping[str, tuple[str, ...]] = {
    "layers": ("num_hidden_layers", "n_layer", "n_layers", "num_layers"),
    "hidden": ("hidden_size", "n_embd", "d_model", "dim"),
    "heads": ("num_attention_heads", "n_head", "n_heads"),
    "kv_heads": ("num_key_value_heads", "multi_query_group_num", "num_query_groups", "n_kv_heads"),
    "head_size": ("head_dim", "kv_channels"),
    "vocabulary": ("padded_vocab_size", "vocab_size"),
    "wide": ("intermediate_size", "ffn_hidden_size", "n_inner", "hidden_dim"),
    "narrow": ("moe_intermediate_size", "moe_ffn_hidden_size"),
    "experts": ("num_experts", "n_routed_experts", "num_local_experts"),
    "used": ("num_experts_per_tok", "moe_router_topk", "num_experts_per_token"),
    "shared_width": ("shared_expert_intermediate_size", "moe_shared_expert_intermediate_size"),
    "shared": ("n_shared_experts",),
    "dense_layers": ("first_k_dense_replace",),
    "query_rank": ("q_lora_rank",),
    "rank": ("kv_lora_rank",),
    "nope": ("qk_nope_head_dim", "qk_head_dim"),
    "rope": ("qk_rope_head_dim", "qk_pos_emb_head_dim"),
    "value": ("v_head_dim",),
}
SHAPE_NAMES = frozenset(name for names in _NUMBERS.values() for name in names)
"""Every name that a configuration gives a number of a model's shape."""
# Families whose feed-forward blocks have no gate.
_UNGATED = re.compile(
    r"(?i)bert|gpt_?2|gpt_?neo|gptj|gpt_?bigcode|starcoder2|bloom|electra|^(?:opt|mpt|vit)(?![a-z]*3)"
    r"|^falcon(?!_?[h3])|^(?:phi|gpt)(?:config|forcausallm)?$"
)
_QKV_BIASED = re.compile(r"(?i)^qwen2|chatglm")
_QK_NORMED = re.compile(r"(?i)^qwen3|gemma_?3")
_ENCODER = re.compile(r"(?i)bert|electra|deberta|xlm")


def model_of_numbers(
    get: Callable[[str], Any],
    family: str,
    *,
    name: Optional[str] = None,
    gated: Optional[bool] = None,
    tied: bool = False,
    source: str = "",
    location: Optional[Location] = None,
) -> Model:
    """A model from what ``get`` says by the names that configurations use.

    ``family`` is the ``model_type`` or the configuration's class. Parameters are counted only
    where layers, widths, heads and vocabulary are all known.
    """
    found = {key: _number(get, names) for key, names in _NUMBERS.items()}
    layers, hidden, heads = found["layers"], found["hidden"], found["heads"]
    ungated = bool(_UNGATED.search(family)) if gated is None else not gated
    wide = found["wide"] or (4 * hidden if hidden and ungated else None)
    experts = found["experts"] or 0
    inside = (found["narrow"] or wide) if experts else wide
    head_size = found["head_size"] or (hidden // heads if hidden and heads else None)
    kv_heads = found["kv_heads"] or heads
    total = active = None
    if layers and hidden and heads and found["vocabulary"] and inside and kv_heads and head_size:
        shape = Shape(
            layers,
            hidden,
            inside,
            heads,
            kv_heads,
            head_size,
            found["vocabulary"],
            tied=tied,
            qkv_bias=bool(_QKV_BIASED.search(family)),
            qk_norm=bool(_QK_NORMED.search(family)),
            experts=experts,
            experts_used=found["used"] or 0,
            shared=found["shared_width"] or (found["shared"] or 0) * inside,
            dense_layers=found["dense_layers"] or 0,
            dense_intermediate=wide or 0,
            latent=_latent(found),
            gated=not ungated,
        )
        total, active = shape.parameters(), shape.parameters(experts=shape.experts_used or None)
    return Model(
        name=name,
        kind="encoder" if _ENCODER.search(family) else "LLM",
        parameters=total,
        active_parameters=active,
        layers=layers,
        hidden_size=hidden,
        heads=heads,
        kv_heads=kv_heads,
        vocabulary=found["vocabulary"],
        intermediate_size=inside,
        head_size=head_size,
        is_moe=experts > 1,
        is_hf_family=True,
        source=source,
        location=location,
    )


def _defaults(
    vocabulary: int, hidden: int, wide: int, layers: int, heads: int, kv_heads: Optional[int]
) -> dict[str, Any]:
    return {
        "vocab_size": vocabulary,
        "hidden_size": hidden,
        "intermediate_size": wide,
        "num_hidden_layers": layers,
        "num_attention_heads": heads,
        "num_key_value_heads": kv_heads,
    }


# What transformers 5.24 takes where a configuration class is given nothing.
_DEFAULTS: Mapping[str, Mapping[str, Any]] = {
    "LlamaConfig": _defaults(32000, 4096, 11008, 32, 32, None),
    "MistralConfig": _defaults(32000, 4096, 14336, 32, 32, 8),
    "MixtralConfig": {
        **_defaults(32000, 4096, 14336, 32, 32, 8),
        "num_local_experts": 8,
        "num_experts_per_tok": 2,
    },
    "Qwen2Config": _defaults(151936, 4096, 22016, 32, 32, 32),
    "Qwen3Config": {**_defaults(151936, 4096, 22016, 32, 32, 32), "head_dim": 128},
    "GPT2Config": {
        "vocab_size": 50257,
        "n_embd": 768,
        "n_layer": 12,
        "n_head": 12,
        "tie_word_embeddings": True,
    },
    "BertConfig": {**_defaults(30522, 768, 3072, 12, 12, None), "tie_word_embeddings": True},
    "RobertaConfig": {**_defaults(50265, 768, 3072, 12, 12, None), "tie_word_embeddings": True},
}
# nanoGPT's model.py shares the embedding with the output layer.
_TIED = {"GPTConfig": True}


def model_of_class(name: str, written: Mapping[str, Any], is_open: bool) -> Optional[Model]:
    """The model that a configuration class of this name describes, or None when it is none.

    ``written``: its known arguments; ``is_open``: there are others, so no default is certain.
    """
    defaults = {} if is_open else _DEFAULTS.get(name, {})
    if not defaults and not any(key in written for key in _NUMBERS["layers"]):
        return None
    kind = "LLM" if name == "GPTConfig" else _kind(_words(name))
    if kind not in ("LLM", "encoder"):
        return None
    values = {**defaults, **written}
    tied = values.get("tie_word_embeddings", _TIED.get(name, False)) is True
    return replace(model_of_numbers(values.get, name, tied=tied), kind=kind)


def _words(name: str) -> str:
    """``Qwen2MoeConfig`` as ``qwen2-moe-config``, the way names are told apart."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "-", name).lower()


def _number(get: Callable[[str], Any], names: tuple[str, ...]) -> Optional[int]:
    for name in names:
        value = get(name)
        if known(value) and isinstance(value, int) and not isinstance(value, bool) and value > 0:
            return value
    return None


def _latent(found: Mapping[str, Optional[int]]) -> Optional[Latent]:
    rank = found["rank"]
    if not rank:
        return None
    nope, rope, value = found["nope"] or 128, found["rope"] or 64, found["value"] or 128
    return Latent(found["query_rank"] or 0, rank, nope, rope, value)


def _from_config(name: Optional[str], config: Document) -> Model:
    """A model from its ``config.json`` (of a text model, or its ``text_config``)."""
    prefix = "text_config." if config.get("text_config") is not None else ""

    def value(key: str) -> Any:
        node = config.get(prefix + key)
        return node.value if node is not None else None

    family = value("model_type") or _plain(config, "model_type") or _class_name(config)
    model = model_of_numbers(
        value,
        family if isinstance(family, str) else "",
        name=name,
        tied=_plain(config, "tie_word_embeddings") is True or value("tie_word_embeddings") is True,
        source=config.path,
        location=config.root.location,
    )
    diffusion = _plain(config, "_class_name")
    if isinstance(diffusion, str):  # a diffusers module: no decoder, whatever its numbers are
        kind = _kind(last_part(name or "")) if name else "unknown"
        return replace(
            model, kind=kind, parameters=None, active_parameters=None, is_hf_family=False
        )
    if prefix or config.get("vision_config") is not None:
        return replace(model, kind="MLLM")
    return model


def _plain(config: Document, key: str) -> Any:
    node = config.get(key)
    return node.value if node is not None else None


def _class_name(config: Document) -> str:
    architectures = config.get("architectures")
    first = (
        architectures.items[0].value if architectures is not None and architectures.items else ""
    )
    return first if isinstance(first, str) else ""
