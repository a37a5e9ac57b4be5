"""vLLM: what its server, ``LLM`` and engine arguments refuse at start, and what they take."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Optional

import pytest
from checks_support import findings, runs_of

QWEN_7B = "Qwen/Qwen2.5-7B-Instruct"


def told(
    root: Path, flags: str, model: str = QWEN_7B, version: str = "", code: str = "GPU024"
) -> list[str]:
    """What a check says of ``vllm serve`` with these flags."""
    files = {"serve.sh": f"vllm serve {model} {flags}\n"}
    if version:
        files["requirements.txt"] = f"vllm=={version}\n"
    return [one.message for one in findings(runs_of(root, files), code)]


def told_of_llm(
    root: Path, keywords: str, code: str = "GPU024", version: str = "", first: str = ""
) -> list[str]:
    """What a check says of ``LLM(...)``."""
    script = "from vllm import LLM\n\nllm = LLM(\n    {}{},\n)\nprint(llm.generate('a'))\n"
    files = {"generate.py": script.format(first, keywords)}
    if version:
        files["requirements.txt"] = f"vllm=={version}\n"
    return [one.message for one in findings(runs_of(root, files), code)]


def draft(**entries: object) -> str:
    return f"--speculative-config '{json.dumps(entries)}'"


@pytest.mark.parametrize(
    ("refused", "taken", "instruction", "last"),
    [
        (
            "--tensor-parallel-size 8",
            "--tensor-parallel-size 7",
            "set --tensor-parallel-size to 4",
            "",
        ),
        ("-tp 3", "-tp 2", "set --tensor-parallel-size to 2", ""),
        (
            "--tensor_parallel_size=6",
            "--tensor_parallel_size=4",
            "set --tensor_parallel_size to 4",
            "",
        ),
        (
            "--no-enable-chunked-prefill --max-num-batched-tokens 2048 --max-model-len 4096",
            "--max-num-batched-tokens 2048 --max-model-len 4096",
            "set --max-num-batched-tokens to at least --max-model-len",
            "0.13.0",
        ),
        (
            "--no-enable-chunked-prefill --max-num-batched-tokens 8k --max-model-len 8K",
            "--no-enable-chunked-prefill --max-num-batched-tokens 8K --max-model-len 8k",
            "set --max-num-batched-tokens to at least --max-model-len",
            "",
        ),
        (
            "--max-num-batched-tokens 128 --max-num-seqs 256",
            "--max-num-batched-tokens 256 --max-num-seqs 256",
            "set --max-num-batched-tokens to at least --max-num-seqs=256",
            "",
        ),
        (
            "--enable-lora --max-loras 4 --max-cpu-loras 2",
            "--enable-lora --max-loras 4 --max-cpu-loras 4",
            "set --max-cpu-loras to at least --max-loras=4",
            "",
        ),
        (
            "-tp 4 --enable-eplb",
            "-tp 4 --enable-eplb --enable-expert-parallel",
            "add --enable-expert-parallel",
            "0.9.2",
        ),
        (
            "--enable-eplb --enable-expert-parallel",
            "--enable-eplb --enable-expert-parallel -dp 2",
            "drop --enable-eplb",
            "0.9.2",
        ),
        (
            "--data-parallel-size 2 --data-parallel-size-local 4",
            "--data-parallel-size 4 --data-parallel-size-local 2",
            "set --data-parallel-size-local to at most",
            "0.9.2",
        ),
        (
            "--data-parallel-external-lb",
            "--data-parallel-external-lb --data-parallel-size 2",
            "drop --data-parallel-external-lb",
            "0.13.0",
        ),
        (
            "--nnodes 2 --distributed-executor-backend ray",
            "--nnodes 2 --distributed-executor-backend mp",
            "drop --nnodes",
            "",
        ),
        (
            "--enable-elastic-ep --enable-eplb --enable-expert-parallel -dp 2 -pp 2",
            "--enable-elastic-ep --enable-eplb --enable-expert-parallel -dp 2 -pp 1",
            "set --pipeline-parallel-size to 1",
            "",
        ),
        (
            "--enable-elastic-ep -dp 2",
            "--enable-elastic-ep -dp 2 --enable-eplb --enable-expert-parallel",
            "add --enable-eplb",
            "",
        ),
        (
            "--enable-auto-tool-choice",
            "--enable-auto-tool-choice --tool-call-parser hermes",
            "add --tool-call-parser",
            "0.5.5",
        ),
        (
            "--enable-log-outputs",
            "--enable-log-outputs --enable-log-requests",
            "add --enable-log-requests",
            "",
        ),
        (
            "--headless --api-server-count 2 -dp 2",
            "--headless -dp 2",
            "drop --api-server-count",
            "",
        ),
        (
            draft(method="ngram", num_speculative_tokens=0, prompt_lookup_max=4),
            draft(method="ngram", num_speculative_tokens=2, prompt_lookup_max=4),
            "set num_speculative_tokens above 0",
            "",
        ),
        (
            draft(method="eagle", model="d", num_speculative_tokens=2, tensor_parallel_size=1),
            draft(
                method="eagle", model="d", num_speculative_tokens=2, draft_tensor_parallel_size=1
            ),
            "write draft_tensor_parallel_size",
            "",
        ),
        (
            "-tp 4 "
            + draft(
                method="eagle", model="d", num_speculative_tokens=2, draft_tensor_parallel_size=2
            ),
            "-tp 4 "
            + draft(
                method="eagle", model="d", num_speculative_tokens=2, draft_tensor_parallel_size=4
            ),
            "set draft_tensor_parallel_size to 1 or 4",
            "",
        ),
        (
            "--max-num-active-seqs 16 --max-num-seqs 8",
            "--max-num-active-seqs 8 --max-num-seqs 8",
            "set --max-num-active-seqs to at most --max-num-seqs=8",
            "",
        ),
        (
            "--long-prefill-token-threshold 4096 --max-model-len 2048",
            "--long-prefill-token-threshold 1024 --max-model-len 2048",
            "set --long-prefill-token-threshold to at most",
            "0.26.0",
        ),
        ("--numa-bind-nodes 0 1", "--numa-bind --numa-bind-nodes 0 1", "add --numa-bind", ""),
        (
            "--eplb-config.num_redundant_experts 2",
            "--eplb-config.num_redundant_experts 0",
            "add --enable-eplb",
            "",
        ),
        (
            "-tp 4 --decode-context-parallel-size 3",
            "-tp 4 --decode-context-parallel-size 2",
            "set --decode-context-parallel-size to a divisor of 4",
            "",
        ),
        (
            "--enable-elastic-ep --enable-eplb -ep -dp 2 --data-parallel-hybrid-lb",
            "--enable-elastic-ep --enable-eplb -ep -dp 2 --data-parallel-external-lb",
            "drop --data-parallel-hybrid-lb",
            "",
        ),
        (
            "--data-parallel-rank 2 --data-parallel-size 2",
            "--data-parallel-rank 1 --data-parallel-size 2",
            "set --data-parallel-rank below 2",
            "",
        ),
        (
            "--ray-workers-use-nsight --distributed-executor-backend mp",
            "--ray-workers-use-nsight --distributed-executor-backend ray",
            "drop --ray-workers-use-nsight",
            "",
        ),
        (
            "-dp 4 --data-parallel-external-lb --data-parallel-hybrid-lb",
            "-dp 4 --data-parallel-hybrid-lb",
            "keep one of",
            "0.19.1",
        ),
        (
            "--headless -dp 4 --data-parallel-hybrid-lb",
            "--headless -dp 4",
            "drop --data-parallel-hybrid-lb",
            "",
        ),
        (
            "--headless -dp 4 --data-parallel-size-local 0",
            "--headless -dp 4 --data-parallel-size-local 2",
            "set --data-parallel-size-local above 0",
            "",
        ),
        (
            "--sse-keep-alive-interval=-1",
            "--sse-keep-alive-interval=0",
            "set --sse-keep-alive-interval to at least 0",
            "",
        ),
        (
            "--enable-per-request-metrics --disable-log-stats",
            "--enable-per-request-metrics",
            "drop --disable-log-stats",
            "",
        ),
        (
            draft(num_speculative_tokens=2),
            draft(method="mtp", num_speculative_tokens=2),
            "name",
            "",
        ),
        (
            draft(
                method="ngram", num_speculative_tokens=2, prompt_lookup_max=2, prompt_lookup_min=4
            ),
            draft(
                method="ngram", num_speculative_tokens=2, prompt_lookup_max=4, prompt_lookup_min=2
            ),
            "set prompt_lookup_min to at most",
            "",
        ),
        (
            draft(method="suffix", suffix_decoding_min_token_prob=1.5),
            draft(method="suffix", suffix_decoding_min_token_prob=0.5),
            "set suffix_decoding_min_token_prob within",
            "",
        ),
    ],
)
def test_a_rule(tmp_path: Path, refused: str, taken: str, instruction: str, last: str) -> None:
    (message,) = told(tmp_path / "a", refused)
    assert message.startswith(instruction)
    assert "vLLM 0.33.0 refuses to start" in message
    assert told(tmp_path / "b", taken) == []
    if last:  # the last release that was read without the rule
        assert told(tmp_path / "c", refused, version=last) == []


@pytest.mark.parametrize(
    ("model", "size", "heads"),
    [
        ("Qwen/Qwen1.5-32B-Chat", 6, 40),
        ("Qwen/Qwen2-VL-2B-Instruct", 8, 12),
        ("Qwen/Qwen2.5-VL-7B-Instruct", 8, 28),
        ("org/unknown-model-7b", 3, None),
        ("Qwen/Qwen2.5-7B-eagle", 3, None),
    ],
)
def test_heads_of_models(tmp_path: Path, model: str, size: int, heads: Optional[int]) -> None:
    found = told(tmp_path / "a", f"--tensor-parallel-size {size}", model)
    assert len(found) == (1 if heads else 0)
    if heads:
        assert f"has {heads} attention heads, which {size} does not divide" in found[0]
    assert told(tmp_path / "b", '--tensor-parallel-size "$TP"', model) == []


def test_heads_stand_at_the_flag(tmp_path: Path) -> None:
    script = "vllm serve Qwen/Qwen1.5-32B-Chat \\\n  --port 8000 \\\n  --tensor-parallel-size 6\n"
    (finding,) = findings(runs_of(tmp_path / "a", {"serve.sh": script}), "GPU024")
    assert finding.location.line == 3
    # Who says otherwise of the configuration knows the heads, too.
    script += "  "
    other = script.replace("--port 8000", "--hf-overrides '{\"num_attention_heads\": 42}'")
    assert findings(runs_of(tmp_path / "b", {"serve.sh": other}), "GPU024") == []


def test_heads_of_a_configuration_in_the_project(tmp_path: Path) -> None:
    config = {"architectures": ["LlamaForCausalLM"], "num_attention_heads": 9, "hidden_size": 576}
    config.update(num_hidden_layers=30, intermediate_size=1536, vocab_size=49152)
    files = {"m/config.json": json.dumps(config), "serve.sh": "vllm serve ./m -tp 2\n"}
    (finding,) = findings(runs_of(tmp_path / "a", files), "GPU024")
    assert "9 attention heads" in finding.message
    files["serve.sh"] = "vllm serve ./m -tp 3\n"
    assert findings(runs_of(tmp_path / "b", files), "GPU024") == []


def test_keywords_of_llm(tmp_path: Path) -> None:
    model = 'model="Qwen/Qwen2-VL-2B-Instruct"'
    (message,) = told_of_llm(tmp_path / "a", f"{model},\n    tensor_parallel_size=8")
    assert message.startswith("set tensor_parallel_size to 4")
    assert told_of_llm(tmp_path / "b", f"{model}, tensor_parallel_size=4") == []
    assert told_of_llm(tmp_path / "c", f"{model}, tensor_parallel_size=8, **more") != []
    assert told_of_llm(tmp_path / "d", f"{model}, tensor_parallel_size=size") == []
    first = '"Qwen/Qwen2-VL-2B-Instruct", '
    assert len(told_of_llm(tmp_path / "e", "tensor_parallel_size=8", first=first)) == 1
    (message,) = told_of_llm(tmp_path / "f", f"{model}, data_parallel_size=2")
    assert message.startswith("serve the model with vllm serve")
    assert told_of_llm(tmp_path / "g", f"{model}, data_parallel_size=2", version="0.13.0") == []
    outside = 'data_parallel_size=2, distributed_executor_backend="external_launcher"'
    assert told_of_llm(tmp_path / "h", f"{model}, {outside}") == []


def test_unknown_keywords_of_llm(tmp_path: Path) -> None:
    (message,) = told_of_llm(tmp_path / "a", 'model="m", tensor_parallel=2', "GPU005")
    assert "has no parameter tensor_parallel, and LLM raises TypeError" in message
    assert told_of_llm(tmp_path / "b", 'model="m", max_model_len=2048', "GPU005") == []
    (message,) = told_of_llm(tmp_path / "c", 'model="m", swap_space=4', "GPU007")
    assert "pin vllm<" in message
    assert told_of_llm(tmp_path / "d", 'model="m", swap_space=4', "GPU007", "0.10.2") == []


def test_more_gpus_than_are_seen(tmp_path: Path) -> None:
    for name, flags, number in (
        ("a", "-tp 4", 1),
        ("b", "-tp 2", 0),
        ("c", "-tp 2 -pp 2", 1),
        ("d", "-tp 4 --distributed-executor-backend ray", 0),
    ):
        script = f"CUDA_VISIBLE_DEVICES=0,1 vllm serve {QWEN_7B} {flags}\n"
        found = findings(runs_of(tmp_path / name, {"serve.sh": script}), "GPU024")
        assert len(found) == number, flags
        assert not found or found[0].message.startswith("list 4 GPUs as CUDA_VISIBLE_DEVICES")


def test_rules_of_the_command_line_stay_silent_where_more_is_given(tmp_path: Path) -> None:
    assert told(tmp_path / "a", '--enable-auto-tool-choice "$@"') == []
    assert told(tmp_path / "b", '--max-num-batched-tokens "$N" --max-num-seqs 256') == []


@pytest.mark.parametrize(
    ("flags", "code", "message"),
    [
        ("--max-model-length 4096", "GPU005", "write --max-model-len"),
        ("--max_model_len 4096", "GPU005", ""),
        ("--no-enable-prefix-caching", "GPU005", ""),
        ("--disable-log-requests", "GPU007", ""),
        ("--compilation-config.mode 3", "GPU005", ""),
        ("--max-model-len 32k --max-num-batched-tokens 1K", "GPU008", ""),
        ("--max-num-seqs 1e3", "GPU008", "write --max-num-seqs 1000"),
        ("--port 80a", "GPU008", "give --port a whole number"),
        ("--dtype fp16", "GPU009", "choose one of auto, half, float16"),
        ("--dtype float16", "GPU009", ""),
        ("--max-num-seqs 8 --max-num-seqs 16", "GPU023", "remove one of the two"),
        ("--enable-prefix-caching true", "GPU025", "write --enable-prefix-caching alone"),
        ("--max-num-seqs --port 80", "GPU025", "give --max-num-seqs a value"),
        ("--served-model-name a b c", "GPU025", ""),
        ("--disable-access-log-for-endpoints /health,/ping", "GPU025", ""),
        ("--kv-cache-dtype fp8 ...", "GPU025", ""),
        ("--tensor-parallel 2", "GPU005", ""),  # argparse completes it
        ("--omni --stage-configs-path s.yaml", "GPU005", ""),  # a program that builds on it
    ],
)
def test_flags_of_the_server(tmp_path: Path, flags: str, code: str, message: str) -> None:
    found = told(tmp_path, flags, code=code)
    assert [one[: len(message)] for one in found] == ([message] if message else [])


def test_the_server_as_a_module_and_in_a_container(tmp_path: Path) -> None:
    module = f"python -m vllm.entrypoints.openai.api_server --model {QWEN_7B} -tp 8\n"
    assert len(findings(runs_of(tmp_path / "a", {"s.sh": module}), "GPU024")) == 1
    compose = "services:\n  llm:\n    image: vllm/vllm-openai:v0.10.2\n    command: >\n"
    compose += f"      --model {QWEN_7B} --tensor-parallel-size 8\n"
    (finding,) = findings(runs_of(tmp_path / "b", {"compose.yaml": compose}), "GPU024")
    assert "vLLM 0.10.2" in finding.message


def test_a_file_of_the_server(tmp_path: Path) -> None:
    files = {
        "serve.sh": f"vllm serve {QWEN_7B} --config serve.yaml\n",
        "serve.yaml": "tensor-parallel-size: 8\nmax-num-seqs: many\nmax_model_length: 10\n",
    }
    runs = runs_of(tmp_path, files)
    (finding,) = findings(runs, "GPU024")
    assert (finding.location.path, finding.location.line) == ("serve.yaml", 1)
    (finding,) = findings(runs, "GPU008")
    assert finding.location.line == 2
    (finding,) = findings(runs, "GPU005")
    assert finding.message.startswith("write max_model_len")


def test_an_image_that_is_given_only_flags_starts_the_server(tmp_path: Path) -> None:
    command = (
        "docker run --runtime nvidia --gpus all -v ~/.cache/huggingface:/root/.cache/huggingface "
        "--env HF_TOKEN=x -p 8000:8000 --ipc=host {} \\\n"
        "  --model Qwen/Qwen2.5-7B-Instruct --tensor-parallel-size {}\n"
    )
    files = {"serve.sh": command.format("vllm/vllm-openai:v0.8.5", 6)}
    (run,) = runs_of(tmp_path / "a", files)
    assert (run.framework, run.versions["vllm"]) == ("vllm", "0.8.5")
    (finding,) = findings([run], "GPU024")
    assert finding.message.startswith("set --tensor-parallel-size to 4")
    assert "vLLM 0.8.5" in finding.message
    assert finding.location.line == 2
    files = {"serve.sh": command.format("vllm/vllm-openai:v0.8.5", 4)}
    assert findings(runs_of(tmp_path / "b", files), "GPU024") == []
    files = {"serve.sh": command.format("org/of-their-own:v1", 6)}  # nobody knows what it starts
    assert runs_of(tmp_path / "c", files) == ()
    files = {"serve.sh": command.format("--entrypoint python vllm/vllm-openai:v0.8.5", 6)}
    assert runs_of(tmp_path / "d", files) == ()
