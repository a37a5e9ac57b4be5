"""What vLLM refuses of options that go together or have a range, case by case."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Callable

from flake8_gpu_training.facts import known
from flake8_gpu_training.frameworks.readable_numbers import number
from flake8_gpu_training.frameworks.refusals.alike import (
    Alike,
    Asked,
    above,
    below,
    on,
    one_of,
    some,
    within,
)
from flake8_gpu_training.frameworks.refusals.base import Options, Refusal, UndecidedError
from flake8_gpu_training.frameworks.refusals.served import given, positive, whole
from flake8_gpu_training.language import Text

_PARALLEL = "vllm/config/parallel.py, ParallelConfig"
_DRAFTS = "vllm/config/speculative.py, SpeculativeConfig"
_FLAGS = "vllm/entrypoints/common/cli_args.py"
_TP, _PP, _DP = "tensor_parallel_size", "pipeline_parallel_size", "data_parallel_size"
_PROCESSORS = re.compile(r"\d+(?:-\d+)?(?:,\d+(?:-\d+)?)*")
_WHOLE_KERNELS = (
    "deep_gemm_mega_moe",
    "flashinfer_moe_ep_cutedsl",
    "flashinfer_moe_ep_mega_deep_gemm",
    "aiter_mega_moe",
)

# --- entries of a configuration -------------------------------------------------------

Entries = Mapping[str, Any]


def _entries(options: Options, name: str) -> Entries:
    entries = options.mapping(name)
    if not all(map(known, entries.values())):
        raise UndecidedError(name)
    return entries


def _of(
    name: str,
    source: str,
    parameter: str,
    test: Callable[[Entries], bool],
    mend: tuple[str, str],
    why: tuple[str, str],
    since: str,
) -> Refusal:
    """A rule about the entries of one configuration."""
    return Refusal(
        name,
        source,
        (parameter,),
        lambda options: bool(options.takes(parameter) and test(_entries(options, parameter))),
        Text(*mend),
        Text(*why),
        raiser="vLLM",
        since=since,
    )


def _draft(
    name: str,
    method: str,
    test: Callable[[Entries], bool],
    mend: tuple[str, str],
    why: tuple[str, str],
    since: str = "0.26.0",
) -> Refusal:
    return _of(name, f"{_DRAFTS}.{method}", "speculative_config", test, mend, why, since)


def _is_synthetic(entries: Entries) -> bool:
    return entries.get("rejection_sample_method") == "synthetic"


def _rates_and_length(entries: Entries) -> tuple[Any, Any]:
    return entries.get("synthetic_acceptance_rates"), entries.get("synthetic_acceptance_length")


def _one_rate_too_many(entries: Entries) -> bool:
    rates, length = _rates_and_length(entries)
    return _is_synthetic(entries) and (rates is None) == (length is None)


def _wrong_rates(entries: Entries) -> bool:
    rates, number = _rates_and_length(entries)[0], entries.get("num_speculative_tokens")
    if not _is_synthetic(entries) or not isinstance(rates, list) or not isinstance(number, int):
        return False
    falls = all(rates[at] <= rates[at - 1] for at in range(1, len(rates)))
    return len(rates) != number or not falls or not all(0 <= rate <= 1 for rate in rates)


def _wrong_length(entries: Entries) -> bool:
    length, number = _rates_and_length(entries)[1], entries.get("num_speculative_tokens")
    if not _is_synthetic(entries) or length is None or not isinstance(number, int):
        return False
    return not 1 <= length <= number + 1


def _idle_rates(entries: Entries) -> bool:
    return not _is_synthetic(entries) and _rates_and_length(entries) != (None, None)


def _other_words(entries: Entries) -> bool:
    return entries.get("use_heterogeneous_vocab") is True


def _wide_window(entries: Entries) -> bool:
    window, number = entries.get("fly_window_size"), entries.get("num_speculative_tokens")
    is_fly = entries.get("rejection_sample_method") == "fly"
    return is_fly and window is not None and isinstance(number, int) and 2 <= number <= window


def _is_fly(entries: Entries) -> bool:
    return entries.get("rejection_sample_method") == "fly"


_OF_DRAFTS = (
    _draft(
        "vllm-synthetic-twice",
        "_resolve_synthetic_acceptance_rates",
        _one_rate_too_many,
        (
            "synthetic_acceptance_rates 与 synthetic_acceptance_length 写其一",
            "give one of synthetic_acceptance_rates and synthetic_acceptance_length",
        ),
        ("synthetic 恰需其一", "the synthetic method takes exactly one"),
    ),
    _draft(
        "vllm-synthetic-rates",
        "_resolve_synthetic_acceptance_rates",
        _wrong_rates,
        (
            "synthetic_acceptance_rates 写 num_speculative_tokens 个 0 到 1 之间不递增的数",
            "give synthetic_acceptance_rates a number from 0 to 1 for each of "
            "num_speculative_tokens, none above the one before",
        ),
        ("每个位置一个接受率", "each position has a rate"),
    ),
    _draft(
        "vllm-synthetic-length",
        "_resolve_synthetic_acceptance_rates",
        _wrong_length,
        (
            "synthetic_acceptance_length 取 1 到 num_speculative_tokens + 1",
            "set synthetic_acceptance_length from 1 to num_speculative_tokens + 1",
        ),
        ("超出范围", "it is out of range"),
    ),
    _draft(
        "vllm-synthetic-idle",
        "_verify_args",
        _idle_rates,
        (
            "rejection_sample_method 设为 synthetic",
            "set rejection_sample_method to synthetic",
        ),
        ("接受率只用于该方法", "rates of acceptance are for that method alone"),
    ),
    _draft(
        "vllm-vocabulary-method",
        "_verify_args",
        lambda entries: (
            _other_words(entries) and entries.get("method", "draft_model") != "draft_model"
        ),
        ("method 设为 draft_model", "set method to draft_model"),
        ("use_heterogeneous_vocab 需要草稿模型", "use_heterogeneous_vocab needs a draft model"),
    ),
    _draft(
        "vllm-vocabulary-sampled",
        "_verify_args",
        lambda entries: (
            _other_words(entries) and entries.get("draft_sample_method", "greedy") != "greedy"
        ),
        ("draft_sample_method 设为 greedy", "set draft_sample_method to greedy"),
        ("use_heterogeneous_vocab 只支持 greedy", "use_heterogeneous_vocab takes no other"),
    ),
    _draft(
        "vllm-vocabulary-reduced",
        "_verify_args",
        lambda entries: _other_words(entries) and entries.get("use_local_argmax_reduction") is True,
        ("去掉 use_local_argmax_reduction", "drop use_local_argmax_reduction"),
        ("use_heterogeneous_vocab 需要全部 logits", "use_heterogeneous_vocab needs all logits"),
    ),
    _draft(
        "vllm-fly-states",
        "_verify_args",
        lambda entries: _is_fly(entries) and entries.get("method") == "extract_hidden_states",
        ("去掉 rejection_sample_method", "drop rejection_sample_method"),
        ("extract_hidden_states 不做推测", "extract_hidden_states does not speculate"),
        "0.33.0",
    ),
    _draft(
        "vllm-fly-tokens",
        "_verify_args",
        lambda entries: _is_fly(entries) and entries.get("num_speculative_tokens") == 1,
        ("num_speculative_tokens 至少为 2", "set num_speculative_tokens to at least 2"),
        ("fly 需要后续 token", "the fly method needs a token that follows"),
        "0.33.0",
    ),
    _draft(
        "vllm-fly-window",
        "_verify_args",
        _wide_window,
        (
            "fly_window_size 小于 num_speculative_tokens",
            "set fly_window_size below num_speculative_tokens",
        ),
        ("窗口须在草稿之内", "the window lies within the draft"),
        "0.33.0",
    ),
    _draft(
        "vllm-custom-without-module",
        "__post_init__",
        lambda entries: entries.get("method") == "custom_class" and entries.get("model") is None,
        ("model 写自定义类的模块路径", "name the module of the class as model"),
        ("custom_class 需要它", "the method custom_class needs it"),
    ),
    _draft(
        "vllm-topk-of-others",
        "__post_init__",
        lambda entries: (
            entries.get("dspark_draft_topk") is not None
            and entries.get("method")
            in ("eagle", "eagle3", "mtp", "medusa", "dflash", "draft_model")
            and entries.get("model") is not None
        ),
        ("去掉 dspark_draft_topk", "drop dspark_draft_topk"),
        ("它只用于 dspark", "it is for the method dspark"),
        "0.30.0",
    ),
)

# --- parallelism ----------------------------------------------------------------------

_BALANCE = "vllm/config/parallel.py, EPLBConfig._validate_eplb_config"


def _listed(value: Any) -> list[str]:
    """A list as its texts; one value alone is a list of it."""
    return [str(one) for one in (value if isinstance(value, list) else [value])]


def _no_nodes(nodes: Any) -> bool:
    return nodes is not None and (
        not _listed(nodes) or any(int(node) < 0 for node in _listed(nodes))
    )


def _no_processors(lists: Any) -> bool:
    return lists is not None and (not _listed(lists) or not all(map(_is_list, _listed(lists))))


def _is_list(text: str) -> bool:
    """Whether a text lists processors as numactl takes them, ranges ascending."""
    if not _PROCESSORS.fullmatch(text):
        return False
    ranges = (part.split("-") for part in text.split(",") if "-" in part)
    return all(int(first) <= int(last) for first, last in ranges)


def _other_contexts(options: Options) -> bool:
    prefill = positive(options, "prefill_context_parallel_size")
    size = positive(options, "decode_context_parallel_size")
    return prefill > 1 and size not in (1, prefill, positive(options, _TP) * prefill)


def _grows_less(options: Options) -> bool:
    if not options.takes("elastic_ep_max_dp_size") or options["enable_elastic_ep"] is not True:
        return False
    return bool(given(options, "elastic_ep_max_dp_size") < positive(options, _DP))


def _small_batches(options: Options) -> bool:
    batches = 2 if options["enable_dbo"] is True else whole(options, "ubatch_size")
    least = min(options["dbo_decode_token_threshold"], options["dbo_prefill_token_threshold"])
    return batches > 1 and least < batches


_OF_PARALLEL = (
    _of(
        "vllm-balance-communicator",
        _BALANCE,
        "eplb_config",
        lambda entries: (
            entries.get("use_async") is True
            and entries.get("communicator") in ("torch_nccl", "pynccl")
        ),
        ("communicator 改为 torch_gloo 或 nixl", "set communicator to torch_gloo or nixl"),
        ("异步均衡不支持它", "balancing beside the steps (use_async) does not take it"),
        "0.26.0",
    ),
    _of(
        "vllm-balance-interval",
        _BALANCE,
        "eplb_config",
        lambda entries: (
            entries.get("log_balancedness") is True
            and entries.get("log_balancedness_interval", 1) <= 0
        ),
        ("log_balancedness_interval 大于 0", "set log_balancedness_interval above 0"),
        ("间隔须为正", "an interval is positive"),
        "0.14.1",
    ),
    Alike(f"{_PARALLEL}._validate_numa_bind_nodes", "vLLM", "0.26.0").case(
        "vllm-numa-nodes",
        (Asked(("numa_bind_nodes",), _no_nodes),),
        Text("{--numa_bind_nodes} 写非负的节点号", "give {--numa_bind_nodes} numbers from 0 on"),
        Text("每张卡一个节点", "each GPU has a node"),
    ),
    Alike(f"{_PARALLEL}._validate_numa_bind_cpus", "vLLM", "0.26.0").case(
        "vllm-numa-processors",
        (Asked(("numa_bind_cpus",), _no_processors),),
        Text(
            "{--numa_bind_cpus} 写成 0-3 或 0,2,4-7", "write {--numa_bind_cpus} as 0-3 or 0,2,4-7"
        ),
        Text("不是 numactl 的处理器列表", "numactl takes no other list"),
    ),
    Refusal(
        "vllm-decode-contexts",
        f"{_PARALLEL}._validate_parallel_config",
        ("decode_context_parallel_size", "prefill_context_parallel_size"),
        _other_contexts,
        Text(
            "{--decode_context_parallel_size} 设为 1 或 {prefill_context_parallel_size}",
            "set {--decode_context_parallel_size} to 1 or {prefill_context_parallel_size}",
        ),
        Text("解码须沿预填充的轴", "decoding spans the ranks of the prefill, or all"),
        raiser="vLLM",
        since="0.26.0",
    ),
    Refusal(
        "vllm-elastic-least",
        f"{_PARALLEL}.__post_init__",
        ("elastic_ep_max_dp_size", _DP),
        _grows_less,
        Text(
            "{--elastic_ep_max_dp_size} 不小于 {data_parallel_size}",
            "set {--elastic_ep_max_dp_size} to at least {data_parallel_size}",
        ),
        Text("启动时已有这么多", "so many replicas start"),
        raiser="vLLM",
        since="0.30.0",
    ),
    Refusal(
        "vllm-small-microbatches",
        f"{_PARALLEL}._verify_args",
        ("dbo_decode_token_threshold", "dbo_prefill_token_threshold", "enable_dbo", "ubatch_size"),
        _small_batches,
        Text("阈值不小于微批数", "set the thresholds to at least the number of microbatches"),
        Text("微批至少一个 token", "a microbatch has one token at least"),
        raiser="vLLM",
        since="0.30.0",
    ),
    Alike("vllm/config/model.py, ModelConfig.verify_with_parallel_config", "vLLM", "0.33.0").sets(
        "vllm-sequences-in-stages", "1", above(1, _PP), on("enable_hc_sp"), above(1, _TP)
    ),
    Alike("vllm/config/lora.py, LoRAConfig.verify_with_kernel_config", "vLLM", "0.33.0").apart(
        "vllm-kernel-of-adapters", one_of("moe_backend", *_WHOLE_KERNELS), on("enable_lora")
    ),
    Alike("vllm/config/model.py, ModelConfig.validate_model_config_after", "vLLM", "0.14.1").case(
        "vllm-no-length",
        (Asked(("max_model_len",), lambda length: str(length) == "0", written=True),),
        Text("{--max_model_len} 设为正数", "set {--max_model_len} above 0"),
        Text("长度须为正", "a model reads one token at least"),
    ),
)

# --- ranges of the configuration's fields ----------------------------------------------------


def _fields(file: str, since: str = "0.14.1") -> Alike:
    """Ranges that the fields of a configuration's class declare (``Field(ge=1)``)."""
    return Alike(f"vllm/config/{file}", "vLLM", since)


def _size(value: Any) -> Any:
    """A number of tokens or bytes, which a flag may give with a suffix."""
    found = number(value) if isinstance(value, str) else value
    if found is None:
        raise UndecidedError(str(value))
    return found


_CACHE, _BATCHES = _fields("cache.py, CacheConfig"), _fields("scheduler.py, SchedulerConfig")
_RANKS = _fields("parallel.py, ParallelConfig", "0.33.0")
_SHARE = ("gpu_memory_utilization",)
_OF_FIELDS = (
    Refusal(
        "vllm-memory-share",
        "vllm/config/cache.py, CacheConfig._verify_args and gpu_memory_utilization",
        _SHARE,
        lambda options: options[_SHARE[0]] > 1,
        Text(
            "{--gpu_memory_utilization} 设为大于 0、不超过 1 的比例，如 0.9",
            "set {--gpu_memory_utilization} to a share above 0 and up to 1, like 0.9",
        ),
        Text(
            "{gpu_memory_utilization} 超过整块显存",
            "{gpu_memory_utilization} is more than the whole memory of the GPU",
        ),
        raiser="vLLM",
    ),
    _CACHE.sets("vllm-no-memory-share", "more than 0, like 0.9", below(1e-12, *_SHARE)),
    _CACHE.sets("vllm-cpu-offload", "0 or more", below(0, "cpu_offload_gb")),
    _BATCHES.sets("vllm-no-sequences", "1 or more", below(1, "max_num_seqs")),
    _BATCHES.sets(
        "vllm-no-batched-tokens",
        "1 or more",
        Asked(("max_num_batched_tokens",), lambda v: v is not None and _size(v) < 1, written=True),
    ),
    _BATCHES.sets("vllm-no-stream", "1 or more", below(1, "stream_interval")),
    _fields("lora.py, LoRAConfig").sets(
        "vllm-no-adapters", "1 or more", below(1, "max_loras"), on("enable_lora")
    ),
    _RANKS.sets("vllm-no-ranks", "1 or more", below(1, _TP)),
    _RANKS.sets("vllm-no-stages", "1 or more", below(1, _PP)),
    _RANKS.sets("vllm-no-replicas", "1 or more", below(1, _DP)),
    _RANKS.sets("vllm-no-nodes", "1 or more", below(1, "nnodes")),
    _RANKS.sets("vllm-node-rank", "0 or more", below(0, "node_rank")),
)

# --- the server's flags ---------------------------------------------------------------

_EFFORTS = frozenset({"none", "minimal", "low", "medium", "high", "xhigh", "max"})
_PORT = Alike(f"{_FLAGS}, validate_grpc_port_arg", "", "0.33.0", (some("grpc_port"),), ("serve",))


def _same_port(options: Options) -> bool:
    port = given(options, "grpc_port")
    return bool(port and port == options["port"] and not options["uds"])


def _no_map(value: Any) -> bool:
    """Whether a value is no JSON object that names the efforts by texts."""
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except ValueError:
            return True
    if not isinstance(value, dict) or not all(isinstance(one, str) for one in value.values()):
        return True
    return not _EFFORTS.issuperset(value)


_OF_FLAGS = (
    _PORT.apart("vllm-grpc-twice", on("grpc")),
    _PORT.apart("vllm-grpc-headless", on("headless")),
    _PORT.sets("vllm-grpc-servers", "1", below(1, "api_server_count")),
    _PORT.apart("vllm-grpc-ports", on("data_parallel_multi_port_external_lb")),
    _PORT.sets("vllm-grpc-range", "0-65535", within("grpc_port", lambda port: 0 <= port <= 65535)),
    Refusal(
        "vllm-grpc-same",
        _PORT.source,
        ("grpc_port", "port"),
        _same_port,
        Text("{--grpc_port} 换一个端口", "give {--grpc_port} a port of its own"),
        Text("{port} 已是 HTTP 端口", "{port} is the port of HTTP"),
        groups=("serve",),
        since="0.33.0",
    ),
    Alike(f"{_FLAGS}, validate_reasoning_effort_map", "", "0.33.0", groups=("serve",)).case(
        "vllm-no-efforts",
        (Asked(("reasoning_effort_map",), _no_map, written=True),),
        Text(
            "{--reasoning_effort_map} 写成 none 至 max 各强度到文本的 JSON 对象",
            "write {--reasoning_effort_map} as a JSON object of texts for the efforts "
            "from none to max",
        ),
        Text("不是这样的对象", "it is no such object"),
    ),
)

ALIKE: tuple[Refusal, ...] = (*_OF_DRAFTS, *_OF_PARALLEL, *_OF_FIELDS, *_OF_FLAGS)
