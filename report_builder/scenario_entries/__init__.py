"""The catalog of scenarios, by framework."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from report_builder.scenario_entries.base import Entry
from report_builder.scenario_entries.diffusion import FLOW_FACTORY, VIDEOX_FUN
from report_builder.scenario_entries.engines import SGLANG, VLLM
from report_builder.scenario_entries.hf_trainer import GENERIC, HF_TRAINER
from report_builder.scenario_entries.llamafactory import LLAMAFACTORY
from report_builder.scenario_entries.swift import SWIFT

CATALOG: Mapping[str, tuple[Entry, ...]] = MappingProxyType(
    {
        "swift": SWIFT,
        "llamafactory": LLAMAFACTORY,
        "hf_trainer": HF_TRAINER,
        "videox_fun": VIDEOX_FUN,
        "flow_factory": FLOW_FACTORY,
        "vllm": VLLM,
        "sglang": SGLANG,
        "generic": GENERIC,
    }
)
