"""GPU608 to GPU616: practices that an ms-swift run may do without."""

from __future__ import annotations

from typing import Callable, Optional

from flake8_gpu_training.checks import _videox_shared as videox
from flake8_gpu_training.checks._by_framework import by_framework
from flake8_gpu_training.checks._judging import (
    Judge,
    cannot_apply,
    cannot_tell,
    excluding,
    of_training,
    off,
    on,
)
from flake8_gpu_training.checks._llamafactory import OLDER, is_quantized_for_good
from flake8_gpu_training.checks._scale import number, text
from flake8_gpu_training.checks._settings import (
    NOT_SWIFT,
    TEXT_MODEL,
    adapter_parameter,
    algorithm,
    is_on,
    is_text,
    is_unknown,
    parameter,
    task,
)
from flake8_gpu_training.checks._swift import missing
from flake8_gpu_training.checks.adapters import freezes_alone
from flake8_gpu_training.checks.base import (
    Check,
    Impact,
    Item,
    Judgement,
    Priority,
    Status,
)
from flake8_gpu_training.frameworks.at_hand import lacks
from flake8_gpu_training.frameworks.reading import find, truth
from flake8_gpu_training.frameworks.swift_releases import is_of_2
from flake8_gpu_training.language import Text
from flake8_gpu_training.runs.model import Run

_SWIFT_TUNER = "ms-swift 4.6.0, arguments/tuner_args.py"
_SWIFT_TRAIN = "ms-swift 4.6.0, trainers/arguments.py"


_OTHER_MODEL = Text("Megatron 不构建该模型", "Megatron builds a model of its own")
_LORA_ONLY = Text("仅用于 LoRA", "for LoRA only")
_SFT_ONLY = Text("仅用于 SFT", "for supervised tuning only")


def _is_lora(run: Run) -> bool:
    return text(run, "tuning") in ("lora", "longlora", "lora_llm")


def _is_sft(run: Run) -> bool:
    if run.framework == "hf_trainer" and algorithm(run) in (None, "pt"):
        return run.model.kind not in ("vision", "image", "video", "audio")
    return algorithm(run) == "sft"


def _optional(
    names: tuple[str, ...],
    applies: Callable[[Run], bool],
    otherwise: Text,
    hint: Text,
    variants: tuple[str, ...] = (),
    decided_by: str = "",
) -> Judge:
    """Judges a parameter that a run may do without; ``variants`` are the values that count.

    ``decided_by``: the practice that ``applies`` asks about.
    """

    @of_training(alone=True)
    def judge(run: Run) -> Judgement:
        setting = adapter_parameter(run, *names)
        of_trainer = run.framework == "hf_trainer"  # its programs do not name what they do
        ruling = run.practice(decided_by) if decided_by and not of_trainer else None
        if not setting.known:
            excluded = ruling is not None and ruling.known and not applies(run)
            return cannot_apply(otherwise) if excluded else cannot_tell(setting)
        if variants:
            for variant in variants:
                if str(setting.value).lower().startswith(variant):
                    return on(setting, variant)
        elif setting.explicit and is_on(setting):
            return on(setting)
        absent = missing(run, *names)
        if run.framework == "llamafactory" and lacks(run, "llamafactory", "train", names[0]):
            absent = OLDER
        if run.framework == "llamafactory" and run.value("megatron") is True:
            absent = _OTHER_MODEL
        if absent is not None:
            return cannot_apply(absent)
        if applies is _is_lora and not run.practice("tuning").known:
            return cannot_tell(run.practice("tuning"))
        if applies(run):
            return off(hint, setting)
        decides = setting if ruling is None else ruling
        return cannot_apply(otherwise) if decides.known else cannot_tell(decides)

    return judge


_DORA = _optional(
    ("use_dora",),
    _is_lora,
    _LORA_ONLY,
    Text("可选：质量略升、速度略降", "optional: better, but slower"),
    decided_by="tuning",
)
# llamafactory 0.8.3 to 0.9.5, model/adapter.py.
_NO_DORA = Text("GPTQ、AWQ、AQLM 权重不支持", "not over weights of GPTQ, AWQ or AQLM")


def _dora(run: Run) -> Judgement:
    answer = _DORA(run)
    if freezes_alone(run):
        return cannot_apply(_LORA_ONLY)
    if answer.status is Status.DISABLED and run.framework == "llamafactory":
        return cannot_apply(_NO_DORA) if is_quantized_for_good(run) else answer
    return answer


def _two_rates(*names: str) -> Judge:
    return _optional(
        names,
        _is_lora,
        _LORA_ONLY,
        Text("可选：B 矩阵用更大学习率", "optional: a larger learning rate for the B matrices"),
        decided_by="tuning",
    )


_LORA_PLUS = by_framework(
    _two_rates("lorap_lr_ratio", "lora_lr_ratio"), llamafactory=_two_rates("loraplus_lr_ratio")
)
_RSLORA = _optional(
    ("use_rslora",),
    _is_lora,
    _LORA_ONLY,
    Text("可选：大 rank 时更稳定", "optional: steadier at large ranks"),
    decided_by="tuning",
)
_INITIAL = _optional(
    ("init_weights", "init_lora_weights"),
    _is_lora,
    _LORA_ONLY,
    Text("默认初始化（可选 PiSSA、LoRA-GA）", "default initialisation (PiSSA, LoRA-GA optional)"),
    ("pissa", "lora-ga"),
    "tuning",
)


def _initial(run: Run) -> Judgement:
    answer = _INITIAL(run)
    start = find(run, "init_weights", "init_lora_weights")
    if answer.status is Status.DISABLED and start is not None and start.known:
        told = f"init_weights={start.value}"
        answer = off(
            Text(f"{told}（可选 PiSSA、LoRA-GA）", f"{told} (PiSSA, LoRA-GA optional)"), start
        )
    if text(run, "quantization_method") in (None, "none"):
        return answer
    why = Text("PiSSA 需要未量化的权重", "PiSSA starts from unquantized weights")
    return excluding(answer, why, "pissa")


def _noise(applies: Callable[[Run], bool], otherwise: Text) -> Judge:
    return _optional(
        ("neftune_noise_alpha",),
        applies,
        otherwise,
        Text("可选：嵌入噪声", "optional: noise on embeddings"),
        decided_by="algorithm",
    )


# LLaMA-Factory's stages are Transformers' Trainer, which adds the noise, but for PPO's own loop.
_NEFTUNE = by_framework(
    _noise(_is_sft, _SFT_ONLY),
    llamafactory=_noise(lambda run: algorithm(run) != "ppo", Text("PPO 不支持", "not with PPO")),
)


def _dft(name: str) -> Judge:
    return _optional(
        (name,),
        _is_sft,
        _SFT_ONLY,
        Text("可选：DFT 损失", "optional: the DFT loss"),
        decided_by="algorithm",
    )


_DFT = by_framework(_dft("enable_dft_loss"), llamafactory=_dft("use_dft_loss"))


def _is_long(run: Run) -> bool:
    return (number(run, "max_length") or 0) > 32768


_ROPE = _optional(
    ("rope_scaling",),
    _is_long,
    Text("序列长度无需扩展", "sequences are not longer than the model's own context"),
    Text("可选：超过模型上下文时扩展", "optional: extends the model's context"),
)


def _trains_vision(run: Run) -> bool:
    if text(run, "tuning") == "lora_llm":  # the tower and the aligner are trained whole
        return True
    modules = ("freeze_vit", "freeze_aligner")
    return any(truth(parameter(run, name, default=True).value) is False for name in modules)


_LAYERED_TRAINED = _optional(
    ("vit_lr", "aligner_lr"),
    _trains_vision,
    Text("视觉与对齐模块被冻结", "vision tower and aligner are frozen"),
    Text("可选：视觉与对齐模块单独学习率", "optional: own rates for vision and aligner"),
)


@of_training(alone=True)
def _layered(run: Run) -> Judgement:
    if is_unknown(run):
        return cannot_tell(Text("模型未知", "the model is not known"))
    told = run.model.kind != "unknown"
    return cannot_apply(TEXT_MODEL) if told and is_text(run) else _LAYERED_TRAINED(run)


_UNSCALED = ("rm", "ppo")  # rewards of whole answers; the trainer masks what it samples


@of_training(alone=True)
def _loss_scale(run: Run) -> Judgement:
    if run.framework != "swift":
        return cannot_apply(NOT_SWIFT)
    how = algorithm(run)
    if how == "pt":
        return cannot_apply(Text("预训练对全部 token 计损失", "pre-training learns every token"))
    if how in _UNSCALED or task(run) not in ("causal_lm", ""):
        return cannot_apply(Text("不逐 token 计损失", "its loss is not one of tokens"))
    if is_of_2(run):
        whole = parameter(run, "use_loss_scale", default=False)
        return on(whole) if is_on(whole) else off(_UNWEIGHTED, whole)
    default, source = _usual_scale(how)
    setting = parameter(run, "loss_scale", default=default, source=source)
    return on(setting) if setting.known else cannot_tell(setting)


_UNWEIGHTED = Text(
    "未使用 use_loss_scale；可选", "off: all tokens of an answer count alike (optional)"
)


def _usual_scale(how: Optional[str]) -> tuple[str, str]:
    """The default: preferences and rollouts are learnt from the last answer alone."""
    if how in ("sft", "orpo", None):
        return "default", "ms-swift 3.12.6 and 4.6.0, template_args.py"
    return "last_round", "ms-swift 3.12.6 and 4.6.0, rlhf_args.py"


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


CHECKS: tuple[Check, ...] = (
    Check(
        "GPU608",
        "dora",
        Text("DoRA", "DoRA"),
        Priority.LOW,
        _swift_only(_dora),
        why="DoRA decomposes weights into magnitude and direction; it costs time and memory.",
        fix="Set use_dora where quality matters more than speed.",
        items=(
            _item("A", "dora"),
            Item("llamafactory", "A", "dora", 1),
            Item("transformers", "C", "dora", 1),
        ),
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
        fix="Set lorap_lr_ratio, or LlamaFactory's loraplus_lr_ratio (16 in the paper).",
        items=(_item("A", "lora-plus"), Item("llamafactory", "A", "loraplus", 1)),
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
        items=(_item("A", "rslora"), Item("llamafactory", "A", "rslora", 1)),
        impact=Impact(source="rsLoRA (Kalajdzievski, 2023), arXiv:2312.03732"),
        sources=("rsLoRA (Kalajdzievski, 2023), arXiv:2312.03732", _SWIFT_TUNER),
    ),
    Check(
        "GPU611",
        "lora-initialisation",
        Text("LoRA 初始化", "Initialisation of LoRA"),
        Priority.LOW,
        _swift_only(_initial),
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
        fix="Leave loss_scale at default, or take last_round for multi-turn data.",
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
        items=(
            _item("I", "neftune"),
            Item("llamafactory", "I", "neftune", 1),
            Item("transformers", "I", "neftune", 0.5),
        ),
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
        items=(_item("I", "rope-scaling"), Item("llamafactory", "I", "rope-scaling", 1)),
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
        fix="Set enable_dft_loss, or LlamaFactory's use_dft_loss.",
        items=(
            _item("I", "dft-loss"),
            Item("llamafactory", "I", "dft-loss", 1, "loss"),
        ),
        impact=Impact(source="DFT (Wu et al., 2025), arXiv:2508.05629"),
        sources=("DFT (Wu et al., 2025), arXiv:2508.05629", _SWIFT_TRAIN),
    ),
    Check(
        "GPU616",
        "layered-learning-rate",
        Text("分层学习率", "Learning rates by module"),
        Priority.LOW,
        by_framework(_swift_only(_layered), videox_fun=videox.second_rate),
        why="A pretrained vision tower wants a smaller learning rate than the aligner.",
        fix="Set vit_lr and aligner_lr.",
        items=(
            _item("I", "layered-learning-rate"),
            Item("videox-fun", "H", "dual-learning-rate", 0.5),
        ),
        impact=Impact(source=_SWIFT_TRAIN),
        sources=(_SWIFT_TRAIN,),
    ),
)
