"""Rules of frameworks/refusals/ms_swift: what each refuses, and near misses that are taken."""

from __future__ import annotations

from pathlib import Path

import pytest
from checks_support import findings, runs_of

from flake8_gpu_training.checks._written import uses
from flake8_gpu_training.frameworks.refusals import refusals_of

RULES = {rule.name: rule for rule in refusals_of("ms-swift")}
MODEL = "--model Qwen/Qwen2.5-7B-Instruct"
SFT = f"swift sft {MODEL} --dataset data.jsonl"
PT = f"swift pt {MODEL} --dataset data.jsonl"
DPO = f"swift rlhf --rlhf_type dpo {MODEL} --dataset data.jsonl"
KTO = f"NPROC_PER_NODE=1 swift rlhf --rlhf_type kto {MODEL} --dataset data.jsonl"
RM = f"swift rlhf --rlhf_type rm {MODEL} --dataset data.jsonl"
PPO = f"swift rlhf --rlhf_type ppo {MODEL} --dataset data.jsonl"
GKD = f"swift rlhf --rlhf_type gkd {MODEL} --dataset data.jsonl"
GRPO = f"swift rlhf --rlhf_type grpo {MODEL} --dataset data.jsonl"
PAID = f"{GRPO} --reward_funcs accuracy"
ONE = f"{PAID} --per_device_train_batch_size 1"
TWO = f"NPROC_PER_NODE=2 {PAID} --split_dataset_ratio 0"
EIGHT = f"NPROC_PER_NODE=8 {PAID}"
DEPLOY = f"swift deploy {MODEL}"
ROLLOUT = f"swift rollout {MODEL}"
EXPORT = f"swift export {MODEL}"
MEGATRON = f"megatron sft {MODEL} --dataset data.jsonl"
M_EIGHT = f"NPROC_PER_NODE=8 {MEGATRON}"
M_RLHF = f"megatron rlhf {MODEL} --dataset data.jsonl"
M_GRPO = f"{M_RLHF} --rlhf_type grpo --vllm_mode colocate --reward_funcs accuracy"
M_GRPO_EIGHT = f"NPROC_PER_NODE=8 {M_GRPO}"
TEACHER = "--teacher_model Qwen/Qwen2.5-72B-Instruct"
RLSD = "--advantage_reweight rlsd"
SDAR = "--sdar_loss_coef 0.1"
MAIL = " ".join(f"--swanlab_{n} x" for n in ("sender_email", "receiver_email", "smtp_server"))
SERVERS = (
    """--teacher_model_server '[{"url": "http://a", "tags": ["x"]}, {"url": "http://b", %s}]'"""
)

CASES: tuple[tuple[str, str, str, tuple[str, ...]], ...] = (
    # models
    ("no-model", "swift sft --dataset d.jsonl", "", (MODEL, "--modle x", "--adapters out/1")),
    ("no-model", "swift infer", "", ("--adapters out/1",)),
    ("no-model", "megatron sft --dataset d.jsonl", "", (MODEL, "--mcore_model mcore")),
    (
        "unknown-rope-scaling",
        SFT,
        "--rope_scaling yarm",
        ("--rope_scaling yarn --max_model_len 65536", "--rope_scaling conf/rope.json"),
    ),
    (
        "rope-scaling-without-length",
        SFT,
        "--rope_scaling yarn",
        (
            "--rope_scaling yarn --max_model_len 65536",
            """--rope_scaling '{"type": "yarn", "factor": 4}'""",
            """--rope_scaling '{"type": "default"}'""",
            "--rope_scaling yarn --max_model_len $LENGTH",
        ),
    ),
    (
        "rope-scaling-without-length",
        SFT,
        """--rope_scaling '{"rope_type": "yarn"}'""",
        (),
    ),
    (
        "quantization-without-bits",
        SFT,
        "--quant_method bnb",
        ("--quant_method bnb --quant_bits 4", "--quant_method fp8", "--quant_method $METHOD"),
    ),
    (
        "export-without-bits",
        EXPORT,
        "--quant_method gptq --dataset d.jsonl",
        ("--quant_method gptq --quant_bits 4 --dataset d.jsonl", "--quant_method fp8"),
    ),
    (
        "export-without-method",
        EXPORT,
        "--quant_bits 4",
        ("--quant_bits 4 --quant_method bnb", "--quant_metod bnb --quant_bits 4"),
    ),
    (
        "bits-of-bnb",
        SFT,
        "--quant_method bnb --quant_bits 3",
        ("--quant_method bnb --quant_bits 8", "--quant_method hqq --quant_bits 3"),
    ),
    (
        "bits-of-quanto",
        SFT,
        "--quant_method quanto --quant_bits 3",
        ("--quant_method quanto --quant_bits float8", "--quant_method quanto --quant_bits 2"),
    ),
    (
        "classes-without-number",
        SFT,
        "--task_type seq_cls",
        ("--task_type seq_cls --num_labels 2", "--task_type reranker"),
    ),
    ("classes-without-number", DPO, "--task_type seq_cls", ("--task_type causal_lm",)),
    (
        "unknown-tuner",
        SFT,
        "--tuner_type qlora",
        ("--tuner_type adalora", "--tuner_type qlora --external_plugins tuner.py"),
    ),
    (
        "several-adapters",
        SFT,
        "--adapters a b",
        ("--adapters a", "--adapters a b --tuner_type full", "--adapters $ADAPTERS b"),
    ),
    (
        "unsloth-with-longlora",
        SFT,
        "--tuner_backend unsloth --tuner_type longlora",
        ("--tuner_type longlora", "--tuner_backend unsloth --tuner_type lora"),
    ),
    (
        "unknown-model-type",
        SFT,
        "--model_type qwen_2_5",
        ("--model_type qwen2", "--model_type mine --external_plugins plugin.py"),
    ),
    (
        "unknown-template",
        SFT,
        "--template lama3",
        ("--template llama3", "--template $TEMPLATE", "--template mine --external_plugins p.py"),
    ),
    # training
    ("no-dataset", f"swift sft {MODEL}", "", ("--dataset d", "--cached_dataset d", "--dataste d")),
    ("no-dataset", f"megatron pt {MODEL}", "", ("--cached_dataset d",)),
    (
        "streaming-from-cache",
        f"swift sft {MODEL} --max_steps 100",
        "--cached_dataset d --streaming true",
        ("--cached_dataset d", "--dataset d --streaming true"),
    ),
    (
        "stream-without-end",
        SFT,
        "--streaming true",
        ("--streaming true --max_steps 100", "--streaming true --max_steps $STEPS"),
    ),
    (
        "split-with-chat-template",
        SFT,
        "--truncation_strategy split",
        ("--truncation_strategy split --use_chat_template false", "--truncation_strategy left"),
    ),
    (
        "split-with-lazy-tokenize",
        PT,
        "--truncation_strategy split --lazy_tokenize true",
        ("--truncation_strategy split", "--lazy_tokenize true"),
    ),
    (
        "both-warmups",
        SFT,
        "--warmup_ratio 0.05 --warmup_steps 100",
        ("--warmup_ratio 0.05", "--warmup_ratio 0 --warmup_steps 100"),
    ),
    ("whole-warmup-ratio", SFT, "--warmup_ratio 1", ("--warmup_ratio 0.99", "--warmup_steps 1")),
    (
        "unknown-swanlab-channel",
        SFT,
        "--report_to swanlab --swanlab_notification_method feishu",
        (
            "--report_to swanlab --swanlab_notification_method lark",
            "--report_to wandb --swanlab_notification_method feishu",
        ),
    ),
    (
        "swanlab-mail",
        SFT,
        f"--report_to swanlab --swanlab_notification_method email {MAIL}",
        (f"--report_to swanlab --swanlab_notification_method email {MAIL} --swanlab_smtp_port 25",),
    ),
    (
        "unknown-shortcut",
        SFT,
        "--deepspeed zero3-offload",
        ("--deepspeed zero3_offload", "--deepspeed zero4.json", "--deepspeed $DS"),
    ),
    ("unknown-shortcut", SFT, "--deepspeed default-zero2", ("--deepspeed zero2",)),
    (
        "unknown-teacher-shortcut",
        f"{GKD} {TEACHER}",
        "--teacher_deepspeed zero-3",
        ("--teacher_deepspeed zero3",),
    ),
    (
        "unknown-fsdp",
        SFT,
        "--fsdp 'full_shard auto_wrap'",
        ("--fsdp fsdp2", "--fsdp conf/fsdp.json"),
    ),
    ("unknown-fsdp", SFT, "--fsdp zero3", ()),
    (
        "unknown-lr-scheduler-type",
        SFT,
        "--lr_scheduler_type cosin",
        ("--lr_scheduler_type cosine", "--lr_scheduler_type $SCHEDULE"),
    ),
    (
        "unknown-eval-strategy",
        SFT,
        "--eval_strategy stpes --split_dataset_ratio 0.01",
        ("--eval_strategy stpes", "--eval_strategy epoch --split_dataset_ratio 0.01"),
    ),
    ("json-of-model-kwargs", SFT, "--model_kwargs max_pixels=100", ("--model_kwargs a.json",)),
    ("json-of-columns", SFT, "--columns q=query", ("""--columns '{"q": "query"}'""",)),
    (
        "json-of-gradient-checkpointing-kwargs",
        SFT,
        "--gradient_checkpointing_kwargs use_reentrant=false",
        ("""--gradient_checkpointing_kwargs '{"use_reentrant": false}'""",),
    ),
    ("json-of-lr-scheduler-kwargs", SFT, "--lr_scheduler_kwargs min_lr=1e-6", ("",)),
    (
        "json-of-vllm-limit-mm-per-prompt",
        PAID,
        "--vllm_limit_mm_per_prompt image=2",
        ("""--vllm_limit_mm_per_prompt '{"image": 2}'""",),
    ),
    (
        "json-of-vllm-engine-kwargs",
        PAID,
        "--vllm_engine_kwargs seed=1",
        ("""--vllm_engine_kwargs '{"seed": 1}'""",),
    ),
    (
        "precision-of-the-weights",
        SFT,
        "--torch_dtype bfloat16 --fp16 true",
        (
            "--torch_dtype bfloat16 --bf16 true",
            "--torch_dtype bfloat16 --fp16 true --bf16 false",
            "--fp16 true",
        ),
    ),
    (
        "precision-of-the-weights",
        SFT,
        "--torch_dtype float32 --bf16 true",
        ("--torch_dtype float32 --bf16 true --fp16 false", "--torch_dtype float32"),
    ),
    (
        "best-model-unjudged",
        SFT,
        "--load_best_model_at_end true --eval_strategy steps",
        (
            "--load_best_model_at_end true --split_dataset_ratio 0.01",
            "--load_best_model_at_end true --val_dataset v.jsonl",
            "--load_best_model_at_end true --cached_val_dataset v",
            "--load_best_model_at_end true --val_dataset $VAL",
            "--load_best_model_at_end true --eval_strategy epoch --save_strategy steps",
            "--load_best_model_at_end true --save_strategy no",
        ),
    ),
    (
        "best-model-unjudged",
        f"{SFT} --max_steps 9",
        "--load_best_model_at_end true --split_dataset_ratio 0.1 --streaming true",
        ("--load_best_model_at_end true --split_dataset_ratio 0.1",),
    ),
    (
        "schedule-unjudged",
        SFT,
        "--lr_scheduler_type reduce_lr_on_plateau",
        (
            "--lr_scheduler_type reduce_lr_on_plateau --split_dataset_ratio 0.01",
            "--lr_scheduler_type cosine",
        ),
    ),
    (
        "gpus-for-processes",
        "",
        f"CUDA_VISIBLE_DEVICES=0,1,2 NPROC_PER_NODE=2 {SFT}",
        (
            f"CUDA_VISIBLE_DEVICES=0,1,2,3 NPROC_PER_NODE=4 {SFT}",
            f"CUDA_VISIBLE_DEVICES=0,1,2 {SFT}",
            f"CUDA_VISIBLE_DEVICES=0,1,2 NPROC_PER_NODE=2 SWIFT_SINGLE_DEVICE_MODE=1 {SFT}",
            f"CUDA_VISIBLE_DEVICES=$GPUS NPROC_PER_NODE=2 {SFT}",
        ),
    ),
    # rlhf
    (
        "several-losses",
        KTO,
        "--loss_type kto apo_zero_unpaired",
        ("--loss_type kto", "--loss_type $LOSSES kto"),
    ),
    ("weights-of-one-loss", KTO, "--loss_type kto --loss_weights 1", ("--loss_weights 1",)),
    (
        "number-of-loss-weights",
        DPO,
        "--loss_type sigmoid sft --loss_weights 1 0.2 0.3",
        ("--loss_type sigmoid sft --loss_weights 1 0.2", "--loss_type sigmoid sft"),
    ),
    ("removed-pair-loss", DPO, "--loss_type kto_pair", ("--loss_type hinge",)),
    ("unknown-dpo-loss", DPO, "--loss_type sigmod", ("--loss_type sigmoid bco_pair sft",)),
    (
        "useless-reference",
        DPO,
        "--ref_model Qwen/Qwen2.5-7B",
        ("--ref_model Qwen/Qwen2.5-7B --tuner_type full",),
    ),
    (
        "several-reference-adapters",
        DPO,
        "--ref_adapters a b",
        ("--ref_adapters a", "--ref_adapters $A b"),
    ),
    ("reference-adapter-of-other", RM, "--ref_adapters a", ("--adapters a",)),
    (
        "lists-of-reward-models",
        PAID,
        "--reward_model a b --reward_model_type qwen2",
        ("--reward_model a b --reward_model_type qwen2 qwen2", "--reward_model a b"),
    ),
    ("several-reward-models", PPO, "--reward_model a b", ("--reward_model a",)),
    (
        "vllm-mode-without-vllm",
        PAID,
        "--vllm_mode colocate",
        ("--vllm_mode colocate --use_vllm true", "--vllm_mode colocate --use_vllm 1"),
    ),
    (
        "vllm-without-mode",
        PAID,
        "--use_vllm true",
        ("--use_vllm true --vllm_mode colocate", "--use_vllm false"),
    ),
    (
        "server-of-nowhere",
        PAID,
        "--use_vllm true --vllm_mode server",
        (
            "--use_vllm true --vllm_mode server --vllm_server_host 10.0.0.1",
            "--use_vllm true --vllm_mode server --vllm_server_base_url http://10.0.0.1:8000",
            "--use_vllm true --vllm_mode server --vllm_server_host $HOST",
        ),
    ),
    (
        "ports-of-servers",
        PAID,
        "--use_vllm true --vllm_mode server --vllm_server_host a b",
        ("--use_vllm true --vllm_mode server --vllm_server_host a b --vllm_server_port 8000 8001",),
    ),
    (
        "group-ports-of-servers",
        PAID,
        "--use_vllm true --vllm_mode server --vllm_server_host a --vllm_server_group_port 1 2",
        ("--use_vllm true --vllm_mode server --vllm_server_host a --vllm_server_group_port 1",),
    ),
    (
        "asynchronous-without-server",
        PAID,
        "--use_vllm true --vllm_mode colocate --async_generate true",
        (
            "--use_vllm true --vllm_mode server --vllm_server_host a --async_generate true",
            "--use_vllm true --vllm_mode colocate",
        ),
    ),
    (
        "engine-of-the-ranks",
        EIGHT,
        "--use_vllm true --vllm_mode colocate --vllm_tensor_parallel_size 3",
        ("--use_vllm true --vllm_mode colocate --vllm_tensor_parallel_size 4",),
    ),
    (
        "padding-free-algorithms",
        PPO,
        "--padding_free true --attn_impl flash_attn",
        ("--padding_free false",),
    ),
    (
        "sequence-parallel-algorithms",
        KTO,
        "--sequence_parallel_size 2",
        ("--sequence_parallel_size 1",),
    ),
    (
        "kto-batch-of-one",
        KTO,
        "--gradient_accumulation_steps 1",
        ("", "--gradient_accumulation_steps 1 --per_device_train_batch_size 2"),
    ),
    # distillation
    (
        "two-teachers",
        GKD,
        f"{TEACHER} --teacher_model_server http://a --gkd_logits_topk 20",
        (TEACHER, "--teacher_model_server http://a --gkd_logits_topk 20"),
    ),
    (
        "teachers-servers",
        f"{GKD} --gkd_logits_topk 20",
        SERVERS % '"tags": ["x"]',
        (SERVERS % '"tags": ["y"]', "--teacher_model_server http://a"),
    ),
    ("teachers-servers", f"{GKD} --gkd_logits_topk 20", SERVERS % '"tags": []', ()),
    ("teachers-servers", f"{GKD} --gkd_logits_topk 20", SERVERS % '"tags": "y"', ()),
    ("teachers-servers", f"{GKD} --gkd_logits_topk 20", "--teacher_model_server '[]'", ()),
    (
        "teachers-servers",
        f"{GKD} --gkd_logits_topk 20",
        """--teacher_model_server '[{"tags": ["x"]}]'""",
        ("""--teacher_model_server '[{"url": "http://a"}]'""",),
    ),
    (
        "liger-without-teacher",
        GKD,
        "--use_liger_kernel true",
        (f"--use_liger_kernel true {TEACHER}",),
    ),
    (
        "liger-with-sft-loss",
        f"{GKD} {TEACHER} --use_liger_kernel true",
        "--sft_alpha 0.1",
        ("--sft_alpha 0", "--sft_alpha 0.1 --use_liger_kernel false"),
    ),
    (
        "liger-with-top-k",
        f"{GKD} {TEACHER} --use_liger_kernel true",
        "--gkd_logits_topk 20",
        ("--gkd_logits_topk 20 --use_liger_kernel false",),
    ),
    ("gkd-asynchronous", GKD, "--async_generate true", ("--async_generate false",)),
    ("gkd-sequences-of-teacher", f"{GKD} {TEACHER}", "--seq_kd true", ("--seq_kd false",)),
    (
        "gkd-sequences-of-teacher",
        f"{M_RLHF} --rlhf_type gkd {TEACHER}",
        "--seq_kd true",
        ("--seq_kd false",),
    ),
    (
        "gkd-server-without-top-k",
        GKD,
        "--teacher_model_server http://a",
        ("--teacher_model_server http://a --gkd_logits_topk 20",),
    ),
    ("gkd-top-k", GKD, "--gkd_logits_topk 0", ("--gkd_logits_topk 1", "")),
    # grpo
    *(
        (f"liger-with-{name.replace('_', '-')}", PAID, f"--use_liger_kernel true {flags}", (flags,))
        for name, flags in (
            ("delta", "--delta 1.5"),
            ("sequence_parallel_size", "--sequence_parallel_size 2"),
            ("padding_free", "--padding_free true --attn_impl flash_attn"),
            ("packing", "--packing true --attn_impl flash_attn"),
            ("top_entropy_quantile", "--top_entropy_quantile 0.2"),
            ("log_entropy", "--log_entropy true"),
            ("off_policy_sequence_mask_delta", "--off_policy_sequence_mask_delta 0.1"),
            ("importance_sampling_level", "--importance_sampling_level sequence_token"),
            ("advantage_estimator", "--advantage_estimator rloo"),
        )
    ),
    (
        "teacher-with-loss-type",
        f"{PAID} {TEACHER}",
        "--loss_type real",
        ("--loss_type dapo", "--loss_type $LOSS"),
    ),
    (
        "teacher-with-off-policy-sequence-mask-delta",
        f"{PAID} {TEACHER}",
        "--off_policy_sequence_mask_delta 0.1",
        ("",),
    ),
    ("teacher-with-use-liger-kernel", f"{PAID} {TEACHER}", "--use_liger_kernel true", ("",)),
    (
        "teacher-without-rewards",
        f"{GRPO} {TEACHER}",
        "--dynamic_sample true",
        ("--dynamic_sample true --reward_funcs accuracy", "--scale_rewards group"),
    ),
    ("teacher-without-rewards", f"{GRPO} {TEACHER}", "--scale_rewards gdpo", ()),
    ("rlsd-with-use-liger-kernel", f"{PAID} {RLSD}", "--use_liger_kernel true", ("",)),
    ("rlsd-with-loss-type", f"{PAID} {RLSD}", "--loss_type fipo", ("--loss_type grpo",)),
    (
        "rlsd-with-off-policy-sequence-mask-delta",
        f"{PAID} {RLSD}",
        "--off_policy_sequence_mask_delta 0.1",
        ("",),
    ),
    (
        "rlsd-with-teacher-model-server",
        f"{PAID} {RLSD}",
        "--teacher_model_server http://a",
        (TEACHER,),
    ),
    (
        "rlsd-without-rewards",
        f"{GRPO} --reward_model a",
        RLSD,
        (f"{RLSD} --reward_funcs format", ""),
    ),
    ("rlsd-lambda", f"{PAID} {RLSD}", "--rlsd_lambda 1.1", ("--rlsd_lambda 1",)),
    (
        "rlsd-clip-range",
        f"{PAID} {RLSD}",
        "--rlsd_reweight_clip_range -0.1",
        ("--rlsd_reweight_clip_range 0",),
    ),
    ("sdar-gate", f"{PAID} {SDAR}", "--sdar_gate_beta 0", ("--sdar_gate_beta 5",)),
    ("sdar-with-use-liger-kernel", f"{PAID} {SDAR}", "--use_liger_kernel true", ("",)),
    ("sdar-with-advantage-reweight", f"{PAID} {SDAR}", RLSD, ("",)),
    (
        "sdar-with-teacher-model-server",
        f"{PAID} {SDAR}",
        "--teacher_model_server http://a",
        (TEACHER,),
    ),
    ("grpo-from-cache", PAID, "--cached_dataset d", ("--val_dataset d",)),
    ("grpo-from-cache", PAID, "--cached_val_dataset d", ()),
    (
        "grpo-truncation",
        PAID,
        "--truncation_strategy right",
        ("--truncation_strategy delete", "--truncation_strategy $HOW"),
    ),
    ("grpo-truncation", M_GRPO, "--truncation_strategy right", ("--truncation_strategy left",)),
    (
        "overlong-without-cache",
        GRPO,
        "--reward_funcs accuracy soft_overlong",
        ("--reward_funcs accuracy soft_overlong --soft_cache_length 64",),
    ),
    (
        "grpo-asynchronous-turns",
        f"{PAID} --use_vllm true --vllm_mode server --vllm_server_host a",
        "--async_generate true --multi_turn_scheduler mine",
        ("--multi_turn_scheduler mine", "--async_generate true"),
    ),
    ("grpo-reasoning-parser", PAID, "--vllm_reasoning_parser deepseek_r1", ("",)),
    ("one-generation", PAID, "--num_generations 1", ("--num_generations 2",)),
    ("one-generation", PAID, "--num_generations 1", (f"--num_generations 1 {TEACHER}",)),
    (
        "generation-batch",
        EIGHT,
        "--per_device_train_batch_size 4 --generation_batch_size 48",
        (
            "--per_device_train_batch_size 4 --generation_batch_size 64",
            "--per_device_train_batch_size $B --generation_batch_size 48",
        ),
    ),
    (
        "generation-batch",
        EIGHT,
        "--per_device_train_batch_size 4 --generation_batch_size 64 --steps_per_generation 3",
        ("--per_device_train_batch_size 4 --generation_batch_size 64 --steps_per_generation 2",),
    ),
    ("no-generation-step", PAID, "--steps_per_generation 0", ("--steps_per_generation 1",)),
    (
        "uneven-groups",
        f"NPROC_PER_NODE=2 {PAID}",
        "--per_device_train_batch_size 2",
        (
            "--per_device_train_batch_size 4",
            "--per_device_train_batch_size 2 --gradient_accumulation_steps 2",
            "--per_device_train_batch_size 2 --num_generations 4",
            "--per_device_train_batch_size 2 --steps_per_generation 4",
        ),
    ),
    (
        "uneven-groups",
        f"CUDA_VISIBLE_DEVICES=0 {PAID}",
        "--per_device_train_batch_size 4",
        ("--per_device_train_batch_size 8",),
    ),
    ("uneven-groups", EIGHT, "--num_generations 7", ("--num_generations 4",)),
    (
        "uneven-groups-in-evaluation",
        f"{EIGHT} --num_generations 16 --per_device_train_batch_size 2",
        "--split_dataset_ratio 0.01",
        (
            "",
            "--split_dataset_ratio 0.01 --per_device_eval_batch_size 2",
            "--split_dataset_ratio 0.01 --num_generations_eval 8",
            "--split_dataset_ratio 0.01 --eval_strategy no",
            "--split_dataset_ratio 0.01 --save_strategy no",
        ),
    ),
    (
        "uneven-groups-in-evaluation",
        f"{EIGHT} --num_generations 16 --per_device_train_batch_size 2",
        "--val_dataset v.jsonl",
        (),
    ),
    (
        "no-reward",
        GRPO,
        "",
        (
            "--reward_funcs format",
            "--reward_model a",
            "--use_gym_env true",
            "--gym_env game",
            TEACHER,
            "--use_vllm true --vllm_mode server --vllm_server_host a",
        ),
    ),
    (
        "number-of-reward-weights",
        PAID,
        "--reward_weights 1 2",
        ("--reward_weights 1", "--reward_model a --reward_weights 1 2"),
    ),
    (
        "number-of-reward-plugins",
        PAID,
        "--reward_model a b --reward_model_plugin genrm",
        ("--reward_model a b --reward_model_plugin genrm default",),
    ),
    (
        "unknown-reward",
        GRPO,
        "--reward_funcs acuracy",
        ("--reward_funcs mine --external_plugins plugin.py", "--reward_funcs $REWARDS"),
    ),
    (
        "unknown-reward-plugin",
        GRPO,
        "--reward_model a --reward_model_plugin mine",
        ("--reward_model a --reward_model_plugin mine --external_plugins plugin.py",),
    ),
    ("unknown-grpo-loss", PAID, "--loss_type gspo", ("--loss_type dapo", "--loss_type fipo")),
    ("unknown-grpo-loss", M_GRPO, "--loss_type gspo", ("--loss_type dapo",)),
    # inference
    (
        "talking-in-processes",
        f"NPROC_PER_NODE=4 swift infer {MODEL}",
        "",
        ("--val_dataset d.jsonl", "--val_dataset $DATA", "--adapters a --load_data_args true"),
    ),
    (
        "talking-in-processes",
        f"NPROC_PER_NODE=4 swift infer {MODEL}",
        "--val_dataset d.jsonl --stream true",
        ("--val_dataset d.jsonl --stream false",),
    ),
    (
        "synchronous-encoding",
        f"swift infer {MODEL} --infer_backend vllm",
        "--task_type embedding --vllm_use_async_engine false",
        ("--task_type embedding", "--vllm_use_async_engine false"),
    ),
    (
        "synchronous-copies",
        f"{DEPLOY} --infer_backend vllm",
        "--vllm_data_parallel_size 2 --vllm_use_async_engine false",
        ("--vllm_data_parallel_size 2", "--vllm_use_async_engine false"),
    ),
    (
        "rollout-in-stages",
        ROLLOUT,
        "--vllm_pipeline_parallel_size 2",
        ("--vllm_tensor_parallel_size 2",),
    ),
    ("rollout-reasoning-parser", ROLLOUT, "--vllm_reasoning_parser deepseek_r1", ("",)),
    (
        "rollout-synchronous-turns",
        ROLLOUT,
        "--multi_turn_scheduler mine --vllm_use_async_engine false",
        ("--multi_turn_scheduler mine", "--vllm_use_async_engine false"),
    ),
    ("rollout-context-manager", ROLLOUT, "--context_manager mine", ("",)),
    (
        "rollout-devices",
        f"CUDA_VISIBLE_DEVICES=0,1,2,3 {ROLLOUT}",
        "--vllm_tensor_parallel_size 4 --vllm_data_parallel_size 2",
        ("--vllm_tensor_parallel_size 4", "--vllm_data_parallel_size $COPIES"),
    ),
    (
        "samples-in-a-folder",
        f"swift sample {MODEL} --dataset d",
        "--output_file out/a.jsonl",
        ("--output_file a.jsonl", "--output_dir out"),
    ),
    (
        "quantization-without-data",
        EXPORT,
        "--quant_method gptq --quant_bits 4",
        ("--quant_method bnb --quant_bits 4", "--quant_method gptq --quant_bits 4 --dataset d"),
    ),
    (
        "cache-of-packs",
        f"{EXPORT} --to_cached_dataset true --dataset d",
        "--packing true",
        ("--packing false", "--packing true --to_cached_dataset false"),
    ),
    (
        "cache-of-a-stream",
        f"{EXPORT} --to_cached_dataset true --dataset d",
        "--streaming true",
        ("--streaming false",),
    ),
    # megatron
    (
        "megatron-batch",
        M_EIGHT,
        "--micro_batch_size 3",
        ("--micro_batch_size 2", "--micro_batch_size 4 --tensor_model_parallel_size 2"),
    ),
    (
        "megatron-batch",
        M_EIGHT,
        "--global_batch_size 4",
        ("--global_batch_size 4 --tensor_model_parallel_size 2", "--global_batch_size $B"),
    ),
    (
        "megatron-generation-batch",
        M_GRPO,
        "--generation_batch_size 40",
        ("--generation_batch_size 32", "--generation_batch_size 32 --steps_per_generation 2"),
    ),
    (
        "megatron-generation-batch",
        M_GRPO,
        "--generation_batch_size 48 --steps_per_generation 2",
        (),
    ),
    ("megatron-no-generation-step", M_GRPO, "--steps_per_generation 0", ("",)),
    (
        "megatron-uneven-groups",
        M_GRPO,
        "--num_generations 6",
        ("--num_generations 6 --global_batch_size 24", "--num_generations 16"),
    ),
    (
        "megatron-uneven-prompts",
        M_GRPO_EIGHT,
        "--tensor_model_parallel_size 2",
        (
            "--tensor_model_parallel_size 4",
            "--tensor_model_parallel_size 2 --steps_per_generation 2",
            "--tensor_model_parallel_size 2 --num_generations 4",
        ),
    ),
    (
        "megatron-layout",
        MEGATRON,
        "--pipeline_model_parallel_size 4 --pipeline_model_parallel_layout 'Et|(tt|)*4L'",
        ("--pipeline_model_parallel_size 2 --pipeline_model_parallel_layout 'Et*3|(tt|)*2,mL'",),
    ),
    (
        "megatron-edges-of-one-stage",
        MEGATRON,
        "--decoder_first_pipeline_num_layers 10",
        ("--decoder_first_pipeline_num_layers 10 --pipeline_model_parallel_size 2",),
    ),
    (
        "megatron-overlap-without-sequences",
        MEGATRON,
        "--tp_comm_overlap true",
        ("--tp_comm_overlap true --sequence_parallel true --tensor_model_parallel_size 2",),
    ),
    (
        "megatron-overlap-without-sequences",
        MEGATRON,
        "--tp_comm_overlap true --sequence_parallel true",
        (),
    ),
    (
        "megatron-frozen-share",
        MEGATRON,
        "--freeze_parameters_ratio 0.5 --pipeline_model_parallel_size 2",
        ("--freeze_parameters_ratio 0.5", "--pipeline_model_parallel_size 2"),
    ),
    (
        "megatron-full-method",
        MEGATRON,
        "--recompute_granularity full --recompute_method uniform",
        (
            "--recompute_granularity full --recompute_method uniform --recompute_num_layers 1",
            "--recompute_granularity selective",
        ),
    ),
    (
        "lisa-of-adapters",
        SFT,
        "--lisa_activated_layers 2",
        ("--lisa_activated_layers 2 --tuner_type full", "--lisa_activated_layers 0"),
    ),
    (
        "megatron-selective-method",
        MEGATRON,
        "--recompute_method uniform",
        ("--recompute_method uniform --recompute_granularity full",),
    ),
    (
        "megatron-groups-unpadded",
        MEGATRON,
        "--group_by_length true",
        ("--group_by_length true --padding_free false",),
    ),
    (
        "megatron-groups-unpadded",
        MEGATRON,
        "--group_by_length true --padding_free false --packing true",
        (),
    ),
    (
        "megatron-limit-beside",
        MEGATRON,
        "--save_total_limit 2 --async_save true",
        ("--async_save true", "--save_total_limit 2"),
    ),
    ("megatron-limit", MEGATRON, "--save_total_limit 1", ("--save_total_limit 2", "")),
    (
        "megatron-streamed-epochs",
        MEGATRON,
        "--streaming true --train_iters 100 --save_strategy epoch",
        ("--save_strategy epoch", "--streaming true --train_iters 100"),
    ),
    (
        "megatron-streamed-iterations",
        MEGATRON,
        "--streaming true --num_train_epochs 2",
        ("--streaming true --num_train_epochs 2 --train_iters 100", "--num_train_epochs 2"),
    ),
    (
        "megatron-streamed-evaluation",
        MEGATRON,
        "--streaming true --train_iters 100 --val_dataset v.jsonl",
        ("--streaming true --train_iters 100 --val_dataset v.jsonl --eval_iters 10",),
    ),
    (
        "megatron-constant-decay",
        MEGATRON,
        "--start_weight_decay 0.1",
        (
            "--start_weight_decay 0.1 --end_weight_decay 0.01 --weight_decay_incr_style linear",
            "--weight_decay 0.1",
        ),
    ),
    (
        "megatron-growing-decay",
        MEGATRON,
        "--weight_decay_incr_style linear --start_weight_decay 0.1",
        ("--weight_decay_incr_style constant",),
    ),
    (
        "megatron-bare-language-model",
        f"{MEGATRON} --tuner_type lora_llm --no_save_optim true",
        "--language_model_only true",
        ("", "--language_model_only true --tuner_type lora"),
    ),
    (
        "megatron-unmerged",
        f"{MEGATRON} --tuner_type lora_llm --no_save_optim true",
        "--merge_lora false",
        ("", "--merge_lora true --save_safetensors false"),
    ),
    (
        "megatron-unmerged",
        f"{MEGATRON} --tuner_type lora_llm --no_save_optim true",
        "--save_safetensors false",
        (),
    ),
    (
        "megatron-saved-optimizer",
        MEGATRON,
        "--tuner_type lora_llm",
        ("--tuner_type lora_llm --no_save_optim true", "--tuner_type lora"),
    ),
    (
        "megatron-bridge-of-adapters",
        MEGATRON,
        "--bridge_backend megatron-bridge --tuner_type lora",
        ("--bridge_backend megatron-bridge", "--tuner_type lora"),
    ),
    (
        "megatron-bridge-of-tasks",
        MEGATRON,
        "--bridge_backend megatron-bridge --task_type embedding",
        ("--bridge_backend megatron-bridge --task_type causal_lm", "--task_type embedding"),
    ),
    (
        "megatron-rates-of-muon",
        MEGATRON,
        "--muon_lr 1e-3",
        ("--muon_lr 1e-3 --optimizer muon", "--lr 1e-3"),
    ),
    (
        "megatron-overlap-of-muon",
        MEGATRON,
        "--optimizer muon --overlap_grad_reduce true",
        ("--optimizer dist_muon --overlap_grad_reduce true", "--overlap_grad_reduce true"),
    ),
    (
        "megatron-fsdp-optimizer",
        MEGATRON,
        "--use_megatron_fsdp true --optimizer muon",
        ("--use_megatron_fsdp true", "--optimizer muon"),
    ),
    (
        "megatron-fsdp-connections",
        f"CUDA_DEVICE_MAX_CONNECTIONS=1 {MEGATRON}",
        "--use_megatron_fsdp true",
        ("", "--use_megatron_fsdp false"),
    ),
    (
        "megatron-attention",
        MEGATRON,
        "--attention_backend flash_5",
        ("--attention_backend flash_3", "--attention_backend unfused"),
    ),
    (
        "megatron-several-adapters",
        f"{MEGATRON} --tuner_type lora",
        "--adapters a b",
        ("--adapters a",),
    ),
    ("megatron-grpo-async-generate", M_GRPO, "--async_generate true", ("",)),
    ("megatron-grpo-sync-ref-model", M_GRPO, "--sync_ref_model true", ("",)),
    ("megatron-grpo-num-iterations", M_GRPO, "--num_iterations 2", ("--num_iterations 1",)),
    (
        "megatron-grpo-real-groups",
        M_GRPO,
        "--loss_type real",
        ("--loss_type real --micro_batch_size 8", "--loss_type grpo"),
    ),
    ("megatron-grpo-without-vllm", M_GRPO, "--use_vllm false", ("--use_vllm true",)),
)


def fired(root: Path, command: str, version: str = "4.6.0", **files: str) -> list[str]:
    """Names of the rules of ms-swift that refuse the command."""
    root.mkdir(exist_ok=True)
    pinned = {"requirements.txt": f"ms-swift=={version}\n"}
    runs = runs_of(root, {"train.sh": f"{command}\n", **pinned, **files})
    assert runs, command
    return [
        name
        for run in runs
        for use in uses(run)
        for part in use.accepted.parts
        for name, rule in RULES.items()
        if use.options is not None
        and rule.concerns(part.group, part.at_hand.version)
        and rule.refuses(use.options)
    ]


@pytest.mark.parametrize(("rule", "command", "refused", "taken"), CASES)
def test_a_rule(
    rule: str, command: str, refused: str, taken: tuple[str, ...], tmp_path: Path
) -> None:
    assert fired(tmp_path / "refused", f"{command} {refused}") == [rule]
    for number, flags in enumerate(taken):
        assert rule not in fired(tmp_path / str(number), f"{command} {flags}"), flags


def test_every_rule_has_a_case() -> None:
    in_files = {"partition-without-zero", "swift-node-rank"}
    of_releases = {"group-of-one", "uneven-groups-of-a-batch", "uneven-groups-of-a-step"}
    assert {case[0] for case in CASES} | in_files | of_releases == set(RULES)


def test_a_partition_needs_a_section_of_its_file(tmp_path: Path) -> None:
    command = f"{SFT} --deepspeed ds.json --zero_hpz_partition_size 8"
    bare = {"ds.json": '{"train_micro_batch_size_per_gpu": "auto"}\n'}
    zero = {"ds.json": '{"zero_optimization": {"stage": 3}}\n'}
    assert fired(tmp_path / "bare", command, **bare) == ["partition-without-zero"]
    assert fired(tmp_path / "zero", command, **zero) == []
    assert fired(tmp_path / "short", command.replace("ds.json", "zero3")) == []


@pytest.mark.parametrize(
    ("version", "command", "flags", "rules"),
    [
        ("3.12.6", SFT, "--warmup_ratio 0.05 --warmup_steps 9", []),
        ("4.5.3", SFT, "--warmup_ratio 0.05 --warmup_steps 9", ["both-warmups"]),
        ("3.10.3", PAID, "--use_vllm true", []),
        ("3.12.6", SFT, "--train_type qlora", ["unknown-tuner"]),
        ("3.12.6", GRPO, "--reward_funcs acuracy", ["unknown-reward"]),
        ("4.3.2", PAID, "--num_generations 1", ["group-of-one"]),
        ("4.4.2", f"{PAID} {TEACHER}", "--num_generations 1", []),
        ("3.4.0", ONE, "--num_generations 1", ["group-of-one"]),
        ("3.2.2", ONE, "--num_generations 1", ["group-of-one"]),
        ("3.4.0", PAID, "--num_generations 2", []),
        ("3.4.0", f"swift rlhf --rlhf_type dpo {MODEL} --dataset d", "--num_generations 1", []),
        ("3.2.2", TWO, "--per_device_train_batch_size 4", []),
        ("3.2.2", TWO, "--per_device_train_batch_size 2", ["uneven-groups-of-a-batch"]),
        (
            "3.3.1",
            TWO,
            "--per_device_train_batch_size 2 --gradient_accumulation_steps 2",
            ["uneven-groups-of-a-batch"],
        ),
        ("3.4.1", TWO, "--per_device_train_batch_size 2 --gradient_accumulation_steps 2", []),
        ("3.4.1", TWO, "--per_device_train_batch_size 2", []),
        (
            "3.4.1",
            TWO,
            "--per_device_train_batch_size 2 --gradient_accumulation_steps 1",
            ["uneven-groups-of-a-step"],
        ),
        ("3.6.4", TWO, "--num_generations 7", ["uneven-groups-of-a-step"]),
        ("3.6.4", TWO, "--num_generations 7 --steps_per_generation 7", []),
        ("3.8.3", TWO, "--num_generations 7", ["uneven-groups"]),
        ("3.8.3", TWO, "--num_generations 2", []),
        ("4.3.2", f"{PAID} {TEACHER}", "--use_liger_kernel true", []),
        ("3.5.3", EXPORT, "--quant_method awq --dataset d", ["export-without-bits"]),
        ("3.6.4", f"swift sft {MODEL}", "", ["no-dataset"]),
        (
            "3.3.1",
            f"CUDA_VISIBLE_DEVICES=0,1,2 NPROC_PER_NODE=2 {PAID}",
            "--per_device_train_batch_size 4",
            [],
        ),
        ("3.9.3", "swift export --to_hf true", "--mcore_adapters out/1", []),
        ("4.6.0", SFT, "--template qwen25", ["unknown-template"]),
        ("3.12.6", SFT, "--model_type qwen2_5", []),
        ("4.6.0", SFT, "--model_type qwen2_5", ["unknown-model-type"]),
    ],
)
def test_a_release_has_its_own_rules(
    version: str, command: str, flags: str, rules: list[str], tmp_path: Path
) -> None:
    assert fired(tmp_path, f"{command} {flags}", version) == rules


def test_a_file_of_arguments_is_judged_as_flags_are(tmp_path: Path) -> None:
    text = "model: Qwen/Qwen2.5-7B-Instruct\ndataset: [a.jsonl]\nquant_method: {}\n"
    bare, whole = text.format("bnb"), text.format("bnb\nquant_bits: 4")
    assert fired(tmp_path / "a", "swift sft sft.yaml", **{"sft.yaml": bare}) == [
        "quantization-without-bits"
    ]
    assert fired(tmp_path / "b", "swift sft sft.yaml", **{"sft.yaml": whole}) == []


def test_beginnings_and_opposites_of_flags_are_the_flags(tmp_path: Path) -> None:
    assert fired(tmp_path / "a", f"{SFT} --quant_meth bnb --quant_bit 4") == []
    assert fired(tmp_path / "b", f"{SFT} --quant_meth bnb") == ["quantization-without-bits"]
    assert fired(tmp_path / "c", f"{M_GRPO} --no_use_vllm") == ["megatron-grpo-without-vllm"]


@pytest.mark.parametrize("tail", ['"$@"', "$MORE", "--use_ray true", "--ignore_args_error true"])
def test_what_is_not_known_is_not_told(tail: str, tmp_path: Path) -> None:
    assert fired(tmp_path, f"{SFT} --quant_method bnb {tail}") == []


def test_the_message_says_what_to_write_and_the_change_writes_it(tmp_path: Path) -> None:
    runs = runs_of(tmp_path, {"train.sh": f"{GRPO} --reward_funcs format --use_vllm true\n"})
    (found,) = findings(runs, "GPU024")
    assert found.message.startswith("write vllm_mode=colocate: ")
    assert found.change is not None
    assert found.change.text == "--vllm_mode colocate"
    assert found.change.edits


@pytest.mark.parametrize(
    ("flags", "instruction"),
    [
        ("--template lama3", "write template=llama3: "),
        ("--template alpaca_gpt", "drop template: "),
        ("--model_type qwen_2_5_5", "drop model_type: "),
        ("--model_kwargs fps=2.0", 'write model_kwargs as JSON: {"fps": 2.0}: '),
        ("--columns q=query", 'write columns as JSON: {"q": "query"}: '),
    ],
)
def test_the_name_that_is_meant_is_told(flags: str, instruction: str, tmp_path: Path) -> None:
    (found,) = findings(runs_of(tmp_path, {"train.sh": f"{SFT} {flags}\n"}), "GPU024")
    assert found.message.startswith(instruction)


def test_a_server_that_is_named_is_the_mode(tmp_path: Path) -> None:
    flags = "--reward_funcs format --use_vllm true --vllm_server_host 10.0.0.1"
    (found,) = findings(runs_of(tmp_path, {"train.sh": f"{GRPO} {flags}\n"}), "GPU024")
    assert found.message.startswith("write vllm_mode=server: ")


def test_a_script_of_an_older_release_is_not_judged_by_newer_rules(tmp_path: Path) -> None:
    flags = "--reward_funcs format --use_vllm true --num_infer_workers 1"
    old = {"train.sh": f"{GRPO} {flags}\n"}
    assert findings(runs_of(tmp_path / "old", old), "GPU024") == []
    pinned = {**old, "requirements.txt": "ms-swift==4.6.0\n"}
    assert len(findings(runs_of(tmp_path / "pinned", pinned), "GPU024")) == 1


# --- what TrainingArguments get of ms-swift ---


@pytest.mark.parametrize(
    ("flags", "instruction"),
    [
        ("--save_steps 1.5", "give save_steps a whole number"),
        ("--lr_scheduler_type reduce_lr_on_plateau --eval_strategy no", "set eval_strategy"),
        (
            "--load_best_model_at_end true --split_dataset_ratio 0.01 --eval_steps 300",
            "make save_steps",
        ),
    ],
)
def test_training_arguments_refuse_what_ms_swift_hands_on(
    flags: str, instruction: str, tmp_path: Path
) -> None:
    (found,) = findings(runs_of(tmp_path, {"train.sh": f"{SFT} {flags}\n"}), "GPU024")
    assert found.message.startswith(instruction)
    assert "Transformers" in found.message


@pytest.mark.parametrize(
    "flags",
    [
        "--fsdp fsdp2",
        "--load_best_model_at_end true --split_dataset_ratio 0.01",
        "--load_best_model_at_end true --split_dataset_ratio 0.01 --save_steps 300",
        "--dataloader_prefetch_factor 4",
        "--eval_strategy steps --logging_steps 10",
        "--warmup_ratio 0.05",
        "--lr_scheduler_type reduce_lr_on_plateau --val_dataset v.jsonl",
    ],
)
def test_what_ms_swift_fills_in_is_taken(flags: str, tmp_path: Path) -> None:
    assert findings(runs_of(tmp_path, {"train.sh": f"{SFT} {flags}\n"}), "GPU024") == []
