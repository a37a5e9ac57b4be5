"""Names that ms-swift 3.0 to 4.6 register: of templates and of types of models.

String constants of the classes of swift/template/constant.py and swift/model/constant.py, of
all releases of the tables.
"""

from __future__ import annotations

TEMPLATES = frozenset(
    """
    atom aya baichuan baichuan_m1 bert bge_reranker bluelm c4ai chatglm2 chatglm4 chatglm4v chatml
    clef codefuse codefuse_codellama codegeex4 cogagent_chat cogagent_vqa cogvlm cogvlm2
    cogvlm2_video dbrx deepseek deepseek_coder deepseek_janus deepseek_janus_pro deepseek_ocr
    deepseek_ocr2 deepseek_r1 deepseek_v2_5 deepseek_v3_1 deepseek_v4 deepseek_v41 deepseek_v4_flash
    deepseek_vl deepseek_vl2 default devstral diffusion_gemma doc_owl2 dots1 dots_ocr dummy
    emu3_chat emu3_gen ernie ernie_thinking ernie_vl ernie_vl_thinking florence gemma gemma3_text
    gemma3_vision gemma3n gemma4 gemma4_nothinking generic_decision glm4 glm4_0414 glm4_1v glm4_5
    glm4_5v glm4_7 glm4_z1_rumination glm4v glm5_1 glm5_2 glm5_3 glm5_next glm_edge_v glm_ocr
    got_ocr2 got_ocr2_hf gpt_oss hunyuan hunyuan_moe hunyuan_ocr hy_v3 hy_v3_preview idefics3
    internlm internlm2 internlm2_reward internlm3 interns1 internvl internvl2 internvl2_5
    internvl2_phi3 internvl3_5 internvl3_5_gpt internvl_hf internvl_phi3 iquestcoder ixcomposer2 jev
    jina_reranker_m0 keye_vl keye_vl_1_5 kimi_k2 kimi_k25 kimi_k3 kimi_vl ling ling2 ling3 llama
    llama3 llama3_1_omni llama3_2 llama3_2_vision llama3_llava_next llama3_llava_next_hf llama4
    llava1_5_hf llava1_6_mistral llava1_6_mistral_hf llava1_6_vicuna_hf llava1_6_yi llava1_6_yi_hf
    llava_llama3_1_hf llava_llama3_hf llava_next_qwen llava_next_qwen_hf llava_next_video_hf
    llava_onevision1_5 llava_onevision2 llava_onevision_hf longchat longwriter_llama marco_o1 megrez
    megrez_omni mengzi midashenglm mimo_rl mimo_v2 mimo_vl minicpm minicpm5 minicpm5_2b minicpmo
    minicpmo2_6 minicpmo4_5 minicpmv minicpmv2_5 minicpmv2_6 minicpmv4 minicpmv4_5 minicpmv4_6
    minicpmv4_7 minimax minimax_m1 minimax_m2 minimax_m2_1 minimax_m2_5 minimax_m2_7 minimax_m3_vl
    minimax_vl minimind mistral_2501 mistral_2503 mistral_2506 mistral_2512 mistral_2512_thinking
    mistral_nemo modelscope_agent molmo molmo2 monkeyocrv2 moonlight moss_vl mplug_owl2 mplug_owl3
    mplug_owl3_241101 muse_glimmer nemotron_h numina olmoe olmoe_0924 omnijev openbuddy openbuddy2
    orion ovis1_6 ovis1_6_llama3 ovis2 ovis2_5 ovis_ocr2 paddle_ocr paddle_ocr_1_5 paligemma phi3
    phi3_vision phi4 phi4_multimodal pixtral qvq qwen qwen2_5 qwen2_5_math qwen2_5_math_prm
    qwen2_5_omni qwen2_5_vl qwen2_audio qwen2_gme qwen2_vl qwen3 qwen3_5 qwen3_5_emb qwen3_8
    qwen3_asr qwen3_coder qwen3_emb qwen3_guard qwen3_nothinking qwen3_omni qwen3_reranker
    qwen3_thinking qwen3_tts qwen3_vl qwen3_vl_emb qwen3_vl_reranker qwen_audio qwen_vl qwq
    qwq_preview reflection ring2 ring2_5 sail_vl2 seed_oss skywork skywork_o1 spark2_5 step3_vl
    step_audio step_audio2_mini sus telechat telechat2 unlimited_ocr valley wemm_embedding wizardlm2
    wizardlm2_moe xcomposer2_4khd xcomposer2_5 xing4_0 xverse yi_coder yi_vl youtu_llm yuan
    yufeng_xguard zephyr ziya
    """.split()  # noqa: SIM905
)
"""Values of ``template``; external plugins register more."""

MODEL_TYPES = frozenset(
    """
    atom aya baichuan baichuan2 baichuan_m1 bailing_hybrid bailing_moe bert bge_reranker bluelm c4ai
    chatglm2 chatglm3 chatglm4 chatglm4v clef codefuse_codegeex2 codefuse_codellama codefuse_qwen
    codegeex4 cogagent_chat cogagent_vqa cogvlm cogvlm2 cogvlm2_video dbrx deepseek deepseek_janus
    deepseek_janus_pro deepseek_moe deepseek_ocr deepseek_ocr2 deepseek_r1 deepseek_r1_distill
    deepseek_v2 deepseek_v2_5 deepseek_v3 deepseek_v32 deepseek_v3_1 deepseek_v3_2 deepseek_v4
    deepseek_v41 deepseek_vl deepseek_vl2 devstral diffusion_gemma doc_owl2 dots1 dots_ocr emu3_chat
    emu3_gen ernie ernie4_5 ernie4_5_moe ernie_thinking ernie_vl ernie_vl_thinking florence gemma
    gemma2 gemma3_text gemma3_vision gemma3n gemma4 gemma4_unified gemma_emb gemma_reward
    generic_decision glm4 glm4_0414 glm4_1v glm4_5 glm4_5v glm4_7 glm4_moe glm4_moe_lite
    glm4_z1_rumination glm4v glm4v_moe glm5_next glm_edge glm_edge_v glm_moe_dsa glm_ocr got_ocr2
    got_ocr2_hf gpt_oss grok hunyuan hunyuan_moe hunyuan_ocr hunyuan_v1_dense hy_v3 idefics3
    internlm internlm2 internlm2_reward internlm3 interns1 internvl internvl2 internvl2_5
    internvl2_phi3 internvl3 internvl3_5 internvl3_5_gpt internvl_chat internvl_gpt_hf internvl_hf
    internvl_phi3 iquestcoder jev jina_reranker_m0 keye_vl keye_vl_1_5 kimi_k2 kimi_k25 kimi_k3
    kimi_vl ling ling2 llama llama3 llama3_1 llama3_1_omni llama3_2 llama3_2_reward llama3_2_vision
    llama3_llava_next llama3_llava_next_hf llama4 llava1_5_hf llava1_6_mistral llava1_6_mistral_hf
    llava1_6_vicuna_hf llava1_6_yi llava1_6_yi_hf llava_llama3_1_hf llava_llama3_hf llava_next_qwen
    llava_next_qwen_hf llava_next_video_hf llava_next_video_yi_hf llava_onevision1_5
    llava_onevision2 llava_onevision_hf longchat longwriter_llama3_1 mamba marco_o1 megrez
    megrez_omni mengzi3 midashenglm mimo mimo_rl mimo_v2 mimo_vl minicpm minicpm3 minicpm_chatml
    minicpm_moe minicpmo minicpmo2_6 minicpmv minicpmv2_5 minicpmv2_6 minicpmv4 minicpmv4_5
    minicpmv4_6 minicpmv4_7 minimax minimax_m1 minimax_m2 minimax_m3_vl minimax_vl minimind mistral
    mistral3 mistral3_2506 mistral_2501 mistral_2503 mistral_2506 mistral_2512 mistral_2512_thinking
    mistral_nemo mixtral modelscope_agent modern_bert modern_bert_gte modern_bert_gte_reranker molmo
    molmo2 molmoe monkeyocrv2 moonlight moss_vl mplug_owl2 mplug_owl2_1 mplug_owl3 mplug_owl3_241101
    muse_glimmer nemotron_h numina olmoe omnijev openbuddy_llama openbuddy_llama3 openbuddy_mistral
    openbuddy_mixtral orion ovis1_6 ovis1_6_llama3 ovis2 ovis2_5 ovis_ocr2 paddle_ocr paddle_ocr_1_5
    paddleocr_vl paligemma phi2 phi3 phi3_moe phi3_small phi3_vision phi4 phi4_multimodal pixtral
    polylm qvq qwen qwen2 qwen2_5 qwen2_5_math qwen2_5_math_reward qwen2_5_omni qwen2_5_prm
    qwen2_5_vl qwen2_audio qwen2_gme qwen2_gte qwen2_moe qwen2_reward qwen2_vl qwen3 qwen3_5
    qwen3_5_emb qwen3_5_moe qwen3_asr qwen3_coder qwen3_emb qwen3_guard qwen3_moe qwen3_moe_thinking
    qwen3_moe_vl qwen3_next qwen3_next_thinking qwen3_nothinking qwen3_omni qwen3_omni_moe
    qwen3_reranker qwen3_thinking qwen3_tts qwen3_vl qwen3_vl_emb qwen3_vl_moe qwen3_vl_reranker
    qwen4_exp qwen_audio qwen_vl qwq qwq_preview reflection ring2 sail_vl2 seed_oss seggpt skywork
    skywork_o1 spark2_5 step3_vl step_audio step_audio2_mini sus telechat telechat2 unlimited_ocr
    valley wemm_embedding wizardlm2 wizardlm2_moe xcomposer2 xcomposer2_4khd xcomposer2_5
    xcomposer2_5_ol_audio xing4_0 xverse xverse_moe yi yi_coder yi_vl youtu_llm yuan2 zephyr ziya
    """.split()  # noqa: SIM905
)
"""Values of ``model_type``; external plugins register more."""
