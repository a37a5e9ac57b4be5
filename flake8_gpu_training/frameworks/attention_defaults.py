"""The attention that a Transformers model has when nothing asks for one.

``_supports_sdpa`` of the classes decides (modeling_utils.py): PyTorch's own kernel where the
model's family supports it, eager attention where it does not.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Optional

from flake8_gpu_training.facts import Call, Unknown
from flake8_gpu_training.frameworks.at_hand import version_at_hand
from flake8_gpu_training.frameworks.reading import NEWEST, parsed, version_of
from flake8_gpu_training.runs.model import Run

FIRST_CHOICE = (4, 36)
"""The first release with the choice."""
_FIRST_OF_TORCH = (2, 1, 1)
"""The first release of PyTorch whose kernel is taken (is_torch_sdpa_available)."""
_ASKS_NO_MORE = (4, 56)
"""The first release of Transformers that takes the kernel of any PyTorch."""
_RANGE = re.compile(r"[~<>]")
_FIRST_OF_DIFFUSERS = (0, 13)
_SETTLED = (4, 48)
"""A project that pins no release gets one that is newer than this."""

# The first release in which the family's modeling file has _supports_sdpa = True, read in the
# releases 4.36.2 to 5.24.0; None: in none of them. Families that had it with the choice itself,
# or when they came, are not listed.
_SINCE: Mapping[str, Optional[tuple[int, int]]] = {
    **dict.fromkeys(
        """
        bigbird bigbirdpegasus blip bloom deberta debertav2 donut flaubert funnel git gptneo
        gptoss layoutlmv2 led longformer longt5 luke mask2former mpnet mpt nllbmoe openaigpt
        prophetnet reformer rembert roformer speecht5 splinter squeezebert swin2sr swinv2
        switchtransformers tabletransformer timesformer tapas trocr vilt visualbert vits wavlm
        xglm xlm xlnet clap convbert nystromformer canine markuplm mvp imagegpt
        """.split()  # noqa: SIM905
    ),
    **dict.fromkeys(("mixtral", "mistral"), (4, 37)),
    **dict.fromkeys(("phi", "stablelm"), (4, 39)),
    **dict.fromkeys(
        "bert deit hubert unispeech vit wav2vec2 data2vec yolos videomae sew".split(),  # noqa: SIM905
        (4, 41),
    ),
    **dict.fromkeys(("gpt2", "gptneox"), (4, 42)),
    **dict.fromkeys(("clip", "siglip"), (4, 43)),
    **dict.fromkeys(
        "albert biogpt camembert dinov2 m2m100 mbart phi3 roberta xlmroberta".split(),  # noqa: SIM905
        (4, 45),
    ),
    **dict.fromkeys(("distilbert", "opt", "llava", "llavanext", "idefics2", "vivit"), (4, 46)),
    "beit": (4, 48),
    "blip2": (4, 52),
    **dict.fromkeys(("blenderbot", "marian", "pegasus", "persimmon"), (4, 53)),
    "esm": (4, 56),
    **dict.fromkeys(("electra", "ernie", "xmod", "mobilebert"), (5, 0)),
    **dict.fromkeys(("detr", "deformabledetr", "rtdetr"), (5, 1)),
    **dict.fromkeys(("maskformer", "owlvit"), (5, 4)),
    **dict.fromkeys(("segformer", "swin"), (5, 9)),
    "ctrl": (5, 13),
    **dict.fromkeys(("t5", "mt5", "umt5", "pix2struct"), (5, 15)),
    **dict.fromkeys(("wav2vec2conformer", "wav2vec2bert"), (5, 16)),
    "layoutlm": (5, 20),
    **dict.fromkeys(("codegen", "gptj", "layoutlmv3"), (5, 24)),
}
_NO_LONGER = {"gemma2": (5, 21)}
"""Families that gave it up: softcapping is no part of that kernel."""
_NO_ATTENTION = frozenset({"mamba", "mamba2", "falconmamba", "rwkv", "fnet", "recurrentgemma"})
_PART = r"(?:For|Model|LMHead|Encoder|Decoder|Text|Vision|PreTrained|DoubleHeads)"
_FAMILIES = sorted((*_SINCE, *_NO_LONGER, *_NO_ATTENTION), key=len, reverse=True)
_OF_CLASS = re.compile(rf"({'|'.join(_FAMILIES)}|auto|\w*encoderdecoder)(?={_PART.lower()})")
# Families by the names that their checkpoints have on the hub.
_OF_NAME = tuple(
    (re.compile(rf"(?i)(?:^|[/_-])(?:{pattern})"), family)
    for pattern, family in (
        (r"umt5", "umt5"),
        (r"mt5|mt0", "mt5"),
        (r"long-?t5", "longt5"),
        (r"(?:flan-?|by|code|sentence-|gtr-)?t5|t0pp?\b|(?:flan-)?ul2", "t5"),
        (r"m?deberta-v[23]", "debertav2"),
        (r"deberta", "deberta"),
        (r"longformer", "longformer"),
        (r"bigbird|big_bird", "bigbird"),
        (r"led-", "led"),
        (r"xlnet", "xlnet"),
        (r"(?:all-|multi-qa-|paraphrase-)?mpnet", "mpnet"),
        (r"electra", "electra"),
        (r"gpt-?neox|pythia", "gptneox"),
        (r"gpt-neo-?\d", "gptneo"),
        (r"gpt-?j-", "gptj"),
        (r"gpt-oss", "gptoss"),
        (r"(?:distil)?gpt2|dialogpt", "gpt2"),
        (r"bloomz?-", "bloom"),
        (r"mpt-\d", "mpt"),
        (r"codegen-", "codegen"),
        (r"xglm-\d", "xglm"),
        (r"opt-\d", "opt"),
        (r"xlm-roberta", "xlmroberta"),
        (r"camembert", "camembert"),
        (r"(?:distil|code|bio|twitter-)?roberta", "roberta"),
        (r"distilbert", "distilbert"),
        (r"albert", "albert"),
        (r"(?:sci|bio|clinical|fin|legal|tiny|mini|code)?bert(?:-|$)", "bert"),
        (r"mbart", "mbart"),
        (r"bart-", "bart"),
        (r"pegasus", "pegasus"),
        (r"wav2vec2-(?:base|large|xls)", "wav2vec2"),
        (r"hubert-", "hubert"),
        (r"wavlm", "wavlm"),
        (r"whisper", "whisper"),
        (r"vit-(?:base|large|huge|small|tiny)", "vit"),
        (r"swinv2", "swinv2"),
        (r"swin-", "swin"),
        (r"segformer|mit-b\d", "segformer"),
        (r"layoutlmv3", "layoutlmv3"),
        (r"layoutlmv2", "layoutlmv2"),
        (r"layoutlm-", "layoutlm"),
        (r"dinov2", "dinov2"),
        (r"clip-vit", "clip"),
        (r"blip2", "blip2"),
        (r"blip-", "blip"),
        (r"gemma-2-", "gemma2"),
        (r"mamba", "mamba"),
        (r"rwkv", "rwkv"),
        (r"esm2?_", "esm"),
        (r"detr-", "detr"),
    )
)
_GENERATORS = re.compile(r"AutoModelFor(?:CausalLM|ImageTextToText|Vision2Seq)")
UNTOLD = ("sdpa", "eager")
BY_RELEASE = "it depends on the release of transformers"


def default_attention(run: Run, call: Call, is_native: bool) -> tuple[Any, str]:
    """What a model that is loaded so has, and why; ``is_native``: a family known to support it."""
    if call.name.startswith("diffusers."):
        return _of_diffusers(run)
    old = _of_old_releases(run)
    if old is not None:
        return old
    version = version_at_hand(run, "transformers")
    owner = call.name.rpartition(".")[0].rpartition(".")[2]
    family = _family(run, call, owner)
    if family in _NO_ATTENTION or family.endswith("encoderdecoder"):
        return Unknown(f"the kernels of {owner} are its own"), ""
    if family in _SINCE or family in _NO_LONGER:
        return _of_family(family, version)
    is_auto = owner.startswith(("AutoModel", "TFAuto"))
    if not family and is_auto and not is_native and not _GENERATORS.match(owner):
        return Unknown("it depends on the family of the model", UNTOLD), ""
    return "sdpa", "transformers >= 4.36: sdpa where supported"


def attention_of_named(run: Run, name: str) -> tuple[Any, str]:
    """What a language model has that a trainer loads by its name."""
    old = _of_old_releases(run)
    if old is not None:
        return old
    family = _family_of_name(name)
    if family in _NO_ATTENTION:
        return Unknown(f"the kernels of {family} are its own"), ""
    if family:
        return _of_family(family, version_at_hand(run, "transformers"))
    return "sdpa", "transformers >= 4.36: sdpa where supported"


def sdpa_since(name: str) -> Optional[tuple[int, int]]:
    """The first release of Transformers in which a named model takes SDPA; None for none."""
    return _SINCE.get(_family_of_name(name), FIRST_CHOICE)


def _of_old_releases(run: Run) -> Optional[tuple[Any, str]]:
    """What releases do, of Transformers or PyTorch, that are too old to choose by family."""
    if "transformers" in run.trunk:
        return None
    if "transformers" in run.unreleased and not _asks_for_settled(run):
        return Unknown("the release of transformers is not known", UNTOLD), ""
    version = version_at_hand(run, "transformers")
    if version < FIRST_CHOICE:
        return "eager", "transformers < 4.36: eager"
    if version_of(run, "torch") < _FIRST_OF_TORCH and not _ASKS_NO_MORE <= version < NEWEST:
        if version == NEWEST or not _is_surely_old(run):
            return Unknown("it depends on the releases of transformers and torch", UNTOLD), ""
        return "eager", "transformers 4.36.2 to 4.55.4: eager before PyTorch 2.1.1"
    return None


def _asks_for_settled(run: Run) -> bool:
    """Whether the project asks for releases that all choose by family, and so does a later
    commit of the source."""
    lowest = [_LOWEST.search(limit) for limit in run.limits.get("transformers", ())]
    return bool(lowest) and all(found and parsed(found[1]) >= _SETTLED for found in lowest)


_LOWEST = re.compile(r">=\s*([\d.]+)")


def _is_surely_old(run: Run) -> bool:
    """Whether each PyTorch that is asked for is too old; ``2.1.*`` and NPUs leave it open."""
    if any(item.module.startswith("torch_npu") for file in run.python for item in file.imports):
        return False
    if any(_RANGE.search(limit) for limit in run.limits.get("torch", ())):
        return False
    version = version_of(run, "torch")
    return version < (2, 1) or len(version) > len((2, 1))


def _of_diffusers(run: Run) -> tuple[Any, str]:
    """As ``models/cross_attention.py`` of 0.13 chooses, and ``attention_processor.py`` since."""
    if version_of(run, "diffusers") < _FIRST_OF_DIFFUSERS:
        return Unknown("an old release of diffusers"), ""
    if version_of(run, "torch") < (2,):
        return "eager", "diffusers >= 0.13: eager before PyTorch 2"
    return "sdpa", "diffusers >= 0.13: sdpa from PyTorch 2 on"


def _of_family(family: str, version: tuple[int, ...]) -> tuple[Any, str]:
    since = _SINCE.get(family, FIRST_CHOICE)
    until = _NO_LONGER.get(family)
    note = f"transformers 4.36.2 to 5.24.0: _supports_sdpa of {family}"
    if since is None:
        return "eager", note
    if version == NEWEST and until is not None:
        return Unknown(BY_RELEASE, UNTOLD), ""
    is_supported = version >= since and (until is None or version < until)
    return ("sdpa" if is_supported else "eager"), note


def _family(run: Run, call: Call, owner: str) -> str:
    """The family by the class, by the name that is loaded, or by the run's model; else empty."""
    match = _OF_CLASS.match(owner.lower())
    if match is not None and match.group(1) != "auto":
        return match.group(1)
    if not owner.startswith("Auto"):
        return ""
    loaded = call.keywords.get("pretrained_model_name_or_path") or next(iter(call.positional), None)
    name = loaded.value if loaded is not None and isinstance(loaded.value, str) else run.model.name
    return _family_of_name(name or "")


def _family_of_name(name: str) -> str:
    return next((family for pattern, family in _OF_NAME if pattern.search(name)), "")
