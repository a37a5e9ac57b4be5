#: 独立 GPU 上的采样服务；训练端经 NCCL 推送权重 | a server with GPUs of its own; the trainer sends it weights by NCCL
export VLLM_SERVER_DEV_MODE=1
vllm serve $model \
    --dtype bfloat16 \
    --tensor-parallel-size 2 \
    --gpu-memory-utilization 0.9 \
    --max-model-len 8192 \
    --weight-transfer-config '{"backend": "nccl"}' \
    --port 8000
