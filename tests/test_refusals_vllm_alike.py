"""vLLM: options that need one another, exclude one another or have a range."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from checks_support import findings, runs_of

from flake8_gpu_training.frameworks.refusals.vllm_alike import ALIKE


def draft(**entries: object) -> str:
    return f"--speculative-config '{json.dumps(entries)}'"


def synthetic(**entries: object) -> str:
    return draft(
        method="ngram",
        num_speculative_tokens=2,
        rejection_sample_method="synthetic",
        **{f"synthetic_acceptance_{name}": value for name, value in entries.items()},
    )


def words(**entries: object) -> str:
    return draft(
        **{"model": "m", "method": "draft_model", "num_speculative_tokens": 2, **entries},
        use_heterogeneous_vocab=True,
    )


def fly(**entries: object) -> str:
    whole = {"method": "ngram", "num_speculative_tokens": 3, **entries}
    return draft(rejection_sample_method="fly", **whole)


def balance(**entries: object) -> str:
    flags = "--enable-eplb --enable-expert-parallel --tensor-parallel-size 2"
    return f"{flags} --eplb-config '{json.dumps(entries)}'"


PORT = "--grpc-port"
CASES = [
    ("synthetic-twice", synthetic(), synthetic(length=2), "give one of synthetic_acceptance_rates"),
    (
        "synthetic-rates",
        synthetic(rates=[0.5, 0.9]),
        synthetic(rates=[0.9, 0.5]),
        "give synthetic_acceptance_rates a number",
    ),
    (
        "synthetic-rates",
        synthetic(rates=[0.5]),
        synthetic(rates=[0.5, 0.5]),
        "give synthetic_acceptance_rates a number",
    ),
    ("synthetic-length", synthetic(length=4), synthetic(length=3), "set synthetic_acceptance_len"),
    (
        "synthetic-idle",
        draft(method="ngram", num_speculative_tokens=2, synthetic_acceptance_length=2),
        draft(method="ngram", num_speculative_tokens=2),
        "set rejection_sample_method to synthetic",
    ),
    ("vocabulary-method", words(method="ngram"), words(), "set method to draft_model"),
    (
        "vocabulary-sampled",
        words(draft_sample_method="probabilistic"),
        words(draft_sample_method="greedy"),
        "set draft_sample_method to greedy",
    ),
    (
        "vocabulary-reduced",
        words(use_local_argmax_reduction=True),
        words(use_local_argmax_reduction=False),
        "drop use_local_argmax_reduction",
    ),
    ("fly-states", fly(method="extract_hidden_states"), fly(), "drop rejection_sample_method"),
    ("fly-tokens", fly(num_speculative_tokens=1), fly(), "set num_speculative_tokens to at least"),
    ("fly-window", fly(fly_window_size=3), fly(fly_window_size=2), "set fly_window_size below"),
    (
        "custom-without-module",
        draft(method="custom_class", num_speculative_tokens=2),
        draft(method="custom_class", num_speculative_tokens=2, model="a.B"),
        "name the module of the class",
    ),
    (
        "topk-of-others",
        draft(method="eagle3", num_speculative_tokens=2, model="m", dspark_draft_topk=4),
        draft(method="dspark", num_speculative_tokens=2, model="m", dspark_draft_topk=4),
        "drop dspark_draft_topk",
    ),
    (
        "balance-communicator",
        balance(use_async=True, communicator="pynccl"),
        balance(use_async=False, communicator="pynccl"),
        "set communicator to torch_gloo or nixl",
    ),
    (
        "balance-interval",
        balance(log_balancedness=True, log_balancedness_interval=0),
        balance(log_balancedness=True, log_balancedness_interval=1),
        "set log_balancedness_interval above 0",
    ),
    (
        "numa-processors",
        "--numa-bind --numa-bind-cpus 3-0 4-7",
        "--numa-bind --numa-bind-cpus 0-3 4-7",
        "write --numa-bind-cpus as 0-3",
    ),
    (
        "numa-processors",
        "--numa-bind --numa-bind-cpus all",
        "--numa-bind --numa-bind-cpus 0,2,4-7",
        "write --numa-bind-cpus as 0-3",
    ),
    (
        "numa-processors",
        "--numa-bind --numa-bind-cpus 0 a",
        "--numa-bind --numa-bind-cpus 0 1",
        "w",
    ),
    (
        "decode-contexts",
        "--prefill-context-parallel-size 2 --decode-context-parallel-size 4 -tp 4",
        "--prefill-context-parallel-size 2 --decode-context-parallel-size 8 -tp 4",
        "set --decode-context-parallel-size to 1 or 2",
    ),
    (
        "elastic-least",
        "--elastic-ep-max-dp-size 2",
        "--elastic-ep-max-dp-size 4",
        "set --elastic-ep-max-dp-size to at least 4",
        "--enable-elastic-ep --enable-eplb --enable-expert-parallel --data-parallel-size 4",
    ),
    (
        "small-microbatches",
        "--enable-dbo --dbo-decode-token-threshold 1",
        "--enable-dbo --dbo-decode-token-threshold 2",
        "set the thresholds to at least",
    ),
    (
        "sequences-in-stages",
        "--enable-hc-sp -tp 2 --pipeline-parallel-size 2",
        "--enable-hc-sp -tp 2",
        "set --pipeline-parallel-size to 1",
    ),
    (
        "kernel-of-adapters",
        "--enable-lora --moe-backend aiter_mega_moe",
        "--enable-lora --moe-backend triton",
        "drop --moe-backend",
    ),
    ("no-length", "--max-model-len 0", "--max-model-len 4096", "set --max-model-len above 0"),
    (
        "no-memory-share",
        "--gpu-memory-utilization 0",
        "--gpu-memory-utilization 0.9",
        "set --gpu-memory-utilization to more than 0, like 0.9: 0 is out of range",
    ),
    ("cpu-offload", "--cpu-offload-gb=-1", "--cpu-offload-gb 10", "set --cpu-offload-gb to 0"),
    ("no-sequences", "--max-num-seqs 0", "--max-num-seqs 1", "set --max-num-seqs to 1 or more"),
    (
        "no-batched-tokens",
        "--max-num-batched-tokens 0k",
        "--max-num-batched-tokens 8k",
        "set --max-num-batched-tokens to 1 or more",
    ),
    ("no-stream", "--stream-interval 0", "--stream-interval 4", "set --stream-interval to 1"),
    (
        "no-adapters",
        "--enable-lora --max-loras 0",
        "--enable-lora --max-loras 1",
        "set --max-loras to 1 or more",
    ),
    ("no-ranks", "--tensor-parallel-size 0", "--tensor-parallel-size 1", "set --tensor-parallel"),
    ("no-stages", "--pipeline-parallel-size 0", "--pipeline-parallel-size 1", "set --pipeline-p"),
    ("no-replicas", "--data-parallel-size 0", "--data-parallel-size 1", "set --data-parallel-s"),
    ("no-nodes", "--nnodes 0", "--nnodes 1", "set --nnodes to 1 or more"),
    ("node-rank", "--node-rank=-1", "--node-rank 0", "set --node-rank to 0 or more"),
    ("grpc-twice", "--grpc", "", "drop --grpc", f"{PORT} 5000"),
    ("grpc-headless", "--headless", "", "drop --headless", f"{PORT} 5000"),
    (
        "grpc-servers",
        "--api-server-count 0",
        "--api-server-count 1",
        "set --api-server-count to 1",
        f"{PORT} 5000",
    ),
    (
        "grpc-ports",
        "--data-parallel-multi-port-external-lb",
        "",
        "drop --data-parallel-multi-port",
        f"{PORT} 5000",
    ),
    ("grpc-range", f"{PORT} 70000", f"{PORT} 7000", "set --grpc-port to 0-65535"),
    ("grpc-same", f"{PORT} 8000", f"{PORT} 8000 --uds /run/a", "give --grpc-port a port"),
    (
        "no-efforts",
        '--reasoning-effort-map \'{"most": "x"}\'',
        '--reasoning-effort-map \'{"max": "x"}\'',
        "write --reasoning-effort-map as a JSON object",
    ),
]


def told(root: Path, flags: str, version: str = "") -> list[str]:
    files = {"serve.sh": f"vllm serve org/m {flags}\n"}
    if version:
        files["requirements.txt"] = f"vllm=={version}\n"
    return [one.message for one in findings(runs_of(root, files), "GPU024")]


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case[0]}-{case[3]}")
def test_a_case(tmp_path: Path, case: tuple[str, ...]) -> None:
    _, refused, taken, instruction, *rest = case
    base = " ".join(rest)
    found = told(tmp_path / "a", f"{base} {refused}")
    assert [one for one in found if one.startswith(instruction)], found
    assert all("vLLM 0.33.0 refuses to start" in one for one in found)
    assert told(tmp_path / "b", f"{base} {taken}") == []
    old = told(tmp_path / "c", f"{base} {refused}", "0.10.2")  # a release without the rule
    assert not [one for one in old if one.startswith(instruction)]


@pytest.mark.parametrize("version", ["", "0.6.6.post1", "0.10.2"])
@pytest.mark.parametrize(("share", "number"), [("1.5", 1), ("90", 1), ("1.0", 0), ("$SHARE", 0)])
def test_a_share_of_the_memory(tmp_path: Path, version: str, share: str, number: int) -> None:
    found = told(tmp_path, f"--gpu-memory-utilization {share}", version)
    begins = [one.startswith("set --gpu-memory-utilization to a share above 0") for one in found]
    assert begins == [True] * number


def test_a_share_of_the_memory_of_an_engine(tmp_path: Path) -> None:
    script = "from vllm import LLM\n\nllm = LLM('org/m', gpu_memory_utilization={})\n"
    for share, number in ((1.2, 1), (0.95, 0)):
        files = {"g.py": script.format(share) + "print(llm.generate('a'))\n"}
        found = findings(runs_of(tmp_path / str(share), files), "GPU024")
        told_of = "set gpu_memory_utilization to a share above 0 and up to 1"
        assert [one.message[: len(told_of)] for one in found] == [told_of] * number


def test_nodes_of_an_engine(tmp_path: Path) -> None:
    script = "from vllm import LLM\n\nllm = LLM('m', numa_bind=True, numa_bind_nodes={})\n"
    for nodes, number in (("[0, -1]", 1), ("[]", 1), ("[0, 1]", 0), ("nodes()", 0)):
        files = {"g.py": script.format(nodes) + "print(llm.generate('a'))\n"}
        found = findings(runs_of(tmp_path / nodes, files), "GPU024")
        assert [one.message[:21] for one in found] == ["give numa_bind_nodes "] * number


def test_each_rule_has_a_case() -> None:
    named = {f"vllm-{case[0]}" for case in CASES} | {"vllm-numa-nodes", "vllm-memory-share"}
    assert {rule.name for rule in ALIKE} == named
