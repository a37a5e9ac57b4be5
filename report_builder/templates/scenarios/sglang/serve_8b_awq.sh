#: 一张 24 GB 卡，4 位权重 | one 24 GB card, weights in 4 bits
python -m sglang.launch_server \
    --model-path $model \
    --dtype float16 \
    --mem-fraction-static 0.85 \
    --context-length 16384 \
    --max-running-requests 32 \
    --port 30000
