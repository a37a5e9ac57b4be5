#!/bin/bash
#SBATCH --gres=gpu:h100:8
#SBATCH --cpus-per-task=64
#: 两个副本，各用四卡，FP8 权重 | two copies of four cards, weights in FP8
vllm serve $model \
    --quantization fp8 \
    --tensor-parallel-size 4 \
    --data-parallel-size 2 \
    --gpu-memory-utilization 0.9 \
    --max-model-len 32768 \
    --max-num-batched-tokens 8192 \
    --port 8000
