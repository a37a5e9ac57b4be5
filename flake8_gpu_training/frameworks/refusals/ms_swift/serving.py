"""What ``swift infer``, ``deploy``, ``rollout``, ``sample`` and ``export`` refuse."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from flake8_gpu_training.frameworks.refusals.base import Options, Refusal
from flake8_gpu_training.frameworks.refusals.ms_swift._asked import (
    INFER,
    batch,
    drop,
    none_of,
    off,
    setting,
    value,
    visible_gpus,
)
from flake8_gpu_training.language import Text

_ROLLOUT = "swift/arguments/deploy_args.py, RolloutArguments"
_EXPORT = "swift/arguments/export_args.py, ExportArguments.__post_init__"
_ENCODING = ("embedding", "seq_cls", "reranker", "generative_reranker")


def _talks_in_processes(options: Options) -> bool:
    """Answers are streamed to one reader, or typed by one: processes cannot share them."""
    launcher = options.run.launcher
    if launcher.processes.location is None and launcher.nodes.location is None:
        return False
    if options["stream"] and value(options, "num_beams", 1) == 1:
        return True
    if value(options, "load_data_args", False) or options["split_dataset_ratio"] > 0:
        return False
    return none_of(options, "val_dataset", "cached_val_dataset")


def _synchronous_encoding(options: Options) -> bool:
    if value(options, "infer_backend") != "vllm" or options["task_type"] not in _ENCODING:
        return False
    return options["vllm_use_async_engine"] is False


def _synchronous_copies(options: Options) -> bool:
    if value(options, "infer_backend") != "vllm" or options["vllm_use_async_engine"] is not False:
        return False
    return bool(options["vllm_data_parallel_size"] > 1)


def _synchronous_turns(options: Options) -> bool:
    scheduled = options["multi_turn_scheduler"] is not None
    return scheduled and options["vllm_use_async_engine"] is False


def _wanted(options: Options) -> int:
    return batch(options, "vllm_data_parallel_size") * batch(options, "vllm_tensor_parallel_size")


def _gpus(options: Options) -> Mapping[str, Any]:
    return {"wanted": _wanted(options), "seen": visible_gpus(options)}


def _in_a_folder(options: Options) -> bool:
    name = options["output_file"]
    return isinstance(name, str) and ("/" in name or "\\" in name)


def _quantizes_without_data(options: Options) -> bool:
    if options["quant_method"] not in ("gptq", "awq") or options["load_data_args"]:
        return False
    return none_of(options, "dataset")


def _caches(options: Options) -> bool:
    return bool(options["to_cached_dataset"])


REFUSALS: tuple[Refusal, ...] = (
    Refusal(
        "talking-in-processes",
        "swift/arguments/infer_args.py, InferArguments._init_ddp",
        ("stream", "val_dataset"),
        _talks_in_processes,
        Text(
            "设置 val_dataset 且 stream=false，或去掉 NPROC_PER_NODE",
            "give val_dataset with stream=false, or drop NPROC_PER_NODE",
        ),
        Text("多进程推理不支持交互与流式输出", "several processes cannot talk to one reader"),
        groups=("infer",),
    ),
    Refusal(
        "synchronous-encoding",
        "swift/arguments/infer_args.py, InferArguments._init_vllm_async_engine",
        ("vllm_use_async_engine", "task_type"),
        _synchronous_encoding,
        drop("vllm_use_async_engine=false"),
        Text("task_type={task_type} 需要异步引擎", "task_type={task_type} needs the async engine"),
        write=setting(vllm_use_async_engine=True),
        since="3.12.6",
        groups=INFER,
    ),
    Refusal(
        "synchronous-copies",
        "swift/pipelines/infer/deploy.py, SwiftDeploy.get_infer_engine",
        ("vllm_use_async_engine", "vllm_data_parallel_size"),
        _synchronous_copies,
        drop("vllm_use_async_engine=false"),
        Text(
            "vllm_data_parallel_size 大于 1 需要异步引擎",
            "vllm_data_parallel_size above 1 needs the async engine",
        ),
        write=setting(vllm_use_async_engine=True),
        since="3.10.3",
        groups=("deploy", "eval"),
    ),
    Refusal(
        "rollout-in-stages",
        f"{_ROLLOUT}._check_args",
        ("vllm_pipeline_parallel_size",),
        lambda options: options["vllm_pipeline_parallel_size"] > 1,
        Text("vllm_pipeline_parallel_size 设为 1", "write vllm_pipeline_parallel_size=1"),
        Text("rollout 不支持流水线并行", "rollout has no pipeline parallelism"),
        write=setting(vllm_pipeline_parallel_size=1),
        since="3.7.3",
        groups=("rollout",),
    ),
    Refusal(
        "rollout-reasoning-parser",
        f"{_ROLLOUT}._check_args",
        ("vllm_reasoning_parser",),
        lambda options: options["vllm_reasoning_parser"] is not None,
        drop("vllm_reasoning_parser"),
        Text("rollout 不支持", "rollout does not take it"),
        since="3.8.3",
        groups=("rollout",),
    ),
    Refusal(
        "rollout-synchronous-turns",
        f"{_ROLLOUT}._check_args",
        ("vllm_use_async_engine", "multi_turn_scheduler"),
        _synchronous_turns,
        drop("vllm_use_async_engine=false"),
        Text("multi_turn_scheduler 需要异步引擎", "multi_turn_scheduler needs the async engine"),
        write=setting(vllm_use_async_engine=True),
        since="3.8.3",
        groups=("rollout",),
    ),
    Refusal(
        "rollout-context-manager",
        f"{_ROLLOUT}._check_deprecated_args",
        ("context_manager",),
        lambda options: options["context_manager"] is not None,
        Text(
            "改用 multi_turn_scheduler，在其 step 中修改上下文",
            "write a multi_turn_scheduler whose step changes the context",
        ),
        Text("context_manager 已移除", "context_manager is removed"),
        since="4.3.2",
        groups=("rollout",),
    ),
    Refusal(
        "rollout-devices",
        f"{_ROLLOUT}._check_device_count",
        ("vllm_tensor_parallel_size", "vllm_data_parallel_size"),
        lambda options: visible_gpus(options) < _wanted(options),
        Text(
            "让 CUDA_VISIBLE_DEVICES 列出 {wanted} 张卡",
            "list {wanted} GPUs as CUDA_VISIBLE_DEVICES",
        ),
        Text(
            "数据并行 × 张量并行需要 {wanted} 张卡，只见 {seen} 张",
            "vllm_data_parallel_size x vllm_tensor_parallel_size takes {wanted}, {seen} are seen",
        ),
        figures=_gpus,
        since="3.7.3",
        groups=("rollout",),
    ),
    Refusal(
        "samples-in-a-folder",
        "swift/arguments/sampling_args.py, SamplingArguments.__post_init__",
        ("output_file",),
        _in_a_folder,
        Text(
            "output_file 只写文件名，目录写 output_dir",
            "write the name alone as output_file, its folder as output_dir",
        ),
        Text("output_file 含有目录", "output_file holds a folder"),
        since="3.1.1",
        groups=("sampling",),
    ),
    Refusal(
        "quantization-without-data",
        _EXPORT,
        ("quant_method", "dataset"),
        _quantizes_without_data,
        Text("设置 dataset 用于校准", "give a dataset to calibrate with"),
        Text("quant_method={quant_method} 需要校准数据", "quant_method={quant_method} needs one"),
        groups=("export",),
    ),
    Refusal(
        "cache-of-packs",
        _EXPORT,
        ("packing", "to_cached_dataset"),
        lambda options: _caches(options) and bool(options["packing"]),
        drop("packing"),
        Text("训练时才做 packing", "a cached dataset is packed in training"),
        write=off("packing"),
        since="3.7.3",
        groups=("export",),
    ),
    Refusal(
        "cache-of-a-stream",
        _EXPORT,
        ("streaming", "to_cached_dataset"),
        lambda options: _caches(options) and bool(options["streaming"]),
        drop("streaming"),
        Text("to_cached_dataset 不支持 streaming", "a stream cannot be cached"),
        write=off("streaming"),
        since="3.7.3",
        groups=("export",),
    ),
)
