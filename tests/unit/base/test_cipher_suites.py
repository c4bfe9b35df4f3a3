"""Java's names of cipher suites are OpenSSL's by another spelling."""

import ssl

import pytest

from horolog.base.cipher_suites import TLS_1_3, choose, is_of_tls_1_3, openssl_name

PAIRS = [
    ("TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384", "ECDHE-RSA-AES256-GCM-SHA384"),
    ("TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256", "ECDHE-ECDSA-AES128-GCM-SHA256"),
    ("TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256", "ECDHE-RSA-CHACHA20-POLY1305"),
    ("TLS_DHE_RSA_WITH_AES_256_GCM_SHA384", "DHE-RSA-AES256-GCM-SHA384"),
    ("TLS_RSA_WITH_AES_128_CBC_SHA", "AES128-SHA"),
    ("TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA384", "ECDHE-RSA-AES256-SHA384"),
    ("ECDHE-RSA-AES128-GCM-SHA256", "ECDHE-RSA-AES128-GCM-SHA256"),
]


@pytest.mark.parametrize(("java", "openssl"), PAIRS)
def test_names(java, openssl):
    assert openssl_name(java) == openssl
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.set_ciphers(openssl)
    assert openssl in {one["name"] for one in context.get_ciphers()}


def test_suites_of_tls_1_3_are_apart():
    assert is_of_tls_1_3("TLS_AES_128_GCM_SHA256")


@pytest.mark.parametrize(
    ("names", "versions"),
    [
        ([], {"TLSv1.2", "TLSv1.3"}),
        ([PAIRS[0][0]], {"TLSv1.2"}),
        (TLS_1_3, {"TLSv1.3"}),
        ([*TLS_1_3, PAIRS[0][0]], {"TLSv1.2", "TLSv1.3"}),
    ],
)
def test_names_decide_about_versions(names, versions):
    assert choose(ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), names) == versions


def test_those_of_tls_1_2_are_set():
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    choose(context, [PAIRS[0][0]])
    assert {one["name"] for one in context.get_ciphers() if one["protocol"] == "TLSv1.2"} == {PAIRS[0][1]}


def test_where_none_is_named_all_have_forward_secrecy():
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    choose(context, [])
    offered = {one["name"] for one in context.get_ciphers() if one["protocol"] != "TLSv1.3"}
    assert {"ECDHE-RSA-AES128-GCM-SHA256", "ECDHE-ECDSA-AES256-GCM-SHA384", "ECDHE-RSA-CHACHA20-POLY1305"} < offered
    assert {name.partition("-")[0] for name in offered} == {"ECDHE", "DHE"}
    assert not [name for name in offered if "PSK" in name or "SRP" in name or "NULL" in name]


@pytest.mark.parametrize("names", [["TLS_AES_128_GCM_SHA256"], ["NONE-SUCH"], ["no such"]])
def test_what_the_library_cannot_do_is_refused(names):
    with pytest.raises(
        ValueError, match=r"all suites are named or none|No cipher can be selected|is not a cipher suite"
    ):
        choose(ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), names)


@pytest.mark.parametrize("name", ["TLS_RSA_WITH_NULL_MD5", "a:b", "-ALL", "!ALL", ""])
def test_what_is_no_suite_is_refused(name):
    with pytest.raises(ValueError, match=r"is not a cipher suite|is not served"):
        openssl_name(name)
