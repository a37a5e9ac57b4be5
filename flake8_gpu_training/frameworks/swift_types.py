"""What ``--model_type`` of ms-swift says about a model whose path does not name it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from flake8_gpu_training.facts import Setting
from flake8_gpu_training.models import model_of
from flake8_gpu_training.runs.model import Model


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


# LLMModelType, MLLMModelType, BertModelType, RMModelType and RerankerModelType of ms-swift 3.0.3,
# 3.3.1, 3.5.2, 3.8.3, 3.11.3, 3.12.6 (swift/llm/model/constant.py) and 4.6.0 (swift/model).
_MULTIMODAL = _names(
    """
    chatglm4v clef cogagent_chat cogagent_vqa cogvlm cogvlm2 cogvlm2_video deepseek_janus
    deepseek_janus_pro deepseek_ocr deepseek_ocr2 deepseek_v41 deepseek_vl deepseek_vl2
    diffusion_gemma doc_owl2 dots_ocr emu3_chat emu3_gen ernie_vl ernie_vl_thinking florence
    gemma3_vision gemma3n gemma4 gemma4_unified glm4_1v glm4_5v glm4v glm4v_moe glm5_next
    glm_edge_v glm_ocr got_ocr2 got_ocr2_hf hunyuan_ocr idefics3 interns1 internvl internvl2
    internvl2_5 internvl2_phi3 internvl3 internvl3_5 internvl3_5_gpt internvl_chat internvl_gpt_hf
    internvl_hf internvl_phi3 jev jina_reranker_m0 keye_vl keye_vl_1_5 kimi_k25 kimi_k3 kimi_vl
    llama3_1_omni llama3_2_vision llama3_llava_next llama3_llava_next_hf llama4 llava1_5_hf
    llava1_6_mistral llava1_6_mistral_hf llava1_6_vicuna_hf llava1_6_yi llava1_6_yi_hf
    llava_llama3_1_hf llava_llama3_hf llava_next_qwen llava_next_qwen_hf llava_next_video_hf
    llava_next_video_yi_hf llava_onevision1_5 llava_onevision2 llava_onevision_hf megrez_omni
    midashenglm mimo_v2 mimo_vl minicpmo minicpmo2_6 minicpmv minicpmv2_5 minicpmv2_6 minicpmv4
    minicpmv4_5 minicpmv4_6 minicpmv4_7 minimax_m3_vl minimax_vl mistral3 mistral3_2506 mistral_2503
    mistral_2506 mistral_2512 mistral_2512_thinking molmo molmo2 molmoe monkeyocrv2 moss_vl
    mplug_owl2 mplug_owl2_1 mplug_owl3 mplug_owl3_241101 muse_glimmer omnijev ovis1_6
    ovis1_6_llama3 ovis2 ovis2_5 ovis_ocr2 paddle_ocr paddleocr_vl paligemma phi3_vision
    phi4_multimodal pixtral qvq qwen2_5_omni qwen2_5_vl qwen2_audio qwen2_gme qwen2_vl qwen3_5
    qwen3_5_emb qwen3_5_moe qwen3_asr qwen3_moe_vl qwen3_omni qwen3_omni_moe qwen3_tts qwen3_vl
    qwen3_vl_emb qwen3_vl_moe qwen3_vl_reranker qwen4_exp qwen_audio qwen_vl sail_vl2 step3_vl
    step_audio step_audio2_mini unlimited_ocr valley wemm_embedding xcomposer2 xcomposer2_4khd
    xcomposer2_5 xcomposer2_5_ol_audio yi_vl
    """
)
_TEXT = _names(
    """
    atom aya baichuan baichuan2 baichuan_m1 bailing_hybrid bailing_moe bluelm c4ai chatglm2 chatglm3
    chatglm4 codefuse_codegeex2 codefuse_codellama codefuse_qwen codegeex4 dbrx deepseek
    deepseek_moe deepseek_r1 deepseek_r1_distill deepseek_v2 deepseek_v2_5 deepseek_v3 deepseek_v32
    deepseek_v3_1 deepseek_v3_2 deepseek_v4 devstral dots1 ernie ernie4_5 ernie4_5_moe
    ernie_thinking gemma gemma2 gemma3_text glm4 glm4_0414 glm4_5 glm4_7 glm4_moe glm4_moe_lite
    glm4_z1_rumination glm_edge glm_moe_dsa gpt_oss grok hunyuan hunyuan_moe hunyuan_v1_dense hy_v3
    internlm internlm2 internlm3 iquestcoder kimi_k2 ling ling2 llama llama3 llama3_1 llama3_2
    longchat longwriter_llama3_1 mamba marco_o1 megrez mengzi3 mimo mimo_rl minicpm minicpm3
    minicpm_chatml minicpm_moe minimax minimax_m1 minimax_m2 minimind mistral mistral_2501
    mistral_nemo mixtral modelscope_agent moonlight nemotron_h numina olmoe openbuddy_llama
    openbuddy_llama3 openbuddy_mistral openbuddy_mixtral orion phi2 phi3 phi3_moe phi3_small phi4
    polylm qwen qwen2 qwen2_5 qwen2_5_math qwen2_moe qwen3 qwen3_coder qwen3_guard qwen3_moe
    qwen3_moe_thinking qwen3_next qwen3_next_thinking qwen3_nothinking qwen3_thinking qwq
    qwq_preview reflection ring2 seed_oss seggpt skywork skywork_o1 spark2_5 sus telechat telechat2
    wizardlm2 wizardlm2_moe xing4_0 xverse xverse_moe yi yi_coder youtu_llm yuan2 zephyr ziya
    gemma_reward internlm2_reward llama3_2_reward qwen2_5_math_reward qwen2_5_prm qwen2_reward
    """
)
_EMBEDDING = _names(
    "bge_reranker gemma_emb modern_bert_gte modern_bert_gte_reranker qwen2_gte qwen3_emb"
    " qwen3_reranker"
)
_ENCODER = frozenset(("bert", "modern_bert"))
_KINDS: tuple[tuple[frozenset[str], str], ...] = (
    (_MULTIMODAL, "MLLM"),
    (_TEXT, "LLM"),
    (_EMBEDDING, "embedding"),
    (_ENCODER, "encoder"),
)
_MIXTURE = re.compile(r"moe(?![a-z])|mixtral|gpt_oss|dbrx|grok|_a3b|deepseek_(?:r1$|v3)|kimi_k")
# A checkpoint of the type, where its name does not follow from the type's.
_CHECKPOINTS: Mapping[str, str] = {
    "chatglm3": "chatglm3-6b",
    "deepseek_r1": "DeepSeek-R1",
    "gemma3_vision": "gemma-3-4b-it",
    "got_ocr2": "GOT-OCR2_0",
    "got_ocr2_hf": "GOT-OCR-2.0-hf",
    "internlm": "internlm-7b",
    "keye_vl": "Keye-VL-8B-Preview",
    "keye_vl_1_5": "Keye-VL-1_5-8B",
    "kimi_k2": "Kimi-K2-Instruct",
    "llama3_2_vision": "Llama-3.2-11B-Vision",
    "llama4": "Llama-4-Scout-17B-16E",
    "minicpm3": "MiniCPM3-4B",
    "phi4": "phi-4",
    "pixtral": "pixtral-12b",
    "qvq": "QVQ-72B-Preview",
    "qwen": "Qwen-7B",
    "qwen2_audio": "Qwen2-Audio-7B",
    "qwen3_omni": "Qwen3-Omni-30B-A3B-Instruct",
    "qwen3_omni_moe": "Qwen3-Omni-30B-A3B-Instruct",
    "qwq": "QwQ-32B",
    "seed_oss": "Seed-OSS-36B-Instruct",
}
# Of these the registries above hold one size alone.
_OF_ONE_SIZE = _names(
    "chatglm3 deepseek_r1 got_ocr2 got_ocr2_hf keye_vl keye_vl_1_5 kimi_k2 minicpm3 phi4 pixtral"
    " qvq qwen2_audio qwen3_omni qwen3_omni_moe qwq seed_oss"
)


def is_known_type(name: str) -> bool:
    """Whether ms-swift itself registers a model type of this name."""
    return any(name in names for names, _ in _KINDS)


def typed(model: Model, settings: Mapping[str, Setting]) -> Model:
    """``model`` with what its ``model_type`` tells where its own name does not."""
    model = model if model.name else _continued(model, settings)
    written = settings.get("model_type")
    if written is None or not isinstance(written.value, str):
        return model
    name = written.value
    kind = next((kind for names, kind in _KINDS if name in names), "")
    if not kind:
        # Up to 2.x a type names one checkpoint: qwen1half-7b-chat.
        return _completed(model, model_of(name), written) if "-" in name else model
    hub = _CHECKPOINTS.get(name, re.sub(r"(?<=\d)_(?=\d)", ".", name).replace("_", "-"))
    if name in _OF_ONE_SIZE:
        model = _completed(model, model_of(hub), written)
    if model.kind == "unknown":
        mixture = _MIXTURE.search(name) is not None
        is_hf = kind in ("LLM", "MLLM")
        model = replace(model, kind=kind, is_moe=mixture, is_hf_family=is_hf, family=hub)
    elif kind == "MLLM" and model.kind in ("LLM", "encoder", "embedding"):
        model = replace(model, kind=kind)
    return replace(model, location=model.location or written.location)


def _completed(model: Model, checkpoint: Model, at: Setting) -> Model:
    """``checkpoint``, at the path that the run gives, where it tells more than that path."""
    if model.parameters or model.layers or checkpoint.kind == "unknown":
        return model
    return replace(
        checkpoint,
        name=model.name,
        family=checkpoint.name or "",
        source=f"model_type {at.value}",
        location=model.location or at.location,
    )


def _continued(model: Model, settings: Mapping[str, Setting]) -> Model:
    """The weights that a full training of ms-swift 3 goes on from (base_args.py)."""
    tuning = next((settings[n].value for n in ("tuner_type", "train_type") if n in settings), None)
    folder = settings.get("ckpt_dir")
    if tuning != "full" or folder is None or not isinstance(folder.value, str):
        return model
    return replace(model_of(folder.value), location=folder.location)
