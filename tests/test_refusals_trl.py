"""Rules of frameworks/refusals/trl: what is refused, and what is not."""

from __future__ import annotations

from pathlib import Path

import pytest
from checks_support import findings, runs_alone, runs_of

NEW = "1.16.0"
SOURCE = """\
from trl import {name}, {trainer}

args = {name}(output_dir="out", {arguments})
{trainer}(model=model, args=args, train_dataset=data, eval_dataset=data, {given}).train()
"""


def messages(name: str, arguments: str, given: str = "", release: str = NEW) -> list[str]:
    trainer = name.replace("Config", "Trainer")
    source = SOURCE.format(name=name, trainer=trainer, arguments=arguments, given=given)
    return [f.message for f in findings(runs_alone(source, trl=release), "GPU024")]


SELECTIVE = "gradient_checkpointing_kwargs={'selective': True"
VLLM = "use_vllm=True, vllm_importance_sampling_mode="
SERVED = "teacher_model_server_url='http://a', "
OPD = "distillation_objective='iw_opd', lmbda=1.0, "
ULD = "use_uld_loss=True, "
HYBRID = ULD + "uld_use_hybrid_loss=True, "


@pytest.mark.parametrize(
    ("name", "refused", "taken", "instruction"),
    [
        (
            "GRPOConfig",
            "generation_batch_size=8, steps_per_generation=2",
            "steps_per_generation=2",
            "drop generation_batch_size or steps_per_generation",
        ),
        ("GRPOConfig", "num_generations=1", "num_generations=2", "give num_generations 2 or more"),
        ("RLOOConfig", "num_generations=1", "num_generations=2", "give num_generations 2 or more"),
        (
            "GRPOConfig",
            "auto_find_batch_size=True",
            "auto_find_batch_size=False",
            "drop auto_find_batch_size",
        ),
        (
            "GRPOConfig",
            "log_completions_hub_repo='me/log'",
            "log_completions_hub_repo='me/log', log_completions=True",
            "set log_completions to true",
        ),
        (
            "GRPOConfig",
            "vllm_importance_sampling_clip_min=3.0",
            "vllm_importance_sampling_clip_min=0.5",
            "give vllm_importance_sampling_clip_min less than clip_max (3.0)",
        ),
        (
            "GRPOConfig",
            VLLM + "'token_truncate', vllm_importance_sampling_clip_max=None",
            VLLM + "'token_mask', vllm_importance_sampling_clip_max=None",
            "set vllm_importance_sampling_clip_max",
        ),
        (
            "GRPOConfig",
            "loss_type='vespo', use_vllm=True",
            "loss_type='vespo', " + VLLM + "'token_mask'",
            "set vllm_importance_sampling_mode to token_truncate or token_mask",
        ),
        (
            "GRPOConfig",
            "sync_ref_model=True",
            "sync_ref_model=True, beta=0.1",
            "give beta more than 0, or drop sync_ref_model",
        ),
        ("GRPOConfig", "loss_type='ppo'", "loss_type='dapo'", "give loss_type one of grpo"),
        (
            "GRPOConfig",
            "importance_sampling_level='word'",
            "importance_sampling_level='sequence'",
            "give importance_sampling_level one of token",
        ),
        (
            "GRPOConfig",
            "multi_objective_aggregation='sum'",
            "multi_objective_aggregation='normalize_then_sum'",
            "give multi_objective_aggregation one of",
        ),
        ("GRPOConfig", "scale_rewards='std'", "scale_rewards=False", "give scale_rewards group"),
        ("SFTConfig", "padding_free=True", "padding_free=True, max_length=None", "set packing to"),
        ("SFTConfig", "padding_free=True", "padding_free=True, packing=True", "set packing to"),
        ("SFTConfig", "packing=True, max_length=None", "packing=True", "give max_length a number"),
        (
            "SFTConfig",
            SELECTIVE + "}, gradient_checkpointing=False",
            SELECTIVE + "}",
            "set gradient_checkpointing to true",
        ),
        (
            "SFTConfig",
            SELECTIVE + ", 'use_reentrant': True}",
            SELECTIVE + ", 'use_reentrant': False}",
            "set use_reentrant to False",
        ),
        (
            "DPOConfig",
            "use_liger_kernel=True, liger_kernel_config={'fused_linear_cross_entropy': True}",
            "use_liger_kernel=True, liger_kernel_config={'rope': True}",
            "drop fused_linear_cross_entropy",
        ),
        ("SFTConfig", "loss_type='ce'", "loss_type='dft'", "give loss_type one of nll, dft"),
        (
            "SFTConfig",
            "truncation_mode='left'",
            "truncation_mode='left', packing=True",
            "give truncation_mode one of keep_start, keep_end",
        ),
        (
            "DPOConfig",
            "loss_type=['sigmoid', 'sft'], loss_weights=[1.0]",
            "loss_type=['sigmoid', 'sft'], loss_weights=[1.0, 0.1]",
            "give as many loss_weights",
        ),
        ("DPOConfig", "loss_type=['dpo']", "loss_type=['ipo']", "choose sigmoid, ipo, apo_zero"),
        ("DPOConfig", "f_divergence_type='kl'", "f_divergence_type='forward_kl'", "give f_diver"),
        ("DPOConfig", "truncation_mode='left'", "truncation_mode='keep_end'", "give truncation"),
        (
            "DPOConfig",
            "loss_type=['apo_zero'], f_divergence_type='js_divergence'",
            "loss_type=['sigmoid'], f_divergence_type='js_divergence'",
            "drop f_divergence_type",
        ),
        (
            "DPOConfig",
            "loss_type=['aot'], use_weighting=True",
            "loss_type=['ipo'], use_weighting=True",
            "drop use_weighting",
        ),
        (
            "DPOConfig",
            "loss_type=['exo_pair']",
            "loss_type=['exo_pair'], label_smoothing=0.001",
            "set label_smoothing to 1e-3",
        ),
        (
            "DPOConfig",
            "sync_ref_model=True, precompute_ref_log_probs=True",
            "precompute_ref_log_probs=True",
            "drop sync_ref_model or precompute_ref_log_probs",
        ),
        (
            "KTOConfig",
            "sync_ref_model=True, precompute_ref_log_probs=True",
            "sync_ref_model=True",
            "drop sync_ref_model or precompute_ref_log_probs",
        ),
        (
            "KTOConfig",
            "per_device_train_batch_size=1",
            "per_device_train_batch_size=1, loss_type='apo_zero_unpaired'",
            "give per_device_train_batch_size 2 or more",
        ),
        (
            "KTOConfig",
            "train_sampling_strategy='random'",
            "train_sampling_strategy='random', loss_type='apo_zero_unpaired'",
            "drop train_sampling_strategy",
        ),
    ],
)
def test_a_configuration(name: str, refused: str, taken: str, instruction: str) -> None:
    (message,) = messages(name, refused)
    assert message.startswith(instruction)
    assert messages(name, taken) == []


EXPERIMENTAL = """\
from trl.experimental.some import {name}

from transformers import Trainer

args = {name}(output_dir="out", {arguments})
Trainer(model=model, args=args, train_dataset=data).train()
"""


def _experimental(name: str, arguments: str) -> list[str]:
    source = EXPERIMENTAL.format(name=name, arguments=arguments)
    return [f.message for f in findings(runs_alone(source, trl=NEW), "GPU024")]


@pytest.mark.parametrize(
    ("name", "refused", "taken", "instruction"),
    [
        ("DistillationConfig", "beta=2", "beta=1", "give beta a number from 0 to 1"),
        (
            "AsyncDistillationConfig",
            "beta=2, teacher_server_urls=['http://a']",
            "beta=0.5, teacher_server_urls=['http://a']",
            "give beta a number",
        ),
        (
            "AsyncDistillationConfig",
            "teacher_server_urls=[]",
            "teacher_server_urls=['http://a']",
            "give teacher_server_urls an address",
        ),
        ("GKDConfig", "beta=-1", "beta=0", "give beta a number"),
        ("GKDConfig", "lmbda=2", "lmbda=1", "give lmbda a number"),
        ("GOLDConfig", "beta=-1", "beta=0", "give beta a number"),
        ("GOLDConfig", "lmbda=2", "lmbda=1", "give lmbda a number"),
        ("GOLDConfig", "num_generations=0", "num_generations=1", "give num_generations more than"),
        (
            "GOLDConfig",
            "max_length=512, max_completion_length=512",
            "max_length=512, max_completion_length=256",
            "give max_completion_length less than max_length (512)",
        ),
        (
            "GOLDConfig",
            "per_device_train_batch_size=8, num_generations=3",
            "per_device_train_batch_size=8, num_generations=4",
            "make generation_batch_size x num_generations 8",
        ),
        (
            "GOLDConfig",
            ULD + "uld_crossentropy_weight=-1",
            "uld_crossentropy_weight=-1",
            "give uld_crossentropy_weight 0 or more",
        ),
        (
            "GOLDConfig",
            ULD + "uld_distillation_weight=-1",
            ULD + "uld_distillation_weight=0",
            "give uld_distillation_weight 0 or more",
        ),
        (
            "GOLDConfig",
            ULD + "uld_student_temperature=0",
            ULD + "uld_student_temperature=1",
            "give uld_student_temperature more than 0",
        ),
        (
            "GOLDConfig",
            ULD + "uld_teacher_temperature=0",
            ULD + "uld_teacher_temperature=1",
            "give uld_teacher_temperature more than 0",
        ),
        (
            "GOLDConfig",
            ULD + "uld_token_merge_strategy='mean'",
            ULD + "uld_token_merge_strategy='bayesian'",
            "give uld_token_merge_strategy one of",
        ),
        (
            "GOLDConfig",
            HYBRID + "uld_hybrid_matched_weight=0.5",
            HYBRID + "uld_hybrid_matched_weight=0.5, uld_hybrid_unmatched_weight=0.5",
            "give both uld_hybrid_matched_weight",
        ),
        (
            "GOLDConfig",
            HYBRID + "uld_hybrid_matched_weight=-1, uld_hybrid_unmatched_weight=0.5",
            ULD + "uld_hybrid_matched_weight=-1, uld_hybrid_unmatched_weight=0.5",
            "give uld_hybrid_matched_weight 0 or more",
        ),
        (
            "GOLDConfig",
            HYBRID + "uld_hybrid_matched_weight=1, uld_hybrid_unmatched_weight=-1",
            HYBRID + "uld_hybrid_matched_weight=1, uld_hybrid_unmatched_weight=1",
            "give uld_hybrid_unmatched_weight 0 or more",
        ),
        ("IWOPDConfig", "beta=2", "beta=1", "give beta a number"),
        (
            "IWOPDConfig",
            "distillation_objective='jsd', lmbda=2",
            "distillation_objective='jsd', lmbda=0.5",
            "give lmbda a number",
        ),
        ("IWOPDConfig", "num_generations=0", "num_generations=1", "give num_generations more than"),
        ("IWOPDConfig", "iw_opd_gamma=-1", "iw_opd_gamma=0", "give iw_opd_gamma 0 or more"),
        ("IWOPDConfig", "iw_opd_epsilon=0", "iw_opd_epsilon=0.1", "give iw_opd_epsilon more than"),
        (
            "IWOPDConfig",
            "distillation_objective='kl'",
            "distillation_objective='jsd'",
            "give distillation_objective one of jsd, iw_opd",
        ),
        (
            "IWOPDConfig",
            "distillation_objective='jsd', reverse_kl_top_1_mode='max'",
            "distillation_objective='jsd', reverse_kl_top_1_mode='argmax'",
            "give reverse_kl_top_1_mode one of sampled, argmax",
        ),
        (
            "IWOPDConfig",
            "distillation_objective='iw_opd', lmbda=0.5",
            OPD,
            "set lmbda to 1.0",
        ),
        (
            "IWOPDConfig",
            OPD + "reverse_kl_top_1_mode='argmax'",
            OPD + "reverse_kl_top_1_mode='sampled'",
            "set reverse_kl_top_1_mode to sampled",
        ),
        (
            "IWOPDConfig",
            OPD + "use_vllm=True, vllm_sync_frequency=2",
            OPD + "use_vllm=True, vllm_sync_frequency=1",
            "set vllm_sync_frequency to 1",
        ),
        (
            "IWOPDConfig",
            "use_teacher_server=True, beta=1.0, loss_top_k=1",
            "use_teacher_server=True, beta=1.0, loss_top_k=1, " + SERVED,
            "set teacher_model_server_url",
        ),
        (
            "ServerDistillationConfig",
            SERVED + "beta=0, loss_top_k=0",
            SERVED + "beta=0, loss_top_k=8",
            "give loss_top_k more than 0",
        ),
        (
            "ServerDistillationConfig",
            SERVED + "beta=0.5, loss_top_k=8",
            SERVED + "beta=0.5, loss_top_k=1",
            "set loss_top_k to 1",
        ),
        (
            "ServerDistillationConfig",
            SERVED + "beta=1.0, loss_top_k=1, reverse_kl_top_1_mode='argmax'",
            SERVED + "beta=1.0, loss_top_k=1, reverse_kl_top_1_mode='sampled'",
            "set reverse_kl_top_1_mode to sampled",
        ),
        (
            "ServerDistillationConfig",
            SERVED + "beta=1.0, loss_top_k=1, reverse_kl_top_1_mode='max'",
            SERVED + "beta=1.0, loss_top_k=1",
            "give reverse_kl_top_1_mode one of sampled, argmax",
        ),
        ("SDPOConfig", "distillation_weight=2", "distillation_weight=1", "give distillation_weig"),
        (
            "SDFTConfig",
            "distillation_mode='sampled_token', distillation_alpha=0.5",
            "distillation_mode='sampled_token', distillation_alpha=1.0",
            "set distillation_alpha to 1.0",
        ),
        (
            "SDFTConfig",
            "teacher_prompt_template='{prompt}'",
            "teacher_prompt_template='{privileged_context} {prompt}'",
            "write the missing placeholder",
        ),
    ],
)
def test_a_distillation(name: str, refused: str, taken: str, instruction: str) -> None:
    (message,) = _experimental(name, refused)
    assert message.startswith(instruction)
    assert f"{name} raises" in message
    assert _experimental(name, taken) == []


@pytest.mark.parametrize(
    ("name", "refused", "taken", "instruction"),
    [
        (
            "SFTConfig",
            ("packing=True", "data_collator=collate"),
            ("packing=True, packing_strategy='wrapped'", "data_collator=collate"),
            "drop the Trainer's data_collator",
        ),
        (
            "SFTConfig",
            ("completion_only_loss=True", "formatting_func=write"),
            ("", "formatting_func=write"),
            "drop formatting_func",
        ),
        (
            "SFTConfig",
            ("loss_type='dft'", "compute_loss_func=loss"),
            ("", "compute_loss_func=loss"),
            "drop compute_loss_func",
        ),
        (
            "GRPOConfig",
            ("reward_weights=[1.0]", "reward_funcs=[first, second]"),
            ("reward_weights=[1.0, 0.5]", "reward_funcs=[first, second]"),
            "give 2 reward_weights",
        ),
        ("DPOConfig", ("", "ref_model=model"), ("", "ref_model=other"), "drop ref_model"),
    ],
)
def test_a_trainer(
    name: str, refused: tuple[str, str], taken: tuple[str, str], instruction: str
) -> None:
    (message,) = messages(name, *refused)
    assert message.startswith(instruction)
    assert "rainer raises" in message
    assert messages(name, *taken) == []


MODELS = """\
from peft import LoraConfig
from transformers import AutoModelForCausalLM
from trl import DPOConfig, DPOTrainer

model = {model}
peft_config = {adapter}
args = DPOConfig(output_dir="out", {arguments})
DPOTrainer(model=model, args=args, train_dataset=data, {given}).train()
"""
LOADED = "AutoModelForCausalLM.from_pretrained('gpt2')"


@pytest.mark.parametrize(
    ("refused", "taken", "instruction"),
    [
        (
            (LOADED, "LoraConfig(r=8)", "sync_ref_model=True", "peft_config=peft_config"),
            (LOADED, "adapter()", "sync_ref_model=True", "peft_config=peft_config"),
            "drop sync_ref_model",
        ),
        (
            (
                "'gpt2'",
                "None",
                "model_init_kwargs={'quantization_config': q}",
                "quantization_config=q",
            ),
            ("'gpt2'", "None", "model_init_kwargs={'dtype': 'auto'}", "quantization_config=q"),
            "drop quantization_config from model_init_kwargs",
        ),
        (
            (LOADED, "None", "", "quantization_config=q"),
            ("'gpt2'", "None", "", "quantization_config=q"),
            "pass quantization_config to from_pretrained",
        ),
    ],
)
def test_a_model(refused: tuple[str, ...], taken: tuple[str, ...], instruction: str) -> None:
    names = ("model", "adapter", "arguments", "given")
    for values, count in ((refused, 1), (taken, 0)):
        source = MODELS.format(**dict(zip(names, values)))
        found = findings(runs_alone(source, trl=NEW), "GPU024")
        assert [f.message.startswith(instruction) for f in found] == [True] * count


def test_a_trainer_without_data() -> None:
    source = SOURCE.format(name="SFTConfig", trainer="SFTTrainer", arguments="", given="")
    none = source.replace("train_dataset=data, ", "")
    (found,) = findings(runs_alone(none, trl=NEW), "GPU024")
    assert found.message.startswith("pass train_dataset to the Trainer")
    assert findings(runs_alone(source, trl=NEW), "GPU024") == []


@pytest.mark.parametrize(
    ("name", "arguments", "release"),
    [
        ("SFTConfig", "padding_free=True", "0.24.0"),
        ("GRPOConfig", "auto_find_batch_size=True", "1.8.0"),
        ("KTOConfig", "per_device_train_batch_size=1", "1.6.0"),
    ],
)
def test_a_release_without_the_rule_is_silent(name: str, arguments: str, release: str) -> None:
    assert messages(name, arguments, release=release) == []
    assert len(messages(name, arguments)) == 1


def test_rules_of_older_releases() -> None:
    delta = "delta=4.0, use_liger_loss=True"
    (message,) = messages("GRPOConfig", delta, release="0.21.0")
    assert message.startswith("drop delta or the Liger kernels")
    assert messages("GRPOConfig", "delta=4.0", release="0.21.0") == []
    (message,) = messages("KTOConfig", "per_device_train_batch_size=1", release="0.24.0")
    assert message.startswith("give per_device_train_batch_size 2 or more")


@pytest.mark.parametrize(
    "unsure", ["padding_free=True, packing=pack", "loss_type=loss", "padding_free=True, **more"]
)
def test_what_is_not_known_is_not_told(unsure: str) -> None:
    assert messages("SFTConfig", unsure) == []


# --- batches, which depend on the launch --------------------------------------------------

GRPO = """\
from trl import GRPOConfig, GRPOTrainer

args = GRPOConfig(output_dir="out", {})
GRPOTrainer(model=model, args=args, reward_funcs=r, train_dataset=d, eval_dataset=d).train()
"""


def _launched(root: Path, arguments: str, command: str, release: str = NEW) -> list[str]:
    files = {
        "train.py": GRPO.format(arguments),
        "train.sh": command + "\n",
        "requirements.txt": f"trl=={release}\n",
    }
    return [f.message for f in findings(runs_of(root, files), "GPU024")]


TWO = "accelerate launch --num_processes 2 train.py"


@pytest.mark.parametrize(
    ("refused", "taken", "instruction"),
    [
        (
            "per_device_train_batch_size=3",
            "per_device_train_batch_size=4",
            "make the completions of one generation (6) a multiple of num_generations (8)",
        ),
        (
            "per_device_train_batch_size=4, generation_batch_size=12, num_generations=4",
            "per_device_train_batch_size=4, generation_batch_size=16, num_generations=4",
            "make generation_batch_size a multiple of 8",
        ),
        (
            "per_device_train_batch_size=4, eval_strategy='steps', per_device_eval_batch_size=3",
            "per_device_train_batch_size=4, eval_strategy='steps', per_device_eval_batch_size=3, "
            "num_generations_eval=3",
            "make per_device_eval_batch_size x processes a multiple of 8",
        ),
    ],
)
def test_a_batch(tmp_path: Path, refused: str, taken: str, instruction: str) -> None:
    (message,) = _launched(tmp_path / "refused", refused, TWO)
    assert message.startswith(instruction)
    assert _launched(tmp_path / "taken", taken, TWO) == []


@pytest.mark.parametrize(
    ("release", "refused", "taken"),
    [
        ("0.15.2", "num_generations=3", "num_generations=4"),
        ("0.16.1", "num_generations=1", "num_generations=2"),
        ("0.17.0", "num_generations=3, gradient_accumulation_steps=2", "num_generations=4"),
        ("0.17.0", "num_generations=6", "num_generations=6, gradient_accumulation_steps=3"),
    ],
)
def test_a_batch_of_older_releases(tmp_path: Path, release: str, refused: str, taken: str) -> None:
    size = "per_device_train_batch_size=2, "
    (message,) = _launched(tmp_path / "refused", size + refused, TWO, release)
    assert message.startswith("make the completions of a step (")
    assert _launched(tmp_path / "taken", size + taken, TWO, release) == []


@pytest.mark.parametrize("release", ["0.18.2", "0.19.1"])
def test_one_generation_has_whole_groups_since_configs_check_it(
    tmp_path: Path, release: str
) -> None:
    size = "per_device_train_batch_size=2, num_generations="
    (message,) = _launched(tmp_path / "refused", f"{size}3", TWO, release)
    assert message.startswith("make the completions of one generation (4) a multiple of")
    assert "GRPOConfig raises" in message
    assert _launched(tmp_path / "taken", f"{size}4", TWO, release) == []


def test_a_batch_of_an_unknown_number_of_processes_is_not_judged(tmp_path: Path) -> None:
    arguments = "per_device_train_batch_size=3"
    assert _launched(tmp_path, arguments, "accelerate launch train.py") == []


# --- commands -----------------------------------------------------------------------------


def _run(root: Path, command: str) -> list[str]:
    files = {"train.sh": command + "\n", "requirements.txt": f"trl=={NEW}\n"}
    return [f.message for f in findings(runs_of(root, files), "GPU024")]


@pytest.mark.parametrize(
    ("refused", "taken", "instruction"),
    [
        (
            "trl sft --model_name_or_path gpt2 --output_dir out",
            "trl sft --model_name_or_path gpt2 --output_dir out --dataset_name a/b",
            "set --dataset_name",
        ),
        (
            "trl sft --output_dir out --dataset_name a/b --load_in_8bit --load_in_4bit",
            "trl sft --output_dir out --dataset_name a/b --load_in_4bit",
            "drop load_in_8bit or load_in_4bit",
        ),
        (
            "trl grpo --output_dir out --dataset_name a/b --reward_funcs length",
            "trl grpo --output_dir out --dataset_name a/b --reward_funcs mine.length",
            "give reward_funcs the path",
        ),
        (
            "trl dpo --output_dir out --dataset_name a/b --sync_ref_model --use_peft",
            "trl dpo --output_dir out --dataset_name a/b --sync_ref_model",
            "drop sync_ref_model",
        ),
        (
            "trl distillation --output_dir out --dataset_name a/b",
            "trl distillation --output_dir out --dataset_name a/b "
            "--teacher_model_name_or_path Qwen/Qwen2.5-7B-Instruct",
            "set --teacher_model_name_or_path",
        ),
    ],
)
def test_a_command(tmp_path: Path, refused: str, taken: str, instruction: str) -> None:
    (message,) = _run(tmp_path / "refused", refused)
    assert message.startswith(instruction)
    assert "refuses to start" in message
    assert _run(tmp_path / "taken", taken) == []


def test_what_the_parser_compares_with_choices_is_told_once(tmp_path: Path) -> None:
    command = "trl sft --output_dir out --dataset_name a/b --loss_type ce\n"
    files = {"train.sh": command, "requirements.txt": f"trl=={NEW}\n"}
    runs = runs_of(tmp_path, files)
    assert [len(findings(runs, code)) for code in ("GPU009", "GPU024")] == [1, 0]


def test_a_text_that_may_be_a_name_is_data(tmp_path: Path) -> None:
    assert _run(tmp_path, "trl kto --output_dir out --dataset_name null") == []
