"""What in a Python source is worth a closer look: the tables behind the byte scan and thinning."""

from __future__ import annotations

import re

CALLED_LIBRARIES = frozenset(
    [
        "liger_kernel",
        "unsloth",
        "peft",
        "flash_attn",
        "bitsandbytes",
        "torchao",
        "transformer_engine",
        "apex",
        "xformers",
    ]
)
"""Libraries whose plain functions change how a run computes (apply_liger_kernel_to_llama)."""

FIELD_LIBRARIES = frozenset(
    """
    torch torchvision torchaudio torchdata torchtune torchtitan torchao torch_npu torchrun
    transformers accelerate deepspeed trl peft swift llamafactory llmtuner vllm sglang lightning
    pytorch_lightning lightning_fabric megatron mcore_bridge transformer_engine apex diffusers
    videox_fun flow_factory colossalai fairscale xformers flash_attn triton liger_kernel unsloth
    bitsandbytes optimum auto_gptq awq datasets webdataset litdata streaming decord av cv2
    torchcodec verl openrlhf mmengine mmcv composer timm sentence_transformers axolotl xtuner ray
    wandb tensorboardX jax flax tensorflow keras torch_xla hivemind horovod oslo bmtrain
    """.split()  # noqa: SIM905
)
"""Root modules of the field: their dotted names are values, their calls are facts."""

COMMON_LIBRARIES = frozenset(
    """
    os sys re io time math json copy random logging warnings typing pathlib functools itertools
    collections contextlib datetime argparse dataclasses enum shutil glob gc abc inspect pickle
    numpy scipy pandas sklearn matplotlib PIL tqdm rich yaml einops requests click fire omegaconf
    """.split()  # noqa: SIM905
)
"""Root modules that are neither the field's nor the project's own."""

BYTE_TRACES = re.compile(
    rb"torch|transformers|[Aa]ccelerat|deepspeed|\btrl\b|\bpeft\b|\bswift\b|llamafactory|llmtuner"
    rb"|\bvllm\b|\bsglang\b|lightning|[Mm]egatron|diffusers|videox_fun|flow_factory|colossalai"
    rb"|flash_attn|xformers|unsloth|bitsandbytes|liger_kernel|CUDA_VISIBLE_DEVICES|\bNCCL_|triton"
    rb"|DataLoader|\bmcore\b|openrlhf|\bverl\b"
)
"""A file without any of these has nothing to do with GPU training or serving."""

CONSTRUCTOR_SUFFIXES = (
    "Config",
    "Arguments",
    "Args",
    "Params",
    "Trainer",
    "Loader",
    "Sampler",
    "Plugin",
    "Callback",
    "Strategy",
    "Accelerator",
    "Engine",
    "Pipeline",
    "Parallel",
    "Optimizer",
    "Profiler",
    "Module",
    "LLM",
)
"""CamelCase names that end so are constructors of interest, whoever defines them."""

CALLS = frozenset(
    """
    from_pretrained from_config from_engine_args backward manual_backward zero_grad
    clip_grad_norm_ cuda empty_cache synchronize no_sync no_grad inference_mode enable_grad
    save_pretrained generate fit train evaluate predict compile freeze gradient_checkpointing_enable
    gradient_checkpointing_disable enable_gradient_checkpointing enable_input_require_grads
    requires_grad_ register_comm_hook set_attention_implementation set_attn_implementation
    set_attn_processor set_attn_processors set_attn_procs set_default_attn_processor set_processor
    enable_xformers_memory_efficient_attention enable_model_cpu_offload enable_vae_slicing
    enable_vae_tiling enable_tiling enable_slicing set_attention_backend add_argument
    add_mutually_exclusive_group add_argument_group add_parser add_subparsers set_defaults
    launch_server_cmd execute_shell_command
    parse_args parse_known_args parse_args_into_dataclasses parse_json_file parse_yaml_file
    H4ArgumentParser option argument getenv Popen execv execve execvp execvpe execl execlp
    check_call check_output spawn Process autocast GradScaler init_process_group new_group
    set_float32_matmul_precision set_default_dtype set_default_tensor_type update_parameters
    elastic_launch start_processes DistributedDataParallel FullyShardedDataParallel DataParallel
    fully_shard FSDP DDP parallelize_module init_device_mesh checkpoint checkpoint_sequential
    apply_activation_checkpointing checkpoint_wrapper context_parallel
    set_device set_per_process_memory_fraction manual_seed set_num_threads
    use_deterministic_algorithms memory_summary CUDAGraph make_graphed_callables Stream
    sdpa_kernel sdp_kernel flex_attention scaled_dot_product_attention flash_attn_func
    flash_attn_varlen_func memory_efficient_attention MultiheadAttention SyncBatchNorm
    convert_sync_batchnorm CrossEntropyLoss cross_entropy all_reduce all_gather all_gather_object
    gather_object broadcast_object_list barrier reduce_scatter_tensor all_gather_into_tensor
    all_gather_for_metrics AdamW Adam SGD Adafactor AdamW8bit PagedAdamW8bit PagedAdamW32bit
    FusedAdam DeepSpeedCPUAdam Lion Muon Adagrad RMSprop Rprop RAdam NAdam Adamax Adadelta ASGD
    LBFGS DataLoader DistributedSampler
    StatefulDataLoader WebDataset MDSWriter load_dataset load_from_disk save_to_disk
    get_peft_model apply_checkpointing convert_model_weight_to_float8 create_network enable_teacache
    prepare_model_for_kbit_training notebook_launcher notebook_login tp_plan save_checkpoint
    load_checkpoint save_state load_state set_epoch prepare accumulate record_function set_seed
    VideoReader VideoCapture read_video tokenizer tokenize apply_chat_template device
    memmap fromfile read_csv read_parquet read_table set_transform with_transform create_loader
    import_module create_scheduler create_scheduler_v2 create_optimizer create_optimizer_v2
    StepLR MultiStepLR ConstantLR LinearLR ExponentialLR PolynomialLR CosineAnnealingLR
    CosineAnnealingWarmRestarts CyclicLR OneCycleLR LambdaLR MultiplicativeLR SequentialLR
    ChainedScheduler ReduceLROnPlateau
    get_scheduler get_constant_schedule get_constant_schedule_with_warmup
    get_linear_schedule_with_warmup get_cosine_schedule_with_warmup
    get_cosine_with_hard_restarts_schedule_with_warmup get_inverse_sqrt_schedule
    get_polynomial_decay_schedule_with_warmup get_wsd_schedule
    collective_rpc init_weight_transfer_engine start_weight_update pause_generation
    resume_generation wake_up init_weights_update_group update_weights_from_disk
    update_weights_from_tensor update_weights_from_distributed release_memory_occupation
    resume_memory_occupation update_weights_from_ipc continue_generation
    """.split()  # noqa: SIM905
)
"""Functions and methods whose calls are always gathered, whatever they are called on."""


HOT_CALLS = frozenset(
    """
    item cpu to numpy tolist step save load dump log log_dict is_nan isnan isinf nonzero deepcopy
    sleep memory_allocated max_memory_allocated memory_reserved collect clone detach pin_memory
    apply_chat_template flush
    """.split()  # noqa: SIM905
)
"""Calls that cost only where they are made for every step; statements with nothing else of
interest are read inside training loops and in the functions these call."""

DICT_KEYS = frozenset(
    """
    zero_optimization train_micro_batch_size_per_gpu train_batch_size fp16 bf16
    gradient_accumulation_steps per_device_train_batch_size num_workers num_train_epochs
    learning_rate torch_dtype attn_implementation gradient_checkpointing tensor_parallel_size
    gpu_memory_utilization load_in_4bit load_in_8bit device_map deepspeed use_cache batch_size
    fsdp fsdp_config pin_memory dataloader_num_workers CUDA_VISIBLE_DEVICES
    """.split()  # noqa: SIM905
)
"""Keys that show a dict literal to be a training configuration."""

TRACES = (
    "environ",
    "os.putenv",
    "subprocess.",
    "os.system",
    "backends.",
    "__main__",
    "triton.jit",
    "allow_tf32",
    "torch.profiler.",
    "@torch.",
    "@hydra.",
    "@ray.",
    '"cuda',
    "'cuda",
    "deepspeed.",
    "amp.initialize",
    "deepspeed_config",
    "attn_implementation =",
    "cache_implementation =",
    ".forward =",
    ".requires_grad =",
    "sys.argv",
    ".map(",
    "Image.open(",
    "np.load(",
    "numpy.load(",
)
"""Traces outside calls: environment, backend switches, decorators without a call."""

_MENTIONS = """
    autocast apex gradscaler bfloat16 float16 float8 bf16 fp16 fp8 torch.half tf32
    matmul_precision checkpointing utils.checkpoint use_checkpoint recompute compile_model
    torch_compile deepspeed fsdp fully_shard fullysharded megatron colossalai parallelize
    parallelism tensor_parallel pipeline_parallel sequence_parallel context_parallel ulysses accum
    acc_step acc_iter grad_acc
    lr_scheduler get_scheduler _schedule schedulefree warmup clip_grad clip_val gradient_clip lora
    peft adapter unsloth liger quant bitsandbytes device_map dataparallel accelerat lightning
    fabric cuda torch_xla torch_npu _pixels resize param_group schedul
    """.split()  # noqa: SIM905
_MENTIONS_IN_CONTEXT = {
    ".half": re.compile(r"\.half\b"),
    ".compile": re.compile(r"(?<!\bre)\.compile\b"),
    "utils import checkpoint": re.compile(r"utils import checkpoint"),
}

_PRECISION = re.compile(r"(?<!matmul_)precision")
_OF_NUMBERS = re.compile(
    r"(?:mixed|half|low|full|single|reduced)[_ -]?precision|precision\s*=\s*[\"'\d]|--precision"
    r"|precision_plugin|(?:arg|cfg|conf|opt|param|flag|trainer|fabric|self)\w*(?:\.\w+)*\.precision"
    r"|precision\s*:\s*(?:int|str|union|optional|literal|any)\b|\bprecision\s+(?:16|32)"
    r"|\[[\"']precision[\"']\]"
)
"""Ways to name the precision of numbers, in a source that also measures precision and recall."""

_OF_ATTENTION = r"attn|atten|\batt\b|\bqk|\bdots\b|energ|affinit"
_BY_HAND = (
    rf"(?:{_OF_ATTENTION})\w*\s*=\s*[^\n=]*softmax\("
    rf"|(?:{_OF_ATTENTION})\w*(?:\[[^\]\n]*\])?\.softmax\("
    rf"|softmax\(\s*(?:input=)?\w*(?:{_OF_ATTENTION}|\bscores?\b|\bsim\b)"
)
_NO_LAYER = (
    r"(?!\w*(?:arg\w*|config\w*|param\w*|callback|setting\w*|option\w*|test\w*|trainer|datas\w*)\b)"
)
ASKS_WHAT_IS_INSTALLED = "asks what is installed"
"""Among the mentions of a program that looks at a version, a signature or the fields of a class."""
_SHAPES = {
    # words about how a model is made: a word that must be there, and what is looked for
    "attention by hand": ("softmax", re.compile(_BY_HAND)),
    "attention layers": (
        "former",
        re.compile(r"\btransformer(?:en|de)coder(?:layer)?\(|\bnn\.transformer\("),
    ),
    "multihead attention": ("multiheadattention", re.compile(r"\bmultiheadattention\(")),
    "attention class": ("class ", re.compile(rf"class {_NO_LAYER}\w*(?:attn|attention)")),
    "attention table": ("attention_", re.compile(r"attention_(?:classes|functions)\b")),
    "adapter class": (
        "class ",
        re.compile(rf"class {_NO_LAYER}\w*(?:lora|adapter)\w*\s*[(:]"),
    ),
    "made by name": (
        "(",
        re.compile(
            r"\binstantiate(?:_from_config)?\(|\bimport_module\(|\bget_obj_from_str\(|\blocate\("
            r"|\bbuild_from_cfg\("
        ),
    ),
    ASKS_WHAT_IS_INSTALLED: (
        "(",
        re.compile(
            r"\bsignature\(|\bfields\(|__dataclass_fields__|__version__|importlib\.metadata"
            r"|\bversion\(|\bget_type_hints\(|\bget_distribution\("
        ),
    ),
    "weights in double": (
        "(",
        re.compile(
            r"\b\w*(?:model|net)\w*\s*=[^\n]*\.(?:double\(\)|to\([^\n)]*(?:float64|torch\.double))"
            r"|\b\w*(?:model|net)\.(?:double\(\)|to\([^\n)]*(?:float64|torch\.double))"
        ),
    ),
    "set requires_grad": ("requires_grad", re.compile(r"setattr\([^\n]*requires_grad")),
}

HAS_KERNEL = "pytorch has its kernel: "
"""What a name precedes (lower case) that a program sets to whether PyTorch has it."""
_HAS_KERNEL = re.compile(r"(\w+)\s*=\s*hasattr\([\w.]+,\s*[\"\']scaled_dot_product_attention")


def mentions_in(text: str) -> frozenset[str]:
    """Words about GPU training that a source has anywhere, in code or comments."""
    lowered = text.lower()
    found = {word for word in _MENTIONS if word in lowered}
    found.update(
        word
        for word, pattern in _MENTIONS_IN_CONTEXT.items()
        if word in lowered and pattern.search(lowered)
    )
    found.update(
        word
        for word, (trace, pattern) in _SHAPES.items()
        if trace in lowered and pattern.search(lowered)
    )
    if _PRECISION.search(lowered) and ("recall" not in lowered or _OF_NUMBERS.search(lowered)):
        found.add("precision")
    if "scaled_dot_product_attention" in lowered:
        found.update(f"{HAS_KERNEL}{name}" for name in _HAS_KERNEL.findall(lowered))
    return frozenset(found)


LOADER_NAME = re.compile(r"(?i)(?:^|[._])(?:\w*loaders?|(?:\w*_)?dl)$")
"""Names that, by the field's habits, hold a DataLoader."""

LOADER_TRACE = re.compile(r"(?i)loader|\b\w*dl\b")

OPTIMIZER_LIKE = re.compile(r"(?i)(?:optim\w*|engine|scaler|(?:\b|_)opt|\bmodel)$")
"""Receivers whose ``step()`` is a training step (``model``: a DeepSpeed engine)."""

HOT_METHODS = frozenset({"training_step", "compute_loss"})
"""Methods that a trainer calls for every step."""


def is_constructor(name: str) -> bool:
    """Whether ``name`` reads as a constructor of interest (``SFTConfig``, ``MyTrainer``)."""
    return name[:1].isupper() and name.endswith(CONSTRUCTOR_SUFFIXES)


def exchanges_attention(name: str) -> bool:
    """Whether a function's name says that it exchanges attention kernels."""
    return _PATCH.search(name) is not None


def shows_samples(name: str) -> bool:
    """Whether a function's name says that it makes samples or scores, not a training step."""
    return _SHOWS.search(name) is not None


_SHOWS = re.compile(r"(?i)pipe(?:line)?$|inference|(?:^|_)(?:generate|sample|validate|evaluate)$")


def chooses_weights(name: str) -> bool:
    """Whether a function's name says that it chooses the weights that are trained."""
    return _CHOICE.search(name) is not None


_CHOICE = re.compile(
    r"(?i)freez|(?<!input_)(?:requires?|toggle|set)_grad(?!ient)|(?:^|_)(?:lora|peft|adapters?)(?:_|$)"
)
_PATCH = re.compile(r"(?:replace|patch|enable|use)_\w*(?:attn|attention)")


def is_field_name(dotted: str) -> bool:
    """Whether a dotted name belongs to a library of the field."""
    return dotted.partition(".")[0] in FIELD_LIBRARIES
