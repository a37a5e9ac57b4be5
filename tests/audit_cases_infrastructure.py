"""Items I (infrastructure) of the general audit, front end by front end."""

from __future__ import annotations

import json

from audit_cases import (
    ADVISED,
    NA,
    OFF,
    ON,
    PARTLY,
    SERVING,
    SGLANG,
    Case,
    Files,
    flow_factory,
    llamafactory,
    megatron_lm,
    script,
    swift,
)
from audit_cases_data import (
    FROM_FOLDER,
    SFT,
    data_module,
    photos,
    text_trainer,
    verl,
)

LORA = "finetuning_type: lora\n"
ROWS = "".join(json.dumps({"messages": []}) + "\n" for _ in range(640))


def folder(path: str) -> Files:
    """A loop over a folder of images."""
    return photos(dataset=f'ImageFolder("{path}")', imports=FROM_FOLDER)


def after(*commands: str, data: str) -> Files:
    """ms-swift behind other commands of its script."""
    lines = "\n".join(
        (*commands, f"swift sft --model Qwen/Qwen2.5-7B-Instruct --dataset {data}/train.jsonl")
    )
    return {"train.sh": script(lines)}


_POD = """\
apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata:
  name: photos
spec:
  pytorchReplicaSpecs:
    Worker:
      replicas: 2
      template:
        spec:
          containers:
            - name: pytorch
              image: registry/photos
              command: [torchrun, --nproc_per_node=8, train.py, --data_path, /data/train]
              resources: {limits: {nvidia.com/gpu: 8}}
              volumeMounts:
                - {name: photos, mountPath: /data}
          volumes:
            - name: photos
              VOLUME
"""
_COMPOSE = """\
services:
  train:
    image: registry/photos
    command: torchrun --nproc_per_node=4 train.py --data_path /data/train
    volumes:
      - VOLUME:/data
"""
_SKY = """\
resources:
  accelerators: A100:8
file_mounts:
  /data:
    source: s3://photos
    mode: MODE
run: |
  torchrun --nproc_per_node=8 train.py --data_path /data/train
"""
_ARGUMENTS = (
    "import argparse\nfrom torchvision.datasets import ImageFolder\n\n"
    "parser = argparse.ArgumentParser()\n"
    'parser.add_argument("--data_path")\nargs = parser.parse_args()\n'
)
BY_FLAG = photos(dataset="ImageFolder(args.data_path)", imports=_ARGUMENTS)


def job(name: str, text: str, volume: str = "") -> Files:
    """A program that a job file starts."""
    return {**BY_FLAG, name: text.replace("VOLUME", volume).replace("MODE", volume)}


S3 = 'data = load_dataset("json", data_files="s3://corpus/train.jsonl").map(tokenize)'
FAKE = photos(dataset="FakeData(100000)", imports="from torchvision.datasets import FakeData")
LOCATION = (
    Case(
        "storage-colocation",
        ON,
        "swift",
        after("aws s3 sync s3://corpus/sft /scratch/sft", data="/scratch/sft"),
        "s3://corpus/sft",
    ),
    Case("storage-colocation", ON, "skypilot", job("task.yaml", _SKY, "COPY"), "s3://photos"),
    Case("storage-colocation", ON, "pytorch", folder("/local_ssd/imagenet/train"), "/local_ssd"),
    Case("storage-colocation", ADVISED, "pytorch", folder("s3://photos/train"), "s3://photos"),
    Case("storage-colocation", ADVISED, "trainer", text_trainer(data=S3), "s3://corpus"),
    Case(
        "storage-colocation",
        ADVISED,
        "swift",
        after("s3fs corpus /mnt/corpus -o ro", data="/mnt/corpus"),
        "s3fs",
    ),
    Case("storage-colocation", ADVISED, "skypilot", job("task.yaml", _SKY, "MOUNT"), "s3://photos"),
    Case(
        "storage-colocation",
        ADVISED,
        "kubernetes",
        job("job.yaml", _POD, "csi: {driver: gcsfuse.csi.storage.gke.io}"),
        "gcsfuse",
    ),
    Case("storage-colocation", NA, "pytorch", FAKE, "made up"),
    Case("storage-colocation", NA, "megatron-lm", megatron_lm("--mock-data"), "made up"),
)
MEDIUM = (
    Case("storage-medium", ON, "pytorch", folder("/nvme0/imagenet/train"), "/nvme0"),
    Case("storage-medium", ON, "kubernetes", job("job.yaml", _POD, "emptyDir: {}"), "emptyDir"),
    Case(
        "storage-medium",
        ON,
        "compose",
        job("compose.yaml", _COMPOSE, "/local_ssd/photos"),
        "/local_ssd",
    ),
    Case("storage-medium", ADVISED, "pytorch", folder("/mnt/nfs/imagenet/train"), "/mnt/nfs"),
    Case(
        "storage-medium",
        ADVISED,
        "trainer",
        text_trainer(data=S3.replace("s3://", "hdfs://")),
        "hdfs://",
    ),
    Case(
        "storage-medium",
        ADVISED,
        "swift",
        after("sudo mount -t nfs filer:/sft /data", data="/data"),
        "filer:/sft",
    ),
    Case(
        "storage-medium",
        ADVISED,
        "kubernetes",
        job("job.yaml", _POD, "nfs: {server: filer, path: /photos}"),
        "nfs: {server",
    ),
    Case(
        "storage-medium",
        ADVISED,
        "compose",
        job("compose.yaml", _COMPOSE, "/mnt/nfs/photos"),
        "/mnt/nfs",
    ),
    Case(
        "storage-medium",
        ADVISED,
        "docker",
        {
            **BY_FLAG,
            "run.sh": script(
                "docker run --gpus all -v /cfs/photos:/data registry/photos "
                "torchrun --nproc_per_node=8 train.py --data_path /data/train"
            ),
        },
        "/cfs/photos",
    ),
    Case(
        "storage-medium",
        PARTLY,
        "llamafactory",
        llamafactory(LORA + "output_dir: hdfs://logs/saves\n"),
        "hdfs://logs",
    ),
    Case("storage-medium", NA, "pytorch", FAKE, "made up"),
    Case("storage-medium", NA, "megatron-lm", megatron_lm("--mock-data"), "made up"),
)


def epochs(*lines: str) -> str:
    """Lines behind a loop over batches, within that over epochs."""
    return "".join(f"        {line}\n" for line in lines)


def each_step(*lines: str, imports: str = "") -> Files:
    """Further lines in the loop over batches."""
    files = dict(photos(imports=imports))
    more = "".join(f"            {line}\n" for line in lines)
    files["train.py"] = files["train.py"].replace(
        "            scheduler.step()\n", f"            scheduler.step()\n{more}"
    )
    return files


_SAVE = 'torch.save(model.state_dict(), "last.pt")'
_CHECKPOINT = "callbacks=[ModelCheckpoint(every_n_train_steps=10)]"
FROM_CALLBACKS = f"{FROM_FOLDER}\nfrom lightning.pytorch.callbacks import ModelCheckpoint"
SIXTY = {"data/train.jsonl": ROWS}
CHECKPOINTS = (
    Case(
        "checkpoint-frequency",
        ON,
        "flow-factory",
        flow_factory("", top="log:\n  save_freq: 20\n"),
        "save_freq: 20",
    ),
    Case(
        "checkpoint-frequency", NA, "flow-factory", flow_factory("", top="log:\n  save_freq: 0\n")
    ),
    Case("checkpoint-frequency", ON, "pytorch", photos(epoch=epochs(_SAVE)), "torch.save"),
    Case("checkpoint-frequency", ON, "lightning", data_module(), "end of each epoch"),
    Case("checkpoint-frequency", ON, "trainer", text_trainer("save_steps=500"), "save_steps=500"),
    Case("checkpoint-frequency", ON, "swift", swift(f"save_steps 100 {SFT}"), "save_steps 100"),
    Case(
        "checkpoint-frequency",
        ON,
        "megatron-lm",
        megatron_lm("--save out --save-interval 2000"),
        "2000",
    ),
    Case("checkpoint-frequency", ON, "verl", verl("trainer.save_freq=20"), "save_freq=20"),
    # 640 samples in batches of 16 for one epoch: 40 steps, of which every fifth saves.
    Case(
        "checkpoint-frequency",
        ON,
        "swift",
        {
            **swift(
                "save_steps 5 --num_train_epochs 1 --per_device_train_batch_size 2 "
                f"--gradient_accumulation_steps 1 {SFT}"
            ),
            **SIXTY,
        },
        "save_steps 5",
    ),
    Case("checkpoint-frequency", ADVISED, "pytorch", each_step(_SAVE), "every step"),
    Case(
        "checkpoint-frequency",
        ADVISED,
        "lightning",
        data_module(arguments=_CHECKPOINT, imports=FROM_CALLBACKS),
        "",
        "every_n_train_steps=500,",
    ),
    Case(
        "checkpoint-frequency",
        ADVISED,
        "trainer",
        text_trainer("save_steps=10"),
        "",
        "save_steps=500,",
    ),
    Case(
        "checkpoint-frequency",
        ADVISED,
        "swift",
        {
            **swift(
                "save_steps 5 --num_train_epochs 20 --per_device_train_batch_size 1 "
                f"--gradient_accumulation_steps 1 {SFT}"
            ),
            **SIXTY,
        },
        "320 in 1,600 steps",
        "--save_steps 320",
    ),
    Case(
        "checkpoint-frequency",
        ADVISED,
        "megatron-lm",
        megatron_lm("--save out --save-interval 10"),
        "",
        "--save-interval 500",
    ),
    Case(
        "checkpoint-frequency", NA, "trainer", text_trainer('save_strategy="no"'), "no checkpoint"
    ),
    Case(
        "checkpoint-frequency",
        NA,
        "lightning",
        data_module(arguments="enable_checkpointing=False"),
        "no checkpoint",
    ),
    Case("checkpoint-frequency", NA, "megatron-lm", megatron_lm(""), "no checkpoint"),
)

_PRINT = 'print(f"loss {loss.item():.4f}")'
LOGGING = (
    Case("logging-frequency", ON, "trainer", text_trainer("logging_steps=10"), "logging_steps=10"),
    Case("logging-frequency", ON, "lightning", data_module(), "50"),
    Case("logging-frequency", ON, "megatron-lm", megatron_lm("--log-interval 100"), "100"),
    Case("logging-frequency", ON, "pytorch", each_step(f"if step % 50 == 0: {_PRINT}"), "print"),
    Case(
        "logging-frequency",
        ON,
        "swift",
        swift(f"logging_steps 1 --gradient_accumulation_steps 16 {SFT}"),
        "16 micro-batches",
    ),
    Case(
        "logging-frequency",
        ADVISED,
        "trainer",
        text_trainer("logging_steps=1"),
        "",
        "logging_steps=10,",
    ),
    Case(
        "logging-frequency",
        ADVISED,
        "llamafactory",
        llamafactory(LORA + "logging_steps: 1\n"),
        "",
        "logging_steps: 10",
    ),
    Case(
        "logging-frequency",
        ADVISED,
        "lightning",
        data_module(arguments="log_every_n_steps=1"),
        "",
        "log_every_n_steps=10,",
    ),
    Case("logging-frequency", ADVISED, "pytorch", each_step(_PRINT), "every step"),
    Case(
        "logging-frequency",
        PARTLY,
        "trainer",
        text_trainer("logging_steps=5"),
        "",
        "logging_steps=10,",
    ),
    # Every training run logs somehow, or not at all, which is seldom enough.
    Case("logging-frequency", NA, "vllm", SERVING, "does not train"),
    Case("logging-frequency", NA, "sglang", SGLANG, "does not train"),
)

_WANDB = 'wandb.log({"loss": loss.detach()})'
REPORTING = (
    Case(
        "progress-reporting-frequency",
        ON,
        "pytorch",
        each_step(f"if step % 50 == 0: {_WANDB}", imports="import wandb"),
        "wandb.log",
    ),
    Case("progress-reporting-frequency", ON, "trainer", text_trainer('report_to="none"'), "none"),
    Case(
        "progress-reporting-frequency",
        ON,
        "swift",
        swift(f"report_to wandb --logging_steps 10 {SFT}"),
        "wandb",
    ),
    Case(
        "progress-reporting-frequency",
        ON,
        "megatron-lm",
        megatron_lm("--tensorboard-dir logs"),
        "logs",
    ),
    Case(
        "progress-reporting-frequency",
        ADVISED,
        "pytorch",
        each_step(_WANDB, imports="import wandb"),
        "every step",
    ),
    Case(
        "progress-reporting-frequency",
        ADVISED,
        "megatron-lm",
        megatron_lm("--wandb-project gpt"),
        "",
        "--tensorboard-log-interval 10",
    ),
    Case(
        "progress-reporting-frequency",
        OFF,
        "trainer",
        text_trainer('report_to="wandb"', "logging_steps=1"),
        "GPU804",
    ),
    # A run that reports nowhere does what is asked; what has no such item does not train.
    Case("progress-reporting-frequency", NA, "vllm", SERVING, "does not train"),
    Case("progress-reporting-frequency", NA, "sglang", SGLANG, "does not train"),
)

CASES = (*LOCATION, *MEDIUM, *CHECKPOINTS, *LOGGING, *REPORTING)
