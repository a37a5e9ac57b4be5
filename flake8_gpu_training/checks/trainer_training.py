"""GPU520 to GPU522, GPU640 to GPU644: how the Transformers Trainer reads data, learns and saves."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Optional

from flake8_gpu_training.checks import _flow as flow
from flake8_gpu_training.checks import _videox_shared as videox
from flake8_gpu_training.checks._by_framework import by_framework
from flake8_gpu_training.checks._impacts import by_class
from flake8_gpu_training.checks._judging import (
    Snippet,
    advise,
    cannot_apply,
    cannot_tell,
    keyword_change,
    off,
    on,
)
from flake8_gpu_training.checks._programs import calls, keyword
from flake8_gpu_training.checks._scale import number, text
from flake8_gpu_training.checks._settings import SAMPLING, algorithm, is_on, parameter
from flake8_gpu_training.checks._trainer import (
    ARGUMENTS,
    item,
    missing,
    of_trainer,
    option,
    trainers,
)
from flake8_gpu_training.checks.base import (
    Check,
    Example,
    Impact,
    Item,
    Judgement,
    Priority,
    Status,
)
from flake8_gpu_training.facts import Setting, known
from flake8_gpu_training.frameworks.at_hand import version_at_hand
from flake8_gpu_training.frameworks.reading import NEWEST, find, is_off, truth
from flake8_gpu_training.language import Text
from flake8_gpu_training.runs.model import Run

_QLORA = "QLoRA (Dettmers et al., 2023), arXiv:2305.14314"
_BNB = "transformers 4.57.6 and 5.24.0, utils/quantization_config.py"
_LENGTHS = "transformers 4.57.6 and 5.24.0, trainer_pt_utils.py: LengthGroupedSampler"
# Trainers of TRL that keep the columns whatever remove_unused_columns says (it is off by their
# configurations, or by themselves); of the collators, from which release on they need them no more.
_KEEP_COLUMNS = (
    *("online_dpo", "nash_md", "xpo", "gkd", "distillation", "iw_opd"),
    *("sdft", "sdpo", "a2po", "minillm"),
)
_COLLATE_COLUMNS: Mapping[str, tuple[int, ...]] = {
    **dict.fromkeys(("cpo", "orpo", "bco"), NEWEST),
    "kto": (1, 10),
    "rm": (0, 24),
    "dpo": (0, 12),
}
_REWARDED = ("grpo", "rloo")

# --- GPU520, GPU521: samples of like length ----------------------------------------------

# trl 0.12.1 to 1.16.0: their rows hold prompts and answers apart, and Transformers' sampler
# (trainer_pt_utils.py) stops without a column input_ids.
_WITHOUT_IDS = ("dpo", "kto", "rm")
_NO_IDS = Text(
    "其数据行没有 input_ids，按长度分组会报错",
    "its rows have no input_ids, without which grouping by length stops the run",
)
_UNGROUPED = Text("先按长度分组才用得上", "read only where samples are grouped by length")


@of_trainer
def _grouping(run: Run) -> Judgement:
    setting = run.practice("group_by_length")
    if setting.known and truth(setting.value) is True:
        return on(setting)
    if run.value("packing") is True or run.value("padding_free") is True:
        return cannot_apply(Text("样本已打包，没有填充", "packed samples have no padding"))
    if algorithm(run) in SAMPLING:
        return cannot_apply(Text("训练样本由模型生成", "the model samples what it learns from"))
    if algorithm(run) in _WITHOUT_IDS:
        return cannot_apply(_NO_IDS)
    if run.value("streaming") is True:
        return cannot_apply(Text("流式数据集不能排序", "a streaming dataset cannot be sorted"))
    if run.model.kind in ("vision", "image", "video"):
        return cannot_apply(Text("样本形状固定", "all samples are of one shape"))
    if number(run, "micro_batch_size") == 1:
        return off(Text("每批一个样本，没有填充", "one sample a batch needs no padding"), setting)
    if not setting.known:
        return cannot_tell(setting)
    return off(
        Text(
            "可选：减少填充，但样本顺序不再完全随机",
            "optional: less padding, though samples are no longer drawn at random",
        ),
        setting,
    )


@of_trainer
def _length_column(run: Run) -> Judgement:
    grouping = run.practice("group_by_length")
    if not grouping.known:
        return cannot_tell(grouping)
    if truth(grouping.value) is not True:
        group = _grouping(run)
        return group if group.status is Status.NOT_APPLICABLE else off(_UNGROUPED)
    setting = option(run, "length_column_name", default="length")
    if not setting.known:
        return cannot_tell(setting)
    if setting.explicit:
        return on(setting)
    return off(
        Text(
            "可选：数据集自带长度列时不必逐条计算长度",
            "optional: a column of lengths saves counting them at the start",
        )
    )


# --- GPU522: columns that the model does not take ------------------------------------------


@of_trainer
def _unused_columns(run: Run) -> Judgement:
    setting = option(run, "remove_unused_columns", default=True)
    kept = _keeps_columns(run)
    if kept is not None and not setting.explicit:
        return cannot_apply(kept)
    if not setting.known:
        return cannot_tell(setting)
    if is_on(setting):
        return on(setting)
    return off(
        Text(
            "数据整理函数或奖励函数需要其余列时关闭",
            "all columns are kept, for a collate or reward function that reads them",
        ),
        setting,
    )


def _keeps_columns(run: Run) -> Optional[Text]:
    """Why a trainer of TRL removes no columns though nobody asks it to keep them."""
    how, version = algorithm(run) or "", version_at_hand(run, "trl")
    if how in _REWARDED:
        return Text("奖励函数需要其余列", "the rewards read the other columns")
    if how == "ppo":
        return Text("PPO 训练器自行读取数据，不移除列", "TRL's PPO trainer removes no columns")
    collated = _COLLATE_COLUMNS.get(how)
    own = any("data_collator" in call.keywords for call in trainers(run))
    is_collated = collated is not None and (collated == NEWEST or version < collated)
    if how in _KEEP_COLUMNS or (is_collated and not own):
        return Text(
            "该训练器的数据整理需要其余列，自行关闭了此项",
            "its trainer turns it off: its batches are made of the other columns",
        )
    return None


# --- GPU640: gradient clipping --------------------------------------------------------------


@of_trainer
def _clipping(run: Run) -> Judgement:
    setting = run.practice("max_grad_norm")
    if not setting.known:
        return cannot_tell(setting)
    if is_on(setting):
        return on(setting)
    return off(Text("梯度裁剪已关闭", "gradients are not clipped, on purpose"), setting)


# --- GPU641: label smoothing ------------------------------------------------------------------


@of_trainer
def _smoothing(run: Run) -> Judgement:
    setting = option(run, "label_smoothing_factor", default=0.0)
    if not setting.known:
        return cannot_tell(setting)
    if is_on(setting):
        return on(setting)
    if algorithm(run) not in (None, "sft", "pt"):
        return cannot_apply(
            Text(
                "该算法的损失不使用 label_smoothing_factor",
                "its loss does not take label_smoothing_factor",
            )
        )
    return off(Text("可选：分类与翻译任务的正则化", "optional: regularises classifiers"), setting)


# --- GPU642, GPU643: what is saved, and when ----------------------------------------------------


def _saves_nothing(run: Run) -> bool:
    strategy = find(run, "save_strategy")
    return strategy is not None and known(strategy.value) and is_off(strategy.value)


_UNSAVED = Text("不保存检查点", "nothing is saved")


@of_trainer
def _model_only(run: Run) -> Judgement:
    setting = option(run, "save_only_model", default=False)
    if not setting.known:
        return cannot_tell(setting)
    if is_on(setting):
        return on(setting)
    if _saves_nothing(run):
        return cannot_apply(_UNSAVED)
    return missing(run, "save_only_model") or off(
        Text("可选：检查点小得多，但不能续训", "optional: far smaller, but no run can be resumed"),
        setting,
    )


@of_trainer
def _on_preemption(run: Run) -> Judgement:
    setting = option(run, "enable_jit_checkpoint", default=False)
    if not setting.known:
        return cannot_tell(setting)
    if is_on(setting):
        return on(setting)
    return missing(run, "enable_jit_checkpoint") or off(
        Text("可选：可抢占的集群收到信号时保存", "optional: saves when a cluster preempts the job"),
        setting,
    )


# --- GPU644: 4-bit data type ----------------------------------------------------------------------


@of_trainer
def _four_bits(run: Run) -> Judgement:
    method, bits = run.practice("quantization_method"), run.practice("quantization_bits")
    if not method.known:
        return cannot_tell(method)
    if text(run, "quantization_method") != "bnb" or number(run, "quantization_bits") != 4:
        return cannot_apply(Text("未用 bitsandbytes 4 bit", "no 4-bit weights of bitsandbytes"))
    made = [c for c in calls(run, ".BitsAndBytesConfig") if keyword(c, "load_in_4bit") is True]
    call = made[0] if len(made) == 1 and not made[0].is_open else None
    kind = _quantized_type(run)
    if call is None and not kind.explicit:
        return on(bits, "bnb")
    if not kind.known or str(kind.value).lower() == "nf4":
        return on(bits, "bnb")
    change = None if call is None else keyword_change(run, call, "bnb_4bit_quant_type", "nf4")
    said = 'set bnb_4bit_quant_type="nf4"'
    return advise(
        run,
        "NF4 keeps normally distributed weights more exactly than FP4, in the same 4 bits",
        Text("4 bit 权重类型为 FP4（默认）", "the weights are kept in FP4 (the default)"),
        Text(
            '设置 bnb_4bit_quant_type="nf4"（可加 bnb_4bit_use_double_quant=True）',
            'set bnb_4bit_quant_type="nf4" (and bnb_4bit_use_double_quant=True)',
        ),
        snippet=None
        if change is None
        else Snippet(said, change.text, change.language, change.edits),
        parameters=None if change is not None else {"bnb_4bit_quant_type": "nf4"},
        variant="bnb",
        at=kind if kind.location is not None else bits,
        share=0.8,
    )


def _quantized_type(run: Run) -> Setting:
    """``bnb_4bit_quant_type``: TRL's own option, or the argument of the quantizer's config."""
    for name in ("bnb_4bit_quant_type", "bnb_4bit_quantization_type"):
        setting = find(run, name)
        if setting is not None:
            return setting
    for call in calls(run, ".BitsAndBytesConfig"):
        argument = call.keywords.get("bnb_4bit_quant_type")
        if argument is not None:
            note = f"bnb_4bit_quant_type={argument.written}"
            return Setting("bnb_4bit_quant_type", argument.value, argument.location, note=note)
    return parameter(run, "bnb_4bit_quant_type", default="fp4", source=_BNB)


_QUANTIZED = """\
import torch
from peft import LoraConfig
from transformers import AutoModelForCausalLM, BitsAndBytesConfig
from trl import SFTConfig, SFTTrainer

model = AutoModelForCausalLM.from_pretrained(
    "Qwen/Qwen2.5-7B-Instruct",
    attn_implementation="flash_attention_2",
    quantization_config=BitsAndBytesConfig(
        load_in_4bit=True, bnb_4bit_quant_type="{}", bnb_4bit_compute_dtype=torch.bfloat16
    ),
)
args = SFTConfig(
    output_dir="out",
    bf16=True,
    use_liger_kernel=True,
    packing=True,
    max_length=2048,
    dataloader_num_workers=4,
    dataloader_persistent_workers=True,
)
trainer = SFTTrainer(
    model=model,
    args=args,
    train_dataset=train_dataset,
    peft_config=LoraConfig(target_modules="all-linear", task_type="CAUSAL_LM"),
)
trainer.train()
"""

CHECKS: tuple[Check, ...] = (
    Check(
        "GPU520",
        "group-by-length",
        Text("按长度分组", "Grouping by length"),
        Priority.LOW,
        _grouping,
        why="A batch is padded to its longest sample: samples of like length waste less.",
        fix='Set group_by_length=True, from transformers 5.2 on train_sampling_strategy="'
        'group_by_length"; pack decoders instead.',
        items=item("H", "group-by-length", 1),
        impact=by_class(Priority.LOW, _LENGTHS),
        sources=(_LENGTHS, ARGUMENTS),
    ),
    Check(
        "GPU521",
        "length-column",
        Text("长度列", "Length column"),
        Priority.LOW,
        _length_column,
        why="Without a column of lengths, grouping counts the tokens of every sample first.",
        fix="Store the lengths while tokenising, and name the column in length_column_name.",
        items=item("H", "length-column", 0.5),
        impact=Impact(source=_LENGTHS),
        sources=(_LENGTHS, ARGUMENTS),
    ),
    Check(
        "GPU522",
        "remove-unused-columns",
        Text("移除未用列", "Unused columns removed"),
        Priority.LOW,
        _unused_columns,
        why="Columns that the model does not take are read and collated for nothing.",
        fix="Leave remove_unused_columns at its default.",
        items=item("H", "remove-unused-columns", 0.5),
        impact=Impact(source=ARGUMENTS),
        sources=(ARGUMENTS,),
    ),
    Check(
        "GPU640",
        "gradient-clipping",
        Text("梯度裁剪", "Gradient clipping"),
        Priority.LOW,
        by_framework(_clipping, videox_fun=videox.clipping, flow_factory=flow.clipping),
        why="One batch with a huge gradient can undo many steps.",
        fix="Leave max_grad_norm at its default of 1.0.",
        items=(
            *item("I", "gradient-clipping", 1.5),
            Item("videox-fun", "H", "gradient-clipping", 1.5),
            Item("flow-factory", "F", "gradient-clipping", 1),
        ),
        impact=Impact(source=ARGUMENTS),
        sources=(ARGUMENTS,),
    ),
    Check(
        "GPU641",
        "label-smoothing",
        Text("标签平滑", "Label smoothing"),
        Priority.LOW,
        _smoothing,
        why="Smoothed labels keep a classifier or translator from being too certain.",
        fix="Set label_smoothing_factor=0.1.",
        items=item("I", "label-smoothing", 0.5),
        impact=Impact(source=ARGUMENTS),
        sources=(ARGUMENTS,),
    ),
    Check(
        "GPU642",
        "save-only-model",
        Text("只保存模型", "Only the model saved"),
        Priority.LOW,
        _model_only,
        why="Adam's states are several times the size of the weights, and are written every time.",
        fix="Set save_only_model=True where no checkpoint is resumed.",
        items=item("I", "save-only-model", 1),
        impact=Impact(source=ARGUMENTS),
        sources=(ARGUMENTS,),
    ),
    Check(
        "GPU643",
        "jit-checkpoint",
        Text("抢占前即时保存", "Checkpoint on preemption"),
        Priority.LOW,
        _on_preemption,
        why="A job that is preempted loses what it learnt since its last checkpoint.",
        fix="Set enable_jit_checkpoint=True (transformers 5).",
        items=item("I", "jit-checkpoint", 0.5),
        impact=Impact(source="transformers 5.24.0, training_args.py"),
        sources=("transformers 5.24.0, training_args.py",),
    ),
    Check(
        "GPU644",
        "four-bit-type",
        Text("4 bit 权重的数据类型", "Data type of 4-bit weights"),
        Priority.LOW,
        _four_bits,
        why="QLoRA's NF4 keeps normally distributed weights more exactly than FP4.",
        fix='Set bnb_4bit_quant_type="nf4".',
        items=item("C", "qlora-4bit", 4, "quantized", "bnb"),
        impact=Impact(throughput=(0, 0), source=_QLORA),
        examples=(
            Example("hf_trainer", "train.py", _QUANTIZED.format("fp4"), _QUANTIZED.format("nf4")),
        ),
        sources=(_QLORA, _BNB),
    ),
)
