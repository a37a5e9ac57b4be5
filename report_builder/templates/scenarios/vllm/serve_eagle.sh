#: 低延迟：EAGLE-3 每步提议三个 token | low latency: EAGLE-3 proposes three tokens a step
vllm serve $model \
    --dtype bfloat16 \
    --gpu-memory-utilization 0.9 \
    --max-model-len 16384 \
    --max-num-seqs 32 \
    --speculative-config '{"method": "eagle3", "model": "RedHatAI/Llama-3.1-8B-Instruct-speculator.eagle3", "num_speculative_tokens": 3}' \
    --port 8000
