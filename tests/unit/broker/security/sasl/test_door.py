"""What a door counts."""

from horolog.broker.security.sasl.door import FAMILIES
from tests.support.sasl import counted, door


def test_logins_are_counted_by_mechanism_kind_and_outcome():
    one = door()
    for anew, succeeded in ((False, True), (False, False), (False, False), (True, True)):
        one.count("PLAIN", anew=anew, succeeded=succeeded)
    assert counted(one) == {
        ("PLAIN", "login", "success"): 1,
        ("PLAIN", "login", "failure"): 2,
        ("PLAIN", "renewal", "success"): 1,
    }


def test_what_is_counted_is_named_by_the_listener():
    assert all(family.labels[0] == "listener" for family in FAMILIES)
