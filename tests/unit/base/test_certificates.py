"""Names in certificates come out as Java writes them, and so does the time until which one holds."""

import contextlib
import ipaddress
from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.name import _ASN1Type
from cryptography.x509.oid import NameOID
from hypothesis import given
from hypothesis import strategies as st

from horolog.base.certificates import alternatives, expiry_warning, is_same_name, read
from horolog.base.der import DerError

KEY = ec.generate_private_key(ec.SECP256R1())


def certificate(name, expires=datetime(2030, 1, 2, 3, 4, 5, tzinfo=UTC), others=()):
    built = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(x509.Name([]))
        .public_key(KEY.public_key())
        .serial_number(7)
        .not_valid_before(expires - timedelta(days=1))
        .not_valid_after(expires)
    )
    if others:
        built = built.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        built = built.add_extension(x509.SubjectAlternativeName(others), critical=False)
    return built.sign(KEY, hashes.SHA256()).public_bytes(Encoding.DER)


def named(*parts):
    return x509.Name([x509.NameAttribute(oid, text) for oid, text in parts])


ALICE = certificate(named((NameOID.COMMON_NAME, "alice")))


@pytest.mark.parametrize(
    ("name", "written"),
    [
        ([], ""),
        (
            [(NameOID.COUNTRY_NAME, "DE"), (NameOID.ORGANIZATION_NAME, "Logs"), (NameOID.COMMON_NAME, "alice")],
            "CN=alice,O=Logs,C=DE",
        ),
        ([(NameOID.ORGANIZATION_NAME, "Logs, Inc")], r"O=Logs\, Inc"),
        ([(NameOID.COMMON_NAME, 'a+b"c\\d<e>f;g=h#i')], r"CN=a\+b\"c\\d\<e\>f\;g\=h\#i"),
        ([(NameOID.COMMON_NAME, " both ")], r"CN=\ both\ "),
        ([(NameOID.COMMON_NAME, "  ")], r"CN=\ \ "),
        ([(NameOID.COMMON_NAME, "Jürgen 日本")], "CN=Jürgen 日本"),
        ([(NameOID.COMMON_NAME, "a\0b")], r"CN=a\00b"),
        ([(NameOID.USER_ID, "u1"), (NameOID.DOMAIN_COMPONENT, "org")], "DC=org,UID=u1"),
        (
            [(NameOID.STREET_ADDRESS, "Way 1"), (NameOID.STATE_OR_PROVINCE_NAME, "NW"), (NameOID.LOCALITY_NAME, "K")],
            "L=K,ST=NW,STREET=Way 1",
        ),
        (
            [(NameOID.EMAIL_ADDRESS, "a@b"), (NameOID.ORGANIZATIONAL_UNIT_NAME, "x")],
            "OU=x,1.2.840.113549.1.9.1=#1603614062",
        ),
    ],
)
def test_names_are_written_as_java_writes_them(name, written):
    assert read(certificate(named(*name))).subject == written


def test_parts_of_one_step_stay_together_and_other_values_are_hexadecimal():
    together = x509.RelativeDistinguishedName(
        [x509.NameAttribute(NameOID.COMMON_NAME, "a"), x509.NameAttribute(NameOID.USER_ID, "b")]
    )
    assert read(certificate(x509.Name([together]))).subject in {"CN=a+UID=b", "UID=b+CN=a"}
    bits = x509.NameAttribute(NameOID.X500_UNIQUE_IDENTIFIER, b"\x01", _ASN1Type.BitString)
    assert read(certificate(x509.Name([bits]))).subject.startswith("2.5.4.45=#03")


@pytest.mark.parametrize(
    "expires",
    [
        datetime(2030, 1, 2, 3, 4, 5, tzinfo=UTC),
        datetime(2049, 12, 31, 23, 59, 59, tzinfo=UTC),
        datetime(2050, 1, 1, tzinfo=UTC),
        datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC),
    ],
)
def test_the_time_until_which_it_holds(expires):
    assert read(certificate(named(), expires)).expires_s == expires.timestamp()


def test_two_digits_are_years_from_1950_on():
    encoded = certificate(named())
    assert read(encoded.replace(b"300102030405Z", b"550102030405Z")).expires_s < 0


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b"\x17\x0d300102030405Z", b"\x17\x0d301302030405Z"),
        (b"\x17\x0d300102030405Z", b"\x04\x0d300102030405Z"),
        (b"\x31", b"\x04"),
        (b"\x06\x03U\x04\x03", b"\x04\x03U\x04\x03"),
        (b"\x30\x1e\x17\x0d3001", b"\x31\x1e\x17\x0d3001"),
    ],
)
def test_what_is_no_certificate(old, new):
    encoded = certificate(named((NameOID.COMMON_NAME, "a")))
    assert old in encoded
    with pytest.raises(DerError):
        read(encoded.replace(old, new))


def test_validities_have_two_times():
    encoded = certificate(named())
    time = encoded[encoded.index(b"\x17\x0d") :][:15]
    with pytest.raises(DerError, match="two times"):
        read(encoded.replace(b"\x30\x1e" + time, b"\x30\x1e\x04\x1c" + bytes(13)).replace(time, bytes(15)))


HOST, ADDRESS = x509.DNSName("a.example.org"), x509.IPAddress(ipaddress.ip_address("192.0.2.1"))


def test_alternative_names_are_compared_as_they_are_encoded():
    none, one, both = (alternatives(certificate(named(), others=those)) for those in ([], [HOST], [ADDRESS, HOST]))
    assert none == set() < one < both
    assert one == {b"\x82\x0da.example.org"}
    assert both - one == {b"\x87\x04\xc0\x00\x02\x01"}


def test_extensions_without_that_one_have_no_names():
    encoded = certificate(named(), others=[HOST])
    assert alternatives(encoded.replace(b"\x06\x03U\x1d\x11", b"\x06\x03U\x1d\x12")) == set()


def test_an_extension_has_a_kind():
    encoded = certificate(named(), others=[HOST])
    with pytest.raises(DerError, match="kind and a value"):
        alternatives(encoded.replace(b"\x06\x03U\x1d\x11", b"\x04\x03U\x1d\x11"))


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("CN=a,O=Logs  Inc", "cn=A,O=logs inc", True),
        ("CN=a,O=Logs", "CN=a", False),
        ("CN=a", "CN=b", False),
    ],
)
def test_names_are_compared_without_case_and_blanks(one, other, same):
    assert is_same_name(one, other) == same


def test_too_few_parts():
    with pytest.raises(DerError, match="not a certificate"):
        read(b"\x30\x04\x30\x02\x05\x00")


@given(st.integers(0, 199), st.integers(1, 255))
def test_broken_certificates_are_refused_or_read(at, flipped):
    encoded = bytearray(ALICE)
    encoded[at] ^= flipped
    with contextlib.suppress(DerError):
        assert read(bytes(encoded)).subject is not None


WITH_OTHERS = certificate(named(), others=[HOST, ADDRESS])


@given(st.integers(0, len(WITH_OTHERS) - 1), st.integers(1, 255))
def test_broken_extensions_are_refused_or_read(at, flipped):
    encoded = bytearray(WITH_OTHERS)
    encoded[at] ^= flipped
    with contextlib.suppress(DerError):
        assert alternatives(bytes(encoded)) is not None


@pytest.mark.parametrize(
    ("left_s", "said"),
    [
        (2.0, None),
        (1.999, "the certificate of x expires: 1970-01-01 00:16 UTC"),
        (-0.1, "the certificate of x has expired: 1970-01-01 00:16 UTC"),
    ],
)
def test_the_end_is_told_some_time_before(left_s, said):
    assert expiry_warning("x", 1000.0, 1000.0 - left_s, 2000) == said
