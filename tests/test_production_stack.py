"""Engines that vLLM's production stack deploys: Helm values and VLLMRuntime objects."""

from __future__ import annotations

import pytest

from flake8_gpu_training.project import Project
from flake8_gpu_training.runs.find import find_runs

VALUES = """\
servingEngineSpec:
  modelSpec:
    - name: a
      repository: vllm/vllm-openai
      tag: v0.20.2
      modelURL: org/model
      replicaCount: 1
      requestCPU: 6
      requestGPU: 2
      vllmConfig:
        tensorParallelSize: 2
        maxModelLen: 8192
        gpuMemoryUtilization: 0.8
        unheard: 4
        extraArgs: ["--enforce-eager"]
"""


def runs_of(tmp_path, text):
    (tmp_path / "values.yaml").write_text(text, encoding="utf-8")
    return find_runs(Project.open(tmp_path))


def test_values_of_the_chart_start_an_engine(tmp_path):
    (run,) = runs_of(tmp_path, VALUES)
    assert (run.framework, run.model.name, run.location.line) == ("vllm", "org/model", 6)
    found = {name: (one.value, one.location.line) for name, one in run.settings.items()}
    assert found["tensor_parallel_size"] == (2, 11)
    assert found["max_model_len"] == (8192, 12)
    assert found["gpu_memory_utilization"] == (0.8, 13)
    assert found["enforce_eager"] == (True, 15)
    assert "unheard" not in found
    assert run.versions["vllm"] == "0.20.2"
    assert run.hardware.gpus_per_node == 2


def test_the_chart_switches_prefix_caching_off_where_its_configuration_is_silent(tmp_path):
    (run,) = runs_of(tmp_path, VALUES)
    assert run.settings["enable_prefix_caching"].value is False
    (run,) = runs_of(tmp_path, VALUES + "        enablePrefixCaching: true\n")
    assert run.settings["enable_prefix_caching"].value is True
    head, _, _ = VALUES.partition("      vllmConfig:")
    (run,) = runs_of(tmp_path, head)
    assert "enable_prefix_caching" not in run.settings


def test_a_ray_cluster_of_the_chart_has_stages_and_silent_caching(tmp_path):
    text = VALUES + "        pipelineParallelSize: 2\n"
    (run,) = runs_of(tmp_path, text)
    assert "pipeline_parallel_size" not in run.settings
    (run,) = runs_of(tmp_path, text + "      raySpec: {enabled: true}\n")
    assert run.settings["pipeline_parallel_size"].value == 2
    assert run.settings["distributed_executor_backend"].value == "ray"
    assert "enable_prefix_caching" not in run.settings


def test_what_the_chart_does_not_deploy_is_no_run(tmp_path):
    assert not runs_of(tmp_path, VALUES + "      enabled: false\n")
    assert not runs_of(tmp_path, VALUES.replace("Spec:\n", "Spec:\n  enableEngine: false\n", 1))
    assert not runs_of(tmp_path, "servingEngineSpec:\n  modelSpec: []\n")


def test_the_chart_says_which_gpus_are_seen(tmp_path):
    (run,) = runs_of(tmp_path, VALUES + "      lmcacheConfig: {cudaVisibleDevices: '0,1'}\n")
    assert run.environment["CUDA_VISIBLE_DEVICES"].value == "0,1"


def test_lmcache_is_a_connector_of_the_engine(tmp_path):
    (run,) = runs_of(tmp_path, VALUES + "      lmcacheConfig: {enabled: true}\n")
    assert "LMCacheConnectorV1" in str(run.settings["kv_transfer_config"].value)
    (run,) = runs_of(tmp_path, VALUES + "      lmcacheConfig: {enabled: false}\n")
    assert "kv_transfer_config" not in run.settings


RUNTIME = """\
apiVersion: production-stack.vllm.ai/v1alpha1
kind: VLLMRuntime
metadata: {name: r}
spec:
  model:
    modelURL: org/model
    maxNumSeqs: 32
  vllmConfig:
    enablePrefixCaching: true
    tensorParallelSize: 2
    v1: true
  deploymentConfig:
    resources: {cpu: "8", gpu: "2"}
    image: {registry: docker.io, name: "vllm/vllm-openai:v0.20.2"}
"""


def test_a_runtime_object_starts_an_engine(tmp_path):
    (run,) = runs_of(tmp_path, RUNTIME)
    assert (run.framework, run.model.name, run.location.line) == ("vllm", "org/model", 6)
    assert run.settings["max_num_seqs"].value == 32
    assert run.settings["enable_prefix_caching"].value is True
    assert run.settings["enable_chunked_prefill"].value is False
    assert run.settings["tensor_parallel_size"].location.line == 10
    assert run.versions["vllm"] == "0.20.2"
    assert run.hardware.gpus_per_node == 2


def test_another_object_of_the_stack_starts_no_engine(tmp_path):
    assert not runs_of(tmp_path, RUNTIME.replace("kind: VLLMRuntime", "kind: VLLMRouter"))


def test_a_file_with_the_latest_image_has_not_the_release_of_the_one_beside_it(tmp_path):
    latest = VALUES.replace("v0.20.2", "latest").replace("org/model", "org/other")
    (tmp_path / "other.yaml").write_text(latest, encoding="utf-8")
    found = {run.model.name: run.versions.get("vllm") for run in runs_of(tmp_path, VALUES)}
    assert found == {"org/model": "0.20.2", "org/other": None}


def test_values_that_terraform_fills_in_are_values(tmp_path):
    (tmp_path / "gpu.tpl").write_text("# a template\n" + VALUES, encoding="utf-8")
    text = '{{- define "chart.name" -}}\n{{ .Chart.Name }}: vllm serve other\n{{- end -}}\n'
    (tmp_path / "_helpers.tpl").write_text(text, encoding="utf-8")
    project = Project.open(tmp_path)
    (run,) = find_runs(project, "helm install stack repo/chart -f gpu.tpl")
    assert (run.location.path, run.model.name) == ("gpu.tpl", "org/model")
    assert project.read("_helpers.tpl") is None


def test_each_engine_has_its_own_image_and_gpus(tmp_path):
    second = (
        VALUES.partition("  modelSpec:\n")[2]
        .replace("name: a", "name: b")
        .replace("v0.20.2", "v0.15.1")
        .replace("org/model", "org/other")
        .replace("requestGPU: 2", "requestGPU: 4")
        .replace("ParallelSize: 2", "ParallelSize: 1")
    )
    runs = runs_of(tmp_path, VALUES + second)
    found = {run.model.name: run for run in runs}
    assert found["org/model"].versions["vllm"] == "0.20.2"
    assert found["org/model"].hardware.gpus_per_node == 2
    assert found["org/other"].versions["vllm"] == "0.15.1"
    assert found["org/other"].hardware.gpus_per_node == 4


def test_values_of_a_test_are_read_when_a_command_names_them(tmp_path):
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "values.yaml").write_text(VALUES, encoding="utf-8")
    (tmp_path / "mine.yaml").write_text(VALUES.replace("org/model", "org/mine"), encoding="utf-8")
    project = Project.open(tmp_path)
    assert [run.model.name for run in find_runs(project)] == ["org/mine"]
    line = "helm upgrade --install stack helm -f tests/values.yaml"
    first, second = find_runs(project, line)
    assert (first.primary, first.model.name) == (True, "org/model")
    assert second.model.name == "org/mine"


@pytest.mark.parametrize(
    ("head", "gpu"),
    [
        ("# Tesla V100 SXM2 16GB (Volta) - Single GPU (TP=1)\n#\n", "V100-16G-SXM"),
        ("# Tesla V100 SXM2 16GB\n# at least 4x 16GB V100\n", "V100-16G-SXM"),
        ("# for any GPU with 24 GB\n", None),
        ("# V100 16GB and A100 80GB GPUs\n", None),
    ],
)
def test_the_head_of_the_values_names_the_gpu(tmp_path, head, gpu):
    (run,) = runs_of(tmp_path, head + VALUES)
    assert run.hardware.gpu == gpu


def test_a_comment_within_the_values_names_no_gpu(tmp_path):
    (run,) = runs_of(tmp_path, VALUES + "    # bfloat16 is not for the Tesla V100 16GB GPU\n")
    assert run.hardware.gpu is None


def test_cores_are_named_as_such(tmp_path):
    (run,) = runs_of(tmp_path, VALUES.replace("name: a", "name: llama3"))
    assert run.hardware.cpus is not None
    assert (run.hardware.cpus.value, run.hardware.cpus.note) == (6, "")
