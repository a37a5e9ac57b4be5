"""What several checks ask of SGLang: its model's attention and weights, its defaults by GPU."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Optional

from flake8_gpu_training.checks import _sglang_hosts as hosted
from flake8_gpu_training.checks._engine import (
    EngineJudge,
    answer,
    is_foreign,
    is_lacking,
    is_set,
    lacks,
)
from flake8_gpu_training.checks._judging import cannot_tell, on
from flake8_gpu_training.checks._scale import architecture, has_fp8
from flake8_gpu_training.checks.base import Evidence, Example, Judgement, Status
from flake8_gpu_training.facts import Setting, Unknown, known
from flake8_gpu_training.frameworks.engines import Engine, Mode
from flake8_gpu_training.frameworks.reading import number
from flake8_gpu_training.language import Text

SOURCE = "SGLang 0.5.23, srt/arg_groups"
ENVIRON = "SGLang 0.5.10 and 0.5.23, srt/environ.py"
DOCS = "https://docs.sglang.io/docs/advanced_features"
TUNING = "https://docs.sglang.io/advanced_features/hyperparameter_tuning.html"
RADIX = "https://arxiv.org/abs/2312.07104, RadixAttention"
V4 = "https://lmsys.org/blog/2024-12-04-sglang-v0-4/"
LARGE_EP = "https://lmsys.org/blog/2025-05-05-large-scale-ep"
RL = "https://docs.sglang.io/docs/advanced_features/sglang_for_rl"

PREFILL_GRAPHS = (0, 5, 10)
"""The first release whose prefill runs in CUDA graphs unless told otherwise."""
BREAKABLE = (0, 5, 15)
"""The first release read that captures prefill in segments, and always speculates by V2."""
FA3_DEFAULT = (0, 4, 6)

# SGLang 0.5.23, srt/configs/model_config.py: what its architectures are (MLA, DSA), by the names
# of their checkpoints.
_LATENT = re.compile(
    r"(?i)deepseek[-_]?(?:v2|v3|r1(?!.*distill)|coder[-_]v2|prover[-_]v2|math[-_]v2|vl2)"
    r"|kimi[-_](?:k[1-3]|vl|linear)|moonlight|longcat-flash|minicpm3|glm-5|glm-4\.7-flash"
    r"|mistral-large-3|(?:ring|ling)-(?:mini-linear-)?2\.[5-9]|dots\.?vlm|sarvam|gigachat-?3"
)
_SPARSE = re.compile(r"(?i)deepseek[-_]?(?:v3\.2|math[-_]v2)|glm-5(?![\d-]*\d*b)")
_MIXTURE = re.compile(
    r"(?i)deepseek[-_]?(?:v[2-9]|r1(?!.*distill)|math[-_]v2|ocr)|kimi[-_](?:k\d|linear)|gpt-oss"
    r"|glm-(?:4\.[5-9]|5)(?!v?-flash)|minimax-m|longcat-flash|llama-?4|mixtral|-a\d+(?:\.\d+)?b|moe"
    r"|dbrx|qwen3-(?:coder-)?next|qwen3-coder-480b|mimo-v2|\b(?:ring|ling)-(?:\d|mini|flash|lite|plus)|llada2|laguna|\bhy3"
    r"|step-?3\.\d|mistral-large-3|intern-s1(?!-mini)"
)
_HYBRID = re.compile(
    r"(?i)mamba|jamba|zamba|bamba|qwen3-(?:coder-)?next|qwen3\.[56]|falcon-h1|granite-4|\blfm2"
    r"|nemotron-(?:h|nano|3)|kimi-(?:linear|k3)|jet-nemotron|(?:ring|ling)-2\.[5-9]|minicpm-v-4\.6"
)
_KEPT_AHEAD = re.compile(
    r"(?i)qwen3-(?:coder-)?next|qwen3\.[56]|falcon-h1|granite-4|nemotron-(?:h|nano|3)|minicpm-v-4\.6"
    r"|(?:ring|ling)-2\.[5-9]|kimi-(?:linear|k3)"
)
"""Whose states have a further buffer, so that the scheduler works ahead (arg_groups/overrides.py:
_MAMBA_EXTRA_BUFFER_ARCHS)."""
_OF_LATENT = ("flashmla", "cutlass_mla", "trtllm_mla", "cutedsl_mla", "tokenspeed_mla")
_OF_HEADS = ("trtllm_mha", "dual_chunk_flash_attn", "hpc_ops")
_BLACKWELL_MHA = (0, 5, 10)


def option(engine: Engine, *names: str) -> Setting:
    """The first of the names that somebody wrote, else the first that the release has."""
    written = engine.written(*names)
    if written is not None:
        return written
    had = next((name for name in names if engine.parameter(name) is not None), names[0])
    return engine.option(had)


def number_of(engine: Engine, *names: str) -> Optional[float]:
    """The value of a parameter as a number; None when it is not known or none."""
    setting = option(engine, *names)
    return number(setting.value) if setting.known else None


def is_on(engine: Engine, name: str) -> bool:
    """Whether a switch is known to be on."""
    setting = engine.option(name)
    return setting.known and is_set(setting)


def defaulted(engine: Engine, said: str, variant: str = "") -> Judgement:
    """On as SGLang does by itself, unless settings are out of sight."""
    if engine.is_open or engine.is_remote:
        return cannot_tell(Text("部分参数未能读取", "not all settings could be read"))
    return on(f"{said} ({engine.called})", variant)


def worked_out(engine: Engine, name: str, by: Text) -> Judgement:
    """On with a value that SGLang works out when it starts."""
    found = defaulted(engine, name)
    if found.status is not Status.ENABLED:
        return found
    said = Text(f"{name} {by.zh}（{engine.called}）", f"{name} {by.en} ({engine.called})")
    current = Text(f"已启用：{said.zh}", f"on: {said.en}")
    return replace(found, evidence=(Evidence(said.en, None, said),), current=current)


def branches_of(setting: Setting) -> tuple[object, ...]:
    """The values that the branches of a script give an unknown setting; one that a branch leaves
    empty is none."""
    found = setting.value.candidates if isinstance(setting.value, Unknown) else ()
    return tuple(value for value in found if value not in ("", None))


def numbers_of(setting: Setting) -> tuple[float, ...]:
    """The same where all of several are numbers, else none: one alone stands beside another that
    is not known."""
    found = [number(value) for value in branches_of(setting)]
    numbers = tuple(value for value in found if value is not None)
    return numbers if len(numbers) == len(found) > 1 else ()


def on_either_way(setting: Setting) -> Judgement:
    """On, whichever of its values a branch of the script gives."""
    values = [str(value) for value in branches_of(setting)]
    by = (
        Text("（由脚本分支决定）", " (by a branch of the script)")
        if len(values) > 1
        else Text("，或默认值", ", or the default")
    )
    said = Text(
        f"{setting.name}={' 或 '.join(values)}{by.zh}",
        f"{setting.name}={' or '.join(values)}{by.en}",
    )
    current = Text(f"已启用：{said.zh}", f"on: {said.en}")
    evidence = (Evidence(said.en, setting.location, said),)
    return Judgement(Status.ENABLED, evidence=evidence, current=current)


DECODES_NOT = Text("嵌入模型不解码", "an embedding model decodes nothing")
BY_MEMORY = Text("按 GPU 显存自动计算", "worked out by the GPU's memory")


def switch(name: str, off_text: Text, variant: str = "") -> EngineJudge:
    """The judge of an option that a run may do without."""

    def judge(engine: Engine) -> Judgement:
        return optional(engine, name, off_text, variant)

    return judge


def optional(engine: Engine, name: str, off_text: Text, variant: str = "") -> Judgement:
    """On, off or unknown by a switch that a run may do without."""
    if is_lacking(engine, name):
        return lacks(engine)
    return answer(engine, name, off_text, variant)


def variable(engine: Engine, *names: str) -> Optional[Setting]:
    """A variable of the environment that the run sets."""
    for name in names:
        found = engine.run.environment.get(name)
        if found is not None:
            return found
    return None


# --- the model ---------------------------------------------------------------------------------


def name_of(engine: Engine) -> str:
    """The model's name, "" where it is not known: of a folder without the slash behind it."""
    return (engine.run.model.name or "").rstrip("/")


def _told(engine: Engine, pattern: re.Pattern[str]) -> Optional[bool]:
    if pattern.search(name_of(engine)):
        return True
    return None if engine.run.model.kind == "unknown" else False


def is_latent(engine: Engine) -> Optional[bool]:
    """Whether the model's attention is latent (MLA); None where it is not known."""
    told = _told(engine, _LATENT)
    asked = asked_backend(engine) if told is None else None
    if asked is not None and str(asked.value) in _OF_LATENT:
        return True
    return False if asked is not None and str(asked.value) in _OF_HEADS else told


def is_sparse(engine: Engine) -> Optional[bool]:
    """Whether the model picks the tokens that it attends to (DSA)."""
    return _told(engine, _SPARSE)


def is_mixture(engine: Engine) -> Optional[bool]:
    """Whether the model is a mixture of experts, as also those are that are spread as such."""
    if engine.run.model.is_moe or dispatches(engine):
        return True
    return _told(engine, _MIXTURE)


def is_hybrid(engine: Engine) -> bool:
    """Whether layers of states stand beside attention."""
    return _HYBRID.search(name_of(engine)) is not None


def keeps_ahead(engine: Engine) -> bool:
    """Whether layers of states leave the scheduler free to work ahead."""
    strategy = engine.written("mamba_radix_cache_strategy", "mamba_scheduler_strategy")
    if strategy is not None and strategy.value != "auto":
        return str(strategy.value).startswith("extra_buffer")
    found = _KEPT_AHEAD.search(name_of(engine))
    if found is None or engine.version < BREAKABLE:
        return False
    return not found.group().lower().startswith("kimi") or engine.version >= (0, 5, 20)


# --- sizes -------------------------------------------------------------------------------------


def ranks(engine: Engine) -> Optional[float]:
    """Tensor-parallel ranks, over which attention-data-parallel ones spread, too."""
    return number_of(engine, "tp_size")


def attention_ranks(engine: Engine) -> Setting:
    """Data parallelism of the attention: ``attn_dp_size``, or ``dp_size`` with its switch."""
    newer = engine.written("attn_dp_size")
    if newer is not None:
        return newer
    asked = engine.option("enable_dp_attention")
    if asked.known and is_set(asked):
        size = engine.option("dp_size").value
        note = f"{asked.name}, dp_size={size}" if known(size) else ""
        return replace(asked, value=size, note=note)
    return replace(asked, value=1) if asked.known else asked


def speculates(engine: Engine) -> Optional[bool]:
    """Whether tokens are drafted; None when that is not known."""
    setting = engine.option("speculative_algorithm")
    if engine.release is not None and is_lacking(engine, "speculative_algorithm"):
        return False
    if hosted.drafted(engine) is not None:
        return True
    return is_set(setting) if setting.known else None


def dispatcher(engine: Engine) -> Setting:
    """How experts on several ranks get their tokens: ``deepep``, another library or ``none``."""
    older = engine.written("enable_deepep_moe")
    if older is not None and older.known and is_set(older):
        return replace(older, value="deepep")
    return engine.option("moe_a2a_backend")


def dispatches(engine: Engine) -> Optional[str]:
    """The library that hands tokens to experts; "" for none, None when it is not known."""
    if engine.parameter("moe_a2a_backend") is None and engine.written("moe_a2a_backend") is None:
        older = engine.written("enable_deepep_moe")
        if older is not None and older.known and is_set(older):
            return "deepep"
        return "" if engine.release is not None else None
    setting = dispatcher(engine)
    if not setting.known:
        return None
    return str(setting.value) if is_set(setting) else ""


# --- attention ---------------------------------------------------------------------------------


def asked_backend(engine: Engine) -> Optional[Setting]:
    """The attention backend that somebody asks for: that of prefill where two are given."""
    found = engine.written("prefill_attention_backend", "attention_backend")
    return found if found is not None or engine.is_open else hosted.attention(engine)


def chosen_backend(engine: Engine) -> Optional[str]:
    """The backend of attention; None where it is not known."""
    asked = asked_backend(engine)
    if asked is not None:
        return str(asked.value) if known(asked.value) else None
    return None if engine.is_open else default_backend(engine)


def generation_of(engine: Engine) -> Optional[str]:
    """The generation of the GPU, also by what the attention that is asked for runs on.

    FlashAttention-3 with latent attention takes compute capability 9 (SGLang 0.4.10 to 0.5.23,
    srt/layers/attention/attention_registry.py), else 8 or 9.
    """
    told = architecture(engine.run)
    if told is not None or engine.run.hardware.gpu is not None or is_foreign(engine.run):
        return told
    asked = asked_backend(engine)
    if asked is None or asked.value != "fa3" or is_sparse(engine) is not False:
        return None
    return "Hopper" if is_latent(engine) else None


def multiplies_fp8(engine: Engine) -> Optional[bool]:
    """Whether the GPU's tensor cores take FP8; None when the GPU is not known."""
    has = has_fp8(engine.run)
    return True if has is None and generation_of(engine) == "Hopper" else has


_AMD_GPU = re.compile(r"(?i)mi\d")
_AMD_SCRIPT = re.compile(r"(?i)(?:^|[/_-])(?:rocm|amd)(?=[/_.-]|$)")


def is_for_amd(engine: Engine) -> bool:
    """Whether the run is for AMD's GPUs."""
    asked = engine.written("prefill_attention_backend", "attention_backend")
    if asked is not None and str(asked.value) in ("aiter", "wave"):
        return True
    run = engine.run
    if any(n in ("HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES") for n in run.environment):
        return True
    told = _AMD_GPU.match(run.hardware.gpu or "") or _AMD_SCRIPT.search(run.location.path)
    return told is not None


def is_for_npus(engine: Engine) -> bool:
    """Whether the run is for Ascend NPUs, which have one backend of attention."""
    device = engine.written("device")
    if device is not None:
        return str(device.value) == "npu"
    asked = engine.written("prefill_attention_backend", "attention_backend")
    if asked is not None and asked.value == "ascend":
        return True
    names = engine.run.environment
    return is_foreign(engine.run) and any(n.startswith(("ASCEND_", "NPU_")) for n in names)


def default_backend(engine: Engine) -> Optional[str]:
    """What SGLang takes by itself; None where the GPU or the model leaves it open."""
    if is_for_npus(engine):
        return "ascend"
    generation, latent = generation_of(engine), is_latent(engine)
    if generation is None or latent is None or is_sparse(engine) or is_hybrid(engine):
        return None
    if generation == "Hopper" and engine.version >= FA3_DEFAULT:
        topk = engine.written("speculative_eagle_topk")
        if topk is None or topk.value == 1 or latent:
            return "fa3"
    if generation == "Blackwell":
        return None  # of data centres or of desktops: their kernels differ
    return "triton" if latent else "flashinfer"


def examples(
    bad: str,
    good: str,
    *,
    start: str = "",
    pin: str = "",
    model: str = "Qwen/Qwen3-8B",
    gpus: str = "",
) -> tuple[Example, ...]:
    """A server with the flags that are flagged, and with those that are not.

    ``start`` stands before the flagged command alone; ``gpus``: what SLURM is asked for.
    """
    head = f"#!/bin/bash\n#SBATCH --gres=gpu:{gpus}\n" if gpus else "#!/bin/bash\n"
    files = (("requirements.txt", f"sglang=={pin}\n"),) if pin else ()
    command = f"python -m sglang.launch_server --model-path {model}"
    return (
        Example(
            "sglang",
            "serve.sh",
            f"{head}{start}{command} {bad}".rstrip() + "\n",
            f"{head}{command} {good}".rstrip() + "\n",
            files,
        ),
    )


_ENCODERS = re.compile(r"(?i)embeddinggemma|rerank|\bbge\b|\be5-")
"""Of models that embed those that cannot generate."""


def only_embeds(engine: Engine) -> bool:
    """Whether the engine embeds, and decodes nothing: it is asked to, or the model cannot."""
    told = engine.written("is_embedding")
    if told is not None:
        return told.known and is_set(told)
    return _ENCODERS.search(name_of(engine)) is not None


def samples(engine: Engine) -> bool:
    """Whether the engine generates for a run that trains."""
    return engine.mode is not None and engine.mode.samples


def serves(engine: Engine) -> bool:
    """Whether the engine answers requests of others."""
    return engine.mode in (Mode.SERVE, Mode.ROUTER)
