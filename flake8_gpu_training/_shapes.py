"""Shapes of well-known decoders, from which their parameters follow.

Shapes are those of the checkpoints' config.json, as gathered in

* litgpt 0.5.13 (litgpt/config.py): Llama 2 to 3.3, CodeLlama, TinyLlama, Vicuna, Mistral 7B,
  Mixtral, Qwen 2.5, QwQ, Qwen 3, Gemma 1 to 3, Phi 3 and 4, OLMo 2, Falcon 3; Qwen 2 also in
  torchtune 0.6.1;
* slime (scripts/models/*.sh): DeepSeek-V3, Kimi-K2, Moonlight, GLM-4-9B, GLM-4.5, MiniMax-M2;
* transformers 5.24, the configuration classes' defaults: DeepSeek-V3, GLM-4.5-Air, gpt-oss-120b,
  Qwen1.5-MoE, SmolLM3; gpt-oss-20b: NVIDIA's Megatron Bridge documentation;
* config.json on the hub: Qwen3-Coder-480B, Yi-34B, Mistral-Nemo, DeepSeek-V2-Lite, InternLM2
  and 2.5, Baichuan2, ChatGLM2 and 3.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Optional


@dataclass(frozen=True)
class Latent:
    """Widths of multi-head latent attention; ``query`` is 0 when queries are not compressed."""

    query: int
    key_value: int
    nope: int = 128
    rope: int = 64
    value: int = 128


@dataclass(frozen=True)
class Shape:
    """A decoder's shape; ``experts`` and ``experts_used`` are 0 for dense models.

    ``intermediate`` is the width of a feed-forward block, of one expert in a mixture; ``shared``
    that of the experts every token takes, ``dense_layers`` (of ``dense_intermediate``) come
    before the first mixture. ``tied``: the output layer shares the embedding. ``qkv_bias``,
    ``qk_norm`` add a few parameters; ``norms`` is the number of hidden-size norms per layer.
    ``gated``: a feed-forward block has a gate beside its two matrices.
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
    shared: int = 0
    dense_layers: int = 0
    dense_intermediate: int = 0
    latent: Optional[Latent] = None
    gated: bool = True

    def parameters(self, experts: Optional[int] = None) -> int:
        """Number of parameters; ``experts`` counts only so many experts a layer."""
        layer = self._attention() + self.norms * self.hidden
        matrices = 3 if self.gated else 2
        feed_forward = matrices * self.hidden * self.intermediate
        dense = 0
        if self.experts:
            count = self.experts if experts is None else experts
            feed_forward = count * feed_forward + self.hidden * self.experts
            feed_forward += matrices * self.hidden * self.shared
            dense = self.dense_layers
        blocks = (self.layers - dense) * feed_forward
        blocks += dense * matrices * self.hidden * self.dense_intermediate
        embeddings = self.vocabulary * self.hidden * (1 if self.tied else 2)
        return self.layers * layer + blocks + embeddings + self.hidden

    def _attention(self) -> int:
        if self.latent is not None:
            return self._latent_attention(self.latent)
        query, key = self.heads * self.head_size, self.kv_heads * self.head_size
        size = self.hidden * (query + 2 * key) + query * self.hidden
        if self.qkv_bias:
            size += query + 2 * key
        if self.qk_norm:
            size += 2 * self.head_size
        return size

    def _latent_attention(self, latent: Latent) -> int:
        width = self.heads * (latent.nope + latent.rope)
        query = self.hidden * width
        if latent.query:
            query = latent.query * (self.hidden + width + 1)
        down = self.hidden * (latent.key_value + latent.rope) + latent.key_value
        up = latent.key_value * self.heads * (latent.nope + latent.value)
        return query + down + up + self.heads * latent.value * self.hidden


def _biased(*row: Any, tied: bool = False, **more: Any) -> Shape:
    return replace(Shape(*row), tied=tied, qkv_bias=True, **more)


def _qwen3(*row: Any, tied: bool = False, experts: int = 0, used: int = 0) -> Shape:
    return replace(Shape(*row), tied=tied, qk_norm=True, experts=experts, experts_used=used)


def _gemma(*row: Any, norms: int = 4, qk_norm: bool = False) -> Shape:
    return replace(Shape(*row), tied=True, norms=norms, qk_norm=qk_norm)


def _mixture(
    *row: Any, experts: int, used: int, shared: int, dense: tuple[int, int], **more: Any
) -> Shape:
    return replace(
        Shape(*row),
        experts=experts,
        experts_used=used,
        shared=shared,
        dense_layers=dense[0],
        dense_intermediate=dense[1],
        **more,
    )


_LLAMA2_7B = Shape(32, 4096, 11008, 32, 32, 128, 32000)
_LLAMA2_13B = Shape(40, 5120, 13824, 40, 40, 128, 32000)
_LLAMA2_70B = Shape(80, 8192, 28672, 64, 8, 128, 32000)
_LLAMA3_8B = Shape(32, 4096, 14336, 32, 8, 128, 128256)
_LLAMA3_70B = Shape(80, 8192, 28672, 64, 8, 128, 128256)
_QWEN25_05B = _biased(24, 896, 4864, 14, 2, 64, 151936, tied=True)
_QWEN25_15B = _biased(28, 1536, 8960, 12, 2, 128, 151936, tied=True)
_QWEN25_7B = _biased(28, 3584, 18944, 28, 4, 128, 152064)
_QWEN25_14B = _biased(48, 5120, 13824, 40, 8, 128, 152064)
_QWEN25_32B = _biased(64, 5120, 27648, 40, 8, 128, 152064)
_GPT_OSS = (2880, 2880, 64, 8, 64, 201088)

# (pattern on the lower-case last part of the name, shape). The first match wins.
_ROWS: tuple[tuple[str, Shape], ...] = (
    (r"deepseek-r1-distill-qwen-1\.5b", _biased(28, 1536, 8960, 12, 2, 128, 151936)),
    (r"deepseek-r1-distill-qwen-7b", _QWEN25_7B),
    (r"deepseek-r1-distill-qwen-14b", _QWEN25_14B),
    (r"deepseek-r1-distill-qwen-32b", _QWEN25_32B),
    (r"deepseek-r1-distill-llama-8b", _LLAMA3_8B),
    (r"deepseek-r1-distill-llama-70b", _LLAMA3_70B),
    (
        r"deepseek-(v3|r1)(\.\d+)?(?!\.?\d|.*distill|.*qwen|.*llama|-lite|.*exp)",
        _mixture(
            *(61, 7168, 2048, 128, 128, 128, 129280),
            experts=256,
            used=8,
            shared=2048,
            dense=(3, 18432),
            latent=Latent(1536, 512),
        ),
    ),
    (
        r"deepseek-(coder-)?v2-lite",
        _mixture(
            *(27, 2048, 1408, 16, 16, 128, 102400),
            experts=64,
            used=6,
            shared=2816,
            dense=(1, 10944),
            latent=Latent(0, 512),
        ),
    ),
    (
        r"kimi-k2",
        _mixture(
            *(61, 7168, 2048, 64, 64, 128, 163840),
            experts=384,
            used=8,
            shared=2048,
            dense=(1, 18432),
            latent=Latent(1536, 512),
        ),
    ),
    (
        r"moonlight-16b-a3b",
        _mixture(
            *(27, 2048, 1408, 16, 16, 128, 163840),
            experts=64,
            used=6,
            shared=2816,
            dense=(1, 11264),
            latent=Latent(0, 512),
        ),
    ),
    (
        r"glm-4\.5-air",
        _mixture(
            *(46, 4096, 1408, 96, 8, 128, 151552),
            experts=128,
            used=8,
            shared=1408,
            dense=(1, 10944),
            qkv_bias=True,
        ),
    ),
    (
        r"glm-4\.[567](?!-|v|[0-9])|glm-4\.[567]-(base|fp8)",
        _mixture(
            *(92, 5120, 1536, 96, 8, 128, 151552),
            experts=160,
            used=8,
            shared=1536,
            dense=(3, 12288),
            qkv_bias=True,
            qk_norm=True,
        ),
    ),
    (
        r"minimax-m2",
        replace(
            Shape(62, 3072, 1536, 48, 8, 128, 200064), qk_norm=True, experts=256, experts_used=8
        ),
    ),
    (r"gpt-oss-20b", _biased(24, *_GPT_OSS, experts=32, experts_used=4)),
    (r"gpt-oss-120b", _biased(36, *_GPT_OSS, experts=128, experts_used=4)),
    (r"glm-4-9b|glm4-9b", _biased(40, 4096, 13696, 32, 2, 128, 151552)),
    (r"chatglm[23]-6b", _biased(28, 4096, 13696, 32, 2, 128, 65024)),
    (r"(llama|vicuna|alpaca)-7b|llama-?2-7b", _LLAMA2_7B),
    (r"(llama|vicuna)-13b|llama-?2-13b", _LLAMA2_13B),
    (r"llama-?2-70b", _LLAMA2_70B),
    (r"llama-?3(\.[13])?-8b", _LLAMA3_8B),
    (r"llama-?3(\.[13])?-70b", _LLAMA3_70B),
    (r"llama-?3\.1-405b", Shape(126, 16384, 53248, 128, 8, 128, 128256)),
    (r"llama-?3\.2-1b", Shape(16, 2048, 8192, 32, 8, 64, 128256, tied=True)),
    (r"llama-?3\.2-3b", Shape(28, 3072, 8192, 24, 8, 128, 128256, tied=True)),
    (r"codellama-34b", Shape(48, 8192, 22016, 64, 8, 128, 32000)),
    (r"tinyllama-1\.1b", Shape(22, 2048, 5632, 32, 4, 64, 32000)),
    (r"mistral-7b(-instruct)?-v0\.[12]", Shape(32, 4096, 14336, 32, 8, 128, 32000)),
    (r"mistral-7b(-instruct)?-v0\.3|mathstral-7b", Shape(32, 4096, 14336, 32, 8, 128, 32768)),
    (r"mistral-nemo", Shape(40, 5120, 14336, 32, 8, 128, 131072)),
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
    (r"qwen2\.5-(coder-)?3b", _biased(36, 2048, 11008, 16, 2, 128, 151936, tied=True)),
    (r"qwen2(\.5)?-(coder-|math-)?7b", _QWEN25_7B),
    (r"qwen2\.5-(coder-)?14b", _QWEN25_14B),
    (r"qwen2\.5-(coder-)?32b|qwq-32b", _QWEN25_32B),
    (r"qwen2(\.5)?-(math-)?72b", _biased(80, 8192, 29568, 64, 8, 128, 152064)),
    (
        r"qwen1\.5-moe-a2\.7b",
        _biased(*(24, 2048, 1408, 16, 16, 128, 151936), experts=60, experts_used=4, shared=5632),
    ),
    (r"qwen3-0\.6b", _qwen3(28, 1024, 3072, 16, 8, 128, 151936, tied=True)),
    (r"qwen3-1\.7b", _qwen3(28, 2048, 6144, 16, 8, 128, 151936, tied=True)),
    (r"qwen3-4b", _qwen3(36, 2560, 9728, 32, 8, 128, 151936, tied=True)),
    (r"qwen3-8b", _qwen3(36, 4096, 12288, 32, 8, 128, 151936)),
    (r"qwen3-14b", _qwen3(40, 5120, 17408, 40, 8, 128, 151936)),
    (r"qwen3-32b", _qwen3(64, 5120, 25600, 64, 8, 128, 151936)),
    (
        r"qwen3-(coder-)?30b-a3b",
        _qwen3(48, 2048, 768, 32, 4, 128, 151936, experts=128, used=8),
    ),
    (
        r"qwen3-235b-a22b",
        _qwen3(94, 4096, 1536, 64, 4, 128, 151936, experts=128, used=8),
    ),
    (
        r"qwen3-coder-480b-a35b",
        _qwen3(62, 6144, 2560, 96, 8, 128, 151936, experts=160, used=8),
    ),
    (r"gemma-2b", _gemma(18, 2048, 16384, 8, 1, 256, 256000, norms=2)),
    (r"gemma-7b", _gemma(28, 3072, 24576, 16, 16, 256, 256000, norms=2)),
    (r"gemma-2-2b", _gemma(26, 2304, 9216, 8, 4, 256, 256000)),
    (r"gemma-2-9b", _gemma(42, 3584, 14336, 16, 8, 256, 256000)),
    (r"gemma-2-27b", _gemma(46, 4608, 36864, 32, 16, 128, 256000)),
    (r"gemma-3-1b", _gemma(26, 1152, 6912, 4, 1, 256, 262144, qk_norm=True)),
    (r"phi-3(\.5)?-mini", Shape(32, 3072, 8192, 32, 32, 96, 32064)),
    (r"phi-4-mini", Shape(32, 3072, 8192, 24, 8, 128, 200064, tied=True)),
    (r"phi-4(?!-mini|-multimodal)", Shape(40, 5120, 17920, 40, 10, 128, 100352)),
    (r"olmo-2-1124-7b", Shape(32, 4096, 11008, 32, 32, 128, 100352)),
    (r"olmo-2-1124-13b", Shape(40, 5120, 13824, 40, 40, 128, 100352)),
    (r"falcon3-1b", Shape(18, 2048, 8192, 8, 4, 256, 131072)),
    (r"falcon3-3b", Shape(22, 3072, 9216, 12, 4, 256, 131072)),
    (r"falcon3-7b", Shape(28, 3072, 23040, 12, 4, 256, 131072)),
    (r"falcon3-10b", Shape(40, 3072, 23040, 12, 4, 256, 131072)),
    (r"yi-(1\.5-)?34b", Shape(60, 7168, 20480, 56, 8, 128, 64000)),
    (r"internlm2(_5|\.5)?-(chat-)?7b", Shape(32, 4096, 14336, 32, 8, 128, 92544)),
    (r"internlm2(_5|\.5)?-(chat-)?1_8b", Shape(24, 2048, 8192, 16, 8, 128, 92544)),
    (r"internlm2(_5|\.5)?-(chat-)?20b", Shape(48, 6144, 16384, 48, 8, 128, 92544)),
    (r"baichuan2-7b", Shape(32, 4096, 11008, 32, 32, 128, 125696)),
    (r"baichuan2-13b", Shape(40, 5120, 13696, 40, 40, 128, 125696)),
    (r"smollm3-3b", Shape(36, 2048, 11008, 16, 4, 128, 128256, tied=True)),
)


@lru_cache(maxsize=1)
def _patterns() -> tuple[tuple[re.Pattern[str], Shape], ...]:
    """The rows compiled, once a name is asked for."""
    return tuple(
        (re.compile(rf"^(meta-)?(?:{pattern})(?![0-9a-z.]*b\b)"), shape) for pattern, shape in _ROWS
    )


def shape_named(short: str) -> Optional[Shape]:
    """The shape of the decoder that the lower-case last part of a name stands for, or None."""
    return next((shape for pattern, shape in _patterns() if pattern.search(short)), None)
