"""What every package may use: clocks, figures for people, ACL words, certificates, JAAS lines, SCRAM, expressions with a bound.

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
    "patterns",
    "pins",
    "processes",
    "properties_file",
    "readable",
    "scram_client",
    "standard_streams",
]
