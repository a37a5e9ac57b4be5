"""What the configurations of the other adapters refuse."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Optional

from flake8_gpu_training.frameworks.refusals.base import Options, Refusal
from flake8_gpu_training.frameworks.refusals.peft.short import (
    above,
    among,
    from_0,
    ratio,
    satisfying,
    source,
)
from flake8_gpu_training.language import Text


def _blocks(group: str, size: str, count: str) -> Iterator[Refusal]:
    """A size and a number of blocks, of which exactly one is to be given."""

    def neither(options: Options) -> bool:
        return bool(options[size] == 0 and options[count] == 0)

    def both(options: Options) -> bool:
        return bool(options[size] != 0 and options[count] != 0)

    def other(options: Options) -> Mapping[str, Any]:
        given = [name for name in (size, count) if name in options.given]
        return {count if given == [size] else size: 0}

    for name, holds, mend, why, write in (
        (
            "none",
            neither,
            Text(f"给出 {size} 或 {count}", f"give {size} or {count}"),
            Text("两者都为 0", "both are 0"),
            None,
        ),
        (
            "both",
            both,
            Text(f"{size} 与 {count} 之一设为 0", f"set one of {size} and {count} to 0"),
            Text(
                f"{size}={{{size}}} 与 {count}={{{count}}} 相互决定",
                f"{size}={{{size}}} and {count}={{{count}}} decide each other",
            ),
            other,
        ),
    ):
        yield Refusal(
            f"{group}.{name}",
            source(group),
            (count, size) if group == "BOFTConfig" else (size, count),
            holds,
            mend,
            why,
            write=write or (lambda options: {}),
            groups=(group,),
            since="0.14.0" if group == "OFTConfig" else "",
        )


def _feeds_elsewhere(options: Options) -> Optional[set[str]]:
    modules, inner = options["target_modules"], options["feedforward_modules"]
    if not isinstance(modules, (list, set)) or not isinstance(inner, (list, set)):
        return None
    return set(inner) - set(modules)


def _adapts(options: Options) -> bool:
    return options["use_asa"] is True


def _ends_before(options: Options) -> bool:
    return _adapts(options) and options["init_warmup"] >= options["final_warmup"]


def _mirrored(options: Options) -> list[str]:
    if options["shadow_model"] == "mirror":
        return []
    names = ("num_hidden_layers", "hidden_size", "num_attention_heads", "intermediate_size")
    return [f"shadow_{n}" for n in names if options[f"shadow_{n}"] is not None]


def _indivisible(options: Options) -> bool:
    parts = options["gralora_k"]
    return bool(parts > 0 and options["r"] % parts != 0)


def _uses_series(options: Options) -> bool:
    return options["use_cayley_neumann"] is True


_WAVELETS = (
    *(f"db{number}" for number in range(1, 39)),
    *(f"sym{number}" for number in range(2, 21)),
    *(f"coif{number}" for number in range(1, 18)),
)
_BELOW_1 = Text("0 到 1（不含 1）的数", "a number from 0 to below 1")

REFUSALS: tuple[Refusal, ...] = (
    *_blocks("BOFTConfig", "boft_block_size", "boft_block_num"),
    *_blocks("OFTConfig", "oft_block_size", "r"),
    Refusal(
        "feedforward-modules-elsewhere",
        source("IA3Config"),
        ("feedforward_modules", "target_modules"),
        lambda options: bool(_feeds_elsewhere(options)),
        Text("把 {modules} 也写入 target_modules", "write {modules} in target_modules too"),
        Text(
            "feedforward_modules 应是其中一部分",
            "feedforward_modules have to be a part of them",
        ),
        figures=lambda options: {"modules": ", ".join(sorted(_feeds_elsewhere(options) or ()))},
        groups=("IA3Config",),
    ),
    among("AdamssConfig", "init_weights", "orthogonal", None),
    above("AdamssConfig", "mask_interval", "0.20.0", _adapts),
    above("AdamssConfig", "asa_target_subspaces", "0.20.0", _adapts),
    above("AdamssConfig", "asa_schedule_exponent", "0.20.0", _adapts),
    Refusal(
        "adamss-warmup",
        source("AdamssConfig"),
        ("init_warmup", "final_warmup"),
        _ends_before,
        Text(
            "init_warmup 设为小于 final_warmup（{final_warmup}）",
            "give init_warmup less than final_warmup ({final_warmup})",
        ),
        Text("剪枝在二者之间进行", "it prunes between the two"),
        groups=("AdamssConfig",),
        since="0.20.0",
    ),
    among("DeftConfig", "decomposition_method", "qr", "relu"),
    above("DeloraConfig", "r", since="0.19.1"),
    ratio("FrodConfig", "sparse_rate"),
    among("GloraConfig", "config_A_B", "lora", "vector", "constant", "none", since="0.20.0"),
    among("GloraConfig", "config_C", "lora", "vector", "none", since="0.20.0"),
    among("GloraConfig", "config_D_E", "vector", "constant", "none", since="0.20.0"),
    above("GraloraConfig", "gralora_k", since="0.20.0"),
    Refusal(
        "gralora-blocks",
        source("GraloraConfig"),
        ("gralora_k", "r"),
        _indivisible,
        Text("gralora_k 应整除 r（{r}）", "give gralora_k a divisor of r ({r})"),
        Text("{gralora_k} 不整除", "{gralora_k} is not allowed"),
        groups=("GraloraConfig",),
    ),
    above("LilyConfig", "stride_A"),
    satisfying("LilyConfig", "num_B", lambda value: value >= 2, Text("至少 2", "2 or more")),
    above("PeanutConfig", "r"),
    from_0("PeanutConfig", "depth"),
    above("PsoftConfig", "r"),
    among("PsoftConfig", "ab_svd_init", "psoft_init", "pissa_init"),
    among("PsoftConfig", "psoft_svd", "full", "lowrank"),
    above("PsoftConfig", "num_cayley_neumann_terms", when=_uses_series),
    satisfying(
        "PsoftConfig",
        "cayley_neumann_eps",
        lambda value: value is None or 0 < value < 1,
        Text("0 与 1 之间的数", "a number between 0 and 1"),
        when=_uses_series,
    ),
    among("RoadConfig", "variant", "road_1", "road_2", "road_4"),
    satisfying(
        "RoadConfig",
        "group_size",
        lambda value: value > 0 and value % 2 == 0,
        Text("正偶数", "an even number above 0"),
    ),
    Refusal(
        "mirror-of-another-model",
        source("ShadowConfig"),
        ("shadow_model",),
        lambda options: bool(_mirrored(options)),
        Text("去掉 {names}", "drop {names}"),
        Text(
            "shadow_model={shadow_model} 自带结构",
            "the model {shadow_model} has an architecture of its own",
        ),
        figures=lambda options: {"names": ", ".join(_mirrored(options))},
        groups=("ShadowConfig",),
    ),
    satisfying("SupertuningConfig", "sparsity", lambda value: 0 <= value < 1, _BELOW_1),
    satisfying("SupertuningConfig", "lora_dropout", lambda value: 0 <= value < 1, _BELOW_1),
    satisfying(
        "SupertuningConfig",
        "r",
        lambda value: value is None or (isinstance(value, int) and value > 0),
        Text("正整数", "a whole number above 0"),
    ),
    Refusal(
        "alpha-without-rank",
        source("SupertuningConfig"),
        ("lora_alpha",),
        lambda options: options["r"] is None and options["lora_alpha"] is not None,
        Text("给出 r，或去掉 lora_alpha", "give r, or drop lora_alpha"),
        Text("lora_alpha 以 r 为准", "lora_alpha is reckoned by r"),
        groups=("SupertuningConfig",),
    ),
    above("TinyLoraConfig", "r"),
    above("TinyLoraConfig", "u"),
    ratio("TinyLoraConfig", "weight_tying"),
    above("UniLoraConfig", "r"),
    above("UniLoraConfig", "theta_d_length"),
    ratio("UniLoraConfig", "unilora_dropout"),
    above("UniLoraConfig", "init_theta_d_bound"),
    among("UniLoraConfig", "bias", "none", "all", "unilora_only"),
    Refusal(
        "WaveFTConfig.wavelet_family",
        source("WaveFTConfig"),
        ("wavelet_family",),
        lambda options: options["wavelet_family"] not in _WAVELETS,
        Text(
            "wavelet_family 取 db1–db38、sym2–sym20 或 coif1–coif17",
            "give wavelet_family db1 to db38, sym2 to sym20 or coif1 to coif17",
        ),
        Text("不认识 {wavelet_family}", "{wavelet_family} is none of them"),
        groups=("WaveFTConfig",),
    ),
)
