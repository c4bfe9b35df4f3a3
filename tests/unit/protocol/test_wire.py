"""The declaration language: constructors, equality, reprs, ranges of versions, defaults."""

import typing

import pytest

from horolog.protocol.wire import (
    NONE,
    UNSET,
    Message,
    Struct,
    Versions,
    array,
    binary,
    field,
    int32,
    record_set,
    string,
    uuid,
    versions_of,
)
from tests.support.message_values import every_message


class Inner(Struct):
    number: int = field(int32, default=-1)


class Outer(Message, versions="0-5", flexible="3+"):
    name: str = field(string)
    note: str | None = field(string, "2+", nullable="0+")
    late_note: str | None = field(string, nullable="2+")
    data: bytes = field(binary)
    topic_id: bytes = field(uuid, "4+")
    items: list[Inner] = field(array(Inner))
    numbers: list[int] | None = field(array(int32), nullable="0+", default=None)
    inner: Inner = field(Inner)
    extra: Inner | None = field(Inner, "3+", tag=0)


def test_fields_default_to_what_the_schema_says() -> None:
    made = Outer()
    assert (made.name, made.note, made.late_note, made.data, made.topic_id) == ("", None, "", b"", bytes(16))
    assert (made.items, made.numbers, made.inner, made.extra) == ([], None, Inner(number=-1), None)


def test_empty_lists_and_structs_are_not_shared() -> None:
    first, second = Outer(), Outer()
    first.items.append(Inner())
    first.inner.number = 7
    assert second.items == []
    assert second.inner.number == -1


def test_a_null_that_was_passed_is_kept() -> None:
    assert Outer(numbers=None, items=[Inner()]).numbers is None


def test_unknown_arguments_and_attributes_are_refused() -> None:
    with pytest.raises(TypeError, match="nmae"):
        Outer(nmae="x")  # type: ignore[call-arg]
    with pytest.raises(AttributeError):
        Outer().nmae = "x"  # type: ignore[attr-defined]


def test_equality_is_by_type_and_value() -> None:
    assert Outer(name="a", items=[Inner(number=1)]) == Outer(name="a", items=[Inner(number=1)])
    assert Outer(name="a") != Outer(name="b")
    assert Inner() != Outer()
    with pytest.raises(TypeError):
        hash(Inner())


def test_records_compare_by_content_whatever_buffer_holds_them() -> None:
    class Carrier(Message, versions="0"):
        records: bytes | memoryview | None = field(record_set, nullable="0+")

    assert Carrier(records=b"abc") == Carrier(records=memoryview(b"abc"))


def test_repr_shows_what_differs_from_the_defaults_and_cuts_bytes() -> None:
    shown = repr(Outer(name="a", data=b"x" * 1000, items=[Inner(number=3)]))
    assert shown == "Outer(name='a', data=b'xxxxxxxxxxxxxxxxxxxxxxxx'..., items=[Inner(number=3)])"


@pytest.mark.parametrize(
    ("text", "inside", "outside"),
    [("0+", [0, 5, 99], []), ("3+", [3, 40], [2]), ("2-4", [2, 4], [1, 5]), ("7", [7], [6, 8]), ("none", [], [0, 1])],
)
def test_ranges_of_versions(text: str, inside: list[int], outside: list[int]) -> None:
    versions = versions_of(text)
    assert all(version in versions for version in inside)
    assert not any(version in versions for version in outside)


def test_versions_have_values_and_reprs() -> None:
    assert versions_of("2-4") == Versions(2, 4)
    assert versions_of("none") == NONE
    assert len({versions_of("2-4"), Versions(2, 4)}) == 1
    assert repr(Versions(2, 4)) == "Versions(2, 4)"


def every_struct() -> list[type[Struct]]:
    found: dict[type[Struct], None] = {}
    waiting: list[type[Struct]] = list(every_message())
    while waiting:
        cls = waiting.pop()
        found[cls] = None
        for declared in cls.FIELDS.values():
            inner = getattr(declared.type, "element", declared.type)
            if hasattr(inner, "struct") and inner.struct not in found:
                waiting.append(inner.struct)
    return list(found)


def test_annotations_allow_none_exactly_where_fields_may_be_null_or_unsent() -> None:
    """The types of fields are checked by mypy against `field(...)`; whether null is possible it cannot see."""
    wrong = []
    for cls in every_struct():
        for name, annotation in typing.get_type_hints(cls).items():
            declared = cls.FIELDS.get(name)
            if declared is None or declared.type is record_set:
                continue
            expected = declared.nullable != NONE or declared.make_default() is None
            if (type(None) in typing.get_args(annotation)) is not expected:
                wrong.append(f"{cls.__name__}.{name}")
    assert wrong == []


def test_only_fields_with_tags_may_be_missing_from_flexible_versions() -> None:
    """A tag makes sense in flexible versions only: elsewhere there is no place for it."""
    wrong = [
        f"{cls.__name__}.{name}"
        for cls in every_message()
        for name, declared in cls.FIELDS.items()
        if declared.tag is not None and declared.versions.first < cls.FLEXIBLE.first
    ]
    assert wrong == []


def test_tags_are_unique_within_a_struct() -> None:
    for cls in every_struct():
        tags = [declared.tag for declared in cls.FIELDS.values() if declared.tag is not None]
        assert len(tags) == len(set(tags)), cls


def test_declarations_say_what_they_are() -> None:
    declared = Outer.FIELDS["extra"]
    assert repr(declared) == f"Field(extra: Inner, {declared.versions}, tag=0)"
    assert repr(array(int32)) == "[]int32"
    assert repr(UNSET) == "unset"


@pytest.mark.parametrize(
    ("name", "value", "is_fresh"),
    [
        ("name", "", False),
        ("items", [], True),
        ("late_note", "", False),
        ("numbers", None, False),
        ("extra", None, False),
    ],
)
def test_a_default_is_what_the_schema_says_and_new_for_each_owner_where_it_may_change(name, value, is_fresh) -> None:
    declared = Outer.FIELDS[name]
    assert (declared.make_default(), declared.fresh) == (value, is_fresh)


def test_a_struct_is_made_anew_for_each_owner() -> None:
    declared = Outer.FIELDS["inner"]
    assert declared.fresh
    assert declared.make_default() == Inner()
    assert declared.make_default() is not declared.make_default()


@pytest.mark.parametrize(
    ("type_", "nullable", "default"),
    [(string, "0+", None), (int32, "0+", 0), (string, "2+", ""), (array(int32), "none", []), (Inner, "none", Inner())],
)
def test_a_declaration_without_a_default_gets_one_by_its_type(type_, nullable, default) -> None:
    assert field(type_, nullable=nullable).make_default() == default


def test_a_tagged_struct_is_absent_by_default() -> None:
    assert field(Inner, "3+", tag=0).make_default() is None


def test_a_message_knows_its_versions_and_a_struct_inside_of_one_has_none() -> None:
    assert (versions_of("0-5"), versions_of("3+")) == (Outer.VERSIONS, Outer.FLEXIBLE)
    assert not hasattr(Inner, "VERSIONS")


def test_a_struct_begins_with_the_fields_of_its_base():
    class Base(Struct):
        number: int = field(int32)

    class Longer(Base):
        name: str = field(string)

    assert repr(Base(number=1)) == "Base(number=1)", "builds the constructor of the base first"
    longer = Longer(number=1, name="x")
    assert (list(Base.FIELDS), list(Longer.FIELDS)) == (["number"], ["number", "name"])
    assert (longer.number, longer.name, Longer().name) == (1, "x", "")
    assert longer != Base(number=1)
