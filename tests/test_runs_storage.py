"""What stands behind a run's folders, and how many samples it trains on."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from checks_support import runs_of

from flake8_gpu_training.runs.model import Mount, Run

SWIFT = "swift sft --model Qwen/Qwen2.5-7B-Instruct --dataset {data}\n"
ROWS = "".join(json.dumps({"query": "a", "response": "b"}) + "\n" for _ in range(30))


def started(root: Path, lines: str, **files: str) -> Run:
    (run,) = runs_of(root, {"train.sh": lines + SWIFT.format(data="a.jsonl"), **files})
    return run


def kinds(run: Run) -> list[tuple[str, str, str]]:
    return [(mount.path, mount.source, mount.kind) for mount in run.mounts]


@pytest.mark.parametrize(
    ("line", "path", "source", "kind"),
    [
        ("mount -t nfs4 -o ro filer:/sft /data", "/data", "filer:/sft", "network"),
        ("sudo mount -t cifs //filer/sft /data", "/data", "//filer/sft", "network"),
        ("mount.nfs filer:/sft /data", "/data", "filer:/sft", "network"),
        ("s3fs corpus /data -o passwd_file=/etc/s3", "/data", "corpus", "object-store"),
        ("gcsfuse --implicit-dirs corpus /data/", "/data", "corpus", "object-store"),
        ("rclone mount cos:corpus /data --daemon", "/data", "cos:corpus", "object-store"),
        ("aws s3 sync --quiet s3://corpus /data", "/data", "s3://corpus", "copy"),
        ("gsutil -m cp -r gs://corpus /data", "/data", "gs://corpus", "copy"),
        ("hdfs dfs -get hdfs://c/corpus /data", "/data", "hdfs://c/corpus", "copy"),
    ],
)
def test_commands_before_the_run_say_what_its_folders_are(
    line: str, path: str, source: str, kind: str, tmp_path: Path
) -> None:
    assert kinds(started(tmp_path, f"{line}\n")) == [(path, source, kind)]


@pytest.mark.parametrize(
    "line",
    [
        "mount -t ext4 /dev/nvme1n1 /data",
        "mount",
        "echo mount -t nfs filer:/sft /data",
        "# mount -t nfs filer:/sft /data",
        "aws s3 cp out/model.safetensors s3://models/",
        "aws s3 ls s3://corpus",
        "rclone mount",
        "gsutil",
    ],
)
def test_other_commands_mount_nothing(line: str, tmp_path: Path) -> None:
    assert kinds(started(tmp_path, f"{line}\n")) == []


def test_what_docker_binds_is_seen_from_inside(tmp_path: Path) -> None:
    text = (
        "docker run --rm -v /mnt/nfs/sft:/data:ro "
        "--mount type=bind,source=/models,target=/m image " + SWIFT.format(data="/data/a.jsonl")
    )
    (run,) = runs_of(tmp_path, {"train.sh": text})
    assert ("/data", "/mnt/nfs/sft", "bind") in kinds(run)
    assert ("/m", "/models", "bind") in kinds(run)


POD = """\
apiVersion: v1
kind: Pod
metadata: {name: sft}
spec:
  containers:
    - name: sft
      image: registry/swift
      command: [swift, sft, --model, Qwen/Qwen2.5-7B-Instruct, --dataset, /data/a.jsonl]
      volumeMounts: [{name: rows, mountPath: /data}]
  volumes:
    - {name: rows, VOLUME}
"""


@pytest.mark.parametrize(
    ("volume", "kind"),
    [
        ("nfs: {server: filer, path: /sft}", "network"),
        ("csi: {driver: efs.csi.aws.com}", "network"),
        ("csi: {driver: s3.csi.aws.com}", "object-store"),
        ("hostPath: {path: /raid}", "bind"),
        ("emptyDir: {medium: Memory}", "local"),
        ("persistentVolumeClaim: {claimName: nfs-rows}", "network"),
    ],
)
def test_volumes_of_a_pod_are_told_apart(volume: str, kind: str, tmp_path: Path) -> None:
    (run,) = runs_of(tmp_path, {"pod.yaml": POD.replace("VOLUME", volume)})
    ((path, _, found),) = kinds(run)
    assert (path, found) == ("/data", kind)


def test_a_claim_of_unknown_class_proves_nothing(tmp_path: Path) -> None:
    volume = "persistentVolumeClaim: {claimName: rows}"
    (run,) = runs_of(tmp_path, {"pod.yaml": POD.replace("VOLUME", volume)})
    assert run.mounts == ()


def test_places_of_mounts_are_those_of_their_sources(tmp_path: Path) -> None:
    (mount,) = started(tmp_path, "mount -t nfs filer:/sft /data\n").mounts
    assert isinstance(mount, Mount)
    assert (mount.location.path, mount.location.line) == ("train.sh", 1)


# --- samples --------------------------------------------------------------------------------


def samples(root: Path, command: str, **files: str) -> object:
    runs = runs_of(root, {"train.sh": command, **files})
    return runs[0].value("dataset_samples")


def test_lines_and_rows_of_local_files_are_counted(tmp_path: Path) -> None:
    command = SWIFT.format(data="a.jsonl b.json")
    files = {"a.jsonl": ROWS + "\n", "b.json": json.dumps([{}] * 12)}
    assert samples(tmp_path, command, **files) == 42


def test_ms_swift_takes_a_part_of_a_dataset(tmp_path: Path) -> None:
    command = SWIFT.format(data="a.jsonl#10 AI-ModelScope/alpaca-gpt4-data-zh#500")
    assert samples(tmp_path, command, **{"a.jsonl": ROWS}) == 510


@pytest.mark.parametrize(
    ("data", "rows"),
    [
        ("AI-ModelScope/alpaca-gpt4-data-zh", ROWS),
        ("a.jsonl missing.jsonl", ROWS),
        ("a.json", "{not json"),
        ("a.json", '{"rows": []}'),
        ("../a.jsonl", ROWS),
    ],
)
def test_a_part_that_is_not_known_leaves_the_whole_unknown(
    data: str, rows: str, tmp_path: Path
) -> None:
    files = {"a.jsonl": rows, "a.json": rows}
    assert samples(tmp_path, SWIFT.format(data=data), **files) is None


INFO = json.dumps({"orders": {"file_name": "orders.jsonl"}, "hub": {"hf_hub_url": "a/b"}})
LLAMA = "model_name_or_path: a/b\nstage: sft\ndo_train: true\nfinetuning_type: lora\n"


@pytest.mark.parametrize(
    ("more", "count"),
    [
        ("dataset: orders\n", 30),
        ("dataset: orders\nmax_samples: 20\n", 20),
        ("dataset: orders,hub\n", None),
        ("dataset: other\n", None),
    ],
)
def test_llamafactory_registers_its_datasets(more: str, count: object, tmp_path: Path) -> None:
    files = {
        "train.sh": "llamafactory-cli train sft.yaml\n",
        "sft.yaml": LLAMA + more,
        "data/dataset_info.json": INFO,
        "data/orders.jsonl": ROWS,
    }
    assert runs_of(tmp_path, files)[0].value("dataset_samples") == count
