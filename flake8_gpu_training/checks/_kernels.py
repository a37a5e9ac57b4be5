"""Which models the kernel libraries know, and which of them suits a run."""

from __future__ import annotations

import re
from typing import Optional

from flake8_gpu_training.checks._scale import is_cuda, is_ray, ranks, spreads_layers, text
from flake8_gpu_training.checks._settings import task
from flake8_gpu_training.frameworks.llamafactory import release_of
from flake8_gpu_training.frameworks.reading import NEWEST, find, is_true, parsed
from flake8_gpu_training.runs.model import Run

# Families behind MODEL_TYPE_TO_APPLY_LIGER_FN of liger-kernel 0.8.5, by how their
# checkpoints are named on the hubs.
_LIGER_FAMILIES = re.compile(
    r"(?i)(?:^|/)(?:meta-)?(?:"
    r"llama-?[234](?![0-9])|codellama|vicuna|tinyllama|deepseek-(?:llm|coder-6|v2|v3|r1)|"
    r"(?:code)?qwen-?(?:1\.5|2|2\.5|3|3\.5)(?![0-9.])|qwq|qvq|"
    r"mistral-(?:7b|nemo|large)|mixtral|pixtral|"
    r"(?:code)?gemma-?(?:[1234]|7b)(?![n0-9])|paligemma|"
    r"phi-?(?:3|3\.5|4)(?![0-9.])|"
    r"granite-?3|"
    r"olmo-?[23]|"
    r"glm-4-(?:9b|32b)-0414|glm-4\.[15]v|"
    r"smollm3|smolvlm2|"
    r"gpt-oss|"
    r"exaone-?4|"
    r"falcon-h1|"
    r"llava-1\.5-.*-hf|internvl3.*-hf"
    r")"
)
# Members of those families that are of another architecture, without Liger kernels.
_WITHOUT_LIGER = re.compile(
    r"(?i)omni|audio|ocr|tts|asr|qwen2-57b|qwen1\.5-moe|gemma-?3n|"
    r"phi.*(?:moe|vision|multimodal|small)|"
    r"granite.*-a\d+|bitnet"
)

# Families of architectures that liger-kernel 0.8.5 has no kernels for.
_LIGER_LESS = re.compile(
    r"(?i)(?:^|/)(?:"
    r"bloomz?-|falcon-?(?:rw|7b|11b|40b|180b)|opt-\d|gpt-?2|gpt-?(?:neo|j)|pythia|mpt-|stablelm|"
    r"codegen-|xglm-|dialogpt-|openai-gpt$|biogpt|cerebras-gpt|"
    r"(?:distil)?bart-|mbart-|pegasus-|blenderbot|"
    r"(?:code)?t5|mt5|flan-t5|starcoder|santacoder|[\w.-]*bert|electra|xlnet|xlm-|"
    r"chatglm|codegeex|baichuan|internlm|internvl|minicpm|xverse|aquila|"
    r"qwen-(?:vl|\d+(?:\.\d+)?b)|phi-?[12](?![0-9])|ernie|hunyuan|telechat|minimax|dbrx|jamba|mamba|"
    r"mobilellm|"
    r"keye-vl|deepseek-(?:vl|ocr)|janus|moss-vl|ovis|emu3|got-ocr|diffusiongemma|cog(?:vlm|agent)|"
    r"dots\.ocr|(?:nvidia-)?nemotron-(?:h|3)|kimi|step-?(?:3|audio)|mplug|docowl|sail-vl|valley|"
    r"tiny-aya|(?:c4ai-)?command-r|smolvlm-|ministral-3-|molmo|florence|idefics|yi-vl|bert-|roberta|deberta|electra"
    r")"
)
# Kinds of models without a head that predicts tokens, or with layers of their own.
_OTHER_KINDS = ("embedding", "audio", "video", "image", "vision", "encoder", "encoder-decoder")

# LLaMA-Factory names the types that it patches itself (model/model_utils/liger_kernel.py of 0.9.0
# to 0.9.6.dev0): the first release that has them, where that is not the switch's own; the first
# match counts.
_OF_LLAMAFACTORY = tuple(
    (re.compile(rf"(?i){pattern}"), since)
    for pattern, since in (
        (r"deepseek-r1-distill", ()),
        (r"qwen-?3\.5-\d+b-a\d", (0, 9, 6)),
        (
            r"qwen-?3-vl|llama-?4|deepseek-(?:v[23]|r1)|gemma-?4|olmo-?3|glm-4\.5v|smollm3|"
            r"exaone|falcon-h1|internvl",
            NEWEST,
        ),
        (r"qwen-?3(?:\.5|-next)", (0, 9, 5)),
        (r"gpt-oss|glm-4\.1v", (0, 9, 4)),
        (r"gemma-?3|glm-4|granite|llava|pixtral|olmo-?2|paligemma|qwen-?3", (0, 9, 3)),
        (r"qwen-?2\.5-vl|llama-?3\.2-\d+b-vision", (0, 9, 2)),
        (r"qwen-?2-vl|qvq", (0, 9, 1)),
    )
)


_NOT_WITH_UNSLOTH = (
    "init_weights",
    "init_lora_weights",
    "use_dora",
    "lora_dtype",
    "use_galore",
    "lisa_activated_layers",
    "use_lisa",
)


def liger_supports(run: Run) -> Optional[bool]:
    """Whether liger-kernel patches the run's model; None when the model is not known."""
    name = _named(run)
    if not name:
        return None
    if _LIGER_FAMILIES.search(name) is not None and not _WITHOUT_LIGER.search(name):
        return run.framework != "llamafactory" or _is_patched_by_llamafactory(run, name)
    is_other = _WITHOUT_LIGER.search(name) or _LIGER_LESS.search(name)
    # A name of the user's own, as that of a checkpoint, tells no architecture.
    return False if is_other or run.model.kind in _OTHER_KINDS else None


def _named(run: Run) -> str:
    """The name that tells the architecture; the path's, or that of LLaMA-Factory's template."""
    name = run.model.known_as.strip().rstrip("/")
    template = find(run, "template") if run.framework == "llamafactory" else None
    is_told = _LIGER_FAMILIES.search(name) or _WITHOUT_LIGER.search(name)
    if is_told or _LIGER_LESS.search(name) or template is None:
        return name
    family = _OF_TEMPLATES.get(str(template.value), "")
    # Qwen's first models share the template of the others, and take code of their own.
    own_code = family == "qwen2" and (
        run.model.is_moe or is_true(find(run, "trust_remote_code")) or _is_before(run, "0.9.2")
    )
    return name if own_code else family or name


# Templates that LLaMA-Factory's register (extras/constants.py, 0.9.1 to 0.9.5) gives models of one
# architecture, mixtures apart.
_OF_TEMPLATES = {
    "qwen": "qwen2",
    "qwen3": "qwen3",
    "llama2": "llama-2",
    "llama3": "llama-3",
    "gpt_oss": "gpt-oss",
}


def _is_before(run: Run, release: str) -> bool:
    """Whether the release at hand is known to be older."""
    return bool(release_of(run)) and parsed(release_of(run)) < parsed(release)


def _is_patched_by_llamafactory(run: Run, name: str) -> bool:
    since = next((first for pattern, first in _OF_LLAMAFACTORY if pattern.search(name)), ())
    return parsed(run.held.get("llamafactory", "") or release_of(run)) >= since != NEWEST


def trains_head(run: Run) -> bool:
    """Whether an adapter sits on the output head, which the fused cross entropy would bypass."""
    names = ("target_modules", "lora_target", "modules_to_save", "additional_target")
    found = (run.setting(name) for name in names)
    return any("lm_head" in str(setting.value) for setting in found if setting is not None)


_OTHER_WEIGHTS = re.compile(r"(?i)awq|gptq|aqlm|hqq|eetq|fp8|int[48](?![0-9])")


def unsloth_loads(run: Run) -> bool:
    """Whether Unsloth's loader takes the weights: ms-swift asks it for 16 bits, or for 8 or 4 of
    bitsandbytes (model/register.py of 4.6.0, load_by_unsloth)."""
    method = text(run, "quantization_method")
    return method in (None, "none", "bnb") and _OTHER_WEIGHTS.search(run.model.known_as) is None


def prefers_unsloth(run: Run) -> bool:
    """Whether Unsloth suits the run better than Liger: LoRA on one GPU under ms-swift.

    Its model classes predict tokens, its attention does not keep packed samples apart, and
    its adapters start from the default or LoftQ only.
    """
    return (
        run.framework == "swift"
        and task(run) == "causal_lm"
        and run.value("packing") is not True
        and run.value("padding_free") is not True
        and not any(run.setting(name) is not None for name in _NOT_WITH_UNSLOTH)
        and text(run, "tuning") == "lora"
        and unsloth_loads(run)
        and ranks(run) == 1
        and text(run, "algorithm") in (None, "pt", "sft")
        and run.value("megatron") is not True
        and run.model.kind == "LLM"
        and not run.model.is_moe
        and not spreads_layers(run)
        and not is_ray(run)
        and is_cuda(run)
    )
