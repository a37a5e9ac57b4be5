"""SGLang: what its server and ``Engine`` refuse at start, and what they take."""

from __future__ import annotations

from pathlib import Path

import pytest
from checks_support import findings, runs_of


def told(root: Path, flags: str, version: str = "", code: str = "GPU024") -> list[str]:
    """What a check says of the server with these flags."""
    files = {"serve.sh": f"python -m sglang.launch_server --model-path org/m {flags}\n"}
    if version:
        files["requirements.txt"] = f"sglang=={version}\n"
    return [one.message for one in findings(runs_of(root, files), code)]


@pytest.mark.parametrize(
    ("refused", "taken", "instruction", "version", "other"),
    [
        (
            "--tp-size 8 --dp-size 3 --enable-dp-attention",
            "--tp-size 8 --dp-size 4 --enable-dp-attention",
            "set --dp-size to 2, 4 or 8",
            "0.4.6",
            "0.3.6",
        ),
        (
            "--tensor-parallel-size 8 --data-parallel-size 3 --enable-dp-attention",
            "--tensor-parallel-size 8 --data-parallel-size 8 --enable-dp-attention",
            "set --data-parallel-size to 2, 4 or 8",
            "0.5.6",
            "",
        ),
        (
            "--tp 8 --attn-dp-size 3",
            "--tp 8 --attn-dp-size 2",
            "set --attn-dp-size to 2, 4",
            "",
            "",
        ),
        (
            "--tp 8 --enable-dp-attention",
            "--tp 8 --enable-dp-attention --dp 2",
            "set --data-parallel-size above 1",
            "0.4.6",
            "0.5.6",
        ),
        (
            "--tp 6 --nnodes 4",
            "--tp 8 --nnodes 4",
            "let --tp x --pp-size be a multiple of --nnodes=4",
            "",
            "",
        ),
        (
            "--tp 4 --pp-size 3 --nnodes 5",
            "--tp 4 --pp-size 3 --nnodes 3",
            "let --tp x --pp-size be a multiple of --nnodes=5",
            "",
            "",
        ),
        (
            "--tp 8 --dp 2 --nnodes 2",
            "--tp 8 --dp 2 --nnodes 2 --enable-dp-attention",
            "split the attention instead (--enable-dp-attention)",
            "0.5.6",
            "",
        ),
        (
            "--tp 8 --dp 2 --nnodes 2",
            "--tp 8 --attn-dp-size 2 --nnodes 2",
            "split the attention instead (--attn-dp-size)",
            "",
            "",
        ),
        (
            "--chunked-prefill-size 4000 --page-size 64",
            "--chunked-prefill-size 4096 --page-size 64",
            "set --chunked-prefill-size to a multiple of 64",
            "",
            "0.4.3",
        ),
        (
            "--enable-hierarchical-cache --disable-radix-cache",
            "--enable-hierarchical-cache",
            "drop --disable-radix-cache",
            "0.5.6",
            "0.4.6",
        ),
        (
            "--enable-dynamic-batch-tokenizer --enable-tokenizer-batch-encode",
            "--enable-dynamic-batch-tokenizer",
            "keep one of",
            "",
            "",
        ),
        (
            "--tp 4 --dp 2 --enable-dp-lm-head",
            "--tp 4 --dp 2 --enable-dp-lm-head --enable-dp-attention",
            "split the attention instead of copying the model (--enable-dp-attention)",
            "0.5.6",
            "",
        ),
        (
            "--pp-size 2 --speculative-algorithm EAGLE",
            "--pp-size 1 --speculative-algorithm EAGLE",
            "set --pp-size to 1",
            "0.5.6",
            "",
        ),
        (
            "--served-model-name a:b",
            "--served-model-name a-b",
            "write --served-model-name",
            "",
            "0.5.2",
        ),
        (
            "--export-metrics-to-file",
            "--export-metrics-to-file --export-metrics-to-file-dir out",
            "add --export-metrics-to-file-dir",
            "",
            "",
        ),
        (
            "--enable-lora",
            "--enable-lora --max-lora-rank 16 --lora-target-modules q_proj",
            "give --lora-paths, or both",
            "",
            "",
        ),
        (
            "--lora-paths a=b --max-lora-chunk-size 48",
            "--lora-paths a=b --max-lora-chunk-size 64",
            "set --max-lora-chunk-size to 16, 32, 64 or 128",
            "",
            "",
        ),
        ("--base-gpu-id=-1", "--base-gpu-id 1", "set --base-gpu-id to at least 0", "", ""),
        ("--gpu-id-step 0", "--gpu-id-step 2", "set --gpu-id-step to at least 1", "", ""),
        (
            "--lora-paths a=b --max-loras-per-batch 0",
            "--lora-paths a=b --max-loras-per-batch 2",
            "set --max-loras-per-batch to at least 1",
            "",
            "",
        ),
        (
            "--schedule-conservativeness=-0.5",
            "--schedule-conservativeness 0.5",
            "set --schedule-conservativeness to at least 0",
            "",
            "",
        ),
        (
            "--enable-response-store --disaggregation-mode decode",
            "--enable-response-store",
            "drop --enable-response-store",
            "",
            "",
        ),
        ("--pp-max-micro-batch-size 0", "--pp-max-micro-batch-size 1", "set --pp-max", "", "0.5.6"),
        (
            "--disable-cuda-graph-padding --enable-torch-compile",
            "--enable-torch-compile",
            "drop --disable-cuda-graph-padding",
            "",
            "0.5.6",
        ),
        (
            "--tp 8 --moe-dense-tp-size 2",
            "--tp 8 --moe-dense-tp-size 1",
            "set --moe-dense-tp-size to 1",
            "",
            "",
        ),
        ("--enable-pdmux --pp-size 2", "--enable-pdmux", "drop --enable-pdmux", "", ""),
        (
            "--tokenizer-worker-num 0",
            "--tokenizer-worker-num 2",
            "set --tokenizer-worker-num",
            "",
            "",
        ),
        (
            "--enable-priority-scheduling --schedule-policy lpm",
            "--enable-priority-scheduling --schedule-policy lof",
            "set --schedule-policy to fcfs or lof",
            "",
            "",
        ),
        (
            "--retraction-policy priority",
            "--retraction-policy priority --enable-priority-scheduling",
            "add --enable-priority-scheduling",
            "",
            "",
        ),
        ("--gc-threshold 1 2 3 4", "--gc-threshold 1 2 3", "give --gc-threshold 1 to 3", "", ""),
        (
            "--prefill-decode-interval=-1",
            "--prefill-decode-interval 1",
            "set --prefill-decode-interval to",
            "",
            "",
        ),
        ("--tp 8 --attn-dp-size 2 --dp-size 2", "--tp 8 --attn-dp-size 2", "keep one", "", ""),
        (
            "--lora-paths a=b --lora-target-modules all q_proj",
            "--lora-paths a=b --lora-target-modules all",
            "give --lora-target-modules all alone",
            "",
            "",
        ),
        (
            "--lora-paths a=b --max-loaded-loras 2",
            "--lora-paths a=b --max-loaded-loras 2 --max-loras-per-batch 2",
            "set --max-loaded-loras to at least --max-loras-per-batch=8",
            "",
            "",
        ),
        (
            "--lora-paths a=b c=d e=f --max-loaded-loras 2 --max-loras-per-batch 1",
            "--lora-paths a=b c=d --max-loaded-loras 2 --max-loras-per-batch 1",
            "set --max-loaded-loras to at least 3",
            "",
            "",
        ),
        (
            "--lora-paths a=b --lora-drain-wait-threshold=-1",
            "--lora-paths a=b --lora-drain-wait-threshold 1",
            "set --lora-drain-wait-threshold to at least 0",
            "",
            "",
        ),
        (
            "--lora-paths a=b --speculative-algorithm STANDALONE",
            "--lora-paths a=b --speculative-algorithm NGRAM",
            "set --speculative-algorithm to NGRAM",
            "",
            "",
        ),
    ],
)
def test_a_rule(
    tmp_path: Path, refused: str, taken: str, instruction: str, version: str, other: str
) -> None:
    (message,) = told(tmp_path / "a", refused, version)
    assert message.startswith(instruction)
    assert f"SGLang {version or '0.5.23'} refuses to start" in message
    assert told(tmp_path / "b", taken, version) == []
    if other:  # a release without the rule
        assert told(tmp_path / "c", refused, other) == []


def test_unknown_sizes_are_silent(tmp_path: Path) -> None:
    flags = '--tp-size 8 --dp-size "$DP" --enable-dp-attention'
    assert told(tmp_path / "a", flags, "0.4.6") == []
    assert told(tmp_path / "b", "--chunked-prefill-size 4000 --page-size 64 $MORE") == []
    assert told(tmp_path / "c", "--enable-lora $MORE") == []
    backend = "--attention-backend flashmla"  # it takes pages of its own
    assert told(tmp_path / "d", f"--chunked-prefill-size 4000 --page-size 64 {backend}") == []


def test_the_place_is_the_flag_of_data_parallelism(tmp_path: Path) -> None:
    script = "python -m sglang.launch_server --model-path deepseek-ai/DeepSeek-R1 \\\n"
    script += "  --tp-size 8 \\\n  --dp-size 3 \\\n  --enable-dp-attention\n"
    files = {"serve.sh": script, "requirements.txt": "sglang==0.4.6\n"}
    (finding,) = findings(runs_of(tmp_path, files), "GPU024")
    assert finding.location.line == 3


def test_keywords_of_an_engine(tmp_path: Path) -> None:
    script = (
        "import sglang as sgl\n\nllm = sgl.Engine(model_path='m', {})\nprint(llm.generate('a'))\n"
    )
    text = script.format("tp_size=8, dp_size=3, enable_dp_attention=True")
    (finding,) = findings(runs_of(tmp_path / "a", {"g.py": text}), "GPU024")
    assert "Engine" not in finding.message.split(":")[0]
    text = script.format("tp_size=8, dp_size=4, enable_dp_attention=True")
    assert findings(runs_of(tmp_path / "b", {"g.py": text}), "GPU024") == []
    (finding,) = findings(runs_of(tmp_path / "c", {"g.py": script.format("tp=2")}), "GPU005")
    assert "has no parameter tp" in finding.message
    text = script.format("mem_fraction_static=0.8, log_level='error'")
    assert findings(runs_of(tmp_path / "d", {"g.py": text}), "GPU005") == []


@pytest.mark.parametrize(
    ("flags", "code", "message"),
    [
        ("--mem-fraction-static 0.8 --tp 2", "GPU005", ""),
        ("--mem-fraction-statics 0.8", "GPU005", "write --mem-fraction-static"),
        (
            "--nsa-prefill-backend fa3",
            "GPU007",
            "write --dsa-prefill-backend, or pin sglang<0.5.20",
        ),
        ("--tp-size two", "GPU008", "give --tp-size a whole number"),
        ("--dtype fp16", "GPU009", "choose one of auto"),
        ("--trust-remote-code true", "GPU025", "write --trust-remote-code alone"),
        ("--lora-paths a=b c=d", "GPU025", ""),
    ],
)
def test_flags_of_the_server(tmp_path: Path, flags: str, code: str, message: str) -> None:
    found = told(tmp_path, flags, code=code)
    assert [one[: len(message)] for one in found] == ([message] if message else [])


def test_a_server_of_images_has_other_flags(tmp_path: Path) -> None:
    for model, number in (("Wan-AI/Wan2.2-T2V-A14B", 0), ("Qwen/Qwen3-8B", 1)):
        command = f"sglang serve --model-path {model} --ulysses-degree 2\n"
        runs = runs_of(tmp_path / str(number), {"serve.sh": command})
        assert len(findings(runs, "GPU005")) == number


def test_flags_have_dashes(tmp_path: Path) -> None:
    (message,) = told(tmp_path / "a", "--tp_size 2", code="GPU005")
    assert message.startswith("write --tp-size: SGLang 0.5.23 does not know --tp_size")
    assert told(tmp_path / "b", "--tp-size 2", code="GPU005") == []
    script = "import sglang\n\nllm = sglang.Engine(model_path='m', tp_size=2)\nprint(llm)\n"
    assert findings(runs_of(tmp_path / "c", {"g.py": script}), "GPU005") == []
    for words in ("-m vllm.entrypoints.openai.api_server --max_num_seqs 8", "train.py --tp_size 2"):
        runs = runs_of(tmp_path / words[:2], {"serve.sh": f"python {words}\n"})
        assert findings(runs, "GPU005") == []


def test_the_image_tells_the_version(tmp_path: Path) -> None:
    flags = "--tp-size 8 --dp-size 3 --enable-dp-attention"
    command = "docker run --gpus all -p 3:3 lmsysorg/sglang:{} python3 -m sglang.launch_server"
    for number, tag in enumerate(("v0.4.6.post5-cu124", "v0.3.6")):
        script = f"{command.format(tag)} --model-path org/m {flags}\n"
        files = {"serve.sh": script, "requirements.txt": "sglang==0.5.6\n"}
        found = findings(runs_of(tmp_path / tag, files), "GPU024")
        assert [one.message[:22] for one in found] == ["set --dp-size to 2, 4 "][number:]
        assert all("SGLang 0.4.6.post5" in one.message for one in found)


def test_an_engine_takes_its_arguments_ready_made(tmp_path: Path) -> None:
    script = "import sglang as sgl\n\nllm = sgl.Engine({}=made)\nprint(llm.generate('a'))\n"
    ready = runs_of(tmp_path / "ready", {"gen.py": script.format("server_args")})
    assert findings(ready, "GPU005") == []
    other = runs_of(tmp_path / "other", {"gen.py": script.format("server_arg")})
    assert len(findings(other, "GPU005")) == 1
