"""SGLang: options that need one another, exclude one another or have a range."""

from __future__ import annotations

from pathlib import Path

import pytest
from checks_support import findings, runs_of

from flake8_gpu_training.frameworks.refusals.sglang_alike import ALIKE

MARK = "--enable-watermark"
STATES = "--enable-return-aux-hidden-states"
EAGLE3 = f"{STATES} --speculative-algorithm EAGLE3"
DWDP = "--tp 4 --dwdp-size 4"
RUN = "--enable-lora --max-lora-rank 8 --lora-target-modules all --lora-backend triton_v2"
LORA = f"{RUN} --moe-runner-backend lora_marlin"
ELASTIC = "--elastic-ep-backend mooncake"
GROWS = f"--tp 8 --attn-dp-size 8 {ELASTIC} --max-ep-size 16"
JOINS = f"{GROWS} --node-rank 1 --elastic-ep-join-mode scale"
EVENTS = """--kv-events-config '{"publisher": "zmq"}'"""
CASES = [
    ("watermark-off", "--watermark-config w.json", MARK, "add --enable-watermark"),
    ("watermark-device", "--device xpu", "--device cuda", "set --device to cuda", MARK),
    (
        "watermark-processor",
        "--enable-custom-logit-processor",
        "",
        "drop --enable-custom-logit-processor",
        MARK,
    ),
    ("watermark-sampler", "--sampling-backend mine", "--sampling-backend pytorch", "set --s", MARK),
    ("watermark-diffusion", "--dllm-algorithm LowConfidence", "", "drop --dllm-algorithm", MARK),
    (
        "watermark-disaggregated",
        "--disaggregation-mode prefill",
        "--disaggregation-mode null",
        "drop --disaggregation-mode",
        MARK,
    ),
    (
        "watermark-speculation",
        "--speculative-algorithm DFLASH",
        "--speculative-algorithm NGRAM",
        "set --speculative-algorithm to NGRAM",
        MARK,
    ),
    (
        "watermark-rejection",
        "--speculative-use-rejection-sampling",
        "",
        "drop --speculative-use-rejection-sampling",
        MARK,
    ),
    (
        "buckets",
        "--prompt-tokens-buckets tse 100 1 8",
        "--prompt-tokens-buckets tse 100 2 8",
        "give --prompt-tokens-buckets tse <middle>",
    ),
    (
        "buckets",
        "--prompt-tokens-buckets tse 100 2",
        "--prompt-tokens-buckets default",
        "give --prompt-tokens-buckets tse <middle>",
    ),
    (
        "buckets",
        "--generation-tokens-buckets default 3",
        "--generation-tokens-buckets default",
        "give --generation-tokens-buckets default alone",
    ),
    (
        "buckets",
        "--generation-tokens-buckets custom 3 3",
        "--generation-tokens-buckets custom 3 4",
        "give --generation-tokens-buckets custom and different numbers",
    ),
    (
        "buckets",
        "--generation-tokens-buckets mine 3",
        "--generation-tokens-buckets custom 3",
        "give --generation-tokens-buckets a rule of tse",
    ),
    ("dcp-size", "--dcp-size 0", "--dcp-size 2", "set --dcp-size to 1"),
    (
        "dcp-prefill",
        "--dcp-size 2 --enable-prefill-cp",
        "--dcp-size 1 --enable-prefill-cp",
        "drop --enable-prefill-cp",
    ),
    ("dcp-backend", "--dcp-comm-backend a2a", "--dcp-comm-backend ag_rs", "set --dcp-size to 2+"),
    (
        "dcp-replicated",
        "--dcp-replicate-q-proj",
        "--dcp-replicate-q-proj --dcp-size 2",
        "set --dcp-size to 2+",
    ),
    (
        "dcp-replicated-backend",
        "--dcp-comm-backend ag_rs",
        "--dcp-comm-backend a2a",
        "set --dcp-comm-backend to a2a",
        "--dcp-replicate-q-proj --dcp-size 2",
    ),
    (
        "dwdp-decode",
        "--disaggregation-mode decode",
        "--disaggregation-mode prefill",
        "drop --disaggregation-mode",
        DWDP,
    ),
    ("dwdp-balance", "--enable-eplb", "", "drop --enable-eplb", DWDP),
    ("dwdp-speculation", "--speculative-algorithm EAGLE", "", "drop --spec", DWDP),
    ("dwdp-stages", "--pp-size 2", "--pp-size 1", "set --pp-size to 1", DWDP),
    ("dwdp-overlap", "--enable-two-batch-overlap", "", "drop --enable-two-batch-overlap", DWDP),
    ("dwdp-size", "--tp 8 --dwdp-size 4", DWDP, "set --dwdp-size to the tensor-parallel size"),
    (
        "states-off",
        "--return-aux-hidden-state-layer-ids 1 2",
        f"--return-aux-hidden-state-layer-ids 1 2 {EAGLE3}",
        "add --enable-return-aux-hidden-states",
    ),
    ("states-method", STATES, EAGLE3, "set --speculative-algorithm to EAGLE3"),
    ("states-draft", "--speculative-draft-model-path m", "", "drop --speculative-draft", EAGLE3),
    ("states-stages", "--pp-size 2", "", "set --pp-size to 1", EAGLE3),
    (
        "states-layers",
        f"{STATES} --speculative-algorithm DFLASH",
        f"{STATES} --speculative-algorithm DFLASH --return-aux-hidden-state-layer-ids 1",
        "add --return-aux-hidden-state-layer-ids",
    ),
    (
        "states-layer",
        "--return-aux-hidden-state-layer-ids 1 1",
        "--return-aux-hidden-state-layer-ids 1 2",
        "set --return-aux-hidden-state-layer-ids to different",
        EAGLE3,
    ),
    (
        "adapters-of-draft",
        "--speculative-algorithm EAGLE --speculative-moe-runner-backend lora_triton",
        "--speculative-algorithm EAGLE --speculative-moe-runner-backend triton",
        "drop --speculative-moe-runner-backend",
    ),
    ("runner-off", "--moe-runner-backend lora_marlin", LORA, "add --enable-lora"),
    (
        "runner-backend",
        LORA.replace("triton_v2", "csgmv"),
        LORA,
        "set --lora-backend to triton_v2",
    ),
    ("runner-quantized", "--quantization awq", "--quantization fp8", "set --quantization", LORA),
    (
        "runner-fp4",
        f"{RUN} --quantization modelopt_fp4 --moe-runner-backend lora_triton",
        f"{LORA} --quantization modelopt_fp4",
        "set --moe-runner-backend to lora_marlin",
    ),
    ("runner-dispatch", "--moe-a2a-backend deepep", "", "drop --moe-a2a-backend", LORA),
    (
        "runner-elastic",
        f"{ELASTIC} --elastic-ep-join-mode recover",
        ELASTIC,
        "drop --elastic-ep-join-mode",
        LORA,
    ),
    ("runner-balance", "--enable-eplb", "", "drop --enable-eplb", LORA),
    ("runner-placed", "--init-expert-location a.pt", "", "drop --init-expert-location", LORA),
    ("runner-redundant", "--ep-num-redundant-experts 2", "", "drop --ep-num-redundant", LORA),
    ("kernels-attention", "--tp 4 --attn-dp-size 2", "--tp 4", "drop --attn-dp-size", RUN),
    ("kernels-multiplexed", "--enable-pdmux", "", "drop --enable-pdmux", RUN),
    ("kernels-overlap", "--enable-two-batch-overlap", "", "drop --enable-two-batch", RUN),
    (
        "overlapped-adapters",
        "--lora-paths a=b --enable-lora-overlap-loading --max-loaded-loras 17",
        "--lora-paths a=b --enable-lora-overlap-loading --max-loaded-loras 16",
        "set --max-loaded-loras to at most twice --max-loras-per-batch",
    ),
    (
        "elastic-balance",
        "--enable-eplb --eplb-algorithm deepseek",
        "--enable-eplb --eplb-algorithm elasticity_aware",
        "set --eplb-algorithm to auto",
        ELASTIC,
    ),
    ("elastic-stages", "--pp-size 2", "--pp-size 1", "set --pp-size to 1", ELASTIC),
    (
        "elastic-join-alone",
        "--elastic-ep-join-mode recover",
        f"--elastic-ep-join-mode recover {ELASTIC}",
        "add --elastic-ep-backend",
    ),
    (
        "elastic-join-node",
        f"{ELASTIC} --elastic-ep-join-mode scale --elastic-ep-join-rank-offset 8",
        f"{ELASTIC} --elastic-ep-join-mode scale --elastic-ep-join-rank-offset 8 --node-rank 1",
        "set --node-rank to 1",
    ),
    (
        "elastic-join-offset",
        f"{ELASTIC} --elastic-ep-join-mode scale --node-rank 1",
        f"{ELASTIC} --elastic-ep-join-mode scale --elastic-ep-join-rank-offset 8 --node-rank 1",
        "add --elastic-ep-join-rank-offset",
    ),
    (
        "elastic-offset-alone",
        "--elastic-ep-join-rank-offset 8",
        "--elastic-ep-join-rank-offset 8 --elastic-ep-join-mode scale --node-rank 1 " + ELASTIC,
        "set --elastic-ep-join-mode to scale",
    ),
    (
        "elastic-offset",
        f"{ELASTIC} --elastic-ep-join-mode scale --elastic-ep-join-rank-offset=-8 --node-rank 1",
        f"{ELASTIC} --elastic-ep-join-mode scale --elastic-ep-join-rank-offset 8 --node-rank 1",
        "set --elastic-ep-join-rank-offset above 0",
    ),
    (
        "elastic-most-alone",
        "--max-ep-size 8",
        f"--tp 8 {ELASTIC} --max-ep-size 8",
        "add --elastic-ep-b",
    ),
    (
        "elastic-most",
        "--max-ep-size 0",
        "--max-ep-size 8",
        "set --max-ep-size",
        f"--tp 8 {ELASTIC}",
    ),
    (
        "elastic-first-alone",
        f"{ELASTIC} --elastic-ep-initial-size 8 --tp 8",
        f"{GROWS} --elastic-ep-initial-size 8",
        "add --elastic-ep-backend, and --max-ep-size above",
    ),
    (
        "elastic-replicas",
        f"--tp 8 --attn-dp-size 2 --moe-dense-tp-size 1 {ELASTIC} --max-ep-size 18",
        f"--tp 8 --attn-dp-size 2 --moe-dense-tp-size 1 {ELASTIC} --max-ep-size 16",
        "let each size of the experts be a multiple of 4",
    ),
    (
        "elastic-dense",
        f"--tp 8 --attn-dp-size 2 {ELASTIC} --max-ep-size 16",
        GROWS,
        "set --moe-dense-tp-size to 1",
    ),
    (
        "elastic-timeout",
        "--elastic-ep-scale-timeout 0",
        "--elastic-ep-scale-timeout 9",
        "set --elastic-ep-scale-timeout above 0",
        GROWS,
    ),
    ("elastic-tokenizers", "--tokenizer-worker-num 2", "", "set --tokenizer-worker-num", GROWS),
    ("elastic-ray", "--use-ray", "", "drop --use-ray", GROWS),
    ("elastic-backup", "--enable-elastic-expert-backup", "", "drop --enable-elastic", GROWS),
    (
        "elastic-join-first",
        "",
        "--elastic-ep-initial-size 8",
        "add --elastic-ep-initial-size",
        f"{JOINS} --elastic-ep-join-rank-offset 8",
    ),
    (
        "elastic-join-early",
        "--elastic-ep-join-rank-offset 4",
        "--elastic-ep-join-rank-offset 8",
        "set --elastic-ep-initial-size from 1",
        f"{JOINS} --elastic-ep-initial-size 8",
    ),
    (
        "elastic-join-beyond",
        "--elastic-ep-join-rank-offset 12",
        "--elastic-ep-join-rank-offset 8",
        "set --max-ep-size higher",
        f"{JOINS} --elastic-ep-initial-size 8",
    ),
    (
        "elastic-first",
        "--elastic-ep-initial-size 4",
        "--elastic-ep-initial-size 8",
        "set --elastic-ep-initial-size to the tensor-parallel size",
        GROWS,
    ),
    (
        "elastic-method",
        "--load-balance-method total_tokens",
        "--load-balance-method round_robin",
        "set --load-balance-method to round_robin",
        GROWS,
    ),
    (
        "elastic-backend",
        GROWS.replace("mooncake", "nixl"),
        GROWS,
        "set --elastic-ep-backend to mooncake",
    ),
    (
        "elastic-contexts",
        "--dcp-size 3",
        "--dcp-size 2",
        "set --dcp-size to a divisor of 4",
        f"--tp 8 --attn-dp-size 2 --moe-dense-tp-size 1 {ELASTIC} --max-ep-size 16",
    ),
    (
        "elastic-attention",
        f"--tp 8 {ELASTIC} --max-ep-size 16 --moe-dense-tp-size 1",
        GROWS,
        "set --attn-dp-size above 1",
    ),
    ("elastic-context-size", "--attn-cp-size 2", "--attn-cp-size 1", "set --attn-cp-size", GROWS),
    ("elastic-moe-copies", "--moe-dp-size 2", "--moe-dp-size 1", "set --moe-dp-size to 1", GROWS),
    (
        "elastic-dispatch",
        "--moe-a2a-backend deepep",
        "--moe-a2a-backend nixl",
        "set --moe-a2a-backend to nixl",
        GROWS,
    ),
    (
        "quantized-alone",
        "--enable-quant-communications",
        "--enable-quant-communications --tp 2",
        "drop --enable-quant-communications",
    ),
    (
        "canary-off",
        "--kv-canary-sweep-interval 5",
        "--kv-canary-sweep-interval 5 --kv-canary log",
        "set --kv-canary to log / raise",
    ),
    (
        "loads-alone",
        "--load-publish-endpoint auto",
        f"--load-publish-endpoint auto {EVENTS}",
        "add --kv-events-config",
    ),
    (
        "loads-unread",
        "--load-publish-endpoint auto --kv-events-config zmq",
        f"--load-publish-endpoint auto {EVENTS}",
        "set --kv-events-config to a JSON object",
    ),
    (
        "loads-unpublished",
        '--load-publish-endpoint auto --kv-events-config \'{"topic": "t"}\'',
        f"--load-publish-endpoint auto {EVENTS}",
        'set --kv-events-config to {"publisher": "zmq"}',
    ),
    ("same-port", "--grpc-port 30000", "--grpc-port 30001", "give --grpc-port a port of its own"),
]
KEYWORDS = [
    ("watermark-window", "watermark_context_window=65", "watermark_context_window=64"),
    (
        "watermark-key",
        "watermark_key_b='b'",
        "watermark_key_b='b', watermark_key='a'",
    ),
    (
        "watermark-mixing",
        "watermark_mixing_probability=1.5",
        "watermark_key='a', watermark_key_b='b', watermark_mixing_probability=0.4",
    ),
    (
        "watermark-mixing-alone",
        "watermark_mixing_probability=0.4",
        "watermark_mixing_probability=0.5",
    ),
    ("watermark-probability", "watermark_max_probability=0.0", "watermark_max_probability=1.0"),
    (
        "watermark-default",
        "watermark_default_enabled=True",
        "watermark_default_enabled=True, watermark_key='a'",
    ),
    (
        "watermark-enforced",
        "watermark_enforce_all=True",
        "watermark_enforce_all=True, watermark_key='a'",
    ),
]


def told(root: Path, flags: str, version: str = "") -> list[str]:
    files = {"serve.sh": f"python -m sglang.launch_server --model-path org/m {flags}\n"}
    if version:
        files["requirements.txt"] = f"sglang=={version}\n"
    return [one.message for one in findings(runs_of(root, files), "GPU024")]


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case[0]}-{case[1]}")
def test_a_case(tmp_path: Path, case: tuple[str, ...]) -> None:
    _, refused, taken, instruction, *rest = case
    base = " ".join(rest)
    found = told(tmp_path / "a", f"{base} {refused}")
    assert [one for one in found if one.startswith(instruction)], found
    assert all("SGLang 0.5.23 refuses to start" in one for one in found)
    assert told(tmp_path / "b", f"{base} {taken}") == []
    assert told(tmp_path / "c", f"{base} {refused}", "0.4.6") == []  # a release without it


@pytest.mark.parametrize("case", KEYWORDS, ids=lambda case: case[0])
def test_a_keyword_of_an_engine(tmp_path: Path, case: tuple[str, str, str]) -> None:
    script = "import sglang\n\nllm = sglang.Engine(model_path='m', enable_watermark=True, {})\n"
    for number, keywords in enumerate(case[1:]):
        files = {"g.py": script.format(keywords) + "print(llm.generate('a'))\n"}
        found = findings(runs_of(tmp_path / str(number), files), "GPU024")
        assert len(found) == 1 - number, [one.message for one in found]
        assert all("--" not in one.message for one in found)  # a keyword is no flag


def test_each_rule_has_a_case() -> None:
    named = {f"sglang-{case[0]}" for case in (*CASES, *KEYWORDS)}
    assert {rule.name for rule in ALIKE} == named
