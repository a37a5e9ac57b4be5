"""Models are told by their names; shapes reproduce the published parameter counts."""

import json

import pytest

from flake8_gpu_training.models import model_of, parameters_named
from flake8_gpu_training.sources.json_source import read_json


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
    ("name", "billions", "active"),
    [
        # As the models' reports and cards say; active parameters with embeddings.
        ("deepseek-ai/DeepSeek-V3-0324", 671, 37.6),
        ("deepseek-ai/DeepSeek-R1", 671, 37.6),
        ("deepseek-ai/DeepSeek-V2-Lite", 15.7, 2.7),
        ("moonshotai/Moonlight-16B-A3B", 16, 2.9),
        ("moonshotai/Kimi-K2-Instruct", 1026, 32.9),
        ("zai-org/GLM-4.5", 355, 33.6),
        ("zai-org/GLM-4.5-Air", 106, 13.4),
        ("MiniMaxAI/MiniMax-M2", 230, 11.0),
        ("openai/gpt-oss-20b", 20.9, 4.2),
        ("openai/gpt-oss-120b", 116.8, 5.7),
        ("Qwen/Qwen3-235B-A22B", 235, 22.2),
        ("Qwen/Qwen1.5-MoE-A2.7B", 14.3, 2.7),
    ],
)
def test_mixtures_agree_with_their_published_sizes(name, billions, active):
    model = model_of(name)
    assert model.is_moe
    assert model.parameters == pytest.approx(billions * 1e9, rel=0.01)
    assert model.active_parameters == pytest.approx(active * 1e9, rel=0.02)


@pytest.mark.parametrize(
    ("name", "billions"),
    [
        ("meta-llama/Llama-2-13b-chat-hf", 13.0),
        ("meta-llama/Llama-3.1-70B", 70.6),
        ("meta-llama/Llama-3.1-405B", 405.9),
        ("TinyLlama/TinyLlama-1.1B-Chat-v1.0", 1.1),
        ("mistralai/Mistral-Nemo-Instruct-2407", 12.2),
        ("Qwen/Qwen2.5-72B-Instruct", 72.7),
        ("Qwen/Qwen3-32B", 32.8),
        ("google/gemma-2-27b-it", 27.2),
        ("microsoft/Phi-4-mini-instruct", 3.84),
        ("allenai/OLMo-2-1124-13B", 13.7),
        ("tiiuae/Falcon3-7B-Base", 7.46),
        ("01-ai/Yi-1.5-34B-Chat", 34.4),
        ("internlm/internlm2_5-7b-chat", 7.7377),
        ("baichuan-inc/Baichuan2-7B-Chat", 7.5),
        ("THUDM/chatglm3-6b", 6.24),
        ("THUDM/glm-4-9b-chat", 9.4),
        ("HuggingFaceTB/SmolLM3-3B", 3.08),
    ],
)
def test_dense_decoders_agree_with_their_published_sizes(name, billions):
    model = model_of(name)
    assert not model.is_moe
    assert model.parameters == pytest.approx(billions * 1e9, rel=0.01)


@pytest.mark.parametrize(
    ("name", "kind", "parameters"),
    [
        ("Qwen/Qwen2.5-VL-7B-Instruct", "MLLM", 8_292_170_000),
        ("Qwen/Qwen2.5-VL-3B-Instruct-AWQ", "MLLM", 3_754_620_000),
        ("Qwen/Qwen2.5-VL-72B-Instruct", "MLLM", 72_706_203_648),
        ("Qwen/Qwen3-VL-8B-Instruct", "MLLM", 8_190_735_360),
        ("Qwen/Qwen3-VL-2B-Instruct", "MLLM", 2_000_000_000),
        ("OpenGVLab/InternVL3-8B", "MLLM", 8_000_000_000),
        ("Qwen/Qwen3-Next-80B-A3B-Instruct", "LLM", 80_000_000_000),
        ("deepseek-ai/DeepSeek-V3.2-Exp", "LLM", None),
        ("zai-org/GLM-4.5V", "MLLM", None),
        ("facebook/opt-350m", "LLM", 350_000_000),
        ("Lightricks/LTX-Video", "video", None),
        ("/data/models/mymodel", "unknown", None),
    ],
)
def test_names_without_a_known_shape_give_kind_and_size_only(name, kind, parameters):
    model = model_of(name)
    assert (model.kind, model.parameters, model.layers) == (kind, parameters, None)


@pytest.mark.parametrize(
    ("name", "kind", "millions", "active", "layers"),
    [
        ("Wan-AI/Wan2.1-T2V-14B", "video", 14_000, 14_000, 40),
        ("Wan-AI/Wan2.2-T2V-A14B", "video", 27_000, 14_000, 40),
        ("alibaba-pai/Wan2.2-Fun-A14B-InP", "video", 27_000, 14_000, 40),
        ("Wan-AI/Wan2.2-TI2V-5B", "video", 5_000, 5_000, 30),
        ("black-forest-labs/FLUX.1-dev", "image", 12_000, 12_000, 57),
        ("stable-diffusion-v1-5/stable-diffusion-v1-5", "image", 860, 860, None),
        ("Qwen/Qwen-Image-Edit-2509", "image", 20_000, 20_000, None),
        ("Tongyi-MAI/Z-Image-Turbo", "image", 6_150, 6_150, 30),
        ("google-bert/bert-base-uncased", "encoder", 110, 110, 12),
        ("bert-base-chinese", "encoder", 103, 103, 12),
        ("torchvision/resnet50", "vision", 25.56, 25.56, None),
        ("timm/vit_base_patch16_224.augreg_in21k", "vision", 86.57, 86.57, 12),
        ("openai/whisper-large-v3", "audio", 1550, 1550, None),
    ],
)
def test_models_that_are_no_decoders_have_their_published_size(
    name, kind, millions, active, layers
):
    model = model_of(name)
    assert (model.kind, model.layers) == (kind, layers)
    assert (model.parameters, model.active_parameters) == (millions * 1e6, active * 1e6)
    assert not model.is_moe


@pytest.mark.parametrize(
    ("name", "parameters", "active"),
    [
        ("meta-llama/Llama-4-Scout-17B-16E-Instruct", None, 17_000_000_000),
        ("allenai/OLMoE-1B-7B-0924", 7_000_000_000, 1_000_000_000),
    ],
)
def test_names_that_tell_what_works_on_a_token(name, parameters, active):
    model = model_of(name)
    assert (model.parameters, model.active_parameters) == (parameters, active)
    assert model.is_moe


def test_a_turbo_of_another_size_is_not_taken_for_the_large_one():
    assert model_of("openai/whisper-large-v3-turbo").parameters is None


def config_of(values):
    return read_json(json.dumps(values), "model/config.json").documents[0]


def test_a_configuration_gives_shape_and_count():
    model = model_of(
        "model",
        config_of(
            {
                "model_type": "qwen2",
                "hidden_size": 3584,
                "intermediate_size": 18944,
                "num_attention_heads": 28,
                "num_hidden_layers": 28,
                "num_key_value_heads": 4,
                "vocab_size": 152064,
                "tie_word_embeddings": False,
            }
        ),
    )
    assert model.parameters == 7_615_616_512
    assert (model.kind, model.heads, model.source) == ("LLM", 28, "model/config.json")


def test_a_configuration_of_a_mixture_counts_dense_and_shared_layers():
    values = {
        "model_type": "deepseek_v2",
        "first_k_dense_replace": 1,
        "hidden_size": 2048,
        "intermediate_size": 10944,
        "kv_lora_rank": 512,
        "moe_intermediate_size": 1408,
        "n_routed_experts": 64,
        "n_shared_experts": 2,
        "num_attention_heads": 16,
        "num_experts_per_tok": 6,
        "num_hidden_layers": 27,
        "num_key_value_heads": 16,
        "q_lora_rank": None,
        "qk_nope_head_dim": 128,
        "qk_rope_head_dim": 64,
        "v_head_dim": 128,
        "vocab_size": 102400,
    }
    model = model_of("m", config_of(values))
    assert model.is_moe
    assert model.parameters == model_of("deepseek-ai/DeepSeek-V2-Lite").parameters


def test_a_configuration_of_chatglm_and_of_gpt2_is_read_by_its_own_names():
    glm = {
        "model_type": "chatglm",
        "num_layers": 28,
        "hidden_size": 4096,
        "ffn_hidden_size": 13696,
        "kv_channels": 128,
        "multi_query_group_num": 2,
        "num_attention_heads": 32,
        "padded_vocab_size": 65024,
    }
    assert model_of("m", config_of(glm)).parameters == model_of("THUDM/chatglm3-6b").parameters
    gpt2 = {"model_type": "gpt2", "n_layer": 12, "n_embd": 768, "n_head": 12, "vocab_size": 50257}
    found = model_of("m", config_of({**gpt2, "tie_word_embeddings": True}))
    assert found.parameters == pytest.approx(124e6, rel=0.01)


def test_a_configuration_with_a_vision_tower_is_multimodal():
    text = {"model_type": "llama", "num_hidden_layers": 32, "hidden_size": 4096}
    model = model_of("m", config_of({"text_config": text, "vision_config": {"depth": 2}}))
    assert (model.kind, model.layers, model.parameters) == ("MLLM", 32, None)


def test_a_diffusion_modules_configuration_is_no_language_model():
    values = {"_class_name": "WanTransformer3DModel", "num_layers": 40, "num_attention_heads": 40}
    model = model_of("ckpt/wan-t2v/transformer", config_of(values))
    assert (model.layers, model.parameters, model.is_hf_family) == (40, None, False)
    assert model.kind != "LLM"


@pytest.mark.parametrize("values", [[], "text", {"hidden_size": "x", "num_hidden_layers": -1}])
def test_an_odd_configuration_gives_no_numbers(values):
    assert model_of("m", config_of(values)).parameters is None


def test_a_checkpoint_folder_is_named_by_its_parent():
    assert model_of("output/Qwen2.5-7B/v0-2024/checkpoint-100").layers == 28


def test_a_folder_of_modelscope_is_named_as_its_model():
    assert model_of("./LLM-Research/Meta-Llama-3___1-8B-Instruct").layers == 32


def test_an_unknown_name_gives_an_empty_model():
    assert model_of(None).parameters is None
    assert model_of("").kind == "unknown"


@pytest.mark.parametrize(
    ("text", "count"),
    [("7B", 7_000_000_000), ("0.5b", 500_000_000), ("350m", 350_000_000), ("8x7B", None)],
)
def test_sizes_as_people_write_them(text, count):
    assert parameters_named(text) == count


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("baidu/ERNIE-Image-Turbo", "image"),
        ("/models/GLM-Image/", "image"),
        ("tencent/HunyuanImage-3.0", "image"),
        ("baidu/ERNIE-4.5-0.3B-PT", "LLM"),
        ("zai-org/GLM-4.6", "LLM"),
    ],
)
def test_families_of_language_models_make_images_too(name: str, kind: str) -> None:
    assert model_of(name).kind == kind


@pytest.mark.parametrize(
    ("name", "kind", "is_moe"),
    [
        ("mistralai/Mistral-Large-3-675B-Instruct-2512", "MLLM", True),
        ("mistralai/Ministral-3-14B-Instruct-2512", "MLLM", False),
        ("mistralai/Mistral-Large-Instruct-2407", "LLM", False),
        ("moonshotai/Kimi-K2.5", "MLLM", True),
        ("Qwen/Qwen3.6-27B-FP8", "MLLM", False),
        ("deepseek-ai/DeepSeek-V3.2-Exp", "LLM", True),
        ("deepseek-ai/DeepSeek-R1-Distill-Qwen-14B", "LLM", False),
        ("zai-org/GLM-5.1-FP8", "LLM", True),
        ("zai-org/GLM-4-9B-0414", "LLM", False),
        ("tencent/Hunyuan-A13B-Instruct", "LLM", True),
        ("inclusionAI/Ring-1T-FP8", "LLM", True),
        ("LiquidAI/LFM2.5-1.2B-Instruct", "LLM", False),
        ("LiquidAI/LFM2.5-8B-A1B", "LLM", True),
        ("MiniMaxAI/MiniMax-M2.7", "LLM", True),
        ("stepfun-ai/Step-3.7-Flash", "MLLM", True),
        ("google/gemma-4-31B-it", "MLLM", False),
    ],
)
def test_kind_and_experts_by_the_family(name: str, kind: str, is_moe: bool) -> None:
    found = model_of(name)
    assert (found.kind, found.is_moe) == (kind, is_moe)


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("models/llama2-7b-2.7b-10bt", None),
        ("Sheared-LLaMA-2.7B-of-Llama-2-7B", None),
        ("pythia-1.4b-300b-tokens", None),
        ("meta-llama/Llama-2-7b-hf", 6_738_415_616),
        ("open_llama_3b_600bt_preview", 3_000_000_000),
        ("Qwen/Qwen2.5-7B-Instruct-1M", 7_615_616_512),
        ("outputs/qwen2.5-7b-from-qwen2.5-7b", 7_615_616_512),
        ("allenai/OLMoE-1B-7B-0924", 7_000_000_000),
        ("Qwen/Qwen3-30B-A3B", 30_532_122_624),
    ],
)
def test_a_name_of_two_sizes_tells_none(name, parameters):
    assert model_of(name).parameters == parameters


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("google/flan-t5-base", "encoder-decoder"),
        ("t5-small", "encoder-decoder"),
        ("facebook/bart-large-cnn", "encoder-decoder"),
        ("Helsinki-NLP/opus-mt-en-fr", "encoder-decoder"),
        ("google/t5gemma-2b", "LLM"),
        ("bartowski/Llama-3-8B", "LLM"),
        ("microsoft/speecht5_tts", "audio"),
        ("microsoft/beit-base-patch16-224", "vision"),
    ],
)
def test_models_that_translate_are_encoders_with_decoders(name: str, kind: str) -> None:
    assert model_of(name).kind == kind
