"""What SGLang's server and ``Engine`` refuse at start."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from flake8_gpu_training.facts import known
from flake8_gpu_training.frameworks.refusals.base import Options, Refusal, UndecidedError
from flake8_gpu_training.frameworks.refusals.served import (
    drop,
    figures_of,
    given,
    is_on,
    positive,
    whole,
)
from flake8_gpu_training.frameworks.refusals.served_parsers import OF_SGLANG
from flake8_gpu_training.frameworks.refusals.sglang_alike import ALIKE
from flake8_gpu_training.frameworks.refusals.sglang_model import OF_MODEL
from flake8_gpu_training.language import Text

_ARGS = "sglang/srt/server_args.py, ServerArgs"
_CHECKED = f"{_ARGS}.check_server_args"
_TP = ("tp_size", "tensor_parallel_size")
_PP = ("pp_size", "pipeline_parallel_size")
_DP = ("dp_size", "data_parallel_size")
_ATTENTION_DP = "attn_dp_size"


def _copies(options: Options) -> int:
    """Data-parallel groups of the attention."""
    if options.takes(_ATTENTION_DP):
        size = positive(options, _ATTENTION_DP)
        if size > 1:
            return size
    return positive(options, *_DP) if is_on(options, "enable_dp_attention") else 1


def _grouping(options: Options) -> Mapping[str, Any]:
    """What asks for data parallelism of the attention: one size of its own since 0.5.23."""
    name = _ATTENTION_DP if options.takes(_ATTENTION_DP) else "enable_dp_attention"
    return {"--grouping": name}


def _uneven_attention(options: Options) -> bool:
    return positive(options, *_TP) % _copies(options) != 0


def _attention(options: Options) -> Mapping[str, Any]:
    size, copies = positive(options, *_TP), _copies(options)
    is_own = options.takes(_ATTENTION_DP) and positive(options, _ATTENTION_DP) > 1
    *most, last = (
        ("1",)
        if size == 1
        else (str(number) for number in range(2, size + 1) if size % number == 0)
    )
    return {
        "size": size,
        "copies": copies,
        "--copying": _ATTENTION_DP if is_own else "|".join(_DP),
        "choices": f"{', '.join(most)} or {last}" if most else last,
        "listed": "、".join((*most, last)),
    }


def _attention_alone(options: Options) -> bool:
    return is_on(options, "enable_dp_attention") and positive(options, *_DP) == 1


def _stages(options: Options) -> int:
    return positive(options, *_PP) if options.takes("pp_size") else 1


def _uneven_nodes(options: Options) -> bool:
    return _ranks(options) % positive(options, "nnodes") != 0


def _ranks(options: Options) -> int:
    return positive(options, *_TP) * _stages(options)


def _copies_on_nodes(options: Options) -> bool:
    if positive(options, *_DP) <= 1 or positive(options, "nnodes") == 1:
        return False
    return not is_on(options, "enable_dp_attention")


def _uneven_pages(options: Options) -> bool:
    """Backends of the attention may change the page, attention parallelism the chunk."""
    chunk, page = given(options, "chunked_prefill_size"), given(options, "page_size")
    if any("attention_backend" in name for name in options.given) or _copies(options) > 1:
        raise UndecidedError("page_size")
    return bool(chunk > 0 and page > 1 and chunk % page != 0)


def _both(*names: str) -> Any:
    return lambda options: all(is_on(options, name) for name in names)


def _head_alone(options: Options) -> bool:
    return is_on(options, "enable_dp_lm_head") and _copies(options) == 1


def _speculates_in_stages(options: Options) -> bool:
    return _stages(options) > 1 and options["speculative_algorithm"] is not None


def _named_with_colon(options: Options) -> bool:
    return ":" in given(options, "served_model_name")


def _nowhere_exported(options: Options) -> bool:
    return (
        is_on(options, "export_metrics_to_file") and options["export_metrics_to_file_dir"] is None
    )


def _unknown_adapters(options: Options) -> bool:
    if not is_on(options, "enable_lora") or options["lora_paths"]:
        return False
    rank, targets = options["max_lora_rank"], options["lora_target_modules"]
    return not (rank and targets)


def _odd_chunk(options: Options) -> bool:
    size = given(options, "max_lora_chunk_size")
    if not known(size) or not (is_on(options, "enable_lora") or options.given.get("lora_paths")):
        return False
    return not (16 <= size <= 128 and size & (size - 1) == 0)


def _below(name: str, least: int) -> Any:
    return lambda options: given(options, name) < least


def _at_least(name: str, least: int) -> Text:
    return Text(f"{{--{name}}} 不小于 {least}", f"set {{--{name}}} to at least {least}")


def _dense(options: Options) -> bool:
    size = given(options, "moe_dense_tp_size")
    return isinstance(size, int) and size not in (1, positive(options, *_TP))


def _multiplexed(options: Options) -> bool:
    if not is_on(options, "enable_pdmux"):
        return False
    chunk = options.given.get("chunked_prefill_size")
    chunked = chunk is not None and options["chunked_prefill_size"] != -1
    return chunked or _stages(options) > 1 or options["disaggregation_mode"] != "null"


_LEAST = {
    "tokenizer_worker_num": 1,
    "detokenizer_worker_num": 1,
    "mm_processor_worker_num": 0,
    "mm_io_worker_num": 0,
}


def _few_workers(options: Options) -> Mapping[str, Any]:
    """The first number of workers that is too small, and the least there is."""
    for name, least in _LEAST.items():
        if options.takes(name) and name in options.given and options[name] < least:
            return {"--workers": name, "least": least}
    return {}


def _other_policy(options: Options) -> bool:
    policy = given(options, "schedule_policy")
    return is_on(options, "enable_priority_scheduling") and policy not in ("fcfs", "lof")


def _unordered(options: Options) -> bool:
    by_priority = options["retraction_policy"] == "priority"
    return by_priority and not is_on(options, "enable_priority_scheduling")


def _odd_thresholds(options: Options) -> bool:
    found = given(options, "gc_threshold")
    return isinstance(found, list) and not 1 <= len(found) <= 3


def _negative(options: Options) -> str:
    names = ("prefill_decode_interval", "prefill_decode_interval_min_bs")
    found = (name for name in names if name in options.given and options[name] < 0)
    return next(found, "")


def _two_parallelisms(options: Options) -> bool:
    size = whole(options, _ATTENTION_DP)
    return size < 1 or (size > 1 and positive(options, *_DP) > 1)


def _has_adapters(options: Options) -> bool:
    return is_on(options, "enable_lora") or (
        "enable_lora" not in options.given and bool(options["lora_paths"])
    )


def _paths(options: Options) -> int:
    found = options["lora_paths"]
    if isinstance(found, str):
        return 1
    if not isinstance(found, (list, dict)):
        raise UndecidedError("lora_paths")
    return len(found)


def _all_and_more(options: Options) -> bool:
    named = given(options, "lora_target_modules")
    return isinstance(named, list) and "all" in named and len(set(named)) > 1


_SPECULATES = frozenset({"NGRAM", "EAGLE", "NEXTN", "EAGLE3", "DFLASH", "DSPARK"})


def _speculates_otherwise(options: Options) -> bool:
    algorithm = given(options, "speculative_algorithm")
    return _has_adapters(options) and str(algorithm).upper() not in _SPECULATES


REFUSALS: tuple[Refusal, ...] = (
    *OF_SGLANG,
    *OF_MODEL,
    Refusal(
        "sglang-attention-copies",
        f"{_ARGS}._handle_data_parallelism",
        (*_DP, "dp", _ATTENTION_DP, *_TP),
        _uneven_attention,
        Text(
            "{--copying} 设为 {listed} 之一",
            "set {--copying} to {choices}",
        ),
        Text(
            "注意力数据并行度 {copies} 不能整除张量并行度 {size}",
            "{copies} data-parallel groups of the attention do not divide {size} tensor-parallel "
            "ranks",
        ),
        figures=_attention,
        raiser="SGLang",
        since="0.4.3",
    ),
    Refusal(
        "sglang-attention-alone",
        f"{_ARGS}.__post_init__",
        ("enable_dp_attention", *_DP),
        _attention_alone,
        Text(
            "设置 {--dp_size}（1 < {--dp_size} <= {--tp_size}）",
            "set {--dp_size} above 1 and up to {--tp_size}, or drop {--enable_dp_attention}",
        ),
        Text("{--dp_size} 为 1 时没有注意力数据并行", "with {--dp_size} 1 there is none"),
        raiser="SGLang",
        since="0.4.6",
        until="0.4.6",
    ),
    Refusal(
        "sglang-uneven-nodes",
        _CHECKED,
        ("nnodes", *_TP, *_PP),
        _uneven_nodes,
        Text(
            "让张量并行 × 流水线并行能被 {--nnodes}={nnodes} 整除",
            "let {--tp_size} x {--pp_size} be a multiple of {--nnodes}={nnodes}",
        ),
        Text(
            "{ranks} 个进程不能平均分到 {nnodes} 个节点",
            "{ranks} ranks do not spread over {nnodes} nodes",
        ),
        figures=figures_of(ranks=_ranks),
        raiser="SGLang",
    ),
    Refusal(
        "sglang-copies-on-nodes",
        _CHECKED,
        (*_DP, "nnodes"),
        _copies_on_nodes,
        Text(
            "改用注意力数据并行（{--grouping}），或每个节点启动一个服务",
            "split the attention instead ({--grouping}), or start a server of its own on each node",
        ),
        Text("数据并行的多份模型不能跨节点", "replicas of one server do not span nodes"),
        figures=_grouping,
        raiser="SGLang",
    ),
    Refusal(
        "sglang-uneven-pages",
        _CHECKED,
        ("chunked_prefill_size", "page_size"),
        _uneven_pages,
        Text(
            "{--chunked_prefill_size} 设为 {page_size} 的倍数",
            "set {--chunked_prefill_size} to a multiple of {page_size}",
        ),
        Text(
            "{--page_size}={page_size} 不能整除 {--chunked_prefill_size}={chunked_prefill_size}",
            "{--page_size}={page_size} does not divide "
            "{--chunked_prefill_size}={chunked_prefill_size}",
        ),
        raiser="SGLang",
        since="0.4.6",
    ),
    Refusal(
        "sglang-hierarchy-without-tree",
        f"{_ARGS}._handle_cache_compatibility",
        ("disable_radix_cache", "enable_hierarchical_cache"),
        _both("enable_hierarchical_cache", "disable_radix_cache"),
        drop("disable_radix_cache"),
        Text(
            "{--enable_hierarchical_cache} 建立在 radix cache 之上",
            "{--enable_hierarchical_cache} extends the radix cache",
        ),
        raiser="SGLang",
        since="0.5.2",
    ),
    Refusal(
        "sglang-two-batchings",
        f"{_ARGS}._handle_tokenizer_batching",
        ("enable_dynamic_batch_tokenizer", "enable_tokenizer_batch_encode"),
        _both("enable_dynamic_batch_tokenizer", "enable_tokenizer_batch_encode"),
        Text(
            "只保留 {--enable_dynamic_batch_tokenizer} 与 {--enable_tokenizer_batch_encode} 之一",
            "keep one of {--enable_dynamic_batch_tokenizer} and {--enable_tokenizer_batch_encode}",
        ),
        Text("两种分词批处理不能同时使用", "the tokenizer batches in one way"),
        raiser="SGLang",
        since="0.5.6",
    ),
    Refusal(
        "sglang-head-alone",
        f"{_ARGS}._handle_data_parallelism",
        ("enable_dp_lm_head", "enable_dp_attention"),
        lambda options: _head_alone(options) and positive(options, *_DP) > 1,
        Text(
            "改用注意力数据并行（{--grouping}）",
            "split the attention instead of copying the model ({--grouping})",
        ),
        Text("{--enable_dp_lm_head} 需要注意力数据并行", "{--enable_dp_lm_head} needs it"),
        figures=_grouping,
        raiser="SGLang",
        since="0.4.9",
    ),
    Refusal(
        "sglang-speculative-stages",
        _CHECKED,
        (*_PP, "speculative_algorithm"),
        _speculates_in_stages,
        Text("{--pp_size} 设为 1，或去掉推测解码", "set {--pp_size} to 1, or drop speculation"),
        Text("流水线并行不支持推测解码", "pipeline stages do not speculate"),
        raiser="SGLang",
        since="0.4.9",
        until="0.5.6",
    ),
    Refusal(
        "sglang-name-with-colon",
        _CHECKED,
        ("served_model_name",),
        _named_with_colon,
        Text("{--served_model_name} 不写冒号", "write {--served_model_name} without a colon"),
        Text("冒号用于 model:adapter", "a colon separates the model from an adapter"),
        raiser="SGLang",
        since="0.5.6",
    ),
    Refusal(
        "sglang-metrics-without-folder",
        f"{_ARGS}._handle_request_metrics_exporters",
        ("export_metrics_to_file",),
        _nowhere_exported,
        Text("加上 {--export_metrics_to_file_dir}", "add {--export_metrics_to_file_dir}"),
        Text("没有导出指标的目录", "there is no folder for the metrics"),
        raiser="SGLang",
        since="0.5.6",
    ),
    Refusal(
        "sglang-adapters-unknown",
        f"{_ARGS}.check_lora_server_args",
        ("enable_lora", "max_lora_rank", "lora_target_modules"),
        _unknown_adapters,
        Text(
            "给出 {--lora_paths}，或同时设置 {--max_lora_rank} 与 {--lora_target_modules}",
            "give {--lora_paths}, or both {--max_lora_rank} and {--lora_target_modules}",
        ),
        Text(
            "没有初始适配器时须知道其秩与目标模块",
            "without adapters at start their rank and target modules must be known",
        ),
        raiser="SGLang",
        since="0.5.2",
    ),
    Refusal(
        "sglang-adapter-chunk",
        f"{_ARGS}.check_lora_server_args",
        ("max_lora_chunk_size",),
        _odd_chunk,
        Text(
            "{--max_lora_chunk_size} 取 16、32、64 或 128",
            "set {--max_lora_chunk_size} to 16, 32, 64 or 128",
        ),
        Text("须为 16 至 128 的 2 的幂", "it is a power of 2 from 16 to 128"),
        raiser="SGLang",
        since="0.5.6",
    ),
    Refusal(
        "sglang-first-gpu",
        _CHECKED,
        ("base_gpu_id",),
        _below("base_gpu_id", 0),
        _at_least("base_gpu_id", 0),
        Text("编号不能为负", "GPUs are counted from 0"),
        raiser="SGLang",
    ),
    Refusal(
        "sglang-gpu-step",
        _CHECKED,
        ("gpu_id_step",),
        _below("gpu_id_step", 1),
        _at_least("gpu_id_step", 1),
        Text("相邻进程须用不同的卡", "ranks need GPUs of their own"),
        raiser="SGLang",
        since="0.4.3",
    ),
    Refusal(
        "sglang-adapters-in-batch",
        f"{_ARGS}.check_lora_server_args",
        ("max_loras_per_batch",),
        lambda options: (
            given(options, "max_loras_per_batch") < 1
            and (is_on(options, "enable_lora") or bool(options.given.get("lora_paths")))
        ),
        _at_least("max_loras_per_batch", 1),
        Text("每批至少一个适配器", "a batch has room for one adapter at least"),
        raiser="SGLang",
    ),
    Refusal(
        "sglang-conservativeness",
        _CHECKED,
        ("schedule_conservativeness",),
        _below("schedule_conservativeness", 0),
        _at_least("schedule_conservativeness", 0),
        Text("不能为负", "it cannot be negative"),
        raiser="SGLang",
        since="0.5.6",
    ),
    Refusal(
        "sglang-store-disaggregated",
        "sglang/srt/arg_groups/validation_hook.py, validate_response_store",
        ("enable_response_store", "disaggregation_mode"),
        lambda options: (
            is_on(options, "enable_response_store") and options["disaggregation_mode"] != "null"
        ),
        drop("enable_response_store"),
        Text("分离部署不支持保存响应", "disaggregated servers store no responses"),
        raiser="SGLang",
        since="0.5.23",
    ),
    Refusal(
        "sglang-micro-batch",
        _CHECKED,
        ("pp_max_micro_batch_size",),
        _below("pp_max_micro_batch_size", 1),
        _at_least("pp_max_micro_batch_size", 1),
        Text("微批至少一个请求", "a micro-batch has one request at least"),
        raiser="SGLang",
        since="0.5.16",
    ),
    Refusal(
        "sglang-unpadded-compile",
        _CHECKED,
        ("disable_cuda_graph_padding", "enable_torch_compile"),
        _both("disable_cuda_graph_padding", "enable_torch_compile"),
        drop("disable_cuda_graph_padding"),
        Text(
            "每种批大小都要重新编译",
            "each size of a batch would be compiled by {--enable_torch_compile}",
        ),
        raiser="SGLang",
        since="0.5.16",
    ),
    Refusal(
        "sglang-dense-tensors",
        _CHECKED,
        ("moe_dense_tp_size",),
        _dense,
        Text("{--moe_dense_tp_size} 设为 1", "set {--moe_dense_tp_size} to 1"),
        Text(
            "只支持 1 或不设置，不支持 {moe_dense_tp_size}",
            "{moe_dense_tp_size} is not supported",
        ),
        write=lambda options: {"moe_dense_tp_size": 1},
        raiser="SGLang",
        since="0.4.6",
    ),
    Refusal(
        "sglang-multiplexed",
        _CHECKED,
        ("enable_pdmux", *_PP, "chunked_prefill_size", "disaggregation_mode"),
        _multiplexed,
        Text(
            "去掉 {--enable_pdmux}，或设置 {--pp_size}=1、{--chunked_prefill_size}=-1 且不分离部署",
            "drop {--enable_pdmux}, or set {--pp_size} 1 and {--chunked_prefill_size} -1 without "
            "disaggregation",
        ),
        Text("{--enable_pdmux} 与它们不兼容", "{--enable_pdmux} goes with none of them"),
        raiser="SGLang",
        since="0.5.6",
    ),
    Refusal(
        "sglang-workers",
        _CHECKED,
        tuple(_LEAST),
        lambda options: bool(_few_workers(options)),
        Text("{--workers} 不小于 {least}", "set {--workers} to at least {least}"),
        Text("工作进程不足", "there are too few workers"),
        figures=_few_workers,
        raiser="SGLang",
        since="0.5.2",
    ),
    Refusal(
        "sglang-priority-policy",
        _CHECKED,
        ("schedule_policy", "enable_priority_scheduling"),
        _other_policy,
        Text("{--schedule_policy} 设为 fcfs 或 lof", "set {--schedule_policy} to fcfs or lof"),
        Text(
            "优先级调度不支持 {schedule_policy}",
            "priorities do not go with {schedule_policy}",
        ),
        raiser="SGLang",
        since="0.5.6",
    ),
    Refusal(
        "sglang-retraction",
        _CHECKED,
        ("retraction_policy", "enable_priority_scheduling"),
        _unordered,
        Text("加上 {--enable_priority_scheduling}", "add {--enable_priority_scheduling}"),
        Text("按优先级回收需要优先级调度", "retraction by priority needs it"),
        write=lambda options: {"enable_priority_scheduling": True},
        raiser="SGLang",
        since="0.5.16",
    ),
    Refusal(
        "sglang-gc-threshold",
        _CHECKED,
        ("gc_threshold",),
        _odd_thresholds,
        Text("{--gc_threshold} 写 1 至 3 个整数", "give {--gc_threshold} 1 to 3 whole numbers"),
        Text("垃圾回收有三代", "the collector has three generations"),
        raiser="SGLang",
        since="0.5.10",
    ),
    Refusal(
        "sglang-interval",
        "sglang/srt/arg_groups/validation_hook.py, validate_prefill_decode_interval",
        ("prefill_decode_interval", "prefill_decode_interval_min_bs"),
        lambda options: bool(_negative(options)),
        Text("{--negative} 不小于 0", "set {--negative} to at least 0"),
        Text("间隔不能为负", "an interval is not negative"),
        figures=lambda options: {"--negative": _negative(options)},
        raiser="SGLang",
        since="0.5.23",
    ),
    Refusal(
        "sglang-two-parallelisms",
        f"{_ARGS}._handle_data_parallelism",
        (_ATTENTION_DP, *_DP),
        _two_parallelisms,
        Text(
            "只保留 {--attn_dp_size} 与 {--dp_size} 之一大于 1",
            "keep one of {--attn_dp_size} and {--dp_size} above 1",
        ),
        Text("两种数据并行不能同时使用", "both data parallelisms do not go together"),
        raiser="SGLang",
        since="0.5.23",
    ),
    Refusal(
        "sglang-all-and-more",
        f"{_ARGS}.check_lora_server_args",
        ("lora_target_modules",),
        lambda options: _has_adapters(options) and _all_and_more(options),
        Text(
            "{--lora_target_modules} 只写 all，或去掉 all",
            "give {--lora_target_modules} all alone, or no all",
        ),
        Text("all 之外还有其他模块", "other modules stand beside all"),
        raiser="SGLang",
        since="0.5.2",
    ),
    Refusal(
        "sglang-few-loaded",
        f"{_ARGS}.check_lora_server_args",
        ("max_loaded_loras", "max_loras_per_batch"),
        lambda options: (
            _has_adapters(options)
            and given(options, "max_loaded_loras") < options["max_loras_per_batch"]
        ),
        Text(
            "{--max_loaded_loras} 不小于 {--max_loras_per_batch}={max_loras_per_batch}",
            "set {--max_loaded_loras} to at least {--max_loras_per_batch}={max_loras_per_batch}",
        ),
        Text("一批可用的多于已加载的", "a batch may need more adapters than are loaded"),
        raiser="SGLang",
        since="0.5.2",
    ),
    Refusal(
        "sglang-many-paths",
        f"{_ARGS}.check_lora_server_args",
        ("max_loaded_loras", "lora_paths"),
        lambda options: (
            _has_adapters(options) and _paths(options) > given(options, "max_loaded_loras")
        ),
        Text(
            "{--max_loaded_loras} 不小于 {number}",
            "set {--max_loaded_loras} to at least {number}",
        ),
        Text("{--lora_paths} 有 {number} 个适配器", "{--lora_paths} names {number} adapters"),
        figures=figures_of(number=_paths),
        write=lambda options: {"max_loaded_loras": _paths(options)},
        raiser="SGLang",
        since="0.5.2",
    ),
    Refusal(
        "sglang-drain",
        f"{_ARGS}.check_lora_server_args",
        ("lora_drain_wait_threshold",),
        lambda options: _has_adapters(options) and given(options, "lora_drain_wait_threshold") < 0,
        _at_least("lora_drain_wait_threshold", 0),
        Text("等待时间不能为负", "a wait is not negative"),
        raiser="SGLang",
        since="0.5.16",
    ),
    Refusal(
        "sglang-adapters-speculate",
        f"{_ARGS}.check_lora_server_args",
        ("speculative_algorithm", "lora_paths", "enable_lora"),
        _speculates_otherwise,
        Text(
            "{--speculative_algorithm} 改用 NGRAM，或去掉 LoRA",
            "set {--speculative_algorithm} to NGRAM, or serve no adapters",
        ),
        Text(
            "LoRA 不支持 {speculative_algorithm}",
            "adapters do not go with {speculative_algorithm}",
        ),
        raiser="SGLang",
        since="0.5.6",
    ),
    *ALIKE,
)
