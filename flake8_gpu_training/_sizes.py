"""Published sizes of models that are no gated decoders alone: encoders, vision, diffusion.

Counts are those their authors publish; only what is trained counts, not text encoders or a VAE:

* BERT: huggingface.co/transformers/v4.4.2/pretrained_models.html, GPT-2: nanoGPT's README; their
  widths: configuration classes of transformers 5.24;
* ResNet to ConvNeXt: torchvision 0.29.1, ``num_params`` of the default weights; timm's models of
  those names have the same shapes;
* Whisper: the table in the model cards of openai/whisper-*;
* Wan: wan/configs/*.py and README of Wan-Video/Wan2.2 (two experts of 14B, 27B in all, one of
  them at work in a step); FLUX.1: src/flux/util.py of black-forest-labs/flux, 12B: its page;
* Qwen-Image: its technical page; Z-Image: its paper (arXiv 2511.22699, 6.15B in 30 layers);
* Qwen2.5-VL 3B and 7B: their config.json, the tower of 32 layers of 1280 (3420) counted as
  transformers 5.24 builds it, beside Qwen2.5 3B and 7B;
* GOT-OCR2.0, Emu3: their papers (arXiv 2409.01704, 2409.18869);
* HunyuanVideo, Stable Diffusion 1.5 (U-Net) and 3.5 medium, FLUX.2: their authors' announcements.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Optional


@dataclass(frozen=True)
class Published:
    """A model's size in millions of parameters, and its widths where they are known."""

    millions: float
    layers: Optional[int] = None
    hidden: Optional[int] = None
    heads: Optional[int] = None
    vocabulary: Optional[int] = None
    intermediate: Optional[int] = None
    active_millions: Optional[float] = None


_BASE, _LARGE = (12, 768, 12), (24, 1024, 16)
_WAN_14B, _FLUX1 = (40, 5120, 40), (57, 3072, 24)

# (pattern on the lower-case last part of the name, size). The first match wins.
_ROWS: tuple[tuple[str, Published], ...] = (
    (r"bert-base-uncased", Published(110, *_BASE, 30522, 3072)),
    (r"bert-large-uncased", Published(336, *_LARGE, 30522, 4096)),
    (r"bert-base-cased", Published(109, *_BASE, None, 3072)),
    (r"bert-large-cased", Published(335, *_LARGE, None, 4096)),
    (r"bert-base-chinese", Published(103, *_BASE, None, 3072)),
    (r"bert-base-multilingual-cased", Published(179, *_BASE, None, 3072)),
    (r"bert-base-multilingual-uncased", Published(168, *_BASE, None, 3072)),
    (r"gpt2", Published(124, *_BASE, 50257, 3072)),
    (
        r"vit[-_]base[-_]patch16[-_]224(-in21k|[._].*)?|vit_b_16",
        Published(86.57, *_BASE, None, 3072),
    ),
    (
        r"vit[-_]base[-_]patch32[-_]224(-in21k|[._].*)?|vit_b_32",
        Published(88.22, *_BASE, None, 3072),
    ),
    (
        r"vit[-_]large[-_]patch16[-_]224(-in21k|[._].*)?|vit_l_16",
        Published(304.33, *_LARGE, None, 4096),
    ),
    (r"resnet[-_]?18", Published(11.69)),
    (r"resnet[-_]?34", Published(21.80)),
    (r"resnet[-_]?50", Published(25.56)),
    (r"resnet[-_]?101", Published(44.55)),
    (r"resnet[-_]?152", Published(60.19)),
    (r"wide_resnet50_2", Published(68.88)),
    (r"wide_resnet101_2", Published(126.89)),
    (r"resnext50_32x4d", Published(25.03)),
    (r"resnext101_32x8d", Published(88.79)),
    (r"densenet121", Published(7.98)),
    (r"vgg16", Published(138.36)),
    (r"vgg19", Published(143.67)),
    (r"mobilenet_v3_large", Published(5.48)),
    (r"mobilenet_v3_small", Published(2.54)),
    (r"efficientnet[-_]b0", Published(5.29)),
    (r"efficientnet[-_]b4", Published(19.34)),
    (r"efficientnet[-_]b7", Published(66.35)),
    (r"efficientnet_v2_s", Published(21.46)),
    (r"efficientnet_v2_m", Published(54.14)),
    (r"efficientnet_v2_l", Published(118.52)),
    (r"convnext[-_]tiny", Published(28.59)),
    (r"convnext[-_]small", Published(50.22)),
    (r"convnext[-_]base", Published(88.59)),
    (r"convnext[-_]large", Published(197.77)),
    (r"swin_t|swin[-_]tiny[-_]patch4[-_]window7[-_]224", Published(28.29)),
    (r"swin_s|swin[-_]small[-_]patch4[-_]window7[-_]224", Published(49.61)),
    (r"swin_b|swin[-_]base[-_]patch4[-_]window7[-_]224", Published(87.77)),
    (r"whisper-tiny(\.en)?", Published(39)),
    (r"whisper-base(\.en)?", Published(74)),
    (r"whisper-small(\.en)?", Published(244)),
    (r"whisper-medium(\.en)?", Published(769)),
    (r"whisper-large(-v[123])?", Published(1550)),
    (r"wan2\.2-[a-z0-9-]*a14b.*", Published(27_000, *_WAN_14B, None, 13824, 14_000)),
    (r"wan2\.[12]-[a-z0-9-]*(?<!a)14b.*", Published(14_000, *_WAN_14B, None, 13824)),
    (r"wan2\.2-ti2v-5b.*", Published(5_000, 30, 3072, 24, None, 14336)),
    (
        r"flux\.?1-(dev|schnell|fill-dev|canny-dev|depth-dev|kontext-dev|krea-dev)",
        Published(12_000, *_FLUX1),
    ),
    (r"flux\.?2-dev", Published(32_000)),
    (r"qwen-image(-edit)?(-\d+)?", Published(20_000)),
    (r"z-image(-turbo|-edit)?", Published(6_150, 30)),
    (r"hunyuanvideo(-i2v)?|hunyuan-video", Published(13_000)),
    (r"qwen2\.5-vl-3b.*", Published(3_754.62)),
    (r"qwen2\.5-vl-7b.*", Published(8_292.17)),
    (r"got-ocr-?2[._]0", Published(580)),
    (r"emu3-(?:gen|chat|stage1)", Published(8_000)),
    (r"stable-diffusion-v1-[45]", Published(860)),
    (r"stable-diffusion-3\.5-medium", Published(2_500)),
)


@lru_cache(maxsize=1)
def _patterns() -> tuple[tuple[re.Pattern[str], Published], ...]:
    """The rows compiled, once a name is asked for."""
    return tuple(
        (re.compile(rf"(?:{pattern})(?:-hf|-diffusers)?"), size) for pattern, size in _ROWS
    )


def size_published(short: str) -> Optional[Published]:
    """The size of the model that the lower-case last part of a name stands for, or None."""
    return next((size for pattern, size in _patterns() if pattern.fullmatch(short)), None)
