"""GPU604 to GPU606: what is trained: adapters, a quantized base, frozen layers."""

from __future__ import annotations

import re
from typing import Any, Optional

from flake8_gpu_training.checks import _flow as flow
from flake8_gpu_training.checks import _videox_shared as videox
from flake8_gpu_training.checks._by_framework import by_framework
from flake8_gpu_training.checks._judging import (
    Snippet,
    advise,
    cannot_apply,
    cannot_tell,
    excluding,
    of_training,
    off,
    on,
    seen,
)
from flake8_gpu_training.checks._llamafactory import NO_WAY, OLDER, TRAINS_ALL, takes_tuning
from flake8_gpu_training.checks._mistaken import IGNORED
from flake8_gpu_training.checks._programs import calls, first_call, imports
from flake8_gpu_training.checks._scale import (
    GIB,
    gpu_said,
    gpus,
    has_fp8,
    memory_gib,
    number,
    text,
)
from flake8_gpu_training.checks._settings import (
    adapter_parameter,
    is_on,
    parameter,
)
from flake8_gpu_training.checks._strategy_examples import OF_32B, OF_72B, WARM, script
from flake8_gpu_training.checks._swift import MEGATRON, of_megatron
from flake8_gpu_training.checks.base import (
    Check,
    Example,
    Impact,
    Item,
    Judgement,
    Priority,
)
from flake8_gpu_training.facts import Call, Setting, Unknown
from flake8_gpu_training.frameworks.at_hand import at_hand
from flake8_gpu_training.frameworks.llamafactory import (
    is_unreleased,
    release_of,
    unknown_quantizer,
)
from flake8_gpu_training.frameworks.llamafactory_v1 import is_v1
from flake8_gpu_training.frameworks.megatron import is_megatron_lm
from flake8_gpu_training.frameworks.reading import find, parsed
from flake8_gpu_training.language import Text
from flake8_gpu_training.memory import model_states
from flake8_gpu_training.runs.model import Run

_SWIFT_TUNER = "ms-swift 4.6.0, arguments/tuner_args.py"
_SWIFT_QUANT = "ms-swift 4.6.0, arguments/base_args/quant_args.py"
_LORA = "LoRA (Hu et al., 2021), arXiv:2106.09685"
_QLORA = "QLoRA (Dettmers et al., 2023), arXiv:2305.14314"


# --- GPU604: adapters where all weights do not fit ---

_ADAPTERS = (
    "lora",
    "qlora",
    "dora",
    "longlora",
    "oft",
    "boft",
    "vera",
    "adapter",
    "bone",
    "reft",
    "fourierft",
    "lora_llm",
)


@of_training()
def adapters(run: Run) -> Judgement:
    """Whether adapters are trained, and whether all weights are too many for the GPUs."""
    answer = _tuned(run)
    if run.framework == "llamafactory":
        return _of_llamafactory(run, answer)
    if of_megatron(run):
        return excluding(answer, MEGATRON, "adalora", "lisa")
    if run.framework == "swift" and text(run, "tuning") not in ("full", None):
        return excluding(answer, _OF_FULL, "lisa")
    return answer


def _of_llamafactory(run: Run, answer: Judgement) -> Judgement:
    if run.value("megatron") is True and not is_unreleased(run):
        return excluding(answer, TRAINS_ALL, "lora", "oft")
    if takes_tuning(run, "oft"):
        return answer
    return excluding(answer, NO_WAY if is_v1(run) else OLDER, "oft")


_OF_FULL = Text("LISA 只用于全参训练", "LISA is for full tuning")


def _tuned(run: Run) -> Judgement:
    setting = run.practice("tuning")
    lisa = parameter(run, "lisa_activated_layers", default=0)
    if run.framework == "swift" and is_on(lisa):
        return on(lisa, "lisa")
    if not setting.known or not isinstance(setting.value, str):
        return _adapters_by_hand(run, setting)
    name = setting.value.lower()
    if name == "adalora":
        return on(setting, "adalora")
    if name in _ADAPTERS:
        return on(setting, "oft" if name == "oft" else "lora")
    if name != "full":
        return off(Text(f"微调方式 {name}", f"tuning is {name}"), setting)
    if from_scratch(run):
        return cannot_apply(_SCRATCH)
    return _full(run, setting)


def _adapters_by_hand(run: Run, setting: Setting) -> Judgement:
    configured = first_call(run, "peft.LoraConfig")
    call = configured or first_call(run, "peft.get_peft_model")
    if call is not None and call.conditions and run.framework == "hf_trainer":
        return cannot_tell(setting)
    if call is not None:
        other = configured is None and _of_other_adapters(run)
        return seen(call, "peft" if other else "lora")
    if from_scratch(run):
        return cannot_apply(_SCRATCH)
    return off(_NONE_IN_SIGHT) if freezes_alone(run) else cannot_tell(setting)


_NONE_IN_SIGHT = Text("没有适配器，只冻结了一部分", "no adapters: a part of the model is frozen")


def freezes_alone(run: Run) -> bool:
    """Whether all that is open of a Trainer's tuning is how much its program freezes."""
    value = run.practice("tuning").value
    is_frozen = isinstance(value, Unknown) and value.reason.endswith("is frozen")
    return is_frozen and run.framework == "hf_trainer" and imports(run, "peft", "unsloth") is None


def _of_other_adapters(run: Run) -> bool:
    """Whether PEFT is configured in sight, and for adapters of another kind than LoRA."""
    return any(
        call.name.startswith("peft.") and call.method.endswith("Config")
        for program in run.python
        for call in program.calls
    )


_SCRATCH = Text("从头训练，没有可冻结的基座", "trained from scratch: no weights are there to keep")
_LOADS = ("from_pretrained", "load_state_dict", "load_model", "load_checkpoint")


def from_scratch(run: Run) -> bool:
    """Whether the program makes a model with fresh weights and loads none in sight."""
    if is_megatron_lm(run):
        return run.setting("finetune") is None and run.setting("pretrained_checkpoint") is None
    if run.is_open or not run.python:
        return False
    methods = {method for file in run.python for method in file.methods}
    if first_call(run, ".from_config") is not None:
        return not any(_loads_model(call) for call in calls(run, ".from_pretrained"))
    if run.framework != "generic" or not methods.isdisjoint(_LOADS):
        return False
    made = [c for c in calls(run, *_VISION) if c.name.startswith(("torchvision.models.", "timm."))]
    return bool(made) and not any(_is_pretrained(call) for call in made)


_VISION = tuple(
    f".{name}"
    for name in (
        "create_model",
        *(f"resnet{n}" for n in (18, 34, 50, 101, 152)),
        *(f"vit_{size}_{patch}" for size in "blh" for patch in (14, 16, 32)),
        *(f"efficientnet_b{n}" for n in range(8)),
        *(f"convnext_{size}" for size in ("tiny", "small", "base", "large")),
        *(f"swin_{size}" for size in "tsb"),
        "vgg16",
        "mobilenet_v2",
        "mobilenet_v3_large",
        "wide_resnet50_2",
        "densenet121",
    )
)


def _is_pretrained(call: Call) -> bool:
    """Whether weights are loaded, or may be: an argument that is not known."""
    if call.is_open:
        return True
    for name in ("weights", "pretrained", "checkpoint_path"):
        argument = call.keywords.get(name)
        if argument is not None and argument.value not in (None, False, ""):
            return True
    first = call.positional[0] if call.positional else None
    return call.method != "create_model" and first is not None and first.value not in (None, False)


def _loads_model(call: Call) -> bool:
    owner = call.name.split(".")[-2] if "." in call.name else ""
    return "Model" in owner or owner.endswith(("LM", "Classification"))


_OPTIONAL_IN_SWIFT = Text(
    "全参训练（LoRA、LISA 可选）", "all weights are trained (LoRA and LISA are optional)"
)


def _full(run: Run, setting: Setting) -> Judgement:
    """Full tuning: adapters only where even sharding over all GPUs leaves no room."""
    count, memory, parameters = gpus(run), memory_gib(run), run.model.parameters
    optional = Text("全参训练（LoRA 可选）", "all weights are trained (LoRA is optional)")
    if run.framework == "swift" and not of_megatron(run):
        optional = _OPTIONAL_IN_SWIFT
    if run.framework == "flow_factory":  # trains what target_modules names, not all weights
        optional = Text("全参微调（LoRA 可选）", "full tuning (LoRA is optional)")
    if count is None or memory is None or parameters is None:
        return off(optional, setting)
    if run.value("offload_optimizer") in ("cpu", "nvme") or _is_lean(run):
        return off(optional, setting)
    states = model_states(parameters, count, 3)
    if states < memory:
        return off(optional, setting)
    return advise(
        run,
        f"full tuning needs {states:.0f} GiB per GPU for model states even with ZeRO-3 on "
        f"{count} x {memory:g} GiB",
        Text(
            f"全参训练，模型状态每卡约 {states:.0f} GiB，超过显存 {memory:g} GiB",
            f"model states take {states:.0f} GiB per GPU of {memory:g} GiB",
        ),
        Text("改用 LoRA，只训练适配器", "train LoRA adapters only"),
        practices={"tuning": "lora"},
        snippet=_LORA_BY_HAND,
        variant="lora",
        at=setting,
    )


_LORA_BY_HAND = Snippet(
    "train adapters: model = get_peft_model(model, LoraConfig(r=16))",
    "from peft import LoraConfig, get_peft_model\n\n"
    'config = LoraConfig(r=16, lora_alpha=32, target_modules="all-linear", task_type="CAUSAL_LM")\n'
    "model = get_peft_model(model, config)",
)


def _is_lean(run: Run) -> bool:
    """An optimizer or precision with far fewer bytes per parameter than mixed Adam."""
    name = text(run, "optimizer") or ""
    lean = ("galore", "badam", "apollo", "8bit", "4bit", "adafactor", "lomo", "muon", "sgd")
    return run.value("precision") == "pure-bf16" or any(word in name for word in lean)


# --- GPU605: a quantized base model ---


@of_training()
def _quantized(run: Run) -> Judgement:
    if of_megatron(run):
        return cannot_apply(Text("Megatron 后端不量化基座", "Megatron trains unquantized weights"))
    answer = _base(run)
    started = _start_refuses(run)
    if started is not None:
        answer = excluding(answer, *started)
    if text(run, "tuning") in _OF_PLAIN_LINEARS:
        name = _OF_PLAIN_LINEARS[str(run.value("tuning"))]
        why = Text(
            f"PEFT 的 {name} 不接受 HQQ、EETQ 权重", f"PEFT's {name} takes no HQQ or EETQ weights"
        )
        answer = excluding(answer, why, "hqq", "eetq")
    if has_fp8(run) is False:
        said = gpu_said(run)
        why = Text(f"{said.zh} 不支持 FP8", f"{said.en} has no FP8 cores")
        answer = excluding(answer, why, "fp8")
    return answer


# peft 0.21.0, tuners/lora/layer.py: pissa_init and corda_init take floating-point weights alone,
# olora_init those of bitsandbytes too.
_QUANTIZERS = ("bnb", "bnb-8bit", "hqq", "eetq", "fp8")
_STARTS = (("pissa", _QUANTIZERS), ("corda", _QUANTIZERS), ("olora", _QUANTIZERS[2:]))


def _start_refuses(run: Run) -> Optional[tuple[Any, ...]]:
    """Why the adapters' initialization takes no weights of some quantizers, and of which."""
    start = adapter_parameter(run, "init_weights", "init_lora_weights")
    name = str(start.value).lower() if start.known else ""
    for begins, methods in _STARTS:
        if name.startswith(begins):
            why = f"{begins} 初始化不支持量化权重", f"{begins} starts from unquantized weights"
            return (Text(*why), *methods)
    return None


def _base(run: Run) -> Judgement:
    method = run.practice("quantization_method")
    if not method.known:
        trains_all = run.framework != "hf_trainer" and text(run, "tuning") == "full"
        return cannot_apply(_UNQUANTIZED) if trains_all else cannot_tell(method)
    asked = run.setting("quantization_bit") if run.framework == "llamafactory" else None
    unknown = unknown_quantizer(run) if asked is not None and is_on(asked) else None
    if unknown is not None:
        return _of_no_name(run, unknown)
    name = str(method.value).lower()
    if name not in ("none", ""):
        return on(method, "bnb-8bit" if name == "bnb" and _bits(run) == 8 else name)
    kept = _needs_weights(run)
    if kept is not None:
        return kept
    checkpoint = run.practice("model")
    named = _QUANTIZED_CHECKPOINT.search(str(checkpoint.value)) if checkpoint.known else None
    if named is not None and run.framework in ("llamafactory", "hf_trainer"):
        return on(checkpoint, named.group().lower())
    if named is not None and run.framework == "swift":
        kind = named.group()
        return cannot_apply(
            Text(f"基座已是 {kind} 量化", f"the base is quantized already ({kind})")
        )
    bits = run.setting("quant_bits")
    if run.framework == "swift" and bits is not None and is_on(bits):
        return _without_method(run, bits)
    return _unquantized(run)


# peft 0.17.1 and 0.21.0, tuners/*/model.py, _create_new_module: what is neither a torch.nn.Linear,
# as the layers of bitsandbytes and FP8 are, nor one of GPTQ ends in an error.
_OF_PLAIN_LINEARS = {
    "adalora": "AdaLoRA",
    "ia3": "IA3",
    "fourierft": "FourierFT",
    "bone": "Bone",
}


def _needs_weights(run: Run) -> Optional[Judgement]:
    """Why what is trained leaves no frozen weights to quantize, or None where it does."""
    tuning = text(run, "tuning")
    if tuning in _ADAPTERS or tuning in _OF_PLAIN_LINEARS:
        return None
    if run.framework == "swift" and tuning == "llamapro":  # tuners/llamapro.py, 4.6.0
        return cannot_apply(
            Text("LLaMA-Pro 训练复制出的整层", "LLaMA-Pro trains copies of whole layers")
        )
    if run.framework == "swift" and tuning != "full":
        own = Text(f"微调方式 {tuning}", f"tuning is {tuning}")
        return cannot_tell(run.practice("tuning") if tuning is None else own)
    if tuning == "freeze":
        return cannot_apply(
            Text(
                "冻结微调训练部分基座权重，不量化", "freeze tuning trains weights of the base model"
            )
        )
    if tuning is None and run.framework == "hf_trainer":
        told = run.practice("tuning").value
        candidates = told.candidates if isinstance(told, Unknown) else ()
        trains_base = bool(candidates) and set(candidates) <= {"full", "freeze"}
        return cannot_apply(_TRAINED) if trains_base else off(_PLAIN)
    return cannot_apply(_UNQUANTIZED)


_TRAINED = Text(
    "训练的是基座权重本身，不量化", "weights of the model itself are trained: they stay whole"
)
_PLAIN = Text("权重未量化", "the weights are not quantized")
_UNQUANTIZED = Text("全参训练不量化权重", "full tuning needs unquantized weights")


def _without_method(run: Run, bits: Setting) -> Judgement:
    """ms-swift quantizes nothing unless ``quant_method`` says how (quant_args.py)."""
    return advise(
        run,
        f"quant_bits={bits.value} alone quantizes nothing",
        Text(
            f"只写了 quant_bits={bits.value}，未生效",
            f"quant_bits={bits.value} has no effect alone",
        ),
        Text("补上 quant_method: bnb", "write quant_method bnb beside it"),
        parameters={"quant_method": "bnb"},
        variant="bnb",
        at=bits,
    )


def _of_no_name(run: Run, method: Setting) -> Judgement:
    """LLaMA-Factory calls bitsandbytes bnb since 0.9.3, and quantizes nothing by other names."""
    release, state = release_of(run), at_hand(run, "llamafactory")
    meant = "bitsandbytes" if parsed(release) < (0, 9, 3) else "bnb"
    told = f"llamafactory {release}"
    is_pinned = state is None or state.pinned
    newest = "" if is_pinned else ", the newest that can be installed here,"
    unpinned = Impact(
        note=Text(
            f"项目未固定版本：{told} 不量化，显存按 16 位基座占用；请先确认实际安装的版本",
            f"no release is pinned: {told} loads the base in 16 bits, so check which one is "
            "installed",
        )
    )
    return advise(
        run,
        f"{told}{newest} knows no quantization_method={method.value} and quantizes nothing",
        Text(
            f"{told} 没有 quantization_method={method.value}，不报错也不量化",
            f"{told} has no quantization_method={method.value} and, without a word, quantizes "
            "nothing",
        ),
        Text(f"quantization_method 改为 {meant}", f"write quantization_method: {meant}"),
        parameters={"quantization_method": meant},
        variant="bnb",
        at=method,
        impact=IGNORED if is_pinned else unpinned,
    )


_QUANTIZED_CHECKPOINT = re.compile(r"(?i)awq|gptq|aqlm|bnb|hqq|int4|int8")


def _bits(run: Run) -> Optional[float]:
    return number(run, "quantization_bits")


def _unquantized(run: Run) -> Judgement:
    memory, parameters = memory_gib(run), run.model.parameters
    optional = Text("基座未量化（可选）", "the base weights are not quantized (optional)")
    if memory is None or parameters is None or "bnb" in (_start_refuses(run) or ()):
        return off(optional)
    # Over several GPUs the weights are split first (ZeRO-3): quantizing is for the rest.
    weights = 2 * parameters / GIB / max(_weight_shards(run), gpus(run) or 1)
    if weights < memory:
        return off(optional)
    return advise(
        run,
        f"16-bit weights take {weights:.0f} GiB of a {memory:g} GiB GPU",
        Text(
            f"16 位权重每卡 {weights:.0f} GiB，超过显存 {memory:g} GiB",
            f"16-bit weights take {weights:.0f} GiB per GPU of {memory:g} GiB",
        ),
        Text("QLoRA：4 位量化基座", "QLoRA: keep the base weights in 4 bits"),
        practices={"quantization_method": "bnb", "quantization_bits": 4},
        snippet=_NF4 if run.framework == "hf_trainer" else None,
        variant="bnb",
    )


_NF4 = Snippet(
    "load the model with a BitsAndBytesConfig of 4 bits",
    "quantization_config=BitsAndBytesConfig(\n"
    '    load_in_4bit=True, bnb_4bit_quant_type="nf4", bnb_4bit_use_double_quant=True,\n'
    "    bnb_4bit_compute_dtype=torch.bfloat16,\n)",
)


def _weight_shards(run: Run) -> int:
    """Over how many GPUs one copy of the weights is spread, at most."""
    if run.value("zero_stage") == 3 or run.value("fsdp", "none") != "none":
        return gpus(run) or 10**6
    if run.value("device_map", "none") not in ("none", None):
        return gpus(run) or 10**6
    tensor, pipeline = number(run, "tensor_parallel"), number(run, "pipeline_parallel")
    return int((tensor or 1) * (pipeline or 1))


# --- GPU606: frozen layers ---

_FREEZES = (
    "freeze_parameters",
    "freeze_parameters_regex",
    "freeze_parameters_ratio",
    "freeze_trainable_layers",
    "freeze_llm",
    "freeze_layers",
)


@of_training(alone=True)
def _freezing(run: Run) -> Judgement:
    setting = find(run, *_FREEZES)
    if setting is not None and is_on(setting):
        return on(setting)
    call = first_call(run, ".requires_grad_")
    argument = call.positional[0] if call is not None and call.positional else None
    if call is not None and argument is not None and argument.value is False:
        return seen(call)
    for program in run.python:
        for attribute in program.attributes:
            if attribute.name.endswith(".requires_grad") and attribute.value is False:
                return on(attribute)
    if text(run, "tuning") in (*_ADAPTERS, *_OF_PLAIN_LINEARS):
        return cannot_apply(
            Text("适配器训练已冻结基座", "adapters leave the base model frozen already")
        )
    if from_scratch(run):
        return cannot_apply(_SCRATCH)
    if run.framework == "flow_factory":  # full tuning thaws the layers of target_modules alone
        modules = flow.option(run, "model.target_modules", "all")
        if not modules.known:
            return cannot_tell(modules)
        if modules.value != "all":
            return on(modules)
    return off(Text("未冻结层（可选）", "no layers are frozen (optional)"))


_H = "transformers"


def _item(
    category: str, identifier: str, points: float = 1, group: str = "", variant: str = ""
) -> Item:
    return Item("swift", category, identifier, points, group, variant)


CHECKS: tuple[Check, ...] = (
    Check(
        "GPU604",
        "adapters",
        Text("参数高效微调", "Parameter-efficient tuning"),
        Priority.HIGH,
        adapters,
        why="Full tuning with Adam holds 16 bytes per parameter; adapters leave the base "
        "model frozen and hold states for about 1 % of it.",
        fix="Train LoRA adapters, or add GPUs or offload.",
        ignore="All weights must change, and offloading makes them fit.",
        items=(
            Item("general", "G", "lora-qlora", 2, "peft"),
            _item("A", "lora", 3, "tuner", "lora"),
            _item("A", "adalora", 3, "tuner", "adalora"),
            _item("A", "lisa", 3, "tuner", "lisa"),
            Item("llamafactory", "A", "lora", 3, "tuner", "lora"),
            Item("llamafactory", "A", "oft", 3, "tuner", "oft"),
            Item(_H, "C", "lora", 3, "", "lora|adalora"),
            Item("flow-factory", "C", "lora", 2, "", "lora"),
        ),
        impact=Impact(
            memory=(-87, -70),
            note=Text(
                "每参数 16 字节降到约 2 字节；GPT-3 实测 1.2 TB 降到 350 GB",
                "2 instead of 16 bytes per parameter; GPT-3 took 350 GB instead of 1.2 TB",
            ),
            source=_LORA,
        ),
        examples=(
            Example(
                "swift",
                "train.sh",
                script(*OF_72B, "full", WARM),
                script(*OF_72B, "lora", WARM),
            ),
        ),
        sources=(_LORA, _SWIFT_TUNER),
    ),
    Check(
        "GPU605",
        "quantized-base",
        Text("量化基座（QLoRA）", "Quantized base model (QLoRA)"),
        Priority.HIGH,
        by_framework(_quantized, videox_fun=videox.four_bits, flow_factory=flow.four_bits),
        why="Frozen 16-bit weights take 2 bytes per parameter on every GPU; in 4 bits a quarter.",
        fix="Load the base model in 4 bits (NF4, double quantization).",
        ignore="The weights fit: 4-bit training is slower.",
        items=(
            _item("A", "qlora-bnb", 3, "quantized", "bnb|bnb-8bit"),
            _item("A", "qlora-hqq", 3, "quantized", "hqq"),
            _item("A", "qlora-eetq", 3, "quantized", "eetq"),
            _item("A", "fp8-quantization", 3, "quantized", "fp8"),
            Item("llamafactory", "A", "qlora", 3),
            Item(_H, "C", "qlora-4bit", 4, "quantized", "bnb"),
            Item(_H, "C", "qlora-8bit", 4, "quantized", "bnb-8bit"),
            Item(_H, "C", "gptq", 4, "quantized", "gptq"),
            Item(_H, "C", "awq", 4, "quantized", "awq"),
            Item(_H, "C", "torchao", 4, "quantized", "torchao"),
            Item(_H, "C", "fp8-quantization", 4, "quantized", "fp8"),
            Item("videox-fun", "I", "qlora-4bit", 1),
            Item("flow-factory", "J", "qlora", 1),
        ),
        impact=Impact(
            memory=(-75, -60),
            note=Text("权重 16 位降到 4 位", "weights of 4 bits instead of 16"),
            source=_QLORA,
        ),
        examples=(
            Example(
                "swift",
                "train.sh",
                script(*OF_32B, "lora", WARM).replace("    --deepspeed zero3 \\\n", ""),
                script(*OF_32B, "lora", f"{WARM} --quant_method bnb --quant_bits 4").replace(
                    "    --deepspeed zero3 \\\n", ""
                ),
            ),
        ),
        sources=(_QLORA, _SWIFT_QUANT),
    ),
    Check(
        "GPU606",
        "layer-freezing",
        Text("层冻结", "Frozen layers"),
        Priority.LOW,
        _freezing,
        why="Frozen layers need neither gradients nor optimizer states.",
        fix="Set requires_grad_(False) on layers that need no training.",
        items=(Item("general", "G", "layer-freezing", 2, "peft"),),
        impact=Impact(source="https://pytorch.org/docs/stable/notes/autograd.html"),
        sources=("https://pytorch.org/docs/stable/notes/autograd.html",),
    ),
)
