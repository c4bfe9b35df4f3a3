"""A lane runs as a whole after a change of what it tests, of what that imports, or of its tests."""

import sys

import grimp
import pytest

from tools import lanes
from tools.lanes import Lane, digest, modules

TREE = {
    "shop/__init__.py": "",
    "shop/cart/__init__.py": "",
    "shop/cart/total.py": "from shop.money import cents\n",
    "shop/money.py": "from shop import rounding\ncents = 1\n",
    "shop/rounding.py": "",
    "shop/window.py": "from shop.cart import total\n",
    "tests/cart/test_total.py": "",
    "tests/test_window.py": "",
}


@pytest.fixture
def tree(tmp_path, monkeypatch):
    for name, text in TREE.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    (tmp_path / ".ci").mkdir()
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(lanes, "LANES", {"cart": Lane(("shop.cart",), "tests/cart")})
    yield tmp_path
    for name in [name for name in sys.modules if name.partition(".")[0] == "shop"]:
        del sys.modules[name]


def said(tree, capsys, *arguments):
    assert lanes.main(["cart", *arguments], tree) == 0
    return capsys.readouterr().out


def test_a_lane_has_its_modules_and_all_that_they_import(tree):
    graph = grimp.build_graph("shop", cache_dir=None)
    there = {"shop.cart", "shop.cart.total", "shop.money", "shop.rounding"}
    assert modules(Lane(("shop.cart",), "tests/cart"), graph) - {"shop"} == there


@pytest.mark.parametrize("changed", ["shop/cart/total.py", "shop/rounding.py", "tests/cart/test_total.py"])
def test_a_change_of_any_of_it_makes_it_run_as_a_whole(tree, capsys, changed):
    assert said(tree, capsys) == "whole\n"
    assert said(tree, capsys, "--passed") == ""
    assert said(tree, capsys) == "third\n"
    with (tree / changed).open("a") as file:
        file.write("# another\n")
    assert said(tree, capsys) == "whole\n"


@pytest.mark.parametrize("changed", ["shop/window.py", "tests/test_window.py"])
def test_a_change_of_something_else_does_not(tree, capsys, changed):
    said(tree, capsys, "--passed")
    (tree / changed).write_text("# another\n")
    assert said(tree, capsys) == "third\n"


def test_a_file_that_has_gone_is_a_change(tree):
    paths = [tree / "shop/money.py", tree / "shop/window.py"]
    assert digest(paths, tree) == digest(reversed(paths), tree) != digest(paths[:1], tree)


def test_the_lanes_of_this_project_are_there():
    for lane in lanes.LANES.values():
        assert (lanes.ROOT / lane.tests).is_dir()
        assert all((lanes.ROOT / package.replace(".", "/")).is_dir() for package in lane.packages)
