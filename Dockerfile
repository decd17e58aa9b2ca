# Two stages: what builds stays behind. The image holds Python, the locked packages, the service, wakebell.toml and your
# handlers; no pip, no compiler, no development packages.
ARG PYTHON=3.13

FROM python:${PYTHON}-slim AS build
WORKDIR /src

# The tools that make a wheel, picked out of the development lock so that they too come with their hashes.
COPY requirements.lock requirements-dev.lock ./
RUN awk '/^[a-z]/ { wanted = /^(hatchling|packaging|pathspec|pluggy|tomlkit|trove-classifiers)==/ } wanted' \
        requirements-dev.lock > build.lock \
    && python -m venv /build \
    && /build/bin/pip install --require-hashes -r build.lock

RUN python -m venv --without-pip /venv \
    && /build/bin/pip --python /venv/bin/python install --no-compile --require-hashes -r requirements.lock

COPY . .
RUN /build/bin/pip wheel --no-deps --no-build-isolation --wheel-dir dist . \
    && /build/bin/pip --python /venv/bin/python install --no-compile --no-deps dist/*.whl

RUN mkdir -p /srv \
    && cp wakebell.toml /srv/ \
    && if [ -d handlers ]; then cp -R handlers /srv/; fi

# Without bytecode every cold start costs three times the CPU: the process may not write it, and a machine that slept
# begins with a fresh file system. Never checked against the sources: those cannot change, but their times can.
RUN /venv/bin/python -m compileall -q -j 0 --invalidation-mode unchecked-hash /venv/lib /srv

FROM python:${PYTHON}-slim

# The images of Python come without bytecode of the standard library.
RUN python -m compileall -q -j 0 --invalidation-mode unchecked-hash -x '/(idlelib|site-packages|test)/' \
        "$(python -c 'import sysconfig; print(sysconfig.get_path("stdlib"))')" \
    && useradd --system --uid 10001 --no-create-home wakebell

COPY --from=build /venv /venv
COPY --from=build /srv /srv

ENV PATH=/venv/bin:$PATH PYTHONUNBUFFERED=1
WORKDIR /srv
USER 10001
EXPOSE 8080
STOPSIGNAL SIGTERM

# In this form the service is process 1 and gets the signal itself. HOST and PORT say where it listens: 0.0.0.0, 8080.
CMD ["wakebell", "serve"]
