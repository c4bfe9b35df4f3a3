"""Monitoring of a running broker: metrics, health and readiness over HTTP, structured logs. Imported only where asked for."""

__all__ = [
    "disk_room",
    "exposition",
    "http",
    "http_server",
    "logs",
    "notify",
    "phase",
]
