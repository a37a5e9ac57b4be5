"""Practices that a program sets where it loads a model: from_pretrained, PEFT, quantizers."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Optional

from flake8_gpu_training.facts import Argument, Call, Condition, Origin, Setting, Unknown, known
from flake8_gpu_training.frameworks.at_hand import at_hand, version_at_hand
from flake8_gpu_training.frameworks.attention_defaults import (
    FIRST_CHOICE,
    default_attention,
)
from flake8_gpu_training.frameworks.frozen import frozen
from flake8_gpu_training.frameworks.kernels import other_attention
from flake8_gpu_training.frameworks.reading import dtype, is_off, parsed, truth, version_of
from flake8_gpu_training.runs.model import Run
from flake8_gpu_training.sources.python import exchanges_attention

_NO_MODEL = ("tokenizer", "processor", "config", "featureextractor", "feature_extractor", "vae")
_LOADERS = ("from_pretrained", "from_config")
_QUANTIZERS = {
    "BitsAndBytesConfig": "bnb",
    "GPTQConfig": "gptq",
    "AwqConfig": "awq",
    "HqqConfig": "hqq",
    "EetqConfig": "eetq",
    "TorchAoConfig": "torchao",
    "FineGrainedFP8Config": "fp8",
    "FbgemmFp8Config": "fp8",
    "QuantoConfig": "quanto",
}
_ADAPTERS = {
    "LoraConfig": "lora",
    "AdaLoraConfig": "adalora",
    "OFTConfig": "oft",
    "BOFTConfig": "boft",
    "VeraConfig": "vera",
    "IA3Config": "ia3",
    "LoHaConfig": "loha",
    "LoKrConfig": "lokr",
    "PromptTuningConfig": "prompt",
    "PrefixTuningConfig": "prefix",
}
_DTYPE_FIELD = re.compile(r"\w*(?:args|arguments|config|cfg|opts?)\.((?:torch_)?dtype)")
_LIGER = "apply_liger_kernel_to_"
_NATIVE = re.compile(
    r"(?i)qwen-?(?:1\.5|2|3)|llama|mistral|mixtral|gemma|gpt2|\bopt-|pythia|bloom|olmo|smollm"
    r"|starcoder2|vicuna|zephyr|\byi-(?:1\.5-)?\d+b|deepseek-(?:llm|math|coder-\d)|openchat|solar-\d"
)
_MEASURE = re.compile(r"(?:Loss|Metric|Reward|Scorer|Evaluator|Teacher)\w*$")
_HELPER = re.compile(r"(?i)(?:^|[._])(?:teacher|ref(?:erence)?_?model|reward_?model|critic)")
_ATTENTION_SETTERS = ("set_attention_implementation", "set_attn_implementation")
_FORWARD = re.compile(
    r"Attention\w*\.forward$|modeling_\w+\.\w*Attention\w*$|\.scaled_dot_product_attention$"
)
_EXCHANGE = re.compile(r"(?:replace|patch)_\w*(?:attn|attention)")
_OWN_ADAPTERS = re.compile(
    r"^(?!load_|merge_|unload|save_|get_|is_|_?has_).*(?:^|_)(?:lora|peft|adapters?)(?:_|$)"
)
# A program that trains asks this for its own sake: there is a GPU.
_ON_GPUS = re.compile(r"^torch\.cuda\.is_available\(\)$")
CHECKPOINT_DECIDES = "from Transformers 5 on the checkpoint decides the type, before it is float32"
_APPLIES_ADAPTER = ("get_peft_model", "add_adapter", "inject_adapter_in_model")


def practices_from_models(run: Run) -> dict[str, Setting]:
    """Practices by name, and ``weights``: the type the weights are loaded in.

    Nothing is said about what the reachable code leaves open.
    """
    calls = _still_bound(run, [call for file in run.python for call in file.calls])
    loads = [call for call in calls if is_model_load(call) and not _is_helper(call)]
    loads = _before_training(loads, calls)
    if _leaves_unsloth(run):
        loads = [call for call in loads if not call.name.startswith("unsloth.")] or loads
    found: dict[str, Setting] = {}
    _add(found, _attention(run, loads, calls))
    _add(found, _weights(run, loads))
    _add(found, _device_map(loads))
    made = _made_by_then(run, calls)
    _quantization(found, run, loads, made)
    _tuning(found, run, made)
    _liger(found, calls)
    return found


def _before_training(loads: list[Call], calls: list[Call]) -> list[Call]:
    """``loads`` but those of a script's or notebook's own lines behind its last trainer, which
    try what was trained; all of them where none comes before."""
    made: dict[str, Call] = {}
    for call in calls:
        if call.method.endswith("Trainer") and not call.scope:
            made[call.location.path] = call
    kept = [
        load
        for load in loads
        if load.scope
        or load.location.path not in made
        or load.location < made[load.location.path].location
    ]
    return kept or loads


def _still_bound(run: Run, calls: list[Call]) -> list[Call]:
    """``calls`` but those of a script's or notebook's own lines that filled the variable which
    the run's trainer takes, where another line loads what it has by then; and those behind it."""
    own, trainer = _own_lines(run, calls)
    if trainer is None:
        return calls
    given = trainer.keywords.get("model") or next(iter(trainer.positional), None)
    name = given.text if given is not None else ""
    filled = [
        call
        for call in own
        if name.isidentifier() and call.assigned_to.partition(",")[0].strip("( ") == name
    ]
    before = [call for call in filled if call.location < trainer.location]
    loads = [call for call in before if is_model_load(call)]
    if not loads or any(call.conditions or call.loop for call in before):
        return calls
    last = max(loads, key=lambda call: call.location)
    kept = [call for call in before if call.location >= last.location]
    return [call for call in calls if call not in filled or call in kept]


def _made_by_then(run: Run, calls: list[Call]) -> list[Call]:
    """``calls`` but those of a script's or notebook's own lines behind the run's trainer, which
    make the model of another run."""
    own, trainer = _own_lines(run, calls)
    if trainer is None:
        return calls
    return [call for call in calls if call not in own or call.location <= trainer.location]


def _own_lines(run: Run, calls: list[Call]) -> tuple[list[Call], Optional[Call]]:
    """The calls outside of functions in the file of the run's arguments, and the first trainer
    from there on."""
    start = run.place.location
    own = [call for call in calls if not call.scope and call.location.path == start.path]
    made = [call for call in own if call.method.endswith("Trainer")]
    return own, next((c for c in made if (c.end or c.location) >= start), None)


def _leaves_unsloth(run: Run) -> bool:
    """Whether a program that can load its model by Unsloth is told not to."""
    setting = run.setting("use_unsloth")
    return setting is not None and known(setting.value) and truth(setting.value) is False


def _add(found: dict[str, Setting], setting: Optional[Setting]) -> None:
    if setting is not None:
        found[setting.name] = setting


def is_model_load(call: Call) -> bool:
    """Whether a call loads a Transformers model (not a tokenizer or a configuration)."""
    owner, _, method = call.name.rpartition(".")
    if method not in _LOADERS:
        return False
    kind = owner.rpartition(".")[2]
    lower = kind.lower()
    if any(word in lower for word in _NO_MODEL):
        return False
    # A class may be held by a variable: ``model_class = AutoModelForCausalLM``.
    return "model" in lower or "For" in kind or "Liger" in kind or kind == _ARCHITECTURE


_ARCHITECTURE = "architecture"
"""The class that a configuration names: ``getattr(transformers, config.architectures[0])``."""


def attention_of(value: Any) -> Any:
    """Transformers' ``attn_implementation`` in the words of PRACTICES."""
    if not isinstance(value, str):
        return value
    text = value.lower().rpartition("|")[2]
    if "flash-attn3" in text or "flash_attention_3" in text or "fa3" in text:
        return "flash_attention_3"
    if "flash_attention_4" in text or "flash-attn4" in text:
        return "flash_attention_4"
    if "flash-attn" in text or text in ("flash_attention_2", "flash_attn", "flash_attention"):
        return "flash_attention_2"
    return text


def _from(name: str, value: Any, call: Call, argument: Optional[Argument] = None) -> Setting:
    if argument is None:
        return Setting(name, value, call.location, Origin.CONSTRUCTOR, f"{call.name}(...)")
    keyword = next((key for key, item in call.keywords.items() if item is argument), "")
    note = f"{keyword}={argument.written}"
    is_known = known(argument.value)
    return Setting(
        name,
        value if is_known else argument.value,
        argument.location,
        Origin.CONSTRUCTOR,
        note,
        argument.text,
        argument.location if argument.text else None,
    )


def _agreed(name: str, settings: list[Setting]) -> Optional[Setting]:
    """The value on which all calls agree, else an unknown one with the candidates."""
    if not settings:
        return None
    unread = [setting for setting in settings if not known(setting.value)]
    if unread:
        return unread[0]
    values = {repr(setting.value) for setting in settings}
    if len(values) == 1:
        return settings[0]
    candidates = tuple(setting.value for setting in settings)
    reason = "models are loaded in several ways"
    return Setting(name, Unknown(reason, candidates), settings[0].location, Origin.CONSTRUCTOR)


def _attention(run: Run, loads: list[Call], calls: list[Call]) -> Optional[Setting]:
    for call in calls:
        if call.method in _ATTENTION_SETTERS and call.positional:
            argument = call.positional[0]
            value = attention_of(argument.value)
            return _in_branch(_from("attention", value, call, argument), call.conditions)
    patched = _processors(run, calls) or _patched_attention(run, calls)
    if patched is not None:
        return patched
    for file in run.python:
        for attribute in file.attributes:
            if attribute.name.rpartition(".")[2] == "_attn_implementation":
                value = attention_of(attribute.value)
                made = Setting("attention", value, attribute.location, Origin.CONSTRUCTOR)
                return _in_branch(made, attribute.conditions)
    found: list[Setting] = []
    # An adapter is put on a model that another call loads.
    loads = [call for call in loads if not call.name.startswith("peft.Peft")]
    if any(_GENERATES.search(call.name.rpartition(".")[0]) for call in loads):
        loads = [call for call in loads if not _TOWER.search(call.name.rpartition(".")[0])]
    # Beside a diffusion model those of Transformers only make its conditions, unless trained.
    diffusion = [call for call in loads if call.name.startswith("diffusers.")]
    others = [call for call in loads if call not in diffusion and _is_trained(call, calls)]
    for call in [*diffusion, *others] if diffusion else loads:
        setting = _attention_of_call(run, call)
        if setting is not None:
            found.append(setting)
    agreed = _agreed("attention", found)
    return agreed if agreed is None or agreed.explicit else _unless_other(run, agreed, loads, calls)


def _unless_other(run: Run, default: Setting, loads: list[Call], calls: list[Call]) -> Setting:
    """A default, or an unknown value where the program may train another attention."""
    reason = other_attention(run)
    if reason is None and _is_of_own_class(run):
        parts = [call for call in loads if not _WHOLE.search(call.name.rpartition(".")[0])]
        if parts and not any(_is_trained(c, calls) or _is_built_in(run, c) for c in parts):
            reason = f"{parts[0].name} may only be a part of the model, or help to train it"
    if reason is None:
        return default
    others = ("eager",) if default.value != "eager" else ()
    return replace(default, value=Unknown(reason, (default.value, *others)))


_GENERATES = re.compile(r"For(?:CausalLM|ConditionalGeneration)$")
_TOWER = re.compile(r"(?:Vision|Audio|Speech)(?:Model|Encoder|Transformer)\w*$")
"""Encoders of images and sounds in front of a language model."""
_WHOLE = re.compile(r"(?:For|LMHead|DoubleHeads)[A-Z]?\w*$|^diffusers\.|^trl\.")


def _is_built_in(run: Run, load: Call) -> bool:
    """Whether a module of the program's own is built on the model: ``self.bert = …``."""
    return load.assigned_to.startswith("self.") and frozen(run) is None


def _is_of_own_class(run: Run) -> bool:
    """Whether the program defines modules of its own, of which the model may be one."""
    return any(
        base.endswith(("nn.Module", "LightningModule")) or base == "Module"
        for file in run.python
        for own in file.classes
        for base in own.bases
    )


def _is_trained(load: Call, calls: list[Call]) -> bool:
    """Whether an optimizer or Accelerate is given the model that a call loads."""
    name = load.assigned_to
    if not name or not name.isidentifier():
        return False
    mentioned = re.compile(rf"(?<![\w.]){name}(?:\.[\w.()]*parameters\(\))?$|^{name}$")
    return any(
        mentioned.search(argument.text) is not None
        for call in calls
        if call.method == "prepare" or call.name.startswith("torch.optim.")
        for argument in (*call.positional, *call.keywords.values())
    )


def _in_branch(setting: Setting, conditions: tuple[Condition, ...]) -> Setting:
    """``setting``, or an unknown one when it is not known whether its branch is taken."""
    if not conditions:
        return setting
    candidates = (setting.value,) if known(setting.value) else ()
    reason = f"it depends on {conditions[-1].text or 'a branch'}"
    return replace(setting, value=Unknown(reason, candidates))


_PROCESSORS = {
    "AttnProcessor2_0": "sdpa",
    "AttnProcessor": "eager",
    "XFormersAttnProcessor": "xformers",
}
_PROCESSOR_SETTERS = frozenset(
    """
    set_attn_processor set_attn_processors set_attn_procs set_default_attn_processor set_processor
    set_attention_backend
    """.split()  # noqa: SIM905
)


def _processors(run: Run, calls: list[Call]) -> Optional[Setting]:
    """``unet.set_attn_processor(…)`` of diffusers: the processors have the attention in them."""
    modules = {(i.module.partition(".")[0], i.name) for f in run.python for i in f.imports}
    if all(root != "diffusers" for root, _ in modules):
        return None
    found: list[Setting] = []
    for call in calls:
        if call.method not in _PROCESSOR_SETTERS:
            continue
        text = call.positional[0].text if call.positional else ""
        name = text.partition("(")[0].strip()
        value: Any = Unknown(f"{call.method} exchanges the attention")
        if name in _PROCESSORS and ("diffusers", name) in modules:
            value = _PROCESSORS[name]
        found.append(_in_branch(_from("attention", value, call), call.conditions))
    return _agreed("attention", found)


def _patched_attention(run: Run, calls: list[Call]) -> Optional[Setting]:
    """Code that puts its own function in the place of an attention layer's ``forward``."""
    called = {call.method for call in calls}
    unreached = {call.method for file in run.python for call in file.untaken} - called
    for file in run.python:
        for attribute in file.attributes:
            function = attribute.scope.rpartition(".")[2]
            if not _FORWARD.search(attribute.name) or function in unreached:
                continue
            if function in called or not exchanges_attention(function):
                reason = f"{attribute.name} is replaced"
                place = attribute.location
                return Setting("attention", Unknown(reason), place, Origin.CONSTRUCTOR)
    for call in calls:
        if _EXCHANGE.match(call.method):
            reason = f"{call.method} exchanges the attention"
            return Setting("attention", Unknown(reason), call.location, Origin.CONSTRUCTOR)
    return None


def _attention_of_call(run: Run, call: Call) -> Optional[Setting]:
    for keyword in ("attn_implementation", "_attn_implementation"):  # also the config's own name
        argument = call.keywords.get(keyword)
        if argument is not None and argument.value is not None:
            return _from("attention", attention_of(argument.value), call, argument)
    old = call.keywords.get("use_flash_attention_2")
    if old is not None and known(old.value) and truth(old.value):
        return _from("attention", "flash_attention_2", call, old)
    asks = any(_SETS_ATTENTION.search(name) for name in call.keywords)
    is_told = call.is_open or (asks and run.is_open) or not _is_plain_configuration(run, call)
    if is_told and not _has_no_choice(run, call):
        reason = "arguments of the call are not all known"
        return Setting("attention", Unknown(reason), call.location, Origin.CONSTRUCTOR)
    remote = call.keywords.get("trust_remote_code")
    if remote is not None and remote.value is not False and not is_native(run):
        reason = "the model may bring code of its own"
        return Setting("attention", Unknown(reason), call.location, Origin.CONSTRUCTOR)
    if not _is_of_a_library(run, call.name.rpartition(".")[0]):
        reason = "the class of the model may bring attention of its own"
        return Setting("attention", Unknown(reason), call.location, Origin.CONSTRUCTOR)
    value, note = default_attention(run, call, is_native(run))
    if not known(value):
        return Setting("attention", value, call.location, Origin.CONSTRUCTOR)
    return _default("attention", value, call, note)


def _is_plain_configuration(run: Run, load: Call) -> bool:
    """Whether a model is given no configuration, or only ones that leave its attention alone:
    ``config = AutoConfig.from_pretrained(name)``."""
    given = load.keywords.get("config")
    if given is None and load.method != "from_config":
        return True
    given = given or next(iter(load.positional), None)
    if given is None or not given.text.isidentifier():
        return given is not None and _PLAIN_CONFIGURATION.match(given.text) is not None
    file = next((one for one in run.python if one.path == load.location.path), None)
    if file is None or any(_SETS_ATTENTION.search(one.name) for one in file.attributes):
        return False
    made = [c for c in file.calls if c.assigned_to == given.text and c.scope == load.scope]
    return bool(made) and all(_is_plain_load(call) for call in made)


_PLAIN_CONFIGURATION = re.compile(r"(?:transformers\.)?\w*Config\.from_pretrained\([\w.\"'/-]*\)$")
_SETS_ATTENTION = re.compile(r"\b_?attn_implementation(?:_internal)?$")


def _is_plain_load(call: Call) -> bool:
    """Whether a call loads a configuration of Transformers and says nothing of the attention."""
    is_theirs = call.name.startswith("transformers.") and call.method == "from_pretrained"
    told = any(_SETS_ATTENTION.search(name) for name in call.keywords)
    return is_theirs and not call.is_open and not told and not _is_given(call, "trust_remote_code")


def _has_no_choice(run: Run, call: Call) -> bool:
    """Whether a model of Transformers is loaded in a release that takes no attention to choose."""
    is_theirs = call.name.startswith("transformers.")
    return is_theirs and version_at_hand(run, "transformers") < FIRST_CHOICE


_LIBRARIES = ("transformers", "trl", "peft", "diffusers", "liger_kernel", "optimum", "open_clip")
_BARE = re.compile(r"PreTrainedModel$|(?:^|\.)Module$|ModelMixin$|Mixin$")
_DEEPEST = 8


def _is_of_a_library(run: Run, name: str, depth: int = 0) -> bool:
    """Whether a model's class is Transformers' own, or derives from one that is.

    A class that the project builds on the bare base, or copied, has the attention written in it.
    """
    if name == _ARCHITECTURE:
        return True
    if name.partition(".")[0] in _LIBRARIES:
        return _BARE.search(name) is None or depth == 0
    if depth > _DEEPEST:
        return False
    last = name.rpartition(".")[2]
    definitions = [own for file in run.python for own in file.classes if own.name == last]
    return bool(definitions) and all(
        any(_is_of_a_library(run, base, depth + 1) for base in own.bases) for own in definitions
    )


def _is_helper(call: Call) -> bool:
    """Whether a model is loaded to measure or to teach: the one that is trained is another."""
    owner = call.scope.rpartition(".")[0] or call.scope
    return _HELPER.search(call.assigned_to) is not None or _MEASURE.search(owner) is not None


def is_native(run: Run) -> bool:
    """Whether the model's repository is known to bring no code: Transformers' own is used."""
    return run.model.name is not None and _NATIVE.search(run.model.name) is not None


def _default(name: str, value: Any, call: Call, note: str) -> Setting:
    return Setting(name, value, None, Origin.DEFAULT, f"{call.method}: {note}")


def _weights(run: Run, loads: list[Call]) -> Optional[Setting]:
    found: list[Setting] = []
    for call in loads:
        argument = call.keywords.get("torch_dtype") or call.keywords.get("dtype")
        if argument is not None and argument.value is not None:
            if argument.value == "auto":
                reason = "the checkpoint decides the type of the weights"
                return Setting("weights", Unknown(reason), argument.location, Origin.CONSTRUCTOR)
            value = dtype_asked(run, argument)
            if value is None:
                reason = "the type of the weights is not a literal"
                return Setting("weights", Unknown(reason), argument.location, Origin.CONSTRUCTOR)
            noted = _from("weights", value, call, argument)
            found.append(noted if known(noted.value) else replace(noted, value=value))
        elif call.is_open:
            reason = "arguments of the call are not all known"
            return Setting("weights", Unknown(reason), call.location, Origin.CONSTRUCTOR)
    plain = [call for call in loads if call.method == "from_pretrained"]
    if plain and not found and not run.is_open and _follows_checkpoints(run):
        return Setting("weights", Unknown(CHECKPOINT_DECIDES, ("fp32", "pure-bf16")))
    return _agreed("weights", found)


def _follows_checkpoints(run: Run) -> bool:
    """Whether a load that names no type may take the checkpoint's.

    Transformers does so from 5.0.0 on (modeling_utils.py: dtype "auto"). Encoders and vision
    models are kept in float32.
    """
    if run.model.kind in ("encoder", "vision", "image"):
        return False
    told = at_hand(run, "transformers")
    if told is None or not told.allowed:
        return version_of(run, "transformers") >= (5,)
    return parsed(told.table.versions[told.allowed[-1]]) >= (5,)


def dtype_asked(run: Run, argument: Argument) -> Optional[str]:
    """A type as written, or as the run sets the field of the arguments it is taken from."""
    if known(argument.value):
        return dtype(argument.value)
    field = _DTYPE_FIELD.fullmatch(argument.text)
    setting = run.setting(field.group(1)) if field is not None else None
    return None if setting is None else dtype(setting.value)


def _device_map(loads: list[Call]) -> Optional[Setting]:
    found: list[Setting] = []
    for call in loads:
        argument = call.keywords.get("device_map")
        if argument is not None:
            value = "none" if known(argument.value) and is_off(argument.value) else argument.value
            if isinstance(value, dict):
                value = "custom" if len(value) > 1 else "none"  # {"": 0} is one device
            found.append(_from("device_map", value, call, argument))
        elif call.is_open:
            return None
        else:
            found.append(_default("device_map", "none", call, "device_map None"))
    return _agreed("device_map", found)


def _quantization(
    found: dict[str, Setting], run: Run, loads: list[Call], calls: list[Call]
) -> None:
    told = [call.keywords.get("quantization_config") for call in loads]
    if told and all(argument is not None and argument.value is None for argument in told):
        calls = [call for call in calls if call.method not in _QUANTIZERS]  # none is handed on
    for call in calls:
        method = _QUANTIZERS.get(call.method)
        dequantized = call.keywords.get("dequantize")
        if (
            method is None
            or _is_switched_off(run, call)
            or (dequantized is not None and truth(dequantized.value))
        ):
            continue
        bits = _bits(call, method)
        if bits is not None:
            certain = _asked_of_trainers(calls)
            open_ = tuple(
                c
                for c in call.conditions
                if (c.text, c.holds) not in certain and not _ON_GPUS.search(c.text)
            )
            made = _from("quantization_method", method, call)
            found["quantization_method"] = _in_branch(made, open_)
            found["quantization_bits"] = _in_branch(bits, open_)
            return
    for call in loads:
        for keyword, width in (("load_in_4bit", 4), ("load_in_8bit", 8)):
            argument = call.keywords.get(keyword)
            if argument is None or (known(argument.value) and not truth(argument.value)):
                continue
            asked = call.conditions if any(other is not call for other in loads) else ()
            for name, value in (("quantization_method", "bnb"), ("quantization_bits", width)):
                found[name] = _in_branch(_from(name, value, call, argument), asked)
            return
    is_plain = loads and not any(call.is_open for call in loads) and not run.is_open
    if is_plain and not any(_is_given(call, "quantization_config") for call in loads):
        note = "quantization_config None"
        found["quantization_method"] = _default("quantization_method", "none", loads[0], note)
        found["quantization_bits"] = _default("quantization_bits", None, loads[0], note)


def _is_switched_off(run: Run, call: Call) -> bool:
    """Whether a quantizer's bits are switches of the arguments, of which the run turns on none:
    ``load_in_4bit=model_args.load_in_4bit``."""
    given = [call.keywords.get(name) for name in ("load_in_4bit", "load_in_8bit")]
    fields = [a.text.rpartition(".")[2] for a in given if a is not None and "." in a.text]
    told = [run.setting(field) for field in fields]
    written = [setting for setting in told if setting is not None]
    all_off = all(known(one.value) and truth(one.value) is False for one in written)
    return len(fields) == len([a for a in given if a]) and bool(written) and all_off


def _is_given(call: Call, keyword: str) -> bool:
    argument = call.keywords.get(keyword)
    return argument is not None and argument.value is not None


def _bits(call: Call, method: str) -> Optional[Setting]:
    """Bits of a quantizer's call; None when it quantizes nothing."""
    if method == "fp8" or method == "eetq":
        return _from("quantization_bits", 8, call)
    if method == "bnb":
        for keyword, width in (("load_in_4bit", 4), ("load_in_8bit", 8)):
            argument = call.keywords.get(keyword)
            if argument is not None and not known(argument.value):
                return _from("quantization_bits", argument.value, call, argument)
            if argument is not None and truth(argument.value):
                return _from("quantization_bits", width, call, argument)
        return _from("quantization_bits", Unknown("open call"), call) if call.is_open else None
    argument = call.keywords.get("bits") or call.keywords.get("nbits")
    if argument is not None:
        return _from("quantization_bits", argument.value, call, argument)
    return _from("quantization_bits", 4, call) if method == "awq" else _unread_bits(call)


def _unread_bits(call: Call) -> Setting:
    return _from("quantization_bits", Unknown("bits are not written"), call)


def _tuning(found: dict[str, Setting], run: Run, calls: list[Call]) -> None:
    untaken = [call for file in run.python for call in file.untaken]
    calls = _without_towers(run, calls)
    adapter = None if _leaves_adapters(calls, untaken) else _adapter(calls)
    if adapter is not None:
        name = adapter.name.rpartition(".")[2]
        made = _from("tuning", _ADAPTERS.get(name, "lora"), adapter)
        asked = _asked(adapter, calls)
        certain = _asked_of_trainers(calls)
        open_ = tuple(c for c in asked if (c.text, c.holds) not in certain)
        found["tuning"] = _in_branch(made, open_)
        if adapter.name.startswith("unsloth."):
            found["unsloth"] = _in_branch(_from("unsloth", True, adapter), adapter.conditions)
        rank = adapter.keywords.get("r")
        if rank is not None:
            found["lora_rank"] = _from("lora_rank", rank.value, adapter, rank)
        return
    if run.is_open or run.single_file or not run.python or "swift" in set(_modules(run)):
        return
    if any(is_model_load(call) for call in calls) and not _is_adapted(run, calls):
        left_open = _adapted_by_itself(calls) or _own_adapter(run) or frozen(run)
        left_open = left_open or _elsewhere(run)
        if left_open is not None:
            found["tuning"] = left_open
        else:
            note = "no PEFT in the code that is run"
            found["tuning"] = Setting("tuning", "full", None, Origin.DERIVED, note)
        note = "no unsloth in the code that is run"
        found["unsloth"] = Setting("unsloth", False, None, Origin.DERIVED, note)


_PEFT_SWITCH = re.compile(r"\buse_(?:peft|lora)\b")


def tuning_of_code(run: Run) -> Optional[Setting]:
    """What the code that is run says of the tuning, where it is not that all is trained."""
    found: dict[str, Setting] = {}
    calls = [
        call
        for file in run.python
        for call in file.calls
        if not any(_PEFT_SWITCH.search(condition.text) for condition in call.conditions)
    ]
    _tuning(found, run, calls)
    made = found.get("tuning")
    applied = [call for call in calls if call.method in _APPLIES_ADAPTER]
    given = [call.keywords["peft_config"] for call in calls if _is_given(call, "peft_config")]
    if made is not None and known(made.value):
        is_used = bool(applied) or any(" if " not in argument.text for argument in given)
        return made if made.value != "full" and is_used else None
    if made is not None:
        return made
    untaken = [call for file in run.python for call in file.untaken]
    if applied and not _leaves_adapters(calls, untaken):
        reason = f"{applied[0].method} puts an adapter on the model"
        return Setting("tuning", Unknown(reason), applied[0].location, Origin.CONSTRUCTOR)
    return _adapted_by_itself(calls) or _own_adapter(run)


def _without_towers(run: Run, calls: list[Call]) -> list[Call]:
    """The calls but those by which models of other files put adapters on themselves, where the
    script leaves out its own: a tower's code may have a method for it that nobody calls."""
    script = next((file for file in run.python if file.path == run.entry), None)
    if script is None or _adapter(list(script.untaken)) is None:
        return calls
    return [
        call
        for call in calls
        if call.location.path == script.path
        or "." not in call.scope
        or not (call.name.startswith("peft.") or call.method in _APPLIES_ADAPTER)
    ]


def _adapter(calls: list[Call]) -> Optional[Call]:
    """The call that says how an adapter is made."""
    for call in calls:
        name = call.name.rpartition(".")[2]
        if name in _ADAPTERS or (call.name.startswith("unsloth.") and name == "get_peft_model"):
            return call
    return None


def _leaves_adapters(calls: list[Call], untaken: list[Call]) -> bool:
    """Whether adapters are only put on the model in branches that are not taken."""
    return (
        any(call.method in _APPLIES_ADAPTER for call in untaken)
        and not any(call.method in _APPLIES_ADAPTER for call in calls)
        and not any(_is_given(call, "peft_config") for call in calls)
    )


def _asked(adapter: Call, calls: list[Call]) -> tuple[Condition, ...]:
    """What is left open of whether the adapter is made and put on the model."""
    appliers = [call for call in calls if call.method in _APPLIES_ADAPTER]
    applied = [call.conditions for call in appliers]
    asked = adapter.conditions or (applied[0] if applied and all(applied) else ())
    # An adapter that is loaded in the other branch is one, too, unless more is asked there.
    own = {(c.text, c.holds) for c in asked}
    others = {
        (condition.text, condition.holds)
        for call in calls
        if call.name.startswith("peft.Peft") or call in appliers
        for condition in call.conditions
        if all(o is condition or (o.text, o.holds) in own for o in call.conditions)
    }
    return tuple(c for c in asked if (c.text, not c.holds) not in others)


def _asked_of_trainers(calls: list[Call]) -> set[tuple[str, bool]]:
    """What is asked wherever a trainer is made: without it nothing is trained, so it is known."""
    trainers = [call for call in calls if call.method.endswith("Trainer")]
    asked = [{(c.text, c.holds) for c in call.conditions if c.text} for call in trainers]
    return set.intersection(*asked) if asked else set()


def leaves_adapter(run: Run, trainer: Call) -> bool:
    """Whether a trainer's ``peft_config`` is a variable that only a branch which is not taken
    would have filled."""
    given = trainer.keywords.get("peft_config")
    name = given.text if given is not None else ""
    untaken = [c for file in run.python for c in file.untaken if c.assigned_to == name]
    made = (c for file in run.python for c in file.calls if c.assigned_to == name)
    return _adapter(untaken) is not None and next(made, None) is None


def _is_adapted(run: Run, calls: list[Call]) -> bool:
    """Whether adapters may come from elsewhere: loaded, or made by code that is not seen."""
    return any(
        call.method in _APPLIES_ADAPTER
        or call.name.startswith(("peft.Peft", "peft.AutoPeft", "unsloth."))
        or (
            _is_given(call, "peft_config") and not _asks_trl(call) and not leaves_adapter(run, call)
        )
        for call in calls
    )


def _adapted_by_itself(calls: list[Call]) -> Optional[Setting]:
    """``model.set_lora_adapter(…)``: a model's own code may put adapters on it."""
    for call in calls:
        if _OWN_ADAPTERS.search(call.method) and not call.name.startswith(("peft.", "trl.")):
            reason = f"what {call.method} does is not followed"
            return Setting("tuning", Unknown(reason, ("lora",)), call.location, Origin.CONSTRUCTOR)
    return None


def _own_adapter(run: Run) -> Optional[Setting]:
    """``class LoRALinear(nn.Module)``: adapters that the program has written itself."""
    for file in run.python:
        if "adapter class" in (file.mentions or ()):
            reason = f"{file.path} has adapters of its own"
            return Setting("tuning", Unknown(reason, ("full", "lora")), None, Origin.CONSTRUCTOR)
    return None


def _elsewhere(run: Run) -> Optional[Setting]:
    """The tuning of a model that goes through code which is out of sight."""
    if run.handed_over is None:
        return None
    reason = "the model goes through code that is not followed"
    return Setting("tuning", Unknown(reason), run.handed_over, Origin.CONSTRUCTOR)


def _asks_trl(call: Call) -> bool:
    """``peft_config=get_peft_config(model_args)`` is None unless ``use_peft`` is set."""
    text = call.keywords["peft_config"].text
    return text.startswith(("get_peft_config(", "trl.get_peft_config("))


def _modules(run: Run) -> Iterator[str]:
    for file in run.python:
        for item in file.imports:
            yield item.module.partition(".")[0]


def _liger(found: dict[str, Setting], calls: list[Call]) -> None:
    for call in calls:
        if call.method.startswith(_LIGER) or "AutoLigerKernelForCausalLM" in call.name:
            found["liger_kernel"] = _from("liger_kernel", True, call)
            return
