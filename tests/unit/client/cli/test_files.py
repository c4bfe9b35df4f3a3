"""`horolog files` lists, prints and copies the files that come with the program."""

from horolog.broker.config.shipped_files import FILES

NAMES = [one.name for one in FILES]


def test_files_are_listed(horolog):
    listed = horolog("files", "-o", "json").json
    assert [each["name"] for each in listed] == NAMES
    shown = horolog("files").out.splitlines()
    assert [line.split()[0] for line in shown[1:]] == NAMES


def test_a_file_is_printed_as_it_is(horolog):
    one = FILES[0]
    assert horolog("files", one.name).out == one.path.read_text("utf-8")


def test_files_are_copied_all_or_those_that_are_named(horolog, tmp_path):
    ended = horolog("files", "--to", tmp_path / "new", NAMES[0])
    assert ended.out.splitlines() == [str(tmp_path / "new" / NAMES[0])]
    assert (tmp_path / "new" / NAMES[0]).read_bytes() == FILES[0].path.read_bytes()
    assert horolog("files", "--to", tmp_path / "all", "-o", "json").code == 0
    assert sorted(path.name for path in (tmp_path / "all").iterdir()) == sorted(NAMES)


def test_where_a_file_is_in_the_way_none_is_written(horolog, tmp_path):
    (tmp_path / NAMES[-1]).write_text("mine")
    ended = horolog("files", "--to", tmp_path)
    assert (ended.code, f"{NAMES[-1]} exists already" in ended.err) == (1, True)
    assert [path.name for path in tmp_path.iterdir()] == [NAMES[-1]]


def test_a_file_that_does_not_come_along(horolog):
    ended = horolog("files", "nothing.txt")
    assert (ended.code, ended.out) == (4, "")
    assert f"horolog has no file nothing.txt; the files are {NAMES[0]}" in ended.err
