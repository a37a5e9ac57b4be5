"""How large a run is: its GPUs, its ranks, its model, and whether the states fit."""

from __future__ import annotations

import re
from pathlib import PurePosixPath
from typing import Any, Callable, Optional

from flake8_gpu_training.facts import known
from flake8_gpu_training.frameworks import reading
from flake8_gpu_training.frameworks.at_hand import version_at_hand
from flake8_gpu_training.hardware import GPUS, Gpu, architecture_named, of_generation
from flake8_gpu_training.language import Text
from flake8_gpu_training.runs.model import Run, once_per_run
from flake8_gpu_training.weights import weights_type

GIB = 1024**3
# Judged by where nothing is known about the GPUs: the largest that is common.
ASSUMED_MEMORY_GIB = 80.0
# Bytes per trained parameter under mixed precision with Adam (Rajbhandari et al., 2020), and
# with all in 16 bits (weights, gradients and both moments).
_MIXED_ADAM = 16
_PURE_16_BIT = 8
# Optimizers whose states are smaller by far, in ways that vary: nothing is claimed of them.
_LEAN = ("galore", "badam", "apollo", "bit", "adafactor", "lomo", "muon", "mini", "sgd", "came")
# How the names of quantized checkpoints tell their width.
_FOUR_BITS = re.compile(r"(?i)int4|4-?bit|awq|gptq(?!-int8)|nf4|mxfp4")
_EIGHT_BITS = re.compile(r"(?i)int8|8-?bit|fp8|w8a")
_TINY_MODEL = re.compile(r"(?i)(?:^|[/_-])(?:tiny|dummy|debug)(?:[/_-]|$)|hf-internal-testing")
_FEW_STEPS = 10


def number(run: Run, practice: str) -> Optional[float]:
    """A practice that is a known number, or None."""
    return reading.number(run.value(practice))


def text(run: Run, practice: str) -> Optional[str]:
    """A practice that is a known word, in lower case, or None."""
    value = run.value(practice)
    return value.lower() if isinstance(value, str) else None


def nodes(run: Run) -> Optional[int]:
    """Nodes of the run, or None."""
    value = run.launcher.nodes.value
    if isinstance(value, int):
        return value
    return run.hardware.nodes


def ranks(run: Run) -> Optional[int]:
    """Processes that train together, or None when the launcher does not tell."""
    return run.launcher.world_size


def gpus(run: Run) -> Optional[int]:
    """GPUs that the run uses, or None: one a rank, else what the job asks for."""
    return ranks(run) or run.hardware.gpus


def data_ranks(run: Run) -> Optional[int]:
    """Ranks that train on samples of their own: those of one model together are one."""
    count = ranks(run)
    if count is None:
        return None
    for practice in ("tensor_parallel", "pipeline_parallel", "sequence_parallel"):
        count //= int(number(run, practice) or 1) or 1
    return max(count, 1)


def global_batch(run: Run) -> Optional[int]:
    """Samples of an optimizer step over all ranks, or None."""
    given = _setting(run, "global_batch_size")
    if isinstance(given, int) and given > 0:
        return given
    micro, count = number(run, "micro_batch_size"), data_ranks(run)
    accumulated = number(run, "gradient_accumulation_steps")
    if micro is None or count is None or accumulated is None:
        return None
    return int(micro * accumulated * count)


def total_steps(run: Run) -> Optional[int]:
    """Optimizer steps of the whole run: as limited, else by samples, epochs and batch."""
    for name in ("max_steps", "train_iters", "max_train_steps", "total_training_steps"):
        steps = _setting(run, name)
        if isinstance(steps, (int, float)) and not isinstance(steps, bool) and steps > 0:
            return int(steps)
    samples, batch = number(run, "dataset_samples"), global_batch(run)
    epochs = _setting(run, "num_train_epochs")
    is_sized = isinstance(epochs, (int, float)) and run.value("packing") is not True
    if samples is None or batch is None or not is_sized:
        return None
    return int(epochs * samples / max(batch, 1))


def gpu(run: Run) -> Optional[Gpu]:
    """The kind of GPU, or None."""
    return GPUS.get(run.hardware.gpu or "")


def architecture(run: Run) -> Optional[str]:
    """The generation of the GPU, also where several kinds of it leave the memory open."""
    kind = gpu(run)
    if kind is not None:
        return kind.architecture
    return run.hardware.architecture or architecture_named(run.hardware.gpu or "")


def unfamiliar(run: Run) -> Text:
    """That the run's model is not known, or is none of which more than the name is known."""
    name = run.model.name
    if not name:
        return Text("模型未知", "the model is not known")
    return Text(f"未收录模型 {name}", f"{name} is none of the models known here")


def gpu_text(run: Run) -> str:
    """How to call the run's GPU: its name, else its generation."""
    return run.hardware.gpu or architecture(run) or "GPU"


def gpu_said(run: Run) -> Text:
    """The run's GPU, and that only a notebook's metadata name it, where they do."""
    name, place = gpu_text(run), run.hardware.location
    if not run.hardware.weak or place is None or not place.path.endswith(".ipynb"):
        return Text(name, name)
    return Text(f"{name}（notebook 元数据 {place}）", f"{name} (notebook metadata, {place})")


def _agrees(run: Run, feature: Callable[[Gpu], object]) -> Any:
    """What the run's GPU, or all of its generation, has of a feature; None when unknown."""
    kind, generation = gpu(run), architecture(run)
    kinds = (kind,) if kind is not None else of_generation(generation or "")
    found = {feature(one) for one in kinds}
    return found.pop() if len(found) == 1 else None


def has_bf16(run: Run) -> Optional[bool]:
    """Whether the GPU's tensor cores take BF16; None when the GPU is not known."""
    return False if architecture(run) == "Pascal" else _agrees(run, lambda one: one.bf16)


def has_fp8(run: Run) -> Optional[bool]:
    """Whether the GPU's tensor cores take FP8; None when the GPU is not known.

    Of Ampere no GPU does, of Hopper, Ada and Blackwell all do.
    """
    return False if architecture(run) == "Pascal" else _agrees(run, lambda one: one.fp8)


def memory_gib(run: Run) -> Optional[float]:
    """Memory of one GPU, or None."""
    kind = gpu(run)
    return run.hardware.memory_gib or (kind.memory_gib if kind else None)


def tunes_all(run: Run) -> Optional[bool]:
    """Whether all weights are trained; None when it cannot be told."""
    tuning = text(run, "tuning")
    return None if tuning is None else tuning == "full"


def states_gib(run: Run, share: int = 1, sharded: bool = False) -> Optional[float]:
    """GiB of weights, gradients and optimizer states of one rank, split ``share`` ways.

    ``sharded``: as ZeRO and FSDP keep them, with float32 masters. Adapters' own states are
    left out: they are small beside the frozen weights.
    """
    parameters, full = run.model.parameters, tunes_all(run)
    if parameters is None or full is None:
        return None
    if full:
        name = text(run, "optimizer") or ""
        if any(word in name for word in _LEAN):
            return None
        each = _bytes_of_states(run, parameters, sharded or share > 1)
        return None if each is None else parameters * each / share / GIB
    bits = number(run, "quantization_bits") or _bits_named(run.model.name or "")
    return parameters * bits / 8 / share / GIB


def _bytes_of_states(run: Run, parameters: int, sharded: bool) -> Optional[int]:
    """Bytes per trained parameter; None where the type of the weights would decide whether
    they fit a GPU, and it is not known."""
    weights = weights_type(run)
    if run.value("precision") == "pure-bf16":
        return _PURE_16_BIT
    if sharded or weights == "fp32":
        return _MIXED_ADAM
    if weights in ("bf16", "fp16"):
        return _PURE_16_BIT
    room = (memory_gib(run) or ASSUMED_MEMORY_GIB) * GIB
    if parameters * _PURE_16_BIT > room:
        return _PURE_16_BIT
    return _MIXED_ADAM if parameters * _MIXED_ADAM <= room else None


def _bits_named(model: str) -> int:
    if _EIGHT_BITS.search(model):
        return 8
    return 4 if _FOUR_BITS.search(model) else 16


def outgrows_gpu(run: Run) -> Optional[bool]:
    """Whether unsharded model states exceed one GPU; None when it cannot be told."""
    states = states_gib(run)
    if states is None:
        return None
    return states > (memory_gib(run) or ASSUMED_MEMORY_GIB)


SMALL_MEMORY_GIB = 24.0
"""What a GPU that is not named has at least, where something rests on a model fitting it."""


def fits_each(run: Run) -> bool:
    """Whether unsharded model states surely leave each GPU a fifth of its memory."""
    states = states_gib(run)
    return states is not None and states <= 0.8 * (memory_gib(run) or SMALL_MEMORY_GIB)


_OF_NPUS = re.compile(r"(?i)(?:^|/)(?:ascend|npu)|[_.-](?:ascend|npus?)(?=[_./-]|$)")
"""A folder or file for NPUs: ``examples/ascend/``, ``lora_sft_bnb_npu.yaml``."""


def is_cuda(run: Run) -> bool:
    """Whether the run is for NVIDIA GPUs, which it is unless something says otherwise."""
    if (architecture(run) or "").startswith(("Ascend", "CDNA")):
        return False
    if any(name.startswith(("ASCEND_", "HCCL_", "NPU_")) for name in run.environment):
        return False
    if _OF_NPUS.search(f"{run.location.path}/{run.place.location.path}"):
        return False
    if run.setting("resources_per_worker.NPU") is not None:  # Ray's name of them
        return False
    return not any(
        found.module.partition(".")[0] in ("torch_npu", "torch_xla")
        for program in run.python
        for found in program.imports
    )


def compiles_for_gpu(run: Run) -> bool:
    """Whether PyTorch's own compiler and fused optimizers serve the run's device: CUDA or ROCm."""
    return is_cuda(run) or (architecture(run) or "").startswith("CDNA")


def has_flash_kernel(run: Run) -> bool:
    """Whether FlashAttention exists for the run's GPU; assumed when that is not known."""
    if architecture(run) == "Pascal":
        return False
    return _agrees(run, lambda one: one.flash_attention > 0) is not False


def takes_flash_attention(run: Run, version: int) -> Optional[bool]:
    """Whether this generation of FlashAttention runs on the GPU; None when that is not certain.

    Version 2 takes Ampere and newer. Version 3 is made for Hopper; builds for the A100 (8.0)
    exist, for other GPUs not. Transformers takes version 4 from Hopper on.
    """
    generation = architecture(run)
    if generation is None or not is_cuda(run):
        return None
    if generation in ("Pascal", "Volta", "Turing"):
        return False
    if version == 2 or generation == "Hopper":
        return True
    if version == 3:
        a100 = _agrees(run, lambda one: one.capability == (8, 0))
        return False if a100 is False else None
    return False if generation in ("Ampere", "Ada") else None


# Code of their own on the hub, or in Transformers, without a FlashAttention class, or (gpt-oss,
# whose attention sinks only another kernel has; bidirectional masks over image tokens) with
# one that refuses FlashAttention-2: transformers 5.24, models/*/modeling_*.py,
# _supports_flash_attn and _compatible_flash_implementations.
_NO_FLASH_CODE = re.compile(
    r"(?i)chatglm|baichuan|(?:^|/)qwen-(?!(?:1\.5|[23])\b)|bloom|(?:^|/)mpt-|"
    r"(?:^|/)(?:m|flan-|long-)?t5|codegen|xglm-|(?:^|/)openai-gpt$|prophetnet|"
    r"(?:^|/)internlm-|janus|got-ocr.*-hf|deepseek-ocr|xlnet|gpt-oss|llama-?4-|"
    r"llama-3\.2-(?:11|90)b|paligemma|gemma-3-(?:4|12|27)b|gemma-4|diffusiongemma"
)


# transformers 5.24.0 modeling_codegen.py: _supports_flash_attn; not in 5.23.0.
_FLASH_SINCE_5_24 = re.compile(r"(?i)(?:^|/)codegen-")


def has_no_flash_code(run: Run) -> bool:
    """Whether the model's own code does not run with FlashAttention-2."""
    if _FLASH_SINCE_5_24.search(run.model.known_as) is not None:
        return version_at_hand(run, "transformers") < (5, 24)
    return _NO_FLASH_CODE.search(run.model.known_as) is not None


def is_ray(run: Run) -> bool:
    """Whether Ray starts the processes, so that the launcher shows only the driver."""
    return run.launcher.name == "ray" or any(
        run.setting(name) is not None for name in ("use_ray", "train.gpus", "colocate_groups")
    )


def spreads_layers(run: Run) -> bool:
    """Whether one process spreads the layers over several GPUs.

    ms-swift does so by itself when there are two visible GPUs or more for each process
    (utils/torch_utils.py, is_mp).
    """
    if text(run, "device_map") not in (None, "none"):
        return True
    if run.framework != "swift" or run.value("megatron") is True or is_ray(run):
        return False
    if ranks(run) == 1:
        return (run.hardware.gpus or 1) > 1
    processes, visible = run.launcher.processes.value, visible_gpus(run)
    return isinstance(processes, int) and visible is not None and visible >= 2 * processes


def visible_gpus(run: Run) -> Optional[int]:
    """GPUs that CUDA_VISIBLE_DEVICES leaves visible, where it lists them."""
    setting = run.environment.get("CUDA_VISIBLE_DEVICES")
    if setting is None or not setting.known:
        return None
    listed = [one.strip() for one in str(setting.value).split(",") if one.strip()]
    return len(listed) if listed and all(one.isdigit() for one in listed) else None


# Layers that carry a state along the sequence: they mix samples packed into one, and leave
# little to attention.
_RECURRENT = re.compile(
    r"(?i)mamba|nemotron-(?:h|3|nano)|jamba|falcon-h1|qwen3-next|qwen3\.[5-9]|granite-?4|zamba|"
    r"lfm2|kimi-linear|minimax|linear|rwkv|recurrentgemma|bamba"
)


def is_recurrent(run: Run) -> bool:
    """Whether the model's name is that of a family with recurrent or linear-attention layers."""
    return _RECURRENT.search(run.model.known_as) is not None


def is_language_model(run: Run) -> bool:
    """Whether the model is a text or multimodal decoder."""
    return run.model.kind in ("LLM", "MLLM")


def billions(run: Run) -> Optional[float]:
    """Parameters in billions, or None."""
    return None if run.model.parameters is None else run.model.parameters / 1e9


def _setting(run: Run, name: str) -> Any:
    found = run.setting(name)
    return found.value if found is not None and known(found.value) else None


def is_trial(run: Run) -> bool:
    """Whether the run only tries something out: on the CPU, a few steps, a toy, a test."""
    if _setting(run, "use_cpu") is True or _setting(run, "no_cuda") is True:
        return True
    for name in ("max_steps", "train_iters"):
        steps = _setting(run, name)
        if isinstance(steps, (int, float)) and 0 < steps <= _FEW_STEPS:
            return True
    if run.model.name is not None and _TINY_MODEL.search(run.model.name):
        return True
    return is_test_file(run.place.location.path)


def is_trainer_class(run: Run) -> bool:
    """Whether all that trains in sight is a part: the step of a class that extends a Trainer,
    an optimizer around others. Gradients are then computed elsewhere."""
    if run.framework != "generic" or run.command is not None or run.deepspeed is not None:
        return False
    loops = [loop for program in run.python for loop in program.loops if loop.trains]
    if not loops:
        return False
    if all(loop.iterable in _STEP_METHODS for loop in loops):
        return not any("fit" in program.methods for program in run.python)
    return not any(_COMPUTES_GRADIENTS & set(program.methods) for program in run.python)


_COMPUTES_GRADIENTS = frozenset(
    ("backward", "manual_backward", "grad", "fit", "train_batch", "train_step", "train_epoch")
)
_STEP_METHODS = ("compute_loss", "training_step")
_EVALUATIONS = ("evaluate", "predict")


def is_for_tpus(run: Run) -> bool:
    """Whether the program drives XLA devices itself and nothing in it names CUDA."""
    imported = (found.module for program in run.python for found in program.imports)
    if not any(module.partition(".")[0] == "torch_xla" for module in imported):
        return False
    words = [program.mentions for program in run.python if program.mentions is not None]
    return not any("cuda" in found for found in words)


@once_per_run
def only_evaluates(run: Run) -> bool:
    """Whether the program trains nothing: it has no Trainer and calls no ``train``, or every
    Trainer is given no training data, only to evaluate."""
    if _builds_no_trainer(run) or _is_not_asked_to_train(run):
        return True
    if not any(name in program.methods for program in run.python for name in _EVALUATIONS):
        return False
    trainers = [
        call
        for program in run.python
        for call in program.calls
        if call.name.endswith("Trainer") and (call.keywords or call.positional)
    ]
    return bool(trainers) and not any(
        call.is_open or "train_dataset" in call.keywords or len(call.positional) > 3
        for call in trainers
    )


_TRAINING = re.compile(r"(?i)_*train(?:_(?!test)\w+)?|fit|\w+_train")


def _is_not_asked_to_train(run: Run) -> bool:
    """Whether all training waits for ``do_train``, which nothing sets: it is off by default
    (transformers 4.30.2 to 5.24.0, training_args.py)."""
    if run.framework != "hf_trainer" or run.is_open or run.command is None:
        return False
    if _setting(run, "do_train") is not None or "do_train" in run.settings:
        return False
    made = [c for program in run.python for c in program.calls if c.method == "train"]
    return bool(made) and all(
        any(
            condition.text.endswith("do_train") and condition.holds for condition in call.conditions
        )
        for call in made
    )


def _builds_no_trainer(run: Run) -> bool:
    """Whether a whole script fills a Trainer's arguments but neither makes nor runs one."""
    if run.framework != "hf_trainer" or not any(program.has_main for program in run.python):
        return False
    return not any(
        method.endswith("Trainer") or _TRAINING.fullmatch(method) is not None
        for program in run.python
        for method in program.methods
        if not method.endswith("TrainingArguments")
    )


def is_test_file(path: str) -> bool:
    """Whether ``path`` is a test by its name or folder."""
    parts = PurePosixPath(path).parts
    name = parts[-1] if parts else ""
    return (
        name.startswith("test_")
        or name.endswith(("_test.py", "conftest.py"))
        or any(part in ("tests", "test") for part in parts[:-1])
    )
