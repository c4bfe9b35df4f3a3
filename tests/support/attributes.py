"""The attributes that objects of a class have, whichever form the class runs in: a compiled one has no `__slots__`."""

import inspect


def attribute_names(kind: type) -> set[str]:
    members = vars(kind).items()
    return {name for name, one in members if inspect.ismemberdescriptor(one) or inspect.isgetsetdescriptor(one)}
