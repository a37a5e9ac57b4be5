"""Rules of frameworks/refusals/transformers about quantization, generation and Adafactor."""

from __future__ import annotations

import pytest
from checks_support import findings, runs_alone

SOURCE = """\
import torch
import transformers
from transformers import Trainer, TrainingArguments, {name}

config = {name}({arguments})
args = TrainingArguments("out")
Trainer(model=model, args=args, train_dataset=data).train()
"""
NEW = "5.24.0"


def messages(name: str, arguments: str, release: str = NEW) -> list[str]:
    source = SOURCE.format(name=name, arguments=arguments)
    return [f.message for f in findings(runs_alone(source, transformers=release), "GPU024")]


BNB = "BitsAndBytesConfig"
FP_QUANT = "forward_dtype='mxfp4', "
BEAMS = "num_return_sequences=3, num_beams="


@pytest.mark.parametrize(
    ("name", "refused", "taken", "instruction"),
    [
        (BNB, "load_in_4bit=True, load_in_8bit=True", "load_in_4bit=True", "drop load_in_8bit"),
        (BNB, "load_in_4bit='true'", "load_in_4bit=True", "give load_in_4bit True or False"),
        (BNB, "load_in_8bit=1", "load_in_8bit=False", "give load_in_8bit True or False"),
        (BNB, "llm_int8_threshold=6", "llm_int8_threshold=6.0", "give llm_int8_threshold a number"),
        (
            BNB,
            "llm_int8_skip_modules='lm_head'",
            "llm_int8_skip_modules=['lm_head']",
            "give llm_int8_skip_modules a list",
        ),
        (
            BNB,
            "llm_int8_enable_fp32_cpu_offload=1",
            "llm_int8_enable_fp32_cpu_offload=True",
            "give llm_int8_enable_fp32_cpu_offload True or False",
        ),
        (
            BNB,
            "llm_int8_has_fp16_weight=None",
            "llm_int8_has_fp16_weight=False",
            "give llm_int8_has_fp16_weight True or False",
        ),
        (BNB, "bnb_4bit_quant_type=4", "bnb_4bit_quant_type='nf4'", "give bnb_4bit_quant_type a t"),
        (
            BNB,
            "bnb_4bit_use_double_quant='yes'",
            "bnb_4bit_use_double_quant=True",
            "give bnb_4bit_use_double_quant True or False",
        ),
        (
            BNB,
            "bnb_4bit_compute_dtype=16",
            "bnb_4bit_compute_dtype='bfloat16'",
            "give bnb_4bit_compute_dtype a torch type",
        ),
        (
            BNB,
            "bnb_4bit_quant_storage='int4'",
            "bnb_4bit_quant_storage=torch.bfloat16",
            "give bnb_4bit_quant_storage a torch type",
        ),
        ("GPTQConfig", "bits=5, dataset='c4'", "bits=4, dataset='c4'", "give bits one of 2, 3"),
        ("GPTQConfig", "bits=4, group_size=0", "bits=4, group_size=-1", "give group_size a number"),
        ("GPTQConfig", "bits=4, damp_percent=1", "bits=4, damp_percent=0.1", "give damp_percent a"),
        (
            "GPTQConfig",
            "bits=4, dataset='wikitext'",
            "bits=4, dataset=['a text']",
            "give dataset wikitext2, c4 or c4-new",
        ),
        ("AutoRoundConfig", "bits=1", "bits=5", "give bits 2 to 8"),
        ("AutoRoundConfig", "group_size=0", "group_size=-1", "give group_size a number"),
        ("AwqConfig", "format='exllama'", "format='gemv'", "give format one of gemm"),
        ("AwqConfig", "backend='cuda'", "backend='marlin'", "give backend one of auto"),
        ("HqqConfig", "axis=2", "axis=1", "give axis one of 0, 1"),
        ("AqlmConfig", "in_group_size=8.0", "in_group_size=8", "give in_group_size a whole"),
        ("AqlmConfig", "out_group_size='1'", "out_group_size=1", "give out_group_size a whole"),
        ("AqlmConfig", "num_codebooks=1.5", "num_codebooks=1", "give num_codebooks a whole"),
        ("AqlmConfig", "nbits_per_codebook=None", "nbits_per_codebook=16", "give nbits_per_code"),
        (
            "AqlmConfig",
            "linear_weights_not_to_quantize='lm_head'",
            "linear_weights_not_to_quantize=None",
            "give linear_weights_not_to_quantize a list",
        ),
        ("VptqLayerConfig", "is_indice_packed=False", "enable_norm=True", "give is_indice"),
        ("VptqConfig", "enable_proxy_error=True", "enable_proxy_error=False", "give enable_proxy"),
        ("QuantoConfig", "weights='int3'", "weights='int4'", "give weights one of float8"),
        ("QuantoConfig", "activations='int4'", "activations=None", "give activations one of"),
        ("EetqConfig", "weights='int4'", "weights='int8'", "give weights int8"),
        ("HiggsConfig", "bits=5", "bits=4", "give bits one of 2, 3, 4"),
        ("HiggsConfig", "p=3", "p=2", "give p one of 1, 2"),
        ("HiggsConfig", "group_size=32", "group_size=64", "give group_size one of 64"),
        ("HiggsConfig", "hadamard_size=100", "hadamard_size=256", "make hadamard_size a multiple"),
        ("FPQuantConfig", "forward_dtype='fp8'", "forward_dtype='mxfp4'", "give forward_dtype one"),
        (
            "FPQuantConfig",
            "forward_method='quest'",
            FP_QUANT + "forward_method='quest', hadamard_group_size=32",
            "give forward_method one of abs_max",
        ),
        (
            "FPQuantConfig",
            FP_QUANT + "hadamard_group_size=16",
            "hadamard_group_size=16",
            "give hadamard_group_size one of 32, 64, 128",
        ),
        (
            "FPQuantConfig",
            FP_QUANT + "hadamard_group_size=32, backward_dtype='fp8'",
            FP_QUANT + "hadamard_group_size=32, backward_dtype='mxfp8'",
            "give backward_dtype one of bf16",
        ),
        ("FPQuantConfig", "backward_dtype='mxfp4'", "backward_dtype='bf16'", "give backward_dtype"),
        ("FPQuantConfig", "transform_init='dct'", "transform_init='gsr'", "give transform_init"),
        ("TorchAoConfig", "quant_type='int4_weight_only'", "quant_type=kind", "pass an object of"),
        ("BitNetQuantConfig", "linear_class='linear'", "linear_class='bitlinear'", "give linear_"),
        (
            "BitNetQuantConfig",
            "quantization_mode='on'",
            "quantization_mode='online'",
            "give quantization_mode one of",
        ),
        ("SpQRConfig", "bits=4, shapes=shapes", "bits=3, shapes=shapes", "give bits 3"),
        ("SpQRConfig", "beta1=8, shapes=shapes", "beta1=16, shapes=shapes", "give beta1 16"),
        ("SpQRConfig", "beta2=8, shapes=shapes", "beta2=16, shapes=shapes", "give beta2 16"),
        ("SpQRConfig", "shapes=[1]", "shapes={'a': 1}", "give shapes a dict"),
        (
            "FineGrainedFP8Config",
            "activation_scheme='none'",
            "activation_scheme='static'",
            "give activation_scheme one of dynamic, static",
        ),
        (
            "FineGrainedFP8Config",
            "weight_block_size=(128, 0)",
            "weight_block_size=(128, 128)",
            "give weight_block_size two whole numbers",
        ),
        ("FineGrainedFP8Config", "scale_fmt='e8m0'", "scale_fmt='ue8m0'", "give scale_fmt one of"),
        ("FineGrainedFP8Config", "expert_dtype='int8'", "expert_dtype='fp4'", "give expert_dtype"),
        ("MetalConfig", "bits=3", "bits=4", "give bits one of 2, 4, 8"),
        ("MetalConfig", "group_size=0", "group_size=64", "give group_size a whole number above 0"),
        ("SinqConfig", "nbits='four'", "nbits=4", "give nbits a whole number"),
        ("SinqConfig", "group_size=1.5", "group_size=64", "give group_size a whole number"),
        ("SinqConfig", "tiling_mode=1", "tiling_mode='1D'", "give tiling_mode a text"),
        ("SinqConfig", "method='gptq'", "method='asinq'", "give method one of sinq, asinq"),
        (
            "GenerationConfig",
            "early_stopping='always'",
            "early_stopping='never'",
            "give early_stopping one of True, False, never",
        ),
        ("GenerationConfig", "max_new_tokens=0", "max_new_tokens=1", "give max_new_tokens a whole"),
        (
            "GenerationConfig",
            "assistant_ensemble_weight=1.0",
            "assistant_ensemble_weight=0.5",
            "give assistant_ensemble_weight a number between",
        ),
        (
            "GenerationConfig",
            "cache_implementation='paging'",
            "cache_implementation='static'",
            "give cache_implementation one of static",
        ),
        ("GenerationConfig", "compile_config=True", "compile_config=made", "give compile_config"),
        ("GenerationConfig", "num_return_sequences=2", BEAMS + "3", "set do_sample=True"),
        (
            "GenerationConfig",
            "num_return_sequences=2",
            "num_return_sequences=2, do_sample=True",
            "set do_sample=True",
        ),
        ("GenerationConfig", BEAMS + "2", BEAMS + "4", "set num_beams to 3 or more"),
        (
            "GenerationConfig",
            "forced_eos_token_id=2, suppress_tokens=[1, 2]",
            "forced_eos_token_id=3, suppress_tokens=[1, 2]",
            "take them out of suppress_tokens",
        ),
        ("GenerationConfig", "streamer=s", "max_length=20", "pass streamer to generate()"),
        (
            "WatermarkingConfig",
            "seeding_scheme='hash'",
            "seeding_scheme='selfhash'",
            "give seeding_scheme one of selfhash",
        ),
        ("WatermarkingConfig", "greenlist_ratio=2", "greenlist_ratio=0.5", "give greenlist_ratio"),
        ("WatermarkingConfig", "context_width=0", "context_width=1", "give context_width a whole"),
        (
            "SynthIDTextWatermarkingConfig",
            "ngram_len=5, keys=[1], sampling_table_size=2**25",
            "ngram_len=5, keys=[1], sampling_table_size=2**24",
            "give sampling_table_size 16777216 or less",
        ),
    ],
)
def test_a_configuration(name: str, refused: str, taken: str, instruction: str) -> None:
    (message,) = messages(name, refused)
    assert message.startswith(instruction)
    assert f"{name} raises" in message
    assert messages(name, taken) == []


@pytest.mark.parametrize(
    ("name", "refused", "taken", "instruction"),
    [
        ("AutoRoundConfig", "bits=5", "bits=8", "give bits one of 2, 3, 4, 8"),
        ("AwqConfig", "version='gemm2'", "version='GEMV'", "give version gemm, gemv"),
        ("GenerationConfig", "early_stopping=None", "early_stopping=True", "give early_stopping"),
    ],
)
def test_an_older_release(name: str, refused: str, taken: str, instruction: str) -> None:
    (message,) = messages(name, refused, "4.57.6")
    assert message.startswith(instruction)
    assert messages(name, taken, "4.57.6") == []


def test_adafactor() -> None:
    source = SOURCE.replace("config = {name}({arguments})", "Adafactor(params=p, {arguments})")
    for refused, taken, instruction in (
        ("lr=1e-4", "lr=1e-4, relative_step=False", "set relative_step=False"),
        ("relative_step=False, warmup_init=True", "warmup_init=True", "drop warmup_init"),
    ):
        runs = runs_alone(source.format(name="Adafactor", arguments=refused), transformers=NEW)
        (found,) = findings(runs, "GPU024")
        assert found.message.startswith(instruction)
        runs = runs_alone(source.format(name="Adafactor", arguments=taken), transformers=NEW)
        assert findings(runs, "GPU024") == []


@pytest.mark.parametrize(
    "unsure",
    ["load_in_4bit=four, load_in_8bit=True", "load_in_4bit=True, **more"],
)
def test_what_is_not_known_is_not_told(unsure: str) -> None:
    assert messages(BNB, unsure) == []


def test_other_keywords_are_taken() -> None:
    source = SOURCE.format(name=BNB, arguments="load_in_4bit=True, load_in_4bits=True")
    runs = runs_alone(source, transformers=NEW)
    assert [
        f.message for code in ("GPU005", "GPU006", "GPU007") for f in findings(runs, code)
    ] == []
