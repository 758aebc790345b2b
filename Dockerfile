# One image for web, worker and beat. Not built on a Docker engine yet.
FROM python:3.13-slim AS build
WORKDIR /opt/evalsite
COPY requirements.lock .
RUN python -m venv /opt/venv \
    && /opt/venv/bin/pip install --no-cache-dir --require-hashes -r requirements.lock

FROM python:3.13-slim
RUN useradd --system --uid 10001 --create-home --home-dir /var/lib/evalsite evalsite
WORKDIR /opt/evalsite
COPY --from=build /opt/venv /opt/venv
COPY manage.py pyproject.toml ./
COPY evalsite evalsite
COPY apps apps
COPY templates templates
COPY static static
ENV PATH=/opt/venv/bin:$PATH \
    EVALSITE_VENV=/opt/venv \
    EVALSITE_DATA_DIR=/var/lib/evalsite \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1
USER evalsite
VOLUME /var/lib/evalsite
EXPOSE 8000
CMD ["gunicorn", "evalsite.wsgi", "--worker-class", "gthread", "--workers", "2", \
     "--threads", "8", "--bind", "0.0.0.0:8000", "--graceful-timeout", "20", \
     "--timeout", "120", "--no-control-socket", "--worker-tmp-dir", "/dev/shm"]
