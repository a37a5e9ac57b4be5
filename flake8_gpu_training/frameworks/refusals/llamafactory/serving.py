"""Inference, export and evaluation (get_infer_args, get_eval_args, export_model, launcher)."""

from __future__ import annotations

from typing import Callable

from flake8_gpu_training.frameworks.refusals.base import Options, Refusal
from flake8_gpu_training.frameworks.refusals.llamafactory.asked import (
    PARSER,
    given,
    listed,
    subcommand,
)
from flake8_gpu_training.language import Text

_INFER = f"{PARSER}, get_infer_args"
_EXPORT = "llamafactory/train/tuner.py, export_model"


def _vllm(name: str, holds: Callable[[Options], bool], mend: Text, why: Text) -> Refusal:
    return Refusal(
        f"vllm-{name}",
        _INFER,
        ("infer_backend",),
        lambda options: options["infer_backend"] == "vllm" and holds(options),
        mend,
        why,
        groups=("infer",),
    )


def _exports(options: Options) -> bool:
    return subcommand(options) == "export"


def _several_adapters(options: Options) -> bool:
    adapters = listed(options, "adapter_name_or_path")
    return adapters is not None and len(adapters) != 1


REFUSALS: tuple[Refusal, ...] = (
    _vllm(
        "of-other-stage",
        lambda options: options["stage"] != "sft",
        Text(
            "infer_backend 设为 huggingface，或 stage 设为 sft",
            "write infer_backend=huggingface or stage=sft",
        ),
        Text(
            "vLLM 只服务生成模型，而 stage={stage}",
            "vLLM serves models that generate and stage is {stage}",
        ),
    ),
    _vllm(
        "quantized",
        lambda options: given(options, "quantization_bit"),
        Text(
            "删除 quantization_bit，使用 GPTQ 或 AWQ 权重",
            "drop quantization_bit and serve a GPTQ or AWQ checkpoint",
        ),
        Text("vLLM 不在加载时量化", "vLLM does not quantize while it loads"),
    ),
    _vllm(
        "scaled",
        lambda options: given(options, "rope_scaling"),
        Text("删除 rope_scaling", "drop rope_scaling"),
        Text("vLLM 不支持 RoPE 缩放", "vLLM does not scale RoPE"),
    ),
    _vllm(
        "adapters",
        _several_adapters,
        Text("先合并适配器，只给一个", "merge the adapters first and name one"),
        Text("vLLM 只接受一个适配器", "vLLM takes one adapter"),
    ),
    Refusal(
        "no-template-to-serve",
        _INFER,
        ("template",),
        lambda options: options["template"] is None,
        Text("设置 template", "name a template"),
        Text("推理需要对话模板", "inference needs one"),
        groups=("infer", "eval"),
        until="0.9.1",
    ),
    Refusal(
        "reward-server-of-images",
        _INFER,
        ("visual_inputs", "stage"),
        lambda options: options["stage"] == "rm" and options["visual_inputs"] is True,
        Text("删除 visual_inputs", "drop visual_inputs"),
        Text("奖励服务不支持多模态模型", "a reward server does not take images"),
        groups=("infer",),
        until="0.8.3",
    ),
    Refusal(
        "export-without-folder",
        _EXPORT,
        ("export_dir",),
        lambda options: _exports(options) and options["export_dir"] is None,
        Text("设置 export_dir", "give export_dir"),
        Text("没有指定导出到哪里", "nothing says where the model goes"),
        groups=("infer",),
    ),
    Refusal(
        "export-of-adapter-and-quantization",
        _EXPORT,
        ("export_quantization_bit", "adapter_name_or_path"),
        lambda options: (
            _exports(options)
            and given(options, "adapter_name_or_path")
            and given(options, "export_quantization_bit")
        ),
        Text("先导出合并后的模型，再单独量化", "export the merged model first and quantize that"),
        Text("不能同时合并适配器和量化", "adapters are not merged and quantized in one go"),
        groups=("infer",),
    ),
    Refusal(
        "evaluation-command",
        "llamafactory/launcher.py, launch",
        ("task",),
        lambda options: subcommand(options) == "eval",
        Text(
            "改用 lm-evaluation-harness 等工具",
            "evaluate by another tool, such as lm-evaluation-harness",
        ),
        Text("llamafactory-cli eval 已停用", "llamafactory-cli eval is out of service"),
        groups=("eval",),
        since="0.9.4",
    ),
)
