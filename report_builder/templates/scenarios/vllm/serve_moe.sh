#!/bin/bash
#SBATCH --gres=gpu:h200:8
#SBATCH --cpus-per-task=96
#: 八卡：注意力数据并行，专家并行 | eight cards: attention in copies, experts spread over all
vllm serve $model \
    --data-parallel-size 8 \
    --enable-expert-parallel \
    --gpu-memory-utilization 0.9 \
    --max-model-len 32768 \
    --max-num-batched-tokens 8192 \
    --speculative-config '{"method": "mtp", "num_speculative_tokens": 1}' \
    --port 8000
