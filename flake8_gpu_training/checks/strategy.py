"""GPU6xx: training strategy: schedules, adapters, what is trained and with which loss."""

from __future__ import annotations

from typing import Callable, Optional

from flake8_gpu_training.checks._judging import (
    Judge,
    advise,
    cannot_apply,
    cannot_tell,
    of_training,
    off,
    on,
    seen,
    with_edits,
)
from flake8_gpu_training.checks._kernels import liger_supports
from flake8_gpu_training.checks._programs import first_call, imports
from flake8_gpu_training.checks._scale import GIB, gpus, is_cuda, memory_gib, number, text
from flake8_gpu_training.checks._settings import (
    NOT_SWIFT,
    PREFERENCE,
    ROLLOUT,
    TEXT_MODEL,
    algorithm,
    has,
    is_on,
    is_text,
    parameter,
)
from flake8_gpu_training.checks.base import (
    Check,
    Evidence,
    Example,
    Impact,
    Item,
    Judgement,
    Priority,
    Status,
)
from flake8_gpu_training.facts import Setting
from flake8_gpu_training.frameworks.reading import find, version_of
from flake8_gpu_training.frameworks.swift import is_megatron
from flake8_gpu_training.language import Text
from flake8_gpu_training.memory import model_states
from flake8_gpu_training.runs.model import Run

_SWIFT_TUNER = "ms-swift 4.6.0, arguments/tuner_args.py"
_SWIFT_TRAIN = "ms-swift 4.6.0, trainers/arguments.py"
_SWIFT_QUANT = "ms-swift 4.6.0, arguments/base_args/quant_args.py"
_LORA = "LoRA (Hu et al., 2021), arXiv:2106.09685"
_QLORA = "QLoRA (Dettmers et al., 2023), arXiv:2305.14314"
_WARMUP = "Accurate, Large Minibatch SGD (Goyal et al., 2017), arXiv:1706.02677"
_LIGER = "Liger Kernel (Hsu et al., 2024), arXiv:2410.10989"


# --- GPU601: learning-rate schedule ---

_CONSTANT = ("constant", "constant_with_warmup")


@of_training(alone=True)
def _schedule(run: Run) -> Judgement:
    if not has(run, "lr_scheduler"):
        return _schedule_by_hand(run)
    setting, warmup = run.practice("lr_scheduler"), run.practice("warmup")
    if not setting.known or not isinstance(setting.value, str):
        return cannot_tell(setting)
    name = setting.value.lower()
    if name == "constant":
        return off(Text("固定学习率", "a constant learning rate"), setting)
    if name.endswith("warmup") or not warmup.known:
        return on(setting)
    if (number(run, "warmup") or 0) > 0 or algorithm(run) in ROLLOUT:
        return on(setting)
    return _warm_up(run, warmup)


def _schedule_by_hand(run: Run) -> Judgement:
    call = first_call(run, ".get_scheduler", ".get_cosine_schedule_with_warmup") or next(
        (
            call
            for program in run.python
            for call in program.calls
            if call.name.startswith("torch.optim.lr_scheduler.")
            or (call.method.startswith("get_") and "_schedule_with_warmup" in call.method)
        ),
        None,
    )
    if call is not None:
        return seen(call)
    return cannot_tell(Text("未见学习率调度", "no learning-rate schedule is in sight"))


def _warm_up(run: Run, warmup: Setting) -> Judgement:
    # Transformers' newest releases take warmup_steps only; every release takes an integer.
    by_steps = run.framework in ("hf_trainer", "llamafactory")
    answer = advise(
        run,
        "the first steps of Adam are noisy without warm-up",
        Text("学习率没有预热", "the learning rate does not warm up"),
        Text("学习率预热 3%~10% 的步数", "warm up over 3 to 10 % of the steps"),
        practices=None if by_steps else {"warmup": 0.05},
        parameters={"warmup_steps": 100} if by_steps else None,
        at=warmup,
        share=0.5,
    )
    return with_edits(answer)  # it changes what is learnt


# --- GPU602, GPU603: very large batches, curriculum ---

_LARGE_BATCH = 8192  # samples; LAMB and LARS were made for 8K to 64K


@of_training()
def _large_batch(run: Run) -> Judgement:
    name = text(run, "optimizer") or ""
    if "lamb" in name or "lars" in name:
        return on(run.practice("optimizer"))
    call = first_call(run, ".LAMB", ".FusedLAMB", ".LARS", ".Lamb", ".Lars")
    if call is not None:
        return seen(call)
    batch = _global_batch(run)
    if batch is None:
        return off(Text("仅超大 batch 需要", "for very large batches only"))
    if batch < _LARGE_BATCH:
        why = Text(f"全局 batch 为 {batch}，不需要", f"not needed for a global batch of {batch}")
        return cannot_apply(why)
    return off(Text(f"全局 batch 为 {batch}，可选", f"optional at a global batch of {batch}"))


def _global_batch(run: Run) -> Optional[int]:
    micro, steps = number(run, "micro_batch_size"), number(run, "gradient_accumulation_steps")
    ranks = run.launcher.world_size
    if micro is None or ranks is None:
        return None
    return int(micro * (steps or 1) * ranks)


@of_training(alone=True)
def _curriculum(run: Run) -> Judgement:
    if run.deepspeed is not None:
        for name in (
            "curriculum_learning.enabled",
            "data_efficiency.data_sampling.curriculum_learning.enabled",
        ):
            node = run.deepspeed.get(name)
            if node is not None and node.value is True:
                shown = Evidence(f"{name}=true", node.location)
                said = Text("DeepSpeed 课程学习", "DeepSpeed's curriculum learning")
                return Judgement(Status.ENABLED, evidence=(shown,), current=said)
    return off(Text("未使用课程学习（可选）", "no curriculum (optional)"))


# --- GPU604: adapters where all weights do not fit ---

_ADAPTERS = (
    "lora",
    "qlora",
    "dora",
    "longlora",
    "oft",
    "boft",
    "vera",
    "adapter",
    "bone",
    "reft",
    "fourierft",
    "lora_llm",
)


@of_training()
def _adapters(run: Run) -> Judgement:
    setting = run.practice("tuning")
    lisa = parameter(run, "lisa_activated_layers", default=0)
    if run.framework == "swift" and is_on(lisa):
        return on(lisa, "lisa")
    if not setting.known or not isinstance(setting.value, str):
        return _adapters_by_hand(run, setting)
    name = setting.value.lower()
    if name == "adalora":
        return on(setting, "adalora")
    if name in _ADAPTERS:
        return on(setting, "lora")
    if name != "full":
        return off(Text(f"微调方式 {name}", f"tuning is {name}"), setting)
    return _full(run, setting)


def _adapters_by_hand(run: Run, setting: Setting) -> Judgement:
    call = first_call(run, "peft.get_peft_model", "peft.LoraConfig")
    return seen(call, "lora") if call is not None else cannot_tell(setting)


def _full(run: Run, setting: Setting) -> Judgement:
    """Full tuning: adapters only where even sharding over all GPUs leaves no room."""
    count, memory, parameters = gpus(run), memory_gib(run), run.model.parameters
    optional = Text("全参训练（LoRA 可选）", "all weights are trained (LoRA is optional)")
    if count is None or memory is None or parameters is None:
        return off(optional, setting)
    if run.value("offload_optimizer") in ("cpu", "nvme") or _is_lean(run):
        return off(optional, setting)
    states = model_states(parameters, count, 3)
    if states < memory:
        return off(optional, setting)
    return advise(
        run,
        f"full tuning needs {states:.0f} GiB per GPU for model states even with ZeRO-3 on "
        f"{count} x {memory:g} GiB",
        Text(
            f"全参训练，模型状态每卡约 {states:.0f} GiB，超过显存 {memory:g} GiB",
            f"model states take {states:.0f} GiB per GPU of {memory:g} GiB",
        ),
        Text("改用 LoRA，只训练适配器", "train LoRA adapters only"),
        practices={"tuning": "lora"},
        variant="lora",
        at=setting,
    )


def _is_lean(run: Run) -> bool:
    """An optimizer or precision with far fewer bytes per parameter than mixed Adam."""
    name = text(run, "optimizer") or ""
    lean = ("galore", "badam", "apollo", "8bit", "4bit", "adafactor", "lomo", "muon", "sgd")
    return run.value("precision") == "pure-bf16" or any(word in name for word in lean)


# --- GPU605: a quantized base model ---


@of_training()
def _quantized(run: Run) -> Judgement:
    method = run.practice("quantization_method")
    if not method.known:
        return cannot_tell(method)
    name = str(method.value).lower()
    if name not in ("none", ""):
        return on(method, name)
    if text(run, "tuning") not in _ADAPTERS:
        return cannot_apply(Text("全参训练不量化权重", "full tuning needs unquantized weights"))
    return _unquantized(run)


def _unquantized(run: Run) -> Judgement:
    memory, parameters = memory_gib(run), run.model.parameters
    optional = Text("16 位基座（量化可选）", "16-bit base weights (quantizing is optional)")
    if memory is None or parameters is None:
        return off(optional)
    # Over several GPUs the weights are split first (ZeRO-3): quantizing is for the rest.
    weights = 2 * parameters / GIB / max(_weight_shards(run), gpus(run) or 1)
    if weights < memory:
        return off(optional)
    return advise(
        run,
        f"16-bit weights take {weights:.0f} GiB of a {memory:g} GiB GPU",
        Text(
            f"16 位权重每卡 {weights:.0f} GiB，超过显存 {memory:g} GiB",
            f"16-bit weights take {weights:.0f} GiB per GPU of {memory:g} GiB",
        ),
        Text("QLoRA：4 位量化基座", "QLoRA: keep the base weights in 4 bits"),
        practices={"quantization_method": "bnb", "quantization_bits": 4},
        variant="bnb",
    )


def _weight_shards(run: Run) -> int:
    """Over how many GPUs one copy of the weights is spread, at most."""
    if run.value("zero_stage") == 3 or run.value("fsdp", "none") != "none":
        return gpus(run) or 10**6
    if run.value("device_map", "none") not in ("none", None):
        return gpus(run) or 10**6
    tensor, pipeline = number(run, "tensor_parallel"), number(run, "pipeline_parallel")
    return int((tensor or 1) * (pipeline or 1))


# --- GPU606: frozen layers ---

_FREEZES = (
    "freeze_parameters",
    "freeze_parameters_regex",
    "freeze_parameters_ratio",
    "freeze_trainable_layers",
    "freeze_llm",
    "freeze_layers",
)


@of_training(alone=True)
def _freezing(run: Run) -> Judgement:
    setting = find(run, *_FREEZES)
    if setting is not None and is_on(setting):
        return on(setting)
    call = first_call(run, ".requires_grad_")
    argument = call.positional[0] if call is not None and call.positional else None
    if call is not None and argument is not None and argument.value is False:
        return seen(call)
    for program in run.python:
        for attribute in program.attributes:
            if attribute.name.endswith(".requires_grad") and attribute.value is False:
                return on(attribute)
    return off(Text("未冻结层（可选）", "no layers are frozen (optional)"))


# --- GPU607: fused preference losses ---


@of_training(alone=True)
def _alignment(run: Run) -> Judgement:
    how = algorithm(run)
    fused = imports(run, "liger_kernel.chunked_loss")
    if fused is not None:
        shown = Evidence(f"import {fused.dotted}", fused.location)
        said = Text("使用 Liger 融合损失", "uses Liger's fused losses")
        return Judgement(Status.ENABLED, evidence=(shown,), current=said)
    if how is None:
        return cannot_tell(Text("训练阶段未知", "the training stage is not known"))
    if how not in (*PREFERENCE, "gkd"):
        return cannot_apply(Text(f"{how} 训练", f"a {how} run"))
    switch = _fused_loss_switch(run, how)
    if switch is None:
        return cannot_apply(
            Text("该框架没有融合的对齐损失", "the framework has no fused loss for it")
        )
    setting = parameter(run, switch, default=False)
    if not setting.known:
        return cannot_tell(setting)
    return on(setting) if is_on(setting) else _unfused(run, how, setting)


def _fused_loss_switch(run: Run, how: str) -> Optional[str]:
    """The parameter that turns Liger's chunked loss on, where the trainer has one.

    TRL's DPO and KTO trainers had it until 1.14, first under a name of its own; ms-swift's
    GKD trainer takes Liger's divergence.
    """
    if run.framework == "swift":
        return "use_liger_kernel" if how == "gkd" and not is_megatron(run) else None
    version = version_of(run, "trl")
    if run.framework != "hf_trainer" or how not in ("dpo", "kto") or version >= (1, 15):
        return None
    return "use_liger_kernel" if version >= (1,) else "use_liger_loss"


# The fused losses refuse a reference computed ahead, another loss beside, and parts of logits.
_REFUSED_BY_FUSED_LOSS = (
    "precompute_ref_log_probs",
    "sft_alpha",
    "gkd_logits_topk",
    "teacher_model_server",
)


def _unfused(run: Run, how: str, setting: Setting) -> Judgement:
    refused = find(run, *_REFUSED_BY_FUSED_LOSS)
    if liger_supports(run) is not True or not is_cuda(run) or refused is not None:
        return off(Text(f"{how} 损失未融合（可选）", f"the {how} loss is not fused (optional)"))
    return advise(
        run,
        f"the {how} loss holds the full logits of {_whose_logits(how)} (pip install liger-kernel)",
        Text(f"{how} 损失未融合", f"the {how} loss is not fused"),
        Text(
            "使用 Liger 分块损失，不产生完整 logits",
            "use Liger's chunked loss, which never holds all logits",
        ),
        parameters={setting.name: True},
        at=setting,
    )


def _whose_logits(how: str) -> str:
    if how == "gkd":
        return "student and teacher"
    return "chosen and rejected answers under two models"


# --- ms-swift's optional practices ---

_LORA_ONLY = Text("仅用于 LoRA", "for LoRA only")
_SFT_ONLY = Text("仅用于 SFT", "for supervised tuning only")


def _is_lora(run: Run) -> bool:
    return text(run, "tuning") in ("lora", "longlora", "lora_llm")


def _is_sft(run: Run) -> bool:
    return algorithm(run) == "sft"


def _optional(
    names: tuple[str, ...],
    applies: Callable[[Run], bool],
    otherwise: Text,
    hint: Text,
    variants: tuple[str, ...] = (),
) -> Judge:
    """Judges a parameter that a run may do without; ``variants`` are the values that count."""

    @of_training(alone=True)
    def judge(run: Run) -> Judgement:
        setting = parameter(run, *names)
        if not setting.known:
            return cannot_tell(setting)
        if variants:
            for variant in variants:
                if str(setting.value).lower().startswith(variant):
                    return on(setting, variant)
        elif setting.explicit and is_on(setting):
            return on(setting)
        return off(hint, setting) if applies(run) else cannot_apply(otherwise)

    return judge


_DORA = _optional(
    ("use_dora",),
    _is_lora,
    _LORA_ONLY,
    Text("可选：质量略升、速度略降", "optional: slower, better"),
)
_LORA_PLUS = _optional(
    ("lorap_lr_ratio", "loraplus_lr_ratio"),
    _is_lora,
    _LORA_ONLY,
    Text("可选：B 矩阵用更大学习率", "optional: a larger learning rate for the B matrices"),
)
_RSLORA = _optional(
    ("use_rslora",),
    _is_lora,
    _LORA_ONLY,
    Text("可选：大 rank 时更稳定", "optional: steadier at large ranks"),
)
_INITIAL = _optional(
    ("init_weights", "init_lora_weights"),
    _is_lora,
    _LORA_ONLY,
    Text("默认初始化（可选 PiSSA、LoRA-GA）", "default initialisation (PiSSA, LoRA-GA optional)"),
    ("pissa", "lora-ga"),
)
_NEFTUNE = _optional(
    ("neftune_noise_alpha",),
    _is_sft,
    _SFT_ONLY,
    Text("可选：嵌入噪声", "optional: noise on embeddings"),
)
_DFT = _optional(
    ("enable_dft_loss", "use_dft_loss"),
    _is_sft,
    _SFT_ONLY,
    Text("可选：DFT 损失", "optional: the DFT loss"),
)


def _is_long(run: Run) -> bool:
    return (number(run, "max_length") or 0) > 32768


_ROPE = _optional(
    ("rope_scaling",),
    _is_long,
    Text("序列长度无需扩展", "sequences are not longer than the model's own context"),
    Text("可选：超过模型上下文时扩展", "optional: extends the model's context"),
)


def _has_vision(run: Run) -> bool:
    return not is_text(run)


_LAYERED = _optional(
    ("vit_lr", "aligner_lr"),
    _has_vision,
    TEXT_MODEL,
    Text("可选：视觉与对齐模块单独学习率", "optional: own rates for vision and aligner"),
)


@of_training(alone=True)
def _loss_scale(run: Run) -> Judgement:
    if run.framework != "swift":
        return cannot_apply(NOT_SWIFT)
    how = algorithm(run)
    setting = parameter(run, "loss_scale", default="default", source=_SWIFT_TRAIN)
    if not setting.known:
        return cannot_tell(setting)
    if how == "pt":
        return cannot_apply(Text("预训练对全部 token 计损失", "pre-training learns every token"))
    if setting.value == "all":
        return off(Text("对全部 token 计损失", "the prompt is learnt too"), setting)
    return on(setting)


def _swift_only(judge: Judge) -> Judge:
    """``judge`` for frameworks whose audits ask: the parameters are theirs alone."""

    def judged(run: Run) -> Judgement:
        if run.framework not in ("swift", "llamafactory", "hf_trainer"):
            return cannot_apply(NOT_SWIFT)
        return judge(run)

    return judged


def _item(
    category: str, identifier: str, points: float = 1, group: str = "", variant: str = ""
) -> Item:
    return Item("swift", category, identifier, points, group, variant)


_SCRIPT = """\
#!/bin/bash
#SBATCH --nodes=1
#SBATCH --gres=gpu:{gpu}:{count}
NPROC_PER_NODE={count} swift sft \\
    --model {model} \\
    --tuner_type {tuning} \\
    --torch_dtype bfloat16 \\
    --attn_impl flash_attn \\
    --use_liger_kernel true \\
    --deepspeed zero3 \\
    --dataset AI-ModelScope/alpaca-gpt4-data-en \\
    --max_length 4096 \\
    --packing true \\
    --dataset_num_proc 8 \\
    --dataloader_num_workers 4 \\
    --dataloader_persistent_workers true \\
    --logging_steps 10 \\
{extra}    --output_dir output
"""


def _script(gpu: str, count: int, model: str, tuning: str, extra: str) -> str:
    flags = f"    --{extra} \\\n" if extra else ""
    return _SCRIPT.format(gpu=gpu, count=count, model=model, tuning=tuning, extra=flags)


_DISTILL = """\
NPROC_PER_NODE=8 swift rlhf \\
    --rlhf_type gkd \\
    --model Qwen/Qwen2.5-7B-Instruct \\
    --teacher_model Qwen/Qwen2.5-14B-Instruct \\
    --tuner_type full \\
    --torch_dtype bfloat16 \\
    --attn_impl flash_attn \\
    --deepspeed zero3 \\
    --dataset AI-ModelScope/alpaca-gpt4-data-en \\
    --max_length 4096 \\
    --use_vllm true \\
    --vllm_mode colocate \\
    --sleep_level 1 \\
    --dataloader_num_workers 4 \\
{liger}    --output_dir output/gkd
"""

_72B = ("h100", 8, "Qwen/Qwen2.5-72B-Instruct")
_32B = ("rtx4090", 1, "Qwen/Qwen2.5-32B-Instruct")
_WARM = "warmup_ratio 0.05"

CHECKS: tuple[Check, ...] = (
    Check(
        "GPU601",
        "lr-schedule",
        Text("学习率调度", "Learning-rate schedule"),
        Priority.LOW,
        _schedule,
        why="A learning rate that starts at its full value disturbs the first updates; one "
        "that decays reaches the same loss in fewer steps.",
        fix="Warm up over 3 to 10 % of the steps, then decay by cosine or linearly.",
        ignore="The rate is constant on purpose.",
        items=(Item("general", "G", "lr-schedule", 2),),
        impact=Impact(
            throughput=(0, 0),
            note=Text("收敛更稳定，不影响吞吐", "steadier convergence, the same throughput"),
            source=_WARMUP,
        ),
        examples=(
            Example(
                "swift",
                "train.sh",
                _script(*_72B, "lora", ""),
                _script(*_72B, "lora", _WARM),
            ),
        ),
        sources=(_WARMUP,),
    ),
    Check(
        "GPU602",
        "large-batch-optimizer",
        Text("大 batch 优化器", "Optimizer for very large batches"),
        Priority.LOW,
        _large_batch,
        why="Adam and SGD lose accuracy at batches of many thousands of samples.",
        fix="Use LAMB or LARS for global batches above 8192 samples.",
        items=(Item("general", "G", "large-batch-optimizer", 0.5),),
        impact=Impact(source="LAMB (You et al., 2019), arXiv:1904.00962"),
        difficulty="medium",
        sources=("LAMB (You et al., 2019), arXiv:1904.00962",),
    ),
    Check(
        "GPU603",
        "curriculum",
        Text("课程学习", "Curriculum"),
        Priority.LOW,
        _curriculum,
        why="Short sequences first make early steps cheaper.",
        fix="Use DeepSpeed's curriculum_learning section.",
        items=(Item("general", "G", "curriculum", 0.5),),
        impact=Impact(source="https://www.deepspeed.ai/tutorials/curriculum-learning/"),
        difficulty="medium",
        sources=("https://www.deepspeed.ai/tutorials/curriculum-learning/",),
    ),
    Check(
        "GPU604",
        "adapters",
        Text("参数高效微调", "Parameter-efficient tuning"),
        Priority.HIGH,
        _adapters,
        why="Full tuning with Adam holds 16 bytes per parameter; adapters leave the base "
        "model frozen and hold states for about 1 % of it.",
        fix="Train LoRA adapters, or add GPUs or offload.",
        ignore="All weights must change, and offloading makes them fit.",
        items=(
            Item("general", "G", "lora-qlora", 2, "peft"),
            _item("A", "lora", 3, "tuner", "lora"),
            _item("A", "adalora", 3, "tuner", "adalora"),
            _item("A", "lisa", 3, "tuner", "lisa"),
        ),
        impact=Impact(
            memory=(-87, -70),
            note=Text(
                "每参数 16 字节降到约 2 字节；GPT-3 实测 1.2 TB 降到 350 GB",
                "2 instead of 16 bytes per parameter; GPT-3 took 350 GB instead of 1.2 TB",
            ),
            source=_LORA,
        ),
        examples=(
            Example(
                "swift",
                "train.sh",
                _script(*_72B, "full", _WARM),
                _script(*_72B, "lora", _WARM),
            ),
        ),
        sources=(_LORA, _SWIFT_TUNER),
    ),
    Check(
        "GPU605",
        "quantized-base",
        Text("量化基座（QLoRA）", "Quantized base model (QLoRA)"),
        Priority.HIGH,
        _quantized,
        why="Frozen 16-bit weights take 2 bytes per parameter on every GPU; in 4 bits a quarter.",
        fix="Load the base model in 4 bits (NF4, double quantization).",
        ignore="The weights fit: 4-bit training is slower.",
        items=(
            _item("A", "qlora-bnb", 3, "quantized", "bnb"),
            _item("A", "qlora-hqq", 3, "quantized", "hqq"),
            _item("A", "qlora-eetq", 3, "quantized", "eetq"),
            _item("A", "fp8-quantization", 3, "quantized", "fp8"),
        ),
        impact=Impact(
            memory=(-75, -60),
            note=Text("权重 16 位降到 4 位", "weights of 4 bits instead of 16"),
            source=_QLORA,
        ),
        examples=(
            Example(
                "swift",
                "train.sh",
                _script(*_32B, "lora", _WARM).replace("    --deepspeed zero3 \\\n", ""),
                _script(*_32B, "lora", f"{_WARM} --quant_method bnb --quant_bits 4").replace(
                    "    --deepspeed zero3 \\\n", ""
                ),
            ),
        ),
        sources=(_QLORA, _SWIFT_QUANT),
    ),
    Check(
        "GPU606",
        "layer-freezing",
        Text("层冻结", "Frozen layers"),
        Priority.LOW,
        _freezing,
        why="Frozen layers need neither gradients nor optimizer states.",
        fix="Set requires_grad_(False) on layers that need no training.",
        items=(Item("general", "G", "layer-freezing", 2, "peft"),),
        impact=Impact(source="https://pytorch.org/docs/stable/notes/autograd.html"),
        sources=("https://pytorch.org/docs/stable/notes/autograd.html",),
    ),
    Check(
        "GPU607",
        "alignment-loss",
        Text("对齐训练 Loss 优化", "Fused alignment loss"),
        Priority.MEDIUM,
        _alignment,
        why="Preference losses need log-probabilities of chosen and rejected answers under two "
        "models; full logits of each are the peak of memory.",
        fix="Use Liger's chunked losses, which never hold all logits.",
        items=(Item("general", "G", "alignment-loss", 1),),
        impact=Impact(
            memory=(-80, -10),
            note=Text("上限为官方数据", "the upper end is the makers' own figure"),
            source=_LIGER,
        ),
        examples=(
            Example(
                "swift",
                "gkd.sh",
                _DISTILL.replace("{liger}", ""),
                _DISTILL.replace("{liger}", "    --use_liger_kernel true \\\n"),
            ),
        ),
        sources=(
            _LIGER,
            "trl 0.22.2 to 1.16.0, dpo_trainer.py and kto_trainer.py",
            "ms-swift 4.6.0, rlhf_trainers/gkd_trainer.py",
        ),
    ),
    Check(
        "GPU608",
        "dora",
        Text("DoRA", "DoRA"),
        Priority.LOW,
        _swift_only(_DORA),
        why="DoRA decomposes weights into magnitude and direction; it costs time and memory.",
        fix="Set use_dora where quality matters more than speed.",
        items=(_item("A", "dora"),),
        impact=Impact(source="DoRA (Liu et al., 2024), arXiv:2402.09353"),
        sources=("DoRA (Liu et al., 2024), arXiv:2402.09353", _SWIFT_TUNER),
    ),
    Check(
        "GPU609",
        "lora-plus",
        Text("LoRA+", "LoRA+"),
        Priority.LOW,
        _swift_only(_LORA_PLUS),
        why="A larger learning rate for B converges in fewer steps.",
        fix="Set lorap_lr_ratio (16 in the paper).",
        items=(_item("A", "lora-plus"),),
        impact=Impact(source="LoRA+ (Hayou et al., 2024), arXiv:2402.12354"),
        sources=("LoRA+ (Hayou et al., 2024), arXiv:2402.12354", _SWIFT_TUNER),
    ),
    Check(
        "GPU610",
        "rslora",
        Text("RS-LoRA", "Rank-stabilised LoRA"),
        Priority.LOW,
        _swift_only(_RSLORA),
        why="LoRA's scaling makes large ranks learn no better than small ones.",
        fix="Set use_rslora for large ranks.",
        items=(_item("A", "rslora"),),
        impact=Impact(source="rsLoRA (Kalajdzievski, 2023), arXiv:2312.03732"),
        sources=("rsLoRA (Kalajdzievski, 2023), arXiv:2312.03732", _SWIFT_TUNER),
    ),
    Check(
        "GPU611",
        "lora-initialisation",
        Text("LoRA 初始化", "Initialisation of LoRA"),
        Priority.LOW,
        _swift_only(_INITIAL),
        why="PiSSA and LoRA-GA start the adapters from the weights' or gradients' main "
        "directions, and converge in fewer steps.",
        fix="Set init_weights to pissa or lora-ga.",
        items=(
            _item("A", "pissa", 1, "initial", "pissa"),
            _item("A", "lora-ga", 1, "initial", "lora-ga"),
        ),
        impact=Impact(source="PiSSA (Meng et al., 2024), arXiv:2404.02948"),
        sources=(
            "PiSSA (Meng et al., 2024), arXiv:2404.02948",
            "LoRA-GA (Wang et al., 2024), arXiv:2407.05000",
        ),
    ),
    Check(
        "GPU612",
        "loss-scale",
        Text("Loss Scale", "Loss scale"),
        Priority.LOW,
        _loss_scale,
        why="loss_scale says which tokens count: by default the assistant's.",
        fix="Leave loss_scale at default, or last_round for multi-turn data.",
        items=(_item("I", "loss-scale"),),
        impact=Impact(source="ms-swift 4.6.0, arguments/base_args/template_args.py"),
        sources=("ms-swift 4.6.0, arguments/base_args/template_args.py",),
    ),
    Check(
        "GPU613",
        "neftune",
        Text("NEFTune", "NEFTune"),
        Priority.LOW,
        _swift_only(_NEFTUNE),
        why="Noise on the embeddings improves instruction following at no cost.",
        fix="Set neftune_noise_alpha 5.",
        items=(_item("I", "neftune"),),
        impact=Impact(source="NEFTune (Jain et al., 2023), arXiv:2310.05914"),
        sources=("NEFTune (Jain et al., 2023), arXiv:2310.05914",),
    ),
    Check(
        "GPU614",
        "rope-scaling",
        Text("RoPE 扩展", "RoPE scaling"),
        Priority.LOW,
        _swift_only(_ROPE),
        why="Positions beyond the model's context need scaled rotary embeddings.",
        fix="Set rope_scaling (yarn for long contexts).",
        items=(_item("I", "rope-scaling"),),
        impact=Impact(source="YaRN (Peng et al., 2023), arXiv:2309.00071"),
        sources=("YaRN (Peng et al., 2023), arXiv:2309.00071",),
    ),
    Check(
        "GPU615",
        "dft-loss",
        Text("DFT Loss", "DFT loss"),
        Priority.LOW,
        _swift_only(_DFT),
        why="Dynamic fine-tuning weights each token's loss by its probability.",
        fix="Set enable_dft_loss.",
        items=(_item("I", "dft-loss"),),
        impact=Impact(source="DFT (Wu et al., 2025), arXiv:2508.05629"),
        sources=("DFT (Wu et al., 2025), arXiv:2508.05629", _SWIFT_TRAIN),
    ),
    Check(
        "GPU616",
        "layered-learning-rate",
        Text("分层学习率", "Learning rates by module"),
        Priority.LOW,
        _swift_only(_LAYERED),
        why="A pretrained vision tower wants a smaller learning rate than the aligner.",
        fix="Set vit_lr and aligner_lr.",
        items=(_item("I", "layered-learning-rate"),),
        impact=Impact(source=_SWIFT_TRAIN),
        sources=(_SWIFT_TRAIN,),
    ),
)
