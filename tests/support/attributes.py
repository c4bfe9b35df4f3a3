"""The attributes of a class's objects, whether it is compiled or not: a compiled class has no `__slots__`."""

import inspect


def attribute_names(kind: type) -> set[str]:
    members = vars(kind).items()
    return {name for name, one in members if inspect.ismemberdescriptor(one) or inspect.isgetsetdescriptor(one)}
