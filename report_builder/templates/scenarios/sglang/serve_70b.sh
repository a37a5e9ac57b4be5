#: 四张 80 GB 卡，张量并行 | four 80 GB cards, tensor parallel
python -m sglang.launch_server \
    --model-path $model \
    --dtype bfloat16 \
    --tp-size 4 \
    --mem-fraction-static 0.88 \
    --context-length 32768 \
    --schedule-policy lpm \
    --enable-metrics \
    --port 30000
