"""What a program makes of its configuration is what it makes when it is run."""

from __future__ import annotations

import contextlib
import os
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest

from flake8_gpu_training.facts import Location, Origin, Setting, Unknown
from flake8_gpu_training.project import Project
from flake8_gpu_training.runs import following
from flake8_gpu_training.runs._followed import plain
from flake8_gpu_training.runs.find import find_runs
from flake8_gpu_training.runs.following import World, followed
from flake8_gpu_training.runs.reach import Reach

FILES = {
    "config/base.yaml": "lr: 0.1\nsteps: 10\nmodel: {width: 64, depth: 2}\nlayers: [1, 2]\n",
    "config/more.json": '{"lr": 0.2, "model": {"width": 128}}',
    "helpers.py": "import json\nWIDTH = 32\ndef read(path):\n    with open(path) as file:\n"
    "        return json.load(file)\n",
    "pkg/__init__.py": "from .inner import make\n",
    "pkg/inner.py": "from helpers import WIDTH\ndef make(scale=1):\n    return WIDTH * scale\n",
}


def project(root: Path, source: str) -> Path:
    for name, text in {**FILES, "train.py": source}.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text), encoding="utf-8")
    return root


def shown(root: Path, environment: dict[str, Any] | None = None) -> dict[str, Any]:
    """The keywords of the call ``show(...)`` as following the program gives them."""
    reach = Reach(Project.open(root))
    settings = {
        name: Setting(name, value, Location("run.sh"), Origin.ENVIRONMENT)
        for name, value in (environment or {}).items()
    }
    world = World(
        options={},
        environment=settings,
        document=lambda name, near: reach.document(
            name.replace("//project/", ""), None, None, near
        ),
        source=reach.source,
        tree=reach.tree,
        module=reach.module,
    )
    made = followed("train.py", world)
    assert made is not None
    last = max(key for key in made.calls if key[0] == "train.py")
    return {name: plain(value) for name, value in made.calls[last].keywords.items()}


def world_of(reach: Reach) -> World:
    """A world with nothing but Python files."""
    return World({}, {}, lambda name, near: None, reach.source, reach.tree, reach.module)


def executed(root: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The same keywords when the program is really run."""
    found: dict[str, Any] = {}
    monkeypatch.chdir(root)
    monkeypatch.syspath_prepend(str(root))
    for name in ("helpers", "pkg", "pkg.inner"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    source = (root / "train.py").read_text(encoding="utf-8")
    names = {"show": found.update, "__name__": "__main__", "__file__": str(root / "train.py")}
    exec(compile(source, "train.py", "exec"), names)
    for name in ("helpers", "pkg", "pkg.inner"):
        sys.modules.pop(name, None)
    return found


PROGRAMS = {
    "a file is read and merged by hand": """
        import json, yaml
        with open("config/base.yaml") as file:
            config = yaml.safe_load(file)
        config.update(json.load(open("config/more.json")))
        show(lr=config["lr"], model=config["model"], steps=config.get("steps", 3),
             none=config.get("none", "nothing"))
    """,
    "a path is built from the script's own": """
        import os
        from pathlib import Path
        import yaml
        here = os.path.dirname(os.path.abspath(__file__))
        one = yaml.safe_load(open(os.path.join(here, "config", "base.yaml")))
        two = yaml.safe_load((Path(__file__).resolve().parent / "config/base.yaml").read_text())
        show(one=one["steps"], two=two["model"]["depth"])
    """,
    "dicts are spread, united and comprehended": """
        base = {"a": 1, "b": 2, "c": {"d": 3}}
        more = dict(base, b=20, **{"e": 5})
        kept = {key: value for key, value in more.items() if key != "a"}
        united = {**base, **{"a": 100}}
        show(more=more, kept=kept, united=united, many=[n * 2 for n in (1, 2, 3)])
    """,
    "functions take defaults, keywords and what they are given": """
        def scale(value, by=2, *, plus=0, **rest):
            if rest.get("skip"):
                return value
            return value * by + plus
        def total(*parts):
            return sum(parts)
        show(a=scale(3), b=scale(3, 4), c=scale(3, plus=1), d=scale(3, skip=True),
             e=total(1, 2, 3), f=(lambda x: x + 1)(4))
    """,
    "objects keep what methods set": """
        class Base:
            kind = "base"
            def __init__(self, width):
                self.width = width
            @property
            def double(self):
                return self.width * 2
        class Model(Base):
            def __init__(self, width, depth=3):
                super().__init__(width + 1)
                self.depth = depth
            def grow(self, by):
                self.width += by
                return self
            @classmethod
            def small(cls):
                return cls(8, depth=1)
        model = Model.small().grow(4)
        show(width=model.width, depth=model.depth, double=model.double, kind=Model.kind)
    """,
    "dataclasses are made, replaced and taken apart": """
        from dataclasses import asdict, dataclass, field, fields, replace
        @dataclass
        class Data:
            path: str
            workers: int = 2
        @dataclass
        class Config:
            data: Data = field(default_factory=lambda: Data("x"))
            lr: float = 0.5
            total: int = 0
            def __post_init__(self):
                self.total = self.data.workers * 10
        config = replace(Config(lr=0.25), lr=0.125)
        names = [item.name for item in fields(Config)]
        show(lr=config.lr, total=config.total, names=names, data=asdict(config)["data"])
    """,
    "loops over what is known are gone through": """
        config = {"a": 1}
        for name, value in zip(["b", "c", "d"], [2, 3, 4]):
            if name == "c":
                continue
            config[name] = value
        for index, name in enumerate(sorted(["z", "y"])):
            config[name] = index
            if index == 1:
                break
        else:
            config["else"] = True
        show(**config)
    """,
    "conditions that are known decide": """
        mode = "large"
        size = 10 if mode == "large" else 1
        if mode in ("small", "tiny"):
            size = 2
        elif not mode.startswith("l"):
            size = 3
        ready = isinstance(size, int) and size > 5 or None
        show(size=size, ready=ready, text=f"{mode}-{size}", chained=1 < size <= 10)
    """,
    "attributes are set, asked for and deleted": """
        from types import SimpleNamespace
        args = SimpleNamespace(lr=0.1, old=1)
        setattr(args, "steps", 5)
        vars(args).update({"width": 7})
        del args.old
        show(steps=getattr(args, "steps"), width=args.width, lr=args.lr,
             has=hasattr(args, "old"), other=getattr(args, "old", "gone"))
    """,
    "modules of the project are imported": """
        import pkg
        from helpers import read, WIDTH as wide
        from importlib import import_module
        show(made=pkg.make(3), lr=read("config/more.json")["lr"], wide=wide,
             late=import_module("pkg.inner").WIDTH)
    """,
    "what fails is made up for": """
        try:
            import a_module_that_is_not_there as fast
        except ImportError:
            fast = None
        try:
            raise ValueError("no")
        except ValueError:
            steps = 3
        finally:
            last = True
        show(steps=steps, last=last)
    """,
    "lists, texts and numbers are computed": """
        parts = "a,b,c".split(",")
        parts.append("d")
        first, *rest = 1, 2
        top = max(3, min(9, 5))
        show(parts=parts, join="-".join(parts), top=top, div=7 // 2, rest=-3 % 5,
             size=len(parts), cut="name.yaml".replace(".yaml", ""), whole=int("12"))
    """,
}


@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("name", PROGRAMS)
def test_known_values_are_those_of_the_real_program(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = project(tmp_path, PROGRAMS[name])
    real = executed(root, monkeypatch)
    found = shown(root)
    assert sorted(found) == sorted(real)
    known = {key: value for key, value in found.items() if not isinstance(value, Unknown)}
    assert known == {key: _lists(real[key]) for key in known}
    assert len(known) >= len(real) - 1, found


def _lists(value: Any) -> Any:
    return [_lists(item) for item in value] if isinstance(value, (list, tuple)) else value


UNKNOWNS = {
    "two branches": (
        """
        import somewhere
        lr = 0.1
        if somewhere.is_large():
            lr = 0.2
        show(value=lr)
        """,
        (0.1, 0.2),
    ),
    "a key set in a branch": (
        """
        import somewhere
        config = {"lr": 0.1}
        if somewhere.is_large():
            config["lr"] = 0.2
        show(value=config["lr"])
        """,
        (0.1, 0.2),
    ),
    "an early return": (
        """
        import somewhere
        def pick():
            if somewhere.is_large():
                return 1
            return 2
        show(value=pick())
        """,
        (1, 2),
    ),
    "a conditional expression": ("import x\nshow(value=1 if x.y() else 2)\n", (1, 2)),
    "a loop that nobody can count": (
        """
        import somewhere
        steps = 1
        for _ in somewhere.batches():
            steps = 2
        show(value=steps)
        """,
        (1, 2),
    ),
    "an update from a table of unknown content": (
        """
        import somewhere
        config = {"lr": 0.1}
        config.update(somewhere.more())
        show(value=config["lr"])
        """,
        (0.1,),
    ),
    "a key of unknown name": (
        """
        import somewhere
        config = {"lr": 0.1}
        config[somewhere.name()] = 5
        show(value=config["lr"])
        """,
        (0.1,),
    ),
    "what a partly known value decides": (
        """
        import somewhere
        config = {"large": True}
        config.update(somewhere.more())
        show(value=2 if config["large"] == True else 1)
        """,
        (1, 2),
    ),
    "the truth of a value that one branch leaves unknown": (
        """
        import somewhere
        is_large = True
        if somewhere.is_told():
            is_large = somewhere.told()
        show(value=2 if is_large else 1)
        """,
        (1, 2),
    ),
    "the truth of a key that is set in one branch only": (
        """
        import somewhere
        config = {}
        if somewhere.is_told():
            config["large"] = True
        show(value=2 if config["large"] else 1)
        """,
        (1, 2),
    ),
    "the negation of a value that one branch leaves unknown": (
        """
        import somewhere
        is_small = somewhere.told() if somewhere.is_told() else False
        show(value=2 if not is_small else 1)
        """,
        (1, 2),
    ),
    "a file that is not there": (
        "import yaml\nshow(value=yaml.safe_load(open('none.yaml'))['lr'])\n",
        (),
    ),
    "arithmetic on two candidates": (
        """
        import somewhere
        size = 4 if somewhere.is_large() else 2
        show(value=size * 8)
        """,
        (32, 16),
    ),
    "a rank": ("import os\nshow(value=int(os.environ.get('LOCAL_RANK', 0)))\n", ()),
    "a closed branch that raises": (
        """
        import somewhere
        value = 1
        if somewhere.is_bad():
            value = 2
            raise ValueError(value)
        show(value=value)
        """,
        None,
    ),
}


@pytest.mark.parametrize("name", UNKNOWNS)
def test_what_only_a_run_tells_is_unknown_with_its_candidates(name: str, tmp_path: Path) -> None:
    source, candidates = UNKNOWNS[name]
    value = shown(project(tmp_path, source))["value"]
    if candidates is None:
        assert value == 1
        return
    assert isinstance(value, Unknown)
    assert set(value.candidates) == set(candidates)


def test_the_environment_is_the_commands(tmp_path: Path) -> None:
    source = """
        import os
        os.environ.setdefault("OTHER", "5")
        show(a=int(os.environ.get("STEPS", 4)), b=os.getenv("NONE", "x"), c=os.environ["OTHER"])
    """
    assert shown(project(tmp_path, source), {"STEPS": 8}) == {"a": 8, "b": "x", "c": "5"}


@pytest.mark.parametrize(
    "source",
    [
        "def f():\n    return f()\nshow(value=f())\n",
        "def f(x):\n    return g(x)\ndef g(x):\n    return f(x)\nshow(value=f(1))\n",
        "x = {}\nx['x'] = x\nshow(value=x)\n",
        "x = 2\nwhile True:\n    x = x ** 99\n",
        "x = 'a' * 10 ** 9\nshow(value=x)\n",
        "class A(A): pass\nshow(value=A())\n",
        "class A:\n    def __init__(self): self.a = A()\nshow(value=A())\n",
        "from train import show\nimport train\nshow(value=train)\n",
        "def f(*a, **k):\n    yield from f(*a, **k)\nshow(*f(), **f())\n",
        "(x := [x for x in x])\n[a, *b], c = d\ndel e[f], g.h\nasync def i(): await j\n",
        "x = " + "(" * 80 + "1" + ")" * 80 + "\n" + "x = x + 1\n" * 3000,
        "for i in range(64):\n  for j in range(64):\n    for k in range(64):\n      f(i, j, k)\n",
        "print 'python 2'\n",
        "\x00",
    ],
)
def test_no_program_is_too_odd(source: str, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(source, encoding="utf-8")
    reach = Reach(Project.open(tmp_path))
    world = world_of(reach)
    follower = following.Follower(world)
    with contextlib.suppress(following._ExhaustedError, RecursionError):
        follower.start("train.py")
        follower.go_through_the_rest()
    assert follower.steps <= following.MAX_STEPS + 1


def test_what_is_too_long_is_not_concluded_from(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(following, "MAX_STEPS", 50)
    root = project(tmp_path, "x = 1\n" * 100 + "show(value=x)\n")
    reach = Reach(Project.open(root))
    assert followed("train.py", world_of(reach)) is None


@pytest.mark.parametrize(
    ("condition", "value"),
    [
        ("somewhere.asks() and False", 1),
        ("False or (somewhere.asks() and not True)", 1),
        ("somewhere.asks() or True", 2),
        ("not (somewhere.asks() and False)", 2),
        ("somewhere.asks() and True", None),
        ("not (somewhere.asks() or False)", None),
    ],
)
def test_a_condition_is_told_by_the_part_that_decides_it(
    condition: str, value: int | None, tmp_path: Path
) -> None:
    source = f"import somewhere\nx = 1\nif {condition}:\n    x = 2\nshow(value=x)\n"
    found = shown(project(tmp_path, source))["value"]
    assert found == value or (value is None and isinstance(found, Unknown))


def test_what_the_program_does_itself_stays_when_the_rest_is_too_long(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    uncalled = "def unused():\n" + "    x = 1\n" * 300 + "    show(late=x)\n"
    called = "def used(x):\n    show(value=x)\nused(2)\n"
    reach = Reach(Project.open(project(tmp_path, uncalled + called)))
    monkeypatch.setattr(following, "MAX_STEPS", 200)
    outcome = followed("train.py", world_of(reach))
    assert outcome is not None
    told = [given.keywords for given in outcome.calls.values()]
    assert {"value": 2} in told
    assert not any("late" in keywords for keywords in told)


def test_a_constructor_names_the_file_that_decides(tmp_path: Path) -> None:
    source = """
        import yaml
        from transformers import Trainer, TrainingArguments
        config = yaml.safe_load(open("config/base.yaml"))
        Trainer(args=TrainingArguments("out", learning_rate=config["lr"])).train()
    """
    run = find_runs(Project.open(project(tmp_path, source)))[0]
    setting = run.settings["learning_rate"]
    assert setting.value == 0.1
    assert str(setting.location) == "config/base.yaml:1"
    assert "config/base.yaml" in run.files
    assert os.fspath(tmp_path) not in repr(run.settings)
