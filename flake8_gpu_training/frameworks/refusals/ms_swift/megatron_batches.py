"""What Megatron in ms-swift refuses of parallel sizes and batches."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

from flake8_gpu_training.frameworks.refusals.base import Options, Refusal
from flake8_gpu_training.frameworks.refusals.ms_swift._asked import (
    MEGATRON,
    MEGATRON_RLHF,
    batch,
    drop,
    off,
    value,
    world,
)
from flake8_gpu_training.language import Text

_FILE = "swift/megatron/arguments/megatron_args.py"
_ARGUMENTS = f"{_FILE}, MegatronArguments"
_RLHF = f"{_FILE}, RLHFMegatronArgumentsMixin"


def _stage_size(options: Options) -> int:
    """Ranks that hold one copy of the model."""
    names = ("tensor_model", "pipeline_model", "context")
    return math.prod(batch(options, f"{name}_parallel_size") for name in names)


def _copies(options: Options) -> int:
    """Data-parallel size; 0 where the sizes do not divide the ranks, which is told by itself."""
    ranks, size = world(options), _stage_size(options)
    return ranks // size if size > 0 and ranks % size == 0 else 0


def _step(options: Options) -> int:
    return batch(options, "micro_batch_size") * _copies(options)


def _uneven_batch(options: Options) -> bool:
    step = _step(options)
    return step > 0 and batch(options, "global_batch_size") % step != 0


def _figures(options: Options) -> Mapping[str, Any]:
    return {"step": _step(options), "copies": _copies(options)}


def _per_prompt(options: Options) -> int:
    return 1 if options["rlhf_type"] == "gkd" else batch(options, "num_generations")


def _generates(options: Options) -> bool:
    return options["rlhf_type"] in ("grpo", "gkd")


def _generated(options: Options) -> int:
    """Completions that are generated at once."""
    if value(options, "generation_batch_size") is not None:
        return batch(options, "generation_batch_size")
    return batch(options, "global_batch_size") * batch(options, "steps_per_generation", 1)


def _uneven_generation(options: Options) -> bool:
    if not _generates(options) or options["generation_batch_size"] is None:
        return False
    whole, size = _generated(options), batch(options, "global_batch_size")
    if options["steps_per_generation"] is not None:
        return whole != size * batch(options, "steps_per_generation")
    return whole % size != 0


def _uneven_groups(options: Options) -> bool:
    generations = _per_prompt(options) if _generates(options) else 1
    return generations > 1 and _generated(options) % generations != 0


def _prompts(options: Options) -> int:
    return _generated(options) // _per_prompt(options)


def _uneven_prompts(options: Options) -> bool:
    if not _generates(options) or _uneven_groups(options) or _uneven_batch(options):
        return False
    step = _step(options)
    return step > 0 and _prompts(options) % step != 0


def _figures_of_prompts(options: Options) -> Mapping[str, Any]:
    return {"prompts": _prompts(options), "per_prompt": _per_prompt(options), **_figures(options)}


def _layout_stages(options: Options) -> int:
    """Stages of a layout such as ``Et*3|(tt|)*29,m|L``."""
    layout = str(options["pipeline_model_parallel_layout"]).replace(",", "")
    for repeated in (r"\(([^)]+)\)\*(\d+)", r"(.)\*(\d+)"):
        layout = re.sub(repeated, lambda found: found.group(1) * int(found.group(2)), layout)
    return layout.count("|") + 1


def _uneven_layout(options: Options) -> bool:
    if options["pipeline_model_parallel_layout"] is None:
        return False
    return _layout_stages(options) % batch(options, "pipeline_model_parallel_size") != 0


_EDGES = ("decoder_first_pipeline_num_layers", "decoder_last_pipeline_num_layers")


def _stages_of_one(options: Options) -> bool:
    single = options["pipeline_model_parallel_size"] == 1
    return single and any(options[name] is not None for name in _EDGES)


def _overlaps_unsplit(options: Options) -> bool:
    if not options["tp_comm_overlap"]:
        return False
    return not options["sequence_parallel"] or bool(options["tensor_model_parallel_size"] <= 1)


def _frozen_share(options: Options) -> bool:
    is_part = 0 < options["freeze_parameters_ratio"] < 1
    return is_part and bool(options["pipeline_model_parallel_size"] > 1)


REFUSALS: tuple[Refusal, ...] = (
    Refusal(
        "megatron-batch",
        f"{_ARGUMENTS}._init_distributed",
        ("global_batch_size", "micro_batch_size"),
        _uneven_batch,
        Text("global_batch_size 设为 {step} 的倍数", "make global_batch_size a multiple of {step}"),
        Text(
            "micro_batch_size {micro_batch_size} × 数据并行 {copies} = {step}，"
            "不能整除 {global_batch_size}",
            "micro_batch_size {micro_batch_size} x {copies} data-parallel ranks is {step}, which "
            "does not divide {global_batch_size}",
        ),
        figures=_figures,
        since="4.0.4",
        groups=MEGATRON,
    ),
    Refusal(
        "megatron-generation-batch",
        f"{_RLHF}.resolve_generation_batch_size",
        ("generation_batch_size", "steps_per_generation"),
        _uneven_generation,
        Text(
            "generation_batch_size 设为 global_batch_size × steps_per_generation",
            "write generation_batch_size=global_batch_size x steps_per_generation",
        ),
        Text(
            "一步有 {global_batch_size} 个样本，不能得到 {generation_batch_size}",
            "steps of {global_batch_size} samples do not make {generation_batch_size}",
        ),
        since="4.2.3",
        groups=MEGATRON_RLHF,
    ),
    Refusal(
        "megatron-no-generation-step",
        f"{_RLHF}.resolve_generation_batch_size",
        ("steps_per_generation",),
        lambda options: (
            _generates(options)
            and options["generation_batch_size"] is None
            and options["steps_per_generation"] <= 0
        ),
        Text("steps_per_generation 设为 1 或更大", "give steps_per_generation 1 or more"),
        Text("{steps_per_generation} 步不生成", "{steps_per_generation} steps generate nothing"),
        since="4.2.3",
        groups=MEGATRON_RLHF,
    ),
    Refusal(
        "megatron-uneven-groups",
        f"{_RLHF}.resolve_generation_batch_size",
        ("num_generations", "global_batch_size"),
        _uneven_groups,
        Text(
            "让 global_batch_size × steps_per_generation 是 num_generations 的倍数",
            "make global_batch_size x steps_per_generation a multiple of num_generations",
        ),
        Text(
            "{whole} 个回答不能分成每组 {num_generations} 个",
            "{whole} completions do not divide into groups of {num_generations}",
        ),
        figures=lambda options: {"whole": _generated(options)},
        since="4.2.3",
        groups=MEGATRON_RLHF,
    ),
    Refusal(
        "megatron-uneven-prompts",
        f"{_RLHF}.validate_batch_dp_alignment",
        ("num_generations", "global_batch_size", "micro_batch_size"),
        _uneven_prompts,
        Text(
            "让 global_batch_size × steps_per_generation 是 {step} × {per_prompt} 的倍数",
            "make global_batch_size x steps_per_generation a multiple of {step} x {per_prompt}",
        ),
        Text(
            "{prompts} 个问题不能平分给数据并行 {copies} 与 micro_batch_size {micro_batch_size}",
            "{prompts} prompts do not divide among {copies} data-parallel ranks with "
            "micro_batch_size {micro_batch_size}",
        ),
        figures=_figures_of_prompts,
        since="4.2.3",
        groups=MEGATRON_RLHF,
    ),
    Refusal(
        "megatron-layout",
        f"{_ARGUMENTS}._init_vpp_size",
        ("pipeline_model_parallel_layout", "pipeline_model_parallel_size"),
        _uneven_layout,
        Text(
            "让 pipeline_model_parallel_layout 的段数是 {pipeline_model_parallel_size} 的倍数",
            "make the stages of pipeline_model_parallel_layout a multiple of "
            "{pipeline_model_parallel_size}",
        ),
        Text("现有 {stages} 段", "it has {stages}"),
        figures=lambda options: {"stages": _layout_stages(options)},
        since="4.0.4",
        groups=MEGATRON,
    ),
    Refusal(
        "megatron-edges-of-one-stage",
        f"{_ARGUMENTS}.__post_init__",
        (*_EDGES, "pipeline_model_parallel_size"),
        _stages_of_one,
        Text(
            "pipeline_model_parallel_size 设为大于 1，或去掉首末段层数",
            "give pipeline_model_parallel_size more than 1, or drop the layers of first and last",
        ),
        Text("只有一段流水线", "there is one pipeline stage"),
        since="3.11.3",
        groups=MEGATRON,
    ),
    Refusal(
        "megatron-overlap-without-sequences",
        f"{_ARGUMENTS}.__post_init__",
        ("tp_comm_overlap", "sequence_parallel"),
        _overlaps_unsplit,
        Text(
            "设置 sequence_parallel=true 且 tensor_model_parallel_size 大于 1",
            "write sequence_parallel=true with tensor_model_parallel_size above 1",
        ),
        Text("tp_comm_overlap 依赖序列并行", "tp_comm_overlap overlaps its communication"),
        write=off("tp_comm_overlap"),
        since="4.0.4",
        groups=MEGATRON,
    ),
    Refusal(
        "megatron-frozen-share",
        f"{_FILE}, MegatronTunerMixin.__post_init__",
        ("freeze_parameters_ratio", "pipeline_model_parallel_size"),
        _frozen_share,
        drop("freeze_parameters_ratio"),
        Text("流水线并行不支持", "pipeline stages do not take a share"),
        since="3.11.3",
        groups=MEGATRON,
    ),
)
