"""GPU533 to GPU537, GPU704 to GPU715: Flow-Factory's data, rewards, averages and schedulers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Optional

from flake8_gpu_training.checks._flow import (
    HPARAMS,
    LOADER,
    NO_AVERAGE,
    OTHER_TRAINER,
    TRAINERS,
    algorithm,
    averages,
    figure,
    is_off_switch,
    is_own_trainer,
    item,
    model_type,
    needs,
    of_flow,
    option,
    placed,
    reward_place,
    rewards,
    sides,
)
from flake8_gpu_training.checks._judging import (
    Snippet,
    advise,
    by_itself,
    cannot_apply,
    cannot_tell,
    half,
    off,
    on,
)
from flake8_gpu_training.checks._options import option_check
from flake8_gpu_training.checks._programs import calls
from flake8_gpu_training.checks._scale import nodes, ranks
from flake8_gpu_training.checks._settings import is_on
from flake8_gpu_training.checks._starting import ONE_GPU
from flake8_gpu_training.checks.base import Check, Example, Judgement, Priority
from flake8_gpu_training.checks.flow_options import average_on_cpu
from flake8_gpu_training.facts import Setting, known
from flake8_gpu_training.frameworks.reading import dtype, find, number, truth
from flake8_gpu_training.language import Text
from flake8_gpu_training.runs.model import Run

_PROCESSOR = "Flow-Factory 0.1.0, rewards/reward_processor.py"
_ARGUMENTS = f"{HPARAMS}/args.py"
_REWARD_DEFAULTS = f"{HPARAMS}/reward_args.py"

# --- GPU533 to GPU537: data --------------------------------------------------------------------


@of_flow
@needs("data.sampler_type")
def _sampler(run: Run) -> Judgement:
    setting = option(run, "data.sampler_type", "auto")
    if not setting.known:
        return cannot_tell(setting)
    if algorithm(run) == "dgpo":
        return by_itself(
            Text("DGPO 固定使用 group_distributed", "group_distributed, as DGPO takes no other")
        )
    if setting.value != "distributed_k_repeat":
        return on(setting)
    if _asynchronous(run):
        return off(
            Text(
                "异步奖励下改用 group_contiguous", "with rewards beside the sampling it is replaced"
            ),
            setting,
        )
    return off(
        Text("组内样本分散在各卡，需跨卡收集", "groups lie on several ranks: more is gathered"),
        setting,
    )


@of_flow
@needs("data.force_reprocess")
def _cache(run: Run) -> Judgement:
    if is_off_switch(option(run, "data.enable_preprocess", True)):
        return cannot_apply(Text("未启用预处理", "nothing is preprocessed"))
    setting = option(run, "data.force_reprocess", True)
    if not setting.known:
        return cannot_tell(setting)
    if not is_on(setting):
        return on(setting)
    return advise(
        run,
        "prompts and conditions are encoded anew at every start, though the cache knows them by "
        "their content",
        Text("每次启动都重新编码数据", "the data are encoded anew at every start"),
        Text("设 data.force_reprocess: false", "set data.force_reprocess to false"),
        parameters={"data.force_reprocess": False},
        at=placed(run, setting),
    )


@of_flow
@needs("data.preprocess_parallelism")
def _parallelism(run: Run) -> Judgement:
    if ranks(run) == 1:
        return cannot_apply(ONE_GPU)
    if is_off_switch(option(run, "data.enable_preprocess", True)):
        return cannot_apply(Text("未启用预处理", "nothing is preprocessed"))
    setting, count = option(run, "data.preprocess_parallelism", "local"), nodes(run)
    if not setting.known:
        return cannot_tell(setting)
    if setting.value == "global" or count == 1:
        return on(setting)
    if count is None:
        return cannot_tell(Text("节点数未知", "the number of nodes is not known"))
    return off(
        Text(
            "每个节点各自处理全部数据；有共享存储时可设 global",
            "each node preprocesses all; global needs a file system that nodes share",
        ),
        setting,
    )


@of_flow
def _sources(run: Run) -> Judgement:
    setting = option(run, "data.datasets")
    folder = option(run, "data.dataset_dir", "data")
    listed = setting.value if setting.explicit else None
    if isinstance(listed, (list, tuple)) and len(listed) > 1:
        return on(_shown(setting, "data.datasets"))
    if isinstance(listed, (list, tuple)) and listed:
        return cannot_apply(_ONE_SET)
    if not folder.known:
        return cannot_tell(folder)
    if isinstance(folder.value, (list, tuple)) and len(folder.value) > 1:
        return on(folder)
    return cannot_apply(_ONE_SET)


_ONE_SET = Text("只有一个数据集", "there is one data set")


@of_flow
def _loader(run: Run) -> Judgement:
    for call in calls(run, ".DataLoader"):
        if "prefetch_factor" in call.keywords and "persistent_workers" in call.keywords:
            return on(f"DataLoader(prefetch_factor, persistent_workers) in {call.location.path}")
    workers = option(run, "data.dataloader_num_workers", 16)
    count = figure(run, "data.dataloader_num_workers", 16)
    if count == 0:
        return off(Text("没有加载进程（先见 GPU501）", "no workers: they come first (GPU501)"))
    if count is None:
        return cannot_tell(workers)
    return half(
        Text(
            f"已有 pin_memory=True 与 {count:g} 个加载进程；没有 persistent_workers，"
            "每个 epoch 都重启进程",
            f"pin_memory=True and {count:g} workers; no persistent_workers: they start anew in "
            "every epoch",
        ),
        "# src/flow_factory/data_utils/loader.py\n"
        "dataloader = DataLoader(..., pin_memory=True, persistent_workers=True, prefetch_factor=4)",
    )


# --- GPU704 to GPU709: rewards -----------------------------------------------------------------

_NO_REWARDS = Text("未见奖励模型", "no reward model was found")
_REMOTE = ("server_url", "api_base", "base_url", "api_base_url", "endpoint", "url", "api_key")
_REGISTERED = ("pickscore", "pickscore_rank", "clip", "clap", "imagebind")


def _values(run: Run, key: str, default: Any) -> Optional[list[Any]]:
    """A key of all reward models, with its default; None where one is not known."""
    found = rewards(run)
    if not found:
        return None
    values = [one.get(key, default) for one in found]
    return values if all(known(value) for value in values) else None


def _without_rewards(run: Run) -> Judgement:
    """Its own trainers take rewards from somewhere; another's run may have none at all."""
    if rewards(run) == () and algorithm(run) and not is_own_trainer(run):
        return cannot_apply(Text("配置中没有奖励模型", "the file has no reward model"))
    return cannot_tell(_NO_REWARDS)


def _is_remote(one: Mapping[str, Any]) -> bool:
    return any(one.get(key) for key in _REMOTE) or "remote" in str(one.get("reward_model")).lower()


def _asynchronous(run: Run) -> bool:
    return any(truth(one.get("async_reward")) is True for one in rewards(run) or ())


@of_flow
@needs("rewards.async_reward")
def _async(run: Run) -> Judgement:
    found = rewards(run)
    if not found:
        return _without_rewards(run)
    at = _of_reward(run, "async_reward", "false")
    if _asynchronous(run):
        return on(_of_reward(run, "async_reward", "true"))
    remote = [one for one in found if _is_remote(one)]
    if not remote:
        return off(
            Text("可选：采样的同时计算奖励", "optional: rewards computed while sampling goes on"),
            at,
        )
    workers = min(_workers(one) for one in remote)
    return advise(
        run,
        "the answers of a remote reward model are waited for after all samples are made",
        Text("远程奖励模型在采样结束后才计算", "a remote reward model waits for the last sample"),
        Text(
            f"给该奖励设 async_reward: true 与 num_workers: {workers}",
            f"set async_reward to true and num_workers to {workers} for it",
        ),
        snippet=_in_reward(f"async_reward: true\n  num_workers: {workers}"),
        at=at,
    )


_AT_ONCE = {"vllm_evaluate": 100, "rational_rewards_edit": 8, "rational_rewards_t2i": 8}
"""``max_concurrent`` that the rewards which ask a server take by themselves."""


def _workers(one: Mapping[str, Any]) -> int:
    """Workers whose batches a reward's own limit lets through at once.

    A worker runs a loop of its own, and the limit is one semaphore, which raises when it has to
    wait in a second loop.
    """
    default = _AT_ONCE.get(str(one.get("reward_model")).lower())
    limit = number(one.get("max_concurrent", default))
    if limit is None:
        return _WORKERS
    return max(1, min(_WORKERS, int(limit // (number(one.get("batch_size", 16)) or 16))))


def _in_reward(lines: str) -> Snippet:
    """Keys of a reward model, which may be one of a list."""
    said = lines.replace("\n  ", " and ")
    return Snippet(f"set {said} of the reward model", f"rewards:\n  {lines}", "yaml")


def _of_reward(run: Run, key: str, value: str) -> Setting:
    """Evidence of a key of the reward models, or of its default where none of them has it."""
    if any(key in one for one in rewards(run) or ()):
        return _shown(reward_place(run, key), f"rewards: {key}={value}")
    return _shown(None, f"{key}={value} (default, {_REWARD_DEFAULTS})")


def _shown(at: Optional[Setting], text: str) -> Setting:
    """Evidence where the rewards stand."""
    return Setting("rewards", text, at.location if at is not None else None, note=text)


_SMALL_BATCH = 8
_WORKERS = 8


@of_flow
@needs("rewards.batch_size")
def _batch(run: Run) -> Judgement:
    sizes = _values(run, "batch_size", 16)
    if sizes is None:
        return _without_rewards(run)
    smallest = min((number(size) or 0 for size in sizes), default=0)
    at = _of_reward(run, "batch_size", f"{smallest:g}")
    if smallest >= _SMALL_BATCH:
        return on(at)
    return off(
        Text(f"奖励模型批大小 {smallest:g}，偏小", f"{smallest:g} samples at once: small"), at
    )


@of_flow
def _device(run: Run) -> Judgement:
    found, devices = rewards(run), _values(run, "device", "cuda")
    if devices is None or found is None:
        return _without_rewards(run)
    if all(_is_remote(one) for one in found):
        return cannot_apply(Text("奖励模型在远程服务中", "the reward models are servers"))
    if all(str(device).startswith("cuda") for device in devices):
        return on(_of_reward(run, "device", "cuda"))
    said = Text("奖励模型在 CPU 上，较慢", "a reward model on the CPU is slow")
    return off(said, _of_reward(run, "device", "cpu"))


@of_flow
def _type(run: Run) -> Judgement:
    found, types = rewards(run), _values(run, "dtype", "bfloat16")
    if types is None or found is None:
        return _without_rewards(run)
    if all(_is_remote(one) for one in found):
        return cannot_apply(Text("奖励模型在远程服务中", "the reward models are servers"))
    at = _of_reward(run, "dtype", "float32")
    if all(dtype(str(one)) in ("bf16", "fp16") for one in types):
        return on(_of_reward(run, "dtype", str(types[0])))
    wide = [
        one
        for one, kind in zip(found, types)
        if dtype(str(kind)) == "fp32" and str(one.get("reward_model")).lower() in _REGISTERED
    ]
    if not wide:
        said = Text("自定义奖励模型以 FP32 计算", "a reward model of one's own in FP32")
        return off(said, at)
    return advise(
        run,
        f"{wide[0].get('reward_model')} judges in FP32, with twice the memory and half the speed "
        "of BF16",
        Text("奖励模型以 FP32 计算", "a reward model computes in FP32"),
        Text("奖励的 dtype 设为 bfloat16（默认）", "set its dtype to bfloat16 (the default)"),
        snippet=_in_reward("dtype: bfloat16"),
        at=at,
    )


@of_flow
def _routing(run: Run) -> Judgement:
    if figure(run, "eval.eval_freq", 10) == 0:
        return cannot_apply(Text("不做评估（eval.eval_freq: 0）", "no evaluation (eval_freq 0)"))
    of_evaluation = rewards(run, "eval_rewards")
    if of_evaluation:
        return on(_shown(next(_of_evaluation(run), None), "eval_rewards"))
    return off(
        Text("可选：评估用另一组奖励（eval_rewards）", "optional: eval_rewards of their own")
    )


def _of_evaluation(run: Run) -> Any:
    return (s for name, s in run.settings.items() if name.partition(".")[0] == "eval_rewards")


@of_flow
@needs("train.advantage_aggregation")
def _advantage(run: Run) -> Judgement:
    if not is_own_trainer(run):
        return cannot_tell(OTHER_TRAINER)
    setting, found = option(run, "train.advantage_aggregation", "gdpo"), rewards(run)
    if not setting.known:
        return cannot_tell(setting)
    if setting.value == "gdpo":
        return on(setting)
    if found is None:
        return cannot_tell(_NO_REWARDS)
    if len(found) < 2:
        return cannot_apply(Text("只有一个奖励", "there is one reward"))
    return off(
        Text("直接相加：量级大的奖励占主导", "summed: the reward of the largest scale decides"),
        setting,
    )


# --- GPU651, GPU710 to GPU712: averaged weights ------------------------------------------------


def _of_average(name: str, default: Any) -> Any:
    """Judges a parameter of the average, which has a good default."""

    @of_flow
    @needs(f"train.{name}")
    def judge(run: Run) -> Judgement:
        setting, kept = option(run, f"train.{name}", default), averages(run)
        if kept is None or not setting.known:
            return cannot_tell(setting)
        return on(setting) if kept else cannot_apply(NO_AVERAGE)

    return judge


_AVERAGE_PLACE = _of_average("ema_device", "cuda")


def _average_place(run: Run) -> Judgement:
    """Where the average waits: a good choice unless it fills much of a GPU."""
    if average_on_cpu(run).to_gain:
        said = Text("EMA 权重占用大量显存", "the average fills much of a GPU")
        return off(said, option(run, "train.ema_device", "cuda"))
    judged: Judgement = _AVERAGE_PLACE(run)
    return judged


# --- GPU713 to GPU715: schedulers --------------------------------------------------------------

_BY_NOISE = ("grpo", "grpo-guard")
"""Algorithms whose updates take the probabilities of noisy steps; the others noise anew."""


@of_flow
@needs("scheduler.dynamics_type")
def _dynamics(run: Run) -> Judgement:
    setting, how = option(run, "scheduler.dynamics_type", "Flow-SDE"), algorithm(run)
    if not setting.known or not how:
        return cannot_tell(setting if not setting.known else run.practice("algorithm"))
    if not is_own_trainer(run):
        return cannot_tell(OTHER_TRAINER)
    deterministic = str(setting.value).upper() == "ODE"
    if deterministic is not (how in _BY_NOISE):
        return on(setting)
    if deterministic:
        return cannot_tell(Text("GRPO 需要 SDE（见启动检查）", "GRPO needs noisy steps"))
    return off(
        Text(f"{how} 自行加噪，ODE 采样更准", f"{how} noises anew: ODE samples more exactly"),
        setting,
    )


_720P, _480P = 720, 480
_SHIFTS = {_720P: 5.0, _480P: 3.0}


@of_flow
def _shift(run: Run) -> Judgement:
    setting, size = option(run, "scheduler.flow_shift"), sides(run)
    if not model_type(run).startswith("wan"):
        return cannot_apply(Text("仅用于 Wan", "for Wan only"))
    if not setting.known or size is None:
        return cannot_tell(setting)
    if setting.value is None:
        return off(
            Text(
                "未设，用模型自带的值（480P 3.0，720P 5.0）", "the model's own (480P 3.0, 720P 5.0)"
            )
        )
    shift, low = number(setting.value), min(size)
    wanted = _SHIFTS[_720P] if low >= _720P else _SHIFTS[_480P] if low <= _480P else None
    if wanted is None or shift == wanted:
        return on(setting)
    return advise(
        run,
        f"Wan's pipeline takes {wanted:g} at this resolution",
        Text(
            f"{low:.0f}P 下 flow_shift={setting.value}", f"flow_shift={setting.value} at {low:.0f}P"
        ),
        Text(
            f"设 scheduler.flow_shift: {wanted}（480P 3.0，720P 5.0）",
            f"set scheduler.flow_shift to {wanted} (480P 3.0, 720P 5.0)",
        ),
        parameters={"scheduler.flow_shift": wanted},
        at=setting,
    )


@of_flow
def _noisy_steps(run: Run) -> Judgement:
    """``scheduler.sde_steps``, which was ``train_steps`` at first."""
    former = find(run, "scheduler.train_steps")
    return _given_steps(run) if former is None else _steps(run, "scheduler.train_steps")


@needs("scheduler.sde_steps")
def _given_steps(run: Run) -> Judgement:
    return _steps(run, "scheduler.sde_steps")


def _steps(run: Run, name: str) -> Judgement:
    dynamics = option(run, "scheduler.dynamics_type", "Flow-SDE")
    if not dynamics.known:
        return cannot_tell(dynamics)
    if str(dynamics.value).upper() == "ODE":
        return cannot_apply(Text("ODE 没有随机步", "ODE has no noisy steps"))
    setting = option(run, name)
    if not setting.known:
        return cannot_tell(setting)
    if setting.value:
        return on(setting)
    if not is_own_trainer(run):
        return cannot_tell(OTHER_TRAINER)
    return off(
        Text("可选：只在前几步加噪训练", "optional: noise in the first steps, which decide most"),
        setting,
    )


_JUDGES = """\
launcher: accelerate
num_processes: 8
data:
  dataset_dir: dataset/t2is
  dataloader_num_workers: 8
model:
  model_name_or_path: black-forest-labs/FLUX.1-dev
  model_type: flux1
  finetune_type: lora
  lora_rank: 64
  attn_backend: flash
train:
  trainer_type: grpo
  resolution: 512
  group_size: 8
rewards:
  name: judge
  reward_model: {}
"""


def _judged(bad: str, good: str) -> tuple[Example, ...]:
    before, after = (_JUDGES.format(lines) for lines in (bad, good))
    files = (("train.sh", "ff-train grpo.yaml\n"),)
    return (Example("flow_factory", "grpo.yaml", before, after, files),)


def _cached(bad: str, good: str) -> tuple[Example, ...]:
    plain = _judged("PickScore\n", "PickScore\n")[0]
    workers = "  dataloader_num_workers: 8\n"
    before, after = (
        plain.good.replace(workers, f"{workers}  force_reprocess: {value}\n")
        for value in (bad, good)
    )
    return (Example("flow_factory", "grpo.yaml", before, after, plain.files),)


_SERVER = "my_rewards.Judge\n  server_url: http://judge:8000\n"

CHECKS: tuple[Check, ...] = (
    option_check(
        "GPU533",
        "sampler-strategy",
        Text("采样器策略", "Sampler strategy"),
        _sampler,
        item("G", "sampler-strategy", 1),
        "A group whose samples lie on one rank needs no gathering for its advantages.",
        "Leave data.sampler_type at auto.",
        _ARGUMENTS,
    ),
    option_check(
        "GPU534",
        "preprocessing-cache",
        Text("复用预处理缓存", "Preprocessing cache"),
        _cache,
        item("G", "data-cache", 1),
        "Encoders of several billions run over the whole data set before the first epoch.",
        "Set data.force_reprocess to false.",
        HPARAMS,
        examples=_cached("true", "false"),
    ),
    option_check(
        "GPU535",
        "preprocessing-parallelism",
        Text("预处理并行", "Parallel preprocessing"),
        _parallelism,
        item("G", "preprocess-parallelism", 0.5),
        "All processes of a node, or of all nodes, encode a part of the data.",
        "Set data.preprocess_parallelism to global where nodes share a file system.",
        HPARAMS,
    ),
    option_check(
        "GPU536",
        "several-sources",
        Text("多数据源", "Multiple data sources"),
        _sources,
        item("G", "multi-source", 0.5),
        "Rewards for several skills take prompts of several kinds.",
        "Name several data sets.",
        HPARAMS,
    ),
    option_check(
        "GPU537",
        "loader-tuning",
        Text("加载器调优", "DataLoader tuning"),
        _loader,
        item("J", "dataloader-tuning", 0.5),
        "Workers that live on need no start in every epoch.",
        "Give the DataLoader persistent_workers and prefetch_factor.",
        LOADER,
    ),
    option_check(
        "GPU704",
        "async-reward",
        Text("异步奖励", "Asynchronous rewards"),
        _async,
        item("H", "async-reward", 1),
        "A reward model that answers over the network leaves the GPUs waiting.",
        "Set async_reward and num_workers of the reward.",
        _PROCESSOR,
        priority=Priority.MEDIUM,
        examples=_judged(_SERVER, f"{_SERVER}  async_reward: true\n  num_workers: 8\n"),
    ),
    option_check(
        "GPU705",
        "reward-batch",
        Text("奖励批大小", "Reward batch size"),
        _batch,
        item("H", "reward-batch-size", 0.5),
        "A reward model that judges few samples at once leaves the GPU idle.",
        "Leave batch_size of the reward at 16.",
        HPARAMS,
    ),
    option_check(
        "GPU706",
        "reward-device",
        Text("奖励模型设备", "Reward model device"),
        _device,
        item("H", "reward-device", 0.5),
        "On the CPU a reward model takes seconds a sample.",
        "Leave device of the reward at cuda.",
        HPARAMS,
    ),
    option_check(
        "GPU707",
        "reward-type",
        Text("奖励模型精度", "Reward model dtype"),
        _type,
        item("H", "reward-dtype", 0.5),
        "A reward model is not trained: 16 bits tell better from worse.",
        "Leave dtype of the reward at bfloat16.",
        HPARAMS,
        priority=Priority.MEDIUM,
        examples=_judged("PickScore\n  dtype: float32\n", "PickScore\n  dtype: bfloat16\n"),
    ),
    option_check(
        "GPU708",
        "reward-routing",
        Text("评估奖励", "Evaluation rewards"),
        _routing,
        item("H", "reward-routing", 0.5),
        "A reward that is not trained on shows whether the model games the one that is.",
        "Name reward models under eval_rewards.",
        _ARGUMENTS,
    ),
    option_check(
        "GPU709",
        "advantage-type",
        Text("优势聚合方式", "Advantage aggregation"),
        _advantage,
        item("H", "advantage-type", 1),
        "Rewards of different scales are brought to one before they are joined.",
        "Leave train.advantage_aggregation at gdpo.",
        HPARAMS,
    ),
    option_check(
        "GPU710",
        "average-interval",
        Text("EMA 更新间隔", "EMA update interval"),
        _of_average("ema_update_interval", 10),
        item("I", "ema-update-interval", 0.5),
        "The average follows the weights every few epochs.",
        "Leave train.ema_update_interval at its default.",
        HPARAMS,
    ),
    option_check(
        "GPU711",
        "average-place",
        Text("EMA 设备", "EMA device"),
        _average_place,
        item("I", "ema-device", 0.5),
        "The average waits on the GPU, or on the CPU where it is large.",
        "Set train.ema_device.",
        HPARAMS,
    ),
    option_check(
        "GPU712",
        "average-schedule",
        Text("EMA 衰减方式", "EMA decay schedule"),
        _of_average("ema_decay_schedule", "power"),
        item("I", "ema-schedule", 0.5),
        "A decay that grows lets the average forget the first steps.",
        "Leave train.ema_decay_schedule at power.",
        HPARAMS,
    ),
    option_check(
        "GPU713",
        "sampling-dynamics",
        Text("采样动力学", "Sampling dynamics"),
        _dynamics,
        item("I", "dynamics-type", 0.5),
        "GRPO learns from the noise of its steps; the others noise finished samples anew.",
        "Set scheduler.dynamics_type to ODE but for GRPO.",
        TRAINERS,
    ),
    option_check(
        "GPU714",
        "flow-shift",
        Text("flow_shift", "flow_shift"),
        _shift,
        item("I", "flow-shift", 0.5),
        "Wan moves its time steps towards noise the more, the larger the frames.",
        "Set scheduler.flow_shift to 3.0 for 480P, 5.0 for 720P.",
        "diffusers 0.35.2, pipelines/wan/pipeline_wan.py",
    ),
    option_check(
        "GPU715",
        "noisy-steps",
        Text("SDE 步", "SDE steps"),
        _noisy_steps,
        item("I", "sde-steps", 0.5),
        "The first steps decide what a sample shows: noise there is enough.",
        "Name the steps in scheduler.sde_steps.",
        HPARAMS,
    ),
)
