"""GPU601 to GPU603, GPU607: schedules, very large batches, curricula, and the loss."""

from __future__ import annotations

from dataclasses import replace
from typing import Optional

from flake8_gpu_training.checks import _flow as flow
from flake8_gpu_training.checks._by_framework import by_framework
from flake8_gpu_training.checks._judging import (
    Snippet,
    advise,
    cannot_apply,
    cannot_tell,
    of_training,
    off,
    on,
    seen,
    with_edits,
)
from flake8_gpu_training.checks._kernels import liger_supports
from flake8_gpu_training.checks._programs import first_call, imports
from flake8_gpu_training.checks._samples import decodes_images
from flake8_gpu_training.checks._scale import global_batch, is_cuda, number, text
from flake8_gpu_training.checks._settings import (
    PREFERENCE,
    ROLLOUT,
    algorithm,
    is_on,
    is_text,
    parameter,
    told,
)
from flake8_gpu_training.checks._strategy_examples import DISTILL, OF_72B, WARM, script
from flake8_gpu_training.checks.base import (
    Check,
    Evidence,
    Example,
    Impact,
    Item,
    Judgement,
    Priority,
    Status,
)
from flake8_gpu_training.facts import Call, Setting
from flake8_gpu_training.frameworks.at_hand import version_at_hand
from flake8_gpu_training.frameworks.handed_optimizers import hands_schedule
from flake8_gpu_training.frameworks.reading import find
from flake8_gpu_training.frameworks.swift_commands import is_megatron
from flake8_gpu_training.language import Text
from flake8_gpu_training.runs.model import Run

_WARMUP = "Accurate, Large Minibatch SGD (Goyal et al., 2017), arXiv:1706.02677"
_LIGER = "Liger Kernel (Hsu et al., 2024), arXiv:2410.10989"


# --- GPU601: learning-rate schedule ---


_NO_SCHEDULE = Text("学习率固定，未使用调度", "the learning rate stays as it is: no schedule")
_WARMUPS = (
    "warmup_iters",
    "warmup_steps",
    "warmup_epochs",
    "warmup_ratio",
    "lr_warmup_steps",
    "num_warmup_steps",
    "lr_warmup_epochs",
)
_DECAYED = ("LLM", "MLLM", "encoder", "encoder-decoder", "embedding", "vision")
_SCHEDULE_WORDS = ("schedul", "warmup", "param_group")


@of_training(alone=True)
def _schedule(run: Run) -> Judgement:
    if _is_schedule_free(run):
        return cannot_apply(
            Text("schedule-free 优化器无需调度", "a schedule-free optimizer needs none")
        )
    setting, warmup = run.practice("lr_scheduler"), run.practice("warmup")
    if run.framework == "generic" and not (told(run, "lr_scheduler") and setting.known):
        return _schedule_by_hand(run, setting)
    if not setting.known or not isinstance(setting.value, str):
        return cannot_tell(setting)
    name = setting.value.lower()
    if name == "constant":
        return off(Text("固定学习率", "a constant learning rate"), setting)
    if name.endswith("warmup") or not warmup.known:
        return on(setting)
    if (number(run, "warmup") or 0) > 0 or algorithm(run) in ROLLOUT:
        return on(setting)
    brought = _brought_schedule(run)
    return _warm_up(run, warmup) if brought is None else brought


def _brought_schedule(run: Run) -> Optional[Judgement]:
    """What is known of a schedule that the arguments of a trainer do not decide."""
    section = run.deepspeed.get("scheduler") if run.deepspeed is not None else None
    if section is not None and run.deepspeed is not None:
        steps = run.deepspeed.get("scheduler.params.warmup_num_steps")
        if steps is None or steps.value == "auto":
            return None
        return on(Setting("warmup_num_steps", steps.value, steps.location))
    calls = [call for file in run.python for call in file.calls]
    methods = {name for file in run.python for own in file.classes for name in own.methods}
    handed = any(hands_schedule(call) for call in calls)
    if not handed and not any("create_scheduler" in name for name in methods):
        return None
    made = next((c for c in calls if c.method.startswith("get_") and "_schedule" in c.method), None)
    if made is not None and ("warmup" in made.method or made.method == "get_scheduler"):
        return seen(made)
    return cannot_tell(Text("调度由代码传入", "the program hands its own schedule over"))


def _is_schedule_free(run: Run) -> bool:
    name = (text(run, "optimizer") or "").replace("_", "")
    return "schedulefree" in name or imports(run, "schedulefree") is not None


def _schedule_by_hand(run: Run, setting: Setting) -> Judgement:
    call = first_call(run, ".get_scheduler", ".create_scheduler", ".create_scheduler_v2") or next(
        (
            call
            for program in run.python
            for call in program.calls
            if call.name.startswith(("torch.optim.lr_scheduler.", "timm.scheduler."))
            or (call.method.startswith("get_") and "_schedule" in call.method)
        ),
        None,
    )
    if call is not None:
        return seen(call)
    if setting.known and setting.explicit:
        return on(setting)
    by_hand = find(run, *_WARMUPS)
    if by_hand is not None and is_on(by_hand):
        return on(by_hand)
    if not _has_no_schedule(run):
        return cannot_tell(Text("未见学习率调度", "no learning-rate schedule is in sight"))
    if run.model.kind not in _DECAYED and run.deepspeed is None:
        return off(_NO_SCHEDULE)  # GANs, agents and toys go without
    return _add_schedule(run)


def _has_no_schedule(run: Run) -> bool:
    """Whether the whole program was searched and has no word of a schedule."""
    if run.is_open or not run.python or any(file.problems for file in run.python):
        return False
    if run.deepspeed is not None and run.deepspeed.get("scheduler") is not None:
        return False
    if first_call(run, ".LightningCLI") is not None:  # its configuration may name one
        return False
    words = [file.mentions for file in run.python]
    return all(found is not None and found.isdisjoint(_SCHEDULE_WORDS) for found in words)


def _add_schedule(run: Run) -> Judgement:
    """Advice in words: a schedule changes what is learnt."""
    configured = run.deepspeed.get("optimizer") if run.deepspeed is not None else None
    made = next((c for p in run.python for c in p.calls if _makes_optimizer(c)), None)
    if configured is not None:
        place, snippet = configured.location, Snippet(_DEEPSPEED_SAID, _DEEPSPEED_SCHEDULE, "json")
    elif made is not None:
        place, snippet = made.location, _SNIPPET
    else:
        return cannot_tell(Text("未见优化器", "no optimizer is in sight"))
    answer = advise(
        run,
        "a rate that stays at its full value neither warms up nor settles at the end",
        _NO_SCHEDULE,
        Text(
            "预热后按余弦或线性衰减学习率",
            "warm the rate up, then decay it by cosine or linearly",
        ),
        snippet=snippet,
    )
    findings = tuple(replace(finding, location=place) for finding in answer.findings)
    return replace(answer, findings=findings)


def _makes_optimizer(call: Call) -> bool:
    return call.name.startswith("torch.optim.") and call.method in _OPTIMIZERS


_OPTIMIZERS = ("SGD", "Adam", "AdamW", "NAdam", "RAdam", "RMSprop", "Adagrad", "Muon")
_SNIPPET = Snippet(
    "warm up and decay the learning rate (torch.optim.lr_scheduler.OneCycleLR)",
    "scheduler = torch.optim.lr_scheduler.OneCycleLR(\n"
    "    optimizer, max_lr=LEARNING_RATE, total_steps=TOTAL_STEPS, pct_start=0.05\n"
    ")\n"
    "# behind optimizer.step():\n"
    "scheduler.step()",
)
_DEEPSPEED_SAID = 'add a "scheduler" section (WarmupCosineLR)'
_DEEPSPEED_SCHEDULE = (
    '"scheduler": {"type": "WarmupCosineLR", '
    '"params": {"total_num_steps": 10000, "warmup_num_steps": 500}},'
)


def _warm_up(run: Run, warmup: Setting) -> Judgement:
    # Transformers' newest releases take warmup_steps only (5.14.1 is the last with the ratio);
    # every release takes an integer.
    of_trainer = run.framework in ("hf_trainer", "llamafactory")
    by_share = run.framework == "hf_trainer" and version_at_hand(run, "transformers") < (5,)
    written = {"warmup_ratio": 0.05} if by_share else {"warmup_steps": 100}
    action = Text("学习率预热 3%~10% 的步数", "warm up over 3 to 10 % of the steps")
    if of_trainer and not by_share:
        action = Text(
            f"{action.zh}（100 步为示例，按总步数换算）", f"{action.en} (100 is an example)"
        )
    answer = advise(
        run,
        "the first steps of Adam are noisy without warm-up",
        Text("学习率没有预热", "the learning rate does not warm up"),
        action,
        practices=None if of_trainer else {"warmup": 0.05},
        parameters=written if of_trainer else None,
        at=warmup,
        share=0.5,
    )
    return with_edits(answer)  # it changes what is learnt


# --- GPU602, GPU603: very large batches, curriculum ---

_LARGE_BATCH = 8192  # samples; LAMB and LARS were made for 8K to 64K


@of_training()
def _large_batch(run: Run) -> Judgement:
    name = text(run, "optimizer") or ""
    if "lamb" in name or "lars" in name:
        return on(run.practice("optimizer"))
    call = first_call(run, ".LAMB", ".FusedLAMB", ".LARS", ".Lamb", ".Lars")
    if call is not None:
        return seen(call)
    batch = global_batch(run)
    if batch is None:
        return off(Text("仅超大 batch 需要", "for very large batches only"))
    if batch <= _LARGE_BATCH:
        why = Text(f"全局 batch 为 {batch}，不需要", f"not needed for a global batch of {batch}")
        return cannot_apply(why)
    wanted = _for_large_batches(run, name)
    if not wanted:
        return off(Text(f"全局 batch 为 {batch}，可选", f"optional at a global batch of {batch}"))
    return _scale_rates(run, batch, wanted)


def _for_large_batches(run: Run, optimizer: str) -> str:
    """LARS in the place of SGD, LAMB in that of Adam where encoders are pre-trained."""
    if optimizer.startswith("sgd"):
        return "LARS"
    adam = optimizer.startswith(("adam", "fusedadam"))
    return "LAMB" if adam and run.model.kind == "encoder" else ""


def _scale_rates(run: Run, batch: int, wanted: str) -> Judgement:
    setting = run.practice("optimizer")
    answer = advise(
        run,
        f"{setting.value} loses accuracy at a global batch of {batch:,} samples",
        Text(
            f"全局 batch 为 {batch}，优化器为 {setting.value}",
            f"{setting.value} at a global batch of {batch:,}",
        ),
        Text(f"改用 {wanted}（逐层缩放学习率）", f"use {wanted}, which scales the rate by layer"),
        snippet=_LARGE_BATCH_SNIPPETS[wanted],
        at=setting,
    )
    return with_edits(answer)


_LARGE_BATCH_SNIPPETS = {
    "LARS": Snippet(
        "use LARS for such batches (timm.optim.Lars)",
        "optimizer = timm.optim.Lars(model.parameters(), lr=LEARNING_RATE, momentum=0.9)",
    ),
    "LAMB": Snippet(
        "use LAMB for such batches (timm.optim.Lamb, or DeepSpeed's Lamb)",
        "optimizer = timm.optim.Lamb(model.parameters(), lr=LEARNING_RATE)",
    ),
}


@of_training(alone=True)
def _curriculum(run: Run) -> Judgement:
    if run.deepspeed is not None:
        for name in (
            "curriculum_learning.enabled",
            "data_efficiency.data_sampling.curriculum_learning.enabled",
        ):
            node = run.deepspeed.get(name)
            if node is not None and node.value is True:
                shown = Evidence(f"{name}=true", node.location)
                said = Text("DeepSpeed 课程学习", "DeepSpeed's curriculum learning")
                return Judgement(Status.ENABLED, evidence=(shown,), current=said)
    warmup = first_call(run, ".SeqLengthWarmup")
    if warmup is not None:
        return seen(warmup)
    if not is_text(run) or decodes_images(run):
        return cannot_apply(Text("样本不是纯文本序列", "the samples are no sequences of text"))
    if algorithm(run) in ROLLOUT:
        return cannot_apply(
            Text("序列长度由生成决定", "the model decides itself how long its samples are")
        )
    return off(Text("未使用课程学习（可选）", "no curriculum (optional)"))


# --- GPU607: fused preference losses ---


@of_training(alone=True)
def _alignment(run: Run) -> Judgement:
    how = algorithm(run)
    fused = imports(run, "liger_kernel.chunked_loss")
    if fused is not None:
        shown = Evidence(f"import {fused.dotted}", fused.location)
        said = Text("使用 Liger 融合损失", "uses Liger's fused losses")
        return Judgement(Status.ENABLED, evidence=(shown,), current=said)
    if how is None:
        trains_encoder = run.model.kind == "encoder"
        apart = trains_encoder or not is_text(run) or decodes_images(run)
        if apart or run.value("pretokenized") is True:
            return cannot_apply(Text("非对齐训练", "no preference is learnt"))
        return cannot_tell(Text("训练阶段未知", "the training stage is not known"))
    if how not in (*PREFERENCE, "gkd"):
        return cannot_apply(Text(f"{how} 训练", f"{how} training"))
    switch = _fused_loss_switch(run, how)
    if switch is None:
        return cannot_apply(
            Text("该框架没有融合的对齐损失", "the framework has no fused loss for it")
        )
    setting = parameter(run, switch, default=False)
    if not setting.known:
        return cannot_tell(setting)
    return on(setting) if is_on(setting) else _unfused(run, how, setting)


def _fused_loss_switch(run: Run, how: str) -> Optional[str]:
    """The parameter that turns Liger's chunked loss on, where the trainer has one.

    TRL's DPO and KTO trainers had it until 1.14, first under a name of its own; ms-swift's
    GKD trainer takes Liger's divergence.
    """
    if run.framework == "swift":
        return "use_liger_kernel" if how == "gkd" and not is_megatron(run) else None
    version = version_at_hand(run, "trl")
    if run.framework != "hf_trainer" or how not in ("dpo", "kto") or version >= (1, 15):
        return None
    return "use_liger_kernel" if version >= (1,) else "use_liger_loss"


# The fused losses refuse a reference computed ahead, another loss beside, and parts of logits.
_REFUSED_BY_FUSED_LOSS = (
    "precompute_ref_log_probs",
    "sft_alpha",
    "gkd_logits_topk",
    "teacher_model_server",
)


def _unfused(run: Run, how: str, setting: Setting) -> Judgement:
    refused = find(run, *_REFUSED_BY_FUSED_LOSS)
    if liger_supports(run) is not True or not is_cuda(run) or refused is not None:
        return off(Text(f"{how} 损失未融合（可选）", f"the {how} loss is not fused (optional)"))
    return advise(
        run,
        f"the {how} loss holds the full logits of {_whose_logits(how)} (pip install liger-kernel)",
        Text(f"{how} 损失未融合", f"the {how} loss is not fused"),
        Text(
            "使用 Liger 分块损失，不产生完整 logits",
            "use Liger's chunked loss, which never holds all logits",
        ),
        parameters={setting.name: True},
        at=setting,
    )


def _whose_logits(how: str) -> str:
    if how == "gkd":
        return "student and teacher"
    return "chosen and rejected answers under two models"


CHECKS: tuple[Check, ...] = (
    Check(
        "GPU601",
        "lr-schedule",
        Text("学习率调度", "Learning-rate schedule"),
        Priority.LOW,
        by_framework(_schedule, flow_factory=flow.schedule),
        why="A learning rate that starts at its full value disturbs the first updates; one "
        "that decays reaches the same loss in fewer steps.",
        fix="Warm up over 3 to 10 % of the steps, then decay by cosine or linearly.",
        ignore="The rate is constant on purpose.",
        items=(
            Item("general", "G", "lr-schedule", 2),
            Item("videox-fun", "H", "lr-scheduler", 1.5),
            Item("flow-factory", "J", "lr-scheduler", 0.5),
        ),
        impact=Impact(
            throughput=(0, 0),
            note=Text("收敛更稳定，不影响吞吐", "steadier convergence, the same throughput"),
            source=_WARMUP,
        ),
        examples=(
            Example(
                "swift",
                "train.sh",
                script(*OF_72B, "lora", ""),
                script(*OF_72B, "lora", WARM),
            ),
        ),
        sources=(_WARMUP,),
    ),
    Check(
        "GPU602",
        "large-batch-optimizer",
        Text("大 batch 优化器", "Optimizer for very large batches"),
        Priority.LOW,
        _large_batch,
        why="Adam and SGD lose accuracy at batches of many thousands of samples.",
        fix="Use LAMB or LARS for global batches above 8192 samples.",
        items=(Item("general", "G", "large-batch-optimizer", 0.5),),
        impact=Impact(source="LAMB (You et al., 2019), arXiv:1904.00962"),
        difficulty="medium",
        sources=("LAMB (You et al., 2019), arXiv:1904.00962",),
    ),
    Check(
        "GPU603",
        "curriculum",
        Text("课程学习", "Curriculum"),
        Priority.LOW,
        _curriculum,
        why="Short sequences first make early steps cheaper.",
        fix="Use DeepSpeed's curriculum_learning section.",
        items=(Item("general", "G", "curriculum", 0.5),),
        impact=Impact(source="https://www.deepspeed.ai/tutorials/curriculum-learning/"),
        difficulty="medium",
        sources=("https://www.deepspeed.ai/tutorials/curriculum-learning/",),
    ),
    Check(
        "GPU607",
        "alignment-loss",
        Text("对齐训练 Loss 优化", "Fused alignment loss"),
        Priority.MEDIUM,
        _alignment,
        why="Preference losses need log-probabilities of chosen and rejected answers under two "
        "models; full logits of each are the peak of memory.",
        fix="Use Liger's chunked losses, which never hold all logits.",
        items=(Item("general", "G", "alignment-loss", 1),),
        impact=Impact(
            memory=(-80, -10),
            note=Text("上限为官方数据", "the upper end is the makers' own figure"),
            source=_LIGER,
        ),
        examples=(
            Example(
                "swift",
                "gkd.sh",
                DISTILL.replace("{liger}", ""),
                DISTILL.replace("{liger}", "    --use_liger_kernel true \\\n"),
            ),
        ),
        sources=(
            _LIGER,
            "trl 0.22.2 to 1.16.0, dpo_trainer.py and kto_trainer.py",
            "ms-swift 4.6.0, rlhf_trainers/gkd_trainer.py",
        ),
    ),
)
