"""GPU236, GPU324 to GPU327, GPU523 to GPU532, GPU127: data and kernels of VideoX-Fun."""

from __future__ import annotations

import re
from typing import Optional

from flake8_gpu_training.checks._judging import (
    advise,
    by_code,
    by_itself,
    cannot_apply,
    cannot_tell,
    off,
    on,
    seen,
)
from flake8_gpu_training.checks._options import option_check
from flake8_gpu_training.checks._programs import first_call
from flake8_gpu_training.checks._scale import has_flash_kernel, ranks, text
from flake8_gpu_training.checks._settings import is_on
from flake8_gpu_training.checks._videox import (
    ATTENTION,
    DATA,
    SCRIPTS,
    flag,
    frames,
    item,
    of_videox,
    script,
    switch,
    takes,
    trains_images,
    without,
)
from flake8_gpu_training.checks._videox_samples import (
    NO_SAMPLES,
    how_to_tile,
    prompts_only,
    text_dropout,
    untiled,
)
from flake8_gpu_training.checks._videox_shared import ONE_GPU, takes_flash
from flake8_gpu_training.checks.base import Check, Example, Judgement, Priority
from flake8_gpu_training.facts import Setting, known
from flake8_gpu_training.language import Text
from flake8_gpu_training.runs.model import Run

_IMAGES_ONLY = Text("只训练图像", "it trains images only")

# --- GPU324 to GPU327: attention, and blocks that are left out ---------------------------------


@of_videox
def _varlen(run: Run) -> Judgement:
    if not has_flash_kernel(run):
        return cannot_apply(Text("该 GPU 没有 FlashAttention", "no FlashAttention for this GPU"))
    flash = takes_flash(run)
    if flash is None:
        return cannot_tell(Text("由安装的内核决定", "it depends on the kernel that is installed"))
    if flash:
        return by_itself(
            Text("通过 flash_attn_varlen_func 计算", "computed by flash_attn_varlen_func")
        )
    return off(
        Text(
            "SDPA 忽略样本长度（填充掩码被丢弃）",
            "SDPA drops the padding mask",
        ),
        run.practice("attention"),
    )


def _validates(run: Run) -> bool:
    """Whether samples are made while it trains."""
    names = ("validation_prompts", "validation_prompt_path")
    return any(is_on(flag(run, name, default=None)) for name in names)


@of_videox
def _sage(run: Run) -> Judgement:
    asked = run.environment.get("VIDEOX_ATTENTION_TYPE")
    if asked is not None and not known(asked.value):
        return cannot_tell(asked)
    if asked is not None and str(asked.value) == "SAGE_ATTENTION":
        return on(asked)
    if not _validates(run):
        return cannot_apply(Text("没有反向，仅用于推理", "no backward pass: inference only"))
    return off(Text("可选：只加速验证采样", "optional: for the samples of a validation"))


@of_videox
def _sparse_linear(run: Run) -> Judgement:
    of = script(run)
    if of.family == "turbodiffusion":
        return by_itself(
            Text(
                "TurboDiffusion 的模型使用 SparseLinearAttention（turbowan_transformer3d.py）",
                "SparseLinearAttention in videox_fun/models/turbowan_transformer3d.py",
            )
        )
    called = first_call(run, ".SparseLinearAttention")
    if called is not None:
        return seen(called)
    return cannot_apply(Text("仅 TurboDiffusion 的模型有", "TurboDiffusion's model alone has it"))


@of_videox
def _teacache(run: Run) -> Judgement:
    called = first_call(run, ".enable_teacache")
    if called is not None:
        return seen(called)
    if trains_images(run) or not _validates(run):
        return cannot_apply(Text("没有反向，仅用于推理", "for inference only"))
    return by_code(
        Text("验证采样未用 TeaCache", "validation samples without TeaCache"),
        "# in log_validation(...)\n"
        "pipeline.transformer.enable_teacache(coefficients, num_steps, 0.10)",
    )


# --- GPU523 to GPU529: sizes and lengths of samples --------------------------------------------

_BUCKETS = "enable_bucket"
_NEEDS_BUCKETS = ("random_hw_adapt", "training_with_video_token_length")


def _asked(run: Run, name: str) -> bool:
    setting = flag(run, name)
    return setting.known and is_on(setting)


@of_videox
def _bucketing(run: Run) -> Judgement:
    lacking = without(run, _BUCKETS)
    if lacking is not None:
        return lacking
    if prompts_only(run):
        return cannot_apply(NO_SAMPLES)
    setting = flag(run, _BUCKETS)
    if not setting.known:
        return cannot_tell(setting)
    if is_on(setting):
        return on(setting)
    idle = [name for name in _NEEDS_BUCKETS if _asked(run, name)]
    if takes(run, "auto_tile_batch_size") is False:
        # Before that flag the length in tokens alone made short samples fill the batch.
        idle = [name for name in idle if name != "training_with_video_token_length"]
    if idle and _has_sides(run):
        return off(_ONE_SIDE, setting)
    if not idle:
        return off(
            Text(
                "可选：按宽高比分桶，不裁成正方形",
                "optional: buckets instead of a square crop",
            ),
            setting,
        )
    flags = " and ".join(f"--{name}" for name in idle)
    return advise(
        run,
        f"{flags} work on buckets, and do nothing without",
        Text(
            f"{'、'.join(f'--{name}' for name in idle)} 没有 --{_BUCKETS} 就不起作用",
            f"{flags} do nothing without --{_BUCKETS}",
        ),
        Text(f"启用 --{_BUCKETS}", f"set --{_BUCKETS}"),
        parameters={_BUCKETS: True},
        at=flag(run, idle[0]),
    )


_ONE_SIDE = Text(
    "分桶按单个边长计算，该脚本的样本尺寸是“高 宽”两个数，不能直接启用",
    "buckets are worked out from one side, and this script takes height and width",
)


def _has_sides(run: Run) -> bool:
    """Whether a script of one's own takes height and width where VideoX-Fun takes one side."""
    sizes = (flag(run, name, default=None) for name in ("image_sample_size", "video_sample_size"))
    return any(
        isinstance(size.value, (list, tuple)) or len(str(size.value).split()) > 1
        for size in sizes
        if size.known
    )


def _no_buckets(run: Run) -> Optional[Text]:
    if _asked(run, _BUCKETS) or prompts_only(run):
        size = flag(run, "fix_sample_size", default=None)
        fixed = size.known and size.value is not None and size.location is not None
        return (
            Text("样本尺寸固定（--fix_sample_size）", "--fix_sample_size sets the size")
            if fixed
            else None
        )
    return Text("未启用 --enable_bucket，不起作用", "it works on buckets (--enable_bucket) only")


def _no_adaption(run: Run) -> Optional[Text]:
    name = "training_with_video_token_length"
    if prompts_only(run) and takes(run, name) and not _asked(run, name):
        return Text(f"只读取提示词时需要 --{name}", f"of prompts alone it works with --{name} only")
    return _no_buckets(run)


_ADAPTED = switch(
    "random_hw_adapt",
    Text("可选：随机缩放到不同分辨率", "optional: samples of several resolutions"),
    _no_adaption,
)


def _no_token_length(run: Run) -> Optional[Text]:
    if trains_images(run):
        return _IMAGES_ONLY
    without_buckets = _no_buckets(run)
    if without_buckets is not None:
        return without_buckets
    if not _asked(run, "random_hw_adapt"):
        return Text("未启用 --random_hw_adapt，不起作用", "it works with --random_hw_adapt only")
    return None


_LENGTHS = switch(
    "training_with_video_token_length",
    Text("可选：按 token 数统一样本长度", "optional: samples of one number of tokens"),
    _no_token_length,
)


def _no_tiling(run: Run) -> Optional[Text]:
    if prompts_only(run):
        return NO_SAMPLES
    if run.value("zero_stage") == 3:
        return Text("ZeRO-3 下脚本不使用", "the scripts leave it out under ZeRO-3")
    if not _asked(run, "training_with_video_token_length"):
        return Text(
            "需要 --training_with_video_token_length", "it needs --training_with_video_token_length"
        )
    return None


_AUTO_TILE = switch(
    "auto_tile_batch_size",
    Text("可选：短样本重复 2~4 份填满批次", "optional: short samples are repeated 2 or 4 times"),
    _no_tiling,
)
_SAME_LENGTH = switch(
    "keep_all_node_same_token_length",
    Text("可选：各进程样本长度一致", "optional: samples of one length on all ranks"),
    lambda run: NO_SAMPLES if prompts_only(run) else ONE_GPU if ranks(run) == 1 else None,
)


def _still(run: Run) -> Optional[Text]:
    if prompts_only(run):
        return NO_SAMPLES
    return _IMAGES_ONLY if trains_images(run) or frames(run) == 1 else None


@of_videox
def _stride(run: Run) -> Judgement:
    lacking = without(run, "video_sample_stride")
    if lacking is not None:
        return lacking
    setting = flag(run, "video_sample_stride", default=4)
    still = _still(run)
    if still is not None:
        return cannot_apply(still)
    if not setting.known:
        return cannot_tell(setting)
    if isinstance(setting.value, (int, float)) and setting.value > 1:
        return on(setting)
    return off(Text("逐帧采样：同样时长需要更多 token", "every frame is taken"), setting)


_FRAMES = switch(
    "random_frame_crop",
    Text("可选：随机截取帧数", "optional: a random number of frames"),
    _still,
)

# --- GPU530 to GPU532: what is computed anew in every epoch ------------------------------------

_PREENCODED = """\
from videox_fun.data.dataset_image_video import ImageVideoSafetensorsDataset

train_dataset = ImageVideoSafetensorsDataset(args.train_data_meta, args.train_data_dir)
# and in the loop: latents = batch["latents"] instead of _batch_encode_vae(pixel_values)"""


_LATENTS = """\
from safetensors.torch import load_file, save_file

# once, before training: the latents of every sample
save_file({"latents": latents.cpu()}, f"{cache}/{index}.safetensors")
# and in the data set: sample["latents"] = load_file(path)["latents"], which the loop reads
# instead of _batch_encode_vae(pixel_values)"""


@of_videox
def _preencoded(run: Run) -> Judgement:
    called = first_call(run, ".ImageVideoSafetensorsDataset")
    if called is not None:
        return seen(called)
    if prompts_only(run):
        return cannot_apply(NO_SAMPLES)
    if run.declared and "ImageVideoSafetensorsDataset" not in run.declared:
        return by_code(
            Text(
                "每步都用 VAE 编码；项目中的 VideoX-Fun 没有读取 latent 的数据集",
                "the VAE encodes every batch; the project's copy has no data set of latents",
            ),
            _LATENTS,
        )
    return by_code(
        Text(
            "每步都用 VAE 编码；ImageVideoSafetensorsDataset 已有，但没有脚本使用",
            "the VAE encodes every batch; no script uses the ImageVideoSafetensorsDataset there is",
        ),
        _PREENCODED,
    )


_TEXTS = """\
# once, before training: prompt_embeds of every caption
torch.save({"prompt_embeds": prompt_embeds.cpu()}, f"{cache}/{index}.pt")
# and in the data set: sample["encoder_hidden_states"] = torch.load(...)["prompt_embeds"]"""


_TENSORS = (".pt", ".pth", ".safetensors", ".npy", ".npz")
_OF_PROMPTS = re.compile(r"(?i)prompt|caption|text_emb")


def _encoded_prompts(run: Run) -> Optional[Setting]:
    """A flag of one's own that names a file of prompts' embeddings (``--fixed_prompt p.pt``)."""
    for name, setting in run.settings.items():
        value = setting.value if setting.explicit and setting.known else None
        if isinstance(value, str) and value.endswith(_TENSORS) and _OF_PROMPTS.search(name):
            return setting
    return None


@of_videox
def _preencoded_text(run: Run) -> Judgement:
    encoded = _encoded_prompts(run)
    if encoded is not None:
        return on(encoded)
    if script(run).family == "flashhead":
        return cannot_apply(Text("FlashHead 不使用提示词", "FlashHead takes no prompts"))
    in_workers = "enable_text_encoder_in_dataloader"
    if takes(run, in_workers) is False and not script(run).rewards:
        return cannot_apply(Text("该脚本另行编码提示词", "prompts are encoded otherwise"))
    setting = flag(run, in_workers)
    if not setting.known:
        return cannot_tell(setting)
    if is_on(setting):
        return off(Text("在加载进程（CPU）中编码提示词", "workers encode the prompts"), setting)
    if is_on(flag(run, "train_text_encoder")):
        return cannot_apply(Text("文本编码器参与训练", "the text encoder is trained"))
    moved = _asked(run, "low_vram") and not script(run).rewards
    return by_code(
        Text(
            "每步都用文本编码器编码提示词" + ("，并在 CPU 与 GPU 间搬运它" if moved else ""),
            "the text encoder encodes the prompts at every step"
            + (" and is moved between CPU and GPU" if moved else ""),
        ),
        _TEXTS,
    )


# --- GPU127, GPU236: states on a disk, a VAE that works in tiles -------------------------------


@of_videox
def _nvme(run: Run) -> Judgement:
    for name in ("offload_optimizer", "offload_param"):
        if text(run, name) == "nvme":
            return on(run.practice(name))
    stage = run.practice("zero_stage")
    if not stage.known:
        return cannot_tell(stage)
    if stage.value != 3:
        return cannot_apply(Text("只用于 ZeRO-3", "with ZeRO-3 only"))
    return by_code(
        Text("自带的配置只卸载到内存", "the files that come along offload to host memory only"),
        '"offload_param": {"device": "nvme", "nvme_path": "/local_nvme"},\n'
        '"offload_optimizer": {"device": "nvme", "nvme_path": "/local_nvme"}',
        "json",
    )


@of_videox
def _vae_tiling(run: Run) -> Judgement:
    called = first_call(run, ".enable_tiling")
    if called is not None:
        return seen(called)
    answer = untiled(run)
    if answer is not None:
        return answer
    decodes = script(run).rewards
    lacks = Text(
        "VAE 整幅解码" if decodes else "VAE 整幅编码",
        f"the VAE {'decodes' if decodes else 'encodes'} whole frames",
    )
    return by_code(lacks, how_to_tile(run))


_LAUNCH = (
    "accelerate launch --mixed_precision=bf16 scripts/wan2.1/train_lora.py \\\n"
    "    --pretrained_model_name_or_path=models/Wan2.1-T2V-14B \\\n"
    "    --train_data_meta=data/metadata.json --train_batch_size=1 \\\n"
    "    --gradient_checkpointing --dataloader_num_workers=8 --random_hw_adapt{}\n"
)
_CACHED = "VideoX-Fun 1.0.1, scripts/*/train*.py and videox_fun/data"

CHECKS: tuple[Check, ...] = (
    option_check(
        "GPU127",
        "nvme-offload",
        Text("NVMe 卸载", "Offload to NVMe"),
        _nvme,
        item("I", "nvme-offload", 0.5),
        "A local disk holds states that host memory does not.",
        "Set the device of both offload sections to nvme, with the path of a local disk.",
        "ZeRO-Infinity (Rajbhandari et al., 2021), arXiv:2104.07857",
        difficulty="medium",
    ),
    option_check(
        "GPU236",
        "vae-tiling",
        Text("VAE 空间分块", "VAE tiling"),
        _vae_tiling,
        item("I", "vae-spatial-tiling", 1),
        "Tiles of a frame are encoded one after the other: the peak of memory is that of a tile.",
        "Call vae.enable_tiling() in the script.",
        "VideoX-Fun 1.0.1, videox_fun/models/cogvideox_vae.py",
    ),
    option_check(
        "GPU324",
        "varlen-attention",
        Text("变长注意力", "Variable-length attention"),
        _varlen,
        item("F", "varlen-attention", 1),
        "Kernels for variable lengths skip the padding of prompts and samples.",
        "Install flash-attn, and leave VIDEOX_ATTENTION_TYPE at FLASH_ATTENTION.",
        ATTENTION,
    ),
    option_check(
        "GPU325",
        "sage-attention",
        Text("SageAttention", "SageAttention"),
        _sage,
        item("F", "sage-attention", 0.5),
        "Products of 8 bits in the attention of samples; training steps take flash-attn.",
        "Set VIDEOX_ATTENTION_TYPE=SAGE_ATTENTION where a program only samples.",
        ATTENTION,
    ),
    option_check(
        "GPU326",
        "sparse-linear-attention",
        Text("稀疏线性注意力", "Sparse-linear attention"),
        _sparse_linear,
        item("F", "sparse-linear-attention", 0.5),
        "Few blocks attend in full, the others by a linear kernel that is learnt along.",
        "Distill with scripts/turbodiffusion.",
        ATTENTION,
    ),
    option_check(
        "GPU327",
        "teacache",
        Text("TeaCache", "TeaCache"),
        _teacache,
        item("I", "teacache-training", 0.5),
        "Steps of sampling that change little reuse what the last one computed.",
        "Call enable_teacache on the pipeline of the validation.",
        "VideoX-Fun 1.0.1, videox_fun/models/cache_utils.py",
    ),
    option_check(
        "GPU523",
        "resolution-buckets",
        Text("分辨率分桶", "Resolution buckets"),
        _bucketing,
        item("G", "bucketing", 1.5),
        "Batches of one aspect ratio need no square crop; other flags work on buckets only.",
        "Set --enable_bucket.",
        SCRIPTS,
        examples=(
            Example(
                "videox_fun", "train.sh", _LAUNCH.format(""), _LAUNCH.format(" --enable_bucket")
            ),
        ),
    ),
    option_check(
        "GPU524",
        "resolution-adaption",
        Text("随机分辨率", "Random resolution"),
        _ADAPTED,
        item("G", "random-hw-adapt", 0.5),
        "Samples of several resolutions teach the model all of them, small ones at less cost.",
        "Set --random_hw_adapt beside --enable_bucket.",
        SCRIPTS,
    ),
    option_check(
        "GPU525",
        "token-length",
        Text("按 token 长度训练", "Training by token length"),
        _LENGTHS,
        item("G", "video-token-length", 1),
        "Large frames come with fewer frames: a step costs about the same for every sample.",
        "Set --training_with_video_token_length beside --enable_bucket and --random_hw_adapt.",
        SCRIPTS,
    ),
    option_check(
        "GPU526",
        "auto-tile-batch",
        Text("自动扩批", "Automatic batch tiling"),
        _AUTO_TILE,
        item("G", "auto-tile-batch", 0.5),
        "A short sample leaves the GPU idle: repeated, with noise of its own, it fills the batch.",
        "Set --auto_tile_batch_size.",
        SCRIPTS,
    ),
    option_check(
        "GPU527",
        "same-token-length",
        Text("跨进程统一长度", "Same token length on all ranks"),
        _SAME_LENGTH,
        item("G", "same-token-length", 0.5),
        "The rank with the longest sample makes the others wait.",
        "Set --keep_all_node_same_token_length.",
        SCRIPTS,
    ),
    option_check(
        "GPU528",
        "frame-stride",
        Text("抽帧间隔", "Frame stride"),
        _stride,
        item("G", "frame-stride", 0.5),
        "Every second frame shows twice the time with the same number of tokens.",
        "Set --video_sample_stride to 2 or more.",
        SCRIPTS,
    ),
    option_check(
        "GPU529",
        "frame-crop",
        Text("随机截帧", "Random frame crop"),
        _FRAMES,
        item("G", "random-frame-crop", 0.5),
        "Shorter clips now and then teach the model several lengths, at less cost.",
        "Set --random_frame_crop.",
        SCRIPTS,
    ),
    option_check(
        "GPU530",
        "preencoded-latents",
        Text("预编码 latent 数据集", "Pre-encoded latents"),
        _preencoded,
        item("G", "preencoded-dataset", 2),
        "The VAE encodes the same videos in every epoch; latents kept on disk are read.",
        "Encode once, store safetensors, and read them with ImageVideoSafetensorsDataset.",
        _CACHED,
        priority=Priority.MEDIUM,
        difficulty="high",
    ),
    option_check(
        "GPU531",
        "text-dropout",
        Text("文本丢弃", "Text dropout"),
        text_dropout,
        item("G", "text-dropout", 1),
        "Classifier-free guidance takes a model that has learnt without prompts too.",
        "Leave text_drop_ratio at 0.1.",
        DATA,
    ),
    option_check(
        "GPU532",
        "preencoded-text",
        Text("预编码提示词", "Pre-encoded prompts"),
        _preencoded_text,
        item("I", "preencoded-text", 1.5),
        "The text encoder is frozen: the captions' embeddings are the same in every epoch.",
        "Encode the captions once, keep the embeddings, and load no text encoder.",
        _CACHED,
        priority=Priority.MEDIUM,
        difficulty="medium",
    ),
)
