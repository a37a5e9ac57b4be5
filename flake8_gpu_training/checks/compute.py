"""GPU302 to GPU307, GPU314: compilation, kernels and fusion."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Optional

from flake8_gpu_training.checks import _flow as flow
from flake8_gpu_training.checks import _sources as sources
from flake8_gpu_training.checks import _videox_shared as videox
from flake8_gpu_training.checks._by_framework import by_framework
from flake8_gpu_training.checks._impacts import by_class
from flake8_gpu_training.checks._judging import (
    Snippet,
    advise,
    cannot_apply,
    cannot_tell,
    imported,
    keyword_change,
    of_training,
    off,
    on,
    seen,
)
from flake8_gpu_training.checks._kernel_examples import (
    FLASH_FLAG,
    FLASH_MODEL,
    LIGER_FLAG,
    LIGER_LINE,
    LOAD,
    SCRIPT,
)
from flake8_gpu_training.checks._kernels import (
    liger_supports,
    prefers_unsloth,
    trains_head,
    unsloth_loads,
)
from flake8_gpu_training.checks._llamafactory import OLDER
from flake8_gpu_training.checks._programs import (
    builds_vision,
    calls,
    decoder_loads,
    first_call,
    imports,
    placed_at_load,
    predicts_tokens,
    says,
)
from flake8_gpu_training.checks._scale import (
    compiles_for_gpu,
    is_cuda,
    is_language_model,
    number,
    spreads_layers,
    text,
    tunes_all,
    unfamiliar,
)
from flake8_gpu_training.checks._settings import algorithm, is_on, parameter, task
from flake8_gpu_training.checks.base import Check, Example, Impact, Item, Judgement, Priority
from flake8_gpu_training.facts import Call, Setting, known
from flake8_gpu_training.frameworks.at_hand import lacks
from flake8_gpu_training.frameworks.engine_of import packs_ahead
from flake8_gpu_training.frameworks.lightning import trainer_of
from flake8_gpu_training.frameworks.reading import version_of
from flake8_gpu_training.language import Text
from flake8_gpu_training.runs.model import PlaceKind, Run

_NOT_CUDA = Text("非 CUDA 设备", "not a CUDA device")

# --- GPU302 ---------------------------------------------------------------------------


_TRAINER_COMPILES = (4, 26)
"""TrainingArguments.torch_compile (training_args.py: in 4.26.1, not in 4.25.1)."""
_MODULES = ("torch.nn", "torchvision.models", "timm.", "transformers.")


@of_training(alone=True)
def _compile(run: Run) -> Judgement:
    setting = run.practice("torch_compile")
    if setting.known and setting.value is True:
        return on(setting)
    called = first_call(run, "torch.compile") or next(
        (c for c in calls(run, ".compile") if c.receiver.startswith(_MODULES)), None
    )
    if called is not None:
        return seen(called)
    if run.value("megatron") is True:
        return cannot_apply(Text("Megatron 自带融合算子", "Megatron has fused kernels of its own"))
    if not compiles_for_gpu(run):
        return cannot_apply(_NOT_CUDA)
    if version_of(run, "torch") < (2,):
        return cannot_apply(
            Text("PyTorch 2.0 起才有 torch.compile", "it takes PyTorch 2.0 or newer")
        )
    if run.framework == "hf_trainer" and version_of(run, "transformers") < _TRAINER_COMPILES:
        return cannot_apply(
            Text(
                "该版本的 Transformers 没有此参数", "this release of Transformers does not have it"
            )
        )
    if not setting.known:
        return cannot_tell(setting)
    obstacle = _compile_obstacle(run)
    if obstacle is not None:
        return off(obstacle)
    return advise(
        run,
        "fused kernels from one graph instead of hundreds of launches a layer; "
        "gains most with fixed shapes",
        Text("未启用 torch.compile", "torch.compile is off"),
        Text(
            "启用 torch.compile（首步编译需数分钟）",
            "turn on torch.compile (the first steps compile, which takes minutes)",
        ),
        practices={"torch_compile": True},
        snippet=Snippet(
            "compile the model: model = torch.compile(model)", "model = torch.compile(model)"
        ),
        at=setting,
    )


def _compile_obstacle(run: Run) -> Optional[Text]:
    """Why torch.compile is not advised: what breaks its graph or changes its shapes."""
    if run.value("unsloth") is True or run.value("liger_kernel") is True:
        return Text("已用融合算子库，收益有限", "a kernel library fuses most of it already")
    stage = number(run, "zero_stage") or 0
    # deepspeed 0.19, runtime/zero/parameter_offload.py: hooks are kept out of the graph
    if stage >= 3 or text(run, "fsdp") not in (None, "none"):
        return Text(
            "ZeRO-3、FSDP 的钩子会打断计算图", "the hooks of ZeRO-3 and FSDP break the graph"
        )
    if tunes_all(run) is False or text(run, "quantization_method") not in (None, "none"):
        return Text("PEFT/量化会打断计算图", "adapters and quantization break the graph")
    if run.value("rollout_engine") in ("vllm", "sglang"):
        return Text("训练与推理引擎共卡", "the rollout engine shares the GPU")
    has_text = is_language_model(run) or run.model.kind in ("embedding", "audio")
    if has_text or pads_each_batch(run):
        return Text("变长样本会反复触发编译", "samples of varying length compile again and again")
    if run.model.kind not in ("vision", "encoder", "image", "video") and not builds_vision(run):
        return unfamiliar(run)
    if stage >= 1:
        return Text("DeepSpeed 下收益需实测", "what it gains under DeepSpeed has to be measured")
    return None


_PADDING_COLLATORS = frozenset(
    {
        "DataCollatorWithPadding",
        "DataCollatorForTokenClassification",
        "DataCollatorForSeq2Seq",
        "DataCollatorForLanguageModeling",
        "DataCollatorForWholeWordMask",
    }
)


def pads_each_batch(run: Run) -> bool:
    """Whether batches of text are padded to their own longest sample."""
    made = [call for program in run.python for call in program.calls]
    fixed = [call.keywords.get("pad_to_max_length") for call in made]
    told = [call.keywords.get("padding") for call in made]
    if any(one is not None and one.value is not False for one in fixed):
        return False
    if any(one is not None and one.value not in (True, False, "longest") for one in told):
        return False
    collates = any(call.method in _PADDING_COLLATORS for call in made)
    return collates or any(one is not None and one.value is not False for one in told)


# --- GPU303, GPU304 -------------------------------------------------------------------

_KERNEL_LIBRARIES = (
    "triton",
    "xformers.triton",
    "liger_kernel",
    "unsloth",
    "flash_attn.ops",
    "fla",
    "cut_cross_entropy",
    "apex.normalization",
    "transformer_engine",
)


@of_training()
def _triton(run: Run) -> Judgement:
    call = first_call(run, "triton.jit", "triton.autotune")
    if call is not None:
        return seen(call)
    for name in ("liger_kernel", "unsloth"):
        if run.value(name) is True:
            return on(run.practice(name))
    found = imports(run, *_KERNEL_LIBRARIES)
    if found is not None:
        return imported(found)
    if run.value("torch_compile") is True:
        return on(run.practice("torch_compile"))
    if not is_cuda(run):
        return cannot_apply(_NOT_CUDA)
    return off(Text("未用 Triton 算子", "no Triton kernels"))


_GRAPHING = ("reduce-overhead", "max-autotune", "local", "transformer_engine", True)


def _graph_settings(run: Run) -> Iterator[Setting]:
    """What asks for graphs by name: modes of the compiler, Megatron's switches."""
    names = ("torch_compile_mode", "cuda_graph_impl", "enable_cuda_graph", "external_cuda_graph")
    yield from (found for name in names if (found := run.setting(name)) is not None)
    if "dynamo_mode" in run.launcher.options:
        yield run.launcher.options["dynamo_mode"]
    if run.accelerate is not None:
        found = run.accelerate.settings().get("dynamo_config.dynamo_mode")
        if found is not None:
            yield found


@of_training()
def _cuda_graph(run: Run) -> Judgement:
    call = first_call(
        run,
        "torch.cuda.graph",
        "torch.cuda.CUDAGraph",
        "torch.cuda.make_graphed_callables",
    )
    if call is not None:
        return seen(call)
    for compiled in calls(run, "torch.compile"):
        if says(compiled, "mode", "reduce-overhead", "max-autotune"):
            return seen(compiled)
    switch = next((s for s in _graph_settings(run) if s.known and s.value in _GRAPHING), None)
    if switch is not None:
        return on(switch)
    if not is_cuda(run):
        return cannot_apply(_NOT_CUDA)
    return off(
        Text(
            "未用 CUDA Graph；只在形状固定且受启动开销限制时有益",
            "no CUDA graphs; they help launch-bound steps of fixed shapes",
        )
    )


# --- GPU305, GPU307 -------------------------------------------------------------------


_REFUSED_BY_TRAINER = Text(
    "AsyncGRPOTrainer 拒绝 use_liger_kernel", "AsyncGRPOTrainer refuses use_liger_kernel"
)


@of_training(alone=True)
def _liger(run: Run) -> Judgement:
    setting = run.practice("liger_kernel")
    if packs_ahead(run):
        return cannot_apply(_REFUSED_BY_TRAINER)
    if setting.known and setting.value is True:
        return on(setting, "liger")
    called = next(
        (
            call
            for program in run.python
            for call in program.calls
            if "apply_liger_kernel" in call.name or "AutoLigerKernel" in call.name
        ),
        None,
    )
    if called is not None:
        return seen(called, "liger")
    if run.value("unsloth") is True or imports(run, "unsloth") is not None:
        return cannot_apply(Text("已用 Unsloth，二者择一", "Unsloth is on: one of the two"))
    if run.value("megatron") is True:
        return cannot_apply(Text("Megatron 自带融合算子", "Megatron has fused kernels of its own"))
    if not setting.known:
        return cannot_tell(setting)
    if run.framework == "llamafactory" and lacks(
        run, "llamafactory", "train", "enable_liger_kernel"
    ):
        return cannot_apply(OLDER)
    return _advise_liger(run, setting)


# ms-swift 4.6 and LLaMA-Factory 0.9.6.dev0 (train/sft/trainer.py): losses of their own, over logits
# that Liger's fused loss would not store.
_LOSSES_OF_LOGITS = ("enable_dft_loss", "use_dft_loss", "use_asft_loss", "use_eaft_loss")


_OWN_MODEL = Text("项目自有模型类，是否被 Liger 识别未知", "Liger may not know the project's class")
_MODELS = ("PreTrainedModel", "ForCausalLM", "ForConditionalGeneration")


def _builds_own_model(run: Run) -> bool:
    """Whether a class of the project's own is loaded or made: the Trainer applies Liger by the
    model's type, which may be a new one (transformers 5.24.0, integrations/liger.py)."""
    own = {
        definition.name
        for program in run.python
        for definition in program.classes
        if any(base.endswith(_MODELS) for base in definition.bases)
    }
    called = (call.name.split(".")[-2:] for program in run.python for call in program.calls)
    return any(part in own for parts in called for part in parts)


def _loads_no_head(run: Run) -> bool:
    """Whether all models in sight are loaded without the head that predicts tokens."""
    bare = first_call(run, "transformers.AutoModel.from_pretrained")
    return bare is not None and next(decoder_loads(run), None) is None


_FILES = (PlaceKind.YAML, PlaceKind.JSON)


def has_liger(run: Run) -> bool:
    """Whether nothing is known that keeps liger-kernel from the run's model."""
    return liger_supports(run) is not False


_UNKNOWN_TO_LIGER = Text("Liger 不支持该模型", "Liger does not know this model")
_UNPATCHED = Text(
    "LlamaFactory 不为该模型结构启用 Liger",
    "LlamaFactory does not apply Liger to this architecture",
)
_WITHOUT_LOSS = Text(
    "可选：该阶段不使用其融合损失", "optional: in this stage it goes without its fused loss"
)
_KTRANSFORMERS = Text("KTransformers 自带算子", "KTransformers has its own kernels")


_DRIVER_OF_RAY = Text(
    "Ray 的 driver 若可见多张 GPU，启用 Liger 会在启动时报错",
    "Ray's driver refuses Liger at start where it sees several GPUs",
)
_KERNELS_AND_LOSS = (
    "fuses RMSNorm, RoPE, SwiGLU and the cross entropy, whose logits are then "
    "never stored (pip install liger-kernel)"
)
_KERNELS_ALONE = (
    "fuses RMSNorm, RoPE and SwiGLU; its cross entropy takes no effect, as sequence "
    "parallelism computes the loss apart (pip install liger-kernel)"
)


def _takes_labels_out(run: Run) -> bool:
    """Whether ms-swift computes the loss itself, from logits (trainers/seq2seq_trainer.py)."""
    return run.framework == "swift" and (number(run, "sequence_parallel") or 1) > 1


def _advise_liger(run: Run, setting: Setting) -> Judgement:
    supported = liger_supports(run)
    if supported is None and builds_vision(run) and next(decoder_loads(run), None) is None:
        return cannot_apply(Text("不是解码器语言模型", "an image model, not a decoder"))
    if supported is None:
        name = run.model.name
        untold = Text(f"Liger 是否支持 {name} 未知", f"whether Liger knows {name} is not known")
        return cannot_tell(untold if name else unfamiliar(run))
    if not supported:
        return cannot_apply(_UNPATCHED if run.framework == "llamafactory" else _UNKNOWN_TO_LIGER)
    if task(run) != "causal_lm" or not predicts_tokens(run):
        return off(Text("不预测 token，融合损失无益", "no tokens are predicted: little to fuse"))
    if any(is_on(parameter(run, name, default=False)) for name in _LOSSES_OF_LOGITS):
        return off(Text("该损失需要完整 logits", "its loss takes the full logits"))
    if trains_head(run):
        return off(
            Text(
                "LoRA 作用于 lm_head，融合损失会绕过它", "the fused loss bypasses lm_head's adapter"
            )
        )
    if is_on(parameter(run, "use_kt", default=False)):
        return cannot_apply(_KTRANSFORMERS)
    if run.framework == "hf_trainer" and run.place.kind in _FILES and not algorithm(run):
        return cannot_tell(Text("训练阶段未知", "the training stage is not known"))
    if run.framework == "hf_trainer" and _loads_no_head(run):
        return off(Text("不预测 token，融合损失无益", "no tokens are predicted: little to fuse"))
    if run.framework == "hf_trainer" and _builds_own_model(run):
        return cannot_tell(_OWN_MODEL)
    if run.framework == "swift" and is_on(parameter(run, "use_ray", default=False)):
        return cannot_tell(_DRIVER_OF_RAY)  # is_mp in trainers/arguments.py: the driver asks too
    if spreads_layers(run):
        return cannot_apply(Text("Liger 不兼容 device_map", "Liger does not go with device_map"))
    if not is_cuda(run):
        return cannot_apply(_NOT_CUDA)
    if run.framework == "llamafactory" and text(run, "algorithm") not in (None, "pt", "sft"):
        return off(_WITHOUT_LOSS)  # require_logits, model_utils/liger_kernel.py
    if text(run, "algorithm") not in (None, "pt", "sft"):
        return off(
            Text("该算法的损失使用 Liger 另有条件", "its loss takes Liger on conditions of its own")
        )
    if prefers_unsloth(run):
        where = _lora_on(run)
        return off(Text(f"{where.zh} 更适合 Unsloth", f"{where.en}: Unsloth suits better"))
    if run.framework == "generic" and next(decoder_loads(run), None) is None:
        return cannot_tell(Text("未见加载模型的代码", "what loads the model is not in sight"))
    is_apart = _takes_labels_out(run)
    return advise(
        placed_at_load(run),
        _KERNELS_ALONE if is_apart else _KERNELS_AND_LOSS,
        Text("未启用 Liger Kernel", "Liger kernels are off"),
        Text(
            "启用 Liger Kernel（先 pip install liger-kernel）",
            "turn on Liger kernels (pip install liger-kernel first)",
        ),
        practices={"liger_kernel": True},
        snippet=Snippet(
            "load the model with AutoLigerKernelForCausalLM",
            "from liger_kernel.transformers import AutoLigerKernelForCausalLM\n\n"
            "model = AutoLigerKernelForCausalLM.from_pretrained(model_name)",
        ),
        variant="liger",
        at=setting,
        impact=by_class(Priority.LOW, sources.LIGER) if is_apart else None,
        priority=Priority.MEDIUM if setting.explicit else None,  # off by choice
    )


def _lora_on(run: Run) -> Text:
    """LoRA in one process, whose GPUs are one only where something says so."""
    if run.hardware.gpus is None:
        return Text("单进程 LoRA", "LoRA in one process")
    return Text("单卡 LoRA", "LoRA on one GPU")


@of_training()
def _unsloth(run: Run) -> Judgement:
    setting = run.practice("unsloth")
    if setting.known and setting.value is True:
        return on(setting, "unsloth")
    found = imports(run, "unsloth")
    if found is not None:
        return on(f"import {found.dotted}", "unsloth")
    tuning, of_swift = text(run, "tuning"), run.framework == "swift"
    # LLaMA-Factory 0.9.5, model/adapter.py; ms-swift 4.6.0, pipelines/train/tuner.py
    if tuning in ("full", "oft") or (of_swift and tuning not in (None, "lora")):
        return cannot_apply(Text("Unsloth 后端只用于 LoRA", "Unsloth is for LoRA"))
    if of_swift and not unsloth_loads(run):
        return cannot_apply(
            Text("Unsloth 只加载 16 位或 BnB 权重", "Unsloth loads weights of 16 bits or of BnB")
        )
    if run.value("megatron") is True:
        return cannot_apply(Text("Megatron 自带融合算子", "Megatron has fused kernels of its own"))
    if run.framework == "llamafactory" and number(run, "zero_stage") == 3:
        return cannot_apply(Text("ZeRO-3 不支持", "not with ZeRO-3"))  # hparams/parser.py
    if run.value("liger_kernel") is True:
        return cannot_apply(Text("已用 Liger，二者择一", "Liger is on: one of the two"))
    if not setting.known:
        return cannot_tell(setting)
    if is_on(parameter(run, "use_kt", default=False)):
        return cannot_apply(_KTRANSFORMERS)
    if not compiles_for_gpu(run):
        return cannot_apply(_NOT_CUDA)
    if not prefers_unsloth(run) or liger_supports(run) is not True:
        return off(Text("未用 Unsloth", "Unsloth is off"))
    where = _lora_on(run)
    return advise(
        run,
        "hand-written LoRA kernels for one GPU (pip install unsloth)",
        Text(f"{where.zh} 训练未用 Unsloth", f"{where.en} without Unsloth"),
        Text(
            "启用 Unsloth 后端（与 Liger 二选一）",
            "use the Unsloth back end (instead of Liger)",
        ),
        practices={"unsloth": True},
        variant="unsloth",
        at=setting,
    )


# --- GPU306 ---------------------------------------------------------------------------

_FUSED_STEPS = (".FusedAdam", ".FusedLAMB")
_FUSED_LAYERS = (
    ".FusedLayerNorm",
    ".FusedRMSNorm",
    ".memory_efficient_attention",
    ".enable_xformers_memory_efficient_attention",
)
_FUSED_LIBRARIES = ("megatron", "unsloth", "liger_kernel")
_OTHER_KERNELS = ("8bit", "4bit", "came", "hybridadam")
"""Optimizers whose kernels fuse an update, and that are none of Adam's plain ones."""
_FUSED_OPTIMIZERS = ("fused", "apex", *_OTHER_KERNELS)


_IMPLEMENTATIONS = ("fused", "foreach", "capturable", "differentiable")


def _unfused_call(run: Run) -> Optional[Call]:
    """The plain program's one call of Adam that leaves the implementation to PyTorch.

    Then it is the foreach one: several kernels for all tensors, rather than one.
    """
    made = list(calls(run, "torch.optim.AdamW", "torch.optim.Adam"))
    if run.framework != "generic" or run.deepspeed is not None or len(made) != 1:
        return None
    call = made[0]
    is_old = version_of(run, "torch") < (2,)
    plain = not call.is_open and not call.conditional and not is_old
    if not plain or any(name in call.keywords for name in _IMPLEMENTATIONS):
        return None
    if imports(run, "colossalai", "vescale", "apex") is not None or not compiles_for_gpu(run):
        return None
    if run.value("fsdp_offload") is True or text(run, "offload_optimizer") not in (None, "none"):
        return None
    return call if _trains_on_cuda(run) else None


def _trains_on_cuda(run: Run) -> bool:
    trainer = trainer_of(call for program in run.python for call in program.calls)
    if trainer is not None:
        return says(trainer, "accelerator", "gpu", "cuda")
    words = [program.mentions for program in run.python if program.mentions is not None]
    return any("cuda" in found for found in words) or run.launcher.name == "accelerate"


def _advise_fused(run: Run, call: Call, setting: Setting, share: Optional[float]) -> Judgement:
    change = keyword_change(run, call, "fused", True)
    return advise(
        run,
        "one kernel updates all parameters instead of several",
        Text(f"{call.method} 未融合", f"{call.method} is not fused"),
        Text("设置 fused=True", "set fused=True"),
        snippet=Snippet("set fused=True", change.text, change.language, change.edits),
        at=setting,
        share=share,
    )


def _may_be_fused(call: Call) -> bool:
    """Whether arguments out of sight, or a value that is not known, may ask for it."""
    fused = call.keywords.get("fused")
    return call.is_open if fused is None else not known(fused.value)


_OPEN_OPTIMIZER = Text(
    "优化器的参数未全部读到，是否融合未知",
    "arguments of the optimizer are unseen: whether it is fused is not known",
)


@of_training(alone=True)
def _fusion(run: Run) -> Judgement:
    setting = run.practice("optimizer")
    name = text(run, "optimizer")
    library = next((p for p in _FUSED_LIBRARIES if run.value(p) is True), None)
    offloaded = run.value("offload_optimizer") in ("cpu", "nvme")
    made = _unfused_call(run)
    unfused = (name == "adamw_torch" or made is not None) and not offloaded
    if library is not None and (not unfused or library == "megatron"):
        return on(run.practice(library))
    layers = first_call(run, *_FUSED_LAYERS)
    if layers is not None:
        return seen(layers)
    if offloaded:
        why = Text("优化器已卸载到 CPU", "the optimizer runs on the CPU, offloaded")
        return cannot_apply(why)  # DeepSpeedCPUAdam updates the parameters there
    decided = _fused_optimizer(run, setting)
    if decided is not None:
        return decided
    if made is not None:
        return _advise_fused(run, made, setting, None if library is None else 0.5)
    if name != "adamw_torch":
        return off(Text("未用融合优化器", "no fused optimizer"), setting)
    if not compiles_for_gpu(run):
        return cannot_apply(_NOT_CUDA)
    return _advise_fused_name(run, setting, None if library is None else 0.5)


def _advise_fused_name(run: Run, setting: Setting, share: Optional[float] = None) -> Judgement:
    return advise(
        run,
        "one kernel updates all parameters instead of several a tensor",
        Text("优化器 adamw_torch 未融合", "adamw_torch is not fused"),
        Text("改用 adamw_torch_fused", "use adamw_torch_fused"),
        practices={"optimizer": "adamw_torch_fused"},
        at=setting,
        share=share,
    )


@of_training(alone=True)
def _fused_adam(run: Run) -> Judgement:
    """LlamaFactory's audit asks for the optimizer alone; what to write GPU306 says."""
    setting = run.practice("optimizer")
    if run.framework != "llamafactory":
        return cannot_apply(Text("非 LlamaFactory 任务", "not a LlamaFactory run"))
    if run.value("megatron") is True:
        return on(run.practice("megatron"))
    if run.value("offload_optimizer") in ("cpu", "nvme"):
        return cannot_apply(Text("优化器已卸载到 CPU", "the optimizer runs on the CPU, offloaded"))
    name = text(run, "optimizer") or ""
    if any(part in name for part in _OTHER_KERNELS):
        return off(Text(f"优化器为 {name}", f"the optimizer is {name}"), setting)
    decided = _fused_optimizer(run, setting)
    if decided is not None:
        return decided
    if name != "adamw_torch":
        return off(Text(f"优化器为 {setting.value}", f"the optimizer is {setting.value}"), setting)
    if not compiles_for_gpu(run):
        return cannot_apply(_NOT_CUDA)
    answer = _advise_fused_name(run, setting)
    action = Text(f"{answer.action.zh}（见 GPU306）", f"{answer.action.en} (see GPU306)")
    return replace(answer, findings=(), action=action)


def _fused_optimizer(run: Run, setting: Setting) -> Optional[Judgement]:
    """That the optimizer is fused, or that it cannot be told; None when it is not fused."""
    name = text(run, "optimizer")
    if name is not None and any(part in name for part in _FUSED_OPTIMIZERS):
        return on(setting)
    made = list(calls(run, "torch.optim.AdamW", "torch.optim.Adam"))
    fused = next((call for call in made if says(call, "fused", True)), None)
    called = first_call(run, *_FUSED_STEPS) or fused
    if called is not None:
        return seen(called)
    if any(_may_be_fused(call) for call in made):
        return cannot_tell(_OPEN_OPTIMIZER)
    deepspeed = run.deepspeed.get("optimizer.type") if run.deepspeed is not None else None
    if deepspeed is not None and known(deepspeed.value) and deepspeed.value in ("Adam", "AdamW"):
        note = f"DeepSpeed: {deepspeed.value} is FusedAdam"
        return on(Setting("optimizer", deepspeed.value, deepspeed.location, note=note))
    return None if setting.known else cannot_tell(setting)


_A = "general"
_S = "swift"
_L = "llamafactory"
_H = "transformers"

_LOOP = """\
import torch
from torch.utils.data import DataLoader
from torchvision.models import resnet50

model = {}
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for images, labels in DataLoader(dataset, batch_size=256, num_workers=8, pin_memory=True):
    images, labels = images.cuda(non_blocking=True), labels.cuda(non_blocking=True)
    with torch.autocast("cuda", dtype=torch.bfloat16):
        loss = criterion(model(images), labels)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
"""
_CLASSIFIER = """\
from transformers import AutoModelForSequenceClassification, Trainer, TrainingArguments

model = AutoModelForSequenceClassification.from_pretrained("google-bert/bert-base-uncased")
args = TrainingArguments(
    output_dir="out",
    bf16=True,
{}    dataloader_num_workers=4,
)
Trainer(model=model, args=args, train_dataset=train_dataset).train()
"""

CHECKS: tuple[Check, ...] = (
    Check(
        "GPU302",
        "torch-compile",
        Text("torch.compile 图编译", "torch.compile"),
        Priority.MEDIUM,
        by_framework(_compile, videox_fun=videox.compilation, flow_factory=flow.compilation),
        why="Eager PyTorch launches every operation on its own and writes each result to "
        "memory; a compiled graph fuses them.",
        fix="Set torch_compile, or wrap the model with torch.compile.",
        ignore="When shapes vary from batch to batch, or adapters and sharding hooks break "
        "the graph.",
        items=(
            Item(_A, "D", "torch-compile", 1),
            Item(_S, "G", "torch-compile", 1),
            Item(_H, "G", "torch-compile", 1),
            Item("videox-fun", "I", "torch-compile", 1.5),
            Item("flow-factory", "J", "torch-compile", 1),
        ),
        impact=Impact(throughput=(10, 40), source=sources.PYTORCH_2),
        examples=(
            Example(
                "generic",
                "train.py",
                _LOOP.format("resnet50().cuda()"),
                _LOOP.format("torch.compile(resnet50().cuda())"),
            ),
            Example(
                "hf_trainer",
                "train.py",
                _CLASSIFIER.format(""),
                _CLASSIFIER.format("    torch_compile=True,\n"),
            ),
        ),
        sources=(sources.PYTORCH_2,),
    ),
    Check(
        "GPU303",
        "triton-kernels",
        Text("Triton 自定义算子", "Triton kernels"),
        Priority.LOW,
        _triton,
        why="Kernels written for the model save memory traffic between operations.",
        fix="Use a kernel library before writing kernels.",
        items=(Item(_A, "D", "triton-kernels", 1),),
        difficulty="high",
        sources=(sources.LIGER,),
    ),
    Check(
        "GPU304",
        "cuda-graph",
        Text("CUDA Graph", "CUDA graphs"),
        Priority.LOW,
        by_framework(_cuda_graph, videox_fun=videox.graphs),
        why="Small kernels finish before the CPU can launch the next one; a graph launches "
        "the whole step at once.",
        fix='Compile with mode="reduce-overhead", or use make_graphed_callables.',
        items=(
            Item(_A, "D", "cuda-graph", 1),
            Item("videox-fun", "I", "cuda-graph", 0.5),
        ),
        difficulty="medium",
        sources=(sources.PYTORCH_GRAPHS,),
    ),
    Check(
        "GPU305",
        "liger-kernel",
        Text("Liger Kernel 融合算子", "Liger kernels"),
        Priority.HIGH,
        by_framework(_liger, videox_fun=videox.liger, flow_factory=flow.liger),
        why="Norms, rotary embeddings and activations are bound by memory traffic, and the "
        "logits of a large vocabulary are the peak of memory.",
        fix="Turn on the Liger kernels where the model's family is supported.",
        ignore="With Unsloth, whose kernels do the same, or with device_map.",
        items=(
            Item(_A, "D", "liger-kernel", 1),
            Item(_S, "G", "liger-kernel", 3, "kernels", "liger"),
            Item(_L, "G", "liger-kernel", 3, "kernels", "liger"),
            Item(_H, "G", "liger-kernel", 2.5, "", "liger"),
            Item("videox-fun", "I", "liger-kernel", 0.5),
            Item("flow-factory", "J", "liger-kernel", 0.5),
        ),
        impact=Impact(
            throughput=(10, 20),
            memory=(-60, -20),
            note=Text(
                "论文平均值为 20% 与 60%，批量小时较低",
                "20 % and 60 % are the paper's averages; less where batches are small",
            ),
            source=sources.LIGER,
        ),
        examples=(
            Example(
                "hf_trainer",
                "train.py",
                LOAD.format(FLASH_MODEL, ""),
                LOAD.format(FLASH_MODEL, LIGER_LINE),
            ),
            Example(
                "swift",
                "train.sh",
                SCRIPT.format(FLASH_FLAG),
                SCRIPT.format(FLASH_FLAG + LIGER_FLAG),
            ),
        ),
        sources=(sources.LIGER, sources.LIGER_SOURCE),
    ),
    Check(
        "GPU306",
        "operator-fusion",
        Text("算子融合（融合优化器等）", "Operator fusion"),
        Priority.LOW,
        _fusion,
        why="An optimizer that updates tensor after tensor launches thousands of kernels.",
        fix="Use adamw_torch_fused, or AdamW(fused=True).",
        items=(Item(_A, "D", "operator-fusion", 1),),
        impact=by_class(Priority.LOW, sources.PYTORCH_TUNING),
        examples=(
            Example(
                "hf_trainer",
                "train.py",
                LOAD.format('"google-bert/bert-base-uncased"', '    optim="adamw_torch",\n'),
                LOAD.format('"google-bert/bert-base-uncased"', '    optim="adamw_torch_fused",\n'),
            ),
        ),
        sources=(sources.PYTORCH_TUNING, sources.HF_ARGUMENTS),
    ),
    Check(
        "GPU307",
        "unsloth-backend",
        Text("Unsloth 加速后端", "Unsloth back end"),
        Priority.HIGH,
        _unsloth,
        why="Unsloth's kernels compute LoRA's forward and backward passes by hand.",
        fix="Set the tuner back end to unsloth.",
        ignore="On several GPUs, or where Liger is on.",
        items=(
            Item(_S, "G", "unsloth-backend", 3, "kernels", "unsloth"),
            Item(_S, "A", "unsloth", 2),
            Item(_L, "G", "unsloth", 3, "kernels", "unsloth"),
        ),
        impact=Impact(
            throughput=(30, 70),
            memory=(-50, -20),
            note=Text("官方数据，单卡 LoRA", "the makers' own figures, LoRA on one GPU"),
            source=sources.UNSLOTH,
        ),
        examples=(
            Example(
                "swift",
                "train.sh",
                "NPROC_PER_NODE=1 swift sft --model Qwen/Qwen2.5-7B-Instruct \\\n"
                "    --tuner_type lora --attn_impl flash_attn --max_length 4096\n",
                "NPROC_PER_NODE=1 swift sft --model Qwen/Qwen2.5-7B-Instruct \\\n"
                "    --tuner_type lora --attn_impl flash_attn --max_length 4096 \\\n"
                "    --tuner_backend unsloth\n",
            ),
        ),
        sources=(sources.UNSLOTH, sources.SWIFT_DOCS),
    ),
    Check(
        "GPU314",
        "fused-adam",
        Text("融合 Adam", "Fused Adam"),
        Priority.LOW,
        by_framework(
            _fused_adam, videox_fun=videox.fused_optimizer, flow_factory=flow.fused_optimizer
        ),
        why="A fused optimizer updates all parameters in one kernel.",
        fix="Set optim to adamw_torch_fused.",
        items=(
            Item(_L, "E", "fused-adam", 6, "optimizer"),
            Item("videox-fun", "I", "fused-optimizer", 1),
            Item("flow-factory", "J", "fused-adam", 0.5),
        ),
        impact=by_class(Priority.LOW, sources.PYTORCH_TUNING),
        sources=(sources.PYTORCH_TUNING, sources.HF_ARGUMENTS),
    ),
)
