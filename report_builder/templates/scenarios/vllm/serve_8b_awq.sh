#: 一张 24 GB 卡，4 位权重 | one 24 GB card, weights in 4 bits
vllm serve $model \
    --dtype float16 \
    --gpu-memory-utilization 0.9 \
    --max-model-len 16384 \
    --max-num-seqs 64 \
    --port 8000
