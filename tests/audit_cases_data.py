"""Items F (data and I/O) of the general audit, front end by front end."""

from __future__ import annotations

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
    launched,
    llamafactory,
    megatron_lm,
    megatron_swift,
    script,
    swift,
    videox_fun,
)

# --- plain PyTorch, Lightning, Accelerate: loaders of one's own ------------------------------

_PHOTOS = """\
import torch
from torch.utils.data import DataLoader, Dataset
from torchvision.models import resnet50
{imports}

{classes}
def main():
    train_set = {dataset}
    loader = {loader}
    model = resnet50().cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, 0.1, total_steps=9000)
    for epoch in range(90):
        for {target} in {batches}:
            loss = torch.nn.functional.cross_entropy(model(images.cuda()), labels.cuda())
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            scheduler.step()
{epoch}

if __name__ == "__main__":
    main()
"""
FULL = "DataLoader(train_set, batch_size=64, shuffle=True, num_workers=8, pin_memory=True)"
BARE = "DataLoader(train_set, batch_size=64, shuffle=True)"
TENSORS = "TensorDataset(torch.randn(512, 3, 224, 224), torch.randint(10, (512,)))"
OPENS = """\
class Photos(Dataset):
    def __init__(self, root):
        self.files = sorted(root.glob("*.jpg"))

    def __getitem__(self, index):
        return transform(Image.open(self.files[index])), self.labels[index]


"""
FROM_TENSORS = "from torch.utils.data import TensorDataset"
FROM_FOLDER = "from torchvision.datasets import ImageFolder"


def photos(
    loader: str = FULL,
    dataset: str = 'Photos("data/photos")',
    imports: str = "",
    classes: str = "",
    epoch: str = "",
    batches: str = "loader",
    target: str = "images, labels",
    command: str = "",
) -> Files:
    """A loop over photographs, started as one process or by ``command``."""
    program = _PHOTOS.format(
        loader=loader,
        dataset=dataset,
        imports=imports,
        classes=classes,
        epoch=epoch,
        batches=batches,
        target=target,
    )
    return launched(program, command) if command else {"train.py": program}


_MODULE = """\
import lightning as L
import torch
from torch.utils.data import DataLoader, TensorDataset
{imports}
from model import Classifier


class Photos(L.LightningDataModule):
    def setup(self, stage):
        self.train_set = {dataset}

    def train_dataloader(self):
        return {loader}


trainer = L.Trainer(accelerator="gpu", max_epochs=90{arguments})
trainer.fit(Classifier(), datamodule=Photos())
"""
_CLASSIFIER = """\
import lightning as L
import torch
from torchvision.models import resnet50


class Classifier(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.model = resnet50()

    def training_step(self, batch, batch_idx):
        images, labels = batch
        return torch.nn.functional.cross_entropy(self.model(images), labels)

    def configure_optimizers(self):
        {optimizers}
"""
_LIT_SGD = "return torch.optim.SGD(self.parameters(), lr=0.1)"


def data_module(
    loader: str = FULL,
    dataset: str = 'ImageFolder("data/photos")',
    imports: str = FROM_FOLDER,
    arguments: str = "",
    optimizers: str = _LIT_SGD,
) -> Files:
    """A LightningDataModule with its loader."""
    program = _MODULE.format(
        loader=loader.replace("train_set", "self.train_set"),
        dataset=dataset,
        imports=imports,
        arguments=f", {arguments}" if arguments else "",
    )
    return {
        "train.py": program,
        "model.py": _CLASSIFIER.format(optimizers=optimizers),
        "run.sh": script("python train.py"),
    }


_PREPARED = """\
import torch
from accelerate import Accelerator
from torch.utils.data import DataLoader, Dataset
from torchvision.models import resnet50
{imports}

{classes}
def main():
    accelerator = Accelerator(mixed_precision="bf16")
    train_set = {dataset}
    loader = {loader}
    model = resnet50()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
    for images, labels in loader:
        loss = torch.nn.functional.cross_entropy(model(images), labels)
        accelerator.backward(loss)
        optimizer.step()
        optimizer.zero_grad()


if __name__ == "__main__":
    main()
"""


def prepared(
    loader: str = FULL,
    dataset: str = 'Photos("data/photos")',
    imports: str = "",
    classes: str = "",
) -> Files:
    """The same loop prepared by Accelerate."""
    program = _PREPARED.format(loader=loader, dataset=dataset, imports=imports, classes=classes)
    return launched(program, "accelerate launch --num_processes 4 train.py")


# --- text: Trainer, TRL, loops over tokens ---------------------------------------------------

_TEXT = """\
from datasets import {loads}
from transformers import AutoModelForCausalLM, AutoTokenizer, Trainer, TrainingArguments
{imports}
tokenizer = AutoTokenizer.from_pretrained("Qwen/Qwen2.5-7B")
model = AutoModelForCausalLM.from_pretrained("Qwen/Qwen2.5-7B")


def tokenize(rows):
    return tokenizer(rows["text"], truncation=True, max_length=2048)


{data}
args = TrainingArguments(
    output_dir="out",
    bf16=True,
    {arguments}
)
Trainer(model=model, args=args, train_dataset=data, data_collator=collate).train()
"""
_MAPPED = 'data = load_dataset("imdb", split="train").map(tokenize, batched=True, num_proc=8)'


def text_trainer(
    *arguments: str, data: str = _MAPPED, loads: str = "load_dataset", imports: str = ""
) -> Files:
    """Transformers' Trainer on text."""
    lines = ",\n    ".join((*arguments, "num_train_epochs=3")) + ","
    program = _TEXT.format(arguments=lines, data=data, loads=loads, imports=imports)
    return launched(program, "torchrun --nproc_per_node=4 train.py")


_TRL = """\
from datasets import {loads}
from trl import {kind}Config, {kind}Trainer

data = {data}
config = {kind}Config(
    output_dir="out",
    {arguments}
)
trainer = {kind}Trainer(model="{model}", args=config, train_dataset=data{more})
trainer.train()
"""


def trl(
    *arguments: str,
    kind: str = "SFT",
    data: str = 'load_dataset("trl-lib/Capybara", split="train")',
    loads: str = "load_dataset",
    model: str = "Qwen/Qwen2.5-7B",
    more: str = "",
) -> Files:
    """A program of TRL's trainers."""
    lines = ",\n    ".join((*arguments, "num_train_epochs=1")) + ","
    program = _TRL.format(
        arguments=lines, kind=kind, data=data, loads=loads, model=model, more=more
    )
    return {"train.py": program, "run.sh": script("python train.py")}


_TOKENS = """\
import numpy as np
import torch
from model import GPT

{reads}
model = GPT().cuda()
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)


def get_batch():
    starts = torch.randint(len(tokens) - 1024, (12,))
    rows = torch.stack([torch.from_numpy(tokens[i : i + 1024].astype(np.int64)) for i in starts])
    return rows.pin_memory().to("cuda", non_blocking=True)


while True:
    loss = model(get_batch())
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
"""
_MEMMAP = 'tokens = np.memmap("data/train.bin", dtype=np.uint16, mode="r")'
_GPT = "import torch\n\n\nclass GPT(torch.nn.Module):\n    pass\n"


def tokens(reads: str = _MEMMAP, command: str = "torchrun --nproc_per_node=8 train.py") -> Files:
    """A loop that cuts its batches from a file of tokens."""
    return {**launched(_TOKENS.format(reads=reads), command), "model.py": _GPT}


_LATE = """\
import torch
from torch.utils.data import DataLoader, Dataset
from transformers import AutoModelForSequenceClassification, AutoTokenizer

tokenizer = AutoTokenizer.from_pretrained("roberta-base")


class Reviews(Dataset):
    def __getitem__(self, index):
        return {item}


{collate}model = AutoModelForSequenceClassification.from_pretrained("roberta-base").cuda()
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-5)
loader = DataLoader(Reviews(), 32, shuffle=True, num_workers=8, pin_memory=True{more})
for batch in loader:
    loss = model(**batch).loss
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
"""


def reviews(item: str, collate: str = "", more: str = "") -> Files:
    """A loop over texts whose dataset makes ``item``."""
    return {"train.py": _LATE.format(item=item, collate=collate, more=more)}


_COLLATE = """\
def collate(rows):
    return tokenizer([row["text"] for row in rows], padding=True, return_tensors="pt")


"""


def verl(*overrides: str, trainer: str = "main_ppo") -> Files:
    """verl's trainer with overrides of its configuration."""
    words = " \\\n    ".join(
        (
            "data.train_files=/data/gsm8k/train.parquet",
            "actor_rollout_ref.model.path=Qwen/Qwen2.5-7B-Instruct",
            "trainer.n_gpus_per_node=8",
            *overrides,
        )
    )
    return {"run.sh": script(f"python3 -m verl.trainer.{trainer} \\\n    {words}")}


_LAMBS = """\
import torch
from nvidia.dali.plugin.pytorch import DALIClassificationIterator
from pipeline import photos
from torchvision.models import resnet50

loader = DALIClassificationIterator(photos(batch_size=64, num_threads=8, device_id=0))
model = resnet50().cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for batch in loader:
    loss = torch.nn.functional.cross_entropy(model(batch[0]["data"]), batch[0]["label"])
    loss.backward()
    optimizer.step()
"""
DALI = {"train.py": _LAMBS, "pipeline.py": "from nvidia.dali import pipeline_def\n"}
SFT = "--tuner_type lora --dataset data/train.jsonl"
KTO = "swift rlhf --rlhf_type kto"
GRPO = "swift rlhf --rlhf_type grpo"
VL = "Qwen/Qwen2.5-VL-7B-Instruct"
IN_MEMORY = {"dataset": TENSORS, "imports": FROM_TENSORS}
TIMM = "from timm.data import create_loader"
MOCK = megatron_lm("--mock-data")

WORKERS = (
    Case("worker-processes", ON, "pytorch", photos(), "num_workers=8"),
    Case("worker-processes", ON, "lightning", data_module(), "num_workers=8"),
    Case("worker-processes", ON, "accelerate", prepared(), "num_workers=8"),
    Case("worker-processes", ON, "trainer", text_trainer("dataloader_num_workers=4"), "workers=4"),
    Case(
        "worker-processes",
        ON,
        "timm",
        photos(
            "create_loader(train_set, 224, 64, is_training=True, num_workers=8, pin_memory=True)",
            imports=TIMM,
        ),
        "num_workers=8",
    ),
    Case("worker-processes", ON, "dali", DALI, "nvidia.dali"),
    Case("worker-processes", ON, "megatron-lm", megatron_lm("--num-workers 8"), "num-workers 8"),
    Case("worker-processes", ON, "megatron-swift", megatron_swift("micro_batch_size 1"), "4"),
    Case("worker-processes", ON, "flow-factory", flow_factory(""), "16"),
    Case("worker-processes", ON, "verl", verl("data.dataloader_num_workers=8"), "workers=8"),
    Case("worker-processes", OFF, "verl", verl("data.dataloader_num_workers=1"), "prompts"),
    Case(
        "worker-processes",
        ADVISED,
        "pytorch",
        photos(BARE),
        "main process",
        "num_workers=4,",
    ),
    Case("worker-processes", ADVISED, "lightning", data_module(BARE), "", "num_workers=4,"),
    Case("worker-processes", ADVISED, "accelerate", prepared(BARE), "", "num_workers=4,"),
    Case(
        "worker-processes",
        ADVISED,
        "trainer",
        text_trainer(),
        "",
        "dataloader_num_workers=4,",
    ),
    Case(
        "worker-processes",
        ADVISED,
        "llamafactory",
        llamafactory("finetuning_type: lora\n"),
        "",
        "dataloader_num_workers: 4",
    ),
    Case(
        "worker-processes",
        ADVISED,
        "videox-fun",
        videox_fun(""),
        "",
        "--dataloader_num_workers=4",
    ),
    Case("worker-processes", PARTLY, "swift", swift(SFT), "", "--dataloader_num_workers 4"),
    Case("worker-processes", OFF, "swift", swift("use_vllm true", what=GRPO), "prompts"),
    Case("worker-processes", NA, "pytorch", photos(BARE, **IN_MEMORY), "in memory"),
    Case("worker-processes", NA, "accelerate", prepared(BARE, **IN_MEMORY), "in memory"),
    Case(
        "worker-processes",
        NA,
        "lightning",
        data_module(BARE, dataset=TENSORS, imports=""),
        "in memory",
    ),
    Case("worker-processes", NA, "memory map", tokens(), "memory map"),
)

PREFETCH = (
    Case(
        "prefetch", ON, "pytorch", photos(FULL[:-1] + ", prefetch_factor=4)"), "prefetch_factor=4"
    ),
    Case("prefetch", ON, "accelerate", prepared(), "DataLoader"),
    Case("prefetch", ON, "trainer", text_trainer("dataloader_num_workers=4"), "prefetch_factor=2"),
    Case("prefetch", ON, "dali", DALI, "nvidia.dali"),
    Case("prefetch", ON, "megatron-lm", megatron_lm(""), "prefetch_factor=2"),
    Case(
        "prefetch",
        ADVISED,
        "pytorch",
        photos(FULL[:-1] + ", prefetch_factor=1)"),
        "",
        "prefetch_factor=2,",
    ),
    Case(
        "prefetch",
        ADVISED,
        "lightning",
        data_module(FULL[:-1] + ", prefetch_factor=1)"),
        "",
        "prefetch_factor=2,",
    ),
    Case(
        "prefetch",
        ADVISED,
        "trainer",
        text_trainer("dataloader_num_workers=4", "dataloader_prefetch_factor=1"),
        "",
        "dataloader_prefetch_factor=2,",
    ),
    Case(
        "prefetch",
        ADVISED,
        "swift",
        swift(f"dataloader_num_workers 4 --dataloader_prefetch_factor 1 {SFT}"),
        "",
        "--dataloader_prefetch_factor 2",
    ),
    Case("prefetch", OFF, "llamafactory", llamafactory("finetuning_type: lora\n"), "GPU501"),
    Case("prefetch", NA, "pytorch", photos(BARE, **IN_MEMORY), "in memory"),
    Case(
        "prefetch",
        NA,
        "lightning",
        data_module(BARE, dataset=TENSORS, imports=""),
        "in memory",
    ),
)

UNPINNED = "DataLoader(train_set, batch_size=64, shuffle=True, num_workers=8)"
PIN = (
    Case("pin-memory", ON, "pytorch", photos(), "pin_memory=True"),
    Case("pin-memory", ON, "memory map", tokens(), "pin_memory"),
    Case("pin-memory", ON, "trainer", text_trainer(), "dataloader_pin_memory True"),
    Case("pin-memory", ON, "swift", swift(SFT), "True"),
    Case("pin-memory", ON, "megatron-lm", megatron_lm(""), "pin_memory=True"),
    Case("pin-memory", ADVISED, "pytorch", photos(UNPINNED), "", "pin_memory=True,"),
    Case("pin-memory", ADVISED, "lightning", data_module(UNPINNED), "", "pin_memory=True,"),
    Case("pin-memory", ADVISED, "accelerate", prepared(UNPINNED), "", "pin_memory=True,"),
    Case(
        "pin-memory",
        ADVISED,
        "timm",
        photos("create_loader(train_set, 224, 64, is_training=True, num_workers=8)", imports=TIMM),
        "",
        "pin_memory=True,",
    ),
    Case(
        "pin-memory",
        ADVISED,
        "trainer",
        text_trainer("dataloader_pin_memory=False"),
        "",
        "dataloader_pin_memory=True,",
    ),
    Case(
        "pin-memory",
        ADVISED,
        "llamafactory",
        llamafactory("finetuning_type: lora\ndataloader_pin_memory: false\n"),
        "",
        "dataloader_pin_memory: true",
    ),
    Case("pin-memory", NA, "pytorch", photos(BARE, **IN_MEMORY), "in memory"),
    Case("pin-memory", NA, "trainer", text_trainer("use_cpu=True"), "CPU"),
)

NFS = 'ImageFolder("/mnt/nfs/imagenet/train")'
_OPENED = {
    "classes": OPENS,
    "imports": "import argparse\nfrom PIL import Image\n\nparser = argparse.ArgumentParser()\n"
    'parser.add_argument("--data_dir")\nargs = parser.parse_args()\n',
}
SMALL_FILES = (
    Case(
        "small-file-merging",
        ON,
        "webdataset",
        photos(
            "wds.WebLoader(train_set, batch_size=64, num_workers=8)",
            'wds.WebDataset("data/train-{000000..000146}.tar")',
            "import webdataset as wds",
        ),
        "webdataset",
    ),
    Case(
        "small-file-merging",
        ON,
        "mosaicml",
        photos(
            dataset='StreamingDataset(local="/nvme/c4")',
            imports="from streaming import StreamingDataset",
        ),
        "StreamingDataset",
    ),
    Case("small-file-merging", ON, "dali", DALI, "nvidia.dali"),
    Case("small-file-merging", ON, "trainer", text_trainer(), "load_dataset"),
    Case(
        "small-file-merging", ON, "llamafactory", llamafactory("finetuning_type: lora\n"), "Arrow"
    ),
    Case("small-file-merging", ON, "megatron-lm", megatron_lm(""), "corpus_text_document"),
    Case("small-file-merging", ON, "verl", verl(), "train.parquet"),
    Case(
        "small-file-merging",
        ADVISED,
        "pytorch",
        photos(dataset=NFS, imports=FROM_FOLDER),
        "imagenet",
    ),
    Case("small-file-merging", ADVISED, "lightning", data_module(dataset=NFS), "imagenet"),
    Case(
        "small-file-merging",
        ADVISED,
        "accelerate",
        prepared(dataset="Photos(args.data_dir)", **_OPENED)
        | {
            "train.sh": "mount -t nfs filer:/photos /photos\n"
            "accelerate launch --num_processes 4 train.py --data_dir /photos/train\n"
        },
        "filer:/photos",
    ),
    Case("small-file-merging", NA, "pytorch", photos(BARE, **IN_MEMORY), "in memory"),
    Case(
        "small-file-merging",
        NA,
        "lightning",
        data_module(dataset='CIFAR10("data")', imports="from torchvision.datasets import CIFAR10"),
        "in memory",
    ),
    Case("small-file-merging", NA, "megatron-lm", MOCK, "in memory"),
)

WHOLE = "DataLoader(train_set, batch_size=len(train_set), num_workers=8, pin_memory=True)"
MINIBATCHES = (
    Case("minibatching", ON, "pytorch", photos(), "batch_size=64"),
    Case("minibatching", ON, "trainer", text_trainer(), "8"),
    Case("minibatching", ON, "megatron-lm", megatron_lm(""), "micro-batch-size 1"),
    Case(
        "minibatching",
        ON,
        "verl",
        verl("data.micro_batch_size_per_gpu=4", trainer="sft_trainer"),
        "micro_batch_size_per_gpu=4",
    ),
    Case("minibatching", ADVISED, "pytorch", photos(WHOLE), "", "batch_size=32,"),
    Case(
        "minibatching",
        ADVISED,
        "lightning",
        data_module(WHOLE.replace("num", "shuffle=True, num")),
        "",
        "batch_size=32,",
    ),
    # Training goes by batches of some size; what has none does not train.
    Case("minibatching", NA, "vllm", SERVING, "does not train"),
    Case("minibatching", NA, "sglang", SGLANG, "does not train"),
)

OFFLINE = (
    Case(
        "offline-preprocessing",
        ON,
        "trainer",
        text_trainer(data='data = load_from_disk("data/tokens")', loads="load_from_disk"),
        "load_from_disk",
    ),
    Case("offline-preprocessing", ON, "trainer", text_trainer(), "map(tokenize"),
    Case("offline-preprocessing", ON, "trl", trl(), "TRL"),
    Case("offline-preprocessing", ON, "swift", swift(SFT), "before the first step"),
    Case("offline-preprocessing", ON, "swift", swift("cached_dataset data/cached"), "cached"),
    Case(
        "offline-preprocessing",
        ON,
        "llamafactory",
        llamafactory("finetuning_type: lora\ntokenized_path: saves/tokens\n"),
        "tokenized_path",
    ),
    Case("offline-preprocessing", ON, "megatron-lm", megatron_lm(""), "data-path"),
    Case("offline-preprocessing", ON, "memory map", tokens(), "memmap"),
    Case(
        "offline-preprocessing",
        ADVISED,
        "pytorch",
        reviews("tokenizer(self.texts[index], truncation=True)"),
        "when fetched",
    ),
    Case(
        "offline-preprocessing",
        ADVISED,
        "pytorch",
        reviews("self.rows[index]", _COLLATE, ", collate_fn=collate"),
        "when fetched",
    ),
    Case(
        "offline-preprocessing",
        ADVISED,
        "trainer",
        text_trainer(
            data='data = load_dataset("imdb", split="train")\ndata.set_transform(tokenize)'
        ),
        "when fetched",
    ),
    Case(
        "offline-preprocessing",
        ADVISED,
        "swift",
        swift(f"lazy_tokenize true {SFT}"),
        "",
        "--lazy_tokenize false",
    ),
    Case("offline-preprocessing", NA, "pytorch", photos(), "augmented"),
    Case(
        "offline-preprocessing",
        NA,
        "swift",
        swift(f"streaming true --max_steps 900 {SFT}"),
        "comes",
    ),
    Case(
        "offline-preprocessing",
        NA,
        "llamafactory",
        llamafactory("finetuning_type: lora\nstreaming: true\nmax_steps: 900\n"),
        "comes",
    ),
    Case(
        "offline-preprocessing",
        NA,
        "trl",
        trl("max_completion_length=512", kind="GRPO", more=", reward_funcs=score"),
        "answered",
    ),
)

GROUPED = """\
def group_texts(rows):
    return rows


data = load_dataset("imdb", split="train").map(tokenize).map(group_texts, batched=True)"""
PACKING = (
    Case(
        "packing", ON, "swift", swift(f"packing true --attn_impl flash_attn {SFT}"), "packing true"
    ),
    Case(
        "packing",
        ON,
        "llamafactory",
        llamafactory("finetuning_type: lora\nneat_packing: true\n"),
        "neat_packing",
    ),
    Case("packing", ON, "trl", trl("packing=True"), "packing=True"),
    Case("packing", ON, "trainer", text_trainer(data=GROUPED), "group_texts"),
    Case("packing", ON, "megatron-lm", megatron_lm(""), "joined"),
    Case("packing", ON, "memory map", tokens(), "memmap"),
    Case(
        "packing",
        ON,
        "verl",
        verl("actor_rollout_ref.model.use_remove_padding=True"),
        "use_remove_padding=True",
    ),
    Case("packing", ADVISED, "swift", swift(SFT), "", "--packing true"),
    Case(
        "packing",
        ADVISED,
        "llamafactory",
        llamafactory("finetuning_type: lora\nflash_attn: fa2\n"),
        "",
        "neat_packing: true",
    ),
    Case("packing", ADVISED, "trl", trl(), "", "packing=True,"),
    Case("packing", OFF, "swift", swift(SFT, what=KTO), "kto"),
    Case("packing", NA, "pytorch", photos(), "no text"),
    Case("packing", NA, "swift", swift(f"task_type seq_cls {SFT}"), "seq_cls"),
    Case(
        "packing",
        NA,
        "trl",
        trl("max_completion_length=512", kind="GRPO", more=", reward_funcs=score"),
        "generated",
    ),
    Case(
        "packing",
        NA,
        "llamafactory",
        llamafactory("finetuning_type: lora\n", "gres=gpu:v100-32g:8"),
        "flash attention",
    ),
)

KEPT = 'data = load_dataset("imdb", split="train", keep_in_memory=True).map(tokenize)'
MAPPING = (
    Case("memory-mapping", ON, "memory map", tokens(), "memmap"),
    Case("memory-mapping", ON, "trainer", text_trainer(), "Arrow"),
    Case("memory-mapping", ON, "swift", swift(SFT), "Arrow"),
    Case("memory-mapping", ON, "megatron-lm", megatron_lm(""), "data-path"),
    Case(
        "memory-mapping",
        ADVISED,
        "pytorch",
        tokens('tokens = np.load("data/train_tokens.npy")'),
        "",
        'mmap_mode="r",',
    ),
    Case("memory-mapping", ADVISED, "trainer", text_trainer(data=KEPT), "", "keep_in_memory=False"),
    Case(
        "memory-mapping",
        OFF,
        "megatron-lm",
        megatron_lm("--no-mmap-bin-files"),
        "not memory-mapped",
    ),
    Case("memory-mapping", NA, "pytorch", photos(BARE, **IN_MEMORY), "in memory"),
    Case("memory-mapping", NA, "lightning", data_module(), "read when used"),
)

STREAMED = 'data = load_dataset("allenai/c4", "en", split="train", streaming=True).map(tokenize)'
CORPUS = STREAMED.replace(", streaming=True", "")
STREAMING = (
    Case(
        "streaming-dataset",
        ON,
        "trainer",
        text_trainer("max_steps=900", data=STREAMED),
        "streaming",
    ),
    Case(
        "streaming-dataset",
        ON,
        "swift",
        swift(f"streaming true --max_steps 900 {SFT}"),
        "streaming",
    ),
    Case(
        "streaming-dataset",
        ON,
        "mosaicml",
        photos(
            dataset='StreamingDataset(local="/nvme/c4")',
            imports="from streaming import StreamingDataset",
        ),
        "StreamingDataset",
    ),
    Case("streaming-dataset", ADVISED, "trainer", text_trainer(data=CORPUS), "", "streaming=True,"),
    Case(
        "streaming-dataset",
        ADVISED,
        "swift",
        {"pt.sh": "swift pt --model Qwen/Qwen2.5-7B --dataset HuggingFaceFW/fineweb\n"},
        "",
        "--streaming true",
    ),
    Case(
        "streaming-dataset",
        ADVISED,
        "llamafactory",
        {
            **llamafactory("finetuning_type: full\n"),
            "sft.yaml": "model_name_or_path: Qwen/Qwen2.5-7B\nstage: pt\ndo_train: true\n"
            "dataset: refinedweb\nfinetuning_type: full\n",
        },
        "",
        "streaming: true",
    ),
    Case("streaming-dataset", OFF, "swift", swift(SFT)),
    Case("streaming-dataset", NA, "pytorch", photos(BARE, **IN_MEMORY), "in memory"),
    Case(
        "streaming-dataset",
        NA,
        "lightning",
        data_module(dataset='CIFAR10("data")', imports="from torchvision.datasets import CIFAR10"),
        "in memory",
    ),
)

BINARY = (
    Case("pretokenized-binary", ON, "megatron-lm", megatron_lm(""), "data-path"),
    Case("pretokenized-binary", ON, "memory map", tokens(), "memmap"),
    Case("pretokenized-binary", ON, "swift", swift("cached_dataset data/cached"), "cached"),
    Case(
        "pretokenized-binary",
        ON,
        "llamafactory",
        llamafactory("finetuning_type: lora\ntokenized_path: saves/tokens\n"),
        "tokenized_path",
    ),
    Case("pretokenized-binary", OFF, "swift", swift(SFT), "optional"),
    Case("pretokenized-binary", OFF, "trl", trl(), "optional"),
    Case("pretokenized-binary", NA, "pytorch", photos(), "not text"),
    Case("pretokenized-binary", NA, "swift", swift(SFT, model=VL), "not text"),
    Case("pretokenized-binary", NA, "flow-factory", flow_factory(""), "not text"),
)

CASES = (
    *WORKERS,
    *PREFETCH,
    *PIN,
    *SMALL_FILES,
    *MINIBATCHES,
    *OFFLINE,
    *PACKING,
    *MAPPING,
    *STREAMING,
    *BINARY,
)
