"""Items G (strategy) and H (multimodal) of the general audit, front end by front end."""

from __future__ import annotations

import json

from audit_cases import (
    ADVISED,
    NA,
    OFF,
    ON,
    PARTLY,
    Case,
    Files,
    engine,
    flow_factory,
    launched,
    llamafactory,
    megatron_lm,
    swift,
    videox_fun,
    zero,
)
from audit_cases_data import (
    GRPO,
    SFT,
    VL,
    data_module,
    photos,
    prepared,
    reviews,
    text_trainer,
    tokens,
    trl,
    verl,
)

LORA = "finetuning_type: lora\n"
COSINE = (
    "def configure_optimizers(self):\n"
    "        optimizer = torch.optim.SGD(self.parameters(), lr=0.1)\n"
    "        schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 90)\n"
    '        return {"optimizer": optimizer, "lr_scheduler": schedule}'
)


def zero_with(**more: object) -> str:
    """A DeepSpeed configuration with further sections."""
    return json.dumps({**json.loads(zero(2)), **more}, indent=2)


ADAM = {"type": "AdamW", "params": {"lr": 1e-4}}
WARMUP = {"type": "WarmupDecayLR", "params": {"warmup_num_steps": 500, "total_num_steps": 9000}}
FREE = "import schedulefree\nimport torch"


def _schedule_free() -> Files:
    files = dict(tokens())
    files["train.py"] = (
        files["train.py"]
        .replace("import torch", FREE, 1)
        .replace("torch.optim.AdamW", "schedulefree.AdamWScheduleFree")
    )
    return files


_LABELS = reviews("self.rows[index]")
SCHEDULE = (
    Case("lr-schedule", ON, "pytorch", photos(), "OneCycleLR"),
    Case(
        "lr-schedule",
        ON,
        "lightning",
        data_module(optimizers=COSINE.partition("\n")[2].strip()),
        "CosineAnnealingLR",
    ),
    Case(
        "lr-schedule",
        ON,
        "deepspeed",
        engine(zero_with(optimizer=ADAM, scheduler=WARMUP)),
        "WarmupDecayLR",
    ),
    Case(
        "lr-schedule",
        ON,
        "timm",
        photos(
            epoch="    scheduler, _ = create_scheduler_v2(optimizer, num_epochs=90)\n",
            imports="from timm.scheduler import create_scheduler_v2",
        ),
        "scheduler",
    ),
    Case("lr-schedule", ON, "trainer", text_trainer("warmup_ratio=0.05"), "linear"),
    Case("lr-schedule", ON, "swift", swift(f"warmup_ratio 0.05 {SFT}"), "cosine"),
    Case("lr-schedule", ON, "llamafactory", llamafactory(LORA + "warmup_ratio: 0.1\n"), "linear"),
    Case(
        "lr-schedule",
        ON,
        "megatron-lm",
        megatron_lm("--lr-decay-style cosine --lr-warmup-fraction 0.01"),
        "cosine",
    ),
    Case(
        "lr-schedule",
        ON,
        "verl",
        verl(
            "actor_rollout_ref.actor.optim.lr_scheduler_type=cosine",
            "actor_rollout_ref.actor.optim.lr_warmup_steps_ratio=0.05",
        ),
        "cosine",
    ),
    Case("lr-schedule", ADVISED, "pytorch", _LABELS, "no schedule", "OneCycleLR"),
    Case("lr-schedule", OFF, "pytorch", tokens(), "no schedule"),
    Case("lr-schedule", ADVISED, "accelerate", prepared(), "no schedule", "OneCycleLR"),
    Case("lr-schedule", ADVISED, "lightning", data_module(), "no schedule", "OneCycleLR"),
    Case(
        "lr-schedule",
        ADVISED,
        "deepspeed",
        engine(zero_with(optimizer=ADAM)),
        "no schedule",
        "WarmupCosineLR",
    ),
    Case("lr-schedule", PARTLY, "trainer", text_trainer(), "", "warmup_steps=100,"),
    Case("lr-schedule", PARTLY, "swift", swift(SFT), "", "--warmup_ratio 0.05"),
    Case("lr-schedule", PARTLY, "llamafactory", llamafactory(LORA), "", "warmup_steps: 100"),
    Case("lr-schedule", PARTLY, "megatron-lm", megatron_lm(""), "", "--lr-warmup-fraction 0.05"),
    Case("lr-schedule", OFF, "swift", swift(f"lr_scheduler_type constant {SFT}"), "constant"),
    Case("lr-schedule", OFF, "videox-fun", videox_fun(""), "constant"),
    Case("lr-schedule", NA, "pytorch", _schedule_free(), "needs none"),
    Case(
        "lr-schedule",
        NA,
        "trainer",
        text_trainer('optim="schedule_free_adamw"', 'lr_scheduler_type="constant"'),
        "needs none",
    ),
)

NODES = "torchrun --nnodes=8 --nproc_per_node=8 --rdzv_endpoint=head:29500 train.py"
_HUGE = "DataLoader(train_set, batch_size=512, shuffle=True, num_workers=8, pin_memory=True)"
_SGD = "torch.optim.SGD(model.parameters(), lr=0.1)"


def _with_optimizer(made: str, imports: str) -> Files:
    files = dict(photos(_HUGE, imports=imports, command=NODES))
    files["train.py"] = files["train.py"].replace(_SGD, made)
    return files


_BERT = """\
from transformers import AutoModelForMaskedLM, Trainer, TrainingArguments

model = AutoModelForMaskedLM.from_pretrained("roberta-base")
args = TrainingArguments("out", per_device_train_batch_size=256)
Trainer(model=model, args=args, train_dataset=data).train()
"""
LARGE_BATCH = (
    Case(
        "large-batch-optimizer",
        ON,
        "apex",
        _with_optimizer("FusedLAMB(model.parameters())", "from apex.optimizers import FusedLAMB"),
        "FusedLAMB",
    ),
    Case(
        "large-batch-optimizer",
        ON,
        "timm",
        _with_optimizer("Lars(model.parameters(), lr=9.0)", "from timm.optim import Lars"),
        "Lars",
    ),
    Case(
        "large-batch-optimizer",
        ON,
        "deepspeed",
        engine(zero_with(optimizer={**ADAM, "type": "Lamb"})),
        "Lamb",
    ),
    Case(
        "large-batch-optimizer",
        ADVISED,
        "pytorch",
        photos(_HUGE, command=NODES),
        "32,768",
        "timm.optim.Lars",
    ),
    Case(
        "large-batch-optimizer",
        ADVISED,
        "trainer",
        launched(_BERT, NODES),
        "16,384",
        "timm.optim.Lamb",
    ),
    Case(
        "large-batch-optimizer",
        OFF,
        "megatron-lm",
        megatron_lm("--global-batch-size 16384"),
        "16384",
    ),
    Case(
        "large-batch-optimizer",
        NA,
        "pytorch",
        photos(command="torchrun --nproc_per_node=8 train.py"),
        "512",
    ),
    Case(
        "large-batch-optimizer",
        OFF,
        "pytorch, unknown accumulation",
        photos(
            classes="accumulation_steps = count_steps()",
            command="torchrun --nproc_per_node=8 train.py",
        ),
        "very large",
    ),
    Case("large-batch-optimizer", NA, "swift", swift(SFT), "not needed"),
    Case("large-batch-optimizer", NA, "megatron-lm", megatron_lm(""), "256"),
)

GROWS = {"enabled": True, "curriculum_type": "seqlen", "min_difficulty": 64, "max_difficulty": 1024}
CURRICULUM = (
    Case("curriculum", ON, "deepspeed", engine(zero_with(curriculum_learning=GROWS)), "enabled"),
    Case(
        "curriculum",
        ON,
        "trainer",
        {**text_trainer('deepspeed="ds.json"'), "ds.json": zero_with(curriculum_learning=GROWS)},
        "enabled",
    ),
    Case("curriculum", OFF, "swift", swift(SFT), "optional"),
    Case("curriculum", OFF, "trl", trl(), "optional"),
    Case("curriculum", NA, "pytorch", photos(), "no sequences"),
    Case("curriculum", NA, "flow-factory", flow_factory(""), "no sequences"),
    Case("curriculum", NA, "swift", swift("use_vllm true", what=GRPO), "how long"),
)

_PEFT = """\
import torch
from peft import LoraConfig, get_peft_model
from torch.utils.data import DataLoader
from transformers import AutoModelForCausalLM

model = AutoModelForCausalLM.from_pretrained("Qwen/Qwen2.5-7B")
model = get_peft_model(model, LoraConfig(r=16)).cuda()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
for batch in DataLoader(train_set, 8, shuffle=True, num_workers=8):
    loss = model(**batch).loss
    loss.backward()
    optimizer.step()
"""
_FRESH = """\
from transformers import AutoConfig, AutoModelForCausalLM, Trainer, TrainingArguments

model = AutoModelForCausalLM.from_config(AutoConfig.from_pretrained("Qwen/Qwen2.5-0.5B"))
args = TrainingArguments("out", bf16=True)
Trainer(model=model, args=args, train_dataset=data).train()
"""
BIG = "Qwen/Qwen2.5-72B-Instruct"
H100 = "gres=gpu:h100:8"
_FROZEN = "model = resnet50(weights=IMAGENET).cuda()\n    model.layer1.requires_grad_(False)"
ADAPTERS = (
    Case("lora-qlora", ON, "swift", swift(SFT), "tuner_type lora"),
    Case("lora-qlora", ON, "llamafactory", llamafactory(LORA), "lora"),
    Case("lora-qlora", ON, "pytorch", {"train.py": _PEFT}, "get_peft_model"),
    Case(
        "lora-qlora",
        ADVISED,
        "swift",
        swift("tuner_type full --deepspeed zero3", H100, model=BIG),
        "",
        "--tuner_type lora",
    ),
    Case(
        "lora-qlora",
        ADVISED,
        "llamafactory",
        llamafactory("finetuning_type: full\n", H100, model=BIG),
        "",
        "finetuning_type: lora",
    ),
    Case("lora-qlora", OFF, "swift", swift("tuner_type full", H100), "optional"),
    Case("lora-qlora", NA, "pytorch", photos(), "from scratch"),
    Case(
        "lora-qlora",
        NA,
        "trainer",
        launched(_FRESH, "torchrun --nproc_per_node=8 train.py"),
        "from scratch",
    ),
    Case("lora-qlora", NA, "megatron-lm", megatron_lm(""), "from scratch"),
)


def _frozen() -> Files:
    files = dict(photos())
    files["train.py"] = files["train.py"].replace("model = resnet50().cuda()", _FROZEN)
    return files


FREEZING = (
    Case("layer-freezing", ON, "pytorch", _frozen(), "requires_grad_(False)"),
    Case(
        "layer-freezing", ON, "swift", swift("tuner_type full --freeze_parameters_ratio 0.5"), "0.5"
    ),
    Case(
        "layer-freezing",
        ON,
        "llamafactory",
        llamafactory("finetuning_type: freeze\nfreeze_trainable_layers: 2\n"),
        "2",
    ),
    Case("layer-freezing", OFF, "swift", swift("tuner_type full"), "optional"),
    Case("layer-freezing", OFF, "trl", trl(), "optional"),
    Case("layer-freezing", NA, "swift", swift(SFT), "adapters"),
    Case("layer-freezing", NA, "llamafactory", llamafactory(LORA), "adapters"),
    Case("layer-freezing", NA, "pytorch", photos(), "from scratch"),
)

GKD = "swift rlhf --rlhf_type gkd"
TEACHER = "teacher_model Qwen/Qwen2.5-14B-Instruct"
OLD_TRL = {"requirements.txt": "trl==0.22.2\n"}
_CHUNKED = """\
import torch
from liger_kernel.chunked_loss import LigerFusedLinearDPOLoss
from torch.utils.data import DataLoader
from transformers import AutoModelForCausalLM

model = AutoModelForCausalLM.from_pretrained("Qwen/Qwen2.5-7B").cuda()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-6)
dpo = LigerFusedLinearDPOLoss()
for batch in DataLoader(pairs, 8, shuffle=True, num_workers=8):
    loss = dpo(model.lm_head.weight, model.model(**batch), batch["labels"])
    loss.backward()
    optimizer.step()
"""
PAIRS = 'load_dataset("trl-lib/ultrafeedback_binarized", split="train")'
ALIGNMENT = (
    Case("alignment-loss", ON, "pytorch", {"train.py": _CHUNKED}, "LigerFusedLinearDPOLoss"),
    Case(
        "alignment-loss",
        ON,
        "swift",
        swift(f"{TEACHER} --use_liger_kernel true", what=GKD),
        "use_liger_kernel",
    ),
    Case(
        "alignment-loss",
        ON,
        "trl",
        {**trl("use_liger_loss=True", kind="DPO", data=PAIRS), **OLD_TRL},
        "use_liger_loss",
    ),
    Case(
        "alignment-loss", ADVISED, "swift", swift(TEACHER, what=GKD), "", "--use_liger_kernel true"
    ),
    Case(
        "alignment-loss",
        ADVISED,
        "trl",
        {**trl(kind="DPO", data=PAIRS), **OLD_TRL},
        "",
        "use_liger_loss=True,",
    ),
    Case("alignment-loss", NA, "swift", swift(SFT), "sft"),
    Case("alignment-loss", NA, "trl", trl(), "sft"),
    Case("alignment-loss", NA, "llamafactory", llamafactory(LORA), "sft"),
    Case("alignment-loss", NA, "pytorch", photos(), "no preference"),
)

_TOWER = """\
import torch
from torch.utils.data import DataLoader
from transformers import AutoModelForImageTextToText, AutoProcessor
{imports}
processor = AutoProcessor.from_pretrained("Qwen/Qwen2.5-VL-7B-Instruct"{bound})
model = AutoModelForImageTextToText.from_pretrained("Qwen/Qwen2.5-VL-7B-Instruct").cuda()
{freeze}optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5)
for batch in DataLoader(train_set, 8, shuffle=True, num_workers=8):
    loss = model(**batch).loss
    loss.backward()
    optimizer.step()
"""


def tower(imports: str = "", bound: str = "", freeze: str = "") -> Files:
    """A loop over images and text."""
    return {"train.py": _TOWER.format(imports=imports, bound=bound, freeze=freeze)}


VISION = (
    Case("vision-encoder-frozen", ON, "swift", swift(SFT, model=VL), "freeze_vit"),
    Case(
        "vision-encoder-frozen",
        ON,
        "llamafactory",
        llamafactory(LORA, model=VL),
        "freeze_vision_tower",
    ),
    Case(
        "vision-encoder-frozen",
        ON,
        "pytorch",
        tower(freeze="model.visual.requires_grad_(False)\n"),
        "visual.requires_grad_",
    ),
    Case(
        "vision-encoder-frozen", OFF, "swift", swift(f"freeze_vit false {SFT}", model=VL), "trained"
    ),
    Case(
        "vision-encoder-frozen",
        OFF,
        "llamafactory",
        llamafactory(LORA + "freeze_vision_tower: false\n", model=VL),
        "trained",
    ),
    Case("vision-encoder-frozen", NA, "swift", swift(SFT), "text model"),
    Case("vision-encoder-frozen", NA, "trl", trl(), "text model"),
    Case("dynamic-resolution", ON, "swift", swift(f"max_pixels 602112 {SFT}", model=VL), "602112"),
    Case(
        "dynamic-resolution", ON, "llamafactory", llamafactory(LORA, model=VL), "image_max_pixels"
    ),
    Case("dynamic-resolution", ADVISED, "swift", swift(SFT, model=VL), "", "--max_pixels 1003520"),
    Case("dynamic-resolution", ADVISED, "pytorch", tower(), "", "max_pixels=1003520"),
    Case("dynamic-resolution", OFF, "flow-factory", flow_factory("  resolution: 384\n"), "a fixed"),
    Case("dynamic-resolution", NA, "swift", swift(SFT), "text model"),
    Case("dynamic-resolution", NA, "trl", trl(), "text model"),
    Case(
        "vision-token-pruning",
        ON,
        "videox-fun",
        videox_fun("--enable_bucket --training_with_video_token_length"),
        "token_length",
    ),
    Case(
        "vision-token-pruning",
        ON,
        "pytorch",
        tower(imports="from visionzip import visionzip"),
        "visionzip",
    ),
    Case("vision-token-pruning", OFF, "swift", swift(SFT, model=VL), "optional"),
    Case("vision-token-pruning", OFF, "llamafactory", llamafactory(LORA, model=VL), "optional"),
    Case("vision-token-pruning", NA, "swift", swift(SFT), "text model"),
    Case("vision-token-pruning", NA, "trl", trl(), "text model"),
)

CASES = (
    *SCHEDULE,
    *LARGE_BATCH,
    *CURRICULUM,
    *ADAPTERS,
    *FREEZING,
    *ALIGNMENT,
    *VISION,
)
