#!/bin/bash
#SBATCH --gres=gpu:h200:8
#SBATCH --cpus-per-task=96
#: 注意力按请求切分，专家用 DeepEP 分发 | attention split by requests, experts reached by DeepEP
python -m sglang.launch_server \
    --model-path $model \
    --trust-remote-code \
    --tp-size 8 \
    --attn-dp-size 8 \
    --moe-a2a-backend deepep \
    --mem-fraction-static 0.85 \
    --max-running-requests 1024 \
    --enable-metrics \
    --port 30000
