#: 四张 80 GB 卡，张量并行 | four 80 GB cards, tensor parallel
vllm serve $model \
    --dtype bfloat16 \
    --tensor-parallel-size 4 \
    --gpu-memory-utilization 0.9 \
    --max-model-len 32768 \
    --max-num-seqs 256 \
    --max-num-batched-tokens 8192 \
    --port 8000
