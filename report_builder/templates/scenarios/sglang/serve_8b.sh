#: 一张 80 GB 卡，在线服务 | one 80 GB card, serving
python -m sglang.launch_server \
    --model-path $model \
    --dtype bfloat16 \
    --mem-fraction-static 0.88 \
    --context-length 32768 \
    --schedule-policy lpm \
    --enable-metrics \
    --port 30000
