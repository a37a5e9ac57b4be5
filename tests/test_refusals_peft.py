"""Rules of frameworks/refusals/peft: what is refused, and what is not."""

from __future__ import annotations

import pytest
from checks_support import findings, runs_alone

SOURCE = """\
from peft import {name}, PromptTuningInit, TaskType
from transformers import Trainer, TrainingArguments

config = {name}({arguments})
args = TrainingArguments("out")
Trainer(model=model, args=args, train_dataset=data).train()
"""
NEW = "0.21.2"


def messages(name: str, arguments: str, release: str = NEW) -> list[str]:
    source = SOURCE.format(name=name, arguments=arguments)
    return [f.message for f in findings(runs_alone(source, peft=release), "GPU024")]


LORA, ADA, PROMPT = "LoraConfig", "AdaLoraConfig", "PromptTuningConfig"
TEXT = "num_virtual_tokens=8, prompt_tuning_init=PromptTuningInit.TEXT"
CPT = "task_type='CAUSAL_LM', cpt_token_ids=[1, 2]"
ASA = "use_asa=True, init_warmup=5, final_warmup=50"
SERIES = "use_cayley_neumann=True, "


@pytest.mark.parametrize(
    ("name", "refused", "taken", "instruction"),
    [
        (
            LORA,
            "target_modules='all-linear', layers_to_transform=[1]",
            "target_modules=['q_proj'], layers_to_transform=[1]",
            "give target_modules as a list, or drop layers_to_transform",
        ),
        (
            ADA,
            "total_step=9, target_modules='.*proj', layers_to_transform=[1]",
            "total_step=9, target_modules='.*proj'",
            "give target_modules as a list, or drop layers_to_transform",
        ),
        (
            LORA,
            "target_modules='all-linear', layers_pattern='layers'",
            "target_modules=['q_proj'], layers_pattern='layers', layers_to_transform=[0]",
            "give target_modules as a list, or drop layers_pattern",
        ),
        (
            LORA,
            "target_modules=['q_proj'], layers_pattern='layers'",
            "target_modules=['q_proj']",
            "give layers_to_transform too",
        ),
        (LORA, "use_dora=True, megatron_config=m", "use_dora=False, megatron_config=m", ""),
        (
            LORA,
            "use_dora=True, megatron_config={'a': 1}",
            "use_dora=False, megatron_config={'a': 1}",
            "drop use_dora or megatron_config",
        ),
        (LORA, "lora_bias=True, use_dora=True", "lora_bias=True", "drop lora_bias or use_dora"),
        (
            LORA,
            "target_parameters='experts.w1'",
            "target_parameters=['experts.w1']",
            "give target_parameters as a list",
        ),
        (
            LORA,
            "init_lora_weights='loftq'",
            "init_lora_weights='loftq', loftq_config=LoftQConfig()",
            "pass loftq_config=LoftQConfig()",
        ),
        (
            LORA,
            "lora_bias=True, init_lora_weights='pissa'",
            "init_lora_weights='pissa'",
            "drop lora_bias or init_lora_weights",
        ),
        (LORA, "task_type='CAUSAL'", "task_type='CAUSAL_LM'", "give task_type one of SEQ_CLS"),
        (LORA, "task_type='causal_lm'", "task_type=TaskType.CAUSAL_LM", "give task_type one of"),
        (ADA, "total_step=9, use_dora=True", "total_step=9", "drop use_dora"),
        (ADA, "total_step=9, loftq_config={'a': 1}", "total_step=9, loftq_config={}", "drop loftq"),
        (ADA, "init_r=12", "init_r=12, total_step=100", "give total_step"),
        (ADA, "total_step=9, orth_reg_weight=-1", "total_step=9, orth_reg_weight=0", "give orth_"),
        (
            ADA,
            "total_step=100, tinit=50, tfinal=50",
            "total_step=101, tinit=50, tfinal=50",
            "make tinit or tfinal smaller",
        ),
        ("VeloraConfig", "num_groups=0", "num_groups=1", "give num_groups more than 0"),
        ("VeloraConfig", "scale=0", "scale=0.1", "give scale more than 0"),
        ("VeloraConfig", "init_type='zeros'", "init_type='random'", "give init_type one of batch"),
        ("ArrowConfig", "top_k=0", "top_k=3", "give top_k more than 0"),
        ("ArrowConfig", "router_temperature=0.0", "router_temperature=1.0", "give router_tempera"),
        (
            "BdLoraConfig",
            "target_modules_bd_a=['q', 'k'], target_modules_bd_b=['q']",
            "target_modules_bd_a=['k'], target_modules_bd_b=['q']",
            "write q in one of the two lists only",
        ),
        ("EvaConfig", "rho=0.5", "rho=1.0", "give rho 1 or more"),
        ("EvaConfig", "tau=1.5", "tau=0.9", "give tau a number from 0 to 1"),
        ("KasaConfig", "beta=-1", "beta=0", "give beta 0 or more"),
        ("KasaConfig", "gamma=-1", "gamma=0", "give gamma 0 or more"),
        ("MontecloraConfig", "num_samples=0", "num_samples=4", "give num_samples more than 0"),
        ("MontecloraConfig", "dirichlet_prior=0", "dirichlet_prior=1.0", "give dirichlet_prior"),
        ("MontecloraConfig", "buffer_size=0", "buffer_size=10", "give buffer_size more than 0"),
        (
            PROMPT,
            TEXT + ", prompt_tuning_init_text='Classify:'",
            TEXT + ", prompt_tuning_init_text='Classify:', tokenizer_name_or_path='gpt2'",
            "give tokenizer_name_or_path",
        ),
        (
            PROMPT,
            TEXT + ", tokenizer_name_or_path='gpt2'",
            "num_virtual_tokens=8, prompt_tuning_init='RANDOM'",
            "give prompt_tuning_init_text",
        ),
        (
            PROMPT,
            "num_virtual_tokens=8, tokenizer_kwargs={'use_fast': True}",
            TEXT + ", prompt_tuning_init_text='t', tokenizer_name_or_path='gpt2', "
            "tokenizer_kwargs={'use_fast': True}",
            "drop tokenizer_kwargs",
        ),
        ("CPTConfig", "task_type='SEQ_CLS'", "task_type='CAUSAL_LM'", "set task_type=CAUSAL_LM"),
        ("CPTConfig", CPT + ", cpt_mask=[1]", CPT + ", cpt_mask=[1, 1]", "make the three lists"),
        ("CartridgeConfig", "num_frozen_tokens=-1", "num_frozen_tokens=0", "give num_frozen_to"),
        (
            "CartridgeConfig",
            "num_virtual_tokens=4, num_frozen_tokens=5",
            "num_virtual_tokens=4, num_frozen_tokens=4",
            "give num_frozen_tokens 4 or less",
        ),
        ("BOFTConfig", "boft_block_size=0", "boft_block_size=8", "give boft_block_size or"),
        (
            "BOFTConfig",
            "boft_block_num=4",
            "boft_block_num=4, boft_block_size=0",
            "set one of boft_block_size and boft_block_num to 0",
        ),
        ("OFTConfig", "oft_block_size=0", "oft_block_size=64", "give oft_block_size or r"),
        ("OFTConfig", "r=8", "r=8, oft_block_size=0", "set one of oft_block_size and r to 0"),
        (
            "IA3Config",
            "target_modules=['k', 'v'], feedforward_modules=['down']",
            "target_modules=['k', 'v', 'down'], feedforward_modules=['down']",
            "write down in target_modules too",
        ),
        ("AdamssConfig", "init_weights='zeros'", "init_weights=None", "give init_weights orth"),
        ("AdamssConfig", ASA + ", mask_interval=0", "mask_interval=0", "give mask_interval more"),
        (
            "AdamssConfig",
            ASA + ", asa_target_subspaces=0",
            "asa_target_subspaces=0",
            "give asa_target_subspaces more than 0",
        ),
        (
            "AdamssConfig",
            ASA + ", asa_schedule_exponent=0",
            "asa_schedule_exponent=0",
            "give asa_schedule_exponent more than 0",
        ),
        (
            "AdamssConfig",
            "use_asa=True, init_warmup=60, final_warmup=50",
            ASA,
            "give init_warmup less than final_warmup (50)",
        ),
        ("DeftConfig", "decomposition_method='svd'", "decomposition_method='qr'", "give decompos"),
        ("DeloraConfig", "r=0", "r=8", "give r more than 0"),
        ("FrodConfig", "sparse_rate=2", "sparse_rate=0.5", "give sparse_rate a number from 0"),
        ("GloraConfig", "config_A_B='full'", "config_A_B='lora'", "give config_A_B one of lora"),
        ("GloraConfig", "config_C='constant'", "config_C='vector'", "give config_C one of lora"),
        ("GloraConfig", "config_D_E='lora'", "config_D_E='none'", "give config_D_E one of vector"),
        ("GraloraConfig", "gralora_k=0", "gralora_k=2", "give gralora_k more than 0"),
        ("GraloraConfig", "r=8, gralora_k=3", "r=9, gralora_k=3", "give gralora_k a divisor of r"),
        ("LilyConfig", "stride_A=0", "stride_A=1", "give stride_A more than 0"),
        ("LilyConfig", "num_B=1", "num_B=2", "give num_B 2 or more"),
        ("PeanutConfig", "r=0", "r=4", "give r more than 0"),
        ("PeanutConfig", "depth=-1", "depth=0", "give depth 0 or more"),
        ("PsoftConfig", "r=0", "r=4", "give r more than 0"),
        ("PsoftConfig", "ab_svd_init='svd'", "ab_svd_init='pissa_init'", "give ab_svd_init one"),
        ("PsoftConfig", "psoft_svd='fast'", "psoft_svd='full'", "give psoft_svd one of full"),
        (
            "PsoftConfig",
            SERIES + "num_cayley_neumann_terms=0",
            "use_cayley_neumann=False, num_cayley_neumann_terms=0",
            "give num_cayley_neumann_terms more than 0",
        ),
        (
            "PsoftConfig",
            SERIES + "cayley_neumann_eps=1.0",
            SERIES + "cayley_neumann_eps=0.9",
            "give cayley_neumann_eps a number between",
        ),
        ("RoadConfig", "variant='road_3'", "variant='road_2'", "give variant one of road_1"),
        ("RoadConfig", "group_size=63", "group_size=64", "give group_size an even number"),
        (
            "ShadowConfig",
            "shadow_model='Qwen/Qwen3-0.6B', shadow_hidden_size=64",
            "shadow_model='Qwen/Qwen3-0.6B'",
            "drop shadow_hidden_size",
        ),
        ("SupertuningConfig", "sparsity=1.0", "sparsity=0.9", "give sparsity a number from 0"),
        ("SupertuningConfig", "lora_dropout=1.0", "lora_dropout=0.1", "give lora_dropout a"),
        ("SupertuningConfig", "r=0", "r=4", "give r a whole number"),
        ("SupertuningConfig", "lora_alpha=16", "r=4, lora_alpha=16", "give r, or drop lora_alpha"),
        ("TinyLoraConfig", "r=0", "r=2", "give r more than 0"),
        ("TinyLoraConfig", "u=0", "u=4", "give u more than 0"),
        ("TinyLoraConfig", "weight_tying=2.0", "weight_tying=0.5", "give weight_tying a number"),
        ("UniLoraConfig", "r=0", "r=4", "give r more than 0"),
        ("UniLoraConfig", "theta_d_length=0", "theta_d_length=256", "give theta_d_length more"),
        ("UniLoraConfig", "unilora_dropout=1.5", "unilora_dropout=1.0", "give unilora_dropout a"),
        ("UniLoraConfig", "init_theta_d_bound=0", "init_theta_d_bound=0.1", "give init_theta"),
        ("UniLoraConfig", "bias='lora_only'", "bias='unilora_only'", "give bias one of none, all"),
        (
            "WaveFTConfig",
            "wavelet_family='haar'",
            "wavelet_family='db4'",
            "give wavelet_family db1",
        ),
    ],
)
def test_a_configuration(name: str, refused: str, taken: str, instruction: str) -> None:
    found = messages(name, refused)
    assert [m.startswith(instruction) for m in found] == ([True] if instruction else [])
    assert all(f"{name} raises" in message for message in found)
    assert messages(name, taken) == []


@pytest.mark.parametrize(
    ("name", "refused", "release"),
    [
        (ADA, "init_r=12", "0.13.2"),
        (LORA, "target_modules=['q'], layers_pattern='layers'", "0.13.2"),
        (LORA, "task_type='CAUSAL'", "0.13.2"),
        ("CPTConfig", "task_type='SEQ_CLS'", "0.17.1"),
    ],
)
def test_a_release_without_the_rule_is_silent(name: str, refused: str, release: str) -> None:
    assert messages(name, refused, release) == []
    assert len(messages(name, refused)) == 1


@pytest.mark.parametrize(
    "unsure",
    [
        "target_modules=modules, layers_to_transform=[1]",
        "target_modules='all-linear', layers_to_transform=layers",
        "layers_pattern='layers', **more",
        "task_type=task",
    ],
)
def test_what_is_not_known_is_not_told(unsure: str) -> None:
    assert messages(LORA, unsure) == []
