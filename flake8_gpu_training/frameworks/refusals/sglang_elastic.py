"""What SGLang refuses of elastic experts, and of a server that may grow (max_ep_size)."""

from __future__ import annotations

from dataclasses import replace
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
)
from flake8_gpu_training.frameworks.refusals.base import Options, Refusal, UndecidedError
from flake8_gpu_training.frameworks.refusals.served import given, positive
from flake8_gpu_training.language import Text

_TP = ("tp_size", "tensor_parallel_size")
_PP = ("pp_size", "pipeline_parallel_size")
_DP = ("dp_size", "data_parallel_size")
_JOIN = ("elastic_ep_join_mode", "ep_join_mode")
_OFFSET = ("elastic_ep_join_rank_offset", "ep_join_rank_offset")


_ELASTIC = "sglang/srt/arg_groups/parallel_hook.py, handle_elastic_ep"
_EXPERTS = Alike(_ELASTIC, "SGLang", "0.5.16", (none_of("elastic_ep_backend", None, "none"),))
_JOINS = Asked(_JOIN, lambda mode: mode == "scale")


def _greatest(options: Options) -> int:
    """The greatest number of ranks of a server that may grow; UndecidedError when it may not."""
    backend, most = given(options, "elastic_ep_backend"), given(options, "max_ep_size")
    if backend in (None, "none") or most is None or most <= positive(options, *_TP):
        raise UndecidedError("max_ep_size")
    return int(most)


def _grows(options: Options) -> bool:
    return _greatest(options) > 0


def _replica(options: Options) -> int:
    """Ranks of one replica of the attention."""
    size, copies = positive(options, *_TP), positive(options, "attn_dp_size")
    if options.takes("enable_dp_attention") and options["enable_dp_attention"] is True:
        copies = max(copies, positive(options, *_DP))
    if size % copies:
        raise UndecidedError("attn_dp_size")
    return size // copies


def _uneven_growth(options: Options) -> bool:
    first = options["elastic_ep_initial_size"] or positive(options, *_TP)
    sizes = [_greatest(options), first]
    if _is_joining(options):
        sizes.append(_offset(options))
    return any(size > 0 and size % _replica(options) for size in sizes)


def _named(options: Options, names: tuple[str, ...]) -> Any:
    return options[next(name for name in names if name in options.accepted.parameters)]


def _is_joining(options: Options) -> bool:
    return bool(_named(options, _JOIN) == "scale")


def _offset(options: Options) -> int:
    return int(_named(options, _OFFSET))


def _growing(name: str, asked: Asked, mend: Text, why: Optional[Text] = None) -> Refusal:
    """What a server that may grow is refused."""
    return Refusal(
        name,
        _ELASTIC,
        (*asked.names, "max_ep_size"),
        lambda options: _grows(options) and asked.holds(options),
        mend,
        why or Text("{--max_ep_size} 大于张量并行度时如此", "a server that grows needs that"),
        raiser="SGLang",
        since="0.5.20",
    )


def _to(name: str, value: str) -> Text:
    return Text(f"{{--{name}}} 设为 {value}", f"set {{--{name}}} to {value}")


def _drop(name: str) -> Text:
    return Text(f"去掉 {{--{name}}}", f"drop {{--{name}}}")


def _judged(name: str, settings: tuple[str, ...], holds: Any, mend: Text, why: Text) -> Refusal:
    return Refusal(
        name,
        _ELASTIC,
        settings,
        lambda options: _grows(options) and bool(holds(options)),
        mend,
        why,
        raiser="SGLang",
        since="0.5.20",
    )


def _no_attention_copies(options: Options) -> bool:
    return positive(options, "attn_dp_size") == 1 and options["enable_dp_attention"] is not True


def _dense_experts(options: Options) -> bool:
    """Several ranks of tensors in the attention, or one rank that joins."""
    if positive(options, "attn_cp_size") != 1 or options["moe_dense_tp_size"] == 1:
        return False
    alone = _is_joining(options) and positive(options, *_TP) == 1
    return alone or _replica(options) > 1


def _uneven_contexts(options: Options) -> bool:
    return positive(options, "attn_cp_size") == 1 and bool(
        _replica(options) % positive(options, "dcp_size")
    )


def _starts_otherwise(options: Options) -> bool:
    first = given(options, "elastic_ep_initial_size")
    return not _is_joining(options) and first not in (None, positive(options, *_TP))


def _joins_early(options: Options) -> bool:
    first = options["elastic_ep_initial_size"]
    return _is_joining(options) and first is not None and (first > _offset(options) or first < 1)


def _joins_beyond(options: Options) -> bool:
    return _is_joining(options) and _offset(options) + positive(options, *_TP) > _greatest(options)


def _first_without_growth(options: Options) -> bool:
    if given(options, "elastic_ep_initial_size") is None:
        return False
    backend, most = options["elastic_ep_backend"], options["max_ep_size"]
    return backend in (None, "none") or most is None or most <= positive(options, *_TP)


_NEWER = Alike(_ELASTIC, "SGLang", "0.5.20")
_GROWTH = (
    _EXPERTS.sets(
        "sglang-elastic-balance",
        "auto",
        none_of("eplb_algorithm", "auto", "elasticity_aware", "elasticity_aware_hierarchical"),
        on("enable_eplb"),
    ),
    _EXPERTS.sets("sglang-elastic-stages", "1", above(1, *_PP)),
    _NEWER.needs("sglang-elastic-join-alone", off("elastic_ep_backend"), some(*_JOIN)),
    _NEWER.sets(
        "sglang-elastic-join-node", "1", Asked(("node_rank",), lambda rank: rank != 1), _JOINS
    ),
    _NEWER.needs("sglang-elastic-join-offset", Asked(_OFFSET, lambda rank: rank == 0), _JOINS),
    _NEWER.case(
        "sglang-elastic-offset-alone",
        (
            Asked(_OFFSET, lambda rank: rank != 0),
            Asked(_JOIN, lambda mode: mode != "scale"),
        ),
        Text(f"{{--{'|'.join(_JOIN)}}} 设为 scale", f"set {{--{'|'.join(_JOIN)}}} to scale"),
        Text("编号只用于加入的进程", "the offset is for ranks that join"),
    ),
    _NEWER.case(
        "sglang-elastic-offset",
        (below(0, *_OFFSET), _JOINS),
        Text(f"{{--{'|'.join(_OFFSET)}}} 大于 0", f"set {{--{'|'.join(_OFFSET)}}} above 0"),
        Text("编号不能为负", "an offset is not negative"),
    ),
    _NEWER.needs("sglang-elastic-most-alone", off("elastic_ep_backend"), some("max_ep_size")),
    _EXPERTS.sets("sglang-elastic-most", "1+", below(1, "max_ep_size")),
    Refusal(
        "sglang-elastic-first-alone",
        _ELASTIC,
        ("elastic_ep_initial_size", "max_ep_size"),
        _first_without_growth,
        Text(
            "加上 {--elastic_ep_backend} 和大于张量并行度的 {--max_ep_size}",
            "add {--elastic_ep_backend}, and {--max_ep_size} above the tensor-parallel size",
        ),
        Text("初始大小只用于可扩展的服务", "a first size is for a server that grows"),
        raiser="SGLang",
        since="0.5.20",
    ),
    _judged(
        "sglang-elastic-replicas",
        ("max_ep_size", "elastic_ep_initial_size", *_OFFSET),
        _uneven_growth,
        Text(
            "各规模设为 {replica} 的倍数", "let each size of the experts be a multiple of {replica}"
        ),
        Text("一份注意力占 {replica} 个进程", "one replica of the attention has {replica} ranks"),
    ),
    _judged(
        "sglang-elastic-dense",
        ("moe_dense_tp_size", "max_ep_size"),
        _dense_experts,
        _to("moe_dense_tp_size", "1"),
        Text("扩展时稠密层不能切分", "dense layers are whole in a server that grows"),
    ),
    _growing(
        "sglang-elastic-timeout",
        Asked(("elastic_ep_scale_timeout",), lambda seconds: seconds <= 0),
        Text("{--elastic_ep_scale_timeout} 大于 0", "set {--elastic_ep_scale_timeout} above 0"),
    ),
    _growing(
        "sglang-elastic-tokenizers",
        above(1, "tokenizer_worker_num"),
        _to("tokenizer_worker_num", "1"),
    ),
    _growing("sglang-elastic-ray", on("use_ray"), _drop("use_ray")),
    _growing(
        "sglang-elastic-backup",
        on("enable_elastic_expert_backup"),
        _drop("enable_elastic_expert_backup"),
    ),
    _judged(
        "sglang-elastic-join-first",
        ("elastic_ep_initial_size", *_JOIN),
        lambda options: _is_joining(options) and options["elastic_ep_initial_size"] is None,
        Text("加上 {--elastic_ep_initial_size}", "add {--elastic_ep_initial_size}"),
        Text("加入者须知道最初的规模", "ranks that join must know the first size"),
    ),
    _judged(
        "sglang-elastic-join-early",
        ("elastic_ep_initial_size", *_OFFSET),
        _joins_early,
        Text(
            "{--elastic_ep_initial_size} 取 1 至加入者的起始编号",
            "set {--elastic_ep_initial_size} from 1 to the offset of those that join",
        ),
        Text("最初的规模不大于现有规模", "a server was not larger at first than it is"),
    ),
    _judged(
        "sglang-elastic-join-beyond",
        ("max_ep_size", *_OFFSET),
        _joins_beyond,
        Text("增大 {--max_ep_size}", "set {--max_ep_size} higher"),
        Text("加入者超出上限", "those that join go beyond it"),
    ),
    _judged(
        "sglang-elastic-first",
        ("elastic_ep_initial_size", *_TP),
        _starts_otherwise,
        Text(
            "{--elastic_ep_initial_size} 等于张量并行度，或不写",
            "set {--elastic_ep_initial_size} to the tensor-parallel size, or drop it",
        ),
        Text("首个服务以张量并行度启动", "the first server starts with that size"),
    ),
    _growing(
        "sglang-elastic-method",
        none_of("load_balance_method", "auto", "round_robin"),
        _to("load_balance_method", "round_robin"),
    ),
    _growing(
        "sglang-elastic-backend",
        one_of("elastic_ep_backend", "nixl"),
        _to("elastic_ep_backend", "mooncake"),
    ),
    _judged(
        "sglang-elastic-contexts",
        ("dcp_size", *_TP),
        _uneven_contexts,
        Text("{--dcp_size} 设为 {replica} 的约数", "set {--dcp_size} to a divisor of {replica}"),
        Text("注意力的张量并行度为 {replica}", "the attention has {replica} tensor-parallel ranks"),
    ),
    _judged(
        "sglang-elastic-attention",
        ("max_ep_size", "attn_dp_size"),
        _no_attention_copies,
        Text("{--attn_dp_size} 大于 1", "set {--attn_dp_size} above 1"),
        Text("可扩展的服务须有注意力数据并行", "a server that grows has data-parallel attention"),
    ),
    _growing(
        "sglang-elastic-context-size",
        Asked(("attn_cp_size",), lambda size: size > 1, written=True),
        _to("attn_cp_size", "1"),
    ),
    _growing("sglang-elastic-moe-copies", above(1, "moe_dp_size"), _to("moe_dp_size", "1")),
    _growing(
        "sglang-elastic-dispatch",
        none_of("moe_a2a_backend", "none", "nixl"),
        _to("moe_a2a_backend", "nixl"),
    ),
)


def _with_replica(rule: Refusal) -> Refusal:
    """The rule with the ranks of a replica, where its words name them."""
    if "{replica}" not in rule.mend.en:
        return rule
    return replace(rule, figures=lambda options: {"replica": _replica(options)})


OF_ELASTIC: tuple[Refusal, ...] = tuple(map(_with_replica, _GROWTH))
