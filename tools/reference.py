"""`python -m tools.reference`: write build/reference.md: for each folder what code outside of it imports, with signatures.

The source is read, not imported: Spark and the other optional packages need not be there. The page is not kept, because it changes
with every signature.
"""

import ast
import re
import sys
import textwrap
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "build" / "reference.md"
HEADING = """\
# Reference

What each folder of `horolog` offers to the others: the classes and functions that code outside of
the folder imports, with signatures and the first sentence of each docstring.

"""
PACKAGE = "horolog"
LEFT_OUT = ("horolog.protocol.messages",)
"""Declarations of messages: docs/apis.md is about those."""
WIDTH = 100

Definition = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(slots=True)
class Module:
    name: str
    tree: ast.Module
    is_package: bool
    used: set[str] = field(default_factory=set)
    """Names of its own that other folders import."""
    attributes: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    """What the module asks of each name."""
    imports: list[ast.ImportFrom] = field(default_factory=list)

    def __post_init__(self) -> None:
        for node in ast.walk(self.tree):
            if isinstance(node, ast.ImportFrom):
                self.imports.append(node)
            elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                self.attributes[node.value.id].add(node.attr)

    @property
    def folder(self) -> str:
        return self.name if self.is_package else self.name.rpartition(".")[0]


def modules(root: Path = ROOT) -> dict[str, Module]:
    found = {}
    for path in sorted((root / PACKAGE).rglob("*.py")):
        parts = path.relative_to(root).with_suffix("").parts
        is_package = parts[-1] == "__init__"
        name = ".".join(parts[:-1] if is_package else parts)
        found[name] = Module(name, ast.parse(path.read_bytes()), is_package)
    for module in found.values():
        for used, name in _imports(module, found):
            used.used.add(name)
    return found


def _imports(module: Module, known: dict[str, Module]) -> Iterator[tuple[Module, str]]:
    """What a module takes from modules of other folders; a name that a package hands on counts for the module that has it."""
    for node in module.imports:
        if node.level or not (node.module or "").startswith(PACKAGE):
            continue
        for alias in node.names:
            source = known.get(f"{node.module}.{alias.name}")
            if source is not None:
                names = module.attributes[alias.asname or alias.name]
            else:
                source, names = known.get(node.module or ""), {alias.name}
            if source is not None and source.folder != module.folder:
                yield from (_origin(source, name, known) for name in names)


def _origin(module: Module, name: str, known: dict[str, Module]) -> tuple[Module, str]:
    for node in module.tree.body if module.is_package else ():
        if isinstance(node, ast.ImportFrom) and node.module in known:
            for alias in node.names:
                if (alias.asname or alias.name) == name:
                    return _origin(known[node.module], alias.name, known)
    return module, name


def sentence(node: ast.Module | ast.ClassDef | Definition) -> str:
    """The first sentence of a docstring, if there is one."""
    text = " ".join((ast.get_docstring(node) or "").split("\n\n")[0].split())
    return re.split(r"(?<=\.)\s", text)[0].removesuffix(":")


def signature(function: Definition) -> str:
    shown = ast.unparse(function.args)
    for first in ("self", "cls"):
        shown = shown.removeprefix(first).removeprefix(", ") if shown.split(",")[0].split(":")[0] == first else shown
    returns = f" -> {ast.unparse(function.returns)}" if function.returns else ""
    begin = "async " if isinstance(function, ast.AsyncFunctionDef) else ""
    if any(ast.unparse(one).split(".")[-1] in {"property", "cached_property"} for one in function.decorator_list):
        return function.name + returns.replace(" -> ", ": ")
    return f"{begin}{function.name}({shown}){returns}"


def _public(node: ast.stmt) -> bool:
    return isinstance(node, Definition) and not node.name.startswith("_")


def _line(indent: int, code: str, said: str) -> str:
    text = f"- `{code}`" + (f": {said}" if said else "")
    pad = " " * indent
    return "\n".join(
        textwrap.wrap(
            text,
            WIDTH,
            initial_indent=pad,
            subsequent_indent=pad + "  ",
            break_long_words=False,
            break_on_hyphens=False,
        )
    )


def _made_of(bodies: Sequence[ast.ClassDef]) -> str:
    """What a class is called with: its constructor's arguments, be they inherited, or its fields; without either, its bases."""
    node = bodies[0]
    for each in (part for body in bodies for part in body.body):
        if isinstance(each, Definition) and each.name == "__init__":
            return signature(each).removeprefix("__init__").removesuffix(" -> None")
    bases = [ast.unparse(base) for base in node.bases]
    if "NamedTuple" in bases or any("dataclass" in ast.unparse(one) for one in node.decorator_list):
        own = [each for each in node.body if isinstance(each, ast.AnnAssign)]
        return f"({', '.join(f'{ast.unparse(each.target)}: {ast.unparse(each.annotation)}' for each in own)})"
    return f"({', '.join(bases)})" if bases else ""


def _class(node: ast.ClassDef, module: Module, known: dict[str, Module]) -> Iterator[str]:
    """Its own methods, then those that it has from the classes that it is made of."""
    bodies = list(_bodies(node, module, known))
    yield _line(0, f"class {node.name}{_made_of(bodies)}", sentence(node))
    told: set[str] = set()
    for part in (part for body in bodies for part in body.body):
        if isinstance(part, Definition) and part.name not in told:
            told.add(part.name)
            if _public(part):
                yield _line(2, signature(part), sentence(part))


def _bodies(node: ast.ClassDef, module: Module, known: dict[str, Module]) -> Iterator[ast.ClassDef]:
    """The class and, from the left, the classes of this tree that it is made of."""
    yield node
    for base in node.bases:
        plain = base.value if isinstance(base, ast.Subscript) else base
        found = _class_called(ast.unparse(plain), module, known)
        if found is not None:
            yield from _bodies(*found, known)


def _class_called(
    name: str, module: Module, known: dict[str, Module], *, handed_on: bool = False
) -> tuple[ast.ClassDef, Module] | None:
    """The class that a name stands for in a module, and where it is; None for those of other packages."""
    for node in module.tree.body:
        if isinstance(node, ast.ClassDef) and node.name == name:
            return node, module
    if handed_on:
        return None
    for each in module.imports:
        if each.module not in known:
            continue
        for alias in each.names:
            if (alias.asname or alias.name) == name:
                source, own_name = _origin(known[each.module], alias.name, known)
                return _class_called(own_name, source, known, handed_on=True)
    return None


def entries(module: Module, known: dict[str, Module]) -> Iterator[str]:
    for node in module.tree.body:
        if isinstance(node, ast.ClassDef) and node.name in module.used:
            yield from _class(node, module, known)
        elif isinstance(node, Definition) and node.name in module.used:
            yield _line(0, signature(node), sentence(node))


def reference(root: Path = ROOT) -> str:
    """The page below its heading: a heading for each folder with its duty, the modules in it that others use."""
    folders: dict[str, list[Module]] = defaultdict(list)
    known = modules(root)
    for module in known.values():
        if not module.name.startswith(LEFT_OUT):
            folders[module.folder].append(module)
    parts = []
    for folder, inside in sorted(folders.items()):
        shown = [(module, list(entries(module, known))) for module in sorted(inside, key=lambda one: one.name)]
        if any(lines for _, lines in shown):
            parts.append(_heading("##", known[folder]))
            parts += [_heading("###", module) + "\n" + "\n".join(lines) + "\n" for module, lines in shown if lines]
    return "\n".join(parts)


def _heading(level: str, module: Module) -> str:
    said = textwrap.fill(sentence(module.tree), WIDTH, break_long_words=False, break_on_hyphens=False)
    return f"{level} {module.name.removeprefix(PACKAGE + '.')}\n\n{said}\n"


def main(page: Path = PAGE) -> None:
    page.parent.mkdir(parents=True, exist_ok=True)
    page.write_text(HEADING + reference(), "utf-8")
    sys.stdout.write(f"{page} lists what each folder offers to the others\n")


if __name__ == "__main__":
    main()
