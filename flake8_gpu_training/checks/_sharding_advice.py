"""How the states of a run's model are split, said in the language of its front end."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Optional

from flake8_gpu_training.checks import changes
from flake8_gpu_training.checks._judging import Snippet, keyword_change
from flake8_gpu_training.checks._programs import first_call, imports
from flake8_gpu_training.facts import Setting
from flake8_gpu_training.frameworks.lightning import trainer_of
from flake8_gpu_training.frameworks.videox_fun import blocks
from flake8_gpu_training.runs.model import PlaceKind, Run


@dataclass(frozen=True)
class Sharding:
    """A way to split the states: its ``name``, and what is written for it."""

    variant: str
    name: str
    snippet: Snippet
    parameters: Optional[Mapping[str, Any]] = None
    at: Optional[Setting] = None
    """What is to be changed, where that is not the run's own place."""


def how_to_shard(run: Run, stage: int) -> Sharding:
    """ZeRO of ``stage`` where the front end takes DeepSpeed as it is, FSDP where it does not."""
    zero, name = f"zero{stage}", f"ZeRO-{stage}"
    if run.framework == "swift":
        return Sharding(zero, name, stage_snippet(stage), {"deepspeed": zero})
    if run.framework == "llamafactory":
        return Sharding(zero, name, _named_file(stage))
    if run.framework == "hf_trainer":
        return Sharding(zero, name, _argument(run, stage) or stage_snippet(stage))
    if run.framework == "videox_fun":
        return _of_videox(run, stage)
    if run.framework != "generic" or run.deepspeed is not None:
        return Sharding(zero, name, stage_snippet(stage))
    if imports(run, "colossalai") is not None:
        return Sharding(zero, name, _plugin(stage))
    lightning = _lightning(run)
    if lightning is not None:
        return Sharding("fsdp", "FSDP", lightning)
    launched = _accelerate(run)
    if launched is not None:
        return Sharding("fsdp", "FSDP", launched, at=_type_of_launch(run))
    return Sharding("fsdp", "FSDP", _FULLY_SHARD, at=_replicating_call(run))


def _of_videox(run: Run, stage: int) -> Sharding:
    """Flags of the launch: its READMEs shard by ZeRO-2, and by FSDP where that is not enough."""
    layers = ",".join(blocks(run))
    if stage == 2 or not layers:
        file = f"config/zero_stage{stage}_config.json"
        flags = f"--use_deepspeed --deepspeed_config_file {file}"
        return Sharding(f"zero{stage}", f"ZeRO-{stage}", _launched(flags))
    flags = (
        "--use_fsdp --fsdp_sharding_strategy FULL_SHARD "
        "--fsdp_auto_wrap_policy TRANSFORMER_BASED_WRAP "
        f"--fsdp_transformer_layer_cls_to_wrap {layers} "
        "--fsdp_backward_prefetch BACKWARD_PRE --fsdp_state_dict_type SHARDED_STATE_DICT "
        "--fsdp_cpu_ram_efficient_loading False"
    )
    return Sharding("fsdp", "FSDP", _launched(flags))


def _launched(flags: str) -> Snippet:
    text = flags.replace(" --", " \\\n    --")
    return Snippet(f"launch with {flags}", f"accelerate launch {text}", "bash")


def _config(stage: int) -> dict[str, Any]:
    return {
        "zero_optimization": {"stage": stage, "overlap_comm": True},
        "bf16": {"enabled": "auto"},
        "train_micro_batch_size_per_gpu": "auto",
        "gradient_accumulation_steps": "auto",
    }


def stage_snippet(stage: int) -> Snippet:
    """A DeepSpeed file for the Hugging Face integration."""
    body = (
        f'{{\n  "zero_optimization": {{"stage": {stage}, "overlap_comm": true}},\n'
        '  "bf16": {"enabled": "auto"},\n'
        '  "train_micro_batch_size_per_gpu": "auto",\n'
        '  "gradient_accumulation_steps": "auto"\n}'
    )
    return Snippet(
        f'pass a DeepSpeed config with "zero_optimization": {{"stage": {stage}}}',
        body,
        "json",
    )


def _argument(run: Run, stage: int) -> Optional[Snippet]:
    """The same as an argument of TrainingArguments, where these are made in sight."""
    if run.place.kind is not PlaceKind.PYTHON or run.place.call is None:
        return None
    change = changes.write(run, {"deepspeed": _config(stage)})
    said = stage_snippet(stage).instruction
    return Snippet(said, change.text, change.language, change.edits)


def _named_file(stage: int) -> Snippet:
    """A line of a recipe, with the content of the file it names."""
    name = f"ds_zero{stage}.json"
    text = f"deepspeed: {name}\n# {name}:\n# {json.dumps(_config(stage))}"
    return Snippet(f"set deepspeed: {name} (ZeRO-{stage})", text, "yaml")


def _plugin(stage: int) -> Snippet:
    """ColossalAI's plugins: LowLevelZero splits gradients and states, Gemini the weights too."""
    made = f'LowLevelZeroPlugin(stage={stage}, precision="bf16")'
    if stage == 3:
        made = 'GeminiPlugin(precision="bf16")'
    return Snippet(f"boost the model with {made}", f"booster = Booster(plugin={made})")


def _lightning(run: Run) -> Optional[Snippet]:
    trainer = trainer_of(call for program in run.python for call in program.calls)
    if trainer is None:
        return None
    change = keyword_change(run, trainer, "strategy", "fsdp")
    return Snippet('set strategy="fsdp" of the Trainer', change.text, change.language, change.edits)


def _accelerate(run: Run) -> Optional[Snippet]:
    """``accelerate launch`` shards what ``accelerator.prepare`` is given."""
    made = first_call(run, "accelerate.Accelerator")
    if run.launcher.name != "accelerate" or made is None:
        return None
    text = (
        "distributed_type: FSDP\nfsdp_config:\n  fsdp_version: 2\n"
        "  fsdp_auto_wrap_policy: TRANSFORMER_BASED_WRAP\n"
        "  fsdp_state_dict_type: SHARDED_STATE_DICT"
    )
    return Snippet("launch with distributed_type: FSDP", text, "yaml")


def _type_of_launch(run: Run) -> Optional[Setting]:
    """``distributed_type`` of Accelerate's file."""
    return run.accelerate.settings().get("distributed_type") if run.accelerate else None


def _replicating_call(run: Run) -> Optional[Setting]:
    """The call of DDP, which FSDP takes the place of."""
    call = first_call(run, "torch.nn.parallel.DistributedDataParallel")
    return None if call is None else Setting("ddp", True, call.location, note=call.name)


_FULLY_SHARD = Snippet(
    "shard the model with fully_shard (FSDP2) instead of DistributedDataParallel",
    "from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard\n\n"
    "policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16)\n"
    "for layer in model.model.layers:\n"
    "    fully_shard(layer, mp_policy=policy)\n"
    "fully_shard(model, mp_policy=policy)",
)
