"""What SGLang refuses of options that go together or have a range, case by case."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Optional

from flake8_gpu_training.frameworks.refusals.alike import (
    Alike,
    Asked,
    above,
    below,
    none_of,
    off,
    on,
    one_of,
    some,
    within,
)
from flake8_gpu_training.frameworks.refusals.base import Options, Refusal, UndecidedError
from flake8_gpu_training.frameworks.refusals.served import given, positive
from flake8_gpu_training.frameworks.refusals.sglang_elastic import OF_ELASTIC
from flake8_gpu_training.language import Text

_FOLDER = "sglang/srt/arg_groups"
_TP = ("tp_size", "tensor_parallel_size")
_PP = ("pp_size", "pipeline_parallel_size")
_JOIN = ("elastic_ep_join_mode", "ep_join_mode")

# --- watermarks -----------------------------------------------------------------------

_MARKS = Alike(
    f"{_FOLDER}/validation_hook.py, check_watermark_server_args",
    "SGLang",
    "0.5.23",
    (on("enable_watermark"),),
)
_OWN_MARKS = Alike(_MARKS.source, "SGLang", "0.5.23", (*_MARKS.asked, off("watermark_config")))
"""Of values that no file of the watermark replaces."""
_SAMPLERS = ("flashinfer", "pytorch", "ascend", "intel_xpu")

_WATERMARK = (
    Alike(_MARKS.source, "SGLang", "0.5.23").needs(
        "sglang-watermark-off", off("enable_watermark"), some("watermark_config")
    ),
    _MARKS.sets("sglang-watermark-device", "cuda", none_of("device", "cuda", None)),
    _OWN_MARKS.sets(
        "sglang-watermark-window", "1-64", within("watermark_context_window", lambda n: 0 < n < 65)
    ),
    _OWN_MARKS.needs("sglang-watermark-key", off("watermark_key"), some("watermark_key_b")),
    _OWN_MARKS.sets(
        "sglang-watermark-mixing",
        "0.5",
        within("watermark_mixing_probability", lambda part: 0 < part < 1),
    ),
    _OWN_MARKS.needs(
        "sglang-watermark-mixing-alone",
        off("watermark_key_b"),
        within("watermark_mixing_probability", lambda part: part == 0.5 or not 0 < part < 1),
    ),
    _OWN_MARKS.sets(
        "sglang-watermark-probability",
        "1.0",
        within("watermark_max_probability", lambda part: 0 < part <= 1),
    ),
    _OWN_MARKS.needs(
        "sglang-watermark-default", off("watermark_key"), on("watermark_default_enabled")
    ),
    _OWN_MARKS.needs(
        "sglang-watermark-enforced", off("watermark_key"), on("watermark_enforce_all")
    ),
    _MARKS.apart("sglang-watermark-processor", on("enable_custom_logit_processor")),
    _MARKS.sets(
        "sglang-watermark-sampler",
        "pytorch",
        none_of("sampling_backend", *_SAMPLERS, None),
    ),
    _MARKS.apart("sglang-watermark-diffusion", some("dllm_algorithm")),
    _MARKS.apart("sglang-watermark-disaggregated", none_of("disaggregation_mode", "null")),
    _MARKS.sets(
        "sglang-watermark-speculation",
        "NGRAM, EAGLE / EAGLE3",
        Asked(
            ("speculative_algorithm",),
            lambda name: (
                name is not None and name.upper() not in ("NGRAM", "EAGLE", "EAGLE3", "NEXTN")
            ),
        ),
    ),
    _MARKS.apart("sglang-watermark-rejection", on("speculative_use_rejection_sampling")),
)

# --- buckets --------------------------------------------------------------------------

_BUCKETS = ("prompt_tokens_buckets", "generation_tokens_buckets")
_RULES = {
    "tse": Text("tse <中值> <底数> <个数>", "tse <middle> <base above 1> <count>"),
    "default": Text("default", "default alone"),
    "custom": Text("custom 及互不相同的非负数", "custom and different numbers from 0 on"),
}
_NO_RULE = Text("tse、default 或 custom", "a rule of tse, default or custom")


def _numbers(texts: Sequence[Any]) -> Optional[list[float]]:
    try:
        return [float(text) for text in texts]
    except ValueError:
        return None


def _is_bucket_rule(rule: str, rest: Sequence[Any]) -> bool:
    numbers = _numbers(rest)
    if rule == "default":
        return not rest
    if numbers is None:
        return False
    if rule == "custom":
        distinct = len(set(numbers)) == len(numbers)
        return bool(numbers) and distinct and min(numbers) >= 0
    if len(numbers) != 3 or not str(rest[2]).strip().isdigit():
        return False
    return numbers[0] > 0 and numbers[1] > 1 and numbers[2] > 0


def _wrong_buckets(options: Options) -> tuple[str, Text]:
    """The first list of buckets that is none, and what it may be; "" when all are right."""
    for name in _BUCKETS:
        if not options.takes(name) or name not in options.given:
            continue
        words = options[name]
        if not isinstance(words, (list, tuple)) or not words:
            continue
        if not all(isinstance(word, (str, int, float)) for word in words):
            raise UndecidedError(name)
        rule = str(words[0])
        if rule not in _RULES:
            return name, _NO_RULE
        if not _is_bucket_rule(rule, words[1:]):
            return name, _RULES[rule]
    return "", _NO_RULE


def _bucket_words(options: Options) -> Mapping[str, Any]:
    name, wanted = _wrong_buckets(options)
    return {"--buckets": name, "wanted": wanted.en, "listed": wanted.zh}


_BUCKET_RULE = Refusal(
    "sglang-buckets",
    f"{_FOLDER}/validation_hook.py, validate_buckets_rule",
    _BUCKETS,
    lambda options: bool(_wrong_buckets(options)[0]),
    Text("{--buckets} 写成 {listed}", "give {--buckets} {wanted}"),
    Text("分桶规则不符", "the rule of the buckets is none"),
    figures=_bucket_words,
    raiser="SGLang",
    since="0.5.2",
)

# --- decode context parallelism, one group of weights a rank, captured states ---------

_CONTEXT = Alike(
    f"{_FOLDER}/parallel_hook.py, handle_decode_context_parallelism", "SGLang", "0.5.20"
)
_COMBINED = one_of("dcp_comm_backend", "a2a", "fi_a2a")
_ONE_DCP = Asked(("dcp_size",), lambda size: size <= 1)
_DECODE_CONTEXT = (
    Alike(_CONTEXT.source, "SGLang", "0.5.16").sets("sglang-dcp-size", "1", below(1, "dcp_size")),
    Alike(_CONTEXT.source, "SGLang", "0.5.23").apart(
        "sglang-dcp-prefill", on("enable_prefill_cp"), above(1, "dcp_size")
    ),
    _CONTEXT.sets("sglang-dcp-backend", "2+", _ONE_DCP, _COMBINED),
    _CONTEXT.sets("sglang-dcp-replicated", "2+", _ONE_DCP, on("dcp_replicate_q_proj")),
    _CONTEXT.sets(
        "sglang-dcp-replicated-backend",
        "a2a",
        one_of("dcp_comm_backend", "ag_rs"),
        on("dcp_replicate_q_proj"),
        above(1, "dcp_size"),
    ),
)
_WEIGHTS = Alike(
    f"{_FOLDER}/parallel_hook.py, handle_dwdp", "SGLang", "0.5.20", (above(1, "dwdp_size"),)
)
_DISTRIBUTED = (
    _WEIGHTS.apart("sglang-dwdp-decode", one_of("disaggregation_mode", "decode")),
    _WEIGHTS.apart("sglang-dwdp-balance", on("enable_eplb")),
    _WEIGHTS.apart("sglang-dwdp-speculation", some("speculative_algorithm")),
    _WEIGHTS.sets("sglang-dwdp-stages", "1", above(1, *_PP)),
    _WEIGHTS.apart("sglang-dwdp-overlap", on("enable_two_batch_overlap")),
)


def _dwdp_of_others(options: Options) -> bool:
    size = options["dwdp_size"] if options.takes("dwdp_size") else 1
    return bool(size > 1 and size != positive(options, *_TP))


_STATES = Alike(
    f"{_FOLDER}/validation_hook.py, handle_aux_hidden_state_capture",
    "SGLang",
    "0.5.23",
    (on("enable_return_aux_hidden_states"),),
)
_LAYERS = "return_aux_hidden_state_layer_ids"
_CAPTURES = ("EAGLE3", "DFLASH", "DSPARK")


def _method(value: Optional[str]) -> str:
    return (value or "").upper()


_CAPTURED = (
    Alike(_STATES.source, "SGLang", "0.5.23").needs(
        "sglang-states-off", off("enable_return_aux_hidden_states"), some(_LAYERS)
    ),
    _STATES.sets(
        "sglang-states-method",
        "EAGLE3, DFLASH / DSPARK",
        Asked(("speculative_algorithm",), lambda value: _method(value) not in _CAPTURES),
    ),
    _STATES.apart("sglang-states-draft", some("speculative_draft_model_path")),
    _STATES.sets("sglang-states-stages", "1", above(1, *_PP)),
    _STATES.needs(
        "sglang-states-layers",
        off(_LAYERS),
        Asked(("speculative_algorithm",), lambda value: _method(value) in _CAPTURES[1:]),
    ),
    _STATES.sets(
        "sglang-states-layer",
        "different numbers from 0 on",
        within(_LAYERS, lambda ids: not ids or (min(ids) >= 0 and len(set(ids)) == len(ids))),
    ),
)

# --- adapters -------------------------------------------------------------------------

_LORA = f"{_FOLDER}/lora_hook.py, check_lora_moe_runner_args"


def _is_of_adapters(value: Any) -> bool:
    return str(value).startswith("lora_")


_RUNNER = Alike(
    _LORA, "SGLang", "0.5.23", (Asked(("moe_runner_backend",), _is_of_adapters, written=True),)
)
_NEW_KERNELS = Alike(
    f"{_FOLDER}/lora_hook.py, _check_v2_lora_modes",
    "SGLang",
    "0.5.23",
    (one_of("lora_backend", "triton_v2"), Asked(("enable_lora",), lambda value: value is True)),
)
_ADAPTERS = (
    Alike(_LORA, "SGLang", "0.5.23", (some("speculative_algorithm"),)).apart(
        "sglang-adapters-of-draft",
        Asked(("speculative_moe_runner_backend",), _is_of_adapters, written=True),
    ),
    _RUNNER.needs("sglang-runner-off", off("enable_lora"), off("lora_paths")),
    _RUNNER.sets(
        "sglang-runner-backend",
        "triton_v2",
        Asked(("lora_backend",), lambda value: value != "triton_v2"),
    ),
    _RUNNER.sets(
        "sglang-runner-quantized",
        "fp8 / modelopt_fp4",
        none_of("quantization", None, "fp8", "modelopt_fp4"),
    ),
    Alike(_LORA, "SGLang", "0.5.23", (one_of("quantization", "modelopt_fp4"),)).sets(
        "sglang-runner-fp4",
        "lora_marlin",
        one_of("moe_runner_backend", "lora_triton", "lora_cutedsl"),
    ),
    _RUNNER.apart("sglang-runner-dispatch", none_of("moe_a2a_backend", "none")),
    _RUNNER.apart("sglang-runner-elastic", some(*_JOIN)),
    _RUNNER.apart("sglang-runner-balance", on("enable_eplb")),
    _RUNNER.apart("sglang-runner-placed", none_of("init_expert_location", "trivial")),
    _RUNNER.apart("sglang-runner-redundant", above(0, "ep_num_redundant_experts")),
    _NEW_KERNELS.apart("sglang-kernels-attention", above(1, "attn_dp_size")),
    _NEW_KERNELS.apart("sglang-kernels-multiplexed", on("enable_pdmux")),
    _NEW_KERNELS.apart("sglang-kernels-overlap", on("enable_two_batch_overlap")),
)


def _overlaps_many(options: Options) -> bool:
    if not options.takes("enable_lora_overlap_loading") or not options.is_given(
        "enable_lora_overlap_loading"
    ):
        return False
    is_served = options["enable_lora"] is True or bool(options.given.get("lora_paths"))
    if options["enable_lora_overlap_loading"] is not True or not is_served:
        return False
    loaded = options["max_loaded_loras"]
    return loaded is None or loaded > 2 * options["max_loras_per_batch"]


# --- others ---------------------------------------------------------------------------

_CHECKED = Alike(f"{_FOLDER}/validation_hook.py, check_server_args", "SGLang", "0.5.16")
_LOADS = Alike(
    f"{_FOLDER}/validation_hook.py, check_load_publish_args",
    "SGLang",
    "0.5.20",
    (
        Asked(
            ("load_publish_endpoint",),
            lambda text: bool(text) and str(text).strip().lower() not in ("", "off"),
        ),
    ),
)


def _events(text: Any) -> Optional[Mapping[str, Any]]:
    """The publisher's configuration; None when it is no JSON object."""
    if isinstance(text, dict):
        return text
    try:
        found = json.loads(text)
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


def _publishes_nothing(text: Any) -> bool:
    found = _events(text) if text else None
    if found is None:
        return False
    return bool(found.get("publisher", "null") == "null" or found.get("endpoint", "x") == "")


def _same_port(options: Options) -> bool:
    modes = ("smg_grpc_mode", "grpc_mode")
    if any(options.takes(mode) and options[mode] is True for mode in modes):
        return False
    return bool(given(options, "grpc_port") == options["port"])


_OTHERS = (
    _CHECKED.apart(
        "sglang-quantized-alone",
        on("enable_quant_communications"),
        Asked(_TP, lambda size: size == 1),
    ),
    _CHECKED.sets(
        "sglang-canary-off",
        "log / raise",
        Asked(("kv_canary",), lambda value: value == "none"),
        above(0, "kv_canary_sweep_interval"),
    ),
    _LOADS.needs("sglang-loads-alone", off("kv_events_config")),
    _LOADS.sets(
        "sglang-loads-unread",
        "a JSON object",
        Asked(("kv_events_config",), lambda text: bool(text) and _events(text) is None),
    ),
    _LOADS.sets(
        "sglang-loads-unpublished",
        '{{"publisher": "zmq"}}',
        Asked(("kv_events_config",), _publishes_nothing),
    ),
    Refusal(
        "sglang-same-port",
        _CHECKED.source,
        ("grpc_port", "port"),
        _same_port,
        Text("{--grpc_port} 换一个端口", "give {--grpc_port} a port of its own"),
        Text("{port} 已是 HTTP 端口", "{port} is the port of HTTP"),
        raiser="SGLang",
        since="0.5.20",
    ),
    Refusal(
        "sglang-dwdp-size",
        _WEIGHTS.source,
        ("dwdp_size", *_TP),
        _dwdp_of_others,
        Text("{--dwdp_size} 等于张量并行度", "set {--dwdp_size} to the tensor-parallel size"),
        Text("每个进程须有一份权重", "each rank holds a part of the weights"),
        raiser="SGLang",
        since="0.5.20",
    ),
    Refusal(
        "sglang-overlapped-adapters",
        f"{_FOLDER}/lora_hook.py, check_lora_server_args",
        ("max_loaded_loras", "enable_lora_overlap_loading", "max_loras_per_batch"),
        _overlaps_many,
        Text(
            "{--max_loaded_loras} 不大于 {--max_loras_per_batch} 的两倍",
            "set {--max_loaded_loras} to at most twice {--max_loras_per_batch}",
        ),
        Text("重叠加载占用锁页内存", "adapters that load meanwhile stay in pinned memory"),
        raiser="SGLang",
        since="0.5.10",
    ),
)


ALIKE: tuple[Refusal, ...] = (
    *_WATERMARK,
    _BUCKET_RULE,
    *_DECODE_CONTEXT,
    *_DISTRIBUTED,
    *_CAPTURED,
    *_ADAPTERS,
    *OF_ELASTIC,
    *_OTHERS,
)
