# dgm in a container, as an ordinary user: docs/connect.md says how to run it. BASE is any Debian image with Python >= 3.11.
ARG BASE=python:3.13-slim-trixie

FROM ${BASE} AS build
COPY . /source
RUN python3 -m venv /opt/dgm \
    && /opt/dgm/bin/pip install --no-cache-dir --disable-pip-version-check --constraint /source/constraints.txt /source \
    && find /opt/dgm -type d -name tests -path "*-packages/*py/*" -prune -exec rm -r {} + \
    && /opt/dgm/bin/pip uninstall --yes --quiet setuptools pip

FROM ${BASE}
RUN apt-get update \
    && apt-get install --yes --no-install-recommends bubblewrap ca-certificates git patch procps \
    && apt-get clean \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --create-home --uid 1000 dgm \
    && install --directory --owner dgm /archive
COPY --from=build /opt/dgm /opt/dgm
ENV PATH=/opt/dgm/bin:$PATH DGM_ARCHIVE=/archive PYTHONDONTWRITEBYTECODE=1
USER dgm
WORKDIR /home/dgm
VOLUME /archive
ENTRYPOINT ["dgm"]
CMD ["--help"]
