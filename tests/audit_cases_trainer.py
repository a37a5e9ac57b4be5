"""Small projects for the table of the Trainer's own audit: the same options in each front end."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import yaml
from audit_cases import ADVISED, EVALUATION, NA, OFF, ON, PARTLY, QWEN, Case, Files, script

from flake8_gpu_training.checks.base import Status

V100, A100, H100 = "gres=gpu:v100-32g:8", "gres=gpu:a100-80g:8", "gres=gpu:h100:8"
BERT = "google-bert/bert-base-uncased"
LARGE = "Qwen/Qwen2.5-32B-Instruct"
EIGHT = "torchrun --nproc_per_node=8 "
ONE = "CUDA_VISIBLE_DEVICES=0 python "
SHARDED = {"fsdp": "full_shard auto_wrap"}
OLD = {"requirements.txt": "transformers==4.57.6\ntrl==0.24.0\ntorch==2.7.1\npeft==0.17.1\n"}
SERVER: Files = {"serve.sh": script(f"trl vllm-serve --model {QWEN}")}
"""A command of TRL that trains nothing."""
ZERO2 = {"ds.json": json.dumps({"zero_optimization": {"stage": 2}, "bf16": {"enabled": True}})}
ZERO3 = {"ds.json": json.dumps({"zero_optimization": {"stage": 3}, "bf16": {"enabled": True}})}
OFFLOADED = {
    "ds.json": json.dumps(
        {
            "bf16": {"enabled": True},
            "zero_optimization": {
                "stage": 3,
                "offload_optimizer": {"device": "cpu", "pin_memory": True},
            },
        }
    )
}

_PROGRAM = """\
import torch
from transformers import {loader}, {names}
{imports}
model = {loader}.from_pretrained("{model}"{loading})
{setup}{made}
trainer = {trainer}(model=model, args=args, train_dataset=train_dataset{more})
trainer.train()
{after}"""


def _program(
    made: str,
    names: str,
    *,
    model: str = QWEN,
    loader: str = "AutoModelForCausalLM",
    loading: str = "",
    imports: str = "",
    setup: str = "",
    more: str = "",
    after: str = "",
    trainer: str = "Trainer",
) -> str:
    loading = f", {loading}" if loading else ""
    more = f", {more}" if more else ""
    setup = f"{setup}\n" if setup else ""
    return _PROGRAM.format(
        loader=loader,
        names=names,
        model=model,
        loading=loading,
        imports=imports,
        setup=setup,
        made=made,
        more=more,
        after=after,
        trainer=trainer,
    )


def constructor(
    options: Mapping[str, Any],
    start: str = EIGHT,
    gpus: str = A100,
    sft: bool = False,
    **parts: Any,
) -> Files:
    """Arguments built in Python; ``sft``: TRL's, else TrainingArguments."""
    files = parts.pop("files", {})
    kind = "SFTConfig" if sft else "TrainingArguments"
    lines = "".join(f"    {name}={value!r},\n" for name, value in options.items())
    made = f'args = {kind}(\n    output_dir="out",\n{lines})'
    if sft:
        parts["imports"] = f"from trl import SFTConfig, SFTTrainer\n{parts.get('imports', '')}"
        program = _program(made, "AutoTokenizer", trainer="SFTTrainer", **parts)
    else:
        program = _program(made, "Trainer, TrainingArguments", **parts)
    return {"train.py": program, "train.sh": script(f"{start}train.py", gpus), **files}


def _word(value: Any) -> str:
    return f"'{json.dumps(value)}'" if isinstance(value, dict) else f'"{value}"'


def flags(options: Mapping[str, Any], start: str = EIGHT, gpus: str = A100, **parts: Any) -> Files:
    """Flags of a script that parses TrainingArguments."""
    files = parts.pop("files", {})
    made = "(args,) = HfArgumentParser(TrainingArguments).parse_args_into_dataclasses()"
    program = _program(made, "HfArgumentParser, Trainer, TrainingArguments", **parts)
    given = " ".join(f"--{name} {_word(value)}" for name, value in options.items())
    command = f"{start}train.py --output_dir out {given}"
    return {"train.py": program, "train.sh": script(command, gpus), **files}


def recipe(
    options: Mapping[str, Any], start: str = "", gpus: str = A100, model: str = QWEN, **parts: Any
) -> Files:
    """A YAML recipe that ``trl sft`` reads."""
    body = {"model_name_or_path": model, "dataset_name": "trl-lib/Capybara", "output_dir": "out"}
    count = 1 if start == ONE else 8
    gpus = "gres=gpu:a100-80g:1" if start == ONE and gpus == A100 else gpus
    command = f"trl sft --config sft.yaml --num_processes {count}"
    return {
        "sft.yaml": yaml.safe_dump({**body, **options}),
        "train.sh": script(command, gpus),
        **parts.get("files", {}),
    }


FRONTS = {"python": constructor, "flags": flags, "yaml": recipe}


def everywhere(
    item: str,
    status: Status,
    options: Mapping[str, Any],
    fronts: tuple[str, ...] = ("python", "flags", "yaml"),
    writes: str = "",
    shows: str = "",
    **parts: Any,
) -> Iterator[Case]:
    """The same options in several front ends."""
    for front in fronts:
        yield Case(item, status, front, FRONTS[front](options, **parts), shows, writes)


def untrained(item: str) -> Iterator[Case]:
    """Runs that train nothing."""
    yield Case(item, NA, "python", EVALUATION)
    yield Case(item, NA, "yaml", SERVER)


def _switch(item: str, name: str, value: Any, **off: Any) -> Iterator[Case]:
    """A parameter that is on when it is given, and off otherwise."""
    yield from everywhere(item, ON, {name: value, **off}, shows=name)
    yield from everywhere(item, OFF, off)


PLAIN = ("python", "flags")
EVALUATING = {"eval_strategy": "steps", "eval_steps": 100}
NF4 = {"load_in_4bit": True, "use_peft": True}
_LORA = "from peft import LoraConfig, get_peft_model"
_ADAPT = 'model = get_peft_model(model, LoraConfig(task_type="CAUSAL_LM"{}))'


def adapted(more: str = "", **parts: Any) -> Files:
    """LoRA by PEFT, in Python."""
    imports = f"{_LORA}\n{parts.pop('imports', '')}"
    return constructor({"bf16": True}, imports=imports, setup=_ADAPT.format(more), **parts)


def quantized(config: str, **parts: Any) -> Files:
    """LoRA over weights that are quantized as a config of Transformers says."""
    name = config.partition("(")[0]
    return adapted(
        imports=f"from transformers import {name}",
        loading=f"quantization_config={config}",
        **parts,
    )


def _precision() -> Iterator[Case]:
    yield from everywhere("bf16", ON, {"bf16": True}, shows="bf16")
    yield from everywhere("bf16", ADVISED, {"bf16": False}, ("yaml",), "bf16: true")
    yield from everywhere("bf16", ADVISED, {}, ("python",), "bf16=True", files=OLD)
    yield from everywhere("bf16", ADVISED, {}, ("flags",), "--bf16", files=OLD)
    yield from untrained("bf16")
    yield from everywhere("fp16", ON, {"fp16": True}, shows="fp16", gpus=V100)
    yield from everywhere("fp16", ADVISED, {"bf16": False}, ("yaml",), "fp16: true", gpus=V100)
    yield from everywhere("fp16", ADVISED, {}, ("python",), "fp16=True", gpus=V100, files=OLD)
    yield from everywhere("fp16", ADVISED, {}, ("flags",), "--fp16", gpus=V100, files=OLD)
    yield from untrained("fp16")
    yield from _switch("tf32", "tf32", True, bf16=True)
    yield from everywhere("tf32", NA, {"fp16": True}, gpus=V100)
    yield Case(
        "tf32",
        ON,
        "switch",
        constructor({"bf16": True}, setup="torch.backends.cuda.matmul.allow_tf32 = True"),
        "allow_tf32",
    )
    for kind in ("bf16", "fp16"):
        name, item = f"{kind}_full_eval", f"{kind}-full-eval"
        yield from _switch(item, name, True, **EVALUATING)
        yield from everywhere(item, NA, {"bf16": True})


def _memory() -> Iterator[Case]:
    long = {"max_length": 8192}
    yield from everywhere(
        "gradient-checkpointing", ON, {"gradient_checkpointing": True}, shows="checkpointing"
    )
    yield from everywhere(
        "gradient-checkpointing",
        ADVISED,
        {"gradient_checkpointing": False, "per_device_train_batch_size": 16},
        PLAIN,
        writes="gradient_checkpointing",
        gpus="gres=gpu:a100-40g:8",
        model=LARGE,
    )
    crowded = {"gradient_checkpointing": False, "per_device_train_batch_size": 16, **long}
    yield from everywhere("gradient-checkpointing", ADVISED, crowded, ("yaml",), model=LARGE)
    yield from untrained("gradient-checkpointing")
    kwargs = {"gradient_checkpointing_kwargs": {"use_reentrant": False}}
    yield from everywhere(
        "non-reentrant", ON, {"gradient_checkpointing": True, **kwargs}, files=OLD
    )
    yield from everywhere("non-reentrant", OFF, {"gradient_checkpointing": True}, files=OLD)
    unsaved = {"gradient_checkpointing": False}
    yield from everywhere("non-reentrant", OFF, {**unsaved, **long}, ("yaml",))
    yield from everywhere("non-reentrant", OFF, unsaved, PLAIN)
    yield from untrained("non-reentrant")
    yield from _switch("empty-cache-steps", "torch_empty_cache_steps", 4, bf16=True)
    yield from everywhere(
        "empty-cache-steps", NA, {"bf16": True}, PLAIN, files=_pinned("transformers==4.40.2")
    )
    yield from _switch("auto-batch-size", "auto_find_batch_size", True, bf16=True)
    yield from everywhere("auto-batch-size", NA, {"deepspeed": "ds.json"}, files=ZERO3)
    yield from _switch("eval-accumulation", "eval_accumulation_steps", 8, **EVALUATING)
    metrics = "eval_dataset=eval_dataset, compute_metrics=compute_metrics"
    for front in PLAIN:
        files = FRONTS[front](EVALUATING, more=metrics)
        yield Case("eval-accumulation", ADVISED, front, files, writes="eval_accumulation_steps")
    shrunk = f"{metrics}, preprocess_logits_for_metrics=largest"
    yield Case("eval-accumulation", OFF, "shrunk", constructor(EVALUATING, more=shrunk))
    encoder = constructor(
        EVALUATING, more=metrics, model=BERT, loader="AutoModelForSequenceClassification"
    )
    yield Case("eval-accumulation", OFF, "encoder", encoder)
    yield from everywhere("eval-accumulation", NA, {"bf16": True})


def _pinned(*requirements: str) -> Files:
    return {"requirements.txt": "".join(f"{line}\n" for line in requirements)}


def _adapters() -> Iterator[Case]:
    yield Case("lora", ON, "python", adapted(), "LoraConfig")
    yield from everywhere("lora", ON, {"use_peft": True}, ("yaml",), shows="use_peft")
    crowded = {"model": "Qwen/Qwen2.5-72B-Instruct", "gpus": "gres=gpu:a100-40g:8"}
    yield from everywhere("lora", ADVISED, {"deepspeed": "ds.json"}, files=ZERO3, **crowded)
    yield from untrained("lora")
    four = 'BitsAndBytesConfig(load_in_4bit=True, bnb_4bit_quant_type="nf4")'
    yield Case("qlora-4bit", ON, "python", quantized(four), "BitsAndBytesConfig")
    yield from everywhere("qlora-4bit", ON, NF4, ("yaml",))
    poor = quantized("BitsAndBytesConfig(load_in_4bit=True)")
    yield Case("qlora-4bit", PARTLY, "python", poor, writes='bnb_4bit_quant_type="nf4"')
    yield from everywhere("qlora-4bit", PARTLY, {**NF4, "bnb_4bit_quant_type": "fp4"}, ("yaml",))
    small = {"gpus": "gres=gpu:v100-32g:1", "start": ONE}
    dense = adapted(model=LARGE, **small)
    yield Case("qlora-4bit", ADVISED, "python", dense, writes="load_in_4bit")
    yield from everywhere(
        "qlora-4bit", ADVISED, {"use_peft": True}, ("yaml",), "load_in_4bit", model=LARGE, **small
    )
    eight = quantized("BitsAndBytesConfig(load_in_8bit=True)")
    yield Case("qlora-8bit", ON, "python", eight, "BitsAndBytesConfig")
    yield from everywhere("qlora-8bit", ON, {"load_in_8bit": True, "use_peft": True}, ("yaml",))
    for item, config in (
        ("gptq", "GPTQConfig(bits=4)"),
        ("awq", "AwqConfig(bits=4)"),
        ("torchao", 'TorchAoConfig("int4_weight_only")'),
        ("fp8-quantization", "FineGrainedFP8Config()"),
    ):
        yield Case(item, ON, "python", quantized(config), config.partition("(")[0])
    for item, name in (("gptq", "GPTQ-Int4"), ("awq", "AWQ")):
        model = f"Qwen/Qwen2.5-7B-Instruct-{name}"
        yield from everywhere(item, ON, {"use_peft": True}, ("yaml",), model=model)
    for item in ("qlora-8bit", "gptq", "awq", "torchao"):
        yield Case(item, OFF, "python", adapted())
        yield from everywhere(item, OFF, {"use_peft": True}, ("yaml",))
    yield Case("fp8-quantization", OFF, "python", adapted(gpus=H100))
    yield from everywhere("fp8-quantization", OFF, {"use_peft": True}, ("yaml",), gpus=H100)
    yield from everywhere("fp8-quantization", NA, {"use_peft": True}, ("yaml",), gpus=A100)
    for item in ("qlora-4bit", "qlora-8bit", "gptq", "awq", "torchao", "fp8-quantization"):
        yield from everywhere(item, NA, {"bf16": True})
    yield Case("dora", ON, "python", adapted(", use_dora=True"), "use_dora")
    yield from everywhere("dora", ON, {"use_peft": True, "use_dora": True}, ("yaml",))
    yield Case("dora", OFF, "python", adapted())
    yield from everywhere("dora", OFF, {"use_peft": True}, ("yaml",))
    yield from everywhere("dora", NA, {"bf16": True})


_OPTIMIZERS = {
    "fused-adamw": "adamw_torch_fused",
    "adamw-8bit": "adamw_bnb_8bit",
    "adamw-4bit": "adamw_torch_4bit",
    "paged-adamw": "paged_adamw_32bit",
    "adafactor": "adafactor",
    "galore": "galore_adamw",
    "apollo": "apollo_adamw",
    "lomo": "adalomo",
    "schedule-free": "schedule_free_adamw",
}


def _optimizers() -> Iterator[Case]:
    for item, name in _OPTIMIZERS.items():
        layers = {"optim_target_modules": "all-linear"} if item in ("galore", "apollo") else {}
        yield from everywhere(item, ON, {"optim": name, **layers}, shows="optim")
        yield from untrained(item)
        if item != "fused-adamw":
            yield from everywhere(item, OFF, {"optim": "adamw_torch"})
    for item in ("galore", "apollo"):  # without layers it is refused, and not in effect
        refused = {"optim": _OPTIMIZERS[item]}
        yield from everywhere(item, OFF, refused, ("yaml",))
    yield from everywhere("fused-adamw", ADVISED, {"optim": "adamw_torch"})
    yield Case("fused-adamw", ADVISED, "default", constructor({"bf16": True}, files=OLD))
    yield Case("fused-adamw", ON, "default", constructor({"bf16": True}), "adamw_torch_fused")
    brought = constructor({"bf16": True}, more="optimizers=(optimizer, None)")
    yield Case("fused-adamw", Status.UNKNOWN, "brought", brought)


def _distributed() -> Iterator[Case]:
    search = {"ddp_find_unused_parameters": False, "bf16": True}
    small = {"model": "Qwen/Qwen2.5-0.5B"}
    yield from everywhere("ddp-settings", ON, search, shows="find_unused")
    yield from everywhere(
        "ddp-settings",
        ADVISED,
        {"bf16": True, "gradient_checkpointing": False},
        writes="ddp_find_unused_parameters",
        **small,
    )
    yield from everywhere("ddp-settings", NA, {"bf16": True}, start=ONE)
    shards = (
        ("fsdp-full-shard", {"fsdp": "full_shard auto_wrap"}),
        ("fsdp-shard-grad-op", {"fsdp": "shard_grad_op auto_wrap"}),
        ("fsdp-hybrid-shard", {"fsdp": "hybrid_shard auto_wrap"}),
    )
    for item, options in shards:
        yield from everywhere(item, ON, {"bf16": True, **options}, shows="fsdp")
        yield from everywhere(item, OFF, {"bf16": True, "deepspeed": "ds.json"}, files=ZERO2)
    for item, files in (("zero2", ZERO2), ("zero3", ZERO3)):
        model = LARGE if item == "zero3" else QWEN
        options = {"bf16": True, "deepspeed": "ds.json"}
        yield from everywhere(item, ON, options, files=files, model=model)
        yield from everywhere(item, OFF, {"bf16": True, **SHARDED})
    large = {"bf16": True, "optim": "adamw_torch_fused"}
    yield from everywhere("zero2", ADVISED, large, model="Qwen/Qwen2.5-14B-Instruct")
    yield from everywhere("zero3", ADVISED, large, model=LARGE)
    for item in (*(item for item, _ in shards), "zero2", "zero3"):
        yield from everywhere(item, NA, {"bf16": True}, start=ONE)
    moved = {"fsdp": "full_shard offload auto_wrap", "bf16": True}
    huge = {"model": "Qwen/Qwen2.5-32B-Instruct"}
    yield from everywhere("fsdp-cpu-offload", ON, moved, shows="offload", **huge)
    yield from everywhere("zero-offload", ON, {"deepspeed": "ds.json"}, files=OFFLOADED, **huge)
    full = {"gpus": "gres=gpu:v100-32g:4", "start": "torchrun --nproc_per_node=4 "}
    tight = {"model": "Qwen/Qwen3-8B", **full}
    yield from everywhere("fsdp-cpu-offload", ADVISED, {**SHARDED, "fp16": True}, PLAIN, **tight)
    yield from everywhere(
        "zero-offload", ADVISED, {"deepspeed": "ds.json"}, PLAIN, files=FP16, **tight
    )
    for item in ("fsdp-cpu-offload", "zero-offload"):
        yield from untrained(item)
    yield from everywhere("fsdp2", ON, {**SHARDED, "fsdp_config": {"version": 2}})
    yield from everywhere("fsdp2", OFF, {**SHARDED, "fsdp_config": {"version": 1}})
    wrapped = {"fsdp_config": {"activation_checkpointing": True}, "gradient_checkpointing": False}
    own = "fsdp-activation-checkpointing"
    yield from everywhere(own, ON, {**SHARDED, **wrapped}, shows="activation_checkpointing")
    plain = {**SHARDED, "fsdp_config": {"version": 1}, "gradient_checkpointing": True}
    yield from everywhere(own, ADVISED, plain, writes="activation_checkpointing")
    ahead = {"version": 1, "backward_prefetch": "backward_pre"}
    yield from everywhere("fsdp-prefetch", ON, {**SHARDED, "fsdp_config": ahead})
    yield from everywhere("fsdp-prefetch", ADVISED, {**SHARDED, "fsdp_config": {"version": 1}})
    loading = {"cpu_ram_efficient_loading": True}
    yield from everywhere("fsdp-efficient-loading", ON, {**SHARDED, "fsdp_config": loading})
    yield from everywhere("fsdp-efficient-loading", OFF, SHARDED)
    for item in ("fsdp2", own, "fsdp-prefetch", "fsdp-efficient-loading"):
        yield from everywhere(item, NA, {"deepspeed": "ds.json"}, files=ZERO2)
    name = "parallelism-config"
    made = constructor({"bf16": True}, imports="from accelerate import ParallelismConfig")
    program = made["train.py"].replace(
        "    bf16=True,\n", "    bf16=True,\n    parallelism_config=ParallelismConfig(tp_size=2),\n"
    )
    yield Case(name, ON, "python", {**made, "train.py": program}, "parallelism_config")
    yield from everywhere(name, OFF, {"bf16": True})
    yield from everywhere(name, NA, {"bf16": True}, start=ONE)
    configured = {
        "accelerate.yaml": (
            "distributed_type: MULTI_GPU\nnum_processes: 8\nparallelism_config:\n"
            "  parallelism_config_tp_size: 2\n"
        )
    }
    start = "accelerate launch --config_file accelerate.yaml "
    yield from everywhere(name, ON, {"bf16": True}, ("flags",), start=start, files=configured)


FP16 = {"ds.json": json.dumps({"zero_optimization": {"stage": 3}, "fp16": {"enabled": True}})}


def _attention() -> Iterator[Case]:
    for item, name in (
        ("flash-attention-2", "flash_attention_2"),
        ("flash-attention-3", "flash_attention_3"),
        ("flex-attention", "flex_attention"),
    ):
        gpus = H100 if name.endswith("3") else A100
        loading = f'attn_implementation="{name}"'
        yield from everywhere(item, ON, {"bf16": True}, PLAIN, loading=loading, gpus=gpus)
        yield from everywhere(item, ON, {"attn_implementation": name}, ("yaml",), gpus=gpus)
        yield from untrained(item)
        if item != "flash-attention-2":
            eager = 'attn_implementation="eager"'
            yield from everywhere(item, OFF, {"bf16": True}, loading=eager, gpus=gpus)
    yield from everywhere("flash-attention-3", NA, {"bf16": True}, gpus=A100)
    yield from everywhere("flash-attention-2", ADVISED, {"bf16": True}, PLAIN, "flash_attention_2")
    yield from everywhere(
        "flash-attention-2",
        ADVISED,
        {"attn_implementation": "eager"},
        ("yaml",),
        "flash_attention_2",
    )
    yield from everywhere("sdpa", ON, {"fp16": True}, PLAIN, gpus=V100)
    yield from everywhere("sdpa", ON, {"attn_implementation": "sdpa"}, ("yaml",), gpus=V100)
    explicit = 'attn_implementation="sdpa"'
    yield from everywhere("sdpa", PARTLY, {"bf16": True}, PLAIN, loading=explicit)
    yield from everywhere("sdpa", PARTLY, {"attn_implementation": "sdpa"}, ("yaml",))
    yield from everywhere("sdpa", PARTLY, {"bf16": True}, PLAIN, shows="sdpa")
    yield from untrained("sdpa")
    called = 'model.set_attn_implementation("flash_attention_2")'
    item = "runtime-switch"
    yield from everywhere(item, ON, {"bf16": True}, PLAIN, setup=called, shows="set_attn")
    yield from everywhere(item, OFF, {"bf16": True})
    yield from everywhere(item, OFF, {"fp16": True}, gpus=V100)
    yield from everywhere(
        item, NA, {"bf16": True}, files={"requirements.txt": "transformers==4.53.3\n"}
    )


def _compute() -> Iterator[Case]:
    encoder = {"model": BERT, "loader": "AutoModelForSequenceClassification"}
    yield from everywhere("torch-compile", ON, {"torch_compile": True}, shows="compile")
    yield from everywhere(
        "torch-compile", ADVISED, {"bf16": True}, PLAIN, "torch_compile", **encoder
    )
    yield from untrained("torch-compile")
    both = {"torch_compile": True, "torch_compile_backend": "inductor"}
    yield from everywhere("compile-backend", ON, both, shows="inductor")
    yield from everywhere("compile-backend", OFF, {**both, "torch_compile_backend": "eager"})
    tuned = {"torch_compile": True, "torch_compile_mode": "max-autotune"}
    yield from everywhere("compile-mode", ON, tuned, shows="max-autotune")
    yield from everywhere("compile-mode", OFF, {"torch_compile": True})
    for item in ("compile-backend", "compile-mode"):
        yield from everywhere(item, OFF, {"bf16": True})
        yield from untrained(item)
    yield from everywhere("liger-kernel", ON, {"use_liger_kernel": True}, shows="liger")
    yield from everywhere("liger-kernel", ADVISED, {"bf16": True}, writes="use_liger_kernel")
    yield from everywhere(
        "liger-kernel",
        NA,
        {"bf16": True},
        PLAIN,
        model="google/vit-base-patch16-224",
        loader="AutoModelForImageClassification",
    )
    chosen = {"liger_kernel_config": {"rope": True}, "use_liger_kernel": True}
    yield from everywhere("liger-config", ON, chosen)
    yield from everywhere("liger-config", OFF, {"use_liger_kernel": True})
    yield from everywhere("liger-config", OFF, {"bf16": True})
    yield from everywhere(
        "liger-config",
        NA,
        {"bf16": True},
        PLAIN,
        model="google/vit-base-patch16-224",
        loader="AutoModelForImageClassification",
    )


def _data() -> Iterator[Case]:
    workers = {"dataloader_num_workers": 4}
    yield from everywhere("dataloader-workers", ON, workers, shows="workers")
    yield from everywhere("dataloader-workers", ADVISED, {"bf16": True}, writes="num_workers")
    yield from untrained("dataloader-workers")
    yield from everywhere("pin-memory", ON, {"bf16": True}, shows="pin_memory")
    yield from everywhere(
        "pin-memory", ADVISED, {"dataloader_pin_memory": False}, writes="pin_memory"
    )
    yield from untrained("pin-memory")
    kept = {**workers, "dataloader_persistent_workers": True, "num_train_epochs": 3}
    yield from everywhere("persistent-workers", ON, kept, shows="persistent")
    repeated = {**workers, "num_train_epochs": 3}
    yield from everywhere("persistent-workers", ADVISED, repeated, writes="persistent_workers")
    yield from everywhere("persistent-workers", OFF, {"bf16": True})
    yield from untrained("persistent-workers")
    ahead = {**workers, "dataloader_prefetch_factor": 4}
    yield from everywhere("prefetch-factor", ON, ahead, shows="prefetch_factor")
    one = {**workers, "dataloader_prefetch_factor": 1}
    yield from everywhere("prefetch-factor", ADVISED, one, writes="prefetch_factor")
    yield from everywhere("prefetch-factor", OFF, {"bf16": True})
    yield from untrained("prefetch-factor")
    sampling = {"train_sampling_strategy": "group_by_length"}
    yield from everywhere("group-by-length", ON, sampling, shows="group_by_length")
    yield Case(
        "group-by-length", ON, "old", constructor({"group_by_length": True}, files=OLD), "group"
    )
    yield from everywhere("group-by-length", OFF, {"bf16": True})
    yield from everywhere("group-by-length", NA, {"packing": True}, ("yaml",))
    yield Case("group-by-length", NA, "python", constructor({"packing": True}, sft=True))
    named = {**sampling, "length_column_name": "tokens"}
    yield from everywhere("length-column", ON, named, shows="tokens")
    yield from everywhere("length-column", OFF, sampling)
    yield from everywhere("length-column", OFF, {"bf16": True})
    yield from everywhere("length-column", NA, {"packing": True}, ("yaml",))
    yield Case("length-column", NA, "python", constructor({"packing": True}, sft=True))
    yield from everywhere("remove-unused-columns", ON, {"bf16": True}, shows="remove_unused")
    yield from everywhere("remove-unused-columns", OFF, {"remove_unused_columns": False})
    yield from untrained("remove-unused-columns")


def _strategy() -> Iterator[Case]:
    noise = {"neftune_noise_alpha": 5.0}
    yield Case("neftune", ON, "python", constructor(noise, sft=True), "neftune")
    yield from everywhere("neftune", ON, noise, ("flags", "yaml"), shows="neftune")
    yield Case("neftune", OFF, "python", constructor({"bf16": True}, sft=True))
    yield from everywhere("neftune", OFF, {"bf16": True}, ("yaml",))
    yield from untrained("neftune")
    steps = {"gradient_accumulation_steps": 8}
    yield from everywhere("gradient-accumulation", ON, steps, shows="accumulation")
    single = {"per_device_train_batch_size": 1, "gradient_accumulation_steps": 1}
    yield from everywhere(
        "gradient-accumulation",
        ADVISED,
        single,
        writes="accumulation",
        start=ONE,
        gpus="gres=gpu:a100-80g:1",
    )
    yield from untrained("gradient-accumulation")
    yield from everywhere("gradient-clipping", ON, {"bf16": True}, shows="max_grad_norm")
    yield from everywhere("gradient-clipping", OFF, {"max_grad_norm": 0})
    yield from untrained("gradient-clipping")
    yield from _switch("label-smoothing", "label_smoothing_factor", 0.1, bf16=True)
    yield from untrained("label-smoothing")
    yield from _switch("save-only-model", "save_only_model", True, bf16=True)
    yield from everywhere("save-only-model", NA, {"save_strategy": "no"})
    yield from _switch("jit-checkpoint", "enable_jit_checkpoint", True, bf16=True)
    yield from everywhere("jit-checkpoint", NA, {"bf16": True}, files=OLD)


_GENERATED = {
    "static-kv-cache": 'cache_implementation="static"',
    "quantized-kv-cache": 'cache_implementation="quantized"',
    "offloaded-kv-cache": 'cache_implementation="offloaded"',
    "speculative-decoding": "assistant_model=draft",
    "prompt-lookup": "prompt_lookup_num_tokens=10",
    "compiled-forward": "compile_config=CompileConfig(dynamic=True)",
    "prefill-chunking": "prefill_chunk_size=512",
}
_CALL = "print(model.generate(**prompt, max_new_tokens=64{}))\n"


def _generation() -> Iterator[Case]:
    for item, argument in _GENERATED.items():
        shows = argument.partition("=")[0]
        called = _CALL.format(f", {argument}")
        yield from everywhere(item, ON, {"bf16": True}, PLAIN, after=called, shows=shows)
        yield from everywhere(item, OFF, {"bf16": True}, PLAIN, after=_CALL.format(""))
        yield from everywhere(item, NA, {"bf16": True})
    attribute = 'model.generation_config.cache_implementation = "static"'
    for item in ("static-kv-cache", "compiled-forward"):
        files = constructor({"bf16": True}, setup=attribute, after=_CALL.format(""))
        yield Case(item, ON, "attribute", files, "cache_implementation")


CASES: tuple[Case, ...] = (
    *_precision(),
    *_memory(),
    *_adapters(),
    *_optimizers(),
    *_distributed(),
    *_attention(),
    *_compute(),
    *_data(),
    *_strategy(),
    *_generation(),
)
