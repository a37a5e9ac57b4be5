python -m sglang.launch_server \
    --model-path $model \
    --dtype bfloat16 \
    --mem-fraction-static 0.85 \
    --context-length 8192 \
    --chunked-prefill-size 8192 \
    --schedule-policy lpm \
    --cuda-graph-max-bs 256
