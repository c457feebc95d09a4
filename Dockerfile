# The playground in a container:
#   docker build -t tracr-playground .
#   docker run --rm -p 8000:8000 --read-only --tmpfs /tmp --cap-drop ALL --memory 4g tracr-playground
# `docker stop` lets running programs finish.

FROM python:3.11-slim AS build
RUN apt-get update && apt-get install -y --no-install-recommends gcc libc6-dev && rm -rf /var/lib/apt/lists/*
WORKDIR /source
COPY pyproject.toml setup.py MANIFEST.in README.md LICENSE ./
COPY src src
RUN python -m venv /tracr && /tracr/bin/pip install --no-cache-dir '.[web]'

FROM python:3.11-slim
COPY --from=build /tracr /tracr
RUN useradd --system --no-create-home --shell /usr/sbin/nologin tracr
USER tracr
WORKDIR /tmp
EXPOSE 8000
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=30s --timeout=5s --start-period=30s CMD ["/tracr/bin/python", "-c", "import urllib.request as r; r.urlopen('http://127.0.0.1:8000/health', timeout=4)"]
ENTRYPOINT ["/tracr/bin/tracr", "playground", "--host", "0.0.0.0", "--port", "8000"]
