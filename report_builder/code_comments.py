"""Comments of the code that recommendations show, in Chinese."""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType

_COMMENT = re.compile(r"(?m)(?P<mark>(?:^|(?<=\s))(?:#|//) )(?P<said>\S.*)$")
_CHINESE: Mapping[str, str] = MappingProxyType(
    {
        "in the model's forward: the first half of the layers keeps its activations": (
            "在模型的 forward 中：前一半层保留激活值"
        ),
        'and in the loop: latents = batch["latents"] instead of _batch_encode_vae(pixel_values)': (
            '训练循环中：latents = batch["latents"]，取代 _batch_encode_vae(pixel_values)'
        ),
        "once, before training: the latents of every sample": (
            "训练前执行一次：每个样本的 latents"
        ),
        'and in the data set: sample["latents"] = load_file(path)["latents"], '
        "which the loop reads": (
            '数据集中：sample["latents"] = load_file(path)["latents"]，由训练循环读取，'
        ),
        "instead of _batch_encode_vae(pixel_values)": "取代 _batch_encode_vae(pixel_values)",
        "once, before training: prompt_embeds of every caption": (
            "训练前执行一次：每条描述的 prompt_embeds"
        ),
        'and in the data set: sample["encoder_hidden_states"] = torch.load(...)["prompt_embeds"]': (
            '数据集中：sample["encoder_hidden_states"] = torch.load(...)["prompt_embeds"]'
        ),
        "in log_validation(...)": "写在 log_validation(...) 中",
        "src/flow_factory/trainers/abc.py, behind the optimizer; and step() behind "
        "optimizer.step()": (
            "src/flow_factory/trainers/abc.py，写在优化器之后；step() 写在 optimizer.step() 之后"
        ),
        "behind optimizer.step():": "写在 optimizer.step() 之后：",
        "before accelerator.prepare(...)": "写在 accelerator.prepare(...) 之前",
        "between from_pretrained(...) and inject_adapter_in_model(...)": (
            "写在 from_pretrained(...) 与 inject_adapter_in_model(...) 之间"
        ),
        "before accelerator.prepare(...): dimensions must be multiples of 16": (
            "写在 accelerator.prepare(...) 之前：维度须为 16 的倍数"
        ),
        "in the model: each rank holds a part of the tokens, all heads meet in the attention": (
            "在模型中：每个 rank 持有一部分 token，注意力计算时汇集所有头"
        ),
    }
)
_IN_SCRIPT = re.compile(r"(?P<wanted>.+) in the script instead of (?P<option>\S+)")


def in_chinese(code: str) -> str:
    """``code`` with the comments that are ours in Chinese; names and the user's own stay."""
    return _COMMENT.sub(lambda match: match["mark"] + _said(match["said"]), code)


def _said(comment: str) -> str:
    known = _CHINESE.get(comment)
    if known is not None:
        return known
    found = _IN_SCRIPT.fullmatch(comment)
    return f"在脚本中写 {found['wanted']}，取代 {found['option']}" if found is not None else comment
