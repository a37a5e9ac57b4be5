"""Commands, files and constructors that Accelerate refuses."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from checks_support import findings, runs_alone, runs_of

from flake8_gpu_training.frameworks.refusals import refusals_of

SCRIPT = """\
from accelerate import Accelerator

accelerator = Accelerator()
model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
for batch in loader:
    accelerator.backward(model(batch))
    optimizer.step()
"""
MULTI = "compute_environment: LOCAL_MACHINE\ndistributed_type: MULTI_GPU\nnum_processes: 4\n"
FSDP = (
    "compute_environment: LOCAL_MACHINE\ndistributed_type: FSDP\nnum_processes: 4\nfsdp_config:\n"
)
BY_SIZE = "  fsdp_auto_wrap_policy: SIZE_BASED_WRAP\n"
DEEPSPEED = (
    "compute_environment: LOCAL_MACHINE\ndistributed_type: DEEPSPEED\nnum_processes: 4\n"
    "deepspeed_config:\n  deepspeed_config_file: ds.json\n"
)
ZERO = {"zero_optimization": {"stage": 2}, "train_micro_batch_size_per_gpu": 1}


def told(
    root: Path,
    flags: str = "",
    file: str = "",
    code: str = "GPU024",
    version: str = "1.15.0",
    deepspeed: object = None,
) -> list[str]:
    """What a check says of a command with these flags and this file."""
    config = "--config_file acc.yaml " if file else ""
    script = "train" if "--module" in flags else "train.py"
    files = {
        "train.py": SCRIPT,
        "run.sh": f"accelerate launch {config}{flags} {script}\n",
        "requirements.txt": f"accelerate=={version}\n",
        "ds.json": json.dumps(ZERO if deepspeed is None else deepspeed),
    }
    if file:
        files["acc.yaml"] = file
    return [f.message for f in findings(runs_of(root, files), code)]


def mend_of(rule: str) -> str:
    """The beginning of what a rule asks for."""
    mend = next(one for one in refusals_of("accelerate") if one.name == rule).mend.en
    return mend.partition("{")[0]


FLAGS: tuple[tuple[str, str, str, str], ...] = (
    ("launch-modes", "--multi_gpu --use_fsdp", "--multi_gpu", ""),
    ("multi-gpu-of-one", "--multi_gpu --num_processes 1", "--multi_gpu --num_processes 2", ""),
    (
        "dimensions-without-fsdp2",
        "--use_parallelism_config --use_fsdp",
        "--use_parallelism_config --use_fsdp --fsdp_version 2",
        "",
    ),
    ("launch-module-without-python", "--no_python --module", "--no_python", ""),
    ("one-gpu-of-several", "--gpu_ids 0", "--gpu_ids 0,1", MULTI),
    (
        "machine-rank-beyond",
        "--num_machines 2 --machine_rank 2",
        "--num_machines 2 --machine_rank 1",
        "",
    ),
    (
        "machines-without-address",
        "--num_machines 2",
        "--num_machines 2 --main_process_ip 10.0.0.1 --main_process_port 29500",
        MULTI,
    ),
    ("main-port-out-of-range", "--main_process_port 70000", "--main_process_port 0", ""),
)


@pytest.mark.parametrize(("rule", "refused", "taken", "file"), FLAGS)
def test_a_rule_of_the_command(
    rule: str, refused: str, taken: str, file: str, tmp_path: Path
) -> None:
    (message,) = told(tmp_path / "bad", refused, file)
    assert message.startswith(mend_of(rule))
    assert message.endswith("accelerate launch refuses it (Accelerate 1.15.0)")
    assert told(tmp_path / "good", taken, file) == []


FILES: tuple[tuple[str, str, str], ...] = (
    (
        "keys-beside-deepspeed-file",
        DEEPSPEED + "  zero_stage: 2\n",
        DEEPSPEED + "  zero3_init_flag: true\n",
    ),
    ("keys-beside-deepspeed-file", DEEPSPEED + "mixed_precision: bf16\n", DEEPSPEED),
    ("file-without-kind", "compute_environment: LOCAL_MACHINE\nnum_processes: 1\n", MULTI),
    ("file-without-count", MULTI.replace("num_processes: 4\n", ""), MULTI),
    ("file-precision", MULTI + "mixed_precision: no\n", MULTI + "mixed_precision: 'no'\n"),
    ("file-precision", MULTI + "mixed_precision: float16\n", MULTI + "mixed_precision: BF16\n"),
    (
        "file-dynamo-backend",
        MULTI + "dynamo_config:\n  dynamo_backend: INDUKTOR\n",
        MULTI + "dynamo_config:\n  dynamo_backend: INDUCTOR\n",
    ),
    (
        "file-wrap-policy",
        FSDP + "  fsdp_auto_wrap_policy: TRANSFORMER_WRAP\n",
        FSDP + "  fsdp_auto_wrap_policy: transformer_based_wrap\n",
    ),
    (
        "file-least-parameters",
        FSDP + f"{BY_SIZE}  fsdp_min_num_params: 100000000.0\n",
        FSDP + f"{BY_SIZE}  fsdp_min_num_params: 100000000\n",
    ),
    (
        "file-least-parameters",
        FSDP + f"{BY_SIZE}  fsdp_min_num_params: 1e8\n",
        FSDP + f"{BY_SIZE}  fsdp_min_num_params: '100_000_000'\n",
    ),
    (
        "file-least-parameters",
        FSDP + f"{BY_SIZE}  min_num_params: 1.0e+8\n",
        FSDP + "  fsdp_auto_wrap_policy: NO_WRAP\n  fsdp_min_num_params: 1.0e+8\n",
    ),
    (
        "file-sharding-strategy",
        FSDP + "  fsdp_sharding_strategy: FULLY_SHARD\n",
        FSDP + "  fsdp_sharding_strategy: 1\n",
    ),
    (
        "file-prefetch",
        FSDP + "  fsdp_backward_prefetch: PRE\n",
        FSDP + "  fsdp_backward_prefetch: BACKWARD_PRE\n",
    ),
    (
        "file-state-dict",
        FSDP + "  fsdp_state_dict_type: SHARDED\n",
        FSDP + "  fsdp_state_dict_type: SHARDED_STATE_DICT\n",
    ),
    (
        "file-reshard-no-truth",
        FSDP + "  fsdp_version: 2\n  fsdp_reshard_after_forward: FULL_SHARD\n",
        FSDP + "  fsdp_version: 2\n  fsdp_reshard_after_forward: true\n",
    ),
    (
        "file-local-state",
        FSDP + "  fsdp_version: 2\n  fsdp_state_dict_type: LOCAL_STATE_DICT\n",
        FSDP + "  fsdp_version: 1\n  fsdp_state_dict_type: LOCAL_STATE_DICT\n",
    ),
    (
        "file-loads-alone",
        FSDP + "  fsdp_cpu_ram_efficient_loading: true\n  fsdp_sync_module_states: false\n",
        FSDP + "  fsdp_cpu_ram_efficient_loading: true\n  fsdp_sync_module_states: true\n",
    ),
    (
        "file-offloads-nothing",
        FSDP + "  fsdp_version: 2\n  fsdp_activation_checkpointing_offload: true\n",
        FSDP + "  fsdp_version: 2\n  fsdp_activation_checkpointing_offload: true\n"
        "  fsdp_activation_checkpointing: true\n",
    ),
    (
        "size-below-one",
        FSDP + "  fsdp_version: 2\nparallelism_config:\n  parallelism_config_tp_size: 0\n",
        FSDP + "  fsdp_version: 2\nparallelism_config:\n  parallelism_config_tp_size: 4\n",
    ),
    (
        "sizes-against-processes",
        FSDP + "  fsdp_version: 2\nparallelism_config:\n  parallelism_config_tp_size: 8\n",
        FSDP + "  fsdp_version: 2\nparallelism_config:\n  parallelism_config_tp_size: 2\n"
        "  parallelism_config_dp_shard_size: 2\n",
    ),
    (
        "file-cp-backend",
        FSDP + "parallelism_config:\n  parallelism_config_cp_backend: ring\n",
        FSDP + "parallelism_config:\n  parallelism_config_cp_backend: torch\n",
    ),
    (
        "file-sp-backend",
        FSDP + "parallelism_config:\n  parallelism_config_sp_backend: ulysses\n",
        FSDP + "parallelism_config:\n  parallelism_config_sp_backend: deepspeed\n",
    ),
    (
        "context-and-sequence",
        FSDP + "parallelism_config:\n  parallelism_config_cp_size: 2\n"
        "  parallelism_config_sp_size: 2\n",
        FSDP + "parallelism_config:\n  parallelism_config_cp_size: 4\n",
    ),
    (
        "tensors-beside-replicas",
        FSDP + "parallelism_config:\n  parallelism_config_tp_size: 2\n"
        "  parallelism_config_dp_replicate_size: 2\n",
        FSDP + "parallelism_config:\n  parallelism_config_tp_size: 2\n"
        "  parallelism_config_dp_shard_size: 2\n",
    ),
)


@pytest.mark.parametrize(("rule", "refused", "taken"), FILES)
def test_a_rule_of_the_file(rule: str, refused: str, taken: str, tmp_path: Path) -> None:
    (message,) = told(tmp_path / "bad", file=refused)
    assert message.startswith(mend_of(rule))
    assert message.endswith("accelerate refuses the file (Accelerate 1.15.0)")
    assert told(tmp_path / "good", file=taken) == []


def test_a_deepspeed_file_needs_its_stages(tmp_path: Path) -> None:
    bare = {"train_micro_batch_size_per_gpu": 1}
    (message,) = told(tmp_path / "bad", file=DEEPSPEED, deepspeed=bare)
    assert message.startswith(mend_of("deepspeed-file-without-zero"))
    assert told(tmp_path / "good", file=DEEPSPEED) == []


def test_the_precision_of_the_command_is_that_of_the_deepspeed_file(tmp_path: Path) -> None:
    half = {**ZERO, "bf16": {"enabled": True}}
    (message,) = told(tmp_path / "bad", "--mixed_precision fp16", DEEPSPEED, deepspeed=half)
    assert message.startswith(mend_of("precision-against-deepspeed-file"))
    assert told(tmp_path / "good", "--mixed_precision bf16", DEEPSPEED, deepspeed=half) == []


@pytest.mark.parametrize(
    ("flags", "file"),
    [
        ("--num_processes 4", MULTI.replace("num_processes: 4\n", "")),
        ('--num_processes "$N"', MULTI.replace("num_processes: 4\n", "")),
        ("--mixed_precision bf16", MULTI + "mixed_precision: no\n"),
        ("--fsdp_sharding_strategy FULL_SHARD", FSDP + "  fsdp_sharding_strategy: other\n"),
        ("--multi_gpu", DEEPSPEED + "  zero_stage: 2\n"),
        ('--num_machines "$N" --machine_rank 3', ""),
        ("--multi_gpu --num_processes $N", ""),
        ("$FLAGS --num_machines 2", MULTI),
    ],
)
def test_what_the_command_says_counts(flags: str, file: str, tmp_path: Path) -> None:
    assert told(tmp_path, flags, file) == []


@pytest.mark.parametrize(
    ("file", "version"),
    [
        (FSDP + "  fsdp_auto_wrap_policy: TRANSFORMER_WRAP\n", "0.30.1"),
        ("compute_environment: LOCAL_MACHINE\nnum_processes: 1\n", "0.30.1"),
    ],
)
def test_a_release_without_the_rule_is_silent(file: str, version: str, tmp_path: Path) -> None:
    assert told(tmp_path, file=file, version=version) == []


@pytest.mark.parametrize("version", ["0.26.1", "1.1.1", "1.12.0"])
def test_the_least_parameters_of_the_launcher_were_a_float(version: str, tmp_path: Path) -> None:
    (message,) = told(tmp_path / "a", file=FSDP + BY_SIZE, version=version)
    assert message.startswith(mend_of("file-without-least-parameters"))
    given = FSDP + BY_SIZE + "  fsdp_min_num_params: 2000\n"
    assert told(tmp_path / "b", file=given, version=version) == []
    assert told(tmp_path / "c", "--fsdp_min_num_params 9", FSDP + BY_SIZE, version=version) == []
    assert told(tmp_path / "d", file=FSDP + BY_SIZE, version="1.13.0") == []


@pytest.mark.parametrize("version", ["0.26.1", "1.1.1", "1.15.0"])
def test_least_parameters_with_a_point_are_told_at_their_line(version: str, tmp_path: Path) -> None:
    file = FSDP + BY_SIZE + "  fsdp_min_num_params: 100000000.0\n"
    files = {
        "train.py": SCRIPT,
        "run.sh": "accelerate launch --config_file acc.yaml train.py\n",
        "requirements.txt": f"accelerate=={version}\n",
        "acc.yaml": file,
    }
    (found,) = findings(runs_of(tmp_path, files), "GPU024")
    assert (found.location.path, found.location.line) == ("acc.yaml", file.count("\n"))


# --- constructors -------------------------------------------------------------------------

MADE = """\
from accelerate import Accelerator, DeepSpeedPlugin, FullyShardedDataParallelPlugin
from accelerate.utils import GradientAccumulationPlugin, TorchDynamoPlugin

{}
for batch in loader:
    accelerator.backward(model(batch))
    optimizer.step()
"""
CALLS: tuple[tuple[str, str, str], ...] = (
    (
        "dynamo-twice",
        "Accelerator(dynamo_backend='inductor', dynamo_plugin=TorchDynamoPlugin())",
        "Accelerator(dynamo_backend='inductor', dynamo_plugin=None)",
    ),
    (
        "deepspeed-plugins-twice",
        "Accelerator(deepspeed_plugin=DeepSpeedPlugin(), "
        "deepspeed_plugins=dict(a=DeepSpeedPlugin()))",
        "Accelerator(deepspeed_plugin=DeepSpeedPlugin())",
    ),
    (
        "accumulation-twice",
        "Accelerator(gradient_accumulation_steps=2, "
        "gradient_accumulation_plugin=GradientAccumulationPlugin(num_steps=2))",
        "Accelerator(gradient_accumulation_steps=1, "
        "gradient_accumulation_plugin=GradientAccumulationPlugin(num_steps=2))",
    ),
    (
        "plugin-prefetch",
        "FullyShardedDataParallelPlugin(fsdp_version=2, forward_prefetch=True)",
        "FullyShardedDataParallelPlugin(fsdp_version=1, forward_prefetch=True)",
    ),
    (
        "plugin-reshard",
        "FullyShardedDataParallelPlugin(fsdp_version=1, reshard_after_forward=True)",
        "FullyShardedDataParallelPlugin(fsdp_version=2, reshard_after_forward=True)",
    ),
    (
        "plugin-reshard",
        "FullyShardedDataParallelPlugin(fsdp_version=2, reshard_after_forward='FULL_SHARD')",
        "FullyShardedDataParallelPlugin(reshard_after_forward=True)",
    ),
    (
        "plugin-local-state",
        "FullyShardedDataParallelPlugin(fsdp_version=2, state_dict_type='local_state_dict')",
        "FullyShardedDataParallelPlugin(fsdp_version=2, state_dict_type='full_state_dict')",
    ),
    (
        "plugin-wrap-policy",
        "FullyShardedDataParallelPlugin(auto_wrap_policy='transformer')",
        "FullyShardedDataParallelPlugin(auto_wrap_policy=policy)",
    ),
    (
        "plugin-least-parameters",
        "FullyShardedDataParallelPlugin(auto_wrap_policy='size_based_wrap', min_num_params=1e8)",
        "FullyShardedDataParallelPlugin(auto_wrap_policy='size_based_wrap', min_num_params=10)",
    ),
    (
        "plugin-offload",
        "FullyShardedDataParallelPlugin(fsdp_version=1, activation_checkpointing_offload=True)",
        "FullyShardedDataParallelPlugin(fsdp_version=2, activation_checkpointing=True, "
        "activation_checkpointing_offload=True)",
    ),
)


def made(statement: str) -> list[str]:
    """What is said of a script that makes these objects."""
    runs = runs_alone(MADE.format(statement), accelerate="1.15.0")
    assert runs
    return [f.message for f in findings(runs, "GPU024")]


@pytest.mark.parametrize(("rule", "refused", "taken"), CALLS)
def test_a_rule_of_a_constructor(rule: str, refused: str, taken: str) -> None:
    (message,) = made(refused)
    assert message.startswith(mend_of(rule))
    assert made(taken) == []


def test_each_rule_has_a_case() -> None:
    names = {rule for rule, *_ in (*FLAGS, *FILES, *CALLS)}
    names |= {"deepspeed-file-without-zero", "precision-against-deepspeed-file"}
    names |= {"file-without-least-parameters"}
    assert {rule.name for rule in refusals_of("accelerate")} == names


# --- keys of the sections -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("file", "mend"),
    [
        (FSDP + "  fsdp_auto_wrap_polcy: NO_WRAP\n", "write fsdp_auto_wrap_policy"),
        (
            DEEPSPEED.replace("deepspeed_config_file: ds.json", "zero_stages: 3"),
            "write zero_stage",
        ),
    ],
)
def test_a_misspelt_key_of_a_section_is_ignored(file: str, mend: str, tmp_path: Path) -> None:
    (message,) = told(tmp_path, file=file, code="GPU005")
    assert message.startswith(f"{mend}: Accelerate 1.15.0 has no parameter")
    assert message.endswith("and ignores it")


@pytest.mark.parametrize(
    "file",
    [
        FSDP + "  fsdp_ignored_modules: head\n  fsdp_offload_params: false\n  own: 1\n",
        FSDP + "  offload_params: false\n  version: 2\n",
        DEEPSPEED + "  deepspeed_multinode_launcher: standard\n  zero3_init_flag: true\n",
        MULTI + "downcast_bf16: 'no'\nrdzv_backend: static\nsame_network: true\n",
    ],
)
def test_keys_of_sections_that_are_known_or_others(file: str, tmp_path: Path) -> None:
    assert told(tmp_path, file=file, code="GPU005") == []
