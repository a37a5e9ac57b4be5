"""What ``template`` of LlamaFactory says about a model whose path does not name it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from flake8_gpu_training.facts import Setting
from flake8_gpu_training.runs.model import Model


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


# Registered in data/template.py of 0.8.3, 0.9.3 and 0.9.5: those with a plugin for images, videos
# or sounds, and those without. What formats any model (default, empty, alpaca …) tells nothing.
_MULTIMODAL = _names(
    """
    dots_ocr ernie_vl gemma3 gemma3n gemma4 gemma4n glm4v glm4_5v glm_ocr granite3_vision intern_vl
    intern_s1 keye_vl kimi_vl lfm2_vl llama4 mllama llava llava_next llava_next_llama3
    llava_next_mistral llava_next_qwen llava_next_yi llava_next_video llava_next_video_mistral
    llava_next_video_yi mimo_vl minicpm_v minicpm_v_4_6 minicpm_o mistral_small ministral3 paligemma
    paligemma_chat pixtral qwen2_audio qwen2_omni qwen3_omni qwen3_omni_nothink qwen2_vl qwen3_vl
    qwen3_vl_nothink qwen3_5 qwen3_5_nothink qwen3_6 video_llava yi_vl youtu_vl
    """
)
_TEXT = _names(
    """
    bailing bailing_v2 breeze chatglm2 chatglm3 codegeex2 codegeex4 cohere cpm cpm3 cpm4 dbrx
    deepseek deepseek3 deepseekr1 deepseekcoder ernie ernie_nothink exaone falcon falcon_h1 gemma
    gemma2 glm4 glm4_moe glm4_7 glmz1 gpt_oss granite3 granite4 hunyuan hunyuan_small index intern
    intern2 lfm2 llama2 llama2_zh llama3 mimo mimo_v2 minimax1 minimax2 ministral mistral moonlight
    olmo opencoder orion phi phi_small phi4 phi4_mini qwen qwen3 qwen3_nothink sailor seed_coder
    seed_oss smollm smollm2 solar telechat telechat2 xuanyuan xverse yayi yi yuan
    """
)


def formatted(model: Model, settings: Mapping[str, Setting]) -> Model:
    """``model`` with the kind that its ``template`` tells where its own name does not."""
    written = settings.get("template")
    if model.kind != "unknown" or written is None or not isinstance(written.value, str):
        return model
    name = written.value
    if name not in _MULTIMODAL and name not in _TEXT:
        return model
    kind = "MLLM" if name in _MULTIMODAL else "LLM"
    family = re.sub(r"(?<=\d)_(?=\d)", ".", name.removesuffix("_nothink")).replace("_", "-")
    location = model.location or written.location
    return replace(model, kind=kind, is_hf_family=True, family=family, location=location)
