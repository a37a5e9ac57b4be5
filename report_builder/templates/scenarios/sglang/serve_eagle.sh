#: 并发不高、注重延迟时 | where few requests run at once and latency counts
python -m sglang.launch_server \
    --model-path $model \
    --dtype bfloat16 \
    --speculative-algorithm EAGLE3 \
    --speculative-draft-model-path jamesliu1/sglang-EAGLE3-Llama-3.1-Instruct-8B \
    --speculative-num-steps 3 \
    --speculative-eagle-topk 1 \
    --speculative-num-draft-tokens 4 \
    --mem-fraction-static 0.8 \
    --context-length 8192 \
    --port 30000
