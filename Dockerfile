# A small image: the interpreter, the locked libraries and the sources. Any image with Python >= 3.11 and pip may be the base.
ARG BASE_IMAGE=python:3.13-slim

FROM ${BASE_IMAGE} AS build
COPY requirements/runtime.lock /build/runtime.lock
RUN python3 -m venv /opt/horolog \
    && /opt/horolog/bin/python -m pip install --no-cache-dir --no-deps --require-hashes -r /build/runtime.lock \
    && rm -rf /opt/horolog/lib/python3*/site-packages/pip /opt/horolog/lib/python3*/site-packages/pip-* /opt/horolog/bin/pip*
COPY broker /opt/horolog/app/broker
COPY protocol /opt/horolog/app/protocol
COPY client /opt/horolog/app/client
COPY config/server.properties LICENSE /opt/horolog/app/
RUN printf '#!/bin/sh\nexec /opt/horolog/bin/python -m client.cli.main "$@"\n' > /opt/horolog/bin/horolog \
    && chmod 755 /opt/horolog/bin/horolog \
    && /opt/horolog/bin/python -m compileall -q /opt/horolog/app

FROM ${BASE_IMAGE}
COPY --from=build /opt/horolog /opt/horolog
RUN groupadd --gid 1000 horolog \
    && useradd --uid 1000 --gid 1000 --no-create-home --home-dir /var/lib/horolog --shell /usr/sbin/nologin horolog \
    && install -d -o horolog -g horolog /var/lib/horolog
ENV PATH=/opt/horolog/bin:$PATH \
    PYTHONPATH=/opt/horolog/app \
    PYTHONUNBUFFERED=1 \
    KAFKA_LOG_DIRS=/var/lib/horolog \
    KAFKA_LISTENERS=PLAINTEXT://0.0.0.0:9092 \
    KAFKA_ADVERTISED_LISTENERS=PLAINTEXT://localhost:9092
USER horolog
WORKDIR /var/lib/horolog
VOLUME /var/lib/horolog
EXPOSE 9092
STOPSIGNAL SIGTERM
# An ApiVersions request and its correlation id back: the broker answers, not only the port.
HEALTHCHECK --interval=10s --timeout=3s --start-period=5s --retries=3 CMD ["python", "-c", "\
import os, socket\n\
listener = os.environ['KAFKA_LISTENERS'].split(',')[0]\n\
host, port = listener.split('://')[1].rsplit(':', 1)\n\
with socket.create_connection((host.strip('[]').replace('0.0.0.0', '') or '127.0.0.1', int(port)), 2) as peer:\n\
    peer.sendall(bytes.fromhex('0000000a 0012 0000 00000007 ffff'))\n\
    assert peer.recv(8)[4:8] == bytes.fromhex('00000007')\n"]
ENTRYPOINT ["horolog"]
CMD ["serve", "--config", "/opt/horolog/app/server.properties"]
