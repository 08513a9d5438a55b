# The image that measures over the network: the command line, the C program that sends and answers messages, and Debian's C library below
# it, in whose place a network stack such as Onload takes over. make traffic-image ships the same files without an engine.
ARG BUILDER_IMAGE=golang:1.26.5@sha256:3aff6657219a4d9c14e27fb1d8976c49c29fddb70ba835014f477e1c70636647
# Debian 12, so that the program needs no newer C library than that below it. Nothing of it is in the image.
ARG DEBIAN_IMAGE=debian:12-slim@sha256:88200866dfff7ea7f5cbcb6ec7c8a701889efe6fe859fe64d6990e4b07ea4171

FROM --platform=$BUILDPLATFORM ${BUILDER_IMAGE} AS builder
ARG TARGETOS=linux
# Engines but BuildKit set it for --platform alone; without it, the machine's own is meant.
ARG TARGETARCH
ARG VERSION=unknown
ARG COMMIT=
WORKDIR /workspace
COPY go.mod go.sum ./
RUN go mod download
COPY api/ api/
COPY cmd/ cmd/
COPY config/crd/ config/crd/
COPY controllers/ controllers/
COPY internal/ internal/
COPY hack/image/go.mod hack/image/go.sum hack/image/
COPY hack/image/licences/ hack/image/licences/
COPY hack/image/thirdparty/ hack/image/thirdparty/
RUN CGO_ENABLED=0 GOOS=${TARGETOS} GOARCH=${TARGETARCH:-$(go env GOARCH)} \
    go build -trimpath -ldflags "-s -w -X main.release=${VERSION},${COMMIT}" -o ./ ./cmd/kubectl-lowlatency
# The licences and notices of the modules in the programs, as make image writes them.
RUN CGO_ENABLED=0 go -C hack/image run ./thirdparty -texts -platforms ${TARGETOS}/${TARGETARCH:-$(go env GOARCH)} /workspace \
    ./cmd/kubectl-lowlatency > THIRD-PARTY

FROM --platform=$BUILDPLATFORM ${DEBIAN_IMAGE} AS traffic
ARG TARGETARCH
# Debian's package with the C library, by its version and its sums; a test compares them with those of hack/image.
ARG LIBRARY_VERSION=2.36-9+deb12u14
ARG LIBRARY_SHA256_AMD64=ba4f88f73dbc3ae9055f3c20f4523bfdbaf1ad13ff95e258924f77d20b4fbedf
ARG LIBRARY_SHA256_ARM64=01f4330719fd4f65580e16ea5a0527f372fca750e8f588d26deaf09f2d3b1cf4
WORKDIR /workspace
RUN apt-get update && apt-get install -y --no-install-recommends \
    gcc-x86-64-linux-gnu libc6-dev-amd64-cross gcc-aarch64-linux-gnu libc6-dev-arm64-cross
COPY hack/traffic.sh hack/debian-package.sh hack/
COPY cmd/lowlatency-traffic/ cmd/lowlatency-traffic/
# The program, the shared libraries without what converts character sets, their licence, and what scanners read of the package.
RUN set -e; \
    case "${TARGETARCH:=$(dpkg --print-architecture)}" in \
    amd64) triple=x86_64-linux-gnu sum=${LIBRARY_SHA256_AMD64} ;; \
    arm64) triple=aarch64-linux-gnu sum=${LIBRARY_SHA256_ARM64} ;; \
    *) echo "lowlatency-traffic is not built for ${TARGETARCH}" >&2; exit 1 ;; \
    esac; \
    program=$(CC=${triple}-gcc hack/traffic.sh); \
    archive=$(hack/debian-package.sh libc6 "${LIBRARY_VERSION}" "${TARGETARCH}" "${sum}"); \
    mkdir -p root/var/lib/dpkg/status.d library; \
    install -m 755 "${program}" root/lowlatency-traffic; \
    dpkg-deb --field "${archive}" > root/var/lib/dpkg/status.d/libc6; \
    dpkg-deb --extract "${archive}" library; \
    cd library; \
    for folder in lib lib64 lib/${triple} usr/lib/${triple}; do \
    [ ! -d ${folder} ] || find ${folder} -maxdepth 1 ! -type d -name '*.so*'; \
    done > ../libraries; \
    echo usr/share/doc/libc6/copyright >> ../libraries; \
    tar -c -T ../libraries | tar -x -C ../root

FROM scratch
ARG VERSION=unknown
LABEL name="lowlatency-traffic" \
      vendor="The Low Latency Node Operator Authors" \
      version="${VERSION}" \
      summary="Measures latency over the network between pods and hosts" \
      description="The command line of the Low Latency Node Operator with the program that sends and answers messages" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}"
COPY LICENSE /licenses/LICENSE
COPY --from=builder /workspace/THIRD-PARTY /licenses/THIRD-PARTY
COPY --from=builder /workspace/kubectl-lowlatency /kubectl-lowlatency
COPY --from=traffic /workspace/root/ /
USER 65532:65532
ENTRYPOINT ["/kubectl-lowlatency"]
