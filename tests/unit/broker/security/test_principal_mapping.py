"""Rules make principals of names as Kafka's do. Expected values are those of Kafka's own tests, and of the source they test."""

import pytest

from horolog.broker.security.principal_mapping import NoRuleFits, PrincipalMapping

DUKE = "CN=Duke, OU=ServiceUsers, O=Org, C=US"


@pytest.mark.parametrize(
    ("rules", "name", "principal"),
    [
        ("DEFAULT", DUKE, DUKE),
        ("", DUKE, None),
        (r"RULE:^CN=(.*?), OU=ServiceUsers.*$/$1/", DUKE, "Duke"),
        (r"RULE:^CN=(.*?), OU=(.*?), O=(.*?), C=(.*?)$/$1@$2/L", DUKE, "duke@serviceusers"),
        (r"RULE:^.*[Cc][Nn]=([a-zA-Z0-9.]*).*$/$1/U", DUKE, "DUKE"),
        (r"RULE:^cn=(.*?),.*$/$1/, DEFAULT", DUKE, DUKE),
        (r"RULE:^cn=(.*?),.*$/$1/,RULE:^CN=(.*?),.*$/one $1/", DUKE, "one Duke"),
        (r"RULE:^cn=(.*?),.*$/$1/", DUKE, None),
        (r"RULE:CN=(.*?), OU=(.*)/$2\/$1/", DUKE, "ServiceUsers, O=Org, C=US/Duke"),
        (r"RULE:.*/x/", DUKE, "xx"),
        (r"RULE:^.*$/\$1/", DUKE, "$1"),
        (r"RULE:^CN=(.*?),.*$/$12/", DUKE, "Duke2"),
        (r"RULE:^CN=(.*?),.*$/$9/", DUKE, "$9"),
        (r"RULE:^CN=(?<who>.*?),.*$/${who}/", DUKE, "Duke"),
        (r"RULE:^CN=(x)?.*$/[$1]/", DUKE, "[]"),
        (r"RULE:^CN=(?<who>x)?.*$/[${who}]/", DUKE, "[]"),
        (r"RULE:^CN=Duke.*$//", DUKE, ""),
        (" DEFAULT , ", DUKE, DUKE),
    ],
)
def test_the_first_rule_that_fits_counts(rules, name, principal):
    mapping = PrincipalMapping(rules)
    assert "rules" in repr(mapping)
    if principal is None:
        with pytest.raises(NoRuleFits, match="CN=Duke"):
            mapping.name_of(name)
    else:
        assert mapping.name_of(name) == principal


@pytest.mark.parametrize(
    "rules",
    [
        "default",
        "DEFAUL",
        "DEFAULT/L",
        "DEFAULT/U",
        "RULE:CN=(.*?),OU=ServiceUsers.*/$1",
        "rule:^CN=(.*?),OU=ServiceUsers.*$/$1/",
        "RULE:^CN=(.*?),OU=ServiceUsers.*$/$1/L/U",
        "RULE:^CN=(.*?),OU=ServiceUsers.*$/L",
        "RULE:^CN=(.*?),OU=ServiceUsers.*$/U",
        "RULE:^CN=(.*?),OU=ServiceUsers.*$/LU",
        "RULE:^(.*$/$1/",
        "RULE:^(.*)$/${none}/",
    ],
)
def test_what_is_no_rule_is_refused(rules):
    with pytest.raises(ValueError, match=r"is not a |names a group"):
        PrincipalMapping(rules)
