"""Each output format says the same findings."""

import json

from flake8_gpu_training.checks.base import Priority
from flake8_gpu_training.facts import Location
from flake8_gpu_training.output import FORMATS, statistics
from flake8_gpu_training.verdicts import Diagnostic

FOUND = [
    Diagnostic("GPU501", Location("a b/train.py", 41, 12), "set num_workers=4", Priority.MEDIUM),
    Diagnostic("GPU501", Location("x,y.sh", 3, 1), "50% more: do it", Priority.HIGH, "x.sh:3"),
]


def test_the_default_line_is_flake8s():
    first = FORMATS["default"](FOUND).splitlines()[0]
    assert first == "a b/train.py:41:12: GPU501 set num_workers=4"


def test_json_holds_the_reports_keys():
    rows = json.loads(FORMATS["json"](FOUND))
    assert rows[1] == {
        "code": "GPU501",
        "path": "x,y.sh",
        "line": 3,
        "column": 1,
        "message": "50% more: do it",
        "priority": "high",
        "run": "x.sh:3",
    }


def test_github_annotations_escape_what_github_would_split():
    second = FORMATS["github"](FOUND).splitlines()[1]
    assert second == ("::error file=x%2Cy.sh,line=3,col=1,title=GPU501::GPU501 50%25 more: do it")


def test_sarif_places_and_levels():
    log = json.loads(FORMATS["sarif"](FOUND))
    results = log["runs"][0]["results"]
    place = results[0]["locations"][0]["physicalLocation"]
    assert place["artifactLocation"]["uri"] == "a%20b/train.py"
    assert place["region"] == {"startLine": 41, "startColumn": 12}
    assert [result["level"] for result in results] == ["warning", "error"]


def test_statistics_count_each_code():
    assert statistics(FOUND) == "2       GPU501 set num_workers=4\n"
