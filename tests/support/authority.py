"""Certificates for tests: an authority, and those it signs, in the forms that Kafka and its clients read."""

from datetime import datetime
from pathlib import Path

import trustme
from cryptography import x509
from cryptography.hazmat.primitives import serialization as forms
from cryptography.hazmat.primitives.serialization import pkcs12


class Authority:
    """One authority, with a folder for its files."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.ca = trustme.CA()
        self.trusted = folder / "trusted.pem"
        self.ca.cert_pem.write_to_path(str(self.trusted))

    def issue(self, *names: str, expires: datetime | None = None) -> "Issued":
        cert = self.ca.issue_cert(*names, common_name=names[0], not_after=expires)
        return Issued(self.folder, names[0].replace("/", "-"), cert, self.ca)


class Issued:
    """A certificate and its key."""

    def __init__(self, folder: Path, name: str, cert: trustme.LeafCert, ca: trustme.CA) -> None:
        self.cert = cert
        self.chain_pem = b"".join(each.bytes() for each in cert.cert_chain_pems).decode()
        self._key = forms.load_pem_private_key(cert.private_key_pem.bytes(), None)
        self._ca = ca
        self.key_pem = self.key()
        self.chain_file = folder / f"{name}.crt"
        self.chain_file.write_text(self.chain_pem)
        self.key_file = folder / f"{name}.key"
        self.key_file.write_text(self.key_pem)
        self.both_file = folder / f"{name}.pem"
        self.both_file.write_text(self.key_pem + self.chain_pem)

    def key(self, password: str | None = None) -> str:
        """PKCS#8, which Java reads too."""
        shown = forms.NoEncryption() if password is None else forms.BestAvailableEncryption(password.encode())
        return self._key.private_bytes(forms.Encoding.PEM, forms.PrivateFormat.PKCS8, shown).decode()

    def pkcs12(self, password: str) -> bytes:
        found = x509.load_pem_x509_certificates(self.chain_pem.encode())
        authority = x509.load_pem_x509_certificate(self._ca.cert_pem.bytes())
        shown = forms.BestAvailableEncryption(password.encode())
        return pkcs12.serialize_key_and_certificates(b"own", self._key, found[0], [*found[1:], authority], shown)
