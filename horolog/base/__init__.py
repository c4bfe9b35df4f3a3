"""What every package may use: clocks, figures for people, ACL words, certificates, JAAS lines, SCRAM, bounded expressions, URLs.

It imports nothing of the other packages.
"""

__all__ = [
    "acl_types",
    "acls",
    "certificates",
    "cipher_suites",
    "clock",
    "der",
    "hosts",
    "interrupts",
    "jaas",
    "no_redirects",
    "patterns",
    "pins",
    "processes",
    "properties_file",
    "readable",
    "scram_client",
    "standard_streams",
]
