"""What the run's Python programs call, import and decorate."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Optional

from flake8_gpu_training.facts import Call, Import, PythonFile, known
from flake8_gpu_training.runs.model import Place, PlaceKind, Run


def calls(run: Run, *names: str) -> Iterator[Call]:
    """Calls whose resolved name is one of ``names``, or ends with one (``.Trainer``)."""
    for program in run.python:
        yield from program.calls_to(*names)


def first_call(run: Run, *names: str) -> Optional[Call]:
    """The first such call, or None."""
    return next(calls(run, *names), None)


def imports(run: Run, *modules: str) -> Optional[Import]:
    """The first import of one of ``modules`` or of a part of it."""
    for program in run.python:
        for found in program.imports:
            dotted = found.dotted
            if any(dotted == module or dotted.startswith(f"{module}.") for module in modules):
                return found
    return None


def lightning_trainer(run: Run) -> Optional[Call]:
    """The constructor of Lightning's Trainer, or None."""
    roots = ("lightning", "pytorch_lightning")
    return next((c for c in calls(run, ".Trainer") if c.name.partition(".")[0] in roots), None)


_CONVOLUTIONS = tuple(
    """
    resnet resnext wide_resnet vgg alexnet densenet mobilenet efficientnet squeezenet regnet
    shufflenet mnasnet inception convnext
    """.split()  # noqa: SIM905
)


def builds_vision(run: Run) -> bool:
    """Whether the program builds an image model of torchvision or timm: fixed shapes."""
    return bool(_image_models(run))


def is_convolutional(run: Run) -> bool:
    """Whether all models in sight are torchvision's or timm's convolutional networks."""
    if next(calls(run, ".from_pretrained", ".MultiheadAttention"), None) is not None:
        return False
    names = _image_models(run)
    return bool(names) and all(name.startswith(_CONVOLUTIONS) for name in names)


def _image_models(run: Run) -> list[str]:
    """Names of torchvision's and timm's models that the program imports or builds."""
    found: list[str] = []
    for program in run.python:
        imported = (i.name for i in program.imports if i.module == "torchvision.models")
        found += [name for name in imported if name.islower()]
        for call in program.calls:
            if call.name.startswith("torchvision.models."):
                found.append(call.name.partition("(")[0].rpartition(".")[2])
            elif call.name == "timm.create_model":
                named = call.positional[0].value if call.positional else keyword(call, "model_name")
                found.append(named if isinstance(named, str) else "")
    return found


_DECODERS = (
    *("ForCausalLM", "LMHeadModel", "ForImageTextToText", "ForVision2Seq"),
    "ForConditionalGeneration",
)


def loads(run: Run) -> Iterator[Call]:
    """Calls of ``from_pretrained``, but those behind all trainers: they load what was trained."""
    for program in run.python:
        for call in program.calls_to(".from_pretrained"):
            if not _is_behind_training(program, call):
                yield call


def _is_behind_training(program: PythonFile, call: Call) -> bool:
    made = [one for one in program.calls if one.name.endswith("Trainer")]
    lines = [one.location.line for one in made if one.scope == call.scope]
    return len(lines) == len(made) > 0 and call.location.line > max(lines)


def decoder_loads(run: Run) -> Iterator[Call]:
    """Calls of ``from_pretrained`` that load a language model with its head."""
    for call in loads(run):
        if call.name.rpartition(".")[0].endswith(_DECODERS):
            yield call


def headed_loads(run: Run) -> Iterator[Call]:
    """Those, and calls that load one with a head that classifies instead."""
    for call in loads(run):
        if call.name.rpartition(".")[0].endswith(_HEADS):
            yield call


_HEADS = (
    *_DECODERS,
    *("ForSequenceClassification", "ForTokenClassification", "ForQuestionAnswering"),
    *("ForMultipleChoice", "LMHeadModel"),
)


def predicts_tokens(run: Run) -> bool:
    """Whether no model with another head than the vocabulary's is loaded in sight."""
    return next(calls(run, *_OTHER_HEADS), None) is None


_OTHER_HEADS = tuple(
    f".AutoModelFor{name}.from_pretrained"
    for name in ("SequenceClassification", "TokenClassification", "QuestionAnswering")
)


def placed_at_load(run: Run) -> Run:
    """``run``; a plain program's place is then where it loads its model, if that is in sight."""
    call = next(calls(run, ".from_pretrained"), None)
    owner = "" if call is None else call.name.rpartition(".")[0].rpartition(".")[2]
    if run.framework != "generic" or call is None or not owner.startswith("AutoModel"):
        return run
    return replace(run, place=Place(PlaceKind.PYTHON, call.location))


def decoder_loads_vision(run: Run) -> Iterator[Call]:
    """Those of them that load a model for images as well."""
    for call in decoder_loads(run):
        if not call.name.rpartition(".")[0].endswith("ForCausalLM"):
            yield call


def keyword(call: Call, name: str, position: Optional[int] = None) -> Any:
    """Value of an argument: None when it is not given (or unknown, as an Unknown)."""
    argument = call.keywords.get(name)
    if argument is None and position is not None and len(call.positional) > position:
        argument = call.positional[position]
    return None if argument is None else argument.value


def says(call: Call, name: str, *values: Any) -> bool:
    """Whether the call gives ``name`` one of ``values``."""
    value = keyword(call, name)
    return value is not None and known(value) and value in values
