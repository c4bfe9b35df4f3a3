"""Which part of a lane runs: a share by the seed, a larger one after a change of what it tests, and whatever the change is about."""

import sys

import grimp
import pytest

from tools import lanes
from tools.lanes import ONE_IN, ONE_IN_IF_UNCHANGED, Lane, imports_of, modules, options

TREE = {
    "horolog/shop/__init__.py": "",
    "horolog/shop/cart/__init__.py": "",
    "horolog/shop/cart/total.py": "from horolog.money import cents\n",
    "horolog/shop/window/__init__.py": "",
    "horolog/shop/window/light.py": "",
    "horolog/money.py": "from horolog import rounding\ncents = 1\n",
    "horolog/rounding.py": "",
    "horolog/street.py": "from horolog.shop.window import light\n",
    "tests/shop/cart/test_total.py": "",
    "tests/shop/window/test_light.py": "",
    "tests/shop/test_opening.py": "from horolog.shop.window import light\nfrom tests.shop import doors\n",
    "tests/shop/test_customers.py": "PROGRAM = 'Customer'\n",
    "tests/shop/doors.py": "",
    "tests/shop/java/Customer.java": "",
    "tests/test_street.py": "",
}
SHOP = Lane(("horolog.shop",), ("tests/shop",), by_room=True)


@pytest.fixture
def graph(tmp_path, monkeypatch):
    for name, text in TREE.items():
        path = tmp_path / name.replace("horolog", "town")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text.replace("horolog", "town"))
    (tmp_path / "town" / "__init__.py").touch()
    monkeypatch.syspath_prepend(tmp_path)
    yield grimp.build_graph("town", cache_dir=None)
    for name in [name for name in sys.modules if name.partition(".")[0] == "town"]:
        del sys.modules[name]


@pytest.fixture
def told(tmp_path, graph):
    """How many tests a change has run one of, and which files besides."""
    shop = Lane(("town.shop",), ("tests/shop",), by_room=True)

    def ask(*changed, lane=shop):
        words = options(lane, "7", frozenset(changed), tmp_path)
        assert words[:3] == ["--part-of", "7", "--parts"]
        return int(words[3]), {word.removeprefix("--always=tests/shop/") for word in words[4:]}

    return ask


def test_a_lane_has_its_modules_and_all_that_they_import(graph):
    found = modules(Lane(("town.shop",), ()), graph) - {"town", "town.shop"}
    cart, window = {"town.shop.cart", "town.shop.cart.total"}, {"town.shop.window", "town.shop.window.light"}
    assert found == cart | window | {"town.money", "town.rounding"}


@pytest.mark.parametrize("changed", [(), ("town/street.py",), ("tests/test_street.py",), ("docs/shop.md",)])
def test_what_does_not_concern_a_lane_leaves_it_a_small_share(told, changed):
    assert told(*changed) == (ONE_IN_IF_UNCHANGED, set())


@pytest.mark.parametrize("changed", ["town/rounding.py", "town/shop/__init__.py"])
def test_what_it_imports_leaves_it_a_larger_one(told, changed):
    assert told(changed) == (ONE_IN, set())


@pytest.mark.parametrize(
    ("changed", "files"),
    [
        ("tests/shop/cart/test_total.py", {"cart/test_total.py"}),
        ("tests/shop/doors.py", {"test_opening.py"}),
        ("tests/shop/java/Customer.java", {"test_customers.py"}),
        ("town/shop/window/light.py", {"test_opening.py"}),
    ],
)
def test_the_tests_that_a_change_is_about_run_besides(told, changed, files):
    assert told(changed) == (ONE_IN, files)


def test_the_tests_of_a_folder_are_about_the_room_of_its_name():
    assert (
        lanes.room_of("horolog.pipeline.jobs.expire")
        == lanes.room_of("horolog.pipeline.jobs")
        == "horolog.pipeline.jobs"
    )
    files = set(lanes.due(lanes.LANES["pipeline"], frozenset({"horolog/pipeline/arrow/decode.py"}), lanes.ROOT))
    assert "tests/pipeline/arrow/test_decode.py" in files
    assert "tests/pipeline/spark/test_java.py" not in files


def test_only_lanes_whose_folders_are_named_for_rooms_go_by_rooms(told):
    by_import = Lane(("town.shop",), ("tests/shop",))
    assert told("town/shop/window/light.py", lane=by_import) == (ONE_IN, set())


def test_the_seed_chooses_alone_where_changes_are_not_known(tmp_path):
    assert options(SHOP, "7", None, tmp_path) == ["--part-of", "7", "--parts", str(ONE_IN)]


def test_imports_are_found_wherever_they_are():
    source = "import a.b\nfrom c import d\ndef f():\n    from e.f import g, h\n    from . import i\n"
    assert imports_of(source) == {"a.b", "c", "c.d", "e.f", "e.f.g", "e.f.h"}


def test_the_command_prints_one_option_a_line(monkeypatch, capsys):
    monkeypatch.setattr(lanes, "changed_files", lambda: None)
    assert lanes.main(["browser", "--seed", "9"]) == 0
    assert capsys.readouterr().out.splitlines() == ["--part-of", "9", "--parts", str(ONE_IN)]


def test_the_lanes_of_this_project_are_there():
    for lane in lanes.LANES.values():
        assert all((lanes.ROOT / folder).is_dir() for folder in lane.tests)
        assert all((lanes.ROOT / package.replace(".", "/")).is_dir() for package in lane.packages)
