# One binary for every role; the first argument chooses it: manager, agent. A smaller one has the agent alone.
ARG BUILDER_IMAGE=golang:1.26.5@sha256:3aff6657219a4d9c14e27fb1d8976c49c29fddb70ba835014f477e1c70636647
# The programs are static and trust the cluster's own certificates alone, so nothing is needed below them. A UBI does for a
# certified build; name it by its digest.
ARG BASE_IMAGE=scratch

# The compiler runs on the machine's own architecture and cross-compiles: there is no C code.
FROM --platform=$BUILDPLATFORM ${BUILDER_IMAGE} AS builder
ARG TARGETOS=linux
# Engines but BuildKit set it for --platform alone; without it, the machine's own is meant.
ARG TARGETARCH
ARG VERSION=unknown
# The commit and its time with a comma between them: the repository itself is not copied.
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
    go build -trimpath -ldflags "-s -w -X main.release=${VERSION},${COMMIT}" -o ./ ./cmd/lowlatency-operator ./cmd/lowlatency-agent ./cmd/lowlatency-guard
# The licences and notices of the modules in the programs, as make image writes them.
RUN CGO_ENABLED=0 go -C hack/image run ./thirdparty -texts -platforms ${TARGETOS}/${TARGETARCH:-$(go env GOARCH)} /workspace \
    ./cmd/lowlatency-operator ./cmd/lowlatency-agent ./cmd/lowlatency-guard > THIRD-PARTY

FROM ${BASE_IMAGE}
ARG VERSION=unknown
LABEL name="lowlatency-operator" \
      vendor="The Low Latency Node Operator Authors" \
      version="${VERSION}" \
      summary="Keeps Kubernetes nodes quiet for low-latency workloads and proves it" \
      description="Plans, applies and verifies the low-latency tuning of nodes" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}"
COPY LICENSE /licenses/LICENSE
COPY --from=builder /workspace/THIRD-PARTY /licenses/THIRD-PARTY
COPY --from=builder /workspace/lowlatency-operator /lowlatency-operator
COPY --from=builder /workspace/lowlatency-agent /lowlatency-agent
COPY --from=builder /workspace/lowlatency-guard /lowlatency-guard
USER 65532:65532
ENTRYPOINT ["/lowlatency-operator"]
