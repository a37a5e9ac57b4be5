#: 一张 80 GB 卡，在线服务 | one 80 GB card, serving
vllm serve $model \
    --dtype bfloat16 \
    --gpu-memory-utilization 0.9 \
    --max-model-len 32768 \
    --max-num-seqs 256 \
    --max-num-batched-tokens 8192 \
    --port 8000
