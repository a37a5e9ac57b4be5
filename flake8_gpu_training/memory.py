"""The memory model: what one GPU holds during a training step, in GiB.

An estimate from published formulas, not a measurement: model states after "ZeRO: Memory
Optimizations Toward Training Trillion Parameter Models" (Rajbhandari et al., 2020),
activations after "Reducing Activation Recomputation in Large Transformer Models"
(Korthikanti et al., 2022). It is given with a range, since the length of real samples,
the allocator's fragmentation and a framework's own buffers are not in the files.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Optional

from flake8_gpu_training.models import language_model
from flake8_gpu_training.runs.model import Model, Run, RunKind
from flake8_gpu_training.weights import weights_type

GIB = 1024**3

# Bytes per trained parameter: weights, gradients, optimizer states (with an FP32 master
# copy where there is one).
_MIXED_MASTER = (2.0, 2.0, 12.0)
_AUTOCAST = (4.0, 4.0, 8.0)
_PURE_16_BIT = (2.0, 2.0, 4.0)
_MEGATRON = (2.0, 4.0, 12.0)  # accumulates gradients in FP32

# Bytes per trained parameter of optimizer states that are not Adam's two FP32 moments.
_LEAN_OPTIMIZERS: Mapping[str, float] = MappingProxyType(
    {
        "adamw_8bit": 2.0,
        "adamw_bnb_8bit": 2.0,
        "paged_adamw_8bit": 2.0,
        "lion_8bit": 1.0,
        "paged_lion_8bit": 1.0,
        "adafactor": 0.1,
        "sgd": 4.0,
        "lomo": 0.0,
        "adalomo": 0.1,
    }
)
_FUSED_ATTENTION = frozenset(
    {
        "flash_attention_2",
        "flash_attention_3",
        "flash_attention_4",
        "sdpa",
        "flex_attention",
        "xformers",
        "auto",
    }
)
_PREFERENCE = frozenset({"dpo", "orpo", "simpo", "cpo", "rm", "kto"})
_REFERENCE = frozenset({"dpo", "kto", "grpo", "ppo"})
# Samples that the run generates end where the longest of a group does, most at the limit.
_GENERATED = frozenset({"grpo", "rloo"})
_CONTEXT_GIB = 0.8  # CUDA context, cuBLAS and NCCL workspaces
_FRAGMENTATION = 0.04
_HEADROOM = 1.2  # high end: fragmentation and a framework's own buffers
# The longest sample of a batch makes the peak; an assumption about instruction data, whose
# longest samples are below most limits: anything from 1536 to 3072 fits measured runs alike.
_USUAL_LENGTH = 1536
# Weights that come quantized under a name of their own: bits of a weight.
_QUANTIZED_NAME = re.compile(r"(?i)[-_](?:awq|gptq-int4|int4|4bit|(gptq-int8|int8|8bit|fp8))$")
# DeepSpeed's default buckets and live parameters (deepspeed/runtime/zero/config.py):
# reduce and all-gather buckets of 5e8 elements, stage3_max_live_parameters 1e9, 2 bytes each.
_ZERO_BUCKET = 5e8
_ZERO3_LIVE = 1e9


@dataclass(frozen=True)
class MemoryEstimate:
    """GiB per GPU: ``parts`` add up to ``total``; the truth is expected in low..high.

    ``parts`` are of samples of ``sample_length`` tokens, ``full_parts`` of samples as long as
    ``max_length`` allows (None: no limit is set). ``offloaded``: parts kept in CPU memory.
    ``fits``: whether it fits the GPU's memory; None when that is not known or too close.
    """

    parts: Mapping[str, float]
    low: float
    high: float
    fits: Optional[bool] = None
    sample_length: int = 0
    max_length: Optional[int] = None
    full_parts: Optional[Mapping[str, float]] = None
    offloaded: tuple[str, ...] = ()

    @property
    def total(self) -> float:
        """Sum of the parts."""
        return sum(self.parts.values())

    @property
    def full_total(self) -> Optional[float]:
        """Sum of the parts when samples are as long as allowed; None without a limit."""
        return None if self.full_parts is None else sum(self.full_parts.values())


@dataclass(frozen=True)
class _Shape:
    """A model whose shape is known in full."""

    parameters: int
    layers: int
    hidden: int
    heads: int
    kv_heads: int
    vocabulary: int
    intermediate: Optional[int] = None


def estimate(run: Run) -> Optional[MemoryEstimate]:
    """The estimate for ``run``, or None when its model or batch is not known."""
    shape = _shape(run.model)
    micro_batch = run.value("micro_batch_size")
    length = run.value("max_length")
    if run.kind is not RunKind.TRAIN or shape is None or not run.practice("max_length").known:
        return None
    if run.value("rollout_engine") in ("vllm", "sglang"):
        return None  # how much an engine in the same process takes is its own setting
    limited = isinstance(length, int) and not isinstance(length, bool)
    if not isinstance(micro_batch, int) or not (limited or length is None):
        return None
    ranks = _ranks(run)
    if ranks is None or micro_batch < 1 or (limited and length < 1):
        return None
    if not limited and _fills_samples(run):
        return None  # packed up to a length that is not known
    longest = length if limited else _USUAL_LENGTH
    is_full = _fills_samples(run) or run.value("algorithm") in _GENERATED
    sample = longest if is_full else min(longest, _USUAL_LENGTH)
    return _estimate(run, shape, ranks, micro_batch, sample, longest, limited)


def missing(run: Run) -> tuple[str, ...]:
    """What an estimate of a training ``run`` lacks, by name.

    ``parameters``, ``shape``, ``micro_batch_size``, ``max_length``, ``ranks``; or ``rollout``,
    an engine in the same process whose share of the memory is its own setting; or ``kind``,
    a model of which the formulas say nothing.
    """
    if run.value("rollout_engine") in ("vllm", "sglang"):
        return ("rollout",)
    if run.model.kind in _NO_DECODERS:
        return ("kind",)
    lacking = []
    if _shape(run.model) is None:
        lacking.append("shape" if run.model.parameters else "parameters")
    if not _is_size(run.value("micro_batch_size")):
        lacking.append("micro_batch_size")
    length = run.practice("max_length")
    limitless = length.known and length.value is None and not _fills_samples(run)
    if not limitless and not (length.known and _is_size(length.value)):
        lacking.append("max_length")
    if _ranks(run) is None:
        lacking.append("ranks")
    return tuple(lacking)


def _is_size(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 1


def _estimate(
    run: Run,
    shape: _Shape,
    ranks: int,
    micro_batch: int,
    sample: int,
    longest: int,
    limited: bool,
) -> MemoryEstimate:
    states, offloaded = _states(run, shape, ranks)
    step = _step_gib(run, shape, ranks)
    fixed = sum(states.values()) + _CONTEXT_GIB + _buffers_gib(run, shape)

    def parts_of(tokens: float) -> Mapping[str, float]:
        parts = {**states, **_activations(run, shape, tokens)}
        # Activations are gone when the optimizer steps, so only the larger of the two counts.
        spare = max(0.0, step - parts["activations"] - parts["logits"])
        slack = _FRAGMENTATION * sum(parts.values())
        parts["overhead"] = fixed - sum(states.values()) + spare + slack
        return MappingProxyType(parts)

    usual, full = (_tokens(run, micro_batch, length) for length in (sample, longest))
    shortest = usual * (0.5 if _fills_samples(run) else 0.25)
    least = max(step, sum(_activations(run, shape, shortest).values()))
    most = max(step, sum(_activations(run, shape, full).values()))
    low, high = fixed + 0.9 * least, (fixed + most) * _HEADROOM
    return MemoryEstimate(
        parts_of(usual),
        low,
        high,
        _fits(run, low, high),
        sample,
        longest if limited else None,
        parts_of(full) if limited else None,
        offloaded,
    )


def model_states(
    parameters: float,
    ranks: int,
    stage: int,
    trained: Optional[float] = None,
    frozen_bytes: float = 2.0,
) -> float:
    """GiB of weights, gradients and Adam states per GPU under ZeRO ``stage``.

    ``trained``: parameters with gradients (all of them when None); 16 bytes each, and
    ``frozen_bytes`` for a frozen one.
    """
    learned = parameters if trained is None else trained
    each = 2.0 if trained is None else frozen_bytes
    weights = each * parameters / (ranks if stage >= 3 else 1)
    gradients = 2 * learned / (ranks if stage >= 2 else 1)
    optimizer = 12 * learned / (ranks if stage >= 1 else 1)
    return (weights + gradients + optimizer) / GIB


def lora_parameters(model: Model, rank: int) -> Optional[float]:
    """Parameters of LoRA adapters of ``rank`` on every linear layer of ``model``."""
    shape = _shape(model)
    return None if shape is None else _adapter_parameters(shape, rank)


# The formulas are those of decoders; these have others.
_NO_DECODERS = ("video", "image", "vision", "audio", "encoder", "encoder-decoder")


def _shape(model: Model) -> Optional[_Shape]:
    if model.kind in _NO_DECODERS:
        return None
    if model.name and not model.layers:
        language = language_model(model.name)
        if language is not None:
            sizes = [size for size in (model.parameters, language.parameters) if size]
            model = replace(language, parameters=max(sizes, default=None))
    if not model.parameters or not model.layers or not model.hidden_size or not model.heads:
        return None
    return _Shape(
        model.parameters,
        model.layers,
        model.hidden_size,
        model.heads,
        model.kv_heads or model.heads,
        model.vocabulary or 0,
        model.intermediate_size,
    )


def _ranks(run: Run) -> Optional[int]:
    """Ranks of the run; None when a launcher's number is unknown and matters.

    Without sharding every rank holds the same, so their number does not.
    """
    world = run.launcher.world_size
    if world is not None:
        return max(1, world)
    if run.hardware.gpus is not None:
        return max(1, run.hardware.gpus)
    return 1 if run.launcher.name == "python" or _stage(run) == 0 else None


def _degree(run: Run, practice: str) -> int:
    value = run.value(practice, 1)
    return value if isinstance(value, int) and value > 0 else 1


def _adapter_parameters(shape: _Shape, rank: int) -> float:
    head = shape.hidden / shape.heads
    key = head * shape.kv_heads
    attention = 4 * shape.hidden + 2 * (shape.hidden + key)
    feed_forward = 3 * (shape.hidden + _intermediate(shape))
    return rank * shape.layers * (attention + feed_forward)


def _intermediate(shape: _Shape, active: Optional[int] = None) -> float:
    """Width of a gated feed-forward block; from what a layer has left for it if not known.

    ``active``: parameters that a token of a mixture takes, for the width of its experts together.
    """
    if shape.intermediate is not None and active is None:
        return shape.intermediate
    key = shape.hidden / shape.heads * shape.kv_heads
    attention = 2 * shape.hidden**2 + 2 * shape.hidden * key
    body = (active or shape.parameters) - 2 * shape.vocabulary * shape.hidden
    return max(shape.hidden, (body / shape.layers - attention) / (3 * shape.hidden))


def _states(run: Run, shape: _Shape, ranks: int) -> tuple[dict[str, float], tuple[str, ...]]:
    """GiB of the model states on one GPU, and the names of those kept in CPU memory."""
    split = _degree(run, "tensor_parallel") * _degree(run, "pipeline_parallel")
    parameters, data_ranks = _held(run, shape, ranks)
    tuning = run.value("tuning", "full")
    trained = parameters
    per_weight, per_gradient, per_state = _bytes_per_parameter(run)
    if tuning not in ("full", "pt"):
        adapters = _adapter_parameters(shape, run.value("lora_rank", 8) or 8)
        trained = (adapters + _saved_modules(run, shape)) / split
        per_gradient, per_state = 4.0, 8.0
        frozen = parameters * _frozen_bytes(run)
        weights = frozen + 4.0 * trained
    else:
        weights = per_weight * parameters
        if run.value("algorithm") in _REFERENCE:
            weights += 2.0 * parameters
    per_state = _optimizer_bytes(run, per_state)
    stage = _stage(run)
    gradients, states = per_gradient * trained, per_state * trained
    sharded = {
        "weights": weights / (data_ranks if stage >= 3 else 1),
        "gradients": gradients / (data_ranks if stage >= 2 else 1),
        "optimizer": states / (data_ranks if stage >= 1 else 1),
    }
    offloaded = []
    if run.value("offload_optimizer") in ("cpu", "nvme") or run.value("fsdp_offload") is True:
        offloaded.append("optimizer")
    if run.value("offload_param") in ("cpu", "nvme") or run.value("fsdp_offload") is True:
        offloaded.append("weights")
    sharded.update(dict.fromkeys(offloaded, 0.0))
    if ranks == 1 and run.hardware.gpus and _spreads_layers(run):
        sharded = {name: size / run.hardware.gpus for name, size in sharded.items()}
    return {name: size / GIB for name, size in sharded.items()}, tuple(offloaded)


def _spreads_layers(run: Run) -> bool:
    """Whether one process spreads the layers over its GPUs (``device_map="auto"``).

    ms-swift does so unless the run is distributed (swift/model/utils.py).
    """
    device_map = run.practice("device_map")
    if device_map.known:
        return bool(device_map.value == "auto")
    return run.framework == "swift" and run.value("megatron") is not True and _stage(run) == 0


def _saved_modules(run: Run, shape: _Shape) -> float:
    """Parameters trained in full beside the adapters: PEFT's ``modules_to_save``."""
    setting = run.settings.get("modules_to_save")
    if setting is None or not setting.known:
        return 0.0
    value = setting.value
    names = value.split() if isinstance(value, str) else value
    if not isinstance(names, (list, tuple)):
        return 0.0
    tables = {"embed_tokens", "lm_head", "word_embeddings", "output_layer", "wte"}
    return sum(str(name) in tables for name in names) * float(shape.vocabulary * shape.hidden)


def _held(run: Run, shape: _Shape, ranks: int) -> tuple[float, int]:
    """Parameters that one GPU holds before ZeRO, and over how many ranks ZeRO shards them.

    Experts are spread over the expert-parallel ranks, everything else over the
    tensor-parallel ones.
    """
    pipeline = _degree(run, "pipeline_parallel")
    tensor = _degree(run, "tensor_parallel")
    expert = _degree(run, "expert_parallel")
    if not run.model.is_moe or expert == 1:
        split = tensor * pipeline
        return shape.parameters / split, max(1, ranks // split)
    key = shape.hidden / shape.heads * shape.kv_heads
    attention = shape.layers * (2 * shape.hidden**2 + 2 * shape.hidden * key)
    dense = min(float(shape.parameters), attention + 2 * shape.vocabulary * shape.hidden)
    held = dense / (tensor * pipeline) + (shape.parameters - dense) / (expert * pipeline)
    return held, max(1, ranks // (expert * pipeline))


def _stage(run: Run) -> int:
    """The ZeRO stage, or the one an FSDP or distributed-optimizer set-up amounts to."""
    fsdp = {"full_shard": 3, "shard_grad_op": 2, "hybrid_shard": 3}.get(run.value("fsdp"), 0)
    stage = run.value("zero_stage", 0)
    distributed = 1 if run.value("megatron") is True else 0
    return max(fsdp, stage if isinstance(stage, int) else 0, distributed)


def _bytes_per_parameter(run: Run) -> tuple[float, float, float]:
    precision = run.value("precision", "bf16")
    if run.value("megatron") is True:
        return _MEGATRON
    if precision == "fp32":
        return _AUTOCAST
    if _stage(run) >= 1:
        return _MIXED_MASTER
    if precision == "pure-bf16" or (run.framework == "swift" and precision == "bf16"):
        return _PURE_16_BIT  # ms-swift loads the weights in torch_dtype, without a master copy
    return _PURE_16_BIT if weights_type(run) in ("bf16", "fp16") else _AUTOCAST


def _frozen_bytes(run: Run) -> float:
    """Bytes of a frozen weight: 2, or less when quantized (scales and embeddings included)."""
    bits = run.value("quantization_bits")
    named = _QUANTIZED_NAME.search(run.model.name or "")
    if bits is None and named is not None:
        bits = 8 if named.group(1) else 4
    if isinstance(bits, int) and 0 < bits < 16:
        return bits / 8 * 1.06 + 0.12
    return 4.0 if run.value("precision") == "fp32" else 2.0


def _optimizer_bytes(run: Run, adam: float) -> float:
    name = str(run.value("optimizer", "adamw"))
    if name.startswith(("galore", "apollo", "q-galore")):
        return 0.5
    if name == "muon":
        return adam / 2
    return _LEAN_OPTIMIZERS.get(name, adam)


def _fills_samples(run: Run) -> bool:
    """Whether every sample is filled up to the maximal length."""
    return run.value("packing") is True


def _buffers_gib(run: Run, shape: _Shape) -> float:
    """Communication buffers of ZeRO, in GiB."""
    stage = run.value("zero_stage", 0)
    full = run.value("tuning", "full") == "full"
    if not isinstance(stage, int) or stage < 2 or (stage == 2 and not full):
        return 0.0
    buckets = 2 * min(_ZERO_BUCKET, shape.parameters)
    live = min(_ZERO3_LIVE, shape.parameters) if stage == 3 else 0.0
    return 2.0 * (buckets + live) / GIB


def _step_gib(run: Run, shape: _Shape, ranks: int) -> float:
    """What the optimizer step needs for a moment, in GiB."""
    if run.value("tuning", "full") != "full" or run.value("megatron") is True:
        return 0.0
    stage = _stage(run)
    if stage == 0:
        # torch's foreach AdamW holds one more copy of the parameters while it steps.
        name = str(run.value("optimizer", "adamw_torch"))
        copied = name in ("adamw", "adamw_torch")
        return _bytes_per_parameter(run)[0] * shape.parameters / GIB if copied else 0.0
    if run.value("offload_optimizer") in ("cpu", "nvme") or not run.value("zero_stage", 0):
        return 0.0
    # ZeRO casts its share of the gradients to FP32; stage 3 by sub-groups of 1e9.
    share = shape.parameters / ranks
    return 4.0 * (min(share, _ZERO3_LIVE) if stage == 3 else share) / GIB


def _tokens(run: Run, micro_batch: int, length: int) -> float:
    # A preference sample is two sequences; packing fits both into the length.
    paired = run.value("algorithm") in _PREFERENCE and not _fills_samples(run)
    pairs = 2 if paired else 1
    return micro_batch * length * pairs / _degree(run, "sequence_parallel")


def _activations(run: Run, shape: _Shape, tokens: float) -> dict[str, float]:
    """Activations and logits of one micro-batch of ``tokens``, on one GPU."""
    tensor = _degree(run, "tensor_parallel")
    per_layer = _layer_bytes(run, shape) * tokens
    if run.value("attention") not in _FUSED_ATTENTION:
        length = min(tokens, run.value("max_length", tokens))
        per_layer += 5.0 * shape.heads * length * tokens
    if run.value("gradient_checkpointing", False) is True:
        held = 2.0 * tokens * shape.hidden * shape.layers + per_layer
    else:
        held = per_layer * shape.layers
    # BF16 logits, their FP32 copy, its log-softmax and gradient; a fused loss keeps none.
    fused = run.value("liger_kernel") is True or run.value("unsloth") is True
    judged = tokens * _answered(run)
    logits = 0.0 if fused or not _predicts_tokens(run) else judged * shape.vocabulary * 14.0
    return {"activations": held / tensor / GIB, "logits": logits / tensor / GIB}


def _answered(run: Run) -> float:
    """Share of the tokens that have logits: those of the completion, where it is generated
    (trl trainer/grpo_trainer.py: logits_to_keep)."""
    answer, length = run.settings.get("max_completion_length"), run.value("max_length")
    if run.value("algorithm") not in _GENERATED or answer is None or not _is_size(length):
        return 1.0
    return min(1.0, answer.value / length) if _is_size(answer.value) else 1.0


def _layer_bytes(run: Run, shape: _Shape) -> float:
    """Bytes that a layer keeps of a token for its backward pass, attention's scores aside.

    For a gated block, in 16 bits: both norms (an FP32 copy of the input, and the normalized
    one), their outputs, query and attention's output are 20 hidden sizes, key and value 4 of
    their width, gate, its activation, up and their product 8 of the feed-forward's. Fused
    kernels (Liger, Unsloth, Megatron's) keep inputs and compute the rest again. Counted
    with ``torch.autograd.graph.saved_tensors_hooks`` on Transformers 5.24's Llama, Qwen2 and
    PEFT 0.21; fused ones after liger-kernel 0.8.5 (ops/rms_norm.py, ops/swiglu.py).
    """
    active = run.model.active_parameters if run.model.is_moe else None
    hidden, wide = shape.hidden, _intermediate(shape, active)
    key = shape.hidden / shape.heads * shape.kv_heads
    fused = any(run.value(name) is True for name in ("liger_kernel", "unsloth", "megatron"))
    if fused:
        kept = 12.0 * hidden + 4.0 * key + 6.0 * wide
    elif run.value("precision") == "fp32":
        return 32.0 * hidden + 8.0 * key + 16.0 * wide
    else:
        kept = 20.0 * hidden + 4.0 * key + 8.0 * wide
    if run.value("tuning", "full") not in ("full", "pt"):
        # Dropout before an adapter keeps its result and a mask of bytes, of every linear's input.
        dropped = 3.0 * (6.0 * hidden + wide) if _drops_out(run) else 0.0
        return kept + 4.0 * hidden + dropped
    # Autocast casts FP32 activations and keeps both.
    return kept + (10.0 * hidden if _bytes_per_parameter(run) == _AUTOCAST else 0.0)


def _drops_out(run: Run) -> bool:
    """Whether adapters see dropped-out inputs: ms-swift's default is 0.05, PEFT's 0."""
    setting = run.settings.get("lora_dropout")
    if setting is None:
        return run.framework == "swift" and run.value("megatron") is not True
    return isinstance(setting.value, float) and setting.value > 0


def _predicts_tokens(run: Run) -> bool:
    """Whether the head is the vocabulary's; embeddings, classes and rewards need none."""
    task = run.settings.get("task_type")
    headless = task is not None and task.value in ("embedding", "seq_cls", "reranker")
    return not headless and run.value("algorithm") != "rm"


def _fits(run: Run, low: float, high: float) -> Optional[bool]:
    memory = run.hardware.memory_gib
    if memory is None or math.isnan(memory):
        return None
    if high <= memory:
        return True
    return False if low > memory else None
