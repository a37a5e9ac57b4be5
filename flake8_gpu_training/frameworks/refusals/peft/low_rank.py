"""What LoRA, AdaLoRA and their parts refuse, and the modules that adapters are for."""

from __future__ import annotations

from flake8_gpu_training.frameworks.refusals import fields
from flake8_gpu_training.frameworks.refusals.base import Options, Refusal
from flake8_gpu_training.frameworks.refusals.peft.short import (
    PATH,
    above,
    among,
    from_0,
    ratio,
    satisfying,
    source,
)
from flake8_gpu_training.language import Text

# --- which modules and layers -------------------------------------------------------------

_OF_TEXTS = (
    "BoneConfig",
    "C3AConfig",
    "DeftConfig",
    "FourierFTConfig",
    "HRAConfig",
    "HiraConfig",
    "LoraConfig",
    "MissConfig",
    "PsoftConfig",
    "ShadowConfig",
    "UniLoraConfig",
    "WaveFTConfig",
)
_OF_PATTERNS = (
    "AdaLoraConfig",
    "BOFTConfig",
    "DeftConfig",
    "DeloraConfig",
    "FourierFTConfig",
    "FrodConfig",
    "HRAConfig",
    "LilyConfig",
    "LoHaConfig",
    "LoKrConfig",
    "LoraConfig",
    "OFTConfig",
    "PeanutConfig",
    "PsoftConfig",
    "PveraConfig",
    "ShadowConfig",
    "TinyLoraConfig",
    "VBLoRAConfig",
    "VeraConfig",
    "WaveFTConfig",
)


def _is_text(options: Options) -> bool:
    return isinstance(options["target_modules"], str)


def _layers_of_a_text(options: Options) -> bool:
    return _is_text(options) and options["layers_to_transform"] is not None


def _pattern_of_a_text(options: Options) -> bool:
    pattern = options["layers_pattern"]
    return _is_text(options) and pattern is not None and options["layers_to_transform"] is None


def _pattern_without_layers(options: Options) -> bool:
    layers = options["layers_to_transform"]
    return bool(options["layers_pattern"]) and layers is None and not _is_text(options)


def _layers(name: str, groups: tuple[str, ...], since: str = "") -> Refusal:
    return Refusal(
        name,
        f"{PATH}, __post_init__",
        ("layers_to_transform", "target_modules"),
        _layers_of_a_text,
        Text(
            "target_modules 写成列表，或去掉 layers_to_transform",
            "give target_modules as a list, or drop layers_to_transform",
        ),
        Text(
            "target_modules={target_modules} 是正则表达式，已决定作用的层",
            "the text {target_modules} decides by itself which layers it matches",
        ),
        groups=groups,
        since=since,
    )


_MODULES = (
    _layers("layers-of-a-regular-expression", (*_OF_TEXTS, "DeloraConfig")),
    _layers("layers-of-adalora", ("AdaLoraConfig",), since="0.11.1"),
    Refusal(
        "pattern-of-a-regular-expression",
        f"{PATH}, __post_init__",
        ("layers_pattern", "target_modules"),
        _pattern_of_a_text,
        Text(
            "target_modules 写成列表，或去掉 layers_pattern",
            "give target_modules as a list, or drop layers_pattern",
        ),
        Text(
            "target_modules={target_modules} 是正则表达式，已决定作用的层",
            "the text {target_modules} decides by itself which layers it matches",
        ),
        groups=_OF_TEXTS,
    ),
    Refusal(
        "pattern-without-layers",
        f"{PATH}, __post_init__",
        ("layers_pattern",),
        _pattern_without_layers,
        Text(
            "同时给出 layers_to_transform，或去掉 layers_pattern",
            "give layers_to_transform too, or drop layers_pattern",
        ),
        Text("layers_pattern 只说明层如何命名", "layers_pattern tells only how layers are named"),
        groups=_OF_PATTERNS,
        since="0.14.0",
    ),
)

# --- LoRA and AdaLoRA -------------------------------------------------------------------

_LORA = "LoraConfig"


def _loftq_without_config(options: Options) -> bool:
    return options["init_lora_weights"] == "loftq" and not options["loftq_config"]


def _bias_beside_init(options: Options) -> bool:
    return bool(options["lora_bias"]) and options["init_lora_weights"] not in (True, False)


def _schedule_without_budget(options: Options) -> bool:
    total = options["total_step"]
    if total is None or total <= 0:
        return False  # told by itself
    return bool(options["tinit"] >= total - options["tfinal"])


def _overlap(options: Options) -> list[str]:
    first, second = (options[f"target_modules_bd_{name}"] or () for name in "ab")
    return sorted(set(first) & set(second))


_LOW_RANK: tuple[Refusal, ...] = (
    fields.exclusive(
        _LORA,
        "dora-beside-megatron",
        "use_dora",
        "megatron_config",
        Text("DoRA 不支持 Megatron 的层", "DoRA has no layers of Megatron"),
        source(_LORA),
        since="0.10.0",
    ),
    fields.exclusive(
        _LORA,
        "dora-beside-bias",
        "lora_bias",
        "use_dora",
        Text("DoRA 不支持 lora_bias", "DoRA has no lora_bias"),
        source(_LORA),
        since="0.14.0",
    ),
    Refusal(
        "target-parameters-text",
        source(_LORA),
        ("target_parameters",),
        lambda options: isinstance(options["target_parameters"], str),
        Text("target_parameters 写成列表", "give target_parameters as a list"),
        Text("不接受字符串 {target_parameters}", "the text {target_parameters} is not taken"),
        write=lambda options: {"target_parameters": [options["target_parameters"]]},
        groups=(_LORA,),
        since="0.17.1",
    ),
    Refusal(
        "loftq-without-config",
        source(_LORA),
        ("init_lora_weights",),
        _loftq_without_config,
        Text("传入 loftq_config=LoftQConfig()", "pass loftq_config=LoftQConfig()"),
        Text("init_lora_weights=loftq 需要它", "init_lora_weights=loftq needs it"),
        groups=(_LORA,),
        since="0.7.1",
    ),
    Refusal(
        "bias-beside-initialisation",
        source(_LORA),
        ("lora_bias", "init_lora_weights"),
        _bias_beside_init,
        Text("去掉 lora_bias 或 init_lora_weights", "drop lora_bias or init_lora_weights"),
        Text(
            "init_lora_weights={init_lora_weights} 不初始化偏置",
            "init_lora_weights={init_lora_weights} does not initialise a bias",
        ),
        groups=(_LORA,),
        since="0.14.0",
    ),
    Refusal(
        "AdaLoraConfig.use_dora",
        source("AdaLoraConfig"),
        ("use_dora",),
        lambda options: bool(options["use_dora"]),
        Text("去掉 use_dora", "drop use_dora"),
        Text("AdaLoRA 不支持 DoRA", "AdaLoRA does not go with DoRA"),
        write=lambda options: {"use_dora": False},
        groups=("AdaLoraConfig",),
        since="0.11.1",
    ),
    Refusal(
        "AdaLoraConfig.loftq_config",
        source("AdaLoraConfig"),
        ("loftq_config",),
        lambda options: bool(options["loftq_config"]),
        Text("去掉 loftq_config", "drop loftq_config"),
        Text("AdaLoRA 不支持 LoftQ", "AdaLoRA does not go with LoftQ"),
        groups=("AdaLoraConfig",),
        since="0.11.1",
    ),
    Refusal(
        "adalora-without-steps",
        source("AdaLoraConfig"),
        ("total_step",),
        lambda options: options["total_step"] is None or options["total_step"] <= 0,
        Text(
            "给出 total_step，即训练的总步数",
            "give total_step: the number of steps that the run trains",
        ),
        Text(
            "AdaLoRA 按总步数分配秩，而 total_step={total_step}",
            "AdaLoRA shares out the rank over them, and total_step is {total_step}",
        ),
        groups=("AdaLoraConfig",),
        since="0.15.2",
    ),
    from_0("AdaLoraConfig", "orth_reg_weight", since="0.20.0"),
    Refusal(
        "adalora-without-budget-phase",
        source("AdaLoraConfig"),
        ("tinit", "tfinal", "total_step"),
        _schedule_without_budget,
        Text("减小 tinit 或 tfinal", "make tinit or tfinal smaller"),
        Text(
            "total_step={total_step} 中没有剩余步数用于分配秩",
            "of total_step={total_step} no step is left to share out the rank",
        ),
        groups=("AdaLoraConfig",),
        since="0.15.2",
    ),
    above("VeloraConfig", "num_groups"),
    above("VeloraConfig", "scale"),
    among("VeloraConfig", "init_type", "batch_average_once", "batch_average", "random"),
    above("ArrowConfig", "top_k"),
    above("ArrowConfig", "router_temperature"),
    Refusal(
        "bdlora-overlap",
        source("BdLoraConfig"),
        ("target_modules_bd_a", "target_modules_bd_b"),
        lambda options: bool(_overlap(options)),
        Text("{modules} 只写入其中一个列表", "write {modules} in one of the two lists only"),
        Text("两个列表有重叠", "the lists overlap"),
        figures=lambda options: {"modules": ", ".join(_overlap(options))},
        groups=("BdLoraConfig",),
    ),
    satisfying("EvaConfig", "rho", lambda value: value >= 1, Text("不小于 1 的数", "1 or more")),
    ratio("EvaConfig", "tau"),
    from_0("KasaConfig", "beta"),
    from_0("KasaConfig", "gamma"),
    above("MontecloraConfig", "num_samples"),
    above("MontecloraConfig", "dirichlet_prior"),
    above("MontecloraConfig", "buffer_size"),
)

REFUSALS: tuple[Refusal, ...] = (*_MODULES, *_LOW_RANK)
