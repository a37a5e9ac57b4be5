#!/bin/bash
#SBATCH --gres=gpu:h100:8
#SBATCH --cpus-per-task=96
#: 两个副本，各用四卡；路由按缓存的前缀分配请求 | two copies of four cards; the router asks who has a prefix
python -m sglang_router.launch_server \
    --model-path $model \
    --quantization fp8 \
    --tp-size 4 \
    --dp-size 2 \
    --mem-fraction-static 0.88 \
    --context-length 32768 \
    --schedule-policy lpm \
    --enable-metrics \
    --router-policy cache_aware \
    --port 30000
