#!/bin/sh
# Every script of Kafka that the image has is a link to this one; the name says which.
exec /opt/horolog/bin/python -m horolog.client.cli.kafka_scripts "$(basename "$0")" "$@"
