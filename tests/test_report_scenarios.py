"""Templates that the reports print: complete, and clean under the checks themselves."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from flake8_gpu_training.facts import Location, Setting
from flake8_gpu_training.models import model_of
from flake8_gpu_training.runs.assembly import with_profile
from flake8_gpu_training.runs.model import Hardware, Model, Place, PlaceKind, Run, RunKind
from report_builder.report import Options, build
from report_builder.scenarios import Scenario, scenarios

FRAMEWORKS = (
    "swift",
    "llamafactory",
    "hf_trainer",
    "videox_fun",
    "flow_factory",
    "vllm",
    "sglang",
    "generic",
)
# Their launch scripts come with the framework's checkout, so no run is found without it.
NEED_CHECKOUT = ("videox_fun",)
ALL = [(name, number) for name in FRAMEWORKS for number in range(len(scenarios(None, name)))]
AT = Location("train.sh", 1)


def run_of(name: str = "Qwen/Qwen2.5-7B-Instruct", gpus: int = 1, **practices: Any) -> Run:
    values = {"model": name, **practices}
    return Run(
        "train.sh:1",
        RunKind.TRAIN,
        "swift",
        AT,
        Place(PlaceKind.FLAGS, AT),
        model=model_of(name),
        hardware=Hardware(gpus_per_node=gpus, nodes=1),
        profile={name: Setting(name, value, AT) for name, value in values.items()},
    )


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_every_framework_has_two_scenarios_or_more(framework: str) -> None:
    found = scenarios(None, framework)
    assert len(found) >= 2
    assert len({scenario.title for scenario in found}) == len(found)


@pytest.mark.parametrize(("framework", "number"), ALL)
def test_texts_are_complete_in_both_languages(framework: str, number: int) -> None:
    scenario = scenarios(None, framework)[number]
    for file in scenario.files:
        assert "$" not in re.sub(r"\$\{?[A-Z_]+", "", file.text.en)
        assert not re.search(r"[\u4e00-\u9fff]", file.text.en)
        assert "#:" not in file.text.zh + file.text.en
        for text in file.text:
            if file.language == "yaml":
                assert isinstance(yaml.safe_load(text), dict)
            elif file.language == "json":
                assert json.loads(text)
            elif file.language == "python":
                compile(text, file.name, "exec")


@pytest.mark.parametrize(
    ("framework", "number"), [(f, n) for f, n in ALL if f not in NEED_CHECKOUT]
)
def test_a_run_made_from_a_template_has_no_finding_and_full_attainment(
    tmp_path: Path, framework: str, number: int
) -> None:
    scenario = scenarios(None, framework)[number]
    for file in scenario.files:
        (tmp_path / file.name).write_text(file.text.en, encoding="utf-8")
    (tmp_path / "run.sh").write_text(f"{scenario.launch}\n")
    report = build(tmp_path, "x", Options(), lambda step, done, total: None)
    assert report.primary is not None
    assert report.primary.framework == framework
    assert [(entry.code, entry.action.en) for entry in report.recommendations] == []
    for audit in report.audits:
        assert audit.attainment in (1.0, None)


def titles(found: tuple[Scenario, ...]) -> list[str]:
    return [scenario.title.en for scenario in found]


@pytest.mark.parametrize(
    ("run", "start"),
    [
        (run_of(tuning="lora"), "LoRA of a 7.6B model on one"),
        (run_of(tuning="lora", quantization_bits=4), "QLoRA of a 7.6B"),
        (run_of("Qwen/Qwen2.5-72B-Instruct", 8, tuning="lora"), "LoRA of a 72.7B"),
        (run_of(gpus=8, tuning="full"), "Full tuning of a 7.6B"),
        (run_of(gpus=8, tuning="lora", algorithm="grpo"), "GRPO"),
        (run_of(gpus=8, tuning="lora", max_length=400_000), "Very long"),
    ],
)
def test_the_nearest_scenario_comes_first(run: Run, start: str) -> None:
    assert titles(scenarios(run, "swift"))[0].startswith(start)


@pytest.mark.parametrize(
    ("practices", "method"),
    [({"zero_stage": 3}, "DeepSpeed"), ({"fsdp": "full_shard"}, "FSDP")],
)
@pytest.mark.parametrize("model", ["Qwen/Qwen2.5-7B-Instruct", "meta-llama/Llama-3.1-8B"])
def test_the_nearest_scenario_shards_as_the_run_does(
    model: str, practices: dict[str, Any], method: str
) -> None:
    run = run_of(model, gpus=8, tuning="full", **practices)
    nearest = scenarios(run, "hf_trainer")[0]
    assert nearest.title.en.startswith("Full tuning")
    assert method in nearest.title.en
    assert model in nearest.files[0].text.en
    assert "Qwen2DecoderLayer" not in nearest.files[0].text.en


def test_the_runs_own_names_are_filled_in_where_they_fit() -> None:
    run = run_of("my/Qwen2.5-7B-tuned", tuning="lora", dataset="data/a.jsonl", output_dir="out/x")
    by_title = {s.title.en: s.files[0].text.en for s in scenarios(run, "swift")}
    small = next(text for title, text in by_title.items() if title.startswith("LoRA of a 7.6B"))
    large = next(text for title, text in by_title.items() if "70B" in title)
    assert "model: my/Qwen2.5-7B-tuned\n" in small
    assert "dataset: data/a.jsonl\n" in small
    assert "output_dir: out/x-sft_lora\n" in small
    assert "model: Qwen/Qwen2.5-72B-Instruct\n" in large


def test_names_that_could_break_a_template_are_not_filled_in() -> None:
    run = run_of(tuning="lora", dataset='a "b" $c', output_dir="x\ny")
    text = scenarios(run, "swift")[0].files[0].text.en
    assert "dataset: your_dataset\n" in text
    assert "output_dir: output/run\n" in text


def test_a_template_for_one_gpu_is_started_on_all_of_the_run() -> None:
    one = scenarios(run_of(gpus=1, tuning="lora"), "swift")[0]
    eight = scenarios(replace(run_of(gpus=8, tuning="lora")), "swift")[0]
    assert one.launch == "swift sft sft_lora.yaml"
    assert eight.launch == "NPROC_PER_NODE=8 swift sft sft_lora.yaml"
    assert eight.title.en == "LoRA of a 7.6B model on 8×80 GB"
    assert eight.title.zh == "7.6B 模型 LoRA 微调，8×80 GB"


def by_megatron(name: str, **practices: Any) -> Run:
    return run_of(name, 8, megatron=True, **practices)


MOE = "Qwen/Qwen3-30B-A3B-Instruct-2507"


@pytest.mark.parametrize(
    ("run", "start"),
    [
        (by_megatron(MOE, tuning="lora"), "LoRA of a 30B mixture of experts by Megatron"),
        (by_megatron("Qwen/Qwen2.5-14B-Instruct", tuning="full"), "Full tuning of a 14.8B model"),
    ],
)
@pytest.mark.parametrize("version", ["4.6.0", "3.12.6"])
def test_a_run_of_megatron_gets_templates_of_megatron(
    run: Run, start: str, version: str, tmp_path: Path
) -> None:
    found = scenarios(replace(run, versions={"ms-swift": version}), "swift")
    assert len(found) == 6
    assert found[0].title.en.startswith(start)
    assert "megatron sft" in found[1].launch
    (tmp_path / "requirements.txt").write_text(f"ms-swift=={version}\n")
    (tmp_path / found[0].files[0].name).write_text(found[0].files[0].text.en, encoding="utf-8")
    (tmp_path / "run.sh").write_text(f"{found[0].launch}\n")
    report = build(tmp_path, "x", Options(), lambda step, done, total: None)
    assert report.primary is not None
    assert report.primary.value("megatron") is True
    assert [(entry.code, entry.action.en) for entry in report.recommendations] == []
    assert {audit.attainment for audit in report.audits} == {1.0}


def test_a_run_of_ms_swift_3_gets_the_names_of_ms_swift_3() -> None:
    new = scenarios(run_of(tuning="lora"), "swift")[0]
    old = scenarios(replace(run_of(tuning="lora"), versions={"ms-swift": "3.12.6"}), "swift")[0]
    assert "tuner_type: lora\n" in new.files[0].text.en
    assert "train_type: lora\n" in old.files[0].text.zh
    assert "tuner_type" not in old.files[0].text.zh + old.files[0].text.en


@pytest.mark.parametrize("name", ["got_ocr2", "<MODEL>", "$MODEL/x"])
def test_a_name_that_no_hub_has_is_not_filled_in(name: str) -> None:
    run = replace(run_of(tuning="lora", model=name), model=Model(name=name))
    assert all(name not in file.text.en for s in scenarios(run, "swift") for file in s.files)


def test_a_model_of_unknown_size_fills_no_template_for_a_large_one() -> None:
    run = replace(run_of(tuning="lora", model="my/own"), model=Model(name="my/own"))
    by_title = {s.title.en: s.files[0].text.en for s in scenarios(run, "swift")}
    large = next(text for title, text in by_title.items() if "70B" in title)
    assert "my/own" not in large


@pytest.mark.parametrize(
    ("model", "tuning", "algorithm", "start"),
    [
        ("Lightricks/LTX-2", "lora", "nft", "NFT"),
        ("Wan-AI/Wan2.1-T2V-14B-Diffusers", "full", "grpo", "GRPO, full tuning of Wan2.1 14B"),
        ("Wan-AI/Wan2.1-T2V-1.3B-Diffusers", "lora", "grpo", "GRPO with LoRA of Wan2.1 1.3B"),
        ("black-forest-labs/FLUX.1-dev", "lora", "grpo", "GRPO with LoRA of FLUX.1-dev"),
    ],
)
def test_the_nearest_scenario_of_flow_factory(
    model: str, tuning: str, algorithm: str, start: str
) -> None:
    run = replace(run_of(model, 8, tuning=tuning, algorithm=algorithm), framework="flow_factory")
    assert titles(scenarios(run, "flow_factory"))[0].startswith(start)


@pytest.mark.parametrize(
    ("folder", "listed", "shown"),
    [
        ("data/clips/", "data/list.json", ("data/clips", "data/list.json")),
        ("data/clips", None, ("data/clips", "data/clips/metadata.json")),
        ("", "/abs/list.json", ("", "/abs/list.json")),
        (None, "/abs/list.json", ("", "/abs/list.json")),
        ("$DATA", "list.json", None),
        (None, None, None),
    ],
)
def test_videox_fun_keeps_the_folder_and_the_list_of_the_run(
    folder: Any, listed: Any, shown: Any
) -> None:
    given = {"train_data_dir": folder, "train_data_meta": listed}
    settings = {n: Setting(n, value, AT) for n, value in given.items() if value is not None}
    run = replace(run_of("Wan2.1-Fun-1.3B-InP"), framework="videox_fun", settings=settings)
    text = scenarios(run, "videox_fun")[0].files[0].text.en
    folder, listed = shown or (
        "datasets/internal_datasets",
        "datasets/internal_datasets/metadata.json",
    )
    assert f'--train_data_dir="{folder}"' in text
    assert f'--train_data_meta="{listed}"' in text


def test_every_audited_framework_has_the_agreed_number_of_scenarios() -> None:
    counts = {name: len(scenarios(None, name)) for name in FRAMEWORKS}
    assert counts["swift"] == 6
    assert [counts[n] for n in ("llamafactory", "videox_fun", "flow_factory", "hf_trainer")] == [
        5,
        5,
        5,
        5,
    ]


def sampling(**settings: Any) -> Run:
    """A GRPO run of ms-swift with parameters of its own."""
    run = run_of(gpus=8, tuning="lora", algorithm="grpo")
    return replace(run, settings={name: Setting(name, v, AT) for name, v in settings.items()})


def test_a_run_that_samples_keeps_its_rewards_and_all_its_gpus() -> None:
    run = sampling(
        reward_funcs=["yes_no", "format"], external_plugins="grpo/plugin.py", system="prompt.txt"
    )
    nearest = scenarios(run, "swift")[0]
    assert nearest.title.en == "GRPO of a 7.6B model with vLLM rollout on 8×80 GB"
    assert nearest.launch == "NPROC_PER_NODE=8 swift rlhf grpo.yaml"
    found = yaml.safe_load(nearest.files[0].text.en)
    assert found["reward_funcs"] == ["yes_no", "format"]
    assert (found["external_plugins"], found["system"]) == ("grpo/plugin.py", "prompt.txt")


def test_a_template_for_more_gpus_than_the_run_has_says_so() -> None:
    run = replace(sampling(), hardware=Hardware(gpus_per_node=2, nodes=1))
    nearest = scenarios(run, "swift")[0]
    assert nearest.title.en.endswith("on 4×80 GB")
    assert nearest.launch.startswith("NPROC_PER_NODE=4 ")
    assert yaml.safe_load(nearest.files[0].text.en)["reward_funcs"] == "accuracy"


@pytest.mark.parametrize(
    ("version", "launch"),
    [
        ("3.12.6", "--config sft_lora.yaml"),
        ("4.0.4", "--config sft_lora.yaml"),
        ("3.8.3", ""),
        ("", ""),
    ],
)
def test_releases_that_take_a_file_by_a_flag_get_the_flag(version: str, launch: str) -> None:
    pins = {"ms-swift": version} if version else {}
    nearest = scenarios(replace(run_of(tuning="lora"), versions=pins), "swift")[0]
    assert nearest.launch == f"swift sft {launch or 'sft_lora.yaml'}"


def test_weights_that_a_full_training_goes_on_from_are_its_model() -> None:
    given = {"ckpt_dir": "/data/step-155", "model_type": "got_ocr2"}
    run = replace(
        run_of(gpus=8, tuning="full"),
        model=Model(),
        profile={"tuning": Setting("tuning", "full", AT)},
        settings={name: Setting(name, value, AT) for name, value in given.items()},
    )
    nearest = scenarios(run, "swift")[0]
    assert nearest.title.en.startswith("Full tuning of the run's model with DeepSpeed")
    assert nearest.title.zh.startswith("本项目模型全参微调")
    found = yaml.safe_load(nearest.files[0].text.en)
    assert (found["model"], found["model_type"]) == ("/data/step-155", "got_ocr2")


@pytest.mark.parametrize(
    ("gpus", "practices", "title"),
    [
        (1, {"tuning": "lora"}, "LoRA of a 7.6B model on one 80 GB card"),
        (None, {"tuning": "lora"}, "LoRA of a 7.6B model on one 80 GB card"),
        (4, {"tuning": "lora"}, "LoRA of a 7.6B model on 4×80 GB"),
        # ZeRO is for several GPUs, however many they are
        (None, {"tuning": "lora", "zero_stage": 2}, "LoRA of a 7.6B model with DDP on 80 GB cards"),
        (
            None,
            {"tuning": "full", "zero_stage": 3},
            "Full tuning of a 7.6B model with DeepSpeed ZeRO-3 on 8×80 GB",
        ),
        (
            None,
            {"tuning": "lora", "zero_stage": 2, "quantization_bits": 4},
            "QLoRA of a 7.6B model with DDP on 24 GB cards",
        ),
    ],
)
def test_a_run_of_llamafactory_on_several_gpus_gets_no_template_for_one(
    gpus: Any, practices: dict[str, Any], title: str
) -> None:
    run = replace(run_of(gpus=gpus, **practices), framework="llamafactory")
    assert scenarios(run, "llamafactory")[0].title.en == title
    assert "单卡" not in scenarios(run, "llamafactory")[0].title.zh or "one" in title


def test_a_template_keeps_what_it_need_not_change_of_the_run() -> None:
    run = run_of(tuning="lora", lora_rank=8, max_length=2000, micro_batch_size=2)
    given = {"learning_rate": 3e-5, "lora_alpha": 16, "num_train_epochs": 1}
    run = replace(run, settings={name: Setting(name, v, AT) for name, v in given.items()})
    by_title = {s.title.en: s for s in scenarios(run, "swift")}
    near = next(s for title, s in by_title.items() if title.startswith("LoRA of a 7.6B model on"))
    found = yaml.safe_load(near.files[0].text.zh)
    assert (found["lora_rank"], found["lora_alpha"], found["max_length"]) == (8, 16, 2000)
    assert (found["learning_rate"], found["num_train_epochs"]) == (3e-5, 1)
    assert found["per_device_train_batch_size"] == 2
    assert near.changes.en == ""


def test_a_template_says_what_it_changes_of_the_run() -> None:
    run = run_of(tuning="lora", lora_rank=8, max_length=16_000, micro_batch_size=9)
    quantized = next(s for s in scenarios(run, "swift") if s.title.en.startswith("QLoRA"))
    found = yaml.safe_load(quantized.files[0].text.en)
    assert (found["lora_rank"], found["max_length"]) == (8, 2048)
    assert quantized.changes.en == (
        "Other than in this run: `max_length` 16000 → 2048, `per_device_train_batch_size` 9 → 2."
    )
    large = next(s for s in scenarios(run, "swift") if "70B" in s.title.en)
    assert large.changes.en == ""
    assert "lora_rank: 64" in large.files[0].text.en


def test_a_program_keeps_the_rank_of_the_run() -> None:
    run = replace(run_of(tuning="lora", lora_rank=8, quantization_bits=4), framework="hf_trainer")
    nearest = scenarios(run, "hf_trainer")[0]
    assert "LoraConfig(r=8, lora_alpha=64" in nearest.files[0].text.en


@pytest.mark.parametrize(
    ("model", "loader"),
    [
        ("bert-base-uncased", "AutoModelForSequenceClassification"),
        ("google/vit-base-patch16-224", "AutoModelForImageClassification"),
        ("openai/whisper-small", "AutoModelForSpeechSeq2Seq"),
    ],
)
def test_a_small_model_of_another_kind_gets_a_template_of_its_own(
    model: str, loader: str, tmp_path: Path
) -> None:
    run = replace(run_of(model, tuning="full"), framework="hf_trainer")
    (only,) = scenarios(run, "hf_trainer")
    text = only.files[0].text.en
    assert f'{loader}.from_pretrained("{model}")' in text
    (tmp_path / "train_model.py").write_text(text, encoding="utf-8")
    (tmp_path / "run.sh").write_text(f"{only.launch}\n", encoding="utf-8")
    report = build(tmp_path, "x", Options(gpus=1), lambda step, done, total: None)
    assert [(entry.code, entry.action.en) for entry in report.recommendations] == []
    assert {audit.attainment for audit in report.audits} == {1.0}


def of_model(name: str, billions: float, algorithm: str = "sft", kind: str = "LLM") -> Run:
    """A run of ms-swift that trains this model on a data set of its own."""
    run = run_of(gpus=4, tuning="full", algorithm=algorithm)
    model = Model(name, kind, round(billions * 1e9), is_hf_family=True)
    told = {"dataset": Setting("dataset", "mine.jsonl", AT), "model": Setting("model", name, AT)}
    return replace(run, model=model, profile={**run.profile, **told})


def test_a_small_model_is_filled_in_and_a_large_one_is_not() -> None:
    small, large = of_model("Qwen/Qwen3-0.6B", 0.6), of_model("Qwen/Qwen3-32B", 32)
    nearest = scenarios(small, "swift")[0]
    assert nearest.fits
    assert "Qwen/Qwen3-0.6B" in nearest.files[0].text.en
    assert "of a 0.6B model" in nearest.title.en
    full = next(s for s in scenarios(large, "swift") if s.title.en.startswith("Full tuning"))
    assert not full.fits
    assert "Qwen/Qwen3-32B" not in full.files[0].text.en


def test_a_model_that_vllm_does_not_serve_is_not_rolled_out_by_it() -> None:
    served = scenarios(of_model("Qwen/Qwen3-0.6B", 0.6, "grpo"), "swift")[0]
    other = scenarios(of_model("stepfun-ai/GOT-OCR2_0", 0.58, "grpo", "MLLM"), "swift")[0]
    assert served.fits
    assert not other.fits
    assert "GOT" not in other.files[0].text.en


@pytest.mark.parametrize("algorithm", ["grpo", "dpo", "sft", "pt"])
def test_a_data_set_is_filled_in_where_it_is_of_the_kind_that_is_asked_for(algorithm: str) -> None:
    for scenario in scenarios(of_model("Qwen/Qwen3-8B", 8, algorithm), "swift"):
        samples = "rlhf" in scenario.launch
        fits = samples if algorithm == "grpo" else (algorithm != "dpo" and not samples)
        assert ("mine.jsonl" in scenario.files[0].text.en) is fits, scenario.title.en


def of_trl(version: str, algorithm: str = "grpo") -> Run:
    run = replace(run_of(gpus=8, tuning="lora", algorithm=algorithm), framework="hf_trainer")
    return replace(run, versions={"trl": version})


@pytest.mark.parametrize(
    ("version", "has", "lacks"),
    [
        ("1.16.0", ('"dtype": "bfloat16"', "vllm_enable_sleep_mode=True"), ("torch_dtype",)),
        ("0.18.2", ('"torch_dtype": "bfloat16"',), ("vllm_enable_sleep_mode",)),
    ],
)
def test_a_run_that_samples_gets_a_template_that_does(
    version: str, has: tuple[str, ...], lacks: tuple[str, ...]
) -> None:
    nearest = scenarios(of_trl(version), "hf_trainer")[0]
    text = nearest.files[0].text.en
    assert "GRPOTrainer(" in text
    assert all(words in text for words in has)
    assert not any(words in text for words in lacks)


def test_no_other_kind_of_training_is_near_a_run_that_samples() -> None:
    assert scenarios(of_trl("0.15.2"), "hf_trainer") == ()  # it has no engine in the processes
    assert scenarios(of_trl("1.16.0", "rloo"), "hf_trainer") == ()
    verl = replace(run_of(gpus=8, algorithm="grpo"), framework="generic")
    assert scenarios(verl, "generic") == ()
    assert scenarios(run_of(gpus=8, tuning="full"), "generic")


def test_the_template_for_sampling_has_no_finding(tmp_path: Path) -> None:
    nearest = scenarios(of_trl("1.16.0"), "hf_trainer")[0]
    for file in nearest.files:
        (tmp_path / file.name).write_text(file.text.en, encoding="utf-8")
    (tmp_path / "run.sh").write_text(f"{nearest.launch}\n", encoding="utf-8")
    report = build(tmp_path, "x", Options(gpu="A100-80G", gpus=8), lambda step, done, total: None)
    assert [(entry.code, entry.action.en) for entry in report.recommendations] == []
    assert {audit.attainment for audit in report.audits} == {1.0}


def test_what_a_model_is_refused_with_is_in_no_template_for_it() -> None:
    for scenario in scenarios(of_model("stepfun-ai/GOT-OCR2_0", 0.58, kind="MLLM"), "swift"):
        found = yaml.safe_load(scenario.files[0].text.en)
        ours = found["model"] == "stepfun-ai/GOT-OCR2_0"
        assert ("packing" in found or "use_liger_kernel" in found) is (
            not ours and found.get("rlhf_type") is None
        )
    (text, *_) = scenarios(of_model("Qwen/Qwen3-0.6B", 0.6), "swift")
    assert {"packing", "use_liger_kernel"} <= yaml.safe_load(text.files[0].text.en).keys()


def test_a_rate_of_rollouts_is_none_of_supervised_tuning() -> None:
    run = of_model("Qwen/Qwen3-8B", 8, "grpo")
    given = {"learning_rate": Setting("learning_rate", 1e-6, AT)}
    run = replace(run, settings={**run.settings, **given})
    full = next(s for s in scenarios(run, "swift") if s.title.en.startswith("Full tuning"))
    assert yaml.safe_load(full.files[0].text.en)["learning_rate"] == "1e-5"
    assert "`learning_rate`" in full.changes.en


def test_a_scenario_for_very_long_samples_keeps_its_length() -> None:
    run = of_model("Qwen/Qwen3-8B", 8)
    told = {"max_length": Setting("max_length", 4096, AT)}
    run = replace(run, profile={**run.profile, **told})
    long = next(s for s in scenarios(run, "swift") if "512K" in s.title.en)
    assert yaml.safe_load(long.files[0].text.en)["max_length"] == 524288


def test_full_tuning_has_no_rank_to_change() -> None:
    run = of_model("Qwen/Qwen3-8B", 8)
    run = replace(run, profile={**run.profile, "lora_rank": Setting("lora_rank", 8)})
    assert not any("lora_rank" in s.changes.en for s in scenarios(run, "swift"))


def test_rollouts_keep_their_number_length_and_weights() -> None:
    given = {
        "reward_funcs": ["accuracy", "format"],
        "reward_weights": [1, 0.1],
        "num_generations": 16,
        "max_completion_length": 2048,
    }
    run = sampling(**given)
    told = {
        "micro_batch_size": Setting("micro_batch_size", 2, AT),
        "max_length": Setting("max_length", 1024, AT),
    }
    run = replace(run, profile={**run.profile, **told})
    found = yaml.safe_load(scenarios(run, "swift")[0].files[0].text.en)
    assert found["reward_weights"] == [1, 0.1]
    assert (found["num_generations"], found["max_completion_length"]) == (16, 2048)
    assert (found["per_device_train_batch_size"], found["max_length"]) == (2, 1024)


def test_a_title_names_no_kernels_that_the_model_has_not() -> None:
    titles = [s.title for s in scenarios(of_model("stepfun-ai/GOT-OCR2_0", 0.58), "swift")]
    full = next(title for title in titles if title.en.startswith("Full tuning"))
    assert full.en == "Full tuning of a 0.6B model with DeepSpeed ZeRO-3 on 8×80 GB"
    assert "Liger" not in full.zh
    known = [s.title.en for s in scenarios(of_model("Qwen/Qwen3-8B", 8), "swift")]
    assert any(title.endswith("and Liger Kernel on 8×80 GB") for title in known)


def recipe_for(name: str, template: str, **practices: Any) -> Any:
    """LLaMA-Factory's nearest template, for a run that names its own chat template."""
    run = run_of(name, tuning="lora", **practices)
    settings = {"template": Setting("template", template, AT)}
    run = replace(run, framework="llamafactory", settings=settings)
    return yaml.safe_load(scenarios(run, "llamafactory")[0].files[0].text.en)


def test_a_recipe_of_llamafactory_is_for_the_runs_own_model() -> None:
    own = recipe_for("meta-llama/Llama-3.1-8B", "tulu_v3")
    assert (own["template"], own["neat_packing"]) == ("tulu_v3", True)
    small = recipe_for("Qwen/Qwen3-0.6B", "qwen3")  # what is smaller fits as well
    assert (small["model_name_or_path"], small["template"]) == ("Qwen/Qwen3-0.6B", "qwen3")
    large = recipe_for("Qwen/Qwen2.5-32B-Instruct", "qwen")
    assert large["model_name_or_path"] != "Qwen/Qwen2.5-32B-Instruct"
    recurrent = recipe_for("Qwen/Qwen3.5-2B", "qwen3_5_nothink")
    assert {"packing", "neat_packing"}.isdisjoint(recurrent)
    assert recurrent["enable_liger_kernel"] is True
    assert "enable_liger_kernel" not in recipe_for("Qwen/Qwen3-VL-8B-Instruct", "qwen3_vl")


@pytest.mark.parametrize(
    ("own", "told"),
    [
        ({"use_muon": True}, "`use_muon=True` → `optim: adamw_torch_fused`."),
        ({"optim": "adamw_torch"}, ""),
        ({}, ""),
        ({"pure_bf16": True}, "`pure_bf16` → `bf16`."),
    ],
)
def test_a_recipe_says_that_its_optimizer_is_another(own: dict[str, Any], told: str) -> None:
    values = {"finetuning_type": "lora", "stage": "sft", "template": "qwen", **own}
    settings = {name: Setting(name, value, AT) for name, value in values.items()}
    run = replace(run_of(), framework="llamafactory", settings=settings, profile={})
    assert scenarios(with_profile(run), "llamafactory")[0].changes.en.endswith(told)
    assert bool(scenarios(with_profile(run), "llamafactory")[0].changes.en) is bool(told)


def test_a_text_model_is_not_given_the_pictures_of_the_run() -> None:
    values = {"template": "qwen3_vl", "image_max_pixels": 262144, "trust_remote_code": True}
    settings = {name: Setting(name, value, AT) for name, value in values.items()}
    run = run_of("Qwen/Qwen3-VL-8B-Instruct", tuning="lora", dataset="cifar")
    run = replace(run, framework="llamafactory", settings=settings)
    for each in scenarios(run, "llamafactory"):
        found = yaml.safe_load(each.files[0].text.en)
        is_own = "VL" in found["model_name_or_path"]
        assert (found["dataset"] == "cifar") is is_own
        assert found.get("image_max_pixels") == (262144 if is_own else None)
        assert found.get("trust_remote_code") is (True if is_own else None)
    text = replace(run, model=model_of("Qwen/Qwen3-8B"))
    recipes = [yaml.safe_load(s.files[0].text.en) for s in scenarios(text, "llamafactory")]
    assert {found["dataset"] for found in recipes} == {"cifar"}


def test_a_recipe_has_no_parameter_that_the_release_lacks() -> None:
    settings = {"template": Setting("template", "qwen", AT)}
    run = replace(run_of(tuning="lora"), framework="llamafactory", settings=settings)
    name = "llamafactory"
    old = replace(run, held={name: "0.8.3"}, unreleased=frozenset((name,)))
    for one, lacks in ((run, False), (old, True)):
        found = yaml.safe_load(scenarios(one, "llamafactory")[0].files[0].text.en)
        assert ("enable_liger_kernel" not in found) is lacks
        assert found["neat_packing"] is True


def test_the_training_of_an_embedding_fills_no_template_for_text() -> None:
    run = run_of("Qwen/Qwen3-Embedding-0.6B", tuning="full", dataset="pairs.jsonl")
    task = {"task_type": Setting("task_type", "embedding", AT)}
    for found in scenarios(replace(run, settings=task), "swift"):
        text = found.files[0].text.en
        assert "Embedding" not in text
        assert "pairs.jsonl" not in text
        assert not found.fits


def test_a_template_lists_what_else_it_sets_otherwise() -> None:
    given = {
        "gradient_checkpointing": False,
        "deepspeed": "ds.json",
        "save_steps": 20,
        "dataloader_num_workers": 4,  # the template's own
        "torch_dtype": "bfloat16",
        "padding_free": False,  # off, as where nothing says so
        "dataset": "a.jsonl",
    }
    run = run_of(tuning="lora", lora_rank=8, max_length=2048, micro_batch_size=2)
    run = replace(run, settings={name: Setting(name, v, AT) for name, v in given.items()})
    by_title = {s.title.en: s for s in scenarios(run, "swift")}
    near = next(s for title, s in by_title.items() if title.startswith("LoRA of a 7.6B model on"))
    assert near.changes.en == (
        "Other than in this run: `gradient_checkpointing` False → true, `deepspeed` ds.json → —, "
        "`save_steps` 20 → 500."
    )
