"""Inference engines of runs: which one, in which mode, and its parameters in every front end."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Optional

import pytest
from checks_support import findings, runs_of

from flake8_gpu_training.checks.registry import all_checks
from flake8_gpu_training.frameworks.engine_of import engine_of
from flake8_gpu_training.frameworks.engines import Engine, Mode
from flake8_gpu_training.verdicts import judge

QWEN = "Qwen/Qwen3-8B"


def engine(root: Path, files: Mapping[str, str]) -> Engine:
    """The engine of the first run that has one."""
    found = [engine_of(run) for run in runs_of(root, files)]
    return next(one for one in found if one is not None)


def served(flags: str, pin: str = "", model: str = QWEN) -> dict[str, str]:
    files = {"serve.sh": f"vllm serve {model} {flags}\n"}
    return {**files, "requirements.txt": f"vllm=={pin}\n"} if pin else files


POD = """\
apiVersion: v1
kind: Pod
metadata: {name: server}
spec:
  containers:
  - name: vllm
    image: vllm/vllm-openai:v0.19.1
    args: ["--model", "Qwen/Qwen3-8B", "--max-model-len", "8192", "--speculative-config",
           '{"method": "ngram", "num_speculative_tokens": 4}']
"""
COMPOSE = """\
services:
  vllm:
    image: vllm/vllm-openai:v0.19.1
    command: >-
      --model Qwen/Qwen3-8B --max-model-len 8192
      --speculative-config '{"method": "ngram", "num_speculative_tokens": 4}'
"""
SLURM = """\
#!/bin/bash
#SBATCH --gres=gpu:h100:1
srun vllm serve Qwen/Qwen3-8B --max-model-len=8192 \\
    --speculative-config.method ngram --speculative-config.num_speculative_tokens 4
"""
OFFLINE = """\
from vllm import LLM

llm = LLM(
    "Qwen/Qwen3-8B",
    max_model_len=8192,
    speculative_config={"method": "ngram", "num_speculative_tokens": 4},
)
print(llm.generate("a"))
"""
YAML = """\
model: Qwen/Qwen3-8B
max-model-len: 8192
speculative-config:
  method: ngram
  num_speculative_tokens: 4
"""
DOCKERFILE = """\
FROM vllm/vllm-openai:v0.19.1
CMD ["--model", "Qwen/Qwen3-8B", "--max-model-len", "8192", "--speculative-config", \
"{\\"method\\": \\"ngram\\", \\"num_speculative_tokens\\": 4}"]
"""
FRONTS = {
    "flags": served("--max-model-len 8192 -sc.method ngram -sc.num_speculative_tokens 4"),
    "underscores": served(
        "--max_model_len 8192 --speculative_config.method ngram "
        "--speculative_config.num_speculative_tokens=4"
    ),
    "kubernetes": {"pod.yaml": POD},
    "compose": {"docker-compose.yml": COMPOSE},
    "slurm": {"serve.slurm": SLURM},
    "python": {"generate.py": OFFLINE},
    "yaml": {"serve.sh": "vllm serve --config serve.yaml\n", "serve.yaml": YAML},
    "dockerfile": {"Dockerfile": DOCKERFILE},
}


@pytest.mark.parametrize("front", FRONTS)
def test_parameters_are_read_in_every_front_end(front: str, tmp_path: Path) -> None:
    found = engine(tmp_path, FRONTS[front])
    assert found.name == "vllm"
    assert found.option("max_model_len").value == 8192
    method = found.entry("speculative_config", "method")
    tokens = found.entry("speculative_config", "num_speculative_tokens")
    assert method is not None
    assert method.value == "ngram"
    assert tokens is not None
    assert tokens.value == 4
    assert method.location is not None


@pytest.mark.parametrize(
    ("flags", "name", "value"),
    [
        ("-tp 4", "tensor_parallel_size", 4),
        ("-dp 2", "data_parallel_size", 2),
        ("--no-enable-prefix-caching", "enable_prefix_caching", False),
        ("--enable-prefix-caching", "enable_prefix_caching", True),
        ("-O 3", "optimization_level", 3),
    ],
)
def test_short_and_negated_flags(flags: str, name: str, value: Any, tmp_path: Path) -> None:
    assert engine(tmp_path, served(flags)).option(name).value == value


@pytest.mark.parametrize(
    ("pin", "name", "value"),
    [
        ("0.7.3", "enable_prefix_caching", False),
        ("0.8.5", "enable_prefix_caching", True),
        ("0.33.0", "enable_prefix_caching", True),
        ("0.10.2", "enable_chunked_prefill", True),
        ("0.19.1", "gpu_memory_utilization", 0.9),
        ("0.33.0", "gpu_memory_utilization", 0.92),
        ("", "gpu_memory_utilization", 0.92),
    ],
)
def test_defaults_are_those_of_the_release(pin: str, name: str, value: Any, tmp_path: Path) -> None:
    found = engine(tmp_path, served("--port 8000", pin)).option(name)
    assert found.value == value
    assert f"vLLM {pin}"[:8] in found.note
    assert found.location is None


def test_a_variable_may_choose_the_older_engine(tmp_path: Path) -> None:
    files = served("", "0.9.2")
    v0 = {**files, "serve.sh": f"VLLM_USE_V1=0 {files['serve.sh']}"}
    assert engine(tmp_path / "a", files).option("enable_prefix_caching").value is True
    assert engine(tmp_path / "b", v0).option("enable_prefix_caching").value is False


@pytest.mark.parametrize(
    ("gpu", "tokens", "sequences"),
    [("h100-80g", 8192, 1024), ("a100-80g", 2048, 256), ("l4", 2048, 256)],
)
def test_batches_depend_on_the_gpu(gpu: str, tokens: int, sequences: int, tmp_path: Path) -> None:
    script = f"#!/bin/bash\n#SBATCH --gres=gpu:{gpu}:1\nvllm serve {QWEN}\n"
    found = engine(tmp_path, {"serve.slurm": script})
    assert found.option("max_num_batched_tokens").value == tokens
    assert found.option("max_num_seqs").value == sequences


def test_of_an_unknown_gpu_the_batches_are_not_known(tmp_path: Path) -> None:
    assert not engine(tmp_path, served("")).option("max_num_seqs").known


@pytest.mark.parametrize(
    ("pin", "name", "takes"),
    [
        ("0.17.1", "swap_space", True),
        ("0.33.0", "swap_space", False),
        ("0.10.2", "kv_offloading_size", False),
        ("0.33.0", "kv_offloading_size", True),
        ("0.4.2", "kv_offloading_size", False),
    ],
)
def test_advice_may_name_what_the_release_has(
    pin: str, name: str, takes: bool, tmp_path: Path
) -> None:
    assert engine(tmp_path, served("", pin)).takes(name) is takes


TRAINER = """\
from trl import GRPOConfig, GRPOTrainer

args = GRPOConfig(output_dir="out", use_vllm=True, vllm_mode="{mode}"{more})
trainer = GRPOTrainer(model="Qwen/Qwen3-8B", args=args, reward_funcs=score, train_dataset=data)
trainer.train()
"""
LOOP = """\
import torch
from vllm import LLM

llm = LLM("Qwen/Qwen3-8B", gpu_memory_utilization=0.4)
for batch in loader:
    texts = llm.generate(batch)
    loss = model(texts).loss
    loss.backward()
    optimizer.step()
"""
UPDATED = """\
from vllm import LLM

llm = LLM("Qwen/Qwen3-8B", worker_extension_cls="rlhf.Extension")
llm.collective_rpc("update_weights_from_ipc_handles", args=(handles,))
"""
VERL = (
    "python3 -m verl.trainer.main_ppo algorithm.adv_estimator=grpo "
    "actor_rollout_ref.model.path=Qwen/Qwen3-8B actor_rollout_ref.rollout.name={name} "
    "actor_rollout_ref.rollout.gpu_memory_utilization=0.6 "
    "+actor_rollout_ref.rollout.engine_kwargs.vllm.kv_cache_dtype=fp8\n"
)
OPENRLHF = (
    "python3 -m openrlhf.cli.train_ppo_ray --actor.model_name_or_path Qwen/Qwen3-8B "
    "--train.colocate_all --vllm.num_engines 4 --vllm.tensor_parallel_size 2 "
    "--vllm.enable_sleep\n"
)
OLD_OPENRLHF = (
    'ray job submit --address="http://127.0.0.1:8265" -- python3 -m openrlhf.cli.train_ppo_ray '
    "--pretrain Qwen/Qwen3-8B --vllm_num_engines 2 --vllm_tensor_parallel_size 4 "
    "--enforce_eager\n"
)
SWIFT = "swift rlhf --rlhf_type grpo --model Qwen/Qwen3-8B --use_vllm true {more}\n"
MODES: dict[str, tuple[dict[str, str], Mode, str]] = {
    "serve": (served(""), Mode.SERVE, ""),
    "offline": ({"generate.py": OFFLINE}, Mode.OFFLINE, ""),
    "router": (
        {"run.sh": "vllm-router --service-discovery static --static-backends http://a:8000\n"},
        Mode.ROUTER,
        "",
    ),
    "router's module": (
        {"run.sh": "python3 -m vllm_router.app --port 8001 --routing-logic session\n"},
        Mode.ROUTER,
        "",
    ),
    "sleeping server": (served("--enable-sleep-mode"), Mode.RLHF_SERVER, ""),
    "transfer": (served('--weight-transfer-config \'{"backend": "nccl"}\''), Mode.RLHF_SERVER, ""),
    "updated": ({"generate.py": UPDATED}, Mode.RLHF_COLOCATE, ""),
    "trl server": ({"run.sh": f"trl vllm-serve --model {QWEN}\n"}, Mode.RLHF_SERVER, "trl-serve"),
    "trl colocate": (
        {"train.py": TRAINER.format(mode="colocate", more="")},
        Mode.RLHF_COLOCATE,
        "trl",
    ),
    "trl beside a server": (
        {"train.py": TRAINER.format(mode="server", more="")},
        Mode.RLHF_SERVER,
        "trl",
    ),
    "own loop": ({"train.py": LOOP}, Mode.RLHF_COLOCATE, ""),
    "swift colocate": (
        {"run.sh": SWIFT.format(more="--vllm_mode colocate")},
        Mode.RLHF_COLOCATE,
        "swift",
    ),
    "swift rollout": (
        {"run.sh": f"swift rollout --model {QWEN} --vllm_tensor_parallel_size 2\n"},
        Mode.RLHF_SERVER,
        "swift",
    ),
    "swift infer": (
        {"run.sh": f"swift infer --model {QWEN} --infer_backend vllm\n"},
        Mode.INTEGRATED,
        "swift",
    ),
    "llamafactory": (
        {"run.sh": f"llamafactory-cli api --model_name_or_path {QWEN} --infer_backend vllm\n"},
        Mode.INTEGRATED,
        "llamafactory",
    ),
    "openrlhf": ({"run.sh": OPENRLHF}, Mode.RLHF_COLOCATE, "openrlhf"),
    "openrlhf before 0.10": ({"run.sh": OLD_OPENRLHF}, Mode.RLHF_SERVER, "openrlhf"),
    "verl": ({"run.sh": VERL.format(name="vllm")}, Mode.RLHF_COLOCATE, "verl"),
}


@pytest.mark.parametrize("case", MODES)
def test_modes_and_hosts(case: str, tmp_path: Path) -> None:
    files, mode, host = MODES[case]
    found = engine(tmp_path, files)
    assert (found.name, found.mode) == ("vllm", mode)
    assert (found.host.id if found.host is not None else "") == host


def test_another_jobs_engine_keeps_its_parameters_to_itself(tmp_path: Path) -> None:
    found = engine(tmp_path, {"train.py": TRAINER.format(mode="server", more="")})
    assert found.is_remote
    assert not found.option("gpu_memory_utilization").known
    assert not found.takes("gpu_memory_utilization")


@pytest.mark.parametrize(
    ("case", "name", "value", "written"),
    [
        ("trl colocate", "gpu_memory_utilization", 0.3, "vllm_gpu_memory_utilization"),
        ("trl colocate", "max_num_batched_tokens", 4096, ""),
        ("verl", "gpu_memory_utilization", 0.6, "actor_rollout_ref.rollout.gpu_memory_utilization"),
        ("verl", "enable_sleep_mode", True, "actor_rollout_ref.rollout.free_cache_engine"),
        ("verl", "tensor_parallel_size", 2, ""),
        ("own loop", "gpu_memory_utilization", 0.4, "gpu_memory_utilization"),
        ("openrlhf", "tensor_parallel_size", 2, "vllm.tensor_parallel_size"),
        ("openrlhf", "enable_sleep_mode", True, "vllm.enable_sleep"),
        ("openrlhf", "gpu_memory_utilization", 0.95, "vllm.gpu_memory_utilization"),
        ("openrlhf before 0.10", "tensor_parallel_size", 4, "vllm_tensor_parallel_size"),
        ("openrlhf before 0.10", "enforce_eager", True, "enforce_eager"),
        ("llamafactory", "max_model_len", 4096, "vllm_maxlen"),
        ("swift rollout", "tensor_parallel_size", 2, "vllm_tensor_parallel_size"),
        ("swift infer", "enable_prefix_caching", True, "vllm_enable_prefix_caching"),
    ],
)
def test_hosts_have_names_and_defaults_of_their_own(
    case: str, name: str, value: Any, written: str, tmp_path: Path
) -> None:
    found = engine(tmp_path, MODES[case][0])
    assert found.option(name).value == value
    assert not written or list(found.parameters(**{name: value})) == [written]


def test_a_parameter_of_the_engine_within_one_of_the_host(tmp_path: Path) -> None:
    kwargs = '--vllm_engine_kwargs \'{"kv_cache_dtype": "fp8"}\''
    found = engine(tmp_path / "a", {"run.sh": SWIFT.format(more=f"--vllm_mode colocate {kwargs}")})
    assert found.option("kv_cache_dtype").value == "fp8"
    assert engine(tmp_path / "b", MODES["verl"][0]).option("kv_cache_dtype").value == "fp8"
    api = f"llamafactory-cli api --model_name_or_path {QWEN} --infer_backend vllm"
    files = {"run.sh": f'{api} --vllm_config \'{{"kv_cache_dtype": "fp8"}}\'\n'}
    assert engine(tmp_path / "c", files).option("kv_cache_dtype").value == "fp8"


def none_of(root: Path, files: Mapping[str, str]) -> Optional[Engine]:
    return next((e for run in runs_of(root, files) if (e := engine_of(run)) is not None), None)


@pytest.mark.parametrize(
    "files",
    [
        {"run.sh": f"swift infer --model {QWEN}\n"},
        {"run.sh": SWIFT.format(more="").replace("--use_vllm true", "--use_vllm false")},
        {"train.py": TRAINER.format(mode="colocate", more="").replace("=True", "=False")},
        {"run.sh": f"llamafactory-cli api --model_name_or_path {QWEN}\n"},
        {"run.sh": VERL.format(name="hf")},
    ],
)
def test_runs_without_an_engine(files: Mapping[str, str], tmp_path: Path) -> None:
    assert none_of(tmp_path, files) is None


@pytest.mark.parametrize(
    ("files", "mode"),
    [
        ({"run.sh": f"python -m sglang.launch_server --model-path {QWEN} --tp 2\n"}, Mode.SERVE),
        ({"run.sh": VERL.format(name="sglang")}, Mode.RLHF_COLOCATE),
        (
            {"run.sh": f"swift infer --model {QWEN} --infer_backend sglang\n"},
            Mode.INTEGRATED,
        ),
    ],
)
def test_sglang_is_told_by_the_same_signs(
    files: Mapping[str, str], mode: Mode, tmp_path: Path
) -> None:
    found = engine(tmp_path, files)
    assert (found.name, found.mode) == ("sglang", mode)


SLIME = """\
SGLANG_ARGS=(
   --rollout-num-gpus-per-engine 2
   --sglang-mem-fraction-static 0.7
   --sglang-disable-cuda-graph
)
ray job submit --address=http://127.0.0.1:8265 -- python3 train.py \\
   --actor-num-gpus-per-node 8 {more} --hf-checkpoint /root/Qwen3-4B ${{SGLANG_ARGS[@]}} {rest}
"""
SLIME_PROGRAM = """\
from sglang.srt.server_args import ServerArgs
from slime.utils.arguments import parse_args

args = parse_args()
server = ServerArgs(**vars(args))
"""


def of_slime(more: str, rest: str = "") -> dict[str, str]:
    return {"run.sh": SLIME.format(more=more, rest=rest), "train.py": SLIME_PROGRAM}


@pytest.mark.parametrize(
    ("more", "mode", "saver"),
    [
        ("--colocate", Mode.RLHF_COLOCATE, True),
        ("--colocate ${MODEL_ARGS[@]}", Mode.RLHF_COLOCATE, True),
        ("", Mode.RLHF_SERVER, False),
        ("${MODEL_ARGS[@]}", Mode.RLHF_SERVER, False),
    ],
)
def test_flags_of_slime_are_those_of_its_engine(
    more: str, mode: Mode, saver: bool, tmp_path: Path
) -> None:
    found = engine(tmp_path, of_slime(more))
    assert (found.name, found.mode) == ("sglang", mode)
    assert found.run.model.name == "/root/Qwen3-4B"
    values = ("tp_size", 2), ("mem_fraction_static", 0.7), ("disable_cuda_graph", True)
    for name, value in values:
        assert found.option(name).value == value
        assert found.option(name).location is not None
    assert found.option("enable_memory_saver").value is saver
    assert found.takes("chunked_prefill_size")
    assert not found.takes("enable_memory_saver")


def test_an_array_of_slime_that_is_not_read_leaves_the_rest_open(tmp_path: Path) -> None:
    more = "${MODEL_ARGS[@]} --wandb-key ${KEY} --eval-prompt-data aime $BASE/aime.jsonl"
    closed = engine(tmp_path / "a", of_slime("", more))
    opened = engine(tmp_path / "b", of_slime("", "${MORE_ARGS[@]}"))
    assert closed.option("disable_radix_cache").value is False
    assert not opened.option("disable_radix_cache").known


@pytest.mark.parametrize("name", ["EVAL_ARGS", "DISTRIBUTED_ARGS", "WANDB_ARGS"])
def test_an_array_named_for_other_flags_hides_none_of_the_engine(name: str, tmp_path: Path) -> None:
    found = engine(tmp_path, of_slime("", f"${{{name}[@]}}"))
    assert found.option("disable_radix_cache").value is False


@pytest.mark.parametrize(
    ("branch", "is_known"), [("--use-wandb", True), ("--sglang-disable-radix-cache", False)]
)
def test_an_array_of_a_branch_hides_what_one_of_its_values_has(
    branch: str, is_known: bool, tmp_path: Path
) -> None:
    files = of_slime("", "${MORE_ARGS[@]}")
    chosen = f'if [ -z "$KEY" ]; then MORE_ARGS=({branch}); else MORE_ARGS=(); fi\n'
    files["run.sh"] = chosen + files["run.sh"]
    assert engine(tmp_path, files).option("disable_radix_cache").known is is_known


@pytest.mark.parametrize(
    ("flag", "name"),
    [
        ("--sglang-expert-parallel-size 8", "ep_size"),
        ("--sglang-ep-size 8", "ep_size"),
        ("--sglang-data-parallel-size 8", "dp_size"),
        ("--sglang-pipeline-parallel-size 8", "pp_size"),
    ],
)
def test_slime_takes_each_name_that_the_engine_has_for_a_parameter(
    flag: str, name: str, tmp_path: Path
) -> None:
    found = engine(tmp_path, of_slime(flag)).written(name)
    assert found is not None
    assert (found.value, found.note) == (8, flag)


@pytest.mark.parametrize(
    ("sizes", "shown"), [("1 2 4", "1 2 4"), ("1 2 4 $(seq 8 8 64)", "1 2 4 8 … 64")]
)
def test_all_values_of_a_flag_of_slime_are_shown(sizes: str, shown: str, tmp_path: Path) -> None:
    flag = f"--sglang-cuda-graph-bs {sizes} --colocate"
    found = engine(tmp_path, of_slime(flag)).written("cuda_graph_bs")
    assert found is not None
    assert (found.value, found.note) == (1, f"--sglang-cuda-graph-bs {shown}")


CUT = "   --actor-num-gpus-per-node 8 --colocate --buffer $(( 2 * 1024 ))\n   {rest}\n"


def test_a_command_of_slime_without_a_checkpoint_is_read_as_it_is_meant(tmp_path: Path) -> None:
    files = of_slime("")
    head, flags, _ = files["run.sh"].partition("   --actor-num-gpus-per-node")
    files["run.sh"] = (
        "CKPT_ARGS=(--hf-checkpoint /root/Qwen3-4B)\n"
        + head
        + CUT.format(rest="${CKPT_ARGS[@]} \\\n   ${SGLANG_ARGS[@]}")
    )
    found = engine(tmp_path, files)
    assert flags
    assert (found.mode, found.run.model.name) == (Mode.RLHF_COLOCATE, "/root/Qwen3-4B")
    assert found.option("mem_fraction_static").value == 0.7
    assert found.option("disable_radix_cache").value is False


def test_a_program_in_an_array_is_no_part_of_the_command_before_it(tmp_path: Path) -> None:
    files = of_slime("")
    files["run.sh"] = "LAST=(echo done)\n" + files["run.sh"] + '   "${LAST[@]}"\n'
    run = runs_of(tmp_path, files)[0]
    assert not run.problems
    assert run.meant is None


@pytest.mark.parametrize("more", ["--debug-train-only", "--load-debug-rollout-data a.pt"])
def test_slime_starts_no_engine_where_it_only_trains(tmp_path: Path, more: str) -> None:
    run = runs_of(tmp_path, of_slime(more))[0]
    assert engine_of(run) is None


def test_the_model_of_slime_is_named_in_a_folder_that_is_not_known(tmp_path: Path) -> None:
    files = of_slime("--colocate")
    files["run.sh"] = files["run.sh"].replace("/root/Qwen3-4B", "$BASE/Qwen3-30B-A3B")
    assert engine(tmp_path, files).run.model.name == "Qwen3-30B-A3B"


def test_the_model_of_slime_is_the_only_value_that_a_folder_may_have(tmp_path: Path) -> None:
    files = of_slime("--colocate")
    folder = ". ./elsewhere.sh\nMODEL_DIR=${MODEL_DIR:-/root/models/Qwen3-4B}\n"
    files["run.sh"] = folder + files["run.sh"].replace("/root/Qwen3-4B", "${MODEL_DIR}")
    assert engine(tmp_path, files).run.model.name == "/root/models/Qwen3-4B"


def test_rollouts_of_verl_release_their_memory_by_default(tmp_path: Path) -> None:
    share = "actor_rollout_ref.rollout.gpu_memory_utilization=0.6 "
    found = engine(tmp_path, {"run.sh": VERL.replace(share, "").format(name="sglang")})
    assert found.option("enable_memory_saver").value is True
    assert found.option("mem_fraction_static").value == 0.5
    assert found.takes("enable_memory_saver")


@pytest.mark.parametrize(
    ("module", "mode"),
    [
        ("sglang_router.launch_router", Mode.ROUTER),
        ("sglang_router.launch_server", Mode.SERVE),
    ],
)
def test_a_router_may_start_its_servers(module: str, mode: Mode, tmp_path: Path) -> None:
    command = f"python -m {module} --model-path {QWEN} --dp-size 2 --router-policy random\n"
    assert engine(tmp_path, {"run.sh": command}).mode is mode


@pytest.mark.parametrize("pin", ["0.3.6.post3", "0.4.6", "0.5.3", "0.5.23"])
@pytest.mark.parametrize("flag", ["--tp", "--tp-size", "--tensor-parallel-size"])
def test_every_way_to_write_the_ranks_of_sglang_is_read(
    flag: str, pin: str, tmp_path: Path
) -> None:
    command = f"python -m sglang.launch_server --model-path {QWEN} {flag} 4\n"
    found = engine(tmp_path, {"run.sh": command, "requirements.txt": f"sglang=={pin}\n"})
    assert found.option("tp_size").value == 4
    assert found.takes("dp_size")


@pytest.mark.parametrize(
    ("flag", "name", "value"),
    [
        ("--speculative-algo NEXTN", "speculative_algorithm", "NEXTN"),
        ("--mem-frac 0.95", "mem_fraction_static", 0.95),
        ("--context-len 8192", "context_length", 8192),
    ],
)
def test_a_unique_beginning_of_a_flag_is_the_flag(
    flag: str, name: str, value: Any, tmp_path: Path
) -> None:
    command = f"python -m sglang.launch_server --model-path {QWEN} {flag}\n"
    found = engine(tmp_path, {"run.sh": command}).option(name)
    assert found.value == value
    assert found.location is not None


@pytest.mark.parametrize(
    ("flag", "pin", "advice"),
    [
        ("--cuda-graph-max-bs 64", "", "--cuda-graph-max-bs-decode"),
        ("--cuda-graph-bs 1 2 4", "", "--cuda-graph-bs-decode"),
        ("--nsa-decode-backend fa3", "", "--dsa-decode-backend"),
        ("--disable-piecewise-cuda-graph", "", "--disable-prefill-cuda-graph"),
        ("--cuda-graph-max-bs 64", "0.5.3", ""),
        ("--cuda-graph-max-bs 64", "0.5.15", ""),
        ("--cuda-graph-max-bs-decode 64", "", ""),
        ("--cuda-graph-max 64", "", ""),
    ],
)
def test_a_former_flag_of_sglang_is_no_beginning_of_its_successors(
    flag: str, pin: str, advice: str, tmp_path: Path
) -> None:
    command = f"python -m sglang.launch_server --model-path {QWEN} {flag}\n"
    files = {"run.sh": command}
    if pin:
        files["requirements.txt"] = f"sglang=={pin}\n"
    run = runs_of(tmp_path, files)[0]
    found = [one for code in ("GPU005", "GPU006", "GPU007") for one in findings((run,), code)]
    assert [advice in one.message for one in found] == [True] * bool(advice)


GRPO = """\
from trl import GRPOConfig, GRPOTrainer

args = GRPOConfig(output_dir="o", use_vllm=True, {})
GRPOTrainer(model="Qwen/Qwen2.5-1.5B", reward_funcs=r, args=args, train_dataset=d).train()
"""


@pytest.mark.parametrize(
    ("trl", "processes", "mode", "is_remote"),
    [
        ("trl>=0.15.0,<0.16.0", 1, Mode.RLHF_COLOCATE, False),
        ("trl==0.15.2", 7, Mode.RLHF_SERVER, False),
        ("trl==0.17.0", 7, Mode.RLHF_SERVER, True),
        ("trl==0.21.0", 7, Mode.RLHF_SERVER, True),
        ("trl==1.0.0", 7, Mode.RLHF_COLOCATE, False),
        ("trl", 7, None, True),
    ],
)
def test_where_trl_has_its_engine_by_release(
    tmp_path: Path, trl: str, processes: int, mode: Optional[Mode], is_remote: bool
) -> None:
    script = f"#!/bin/bash\n#SBATCH --gres=gpu:a100:{processes}\n"
    found = engine(
        tmp_path,
        {
            "train.py": GRPO.format("report_to='none'"),
            "run.sh": f"{script}accelerate launch --num_processes {processes} train.py\n",
            "requirements.txt": f"{trl}\nvllm\n",
        },
    )
    assert (found.mode, found.is_remote) == (mode, is_remote)
    if "0.15" in trl:
        assert found.option("gpu_memory_utilization").value == 0.9
        assert found.option("enable_prefix_caching").value is True


ONLINE = """\
from trl.experimental.online_dpo import OnlineDPOConfig, OnlineDPOTrainer

args = OnlineDPOConfig(output_dir="o", use_vllm=True, vllm_mode="{}", max_new_tokens=128)
OnlineDPOTrainer(model="Qwen/Qwen2.5-1.5B", reward_funcs=r, args=args, train_dataset=d).train()
"""


def test_online_dpo_gives_the_engine_defaults_of_its_own(tmp_path: Path) -> None:
    found = engine(tmp_path, {"train.py": ONLINE.format("colocate")})
    assert found.option("gpu_memory_utilization").value == 0.55
    assert found.option("max_model_len").value == 512 + 128


def test_a_copy_of_a_named_release_of_trl_has_its_engine_where_the_release_has(
    tmp_path: Path,
) -> None:
    address = "git+https://github.com/huggingface/trl.git"
    files = {
        "train.py": GRPO.format("report_to='none'"),
        "requirements.txt": f"trl @ {address}@v0.18.0\nvllm\n",
    }
    found = engine(tmp_path, files)
    assert (found.mode, found.is_remote) == (Mode.RLHF_SERVER, True)
    files["requirements.txt"] = f"trl @ {address}\nvllm\n"
    assert engine(tmp_path / "newest", files).mode is None


OF_VERL = (
    "python3 -m verl.trainer.main_ppo algorithm.adv_estimator=grpo "
    "actor_rollout_ref.model.path=Qwen/Qwen3-0.6B trainer.n_gpus_per_node=2{}\n"
)


@pytest.mark.parametrize("pins", ["vllm==0.8.4\n", "verl==0.5.0\n"])
def test_older_releases_of_verl_sample_with_vllm_unless_told_otherwise(
    tmp_path: Path, pins: str
) -> None:
    files = {"run.sh": OF_VERL.format(""), "requirements.txt": pins}
    found = engine(tmp_path, files)
    assert found.name == "vllm"
    assert found.option("max_num_seqs").value == 1024
    assert "verl 0.5.0" in found.option("max_num_batched_tokens").note


@pytest.mark.parametrize("pins", ["vllm==0.12.0\n", "verl==0.7.0\n", ""])
def test_newer_releases_of_verl_ask_for_the_engine(tmp_path: Path, pins: str) -> None:
    runs = runs_of(tmp_path, {"run.sh": OF_VERL.format(""), "requirements.txt": pins})
    assert [engine_of(run) for run in runs] == [None]


@pytest.mark.parametrize(("pins", "version"), [("", (0, 24, 0)), ("vllm==0.12.0\n", (0, 12, 0))])
def test_verl_brings_the_vllm_that_its_release_asks_for(
    tmp_path: Path, pins: str, version: tuple[int, ...]
) -> None:
    named = OF_VERL.format(" actor_rollout_ref.rollout.name=vllm")
    found = engine(tmp_path, {"run.sh": named, "requirements.txt": pins})
    assert found.version == version


SEARCH = (
    "python3 -m verl.trainer.main_ppo --config-path={folder} --config-name='{name}' "
    "actor_rollout_ref.model.path=Qwen/Qwen3-0.6B actor_rollout_ref.rollout.name=sglang "
    "actor_rollout_ref.rollout.gpu_memory_utilization=0.55 trainer.n_gpus_per_node=2\n"
)


@pytest.mark.parametrize(
    ("folder", "name", "known"),
    [
        ("./verl/examples/sglang_multiturn/config", "search_multiturn_grpo", True),
        ("$PWD/examples/sglang_multiturn/config", "gsm8k_multiturn_grpo", True),
        ("./config", "ppo_megatron_trainer.yaml", True),
        ("./my/config", "search_multiturn_grpo", False),
        ("./config", "mine", False),
    ],
)
def test_configurations_of_verl_itself_say_nothing_of_the_engine(
    tmp_path: Path, folder: str, name: str, known: bool
) -> None:
    found = engine(tmp_path, {"run.sh": SEARCH.format(folder=folder, name=name)})
    assert found.option("disable_radix_cache").known is known
    sharded = found.run.value("fsdp") == "full_shard"
    assert sharded is (known and "megatron" not in name)


ALL = """\
import torch
from vllm import LLM

llm = LLM("Qwen/Qwen3-8B", tensor_parallel_size=torch.cuda.device_count())
print(llm.generate("a"))
"""


@pytest.mark.parametrize(
    ("directive", "status"), [("#SBATCH --gres=gpu:4", "enabled"), ("", "unknown")]
)
def test_tensor_parallelism_over_all_gpus(tmp_path: Path, directive: str, status: str) -> None:
    files = {"generate.py": ALL, "run.sh": f"#!/bin/bash\n{directive}\npython generate.py\n"}
    check = next(check for check in all_checks() if check.code == "GPU940")
    statuses = {
        v.judgement.status.value for run in runs_of(tmp_path, files) for v in judge(run, [check])
    }
    assert statuses == {status}
