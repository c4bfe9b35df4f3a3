"""Monitoring of a running broker: metrics, health and readiness over HTTP, structured logs. Imported only where asked for."""
