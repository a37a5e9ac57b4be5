"""The audits of vLLM and SGLang read well for a server and for a training run that samples."""

from __future__ import annotations

from pathlib import Path

import pytest

from report_builder.cli import main

MAIN = "static-analysis-report.md"
VERL = (
    "python3 -m verl.trainer.main_ppo algorithm.adv_estimator=grpo trainer.nnodes=1 "
    "trainer.n_gpus_per_node=8 actor_rollout_ref.model.path=Qwen/Qwen3-8B "
    "actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=4 "
    "actor_rollout_ref.rollout.tensor_model_parallel_size=1 "
    "actor_rollout_ref.rollout.gpu_memory_utilization=0.5 "
    "actor_rollout_ref.rollout.name={engine}\n"
)
METHODS = "| 7B | 14B | 30B | 70B |"


def written(tmp_path: Path, files: dict[str, str], *more: str, lang: str = "zh") -> dict[str, str]:
    project = tmp_path / "project"
    for name, text in files.items():
        path = project / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    out = tmp_path / "out"
    main([str(project), "--output-dir", str(out), "--quiet", "--lang", lang, *more])
    return {path.name: path.read_text(encoding="utf-8") for path in out.glob("*.md")}


def section(text: str, heading: str) -> str:
    rest = text[text.index(f"\n## {heading}\n") + 4 :]
    return rest.split("\n## ", 1)[0]


def test_an_engine_beside_training_has_no_table_of_training_methods(tmp_path: Path) -> None:
    made = written(tmp_path, {"run.sh": VERL.format(engine="vllm")}, "--gpu", "A100-80G")
    memory = section(made["v0_vllm-optimization-report.md"], "显存估算参考")
    assert METHODS not in memory
    assert "引擎与训练共用 GPU" in memory


def test_an_engine_on_gpus_of_its_own_has_its_capacity(tmp_path: Path) -> None:
    script = "trl vllm-serve --model Qwen/Qwen3-8B --max-model-len 8192\n"
    made = written(tmp_path, {"serve.sh": script}, "--gpu", "A100-80G")
    memory = section(made["v0_vllm-optimization-report.md"], "显存估算参考")
    assert METHODS not in memory
    assert "| **KV 缓存** | **" in memory


def test_a_model_of_unknown_layers_has_no_capacity(tmp_path: Path) -> None:
    script = "vllm serve /models/own --max-model-len 8192\n"
    made = written(tmp_path, {"serve.sh": script})["v0_vllm-optimization-report.md"]
    assert "无法估算 KV 缓存" in section(made, "显存估算参考")


def test_a_training_framework_keeps_the_table_of_its_methods(tmp_path: Path) -> None:
    script = "swift sft --model Qwen/Qwen2.5-7B-Instruct --dataset a.jsonl\n"
    made = written(tmp_path, {"run.sh": script})
    name = next(name for name in made if "swift" in name)
    assert METHODS in section(made[name], "显存估算参考")


@pytest.mark.parametrize(("engine", "title"), [("vllm", "vLLM"), ("sglang", "SGLang")])
def test_verl_is_the_framework_and_takes_no_deepspeed(
    tmp_path: Path, engine: str, title: str
) -> None:
    text = written(tmp_path, {"run.sh": VERL.format(engine=engine)})[MAIN]
    assert f"| 检测到的训练框架 | verl，推理引擎：{title} |" in text
    advice = section(text, "DeepSpeed / 分布式配置建议")
    assert "verl 用 FSDP 或 Megatron-core 分片" in advice
    assert "ds_config" not in advice
    assert "+actor_rollout_ref.model.override_config.attn_implementation=" in text


def test_verl_is_named_beside_two_engines_and_without_a_release_of_another(
    tmp_path: Path,
) -> None:
    files = {"run.sh": VERL.format(engine="sglang"), "other.sh": VERL.format(engine="vllm")}
    pins = {"requirements.txt": "torch==2.8.0\nverl==0.9.1\nvllm\nsglang\n"}
    made = written(tmp_path, {**files, **pins}, "--launch-command", "bash run.sh")
    assert "| 检测到的训练框架 | verl，推理引擎：vLLM、SGLang |" in made[MAIN]
    assert "\n- 框架：verl\n" in made["v0_training-acceleration-audit-report.md"]


def test_a_server_is_named_by_its_engine(tmp_path: Path) -> None:
    text = written(tmp_path, {"serve.sh": "vllm serve Qwen/Qwen3-8B\n"})[MAIN]
    assert "| 检测到的训练框架 | vLLM |" in text


def test_overrides_stand_on_lines_of_their_own(tmp_path: Path) -> None:
    text = written(tmp_path, {"run.sh": VERL.format(engine="vllm")})[MAIN]
    lines = text.split("\n")
    assert "    trainer.nnodes=1 \\" in lines
    assert "    actor_rollout_ref.rollout.name=vllm" in lines


def test_points_within_reach_are_those_of_the_table(tmp_path: Path) -> None:
    script = VERL.format(engine="sglang").replace(" trainer.nnodes", " --config-name=own trainer.n")
    script = script.replace("python", "SGLANG_AUTO_NUMA_BIND=0 python", 1)
    made = written(tmp_path, {"run.sh": script})["v0_sglang-optimization-report.md"]
    total = next(line for line in made.split("\n") if line.startswith("| **总计** | **"))
    earned = total.split("**")[3].split("/")[0]
    assert f"分，已得 {earned} 分" in made
    assert "." in earned


def test_an_optional_item_is_told_once(tmp_path: Path) -> None:
    made = written(tmp_path, {"serve.sh": "vllm serve Qwen/Qwen3-8B\n"}, lang="en")
    lines = made["v0_vllm-optimization-report.md"].split("\n")
    rows = {line.split(" | ")[0].strip("| "): line for line in lines if line.startswith("| ")}
    assert "optional: EAGLE, a draft model or n-grams" in rows["EAGLE"]
    assert "the model has no such layers" in rows["MTP"]
    assert "| as above |" in rows["n-grams"]
    assert "as above" not in rows["FP8 KV cache"]


def test_a_script_with_directives_goes_to_the_scheduler(tmp_path: Path) -> None:
    made = written(tmp_path, {"serve.sh": "vllm serve Qwen/Qwen2.5-72B-Instruct -tp 4\n"})
    text = made[MAIN] + made["v0_vllm-optimization-report.md"]
    assert "启动：`sbatch serve_dp2_tp4.sh`" in text
    assert "启动：`bash serve_tp4.sh`" in text


def test_an_engine_that_no_run_is_seen_to_start_is_said_so(tmp_path: Path) -> None:
    files = {
        "train.py": "from transformers import Trainer, TrainingArguments\n"
        "Trainer(model=model, args=TrainingArguments('out'), train_dataset=data).train()\n",
        "serving/server.py": "import vllm\n",
        "requirements.txt": "vllm==0.10.2\ntransformers\n",
    }
    made = written(tmp_path, files)
    for name, text in made.items():
        if "vllm" in name:
            assert "未读到启动 vLLM 的运行" in text
            assert "没有找到可以判断的运行" not in text
            break
    else:
        pytest.skip("no audit of vLLM")


SERVER = "services:\n  v:\n    image: vllm/vllm-openai:v0.26.0\n    command: {}\n"


@pytest.mark.parametrize(
    ("flags", "count", "weights"),
    [
        ("--model Qwen/Qwen3.6-27B-FP8", "unknown GPU,", "FP8 weights take about 25.1 GiB"),
        ("--model Qwen/Qwen3.6-27B -tp 2", "unknown GPU × 2,", "16-bit weights, split over 2 GPUs"),
        ("--model me/x-27B-AWQ -tp 2 -dp 2", "unknown GPU × 4,", "4-bit weights"),
    ],
)
def test_a_server_has_the_gpus_that_it_asks_for_and_the_weights_of_its_type(
    tmp_path: Path, flags: str, count: str, weights: str
) -> None:
    made = written(tmp_path, {"docker-compose.yml": SERVER.format(flags)}, lang="en")
    text = made["v0_vllm-optimization-report.md"]
    assert f"- Hardware: {count} adjust" in text
    assert weights in text


def test_the_rows_of_an_engine_before_v1_have_its_own_defaults(tmp_path: Path) -> None:
    files = {"serve.sh": "vllm serve Qwen/Qwen3-8B --max-model-len 4608\n"}
    new = written(tmp_path / "v1", files, lang="en")["v0_vllm-optimization-report.md"]
    assert "| Swap space (V0) | does not apply | — | V1 computes again: it swaps nothing" in new
    pinned = {**files, "requirements.txt": "vllm==0.7.3\n"}
    old = written(tmp_path / "v0", pinned, lang="en")["v0_vllm-optimization-report.md"]
    assert "| Swap space (V0) | on | 1/1 |" in old
    assert "| Chunked prefill | off | 0/1.5 | optional: V0 prefills whole by default" in old
    assert "`max_num_batched_tokens=4608` (default, vLLM 0.7.3)" in old
    assert "data_parallel_size: not known" not in old


MAYBE = """\
import sys
from peft import LoraConfig
from trl import GRPOConfig, GRPOTrainer

peft_config = None
if sys.argv[1] == "lora":
    peft_config = LoraConfig(r=16)
args = GRPOConfig(output_dir="o", use_vllm=True, vllm_mode="colocate")
trainer = GRPOTrainer(
    model="Qwen/Qwen2.5-1.5B", reward_funcs=r, args=args, train_dataset=d, peft_config=peft_config
)
trainer.train()
"""


def test_what_the_tuning_may_be_is_told(tmp_path: Path) -> None:
    files = {"train.py": MAYBE, "run.sh": "python train.py $1\n"}
    made = written(tmp_path, files, lang="en")["v0_vllm-optimization-report.md"]
    assert "- Tuning: unknown, maybe `lora` (train.py:7)" in made


SERVED = (
    "python3 -m sglang.launch_server \\\n"
    "  --model-path Qwen/Qwen2.5-VL-72B-Instruct \\\n"
    "  --quantization fp8 --tp 2 --dp 4 \\\n"
    "  --disable-radix-cache \\\n"
    "  --port 8000\n"
)


def test_a_server_has_no_tables_of_training_items(tmp_path: Path) -> None:
    made = written(tmp_path, {"serve.sh": SERVED})
    general = made["v0_training-acceleration-audit-report.md"]
    assert "本次运行不做训练" in general
    assert "## A. " not in general
    assert "| A | 并行策略 | 0 | 7 |" not in made[MAIN]
    assert "| 注意力实现 | 由引擎选择 |" in general
    assert "- 序列长度：未设置（取模型的上限）" in general


def test_weights_of_a_server_are_those_of_its_quantization(tmp_path: Path) -> None:
    made = written(tmp_path, {"serve.sh": SERVED})["v0_sglang-optimization-report.md"]
    assert "FP8 权重（2 卡切分）每卡约 33.9 GiB" in section(made, "显存估算参考")
    assert "与多模态模型不兼容" in made


def test_a_dropped_flag_leaves_no_empty_line_and_the_router_is_in_the_patch(tmp_path: Path) -> None:
    made = written(tmp_path, {"serve.sh": SERVED}, lang="en")["v0_sglang-optimization-report.md"]
    patch = section(made, "Configuration changes")
    assert "+python3 -m sglang_router.launch_server" in patch
    assert "-  --disable-radix-cache \\" in patch
    assert not any(line.strip("+ ") == "\\" for line in patch.splitlines())
    assert made.count("| as above |") > 3


def test_what_most_items_lack_alike_is_said_once(tmp_path: Path) -> None:
    script = VERL.format(engine="vllm").replace(" trainer.nnodes", " --config-name=own trainer.n")
    made = written(tmp_path, {"run.sh": script}, lang="en")["v0_vllm-optimization-report.md"]
    assert made.count("`--config-name=own` is not in the project, and may set it") == 1
    assert "- F. Attention backend: Generation of FlashAttention, Attention backend" in made
    assert "### E. Scheduling and batching" not in made
    assert "| Weight transfer | on |" in made


def test_the_items_of_an_engine_in_another_job_are_told_once(tmp_path: Path) -> None:
    files = {"train.py": MAYBE.replace("colocate", "server"), "run.sh": "python train.py\n"}
    made = written(tmp_path, files)["v0_vllm-optimization-report.md"]
    assert made.count("引擎由另一个任务提供服务") == 1
    assert "项不适用：引擎由另一个任务提供服务，其参数写在那里。" in made


def test_a_value_in_a_dict_that_is_not_known_is_shown_as_written(tmp_path: Path) -> None:
    code = MAYBE.replace('"o", ', '"o", model_init_kwargs={"attn_implementation": pick()}, ')
    made = written(tmp_path, {"train.py": code, "run.sh": "python train.py $1\n"})
    text = made["v0_training-acceleration-audit-report.md"]
    assert "`model_init_kwargs: attn_implementation = pick()`" in text
    assert "Unknown(" not in text


def test_other_runs_are_those_beside_the_primary_one(tmp_path: Path) -> None:
    files = {"run.sh": VERL.format(engine="vllm"), "more.sh": VERL.format(engine="sglang")}
    text = written(tmp_path, files, "--launch-command", "bash run.sh")[MAIN]
    others = section(text, "其他运行")
    assert "`more.sh:1` | 训练 | verl |" in others
    assert "`run.sh:1`" not in others


def test_what_is_dropped_is_shown_as_it_is_written(tmp_path: Path) -> None:
    script = (
        "python -m sglang.launch_server --model-path Qwen/Qwen3-8B --max-total-tokens 1048576 "
        "--context-length 1048576 --max-running-requests 4\n"
    )
    text = written(tmp_path, {"serve.sh": script})[MAIN]
    assert "- --max-total-tokens 1048576\n" in text
    assert "KV 池限制为 1048576 token" in text


@pytest.mark.parametrize("engine", ["vllm", "sglang"])
def test_a_capacity_of_several_copies_says_so(tmp_path: Path, engine: str) -> None:
    start = {"vllm": "vllm serve", "sglang": "python -m sglang.launch_server --model-path"}[engine]
    flag = {"vllm": "--data-parallel-size", "sglang": "--mem-fraction-static 0.8 --dp-size"}[engine]
    script = f"{start} Qwen/Qwen3-8B {flag} 4\n"
    name = f"v0_{engine}-optimization-report.md"
    several = section(written(tmp_path, {"serve.sh": script})[name], "显存估算参考")
    assert "16 位权重每卡约" in several
    assert "共 4 个副本" in several
    one = written(tmp_path, {"serve.sh": script.replace(" 4\n", " 1\n")})[name]
    assert "副本" not in section(one, "显存估算参考")


@pytest.mark.parametrize(
    ("more", "shown"), [("--enable-dp-attention", "unknown GPU × 8,"), ("", "unknown GPU × 64,")]
)
def test_ranks_of_attention_lie_within_tensor_parallelism(
    more: str, shown: str, tmp_path: Path
) -> None:
    server = f"python3 -m sglang.launch_server --model-path me/x-27B --tp 8 --dp 8 {more}\n"
    made = written(tmp_path, {"serve.sh": server}, lang="en")
    assert shown in made["v0_sglang-optimization-report.md"]
