"""GPU110, GPU111, GPU211 to GPU214, GPU311 to GPU313, GPU514, GPU617 to GPU625, GPU909, GPU910:
what LlamaFactory alone has, most of it optional."""

from __future__ import annotations

import re
from typing import Callable, Optional

from flake8_gpu_training.checks import _flow as flow
from flake8_gpu_training.checks._by_framework import by_framework
from flake8_gpu_training.checks._judging import (
    Judge,
    advise,
    by_itself,
    cannot_apply,
    cannot_tell,
    excluding,
    of_training,
    off,
    on,
)
from flake8_gpu_training.checks._kernels import liger_supports
from flake8_gpu_training.checks._llamafactory import (
    OLDER,
    is_quantized,
    is_quantized_ahead,
    source_of,
)
from flake8_gpu_training.checks._scale import (
    architecture,
    gpus,
    is_cuda,
    is_recurrent,
    number,
    text,
)
from flake8_gpu_training.checks._settings import algorithm, is_on, parameter
from flake8_gpu_training.checks._starting import unsharded_as_far_as_seen
from flake8_gpu_training.checks.base import Check, Example, Impact, Item, Judgement, Priority
from flake8_gpu_training.facts import Setting
from flake8_gpu_training.frameworks.at_hand import lacks
from flake8_gpu_training.frameworks.llamafactory import is_unreleased, release_of
from flake8_gpu_training.frameworks.reading import find, parsed, truth
from flake8_gpu_training.language import Text
from flake8_gpu_training.runs.model import Run, RunKind

_MODEL = "llamafactory 0.9.1 to 0.9.5, hparams/model_args.py"
_DATA = "llamafactory 0.9.1 to 0.9.5, hparams/data_args.py"
_TUNING = "llamafactory 0.9.1 to 0.9.5, hparams/finetuning_args.py"
_PARSER = "llamafactory 0.9.1 to 0.9.5, hparams/parser.py"
_VLLM = "https://blog.vllm.ai/2023/06/20/vllm.html"
_CHECKPOINTING = "llamafactory 0.9.1 to 0.9.5, model/model_utils/checkpointing.py"

_OTHER = Text("非 LlamaFactory 任务", "not a LlamaFactory run")
_LORA_ONLY = Text("仅用于 LoRA", "for LoRA only")
_SFT_ONLY = Text("仅用于 SFT", "for supervised tuning only")
_NO_CHECKPOINTS = Text("未启用激活重计算", "activations are not recomputed")
_ADAPTERS = ("lora", "oft")

Obstacle = Callable[[Run], Optional[Text]]


def _of_llamafactory(judge: Judge) -> Judge:
    """``judge`` for LlamaFactory's training runs: the parameters are its own."""

    @of_training(alone=True)
    def judged(run: Run) -> Judgement:
        return judge(run) if run.framework == "llamafactory" else cannot_apply(_OTHER)

    return judged


def _is_too_new(run: Run, name: str) -> bool:
    """Whether no release that the project may install has the parameter."""
    return lacks(run, "llamafactory", "train", name)


_OTHER_MODEL = Text("Megatron 不构建该模型", "Megatron builds a model of its own")
# What Megatron's route takes too: arguments of the data, and of Transformers.
_ANY_MODEL = ("mask_history", "auto_find_batch_size")


def _own_model(run: Run, name: str) -> Optional[Text]:
    """That Megatron's route reads no parameter of Transformers' models and losses."""
    is_read = run.value("megatron") is not True or name in _ANY_MODEL
    return None if is_read else _OTHER_MODEL


def _optional(
    name: str,
    obstacle: Obstacle,
    hint: Text,
    variant: str = "",
    own: bool = True,
    decided_by: str = "",
) -> Judge:
    """Judges a switch that a run may do without; ``obstacle`` says why it cannot apply.

    ``own``: LlamaFactory declares it, and not Transformers. ``decided_by``: the practice that
    ``obstacle`` asks about.
    """

    @_of_llamafactory
    def judge(run: Run) -> Judgement:
        setting = parameter(run, name)
        if not setting.known:
            return cannot_tell(setting)
        if setting.explicit and is_on(setting):
            return on(setting, variant)
        if decided_by and not run.practice(decided_by).known:
            return cannot_tell(run.practice(decided_by))
        why = _own_model(run, name) or obstacle(run)
        why = why or (OLDER if own and _is_too_new(run, name) else None)
        return off(hint, setting) if why is None else cannot_apply(why)

    return judge


def _unless(applies: Callable[[Run], bool], why: Text) -> Obstacle:
    return lambda run: None if applies(run) else why


def _tunes(run: Run, *names: str) -> bool:
    return text(run, "tuning") in names


def _is_sft(run: Run) -> bool:
    return algorithm(run) == "sft"


def not_for_model(run: Run) -> tuple[str, ...]:
    """Parameters with which the run's model does not train, or not as it should."""
    packed = ("packing", "neat_packing") if is_recurrent(run) else ()
    return packed if liger_supports(run) is not False else (*packed, "enable_liger_kernel")


# --- GPU110, GPU111: FSDP with QLoRA, Ray ---

_ONE_GPU = Text("单卡训练", "one GPU")
_QUANTIZED_NAME = re.compile(r"(?i)awq|gptq|aqlm|bnb|int4|4-?bit")


@_of_llamafactory
def _fsdp_qlora(run: Run) -> Judgement:
    if not run.practice("tuning").known:
        return cannot_tell(run.practice("tuning"))
    fsdp, bits = run.practice("fsdp"), run.practice("quantization_bits")
    if not _tunes(run, *_ADAPTERS):
        return cannot_apply(_LORA_ONLY)
    if gpus(run) == 1:
        return cannot_apply(_ONE_GPU)
    if not bits.known:
        return cannot_tell(bits)
    quantized = bool(bits.value or _QUANTIZED_NAME.search(run.model.name or ""))
    if quantized and not fsdp.known and not number(run, "zero_stage"):
        return cannot_tell(unsharded_as_far_as_seen(run, fsdp))
    if quantized and text(run, "fsdp") not in (None, "none", "no_shard"):
        return on(fsdp)
    return off(
        Text("可选：显存不足时把量化基座切分到多卡", "optional: shards a quantized base over GPUs")
    )


@_of_llamafactory
def _ray(run: Run) -> Judgement:
    switch = run.environment.get("USE_RAY")
    workers = parameter(run, "ray_num_workers", default=1)
    if switch is not None:
        if not switch.known:
            return cannot_tell(switch)
        if str(switch.value).lower() in ("true", "y", "1"):
            return on(switch)
    elif run.command is None and workers.explicit:
        return on(workers)  # what reads it is started by Ray alone
    if gpus(run) == 1:
        return cannot_apply(_ONE_GPU)
    if _is_too_new(run, "ray_num_workers"):
        return cannot_apply(OLDER)
    return off(Text("可选：由 Ray 集群启动各进程", "optional: a Ray cluster starts the processes"))


# --- GPU211 to GPU214: precision of single layers, ways of checkpointing ---


def _norms_in_fp32(run: Run) -> Optional[Text]:
    """Why upcasting norms changes nothing: trained weights are FP32 (model/adapter.py); or why
    FSDP1 refuses it, which flattens a layer (torch/distributed/fsdp/_flat_param.py)."""
    half = run.value("precision") == "pure-bf16" or is_on(parameter(run, "use_badam"))
    if _tunes(run, "full"):
        if half or number(run, "zero_stage") == 3:
            return None
        return Text("全参训练的权重本来就是 FP32", "weights that are trained are FP32 as it is")
    is_flat = number(run, "fsdp_version") == 1 and text(run, "fsdp") not in (None, "none")
    return _ONE_TYPE if is_flat and text(run, "precision") != "fp32" else None


_ONE_TYPE = Text(
    "FSDP1 要求同一层的参数类型一致", "FSDP1 needs the parameters of a layer in one type"
)
_LAYERNORM = _optional(
    "upcast_layernorm",
    _norms_in_fp32,
    Text(
        "可选：量化训练时 LlamaFactory 建议启用",
        "optional: LlamaFactory recommends it for quantized training",
    ),
)


def _no_logits(run: Run) -> Optional[Text]:
    if run.value("liger_kernel") is True and algorithm(run) in ("pt", "sft"):
        return Text("Liger 融合损失不产生 lm_head 输出", "Liger's fused loss has no such output")
    return None


_LMHEAD = _optional(
    "upcast_lmhead_output",
    _no_logits,
    Text("可选：数值不稳定时启用，占用更多显存", "optional: steadier, at the cost of memory"),
)


_MEGATRON = Text("Megatron 自有重计算", "Megatron recomputes in its own way")


def _no_unsloth_checkpoints(run: Run) -> Optional[Text]:
    if run.value("gradient_checkpointing") is False:
        return _NO_CHECKPOINTS
    if is_on(parameter(run, "use_kt", default=False)) and is_unreleased(run):
        return Text("KTransformers 不支持", "not with KTransformers")
    return None if is_cuda(run) else Text("非 CUDA 设备", "not a CUDA device")


@_of_llamafactory
def _unsloth_checkpoints(run: Run) -> Judgement:
    disabled = find(run, "disable_gradient_checkpointing")
    if disabled is not None and is_on(disabled):
        return cannot_apply(_NO_CHECKPOINTS)
    return _UNSLOTH_GC(run)


_UNSLOTH_GC = _optional(
    "use_unsloth_gc",
    _no_unsloth_checkpoints,
    Text(
        "可选：把检查点卸载到主机内存", "optional: keeps what is checkpointed in the host's memory"
    ),
)


@_of_llamafactory
def _reentrant(run: Run) -> Judgement:
    if run.value("megatron") is True:
        return cannot_apply(_MEGATRON)
    checkpointing = run.practice("gradient_checkpointing")
    if not checkpointing.known:
        return cannot_tell(checkpointing)
    if checkpointing.value is False:
        return cannot_apply(_NO_CHECKPOINTS)
    if is_on(parameter(run, "use_unsloth_gc")):
        return cannot_apply(Text("Unsloth 检查点自有实现", "Unsloth's checkpointing is its own"))
    setting = run.practice("reentrant_checkpointing")
    if not setting.known:
        return cannot_tell(setting)
    if setting.value is True and number(run, "fsdp_version") == 2:
        return _advise_non_reentrant(run, setting)
    return on(setting)


def _advise_non_reentrant(run: Run, setting: Setting) -> Judgement:
    """For releases before 0.9.4, which do not see to it themselves."""
    return advise(
        run,
        "from 0.9.4 on LlamaFactory itself turns the reentrant mode off under FSDP2",
        Text("FSDP2 下使用重入式检查点", "reentrant checkpointing under FSDP2"),
        Text("设置 use_reentrant_gc: false", "set use_reentrant_gc to false"),
        parameters={"use_reentrant_gc": False},
        at=setting,
    )


# --- GPU311 to GPU313: attention and engines ---

_SHIFTED = 8192  # tokens from which LongLoRA was made


def _not_for_shifts(run: Run) -> Optional[Text]:
    if not _tunes(run, "lora"):
        return _LORA_ONLY
    if algorithm(run) == "ppo":
        return Text("PPO 不支持", "not with PPO")
    name = (run.model.name or "").lower()
    if name and "llama" not in name and "vicuna" not in name and run.model.kind != "unknown":
        return Text("仅支持 LLaMA 结构", "for the LLaMA architecture only")
    if parsed(release_of(run) or "0.9.5") >= (0, 9, 4):
        return _PATCH_TOO_OLD
    if (number(run, "max_length") or 0) < _SHIFTED:
        return Text("序列较短", "the sequences are short")
    return None


# model/model_utils/longlora.py and extras/misc.py of 0.9.4 and 0.9.5: below 4.48, and from 4.51 on.
_PATCH_TOO_OLD = Text(
    "其补丁需要 Transformers 4.48 以下，该版本要求更新的",
    "its patch needs Transformers below 4.48, and this release a newer one",
)


_SHIFT = _optional(
    "shift_attn",
    _not_for_shifts,
    Text("可选：长序列 LoRA 的稀疏注意力", "optional: sparse attention for LoRA on long sequences"),
    decided_by="tuning",
)


def _not_for_kt(run: Run) -> Optional[Text]:
    if run.model.name and run.model.parameters is not None and not run.model.is_moe:
        return _DENSE
    if is_unreleased(run) and _tunes(run, "full"):
        return None if run.model.is_moe else _DENSE  # hparams/model_args.py, get_kt_config_dict
    if not _tunes(run, "lora") or algorithm(run) != "sft":
        return Text("仅用于 LoRA SFT", "for supervised tuning with LoRA only")
    return None if run.model.is_moe else _DENSE


_DENSE = Text("非 MoE 模型", "not a mixture of experts")


_KT = _optional(
    "use_kt",
    _not_for_kt,
    Text("可选：专家放在 CPU 上计算", "optional: the experts are computed by the CPU"),
    "ktransformers",
    decided_by="tuning",
)


@_of_llamafactory
def _v1_kernels(run: Run) -> Judgement:
    setting = parameter(run, "use_v1_kernels", default=False)
    if not setting.known:
        return cannot_tell(setting)
    nvidia = architecture(run) is not None and is_cuda(run)
    if is_on(setting) and not nvidia:
        return on(setting)
    if is_cuda(run):
        return cannot_apply(Text("只有 NPU 融合算子", "its kernels are for NPUs only"))
    return off(Text("可选：NPU 融合算子", "optional: fused kernels for NPUs"), setting)


# --- GPU514: preprocessing in groups ---

_SMALL_GROUP = 100  # samples below which the overhead of each call shows


_GROUPS_OF_DATASETS = Text(
    "datasets.map 默认每批 1000 条", "datasets.map takes 1000 samples at a time by default"
)


@_of_llamafactory
def _preprocessing_batch(run: Run) -> Judgement:
    name = "preprocessing_batch_size"
    setting = parameter(run, name, default=1000, source=source_of(run, "hparams/data_args.py"))
    if not setting.known:
        return cannot_tell(setting)
    is_cached = run.value("pretokenized") is True and run.value("streaming") is not True
    # Who gives the workers that tokenise makes the cache by this run, or may have to.
    if is_cached and not run.practice("preprocessing_workers").explicit:
        return cannot_apply(Text("使用预分词缓存", "the tokenised data are cached"))
    if not setting.explicit and _is_too_new(run, name):
        return by_itself(_GROUPS_OF_DATASETS)
    value = setting.value
    if isinstance(value, int) and value >= _SMALL_GROUP:
        return on(setting)
    return off(
        Text("分词批较小（默认 1000）", "small groups are tokenised (the default is 1000)"), setting
    )


# --- GPU617 to GPU625: adapters' start, layers, losses ---


@_of_llamafactory
def _start(run: Run) -> Judgement:
    if not run.practice("tuning").known:
        return cannot_tell(run.practice("tuning"))
    if not _tunes(run, "lora"):
        return cannot_apply(_LORA_ONLY)
    setting = parameter(run, "pissa_init")
    if not setting.known:
        return cannot_tell(setting)
    if is_on(setting):
        return on(setting, "pissa")
    for name in ("adapter_folder", "adapter_name_or_path", "model_name_or_path"):
        written = find(run, name)
        if written is None or not isinstance(written.value, str):
            continue
        for variant in ("pissa", "loftq"):
            if variant in written.value.lower():
                return on(written, variant)
    if _continues_adapter(run):
        return cannot_apply(_CONTINUED)
    if is_on(parameter(run, "use_kt", default=False)):
        return cannot_apply(_OWN_ADAPTERS)
    return _by_default(no_pissa(run), _NO_LOFTQ if is_quantized_ahead(run) else None)


_OWN_ADAPTERS = Text("该后端自行创建适配器", "its back end makes the adapters")


_CONTINUED = Text("沿用已有适配器，不做初始化", "an adapter is trained on: nothing is initialised")
# scripts/loftq_init.py quantizes by bitsandbytes what it loads in 16 bits.
_NO_LOFTQ = Text("LoftQ 需要 16 位的原始权重", "LoftQ starts from weights in 16 bits")


def _by_default(no_pissa: Optional[Text], no_loftq: Optional[Text]) -> Judgement:
    """No start is asked for: what may be, and what may not."""
    ways = [("PiSSA", "PiSSA")] if no_pissa is None else []
    if no_loftq is None:
        ways.append(("用脚本 loftq_init.py 做 LoftQ", "LoftQ by scripts/loftq_init.py"))
    zh, en = "，或".join(way[0] for way in ways), ", or ".join(way[1] for way in ways)
    answer = off(Text(f"默认初始化（可选：{zh}）", f"default initialisation (optional: {en})"))
    for why, variant in ((no_pissa, "pissa"), (no_loftq, "loftq")):
        answer = excluding(answer, why, variant) if why is not None else answer
    return answer


def _continues_adapter(run: Run) -> bool:
    """Whether an adapter is trained on, and no new one made (model/adapter.py)."""
    given = find(run, "adapter_name_or_path")
    is_given = given is not None and given.known and bool(given.value)
    return is_given and not is_on(parameter(run, "create_new_adapter", default=False))


def no_pissa(run: Run) -> Optional[Text]:
    """Why ``pissa_init`` is refused, or has no say (hparams/finetuning_args.py, parser.py,
    model/adapter.py, 0.8.3 to 0.9.5)."""
    stage, loss = algorithm(run), parameter(run, "pref_loss", default="sigmoid")
    if stage in ("ppo", "kto"):
        return Text(f"{stage} 训练不支持", f"not in {stage} training")
    if stage == "dpo" and loss.value not in ("orpo", "simpo"):
        return Text("带参考模型的 DPO 不支持", "not in DPO with a reference model")
    if is_quantized(run):
        return Text(
            "量化权重上不支持 pissa_init（可预先用 scripts/pissa_init.py）",
            "pissa_init is refused over quantized weights (scripts/pissa_init.py goes before)",
        )
    if number(run, "zero_stage") == 3:
        return Text(
            "ZeRO-3 下不支持 pissa_init（可预先用 scripts/pissa_init.py）",
            "pissa_init is refused under ZeRO-3 (scripts/pissa_init.py goes before)",
        )
    return _OWN_ADAPTERS if run.value("unsloth") is True else None


# extras/constants.py, MOD_SUPPORTED_MODELS (0.8.3 to 0.9.5): bloom, falcon, gemma, llama,
# mistral, mixtral, phi and starcoder2, by model_type: these families have others.
_NO_DEPTHS = re.compile(
    r"(?i)(?:^|[/_.-])(?:qwen|qwq|qvq|glm|chatglm|internlm|intern-?(?:vl|s1)|gemma-?[234]|phi-?[34]|"
    r"deepseek-(?:v[23]|vl|coder-v2)|baichuan|mimo|minicpm|gpt-?oss|moss|cohere|command|olmo|"
    r"hunyuan|ernie|seed|llava|paligemma|pixtral|granite|exaone|kimi|smollm3)"
)


def _not_for_depths(run: Run) -> Optional[Text]:
    if _NO_DEPTHS.search(run.model.known_as):
        return Text("不支持该模型结构", "not for this architecture")
    if not _tunes(run, "full"):
        return Text(
            "新增的路由器为随机初始化，冻结的权重中不会被训练（全参训练才训练它们）",
            "the routers that it adds are random, and stay so in all that is frozen: full tuning "
            "trains them",
        )
    return None


_DEPTHS = _optional(
    "mixture_of_depths",
    _not_for_depths,
    Text(
        "可选：部分 token 跳过层（改变模型结构）",
        "optional: tokens skip layers (changes the model)",
    ),
    decided_by="tuning",
)
_PRO = _optional(
    "use_llama_pro",
    _unless(lambda run: not _tunes(run, "full"), Text("全参训练不适用", "not with full tuning")),
    Text("可选：只训练扩展出的层", "optional: trains blocks that expand the model"),
    decided_by="tuning",
)


@_of_llamafactory
def _freeze(run: Run) -> Judgement:
    setting = run.practice("tuning")
    if not setting.known:
        return cannot_tell(setting)
    if _tunes(run, "freeze"):
        return on(setting)
    if run.value("megatron") is True:
        return cannot_apply(_OTHER_MODEL)
    if _tunes(run, *_ADAPTERS):
        return cannot_apply(Text("适配器已冻结基座", "adapters leave the base model frozen"))
    return off(Text("可选：只训练部分层", "optional: some layers are trained"), setting)


_SFT_LOSS = _unless(_is_sft, _SFT_ONLY)
_ASFT = _optional(
    "use_asft_loss",
    _SFT_LOSS,
    Text("可选：ASFT 损失（需参考模型）", "optional: the ASFT loss (keeps a reference model)"),
    "asft",
    decided_by="algorithm",
)
_EAFT = _optional(
    "use_eaft_loss",
    _SFT_LOSS,
    Text("可选：EAFT 损失", "optional: the EAFT loss"),
    "eaft",
    decided_by="algorithm",
)
_HISTORY = _optional(
    "mask_history",
    _SFT_LOSS,
    Text("可选：多轮数据只学最后一轮", "optional: only the last turn is learnt"),
    decided_by="algorithm",
)


@_of_llamafactory
def _prompt(run: Run) -> Judgement:
    if not run.practice("algorithm").known:
        return cannot_tell(run.practice("algorithm"))
    if not _is_sft(run):
        return cannot_apply(_SFT_ONLY)
    where = source_of(run, "hparams/data_args.py")
    setting = parameter(run, "train_on_prompt", default=False, source=where)
    if not setting.known:
        return cannot_tell(setting)
    if is_on(setting):
        return off(Text("对提示词也计损失", "prompts are learnt too"), setting)
    return on(setting)


def _not_searched(run: Run) -> Optional[Text]:
    if number(run, "zero_stage") == 3:
        return Text("ZeRO-3 不支持", "not with ZeRO-3")
    return None


_AUTO_BATCH = _optional(
    "auto_find_batch_size",
    _not_searched,
    Text("可选：显存不足时自动减半批大小", "optional: halves the batch when memory is short"),
    own=False,
)


# --- GPU909, GPU910: generating ---

_TRAINS = Text("训练中不使用推理后端", "training takes no inference engine")
_NO_MODEL = Text("未加载生成模型", "no model generates")


def _of_generation(judge: Judge) -> Judge:
    """``judge`` for LlamaFactory's chats and servers; while it trains the cache is off."""

    def judged(run: Run) -> Judgement:
        if run.framework != "llamafactory":
            return cannot_apply(_OTHER)
        if run.kind is RunKind.TRAIN:
            return cannot_apply(_TRAINS)
        return judge(run) if run.kind in (RunKind.SERVE, RunKind.INFER) else cannot_apply(_NO_MODEL)

    return judged


@_of_generation
def _engine(run: Run) -> Judgement:
    setting = parameter(run, "infer_backend", default="huggingface", source=_MODEL)
    if not setting.known:
        return cannot_tell(setting)
    if any(find(run, name) is not None for name in ("do_predict", "do_eval")):
        return cannot_apply(Text("评测只用 Transformers", "Transformers alone evaluates"))
    name = str(setting.value).lower()
    if name in ("vllm", "sglang"):
        return on(setting, name)
    if name != "huggingface" or not _answers_many(run):
        return off(Text("可选：vLLM 或 SGLang 后端", "optional: vLLM or SGLang"), setting)
    return advise(
        run,
        "Transformers answers one request after the other; vLLM batches them as they come",
        Text("用 Transformers 提供服务", "Transformers serves the model"),
        Text("改用 vLLM 后端（先 pip install vllm）", "serve with vLLM (pip install vllm first)"),
        parameters={"infer_backend": "vllm"},
        variant="vllm",
        at=setting if setting.explicit else None,
    )


def _answers_many(run: Run) -> bool:
    """Whether an API serves a text model as it is: vLLM takes no bits on the fly."""
    api = run.command is not None and any(word.text == "api" for word in run.command.words)
    plain = find(run, "quantization_bit") is None and run.model.kind == "LLM"
    return api and plain and is_cuda(run)


@_of_generation
def _cache(run: Run) -> Judgement:
    engine = parameter(run, "infer_backend", default="huggingface")
    if not engine.known:
        return cannot_tell(engine)
    if str(engine.value).lower() != "huggingface":
        return cannot_apply(Text("推理引擎自带 KV Cache", "the engine has a cache of its own"))
    setting = parameter(run, "use_kv_cache", default=True, source=_MODEL)
    if not setting.known:
        return cannot_tell(setting)
    if truth(setting.value) is not False:
        return on(setting)
    return advise(
        run,
        "without the cache every token recomputes all that came before it",
        Text("KV Cache 被关闭", "the KV cache is off"),
        Text("设置 use_kv_cache: true", "set use_kv_cache to true"),
        parameters={"use_kv_cache": True},
        at=setting,
    )


def _item(
    category: str, identifier: str, points: float = 1, group: str = "", variant: str = ""
) -> Item:
    return Item("llamafactory", category, identifier, points, group, variant)


def _api(flag: str) -> str:
    return (
        "llamafactory-cli api --model_name_or_path Qwen/Qwen2.5-7B-Instruct \\\n"
        f"    --template qwen{flag}\n"
    )


_FSDP2 = """\
distributed_type: FSDP
fsdp_config:
  fsdp_auto_wrap_policy: TRANSFORMER_BASED_WRAP
  fsdp_version: 2
mixed_precision: bf16
num_machines: 1
num_processes: 8
"""
_RECIPE = """\
model_name_or_path: Qwen/Qwen2.5-7B-Instruct
stage: sft
do_train: true
finetuning_type: full
dataset: alpaca_en_demo
template: qwen
bf16: true
{}"""
_SHARDED = (
    ("fsdp2.yaml", _FSDP2),
    ("requirements.txt", "llamafactory==0.9.3\n"),
    (
        "train.sh",
        "accelerate launch --config_file fsdp2.yaml src/train.py sft.yaml\n",
    ),
)

CHECKS: tuple[Check, ...] = (
    Check(
        "GPU110",
        "fsdp-qlora",
        Text("FSDP + QLoRA", "FSDP with QLoRA"),
        Priority.LOW,
        _fsdp_qlora,
        why="A quantized base that one GPU cannot hold is sharded over several.",
        fix="Launch with accelerate and an FSDP file, with quantization_bit 4 (bitsandbytes).",
        items=(_item("D", "fsdp-qlora"),),
        difficulty="medium",
        sources=("LLaMA-Factory, examples/extras/fsdp_qlora",),
    ),
    Check(
        "GPU111",
        "ray-launch",
        Text("Ray 启动", "Launch by Ray"),
        Priority.LOW,
        _ray,
        why="A Ray cluster places the training processes and restarts what fails.",
        fix="Set USE_RAY=1 and ray_num_workers.",
        items=(_item("D", "ray"),),
        difficulty="medium",
        sources=("llamafactory 0.9.2 to 0.9.5, hparams/training_args.py",),
    ),
    Check(
        "GPU211",
        "upcast-layernorm",
        Text("LayerNorm 升精度", "Layer norms in FP32"),
        Priority.LOW,
        _LAYERNORM,
        why="Norms in 16 bits lose small values, most of all over a quantized base.",
        fix="Set upcast_layernorm for quantized training.",
        items=(_item("B", "upcast-layernorm"),),
        sources=(_PARSER, _CHECKPOINTING),
    ),
    Check(
        "GPU212",
        "upcast-lmhead",
        Text("lm_head 输出升精度", "Output of lm_head in FP32"),
        Priority.LOW,
        _LMHEAD,
        why="Logits in FP32 keep the loss steady; they take twice the memory.",
        fix="Set upcast_lmhead_output where the loss is not steady.",
        items=(_item("B", "upcast-lmhead"),),
        sources=(_CHECKPOINTING,),
    ),
    Check(
        "GPU213",
        "unsloth-checkpointing",
        Text("Unsloth 梯度检查点", "Unsloth's gradient checkpointing"),
        Priority.LOW,
        _unsloth_checkpoints,
        why="The inputs of layers that are kept for recomputing wait in the host's memory.",
        fix="Set use_unsloth_gc for long sequences.",
        items=(_item("C", "unsloth-gc"),),
        sources=(_CHECKPOINTING,),
    ),
    Check(
        "GPU214",
        "reentrant-checkpointing",
        Text("检查点重入模式", "Reentrant mode of checkpointing"),
        Priority.MEDIUM,
        _reentrant,
        why="FSDP2 does not go with reentrant checkpointing; from 0.9.4 on LlamaFactory turns "
        "it off by itself.",
        fix="Set use_reentrant_gc to false under FSDP2.",
        items=(_item("C", "reentrant-mode"),),
        examples=(
            Example(
                "llamafactory",
                "sft.yaml",
                _RECIPE.format(""),
                _RECIPE.format("use_reentrant_gc: false\n"),
                _SHARDED,
            ),
        ),
        sources=("llamafactory 0.9.4, model/model_utils/checkpointing.py",),
    ),
    Check(
        "GPU311",
        "shift-attention",
        Text("移位短注意力", "Shifted sparse attention"),
        Priority.LOW,
        _SHIFT,
        why="LongLoRA attends within shifted groups while it trains, for longer contexts.",
        fix="Set shift_attn for LoRA of LLaMA models on long sequences.",
        items=(_item("F", "shift-attention"),),
        sources=("LongLoRA (Chen et al., 2023), arXiv:2309.12307",),
    ),
    Check(
        "GPU312",
        "ktransformers",
        Text("KTransformers 后端", "KTransformers back end"),
        Priority.LOW,
        _KT,
        why="The experts of a mixture are computed by the CPU, whose memory holds them.",
        fix="Set use_kt for LoRA of a mixture of experts that exceeds the GPUs.",
        items=(_item("G", "ktransformers", 3, "kernels", "ktransformers"),),
        difficulty="high",
        sources=("llamafactory 0.9.4 and 0.9.5, hparams/model_args.py",),
    ),
    Check(
        "GPU313",
        "v1-kernels",
        Text("v1 融合算子", "v1 kernels"),
        Priority.LOW,
        _v1_kernels,
        why="Fused kernels of LlamaFactory's next version, for Ascend NPUs.",
        fix="Set use_v1_kernels on NPUs.",
        items=(_item("G", "v1-kernels"),),
        sources=("llamafactory 0.9.4, v1/plugins/model_plugins/kernels",),
    ),
    Check(
        "GPU514",
        "preprocessing-batch-size",
        Text("预处理批大小", "Preprocessing batch size"),
        Priority.LOW,
        by_framework(_preprocessing_batch, flow_factory=flow.preprocessing_batch),
        why="Samples are tokenised in groups; small groups pay the overhead of each call.",
        fix="Leave preprocessing_batch_size at 1000.",
        items=(
            _item("H", "preprocessing-batch-size"),
            Item("flow-factory", "G", "preprocessing-batch-size", 1),
        ),
        sources=(_DATA,),
    ),
    Check(
        "GPU617",
        "adapter-start",
        Text("LoRA 初始化（PiSSA、LoftQ）", "Start of the adapters (PiSSA, LoftQ)"),
        Priority.LOW,
        _start,
        why="PiSSA starts adapters from the main directions of the weights, LoftQ from what "
        "quantizing lost.",
        fix="Set pissa_init, or prepare the adapters with scripts/loftq_init.py.",
        items=(
            _item("A", "pissa", 1, "initial", "pissa"),
            _item("A", "loftq", 1, "initial", "loftq"),
        ),
        sources=(
            "PiSSA (Meng et al., 2024), arXiv:2404.02948",
            "LoftQ (Li et al., 2023), arXiv:2310.08659",
            _TUNING,
        ),
    ),
    Check(
        "GPU618",
        "mixture-of-depths",
        Text("混合深度", "Mixture of depths"),
        Priority.LOW,
        _DEPTHS,
        why="Tokens that need no layer skip it, which saves computing.",
        fix="Set mixture_of_depths to convert.",
        items=(_item("I", "mixture-of-depths", 0.5),),
        difficulty="high",
        sources=("Mixture-of-Depths (Raposo et al., 2024), arXiv:2404.02258",),
    ),
    Check(
        "GPU619",
        "llama-pro",
        Text("LLaMA Pro", "LLaMA Pro"),
        Priority.LOW,
        _PRO,
        why="New blocks are trained, and the old ones keep what they know.",
        fix="Expand the model with scripts/llama_pro.py and set use_llama_pro.",
        items=(_item("I", "llama-pro", 0.5),),
        difficulty="medium",
        sources=("LLaMA Pro (Wu et al., 2024), arXiv:2401.02415", _TUNING),
    ),
    Check(
        "GPU620",
        "freeze-tuning",
        Text("冻结微调", "Freeze tuning"),
        Priority.LOW,
        _freeze,
        why="Layers that are not trained need neither gradients nor optimizer states.",
        fix="Set finetuning_type to freeze, with freeze_trainable_layers.",
        items=(_item("I", "freeze-tuning", 1),),
        sources=(_TUNING,),
    ),
    Check(
        "GPU621",
        "asft-loss",
        Text("ASFT Loss", "ASFT loss"),
        Priority.LOW,
        _ASFT,
        why="Anchored tuning weights tokens as DFT does and stays near a reference.",
        fix="Set use_asft_loss.",
        items=(_item("I", "asft-loss", 1, "loss", "asft"),),
        sources=("llamafactory 0.9.5, hparams/finetuning_args.py",),
    ),
    Check(
        "GPU622",
        "eaft-loss",
        Text("EAFT Loss", "EAFT loss"),
        Priority.LOW,
        _EAFT,
        why="Entropy-adaptive tuning weights each token's loss by the model's uncertainty.",
        fix="Set use_eaft_loss.",
        items=(_item("I", "eaft-loss", 1, "loss", "eaft"),),
        sources=("llamafactory 0.9.5, hparams/finetuning_args.py",),
    ),
    Check(
        "GPU623",
        "masked-history",
        Text("屏蔽历史轮次", "History masked"),
        Priority.LOW,
        _HISTORY,
        why="Answers of earlier turns may be worse than the last, which alone is then learnt.",
        fix="Set mask_history for data whose last turn is the good one.",
        items=(_item("I", "mask-history", 0.5),),
        sources=(_DATA,),
    ),
    Check(
        "GPU624",
        "masked-prompts",
        Text("不对提示词计损失", "Prompts are not learnt"),
        Priority.LOW,
        _prompt,
        why="A model that is tuned to answer need not learn to ask.",
        fix="Leave train_on_prompt off.",
        items=(_item("I", "train-on-prompt-off", 1),),
        sources=(_DATA,),
    ),
    Check(
        "GPU625",
        "automatic-batch-size",
        Text("自动批大小", "Batch size found by itself"),
        Priority.LOW,
        _AUTO_BATCH,
        why="A batch that does not fit is halved and tried again, instead of an error.",
        fix="Set auto_find_batch_size; choose the size by hand for long runs.",
        items=(_item("I", "auto-batch-size", 0.5),),
        sources=("transformers 4.46.3 to 5.24.0, training_args.py",),
    ),
    Check(
        "GPU909",
        "inference-engine",
        Text("推理后端", "Inference engine"),
        Priority.MEDIUM,
        _engine,
        why="Transformers generates for one request at a time; vLLM and SGLang batch requests "
        "as they come and page the cache.",
        fix="Set infer_backend to vllm or sglang.",
        ignore="The model is one that the engine does not serve.",
        items=(
            _item("J", "vllm-backend", 2, "engine", "vllm"),
            _item("J", "sglang-backend", 2, "engine", "sglang"),
        ),
        impact=Impact(
            throughput=(100, 2300),
            note=Text(
                "官方数据：并发请求多时最高 24 倍",
                "the makers' own figure: up to 24 times, with many requests at once",
            ),
            source=_VLLM,
        ),
        examples=(Example("llamafactory", "serve.sh", _api(""), _api(" --infer_backend vllm")),),
        sources=(_VLLM, _MODEL),
    ),
    Check(
        "GPU910",
        "kv-cache",
        Text("KV Cache", "KV cache"),
        Priority.HIGH,
        _cache,
        why="Without the cache the keys and values of all earlier tokens are computed anew for "
        "every token.",
        fix="Leave use_kv_cache on.",
        ignore="The model's code has no cache.",
        items=(_item("J", "kv-cache"),),
        examples=(
            Example(
                "llamafactory",
                "serve.sh",
                _api(" --infer_backend huggingface --use_kv_cache false").replace("api", "chat"),
                _api(" --infer_backend huggingface").replace("api", "chat"),
            ),
        ),
        sources=("llamafactory 0.9.1 to 0.9.5, model/model_utils/kv_cache.py",),
    ),
)
