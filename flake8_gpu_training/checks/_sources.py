"""What the checks' figures and claims rest on."""

from __future__ import annotations

FLASH_ATTENTION = "FlashAttention (Dao et al., 2022), arXiv:2205.14135"
FLASH_ATTENTION_2 = "FlashAttention-2 (Dao, 2023), arXiv:2307.08691"
FLASH_ATTENTION_3 = "FlashAttention-3 (Shah et al., 2024), arXiv:2407.08608"
PACKING_BLOG = "https://huggingface.co/blog/packing-with-FA2"
LIGER = "Liger Kernel (Hsu et al., 2024), arXiv:2410.10989"
LIGER_SOURCE = "liger-kernel 0.8.5, transformers/monkey_patch.py"
ZERO = "ZeRO (Rajbhandari et al., 2020), arXiv:1910.02054"
ZERO_OFFLOAD = "ZeRO-Offload (Ren et al., 2021), arXiv:2101.06840"
ZERO_PLUS_PLUS = "ZeRO++ (Wang et al., 2023), arXiv:2306.10209"
CHECKPOINTING = (
    "Training Deep Nets with Sublinear Memory Cost (Chen et al., 2016), arXiv:1604.06174"
)
RECOMPUTATION = (
    "Reducing Activation Recomputation in Large Transformer Models (Korthikanti et al., 2022), "
    "arXiv:2205.05198"
)
HF_CHECKPOINTING = "https://huggingface.co/docs/transformers/grad_checkpointing"
FP8_LM = "FP8-LM (Peng et al., 2023), arXiv:2310.18313"
MIXED_PRECISION = "Mixed Precision Training (Micikevicius et al., 2018), arXiv:1710.03740"
BF16 = "A Study of BFLOAT16 for Deep Learning Training (Kalamkar et al., 2019), arXiv:1905.12322"
ULYSSES = "DeepSpeed Ulysses (Jacobs et al., 2023), arXiv:2309.14509"
MEGATRON = "Megatron-LM (Narayanan et al., 2021), arXiv:2104.04473"
MEGATRON_OPTIMIZER = "Megatron-LM core_v0.12.0, docs/source/api-guide/dist_optimizer.md"
MEGATRON_MOE = (
    "https://docs.nvidia.com/megatron-core/developer-guide/latest/user-guide/features/moe.html"
)
GALORE = "GaLore (Zhao et al., 2024), arXiv:2403.03507"
Q_GALORE = "Q-GaLore (Zhang et al., 2024), arXiv:2407.08296"
POWER_SGD = "PowerSGD (Vogels et al., 2019), arXiv:1905.13727"
PYTORCH_DDP = "https://pytorch.org/docs/stable/notes/ddp.html"
PYTORCH_DDP_PAPER = "PyTorch Distributed (Li et al., 2020), arXiv:2006.15704"
PYTORCH_FSDP = "PyTorch FSDP (Zhao et al., 2023), arXiv:2304.11277"
PYTORCH_2 = "PyTorch 2 (Ansel et al., ASPLOS 2024), doi:10.1145/3620665.3640366"
PYTORCH_GRAPHS = "https://pytorch.org/blog/accelerating-pytorch-with-cuda-graphs/"
PYTORCH_TUNING = "https://pytorch.org/tutorials/recipes/recipes/tuning_guide.html"
HF_SINGLE_GPU = "https://huggingface.co/docs/transformers/perf_train_gpu_one"
HF_MANY_GPUS = "https://huggingface.co/docs/transformers/perf_train_gpu_many"
HF_ARGUMENTS = "transformers 5.24, training_args.py"
HF_DEEPSPEED = "transformers 5.24, integrations/deepspeed.py"
SWIFT_ARGUMENTS = "ms-swift 4.6, arguments/sft_args.py"
SWIFT_DOCS = "https://swift.readthedocs.io/en/latest/Instruction/Command-line-parameters.html"
DEEPSPEED_CONFIG = "https://www.deepspeed.ai/docs/config-json/"
DEEPSPEED_SOURCE = "deepspeed 0.19.6, runtime/config.py and runtime/zero/config.py"
NCCL = "https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html"
GPUDIRECT = "https://docs.nvidia.com/cuda/gpudirect-rdma/"
UNSLOTH = "https://unsloth.ai/blog/mistral-benchmark"
TRANSFORMER_ENGINE = (
    "https://docs.nvidia.com/deeplearning/transformer-engine/user-guide/examples/fp8_primer.html"
)
CUDA_VARIABLES = "CUDA C++ Programming Guide, CUDA Environment Variables (CUDA_LAUNCH_BLOCKING)"
PYTORCH_ANOMALY = "https://pytorch.org/docs/stable/autograd.html#anomaly-detection"
PYTORCH_RANDOMNESS = "https://pytorch.org/docs/stable/notes/randomness.html"
PYTORCH_DISTRIBUTED = "https://pytorch.org/docs/stable/distributed.html#torch-distributed-debug"
PYTORCH_SDPA = (
    "https://pytorch.org/docs/stable/generated/"
    "torch.nn.functional.scaled_dot_product_attention.html"
)
