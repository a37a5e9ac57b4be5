"""How a training is started against what it asks for (get_train_args of hparams/parser.py)."""

from __future__ import annotations

from typing import Callable

from flake8_gpu_training.frameworks.refusals.base import Options, Refusal
from flake8_gpu_training.frameworks.refusals.llamafactory.asked import (
    TRAIN,
    TRAIN_ARGS,
    any_on,
    given,
    is_distributed,
    on,
    single_process,
    subcommand,
    zero3,
)
from flake8_gpu_training.language import Text
from flake8_gpu_training.runs.model import RunKind


def _several_gpus_in_one_process(options: Options) -> bool:
    run = options.run
    seen = run.hardware.gpus_per_node
    if run.hardware.weak or run.launcher.name != "python" or seen is None or seen < 2:
        return False
    return not any_on(options, "use_kt", "use_cpu", "no_cuda") and single_process(options)


def _layerwise(name: str, since: str = "") -> Refusal:
    def holds(options: Options) -> bool:
        asked = on(options, f"use_{name}") and on(options, f"{name}_layerwise")
        return asked and is_distributed(options)

    return Refusal(
        f"{name}-layerwise-in-processes",
        TRAIN_ARGS,
        (f"{name}_layerwise",),
        holds,
        Text(f"单进程训练，或删除 {name}_layerwise", f"start one process or drop {name}_layerwise"),
        Text(
            "逐层更新不支持分布式训练",
            "its steps within the backward pass do not go with distributed training",
        ),
        write=lambda options: {f"{name}_layerwise": False},
        groups=TRAIN,
        since=since,
    )


def _zero3_refused(name: str, zh: str, en: str, drop: bool = True, since: str = "0.8.3") -> Refusal:
    return Refusal(
        f"zero3-and-{name.replace('_', '-')}",
        TRAIN_ARGS,
        (name, "deepspeed"),
        lambda options: on(options, name) and zero3(options),
        Text(f"删除 {name}，或改用 ZeRO-2", f"drop {name} or take ZeRO stage 2"),
        Text(zh, en),
        write=lambda options: {name: False} if drop else {},
        groups=TRAIN,
        since=since,
    )


def _lean_with_deepspeed(names: tuple[str, ...]) -> Callable[[Options], bool]:
    return lambda options: bool(options["deepspeed"]) and any_on(options, *names)


def _badam(mode: str) -> Callable[[Options], bool]:
    return lambda options: (
        on(options, "use_badam") and options["badam_mode"] == mode and is_distributed(options)
    )


def _badam_without_zero3(options: Options) -> bool:
    asked = on(options, "use_badam") and options["badam_mode"] != "ratio"
    return asked and is_distributed(options) and not zero3(options)


def _engine_in_training(options: Options) -> bool:
    if subcommand(options) not in ("train", "eval") and options.run.kind is not RunKind.TRAIN:
        return False  # a file of which no command tells who reads it
    return given(options, "infer_backend") and options["infer_backend"] != "huggingface"


REFUSALS: tuple[Refusal, ...] = (
    Refusal(
        "several-gpus-in-one-process",
        TRAIN_ARGS,
        (),
        _several_gpus_in_one_process,
        Text(
            "用 torchrun --nproc_per_node={gpus} 或 llamafactory-cli 启动",
            "start it by torchrun --nproc_per_node={gpus} or llamafactory-cli",
        ),
        Text("一个进程可见 {gpus} 张卡", "one process sees {gpus} GPUs"),
        figures=lambda options: {"gpus": options.run.hardware.gpus_per_node},
        groups=TRAIN,
        since="0.8.2",
    ),
    Refusal(
        "deepspeed-in-one-process",
        TRAIN_ARGS,
        ("deepspeed",),
        lambda options: bool(options["deepspeed"]) and single_process(options),
        Text("设置环境变量 FORCE_TORCHRUN=1", "set FORCE_TORCHRUN=1 in the environment"),
        Text(
            "deepspeed 需要由 torchrun 启动，单卡也是",
            "deepspeed needs torchrun to start it, on one GPU too",
        ),
        groups=TRAIN,
        since="0.8.3",
    ),
    _layerwise("galore"),
    _layerwise("apollo", "0.9.2"),
    Refusal(
        "badam-ratio-in-processes",
        TRAIN_ARGS,
        ("badam_mode", "use_badam"),
        _badam("ratio"),
        Text("badam_mode 设为 layer", "write badam_mode=layer"),
        Text(
            "badam_mode=ratio 不支持分布式训练",
            "badam_mode=ratio does not go with distributed training",
        ),
        write=lambda options: {"badam_mode": "layer"},
        groups=TRAIN,
        since="0.8.3",
    ),
    Refusal(
        "badam-layer-in-processes",
        TRAIN_ARGS,
        ("badam_mode", "use_badam"),
        _badam("layer"),
        Text("badam_mode 设为 ratio", "write badam_mode=ratio"),
        Text(
            "badam_mode=layer 不支持分布式训练",
            "badam_mode=layer does not go with distributed training",
        ),
        write=lambda options: {"badam_mode": "ratio"},
        groups=TRAIN,
        until="0.8.2",
    ),
    Refusal(
        "badam-layer-without-zero3",
        TRAIN_ARGS,
        ("use_badam", "badam_mode"),
        _badam_without_zero3,
        Text("deepspeed 指向 ZeRO-3 配置", "give deepspeed a configuration of ZeRO stage 3"),
        Text(
            "分布式的 badam_mode=layer 只支持 ZeRO-3",
            "with several processes badam_mode=layer goes with ZeRO-3 alone",
        ),
        groups=TRAIN,
        since="0.8.3",
    ),
    Refusal(
        "lean-optimizer-of-deepspeed",
        TRAIN_ARGS,
        ("use_galore", "use_apollo", "deepspeed"),
        _lean_with_deepspeed(("use_galore", "use_apollo")),
        Text("删除 deepspeed", "drop deepspeed"),
        Text("GaLore 与 APOLLO 不支持 DeepSpeed", "GaLore and APOLLO do not go with it"),
        groups=TRAIN,
        since="0.8.3",
    ),
    Refusal(
        "badam-of-deepspeed",
        TRAIN_ARGS,
        ("use_galore", "use_badam", "deepspeed"),
        _lean_with_deepspeed(("use_galore", "use_badam")),
        Text("删除 deepspeed", "drop deepspeed"),
        Text(
            "该版本的 GaLore 与 BAdam 不支持 DeepSpeed",
            "in this release GaLore and BAdam do not go with it",
        ),
        groups=TRAIN,
        until="0.8.2",
    ),
    _zero3_refused(
        "predict_with_generate",
        "ZeRO-3 下不能生成",
        "generation does not go with ZeRO-3",
        since="0.9.0",
    ),
    _zero3_refused(
        "pissa_init",
        "ZeRO-3 下权重被切分，先用 scripts/pissa_init.py 初始化",
        "ZeRO-3 splits the weights that PiSSA factors, run scripts/pissa_init.py first",
    ),
    _zero3_refused("pure_bf16", "pure_bf16 不支持 ZeRO-3", "pure_bf16 does not go with ZeRO-3"),
    _zero3_refused(
        "use_unsloth", "Unsloth 不支持 ZeRO-3", "Unsloth does not go with ZeRO-3", since="0.8.0"
    ),
    _zero3_refused(
        "use_kt",
        "KTransformers 不支持 ZeRO-3",
        "KTransformers does not go with ZeRO-3",
        False,
        "0.9.4",
    ),
    Refusal(
        "engine-in-training",
        TRAIN_ARGS,
        ("infer_backend",),
        _engine_in_training,
        Text("删除 infer_backend", "drop infer_backend"),
        Text(
            "{infer_backend} 只用于 api、chat 与 webchat",
            "{infer_backend} is for api, chat and webchat alone",
        ),
        write=lambda options: {"infer_backend": "huggingface"},
        groups=(*TRAIN, "eval"),
    ),
)
