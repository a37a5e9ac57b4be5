"""What vLLM's server, ``LLM`` and engine arguments refuse at start."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from flake8_gpu_training.frameworks.readable_numbers import number
from flake8_gpu_training.frameworks.refusals.base import Options, Refusal, UndecidedError
from flake8_gpu_training.frameworks.refusals.served import (
    drop,
    figures_of,
    fitting,
    given,
    heads,
    is_on,
    positive,
    visible_gpus,
    whole,
)
from flake8_gpu_training.frameworks.refusals.served_parsers import OF_VLLM
from flake8_gpu_training.frameworks.refusals.vllm_alike import ALIKE
from flake8_gpu_training.frameworks.refusals.vllm_drafts import OF_DRAFTS
from flake8_gpu_training.frameworks.refusals.vllm_server import OF_SERVER
from flake8_gpu_training.language import Text

_MODEL = "vllm/config/model.py, ModelConfig.verify_with_parallel_config"
_PARALLEL = "vllm/config/parallel.py, ParallelConfig"
_SCHEDULER = "vllm/config/scheduler.py, SchedulerConfig.verify_max_model_len"
_TP, _PP, _DP = "tensor_parallel_size", "pipeline_parallel_size", "data_parallel_size"


def _uneven_heads(options: Options) -> bool:
    if options.given.get("hf_overrides") is not None:
        return False
    return heads(options) % positive(options, _TP) != 0


def _shape(options: Options) -> Mapping[str, Any]:
    total, size = heads(options), positive(options, _TP)
    return {"heads": total, "size": size, "fitting": fitting(total, size)}


def _tokens(options: Options, name: str) -> int:
    """A number of tokens as written: ``8k`` is 8000, ``8K`` 8192."""
    value = given(options, name)
    value = number(value) if isinstance(value, str) else value
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise UndecidedError(name)
    return value


def _short_batch(options: Options) -> bool:
    """Pooling models have steps of their own: what is served must be known to be none."""
    if given(options, "enable_chunked_prefill") is not False:
        return False
    return _tokens(options, "max_num_batched_tokens") < _tokens(options, "max_model_len")


def _few_tokens(options: Options) -> bool:
    return _tokens(options, "max_num_batched_tokens") < _tokens(options, "max_num_seqs")


def _few_adapters(options: Options) -> bool:
    kept = options["max_cpu_loras"]
    return is_on(options, "enable_lora") and kept is not None and kept < options["max_loras"]


def _balances_one(options: Options) -> bool:
    if not is_on(options, "enable_eplb") or not is_on(options, "enable_expert_parallel"):
        return False
    size = positive(options, _TP) * positive(options, _DP)
    if options.takes("prefill_context_parallel_size"):
        size *= positive(options, "prefill_context_parallel_size")
    return size <= 1


def _more_here(options: Options) -> bool:
    here = given(options, "data_parallel_size_local")
    return isinstance(here, int) and here > positive(options, _DP)


def _external_alone(options: Options) -> bool:
    return is_on(options, "data_parallel_external_lb") and positive(options, _DP) <= 1


def _copies_of_llm(options: Options) -> bool:
    backend = options["distributed_executor_backend"]
    return positive(options, _DP) > 1 and backend != "external_launcher"


def _nodes_of_ray(options: Options) -> bool:
    backend = given(options, "distributed_executor_backend")
    return backend == "ray" and whole(options, "nnodes") > 1


def _elastic_stages(options: Options) -> bool:
    return is_on(options, "enable_elastic_ep") and positive(options, _PP) > 1


def _elastic_unbalanced(options: Options) -> bool:
    return is_on(options, "enable_elastic_ep") and not is_on(options, "enable_eplb")


def _more_active(options: Options) -> bool:
    return bool(given(options, "max_num_active_seqs") > given(options, "max_num_seqs"))


def _long_threshold(options: Options) -> bool:
    return _tokens(options, "long_prefill_token_threshold") > _tokens(options, "max_model_len")


def _unbound(options: Options) -> bool:
    lists = ("numa_bind_nodes", "numa_bind_cpus")
    named = any(options.takes(name) and options.is_given(name) for name in lists)
    return named and not is_on(options, "numa_bind")


def _redundant(options: Options) -> bool:
    number = options.entry("eplb_config", "num_redundant_experts", 0)
    return isinstance(number, int) and number != 0 and not is_on(options, "enable_eplb")


def _uneven_decoding(options: Options) -> bool:
    name = "prefill_context_parallel_size"
    if options.takes(name) and whole(options, name) != 1:
        return False
    return positive(options, _TP) % positive(options, "decode_context_parallel_size") != 0


def _rank_outside(options: Options) -> bool:
    size = positive(options, _DP)
    return size > 1 and not 0 <= whole(options, "data_parallel_rank") < size


def _nsight_alone(options: Options) -> bool:
    backend = given(options, "distributed_executor_backend")
    return is_on(options, "ray_workers_use_nsight") and backend in ("mp", "uni")


def _world(options: Options) -> int:
    """GPUs of one engine on this node; other backends and nodes bring their own."""
    for name in ("distributed_executor_backend", "data_parallel_backend"):
        if options.is_given(name):
            raise UndecidedError(name)
    if whole(options, "nnodes") > 1:
        raise UndecidedError("nnodes")
    return positive(options, _TP) * positive(options, _PP)


def _few_gpus(options: Options) -> bool:
    return _world(options) > visible_gpus(options)


REFUSALS: tuple[Refusal, ...] = (
    *OF_VLLM,
    Refusal(
        "vllm-heads",
        _MODEL,
        (_TP, "model"),
        _uneven_heads,
        Text(
            "{--tensor_parallel_size} 设为 {fitting} 等能整除 {heads} 的值",
            "set {--tensor_parallel_size} to {fitting} or another divisor of {heads}",
        ),
        Text(
            "{model} 有 {heads} 个注意力头，不能被 {size} 整除",
            "{model} has {heads} attention heads, which {size} does not divide",
        ),
        figures=_shape,
        raiser="vLLM",
    ),
    Refusal(
        "vllm-short-batch",
        _SCHEDULER,
        ("max_num_batched_tokens", "max_model_len", "enable_chunked_prefill"),
        _short_batch,
        Text(
            "{--max_num_batched_tokens} 不小于 {--max_model_len}，或不关闭 chunked prefill",
            "set {--max_num_batched_tokens} to at least {--max_model_len}, or leave chunked "
            "prefill on",
        ),
        Text(
            "关闭 chunked prefill 时 {--max_num_batched_tokens}={max_num_batched_tokens} "
            "小于 {--max_model_len}={max_model_len}",
            "without chunked prefill {--max_num_batched_tokens}={max_num_batched_tokens} is "
            "less than "
            "{--max_model_len}={max_model_len}",
        ),
        raiser="vLLM",
        since="0.14.1",
    ),
    Refusal(
        "vllm-few-tokens",
        _SCHEDULER,
        ("max_num_batched_tokens", "max_num_seqs"),
        _few_tokens,
        Text(
            "{--max_num_batched_tokens} 不小于 {--max_num_seqs}={max_num_seqs}",
            "set {--max_num_batched_tokens} to at least {--max_num_seqs}={max_num_seqs}",
        ),
        Text(
            "每步 {max_num_batched_tokens} 个 token 不够每个序列一个",
            "{max_num_batched_tokens} tokens a step are less than one a sequence",
        ),
        raiser="vLLM",
    ),
    Refusal(
        "vllm-few-adapters",
        "vllm/config/lora.py, LoRAConfig._validate_lora_config",
        ("max_cpu_loras", "max_loras"),
        _few_adapters,
        Text(
            "{--max_cpu_loras} 不小于 {--max_loras}={max_loras}",
            "set {--max_cpu_loras} to at least {--max_loras}={max_loras}",
        ),
        Text(
            "{--max_cpu_loras}={max_cpu_loras} 小于 {--max_loras}",
            "{--max_cpu_loras}={max_cpu_loras} is less than {--max_loras}",
        ),
        write=lambda options: {"max_cpu_loras": options["max_loras"]},
        raiser="vLLM",
    ),
    Refusal(
        "vllm-balance-without-experts",
        f"{_PARALLEL}._validate_parallel_config",
        ("enable_eplb", "enable_expert_parallel"),
        lambda options: (
            is_on(options, "enable_eplb") and not is_on(options, "enable_expert_parallel")
        ),
        Text("加上 {--enable_expert_parallel}", "add {--enable_expert_parallel}"),
        Text("{--enable_eplb} 需要专家并行", "{--enable_eplb} needs expert parallelism"),
        write=lambda options: {"enable_expert_parallel": True},
        raiser="vLLM",
        since="0.10.2",
    ),
    Refusal(
        "vllm-balance-of-one",
        f"{_PARALLEL}._validate_parallel_config",
        ("enable_eplb", _TP, _DP),
        _balances_one,
        Text(
            "去掉 {--enable_eplb}，或设置 {--tensor_parallel_size}、{--data_parallel_size} 大于 1",
            "drop {--enable_eplb}, or set {--tensor_parallel_size} or "
            "{--data_parallel_size} above 1",
        ),
        Text("只有一个并行进程，无法均衡专家", "one rank has no experts to balance"),
        raiser="vLLM",
        since="0.10.2",
    ),
    Refusal(
        "vllm-more-here-than-all",
        f"{_PARALLEL}._validate_parallel_config",
        ("data_parallel_size_local", _DP),
        _more_here,
        Text(
            "{--data_parallel_size_local} 不大于 {--data_parallel_size}",
            "set {--data_parallel_size_local} to at most {--data_parallel_size}",
        ),
        Text(
            "本机 {data_parallel_size_local} 份多于总数 {data_parallel_size}",
            "{data_parallel_size_local} replicas on this node are more than all "
            "{data_parallel_size}",
        ),
        raiser="vLLM",
        since="0.10.2",
    ),
    Refusal(
        "vllm-external-balancer-alone",
        f"{_PARALLEL}._validate_parallel_config",
        ("data_parallel_external_lb", _DP),
        _external_alone,
        Text(
            "去掉 {--data_parallel_external_lb}，或设置 {--data_parallel_size} 大于 1",
            "drop {--data_parallel_external_lb}, or set {--data_parallel_size} above 1",
        ),
        Text("只有一份模型，无需外部负载均衡", "one replica has no load to balance"),
        raiser="vLLM",
        since="0.14.1",
    ),
    Refusal(
        "vllm-copies-in-one-process",
        "vllm/entrypoints/llm.py, LLM.__init__",
        (_DP, "distributed_executor_backend"),
        _copies_of_llm,
        Text(
            "改用 vllm serve，或每个进程建一个 LLM（设置 VLLM_DP_RANK）",
            "serve the model with vllm serve, or make one LLM a process (VLLM_DP_RANK)",
        ),
        Text(
            "单进程的 LLM 不支持 {--data_parallel_size}={data_parallel_size}",
            "LLM in one process takes no {--data_parallel_size}={data_parallel_size}",
        ),
        groups=("LLM",),
        since="0.14.1",
    ),
    Refusal(
        "vllm-nodes-of-ray",
        f"{_PARALLEL}.__post_init__",
        ("nnodes", "distributed_executor_backend"),
        _nodes_of_ray,
        drop("nnodes"),
        Text("Ray 自己管理节点", "Ray knows the nodes itself"),
        raiser="vLLM",
        since="0.14.1",
    ),
    Refusal(
        "vllm-elastic-stages",
        f"{_PARALLEL}.__post_init__",
        (_PP, "enable_elastic_ep"),
        _elastic_stages,
        Text("{--pipeline_parallel_size} 设为 1", "set {--pipeline_parallel_size} to 1"),
        Text("{--enable_elastic_ep} 不支持流水线并行", "{--enable_elastic_ep} takes no pipeline"),
        raiser="vLLM",
        since="0.19.1",
    ),
    Refusal(
        "vllm-elastic-unbalanced",
        f"{_PARALLEL}.__post_init__",
        ("enable_elastic_ep", "enable_eplb"),
        _elastic_unbalanced,
        Text("加上 {--enable_eplb}", "add {--enable_eplb}"),
        Text(
            "{--enable_elastic_ep} 需要 {--enable_eplb}",
            "{--enable_elastic_ep} needs {--enable_eplb}",
        ),
        write=lambda options: {"enable_eplb": True},
        raiser="vLLM",
        since="0.19.1",
    ),
    Refusal(
        "vllm-few-gpus",
        f"{_PARALLEL}.__post_init__",
        (_TP, _PP),
        _few_gpus,
        Text(
            "让 CUDA_VISIBLE_DEVICES 列出 {wanted} 张卡，或减小并行度",
            "list {wanted} GPUs as CUDA_VISIBLE_DEVICES, or set smaller parallel sizes",
        ),
        Text(
            "张量并行 × 流水线并行需要 {wanted} 张卡，只见 {seen} 张",
            "{--tensor_parallel_size} x {--pipeline_parallel_size} takes {wanted} GPUs, "
            "{seen} are seen",
        ),
        figures=figures_of(wanted=_world, seen=visible_gpus),
        raiser="vLLM",
        since="0.14.1",
    ),
    Refusal(
        "vllm-more-active",
        _SCHEDULER,
        ("max_num_active_seqs", "max_num_seqs"),
        _more_active,
        Text(
            "{--max_num_active_seqs} 不大于 {--max_num_seqs}={max_num_seqs}",
            "set {--max_num_active_seqs} to at most {--max_num_seqs}={max_num_seqs}",
        ),
        Text("活跃序列多于全部序列", "more sequences are active than there are"),
        raiser="vLLM",
        since="0.33.0",
    ),
    Refusal(
        "vllm-long-threshold",
        _SCHEDULER,
        ("long_prefill_token_threshold", "max_model_len"),
        _long_threshold,
        Text(
            "{--long_prefill_token_threshold} 不大于 {--max_model_len}",
            "set {--long_prefill_token_threshold} to at most {--max_model_len}",
        ),
        Text("没有这么长的提示", "no prompt is so long"),
        raiser="vLLM",
        since="0.33.0",
    ),
    Refusal(
        "vllm-unbound-nodes",
        f"{_PARALLEL}._validate_parallel_config",
        ("numa_bind_nodes", "numa_bind_cpus"),
        _unbound,
        Text("加上 {--numa_bind}", "add {--numa_bind}"),
        Text("未启用 NUMA 绑定", "nothing is bound without {--numa_bind}"),
        write=lambda options: {"numa_bind": True},
        raiser="vLLM",
        since="0.26.0",
    ),
    Refusal(
        "vllm-redundant-unbalanced",
        f"{_PARALLEL}._validate_parallel_config",
        ("eplb_config", "enable_eplb"),
        _redundant,
        Text(
            "加上 {--enable_eplb}，或从 {--eplb_config} 去掉 num_redundant_experts",
            "add {--enable_eplb}, or drop num_redundant_experts of {--eplb_config}",
        ),
        Text("冗余专家只用于专家负载均衡", "redundant experts are for balancing alone"),
        raiser="vLLM",
        since="0.14.1",
    ),
    Refusal(
        "vllm-uneven-decoding",
        f"{_PARALLEL}._validate_parallel_config",
        ("decode_context_parallel_size", _TP),
        _uneven_decoding,
        Text(
            "{--decode_context_parallel_size} 设为 {tensor_parallel_size} 的约数",
            "set {--decode_context_parallel_size} to a divisor of {tensor_parallel_size}",
        ),
        Text(
            "解码上下文并行 {decode_context_parallel_size} 不能整除张量并行",
            "{decode_context_parallel_size} does not divide {--tensor_parallel_size}",
        ),
        raiser="vLLM",
        since="0.19.1",
    ),
    Refusal(
        "vllm-elastic-hybrid",
        f"{_PARALLEL}.__post_init__",
        ("data_parallel_hybrid_lb", "enable_elastic_ep"),
        lambda options: (
            is_on(options, "enable_elastic_ep") and is_on(options, "data_parallel_hybrid_lb")
        ),
        drop("data_parallel_hybrid_lb"),
        Text("{--enable_elastic_ep} 不支持", "{--enable_elastic_ep} does not take it"),
        raiser="vLLM",
        since="0.33.0",
    ),
    Refusal(
        "vllm-rank-outside",
        f"{_PARALLEL}.__post_init__",
        ("data_parallel_rank", _DP),
        _rank_outside,
        Text(
            "{--data_parallel_rank} 小于 {data_parallel_size}",
            "set {--data_parallel_rank} below {data_parallel_size}",
        ),
        Text("编号从 0 起", "replicas are counted from 0"),
        raiser="vLLM",
        since="0.10.2",
    ),
    Refusal(
        "vllm-nsight-without-ray",
        f"{_PARALLEL}._verify_args",
        ("ray_workers_use_nsight", "distributed_executor_backend"),
        _nsight_alone,
        drop("ray_workers_use_nsight"),
        Text("进程不由 Ray 启动", "the workers are not Ray's"),
        raiser="vLLM",
    ),
    *OF_SERVER,
    *OF_DRAFTS,
    *ALIKE,
)
