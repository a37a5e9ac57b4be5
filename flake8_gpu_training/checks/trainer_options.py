"""GPU220 to GPU226, GPU320 to GPU323: options of the Transformers Trainer for memory and speed."""

from __future__ import annotations

from dataclasses import replace
from typing import Optional

from flake8_gpu_training.checks import _flow as flow
from flake8_gpu_training.checks import _sources as sources
from flake8_gpu_training.checks import _videox_shared as videox
from flake8_gpu_training.checks._by_framework import by_framework
from flake8_gpu_training.checks._impacts import by_class
from flake8_gpu_training.checks._judging import (
    advise,
    cannot_apply,
    cannot_tell,
    excluding,
    of_training,
    off,
    on,
    seen,
)
from flake8_gpu_training.checks._kernels import liger_supports
from flake8_gpu_training.checks._programs import calls, first_call, keyword, predicts_tokens
from flake8_gpu_training.checks._scale import architecture, compiles_for_gpu
from flake8_gpu_training.checks._settings import is_on, may_use_flash_attention
from flake8_gpu_training.checks._trainer import (
    ARGUMENTS,
    TOO_OLD,
    TRAINER,
    item,
    missing,
    of_trainer,
    option,
    trainers,
    unless_evaluating,
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
from flake8_gpu_training.checks.memory import recomputation
from flake8_gpu_training.facts import Call, Setting, Unknown, known
from flake8_gpu_training.frameworks.at_hand import version_at_hand
from flake8_gpu_training.frameworks.handed_optimizers import HANDED
from flake8_gpu_training.frameworks.reading import find, is_true, truth
from flake8_gpu_training.language import Text
from flake8_gpu_training.runs.model import Run

_NOT_CUDA = Text("非 CUDA 设备", "not a CUDA device")

# --- GPU220: TF32 -----------------------------------------------------------------------

_BEFORE_AMPERE = ("Pascal", "Volta", "Turing")
_MATMUL_SWITCHES = (
    "torch.backends.cuda.matmul.allow_tf32",
    "torch.backends.cuda.matmul.fp32_precision",
    "torch.backends.fp32_precision",
)


def _matrix_products(run: Run) -> Judgement:
    setting = run.practice("tf32")
    if setting.known and setting.value is True:
        return on(setting)
    for program in run.python:
        for attribute in program.attributes:
            if attribute.name in _MATMUL_SWITCHES and attribute.value in (True, "tf32"):
                return on(attribute)
    call = first_call(run, "torch.set_float32_matmul_precision")
    if call is not None and call.positional and call.positional[0].value in ("high", "medium"):
        return seen(call)
    if architecture(run) in _BEFORE_AMPERE:
        return cannot_apply(Text("Ampere 之前的 GPU 没有 TF32", "GPUs before Ampere have no TF32"))
    if not setting.known:
        return cannot_tell(setting)
    return off(
        Text(
            "可选：只加速仍按 FP32 计算的矩阵乘",
            "optional: for products that are still computed in FP32",
        ),
        setting,
    )


_tf32 = of_trainer(_matrix_products)
_tf32_of_flags = of_training(alone=True)(_matrix_products)

# --- GPU221: evaluation in 16 bits ------------------------------------------------------


@of_trainer
def _half_evaluation(run: Run) -> Judgement:
    for name in ("bf16_full_eval", "fp16_full_eval"):
        setting = option(run, name, default=False)
        if not setting.known:
            return cannot_tell(setting)
        if is_on(setting):
            return on(setting, name.partition("_")[0])
    return unless_evaluating(run) or off(
        Text(
            "可选：16 位评估，省显存，指标略有差异",
            "optional: evaluating in 16 bits saves memory, metrics differ slightly",
        )
    )


# --- GPU222: which implementation recomputes --------------------------------------------


# peft 0.13.2 to 0.21.0, utils/other.py: an empty dict, so that Transformers' own default is not
# taken, and torch.utils.checkpoint's is.
_NONE_HANDED_ON = Text(
    "由 prepare_model_for_kbit_training 启用，未传 use_reentrant：PyTorch 默认 True",
    "prepare_model_for_kbit_training turns it on without use_reentrant: PyTorch takes True",
)


def _is_prepared(run: Run, checkpointing: Setting) -> bool:
    """Whether the model is prepared for k bits, and the Trainer does not switch it again."""
    is_called = checkpointing.note.endswith("(...)")
    return is_called and first_call(run, ".prepare_model_for_kbit_training") is not None


@of_trainer
def _non_reentrant(run: Run) -> Judgement:
    checkpointing = run.practice("gradient_checkpointing")
    if not checkpointing.known:
        return cannot_tell(checkpointing)
    if checkpointing.value is not True:
        if run.value("unsloth") is True:
            return cannot_apply(
                Text("由 Unsloth 自己的实现重计算", "Unsloth recomputes by code of its own")
            )
        if recomputation(run).status is Status.ENABLED:
            return cannot_tell(Text("由代码中的调用决定", "the program's own call decides"))
        return off(Text("未启用梯度检查点", "gradient checkpointing is off"))
    if is_true(find(run, "fsdp_config.activation_checkpointing")):
        return cannot_apply(Text("由 FSDP 包装检查点", "FSDP wraps the layers itself"))
    setting = run.practice("reentrant_checkpointing")
    if _is_prepared(run, checkpointing) and not setting.explicit:
        return off(_NONE_HANDED_ON, checkpointing)
    if not setting.known:
        return cannot_tell(setting)
    if setting.value is False:
        return on(setting)
    return off(
        Text(
            "可选：PyTorch 建议 use_reentrant=False",
            "optional: PyTorch recommends use_reentrant=False",
        ),
        setting,
    )


# --- GPU223, GPU224: memory of the allocator, and the batch that fits ---------------------


@of_trainer
def _empty_cache(run: Run) -> Judgement:
    setting = option(run, "torch_empty_cache_steps")
    if not setting.known:
        return cannot_tell(setting)
    if is_on(setting):
        return on(setting)
    return missing(run, "torch_empty_cache_steps") or off(
        Text(
            "可选：显存碎片过多时使用，约慢 10%",
            "optional: against fragmented memory, about 10 % slower",
        )
    )


@of_trainer
def _automatic_batch(run: Run) -> Judgement:
    setting = option(run, "auto_find_batch_size", default=False)
    if not setting.known:
        return cannot_tell(setting)
    if is_on(setting):
        return on(setting)
    stage = run.practice("zero_stage")
    if stage.known and stage.value == 3:
        return cannot_apply(Text("不支持 ZeRO-3", "it does not go with ZeRO-3"))
    return off(
        Text(
            "可选：显存不足时自动减小批大小", "optional: takes smaller batches when memory is short"
        ),
        setting,
    )


# --- GPU225: predictions of an evaluation -----------------------------------------------

_KEEPING = ("Trainer", "SFTTrainer")


@of_trainer
def _accumulated_predictions(run: Run) -> Judgement:
    setting = option(run, "eval_accumulation_steps")
    if not setting.known:
        return cannot_tell(setting)
    if is_on(setting):
        return on(setting)
    without = unless_evaluating(run)
    if without is not None:
        return without
    if is_on(option(run, "prediction_loss_only", default=False)):
        return cannot_apply(Text("只计算评估损失", "the evaluation computes a loss only"))
    if not _keeps_logits(run):
        return off(
            Text("可选：评估结果占满显存时设置", "optional: when predictions fill the GPU"), setting
        )
    return advise(
        run,
        "the logits of the whole evaluation set stay on the GPU until compute_metrics is called",
        Text(
            "compute_metrics 需要全部 logits，评估期间一直占用显存",
            "compute_metrics takes the logits of the whole set, which are kept on the GPU",
        ),
        Text(
            "设 eval_accumulation_steps=16（或用 preprocess_logits_for_metrics 缩小）",
            "set eval_accumulation_steps=16, which moves them to host memory "
            "(or shrink them in preprocess_logits_for_metrics)",
        ),
        parameters={"eval_accumulation_steps": 16},
        at=setting,
    )


def _keeps_logits(run: Run) -> bool:
    """Whether an evaluation gathers the vocabulary's logits of all its tokens on the GPU."""
    if run.model.kind != "LLM" or not predicts_tokens(run) or run.value("liger_kernel") is True:
        return False
    if is_on(option(run, "batch_eval_metrics", "predict_with_generate", default=False)):
        return False
    made = [call for call in trainers(run) if call.method in _KEEPING]
    return bool(made) and all(_asks_for_logits(call) for call in made)


def _asks_for_logits(call: Call) -> bool:
    shrunk = call.keywords.get("preprocess_logits_for_metrics")
    metrics = call.keywords.get("compute_metrics")
    is_plain = not call.is_open and call.name.startswith(("transformers.", "trl."))
    given = metrics is not None and metrics.text.isidentifier() and metrics.text != "None"
    return is_plain and given and (shrunk is None or shrunk.text == "None")


# --- GPU226: the optimizer ----------------------------------------------------------------

# Names of OptimizerNames (training_args.py) by what they start with; the first that fits.
_OPTIMIZERS = (
    ("adamw_torch_fused", "fused-adamw"),
    ("adamw_apex_fused", "fused-adamw"),
    ("adamw_torch_npu_fused", "fused-adamw"),
    ("adamw_torch_4bit", "adamw-4bit"),
    ("adamw_torch_8bit", "adamw-8bit"),
    ("adamw_bnb_8bit", "adamw-8bit"),
    ("adamw_8bit", "adamw-8bit"),
    ("paged_adamw", "paged-adamw"),
    ("adafactor", "adafactor"),
    ("galore", "galore"),
    ("apollo", "apollo"),
    ("lomo", "lomo"),
    ("adalomo", "lomo"),
    ("schedule_free", "schedule-free"),
)


_FUSES = (4, 27)
"""Releases before have no adamw_torch_fused (training_args.py of 4.26.1; in 4.28.1)."""
_VARIANTS = tuple(dict.fromkeys(kind for _, kind in _OPTIMIZERS))


@of_trainer
def _optimizer(run: Run) -> Judgement:
    setting = run.practice("optimizer")
    handed = isinstance(setting.value, Unknown) and setting.value.reason == HANDED
    if handed or any(_brings_class(call) for call in trainers(run)):
        return cannot_tell(
            Text("优化器由程序传给 Trainer", "the program hands an optimizer to the Trainer")
        )
    if not setting.known or not isinstance(setting.value, str):
        return cannot_tell(setting)
    name = setting.value.lower()
    variant = next((kind for start, kind in _OPTIMIZERS if name.startswith(start)), "")
    if variant:
        return on(setting, variant)
    if run.value("offload_optimizer", "none") not in ("none", None):
        return on(setting, "fused-adamw") if _is_of_deepspeed(run) else _on_the_cpu()
    if _is_of_deepspeed(run):
        return on(setting, "fused-adamw")
    is_handed = setting.note.startswith("torch.optim.") and name in ("adam", "adamw")
    if name != "adamw_torch" and not is_handed:
        other = off(Text(f"使用优化器 {name}", f"the optimizer is {name}"), setting)
        if version_at_hand(run, "transformers") < _FUSES:
            return excluding(other, TOO_OLD, "fused-adamw")
        return other
    if not compiles_for_gpu(run):
        return cannot_apply(_NOT_CUDA)
    return _fused_by_hand(setting) if is_handed else _advise_fused(run, setting)


def _fused_by_hand(setting: Setting) -> Judgement:
    """The optimizer that a program builds and hands over takes the implementation itself."""
    made = setting.note.partition("(")[0]
    return Judgement(
        Status.RECOMMENDED,
        "fused-adamw",
        evidence=(Evidence.of(setting),),
        current=Text(f"{made} 未融合", f"{made} is not fused"),
        action=Text(f"给 {made} 加上 fused=True", f"give {made} fused=True"),
    )


def _on_the_cpu() -> Judgement:
    return cannot_apply(Text("优化器已卸载到 CPU", "the optimizer runs on the CPU, offloaded"))


def _brings_class(call: Call) -> bool:
    given = call.keywords.get("optimizer_cls_and_kwargs")
    return given is not None and given.text != "None"


def _is_of_deepspeed(run: Run) -> bool:
    """Whether DeepSpeed makes the optimizer: its Adam is fused, on the GPU as on the CPU."""
    kind = run.deepspeed.get("optimizer.type") if run.deepspeed is not None else None
    return kind is not None and known(kind.value) and kind.value in ("Adam", "AdamW")


def _advise_fused(run: Run, setting: Setting) -> Judgement:
    """What GPU306 reports, for the audit's own item."""
    answer = advise(
        run,
        "one kernel updates all parameters instead of several a tensor",
        Text("优化器 adamw_torch 未融合", "adamw_torch is not fused"),
        Text("改用 adamw_torch_fused", "use adamw_torch_fused"),
        practices={"optimizer": "adamw_torch_fused"},
        variant="fused-adamw",
        at=setting,
    )
    return replace(answer, findings=(), change=None)


# --- GPU320: attention that is switched on the loaded model --------------------------------


_SWITCHES = (4, 54)
"""The first release with PreTrainedModel.set_attn_implementation (modeling_utils.py; not in
4.53.3)."""


@of_trainer
def _attention_switch(run: Run) -> Judgement:
    call = first_call(run, ".set_attention_implementation", ".set_attn_implementation")
    if call is not None:
        if call.conditions:
            return cannot_tell(Text("取决于分支", "a branch decides"))
        return seen(call)
    if version_at_hand(run, "transformers") < _SWITCHES:
        return cannot_apply(
            Text("Transformers 4.54 起才可切换", "it takes Transformers 4.54 or newer")
        )
    if not may_use_flash_attention(run):
        return off(Text("该 GPU 没有更快的内核可换", "the GPU has no faster kernel to switch to"))
    return off(
        Text(
            "可选：加载后用 set_attn_implementation 切换",
            "optional: set_attn_implementation switches a loaded model",
        )
    )


# --- GPU321, GPU322: how torch.compile compiles ---------------------------------------------

_UNFUSED_BACKENDS = ("eager", "aot_eager", "no")


def _compiling(run: Run) -> Optional[Judgement]:
    """The answer for runs that compile nothing; None for those that do."""
    setting = run.practice("torch_compile")
    if (setting.known and setting.value is True) or _compiled(run) is not None:
        return None
    if not setting.known:
        return cannot_tell(setting)
    return off(Text("未启用 torch.compile", "torch.compile is off"))


def _compiled(run: Run) -> Optional[Call]:
    return first_call(run, "torch.compile")


def _of_compiler(run: Run, name: str) -> Optional[Setting]:
    """``backend`` or ``mode`` as the arguments, the launcher or the call itself have it."""
    setting = find(run, f"torch_compile_{name}")
    if setting is None:
        setting = run.launcher.options.get(f"dynamo_{name}")
    if setting is None and run.accelerate is not None:
        setting = run.accelerate.settings().get(f"dynamo_config.dynamo_{name}")
    if setting is not None:
        return setting
    for call in calls(run, "torch.compile"):
        value = keyword(call, name)
        if value is not None:
            note = f"torch.compile({name}={call.keywords[name].written})"
            return Setting(name, value, call.keywords[name].location, note=note)
        if call.is_open:
            return Setting(name, Unknown("arguments of the call are not all known"))
    return None


@of_trainer
def _compile_backend(run: Run) -> Judgement:
    idle = _compiling(run)
    if idle is not None:
        return idle
    setting = _of_compiler(run, "backend")
    if setting is None:
        return on(f"inductor ({ARGUMENTS}; torch.compile)")
    if not setting.known:
        return cannot_tell(setting)
    if str(setting.value).lower() in _UNFUSED_BACKENDS:
        return off(
            Text("该后端不融合算子，只用于调试", "this back end fuses nothing: for debugging only"),
            setting,
        )
    return on(setting)


@of_trainer
def _compile_mode(run: Run) -> Judgement:
    idle = _compiling(run)
    if idle is not None:
        return idle
    setting = _of_compiler(run, "mode")
    if setting is not None and not setting.known:
        return cannot_tell(setting)
    if setting is not None and str(setting.value) not in ("default", "None", ""):
        return on(setting)
    return off(
        Text(
            "可选：形状固定时用 reduce-overhead 或 max-autotune",
            "optional: reduce-overhead or max-autotune where shapes are fixed",
        ),
        setting,
    )


# --- GPU323: which of Liger's kernels ------------------------------------------------------


_NOT_BY_LIGER = Text("Liger 没有该模型的算子", "Liger has no kernels for this model")


@of_trainer
def _liger_config(run: Run) -> Judgement:
    setting = option(run, "liger_kernel_config")
    if not setting.known:
        return cannot_tell(setting)
    if setting.value is not None:
        return on(setting)
    liger = run.practice("liger_kernel")
    if not liger.known:
        return cannot_tell(liger)
    if truth(liger.value) is not True:
        if liger_supports(run) is False:
            return cannot_apply(_NOT_BY_LIGER)
        return off(Text("未启用 Liger Kernel", "Liger kernels are off"))
    if not is_true(find(run, "use_liger_kernel")):
        return cannot_apply(Text("由代码直接应用 Liger", "the code applies Liger itself"))
    return missing(run, "liger_kernel_config") or off(
        Text("默认算子即可，可选单独开关", "the default kernels will do; each has a switch")
    )


_METRICS = """\
from transformers import AutoModelForCausalLM, Trainer, TrainingArguments


def compute_metrics(prediction):
    return {{"accuracy": (prediction.predictions.argmax(-1) == prediction.label_ids).mean()}}


model = AutoModelForCausalLM.from_pretrained(
    "Qwen/Qwen2.5-7B-Instruct", attn_implementation="flash_attention_2"
)
args = TrainingArguments(
    output_dir="out",
    bf16=True,
    gradient_checkpointing=True,
    per_device_train_batch_size=2,
    gradient_accumulation_steps=8,
    eval_strategy="steps",
    {}use_liger_kernel=False,
    dataloader_num_workers=4,
)
trainer = Trainer(
    model=model,
    args=args,
    train_dataset=train_dataset,
    eval_dataset=eval_dataset,
    compute_metrics=compute_metrics,
)
trainer.train()
"""

_H = "transformers"

CHECKS: tuple[Check, ...] = (
    Check(
        "GPU220",
        "tf32",
        Text("TF32 矩阵乘", "TF32 matrix products"),
        Priority.LOW,
        by_framework(_tf32, videox_fun=_tf32_of_flags),
        why="Products that autocast leaves in FP32 run on tensor cores only as TF32.",
        fix="Set tf32=True on Ampere and newer GPUs.",
        items=(
            *item("A", "tf32", 1),
            Item("videox-fun", "A", "tf32", 1),
        ),
        impact=by_class(Priority.LOW, sources.HF_SINGLE_GPU),
        sources=(sources.HF_SINGLE_GPU, ARGUMENTS),
    ),
    Check(
        "GPU221",
        "half-precision-evaluation",
        Text("16 位评估", "Evaluation in 16 bits"),
        Priority.LOW,
        _half_evaluation,
        why="An evaluation in 16 bits needs half the memory of one in FP32.",
        fix="Set bf16_full_eval=True where metrics may differ slightly.",
        items=(
            *item("A", "bf16-full-eval", 1, "evaluation", "bf16"),
            *item("A", "fp16-full-eval", 1, "evaluation", "fp16"),
        ),
        impact=Impact(source=ARGUMENTS),
        sources=(ARGUMENTS,),
    ),
    Check(
        "GPU222",
        "non-reentrant-checkpointing",
        Text("非重入式梯度检查点", "Non-reentrant checkpointing"),
        Priority.LOW,
        _non_reentrant,
        why="The reentrant implementation asks for inputs with a gradient, and hides the graph "
        "from DDP and from hooks.",
        fix='Set gradient_checkpointing_kwargs={"use_reentrant": False}.',
        items=item("B", "non-reentrant", 1),
        impact=Impact(source="https://pytorch.org/docs/stable/checkpoint.html"),
        sources=("https://pytorch.org/docs/stable/checkpoint.html", TRAINER),
    ),
    Check(
        "GPU223",
        "empty-cache-steps",
        Text("定期清空显存缓存", "Emptying the cache every few steps"),
        Priority.LOW,
        _empty_cache,
        why="Samples of varying length fragment the allocator's memory; emptying it lowers the "
        "peak, for about a tenth of the speed.",
        fix="Set torch_empty_cache_steps where memory is short by little.",
        items=item("B", "empty-cache-steps", 0.5),
        impact=Impact(throughput=(-10, 0), source=ARGUMENTS),
        sources=(ARGUMENTS,),
    ),
    Check(
        "GPU224",
        "auto-batch-size",
        Text("自动批大小", "Automatic batch size"),
        Priority.LOW,
        _automatic_batch,
        why="A batch that does not fit ends the run; the Trainer can take a smaller one instead.",
        fix="Set auto_find_batch_size=True (not with ZeRO-3).",
        items=item("B", "auto-batch-size", 0.5),
        impact=Impact(source=TRAINER),
        sources=(TRAINER,),
    ),
    Check(
        "GPU225",
        "eval-accumulation",
        Text("评估结果分批移出显存", "Predictions moved off the GPU"),
        Priority.MEDIUM,
        _accumulated_predictions,
        why="Where compute_metrics is given, the Trainer keeps the predictions of the whole "
        "evaluation set on the GPU: of a language model a number for each token and word.",
        fix="Set eval_accumulation_steps, or return less from preprocess_logits_for_metrics.",
        ignore="The evaluation set is tiny.",
        items=item("B", "eval-accumulation", 1),
        impact=Impact(
            note=Text(
                "词表 15 万、FP32 时每 1000 个 token 约 0.6 GB",
                "0.6 GB for 1,000 tokens, with a vocabulary of 150,000 in FP32",
            ),
            source=TRAINER,
        ),
        examples=(
            Example(
                "hf_trainer",
                "train.py",
                _METRICS.format(""),
                _METRICS.format("eval_accumulation_steps=16,\n    "),
            ),
        ),
        sources=(ARGUMENTS, TRAINER),
    ),
    Check(
        "GPU226",
        "trainer-optimizer",
        Text("Trainer 的优化器", "The Trainer's optimizer"),
        Priority.LOW,
        by_framework(
            _optimizer, videox_fun=videox.lean_optimizer, flow_factory=flow.lean_optimizer
        ),
        why="Adam's moments take 8 bytes a trained parameter, 2 in 8 bits; a fused update "
        "launches one kernel instead of thousands.",
        fix="Use adamw_torch_fused; paged_adamw_8bit, GaLore or APOLLO where memory is short.",
        items=(
            *(Item(_H, "D", name, 7, "optimizer", name) for name in _VARIANTS),
            Item("videox-fun", "A", "adam-8bit", 1.5, "optimizer", "adamw-8bit"),
            Item("videox-fun", "A", "came", 1.5, "optimizer", "came"),
            Item("flow-factory", "J", "adam-8bit", 0.5, "", "adamw-8bit"),
        ),
        impact=by_class(Priority.LOW, sources.PYTORCH_TUNING),
        sources=(ARGUMENTS, sources.PYTORCH_TUNING),
    ),
    Check(
        "GPU320",
        "attention-switch",
        Text("运行时切换注意力实现", "Attention switched at run time"),
        Priority.LOW,
        _attention_switch,
        why="A loaded model takes another attention kernel without being loaded again.",
        fix='Call model.set_attn_implementation("flash_attention_2").',
        items=item("F", "runtime-switch", 5, "attention"),
        impact=Impact(source="transformers 5.24.0, modeling_utils.py"),
        sources=("transformers 5.24.0, modeling_utils.py",),
    ),
    Check(
        "GPU321",
        "compile-backend",
        Text("编译后端", "Compiler back end"),
        Priority.LOW,
        _compile_backend,
        why="Inductor writes fused kernels; eager back ends only trace.",
        fix="Leave torch_compile_backend at inductor.",
        items=item("G", "compile-backend", 0.5),
        impact=by_class(Priority.LOW, sources.PYTORCH_2),
        sources=(sources.PYTORCH_2, ARGUMENTS),
    ),
    Check(
        "GPU322",
        "compile-mode",
        Text("编译模式", "Compiler mode"),
        Priority.LOW,
        _compile_mode,
        why="reduce-overhead replays CUDA graphs, max-autotune measures kernels beforehand.",
        fix="Set torch_compile_mode where shapes are fixed.",
        items=item("G", "compile-mode", 0.5),
        impact=by_class(Priority.LOW, sources.PYTORCH_2),
        sources=(sources.PYTORCH_2, ARGUMENTS),
    ),
    Check(
        "GPU323",
        "liger-config",
        Text("Liger 算子选择", "Choice of Liger kernels"),
        Priority.LOW,
        _liger_config,
        why="Each of Liger's kernels can be switched on and off.",
        fix='Set liger_kernel_config={"fused_linear_cross_entropy": True}.',
        items=item("G", "liger-config", 0.5),
        impact=Impact(source=ARGUMENTS),
        sources=(ARGUMENTS, sources.LIGER),
    ),
)
