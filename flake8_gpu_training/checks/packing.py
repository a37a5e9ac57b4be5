"""GPU507, GPU513: short samples share a sequence, or are padded no further than needed."""

from __future__ import annotations

import re
from typing import Any, Optional

from flake8_gpu_training.checks._data_examples import LLAMAFACTORY, swift_lacks, trainer_lacks
from flake8_gpu_training.checks._impacts import by_class
from flake8_gpu_training.checks._judging import (
    Snippet,
    advise,
    cannot_apply,
    cannot_tell,
    excluding,
    no_mistake,
    of_training,
    off,
    on,
    seen,
)
from flake8_gpu_training.checks._programs import (
    calls,
    decoder_loads,
    decoder_loads_vision,
    first_call,
    imports,
    predicts_tokens,
    says,
)
from flake8_gpu_training.checks._samples import decodes_images, held_in_memory, tokenizer_calls
from flake8_gpu_training.checks._scale import (
    has_no_flash_code,
    is_cuda,
    is_recurrent,
    is_test_file,
    number,
    text,
)
from flake8_gpu_training.checks._settings import (
    ROLLOUT,
    algorithm,
    has,
    is_on,
    is_text,
    may_use_flash_attention,
    parameter,
)
from flake8_gpu_training.checks._swift import of_megatron
from flake8_gpu_training.checks.base import (
    Check,
    Evidence,
    Example,
    Finding,
    Impact,
    Item,
    Judgement,
    Priority,
    Status,
)
from flake8_gpu_training.facts import Call, Setting
from flake8_gpu_training.frameworks.reading import version_of
from flake8_gpu_training.frameworks.transformers import configuration_class
from flake8_gpu_training.language import Text
from flake8_gpu_training.runs.model import Run

_DYNAMIC = "https://huggingface.co/docs/transformers/pad_truncation"
_PACKING = "https://huggingface.co/blog/packing-with-FA2"


# --- GPU507: packing and padding-free batches ---

_FLASH = ("flash_attention_2", "flash_attention_3", "flash_attention_4")


@of_training(alone=True)
def _packing(run: Run) -> Judgement:
    answer = _packed(run)
    if run.framework == "llamafactory" and algorithm(run) == "pt":
        return excluding(answer, _NEAT_IS_SFT, "padding_free")
    return answer


def _packed(run: Run) -> Judgement:
    names = ("packing", "padding_free")
    # LlamaFactory's neat_packing implies packing; elsewhere packing implies what it needs.
    for variant in reversed(names) if run.framework == "llamafactory" else names:
        if run.value(variant) is True:
            return on(run.practice(variant), variant)
    if not has(run, "packing"):
        return _packing_by_hand(run)
    setting = run.practice("packing")
    if not setting.known:
        return cannot_tell(setting)
    return _unpacked(run, setting)


def _packing_by_hand(run: Run) -> Judgement:
    packed = _packed_by_code(run)
    if packed is not None:
        return seen(packed)
    if algorithm(run) in ROLLOUT:
        return cannot_apply(
            Text("样本在训练中生成，长度由生成决定", "samples are generated while it trains")
        )
    if held_in_memory(run) or not is_text(run) or decodes_images(run):
        return cannot_apply(Text("非变长文本数据", "the data are no text of varying length"))
    if not predicts_tokens(run) or _classifies(run):
        return cannot_apply(Text("非生成任务", "the model does not predict the next token"))
    padding = _padding_collator(run)
    if padding is not None:
        return _flatten(run, padding)
    return cannot_tell(Text("样本如何组批无法静态得知", "how samples form batches is not known"))


def _padding_collator(run: Run) -> Optional[Call]:
    """The collator that pads samples of a decoder whose kernel could do without padding."""
    if run.framework != "hf_trainer" or text(run, "attention") not in _FLASH:
        return None
    if (number(run, "micro_batch_size") or 1) <= 1 or run.value("group_by_length") is True:
        return None
    if _packing_obstacle(run) is not None or version_of(run, "transformers") < (4, 44):
        return None
    loads = [call.name.rpartition(".")[0] for call in decoder_loads(run)]
    if not loads or not all(name.endswith("ForCausalLM") for name in loads):
        return None
    return first_call(run, "transformers.DataCollatorForSeq2Seq")


def _flatten(run: Run, collator: Call) -> Judgement:
    return advise(
        run,
        "the batch is then one long row without padding, whose samples FlashAttention keeps apart",
        Text("样本填充到同批最长", "samples are padded to the longest of their batch"),
        Text(
            "改用 DataCollatorWithFlattening（无填充）",
            "use DataCollatorWithFlattening: no padding",
        ),
        snippet=Snippet(
            "collate with DataCollatorWithFlattening",
            "from transformers import DataCollatorWithFlattening\n\n"
            "data_collator = DataCollatorWithFlattening(return_flash_attn_kwargs=True)",
        ),
        variant="packing",
        at=Setting("data_collator", collator.method, collator.location),
    )


def _packed_by_code(run: Run) -> Optional[Call]:
    """The collator, the dataset or the function that fills whole sequences."""
    packed = first_call(
        run, ".ConstantLengthDataset", ".DataCollatorWithFlattening", ".pack_dataset"
    )
    if packed is not None:
        return packed
    for call in calls(run, ".map"):
        given = call.positional[0].text if call.positional else ""
        if _GROUPS.search(given):
            return call
    # Sequences are cut from one long row of tokens: nothing is padded.
    mapped = first_call(run, "numpy.memmap")
    return mapped if mapped is not None and is_text(run) else None


_GROUPS = re.compile(r"(?i)(?:group|concat|chunk|pack)\w*(?:text|sample|sequence|token)")


def _classifies(run: Run) -> bool:
    """Whether the program loads a model with another head, or an encoder."""
    return run.model.kind in ("encoder", "embedding", "vision")


def _unpacked(run: Run, setting: Setting) -> Judgement:
    task = parameter(run, "task_type", default="causal_lm")
    if task.known and str(task.value).lower() != "causal_lm":
        return cannot_apply(Text(f"任务类型 {task.value}", f"task type {task.value}"))
    how = algorithm(run)
    if how is None:
        return cannot_tell(Text("训练阶段未知", "the training stage is not known"))
    if how == "rm":
        return cannot_apply(Text("奖励模型训练", "a reward model scores whole answers"))
    if run.framework == "swift" and how in _UNPACKED_ALGORITHMS:
        return cannot_apply(Text(f"{how} 不支持打包", f"{how} does not go with packing"))
    if run.framework == "swift" and not packs(run):
        return cannot_apply(
            Text("该模型的对话模板不支持打包", "the model's template does not go with packing")
        )
    if run.framework == "llamafactory" and how in _OF_ANSWERS:
        return cannot_apply(
            Text("仅用于预训练与 SFT", "for pre-training and supervised tuning only")
        )
    if how not in ("pt", "sft") and not _flattens_pairs(run):
        return off(Text(f"{how} 训练中可选", f"optional in {how} training"), setting)
    if _classifies(run):
        return cannot_apply(Text("非生成任务", "the model does not predict the next token"))
    if run.model.kind == "unknown" and run.framework != "hf_trainer":
        return cannot_tell(Text("模型未知", "the model is not known"))
    flat = run.practice("padding_free")
    setting = flat if flat.explicit and not setting.explicit else setting
    obstacle = _packing_obstacle(run)
    if obstacle is not None:
        return off(obstacle, setting)
    if not is_text(run) or next(decoder_loads_vision(run), None) is not None:
        return off(Text("多模态训练中可选", "optional in multimodal training"), setting)
    if not may_use_flash_attention(run):
        return cannot_apply(Text("该加速卡没有 Flash Attention", "no flash attention on this card"))
    if not _takes_packing(run):
        return _packing_by_hand(run)
    return _flatten_pairs(run) if how == "dpo" else _pack(run, setting)


# Stages whose processors pack nothing (llamafactory 0.9.1 to 0.9.5, data/loader.py), and with
# which neat_packing is refused (hparams/parser.py).
_OF_ANSWERS = ("dpo", "kto", "ppo")
_NEAT_IS_SFT = Text("neat_packing 仅用于 SFT", "neat_packing is for supervised tuning only")
# ms-swift 3.12.6 and 4.6.0, arguments/rlhf_args.py, _check_padding_free.
_UNPACKED_ALGORITHMS = ("orpo", "simpo", "cpo", "ppo")


def _flattens_pairs(run: Run) -> bool:
    """Whether the trainer of preferences can do without padding (DPO's, read in 3.12.6)."""
    recent = version_of(run, "ms-swift") >= (3, 12)
    fused = run.value("liger_kernel") is True
    return run.framework == "swift" and algorithm(run) == "dpo" and recent and not fused


_PADDED_PAIRS = Text("偏好样本按批内最长者填充", "pairs are padded to the longest of their batch")
_PADDED_SAMPLES = Text("样本按批内最长者填充", "samples are padded to the longest of their batch")


def _flatten_pairs(run: Run) -> Judgement:
    padded = "the chosen and rejected answers of a batch are padded to the longest of them"
    return _flattened(run, _PADDED_PAIRS, padded)


def _flattened(run: Run, current: Text, padded: str) -> Judgement:
    """The advice for what ms-swift does not pack: pairs, and samples tokenised late."""
    wanted: dict[str, Any] = {"padding_free": True}
    if text(run, "attention") not in _FLASH:
        wanted["attention"] = "flash_attention_2"
    return advise(
        run,
        f"{padded}; flattened into one row they are not (needs a flash kernel, attn_impl)",
        current,
        Text(
            "启用 padding_free（需 Flash Attention），批次展平后没有填充",
            "turn on padding_free (needs flash attention): batches are flattened",
        ),
        practices=wanted,
        variant="padding_free",
        at=run.practice("padding_free"),
    )


# Models whose templates have no support_padding_free, by how their checkpoints are named: what
# is multimodal is refused with packing then (ms-swift 3.12.6 and 4.6.0, train/sft.py).
_UNPACKED_TEMPLATES = re.compile(
    r"(?i)got-ocr|glm-4v-9b|cogagent|cogvlm|janus|deepseek-(?:ocr|vl)|docowl|dots\.ocr|emu3|florence-2|"
    r"gemma-3-(?:4|12|27)b|gemma-3n|glm-edge-v|glm-ocr|hunyuanocr|idefics3|keye-vl|llama-?4-|"
    r"llama-3\.1-8b-omni|llama-3\.2.*vision|llava.*-hf|llava-v1\.6|llava-next|megrez-3b-omni|"
    r"minicpm-(?:v(?!-?4[._]6)|llama3-v)|minimax-(?:vl|m3)|mistral-small-3\.[12]|molmo|moss-vl|"
    r"mplug|ovis(?:1\.6|2-)|paligemma|phi-(?:3|3\.5)-vision|phi-4-multimodal|pixtral|"
    r"(?:^|/)qwen-(?:vl|audio)|sail-vl2|step3-vl|step-audio|unlimited-ocr|valley|xcomposer|yi-vl"
)


def packs(run: Run) -> bool:
    """Whether nothing is known that keeps ms-swift from packing the samples of the model."""
    return _UNPACKED_TEMPLATES.search(run.model.known_as) is None


_UNPACKED_TUNING = ("longlora", "reft")


def _packing_obstacle(run: Run) -> Optional[Text]:
    """Why packed samples would not be kept apart in this run."""
    if has_no_flash_code(run):
        return Text("该模型的代码没有 Flash Attention", "the model's code has no flash attention")
    if not is_cuda(run):
        return Text(
            "打包的收益仅在 CUDA 的 Flash Attention 上测得",
            "what packing brings was measured with CUDA's flash kernels alone",
        )
    if is_recurrent(run):
        return Text("含循环状态的模型不宜打包", "recurrent layers would mix packed samples")
    if text(run, "tuning") in _UNPACKED_TUNING:
        return Text("该微调方式不支持打包", "this tuning does not go with packing")
    if run.value("unsloth") is True or imports(run, "unsloth") is not None:
        return Text("Unsloth 自行组批", "Unsloth forms batches itself")
    if of_megatron(run) and run.value("group_by_length") is True:
        return Text("与 group_by_length 互斥", "not with group_by_length")
    if run.framework == "llamafactory" and run.value("megatron") is True:
        return Text("Megatron 后端的打包尚不完善", "its Megatron route does not yet pack reliably")
    if is_on(parameter(run, "use_kt", default=False)):
        return Text("KTransformers 后端不支持", "not with the KTransformers back end")
    return None


def _takes_packing(run: Run) -> bool:
    """Transformers' own arguments have no packing; TRL's SFTConfig has."""
    if run.framework != "hf_trainer":
        return True
    return configuration_class(run) == "SFTConfig"


def _pack(run: Run, setting: Setting) -> Judgement:
    wanted: dict[str, Any] = {"packing": True}
    needs = ""
    neat = run.framework == "llamafactory" and algorithm(run) != "pt"
    if run.framework == "swift" and is_on(parameter(run, "lazy_tokenize")):
        return _flattened(run, _PADDED_SAMPLES, "samples are padded to the longest of their batch")
    if of_megatron(run) and run.practice("padding_free").explicit:
        wanted["padding_free"] = True
    if run.framework == "swift" and text(run, "attention") not in _FLASH:
        wanted["attention"] = "flash_attention_2"
        needs = " (packing needs a flash kernel, attn_impl)"
    elif run.framework == "hf_trainer" and text(run, "attention") not in _FLASH:
        needs = " (load the model with a flash kernel, which keeps packed samples apart)"
    elif neat:
        wanted["padding_free"] = True
        needs = " (neat_packing keeps packed samples apart)"
    single = number(run, "micro_batch_size") == 1
    waste = (
        "a step computes one sample, however short"
        if single
        else "short samples are padded to the longest of their batch"
    )
    return advise(
        run,
        f"{waste}{needs}; a step then holds more samples",
        Text("样本未打包，短样本浪费算力", "samples are not packed")
        if single
        else Text("样本未打包，存在填充浪费", "samples are padded, not packed"),
        Text(
            "将多条短样本打包为定长序列（需 Flash Attention）；每步样本数随之增加，总步数减少，"
            "需复核学习率与步数",
            "pack short samples into full sequences (needs flash attention); a step then holds "
            "more samples and an epoch has fewer steps: check the learning rate and the steps",
        ),
        practices=wanted,
        variant="padding_free" if neat else "packing",
        at=setting,
        impact=by_class(Priority.MEDIUM, _PACKING) if single else None,
    )


# --- GPU513: padding to a fixed length ---

_LONG = 256


@of_training(alone=True)
def _fixed_length(run: Run) -> Judgement:
    if not is_text(run) or decodes_images(run) or not is_cuda(run):
        return no_mistake()
    if run.value("torch_compile") is True or first_call(run, "torch.compile") is not None:
        return no_mistake()  # each new shape is compiled anew
    found = [
        _padded(run, call)
        for file in run.python
        if not is_test_file(file.path)
        for call in tokenizer_calls(file)
        if _pads_to_maximum(call) and not _EVALUATES.search(call.scope)
    ]
    if not found:
        return no_mistake()
    padded = Text("所有样本填充到固定最大长度", "every sample is padded to the maximum length")
    return Judgement(
        Status.RECOMMENDED,
        evidence=tuple(Evidence(f.message.partition(":")[0], f.location, padded) for f in found),
        findings=tuple(found),
        current=padded,
        action=Text(
            "改为按 batch 动态填充（DataCollatorWithPadding / DataCollatorForSeq2Seq）",
            "pad each batch to its own longest sample (DataCollatorWithPadding, "
            "DataCollatorForSeq2Seq)",
        ),
    )


_EVALUATES = re.compile(r"(?i)eval|valid|test|infer|predict|generat")


def _pads_to_maximum(call: Call) -> bool:
    length = call.keywords.get("max_length")
    if not says(call, "padding", "max_length") or length is None:
        return False
    return isinstance(length.value, int) and length.value >= _LONG


def _padded(run: Run, call: Call) -> Finding:
    length = call.keywords["max_length"].value
    message = (
        f'pad in the collate function instead of padding="max_length": every sample takes '
        f"{length} tokens, however short, and padding is computed like text"
    )
    return Finding(call.keywords["padding"].location, message)


_PADDED = """\
from datasets import load_dataset
from transformers import (
    AutoModelForSequenceClassification,
    AutoTokenizer,
    DataCollatorWithPadding,
    Trainer,
    TrainingArguments,
)

tokenizer = AutoTokenizer.from_pretrained("roberta-large")
model = AutoModelForSequenceClassification.from_pretrained("roberta-large")


def tokenize(rows):
    return tokenizer(rows["text"], {arguments})


data = load_dataset("imdb", split="train").map(tokenize, batched=True, num_proc=8)
arguments = TrainingArguments(
    "output",
    bf16=True,
    dataloader_num_workers=4,
    dataloader_persistent_workers=True,
    warmup_steps=100,
)
Trainer(
    model=model,
    args=arguments,
    train_dataset=data,
    data_collator=DataCollatorWithPadding(tokenizer),
).train()
"""

CHECKS: tuple[Check, ...] = (
    Check(
        "GPU507",
        "packing",
        Text("序列打包", "Sequences are packed"),
        Priority.MEDIUM,
        _packing,
        why="Padding is computed like any other token. Packing fills each sequence with "
        "several samples, and a variable-length flash kernel keeps them apart.",
        fix="Set packing (or padding_free) together with a flash attention kernel.",
        ignore="Samples are about as long as max_length, or exact batch composition matters.",
        items=(
            Item("general", "F", "packing", 1),
            Item("swift", "H", "packing", 2, "packing", "packing"),
            Item("swift", "H", "padding-free", 2, "packing", "padding_free"),
            Item("llamafactory", "H", "packing", 2, "packing", "packing"),
            Item("llamafactory", "H", "neat-packing", 2, "packing", "padding_free"),
        ),
        impact=Impact(
            throughput=(40, 100),
            memory=(-20, -6),
            note=Text(
                "7B–8B 模型实测：FLAN 2 倍，OrcaMath 1.4 倍；长度差异越大收益越高",
                "measured at 7B to 8B: twice on FLAN, 1.4 times on OrcaMath; the more lengths vary",
            ),
            source=_PACKING,
        ),
        examples=(
            swift_lacks("packing true"),
            Example(
                "llamafactory",
                "train.yaml",
                LLAMAFACTORY.replace("packing: true\nneat_packing: true\n", ""),
                LLAMAFACTORY,
            ),
            trainer_lacks("packing=True"),
        ),
        sources=(_PACKING, "ms-swift 4.6.0, arguments/sft_args.py", "trl 1.16, sft_config.py"),
    ),
    Check(
        "GPU513",
        "dynamic-padding",
        Text("按 batch 动态填充", "Batches padded to their longest sample"),
        Priority.LOW,
        _fixed_length,
        why="A tokenizer that pads to max_length makes every sample as long as the longest "
        "allowed; the model computes the padding like any other token.",
        fix="Leave padding out where samples are tokenised, and let the collate function pad "
        "each batch (DataCollatorWithPadding, DataCollatorForSeq2Seq), to a multiple of 8.",
        ignore="Nearly all samples are as long as max_length, or shapes must be fixed (TPU, "
        "torch.compile, CUDA graphs).",
        impact=by_class(
            Priority.LOW,
            _DYNAMIC,
            Text("样本越短收益越高", "the shorter the samples, the more"),
        ),
        examples=(
            Example(
                "hf_trainer",
                "train.py",
                _PADDED.replace(
                    "{arguments}", 'padding="max_length", max_length=512, truncation=True'
                ),
                _PADDED.replace("{arguments}", "max_length=512, truncation=True"),
            ),
        ),
        sources=(_DYNAMIC,),
    ),
)
