"""Models are told by their names; shapes reproduce the published parameter counts."""

import pytest

from flake8_gpu_training.models import model_of, parameters_named


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        # The counts shown on the checkpoints' pages.
        ("Qwen/Qwen2.5-7B-Instruct", 7_615_616_512),
        ("Qwen/Qwen2.5-0.5B", 494_032_768),
        ("Qwen/Qwen3-8B", 8_190_735_360),
        ("Qwen/Qwen3-30B-A3B-Instruct-2507", 30_532_122_624),
        ("meta-llama/Meta-Llama-3-8B-Instruct", 8_030_261_248),
        ("meta-llama/Llama-3.2-1B", 1_235_814_400),
        ("mistralai/Mixtral-8x7B-v0.1", 46_702_792_704),
        ("mistralai/Mistral-7B-v0.1", 7_241_732_096),
        ("google/gemma-2-9b-it", 9_241_705_984),
        ("google/gemma-3-1b-it", 999_885_952),
        ("microsoft/phi-4", 14_659_507_200),
        ("deepseek-ai/DeepSeek-R1-Distill-Qwen-1.5B", 1_777_088_000),
    ],
)
def test_shapes_reproduce_published_counts(name, parameters):
    model = model_of(name)
    assert model.parameters == parameters
    assert model.kind == "LLM"
    assert model.layers


def test_active_parameters_of_a_mixture_count_the_experts_used():
    model = model_of("Qwen/Qwen3-30B-A3B")
    assert model.is_moe
    assert 3.2e9 < model.active_parameters < 3.5e9


@pytest.mark.parametrize(
    ("name", "kind", "parameters"),
    [
        ("Qwen/Qwen2.5-VL-7B-Instruct", "MLLM", 7_000_000_000),
        ("Wan-AI/Wan2.1-T2V-14B", "video", 14_000_000_000),
        ("black-forest-labs/FLUX.1-dev", "image", None),
        ("Qwen/Qwen3-Next-80B-A3B-Instruct", "LLM", 80_000_000_000),
        ("bert-base-chinese", "encoder", None),
        ("facebook/opt-350m", "LLM", 350_000_000),
        ("torchvision/resnet50", "vision", None),
        ("/data/models/mymodel", "unknown", None),
    ],
)
def test_names_without_a_known_shape_give_kind_and_size_only(name, kind, parameters):
    model = model_of(name)
    assert (model.kind, model.parameters, model.layers) == (kind, parameters, None)


def test_a_checkpoint_folder_is_named_by_its_parent():
    assert model_of("output/Qwen2.5-7B/v0-2024/checkpoint-100").layers == 28


def test_an_unknown_name_gives_an_empty_model():
    assert model_of(None).parameters is None
    assert model_of("").kind == "unknown"


@pytest.mark.parametrize(
    ("text", "count"),
    [("7B", 7_000_000_000), ("0.5b", 500_000_000), ("350m", 350_000_000), ("8x7B", None)],
)
def test_sizes_as_people_write_them(text, count):
    assert parameters_named(text) == count
