"""Each module's own test file covers it: how that is measured, and what the list of exceptions may say."""

import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tools import measured, own_coverage
from tools.own_coverage import (
    Figures,
    Lane,
    Rules,
    arguments_of_lane,
    at_import,
    complaints,
    fails,
    inside_functions,
    own_test,
    sample,
    sample_of_lane,
)

TREE = {
    "horolog/__init__.py": "",
    "horolog/protocol/__init__.py": "",
    "horolog/broker/__init__.py": "",
    "horolog/broker/declared.py": "LIMIT = 10\nif __name__ == '__main__':\n    print(LIMIT)\n",
    "horolog/broker/odd.py": "from horolog.broker.used import half\n\ndef odd(n):\n    return n != 2 * half(n)\n",
    "horolog/broker/used.py": "def half(n):\n    return n // 2\n",
    "horolog/broker/sign.py": "def sign(n):\n    if n < 0:\n        return -1\n    return 1\n",
    "horolog/console/__init__.py": "",
    "horolog/pipeline/__init__.py": "",
    "horolog/pipeline/rows.py": "import no_such_package\n\ndef rows():\n    return 3\n",
    "horolog/testing/__init__.py": "",
    "tests/unit/protocol/test_nothing.py": "def test_nothing():\n    pass\n",
    "tests/unit/console/test_no_page.py": "def test_nothing():\n    pass\n",
    "tests/unit/testing/test_no_fault.py": "def test_nothing():\n    pass\n",
    "tests/unit/broker/test_odd.py": "from horolog.broker.odd import odd\n\ndef test_odd():\n    assert odd(3)\n",
    "tests/unit/broker/test_sign.py": "from horolog.broker.sign import sign\n\ndef test_sign():\n    assert sign(3) == 1\n",
    "tests/pipeline/test_rows.py": "from horolog.pipeline.rows import rows\n\ndef test_rows():\n    assert rows() == 3\n",
    "tools/own_coverage.toml": '[exceptions]\n"horolog/broker/sign.py" = "a reason"\n\n[lanes]\n'
    'pipeline = { package = "horolog/pipeline", tests = "tests/pipeline", why = "it needs an extra" }\n',
}


ONLY_WHAT_IS_NEEDED = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTEST_ADDOPTS": "-p xdist.plugin"}
"""To import the other plug-ins takes half of the time of such a run."""


@pytest.fixture
def tree(tmp_path):
    for name, text in TREE.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    for name in ("__init__.py", "changed.py", "compiled.py", "own_coverage.py", "measured.py"):
        shutil.copy(Path(own_coverage.__file__).with_name(name), tmp_path / "tools" / name)
    return tmp_path


def judged(tree, *arguments, of=("-n", "0", "tests", "--ignore", "tests/pipeline")):
    command = [sys.executable, "-m", "tools.own_coverage", *arguments, *of]
    environ = os.environ | ONLY_WHAT_IS_NEEDED
    return subprocess.run(command, cwd=tree, env=environ, capture_output=True, text=True, check=False)


def figures(module="horolog/broker/a.py", statements=100.0, branches=100.0, *, has_tests=True, is_declaration=False):
    return Figures(module, "tests/unit/broker/test_a.py", has_tests, is_declaration, statements, branches, "7, 9->end")


def test_nothing_is_measured_where_modules_are_compiled(tree):
    (tree / "horolog/broker/used.cpython-311.so").write_bytes(b"")
    done = judged(tree)
    assert done.returncode == 2
    assert "make plain" in done.stderr


def test_where_other_modules_are_compiled_a_lane_is_measured(tree):
    (tree / "no_such_package.py").write_text("")
    (tree / "horolog/broker/used.cpython-311.so").write_bytes(b"")
    done = judged(tree, "--lane", "pipeline", of=("-n", "0", "tests/pipeline"))
    assert done.returncode == 0, done.stderr
    (tree / "horolog/pipeline/rows.cpython-311.so").write_bytes(b"")
    assert "make plain" in judged(tree, "--lane", "pipeline").stderr


def test_a_lane_measures_the_modules_whose_tests_it_has(tree):
    """What its tests need is missing in the other runs, which leave these modules alone."""
    (tree / "tests/unit/broker/test_used.py").write_text(TREE["tests/unit/broker/test_odd.py"])
    assert judged(tree).returncode == 0
    (tree / "no_such_package.py").write_text("")
    done = judged(tree, "--lane", "pipeline", "--all", of=("-n", "0", "tests/pipeline"))
    assert done.returncode == 0, done.stdout
    assert "horolog/pipeline/rows.py: 100 % of statements" in done.stdout
    assert done.stdout.endswith("1 of 1 modules are covered by their own tests, 1 are exceptions\n")
    (tree / "tests/pipeline/test_rows.py").write_text("def test_rows():\n    pass\n")
    done = judged(tree, "--lane", "pipeline", of=("-n", "0", "tests/pipeline"))
    assert (done.returncode, "FAILED horolog/pipeline/rows.py: 67 %" in done.stdout) == (1, True), done.stdout


def test_a_module_of_a_lane_is_not_judged_by_tests_of_which_some_were_skipped(tree):
    """A lane is short of time, and a machine of programs."""
    (tree / "no_such_package.py").write_text("")
    (tree / "tests/pipeline/test_rows.py").write_text(
        "import pytest\n\n@pytest.mark.skip\ndef test_rows():\n    pass\n"
    )
    done = judged(tree, "--lane", "pipeline", of=("-n", "0", "tests/pipeline"))
    assert done.returncode == 0, done.stdout
    assert "not judged, for tests of its file were skipped: horolog/pipeline/rows.py: 67 %" in done.stdout


def test_a_sample_of_a_lane_shows_what_falls_short_and_does_not_fail(capsys):
    assert fails(["a.py: 80 %"], is_cut=False)
    assert capsys.readouterr().out == "FAILED a.py: 80 %\n"
    assert not fails(["a.py: 80 %"], is_cut=True)
    assert capsys.readouterr().out == "falls short in this sample: a.py: 80 %\n"
    assert not fails([], is_cut=False)


def test_a_lane_runs_the_tests_that_it_measures(tree):
    rules = Rules(lanes={"pipeline": Lane("horolog/pipeline", "tests/pipeline")}, root=tree)
    assert rules.tests_of("horolog/pipeline/jobs/x.py") == "tests/pipeline/jobs/test_x.py"
    assert (rules.lane_of("horolog/pipeline/jobs/x.py"), rules.lane_of("horolog/broker/odd.py")) == ("pipeline", None)
    (tree / "tests/unit/pipeline/jobs").mkdir(parents=True)
    (tree / "tests/unit/pipeline/jobs/test_x.py").write_text("")
    assert rules.tests_of("horolog/pipeline/jobs/x.py") == "tests/unit/pipeline/jobs/test_x.py"
    assert rules.lane_of("horolog/pipeline/jobs/x.py") is None
    assert arguments_of_lane([], ["b", "a"], is_sample=False)[-2:] == ["a", "b"]
    assert arguments_of_lane(["-q", "a"], ["b"], is_sample=False) == ["-q", "a"]
    assert arguments_of_lane(["-q"], ["b", "a"], is_sample=True) == ["-q", "--always=a", "--always=b"]


def test_few_modules_of_a_lane_are_measured_besides_those_that_changed():
    names = [f"horolog/pipeline/m{number}.py" for number in range(400)]
    for changed in (None, frozenset()):
        assert all(5 < len(sample_of_lane(names, Rules(), changed, str(seed))) < 40 for seed in range(20))
    assert names[7] in sample_of_lane(names, Rules(), frozenset({names[7]}), "1")


def test_files_of_which_tests_were_skipped_are_known_of_all_processes(tmp_path):
    assert measured.left_out(tmp_path) == frozenset()
    (tmp_path / f"{measured.LEFT_OUT}.1").write_text("tests/a.py\ntests/b.py")
    (tmp_path / f"{measured.LEFT_OUT}.2").write_text("")
    assert measured.left_out(tmp_path) == {"tests/a.py", "tests/b.py"}


def test_a_module_that_only_others_tests_run_is_not_covered(tree):
    done = judged(tree)
    assert done.returncode == 1
    missing = "FAILED horolog/broker/used.py: there is no tests/unit/broker/test_used.py\n"
    assert done.stdout.startswith(missing)
    assert done.stdout.count("horolog/broker/declared.py") == 0


def test_a_tree_passes_whose_exceptions_are_listed(tree):
    (tree / "tests/unit/broker/test_used.py").write_text(TREE["tests/unit/broker/test_odd.py"])
    done = judged(tree, "--all")
    assert done.returncode == 0, done.stdout
    assert "horolog/broker/odd.py: 100 % of statements, 100 % of branches; not run: \n" in done.stdout
    assert "horolog/broker/sign.py: 75 % of statements, 50 % of branches; not run: 3\n" in done.stdout
    assert done.stdout.endswith("8 of 9 modules are covered by their own tests, 1 are exceptions\n")


def test_a_run_of_other_tests_is_measured_the_same(tree):
    """Those that are not of the packages count for nothing."""
    (tree / "tests/unit/broker/test_used.py").write_text(TREE["tests/unit/broker/test_odd.py"])
    (tree / "tests/test_whole.py").write_text(
        "from horolog.broker.sign import sign\n\ndef test_sign():\n    assert sign(-3) == -1\n"
    )
    done = judged(tree, "--all")
    assert done.returncode == 0, done.stdout
    assert " 7 passed in " in done.stdout
    assert "horolog/broker/odd.py: 100 % of statements, 100 % of branches; not run: \n" in done.stdout
    assert "horolog/broker/sign.py: 75 % of statements, 50 % of branches; not run: 3\n" in done.stdout


@pytest.mark.slow
def test_a_test_that_fails_makes_the_gate_fail(tree):
    (tree / "tests/unit/broker/test_used.py").write_text("def test_used():\n    assert False\n")
    assert judged(tree).returncode == 1


@pytest.mark.parametrize(
    ("module", "tests"),
    [
        ("horolog/broker/log/partition/rolling.py", "tests/unit/broker/log/partition/test_rolling.py"),
        ("horolog/broker/handlers/__init__.py", "tests/unit/broker/test_handlers.py"),
    ],
)
def test_tests_mirror_the_tree(module, tests):
    assert own_test(module) == tests


def test_a_shared_file_stands_for_the_modules_of_a_pattern():
    rules = Rules(shared={"horolog/protocol/messages/*.py": "tests/unit/protocol/test_kafka_schemas.py"})
    assert rules.tests_of("horolog/protocol/messages/fetch.py") == "tests/unit/protocol/test_kafka_schemas.py"
    assert rules.tests_of("horolog/protocol/wire.py") == "tests/unit/protocol/test_wire.py"


@pytest.mark.parametrize(
    ("one", "enough"),
    [
        (figures(statements=90.0, branches=90.0), True),
        (figures(statements=89.9), False),
        (figures(branches=89.9), False),
        (figures(has_tests=False), False),
        (figures(branches=0.0, has_tests=False, is_declaration=True), True),
    ],
)
def test_nine_of_ten_statements_and_branches_are_enough(one, enough):
    assert one.enough is enough


def test_what_is_on_the_list_may_be_below():
    listed = Rules(exceptions={"horolog/broker/a.py": "a reason"})
    assert not list(complaints([figures(branches=50.0)], listed))
    assert list(complaints([figures(branches=50.0)], Rules())) == [
        "horolog/broker/a.py: 100 % of statements, 50 % of branches; not run: 7, 9->end"
    ]


def test_an_exception_that_is_not_needed_any_more_is_refused():
    (line,) = complaints([figures()], Rules(exceptions={"horolog/broker/a.py": "a reason"}))
    assert line.endswith("take it off the list of exceptions")


def test_an_exception_of_no_module_is_refused():
    (line,) = complaints([], Rules(exceptions={"horolog/broker/gone.py": "a reason"}))
    assert line == "horolog/broker/gone.py: it is listed, but there is no such module"


def test_a_module_whose_tests_need_a_package_is_measured_where_that_is_installed():
    for package, said in (("no_such_package", 0), ("pytest", 1)):
        rules = Rules(needs={"horolog/broker/a.py": package})
        assert len(list(complaints([figures(branches=50.0)], rules))) == said
        assert list(complaints([figures()], rules)) == []
    (line,) = complaints([], Rules(needs={"horolog/broker/gone.py": "pytest"}))
    assert line == "horolog/broker/gone.py: it is listed, but there is no such module"


def test_functions_that_other_modules_call_at_their_import_do_not_count():
    inside = inside_functions("LIMIT = 1\ndef f(n):\n    return n\nf(2)\n")
    assert inside == {3}
    assert at_import({(1, 2), (2, 4), (-3, 3), (3, -3)}, inside) == {(1, 2), (2, 4)}


def test_every_exception_and_every_shared_file_has_a_reason():
    tables = tomllib.loads(own_coverage.RULES.read_text("utf-8"))
    given = (*tables["shared"].values(), *tables["lanes"].values())
    reasons = [*tables["exceptions"].values(), *(one["why"] for one in given)]
    assert all(len(reason.split()) > 3 for reason in reasons)
    assert all((own_coverage.ROOT / tests).exists() for tests in own_coverage.read_rules().shared.values())


def test_a_sample_has_what_changed_and_an_eighth_of_the_others():
    names = [f"horolog/broker/m{number}.py" for number in range(300)]
    shares = [set(sample(names, Rules(), frozenset(), str(seed))) for seed in range(80)]
    assert all(15 < len(share) < 65 for share in shares)
    assert set().union(*shares) == set(names)
    module, other = sorted(set(names) - shares[0])[:2]
    changed = frozenset({module, own_test(other)})
    assert set(sample(names, Rules(), changed, "0")) == shares[0] | {module, other}
    assert sample(names, Rules(), None, "0") == names


def test_a_sample_measures_its_own_tests_alone(tree):
    """Without Git, what has changed is not known: everything is measured, and a list that says so limits it."""
    (tree / "tests/unit/broker/test_used.py").write_text(TREE["tests/unit/broker/test_odd.py"])
    done = judged(tree, "--all", "--sample", "1")
    assert done.returncode == 0, done.stdout
    assert "8 of 9 modules are covered" in done.stdout
    listed = tree / "listed"
    listed.write_text("tests/unit/broker/test_odd.py")
    variables = {
        "HOROLOG_MEASURED": str(tree),
        "HOROLOG_MEASURED_TESTS": str(listed),
        "PYTEST_PLUGINS": "tools.measured",
    }
    command = [sys.executable, "-m", "pytest", "-q", "-n", "0", "tests/unit/broker"]
    subprocess.run(command, cwd=tree, env=os.environ | variables, capture_output=True, check=True)
    assert own_coverage.combined(tree).measured_contexts() - {""} == {"tests/unit/broker/test_odd.py"}
