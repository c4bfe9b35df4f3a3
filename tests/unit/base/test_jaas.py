"""The text of sasl.jaas.config: Kafka's form and Java's quotes, and faults that show no password."""

import pytest

from horolog.base.jaas import JaasError, parse

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"


def options(text):
    return dict(parse(f"{PLAIN} required {text};").options)


def test_a_text_as_kafkas_documentation_has_it():
    module = parse(
        f'{PLAIN} required username="admin" \\\n password="admin-secret"\n user_admin="admin-secret" ;'.replace(
            "\\", ""
        )
    )
    assert module.name == PLAIN
    assert module.options == {"username": "admin", "password": "admin-secret", "user_admin": "admin-secret"}
    assert "admin-secret" not in repr(module)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("", {}),
        ("user_a=word", {"user_a": "word"}),
        ("user_a='sin gle'", {"user_a": "sin gle"}),
        ('user_a=""', {"user_a": ""}),
        ('user_a="a;=/ //*"', {"user_a": "a;=/ //*"}),
        (r'user_a="q\"q\\b"', {"user_a": 'q"q\\b'}),
        (r'user_a="\t\n\r\a\b\f\v\z"', {"user_a": "\t\n\r\a\b\f\vz"}),
        (r'user_a="\1\101\1012\777\8"', {"user_a": "\x01AA2?78"}),
        ("user_a-b$c_d.e=x.y-z", {"user_a-b$c_d.e": "x.y-z"}),
        ('user_é="ü"', {"user_é": "ü"}),
        ('"user_a b" = "c"', {"user_a b": "c"}),
        ("a=b /* c=d; */ e=f // g=h;\n", {"a": "b", "e": "f"}),
        ("a=b / a comment, too\nc=d", {"a": "b", "c": "d"}),
        ("a=b a=c", {"a": "c"}),
    ],
)
def test_options_are_read_as_java_reads_them(text, found):
    assert options(text) == found


@pytest.mark.parametrize("flag", ["required", "REQUISITE", "Sufficient", "optional"])
def test_the_flags_of_java_are_known(flag):
    assert parse(f"X {flag};").name == "X"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "X",
        "X required",
        "X wrong;",
        ";",
        'X required user_a="hunter2"',
        'X required user_a="hunter2',
        'X required user_a="hunter2\n";',
        "X required user_a=7hunter2;",
        "X required user_a=-hunter2;",
        "X required user_a hunter2;",
        "X required user_a=;",
        "X required user_a= hunter2 =;",
        'X required user_a="hunter2\\',
        'X required user_a="hunter2"; Y required;',
        "X required; /* hunter2",
    ],
)
def test_a_fault_shows_no_password(text):
    if text.endswith("/* hunter2"):
        assert parse(text).name == "X"  # a comment without an end, as in Java
        return
    with pytest.raises(JaasError) as refused:
        parse(text)
    assert "hunter2" not in str(refused.value)
