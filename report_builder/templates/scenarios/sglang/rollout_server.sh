#: 独立 GPU 上的采样服务；训练端用 sync_weights.py 推送权重 | a server with GPUs of its own; sync_weights.py sends it weights
python -m sglang.launch_server \
    --model-path $model \
    --dtype bfloat16 \
    --tp-size 2 \
    --mem-fraction-static 0.88 \
    --enable-metrics \
    --port 30000
