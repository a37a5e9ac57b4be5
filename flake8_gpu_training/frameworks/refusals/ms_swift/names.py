"""Names that ms-swift registers, of templates and of types of models, release by release.

String constants of the classes of swift/template/constant.py and swift/model/constant.py in the
releases of the tables; external plugins register more.
"""

from __future__ import annotations

from flake8_gpu_training.frameworks.reading import parsed

Names = tuple[tuple[str, str, str], ...]
"""First and last release, and the names that these and those between them have."""


def names_of(names: Names, version: str) -> frozenset[str]:
    """The names that a release of the tables has."""
    wanted = parsed(version)
    return frozenset(
        name
        for first, last, them in names
        if parsed(first) <= wanted <= parsed(last)
        for name in them.split()
    )


TEMPLATES: Names = (
    (
        "3.0.3",
        "4.6.0",
        """
        atom aya baichuan bluelm c4ai chatglm2 chatml codefuse codefuse_codellama codegeex4
        cogagent_chat cogagent_vqa cogvlm cogvlm2 cogvlm2_video dbrx deepseek deepseek_coder
        deepseek_janus deepseek_r1 deepseek_v2_5 deepseek_vl deepseek_vl2 default devstral
        doc_owl2 dummy emu3_chat emu3_gen florence gemma glm4 glm4v glm_edge_v got_ocr2 idefics3
        internlm internlm2 internlm2_reward internlm3 internvl internvl2 internvl2_5
        internvl2_phi3 internvl_phi3 ixcomposer2 llama llama3 llama3_1_omni llama3_2
        llama3_2_vision llama3_llava_next llama3_llava_next_hf llava1_5_hf llava1_6_mistral
        llava1_6_mistral_hf llava1_6_vicuna_hf llava1_6_yi llava1_6_yi_hf llava_llama3_1_hf
        llava_llama3_hf llava_next_qwen llava_next_qwen_hf llava_next_video_hf llava_onevision_hf
        longwriter_llama marco_o1 megrez megrez_omni mengzi minicpm minicpmv minicpmv2_5
        minicpmv2_6 minimax minimax_vl mistral_nemo modelscope_agent molmo mplug_owl2 mplug_owl3
        mplug_owl3_241101 numina openbuddy openbuddy2 orion ovis1_6 ovis1_6_llama3 paligemma phi3
        phi3_vision phi4 pixtral qvq qwen qwen2_5 qwen2_5_math qwen2_5_math_prm qwen2_audio
        qwen2_vl qwen_audio qwen_vl qwq reflection skywork skywork_o1 sus telechat telechat2
        valley wizardlm2 wizardlm2_moe xcomposer2_4khd xcomposer2_5 xverse yi_coder yi_vl yuan
        zephyr ziya
        """,
    ),
    (
        "3.2.2",
        "4.6.0",
        """
        baichuan_m1 gemma3_text gemma3_vision ling mistral_2503 moonlight phi4_multimodal
        qwen2_gme qwq_preview
        """,
    ),
    (
        "3.6.4",
        "4.6.0",
        """
        bert ernie gemma3n glm4_5 hunyuan keye_vl qwen3_reranker qwen3_thinking
        """,
    ),
    (
        "3.9.3",
        "4.6.0",
        """
        bge_reranker ernie_thinking qwen3_coder qwen3_guard qwen3_omni qwen3_vl sail_vl2
        step_audio2_mini
        """,
    ),
    (
        "4.0.4",
        "4.6.0",
        """
        chatglm4 chatglm4v deepseek_ocr2 glm_ocr minicpmo minicpmo4_5 minimax_m2_1 minimax_m2_5
        olmoe olmoe_0924 paddle_ocr_1_5 qwen3_5 step3_vl
        """,
    ),
    (
        "4.6.0",
        "4.6.0",
        """
        clef deepseek_v41 generic_decision glm5_3 glm5_next jev minicpm5_2b minicpmv4_7
        monkeyocrv2 omnijev xing4_0
        """,
    ),
    (
        "3.1.1.post1",
        "4.6.0",
        """
        deepseek_janus_pro got_ocr2_hf mistral_2501 ovis2 qwen2_5_vl step_audio
        """,
    ),
    (
        "3.10.3",
        "4.6.0",
        """
        deepseek_ocr ernie_vl ernie_vl_thinking jina_reranker_m0 kimi_k2 llava_onevision1_5
        minimax_m2 paddle_ocr
        """,
    ),
    (
        "3.8.3",
        "4.6.0",
        """
        deepseek_v3_1 glm4_5v interns1 internvl_hf keye_vl_1_5 ling2 longchat minicpmv4_5
        qwen3_nothinking ring2 seed_oss
        """,
    ),
    (
        "4.2.3",
        "4.6.0",
        """
        deepseek_v4 hy_v3 kimi_k25 minicpm5 minicpmv4_6 molmo2 ring2_5
        """,
    ),
    (
        "4.5.3",
        "4.6.0",
        """
        deepseek_v4_flash kimi_k3 ling3 llava_onevision2 mimo_v2 moss_vl muse_glimmer nemotron_h
        qwen3_5_emb qwen3_8 spark2_5 wemm_embedding
        """,
    ),
    (
        "4.3.2",
        "4.6.0",
        """
        diffusion_gemma glm5_2 minimax_m3_vl
        """,
    ),
    (
        "3.5.3",
        "4.6.0",
        """
        dots1 mimo_rl mimo_vl minimax_m1 qwen3_emb
        """,
    ),
    (
        "3.7.3",
        "4.6.0",
        """
        dots_ocr gpt_oss hunyuan_moe internvl3_5 internvl3_5_gpt midashenglm minicpmv4 ovis2_5
        """,
    ),
    (
        "4.1.3",
        "4.6.0",
        """
        gemma4 gemma4_nothinking glm5_1 minimax_m2_7 qwen3_asr yufeng_xguard
        """,
    ),
    (
        "3.3.1",
        "3.12.6",
        """
        glm4_0414
        """,
    ),
    (
        "3.6.4",
        "3.12.6",
        """
        glm4_1v
        """,
    ),
    (
        "3.12.6",
        "4.6.0",
        """
        glm4_7 hunyuan_ocr iquestcoder minimind qwen3_vl_emb qwen3_vl_reranker youtu_llm
        """,
    ),
    (
        "3.3.1",
        "4.6.0",
        """
        glm4_z1_rumination kimi_vl llama4 qwen2_5_omni
        """,
    ),
    (
        "4.4.2",
        "4.6.0",
        """
        hy_v3_preview ovis_ocr2 qwen3_tts unlimited_ocr
        """,
    ),
    (
        "3.0.3",
        "3.12.6",
        """
        minicpmo2_6
        """,
    ),
    (
        "3.11.3",
        "4.6.0",
        """
        mistral_2506 mistral_2512 mistral_2512_thinking
        """,
    ),
    (
        "3.4.1.post1",
        "4.6.0",
        """
        qwen3
        """,
    ),
)
"""Values of ``template``."""

MODEL_TYPES: Names = (
    (
        "3.0.3",
        "3.12.6",
        """
        atom deepseek_moe deepseek_r1 deepseek_r1_distill deepseek_v2_5 internvl2 internvl2_5
        internvl2_phi3 internvl_phi3 llama3 llama3_1 llama3_2 longwriter_llama3_1 marco_o1 megrez
        mengzi3 minicpmo2_6 numina openbuddy_llama3 ovis1_6_llama3 qvq qwen2_5 qwen2_5_math
        qwen2_5_math_reward qwq reflection skywork_o1 sus yi_coder ziya
        """,
    ),
    (
        "3.0.3",
        "4.6.0",
        """
        aya baichuan baichuan2 bert bluelm c4ai chatglm2 chatglm3 codefuse_codegeex2
        codefuse_codellama codefuse_qwen codegeex4 cogagent_chat cogagent_vqa cogvlm cogvlm2
        cogvlm2_video dbrx deepseek deepseek_janus deepseek_v2 deepseek_vl deepseek_vl2 doc_owl2
        emu3_chat emu3_gen florence gemma gemma2 gemma_reward glm4 glm4v glm_edge glm_edge_v
        got_ocr2 grok idefics3 internlm internlm2 internlm2_reward internlm3 internvl llama
        llama3_1_omni llama3_2_reward llama3_2_vision llama3_llava_next llama3_llava_next_hf
        llava1_5_hf llava1_6_mistral llava1_6_mistral_hf llava1_6_vicuna_hf llava1_6_yi
        llava1_6_yi_hf llava_llama3_1_hf llava_llama3_hf llava_next_qwen llava_next_qwen_hf
        llava_next_video_hf llava_next_video_yi_hf llava_onevision_hf mamba megrez_omni minicpm
        minicpm3 minicpm_chatml minicpm_moe minicpmv minicpmv2_5 minicpmv2_6 minimax minimax_vl
        mistral mistral_nemo mixtral modelscope_agent modern_bert molmo molmoe mplug_owl2
        mplug_owl2_1 mplug_owl3 mplug_owl3_241101 openbuddy_llama openbuddy_mistral
        openbuddy_mixtral orion ovis1_6 paligemma phi2 phi3 phi3_moe phi3_small phi3_vision phi4
        pixtral polylm qwen qwen2 qwen2_5_prm qwen2_audio qwen2_moe qwen2_reward qwen2_vl
        qwen_audio qwen_vl seggpt skywork telechat telechat2 valley wizardlm2 wizardlm2_moe
        xcomposer2 xcomposer2_4khd xcomposer2_5 xcomposer2_5_ol_audio xverse xverse_moe yi yi_vl
        yuan2 zephyr
        """,
    ),
    (
        "3.2.2",
        "4.6.0",
        """
        baichuan_m1 gemma3_text gemma3_vision ling phi4_multimodal qwen2_gme
        """,
    ),
    (
        "4.2.3",
        "4.6.0",
        """
        bailing_hybrid bailing_moe deepseek_v4 hy_v3 kimi_k25 minicpmv4_6 molmo2
        """,
    ),
    (
        "3.9.3",
        "4.6.0",
        """
        bge_reranker gemma_emb qwen3_vl sail_vl2 step_audio2_mini
        """,
    ),
    (
        "4.0.4",
        "4.6.0",
        """
        chatglm4 chatglm4v deepseek_ocr2 deepseek_v3 deepseek_v32 ernie4_5 ernie4_5_moe glm4_moe
        glm4_moe_lite glm4v_moe glm_moe_dsa glm_ocr hunyuan_v1_dense internvl_chat minicpmo
        mistral3 mistral3_2506 olmoe qwen3_5 qwen3_5_moe qwen3_omni_moe qwen3_vl_moe step3_vl
        """,
    ),
    (
        "4.6.0",
        "4.6.0",
        """
        clef deepseek_v41 generic_decision glm5_next jev minicpmv4_7 monkeyocrv2 omnijev xing4_0
        """,
    ),
    (
        "3.1.1.post1",
        "4.6.0",
        """
        deepseek_janus_pro got_ocr2_hf mistral_2501 modern_bert_gte ovis2 qwen2_5_vl qwen2_gte
        step_audio
        """,
    ),
    (
        "3.10.3",
        "4.6.0",
        """
        deepseek_ocr ernie_vl jina_reranker_m0 llava_onevision1_5 minimax_m2 paddle_ocr
        """,
    ),
    (
        "3.8.3",
        "3.12.6",
        """
        deepseek_v3_1 glm4_5v internvl_gpt_hf internvl_hf qwen3_next_thinking qwen3_nothinking
        """,
    ),
    (
        "3.11.3",
        "3.12.6",
        """
        deepseek_v3_2 mistral_2506 mistral_2512 mistral_2512_thinking
        """,
    ),
    (
        "3.7.3",
        "4.6.0",
        """
        devstral dots_ocr gpt_oss midashenglm minicpmv4 ovis2_5
        """,
    ),
    (
        "4.3.2",
        "4.6.0",
        """
        diffusion_gemma gemma4_unified minimax_m3_vl paddleocr_vl
        """,
    ),
    (
        "3.5.3",
        "4.6.0",
        """
        dots1 minimax_m1 qwen3_emb
        """,
    ),
    (
        "3.6.4",
        "3.12.6",
        """
        ernie glm4_1v glm4_5 qwen3_moe_thinking
        """,
    ),
    (
        "3.9.3",
        "3.12.6",
        """
        ernie_thinking qwen3_coder qwen3_guard qwen3_moe_vl qwen3_omni
        """,
    ),
    (
        "3.10.3",
        "3.12.6",
        """
        ernie_vl_thinking kimi_k2
        """,
    ),
    (
        "3.6.4",
        "4.6.0",
        """
        gemma3n hunyuan keye_vl modern_bert_gte_reranker qwen3_reranker
        """,
    ),
    (
        "4.1.3",
        "4.6.0",
        """
        gemma4 qwen3_asr
        """,
    ),
    (
        "3.3.1",
        "3.12.6",
        """
        glm4_0414 glm4_z1_rumination internvl3
        """,
    ),
    (
        "3.12.6",
        "3.12.6",
        """
        glm4_7 minimind
        """,
    ),
    (
        "3.7.3",
        "3.12.6",
        """
        hunyuan_moe internvl3_5 internvl3_5_gpt qwen3_thinking
        """,
    ),
    (
        "3.12.6",
        "4.6.0",
        """
        hunyuan_ocr iquestcoder qwen3_vl_emb qwen3_vl_reranker youtu_llm
        """,
    ),
    (
        "3.8.3",
        "4.6.0",
        """
        interns1 keye_vl_1_5 longchat minicpmv4_5 qwen3_next seed_oss
        """,
    ),
    (
        "4.5.3",
        "4.6.0",
        """
        kimi_k3 llava_onevision2 mimo_v2 moss_vl muse_glimmer nemotron_h qwen3_5_emb qwen4_exp
        spark2_5 wemm_embedding
        """,
    ),
    (
        "3.3.1",
        "4.6.0",
        """
        kimi_vl llama4 qwen2_5_omni qwen3 qwen3_moe
        """,
    ),
    (
        "3.8.3",
        "4.1.3",
        """
        ling2 ring2
        """,
    ),
    (
        "3.4.1.post1",
        "4.6.0",
        """
        mimo
        """,
    ),
    (
        "3.5.3",
        "3.12.6",
        """
        mimo_rl mimo_vl
        """,
    ),
    (
        "3.2.2",
        "3.12.6",
        """
        mistral_2503 moonlight qwq_preview
        """,
    ),
    (
        "4.4.2",
        "4.6.0",
        """
        ovis_ocr2 qwen3_tts unlimited_ocr
        """,
    ),
    (
        "4.0.4",
        "4.2.3",
        """
        paddle_ocr_1_5
        """,
    ),
)
"""Values of ``model_type``."""
