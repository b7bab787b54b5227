# An image with only the two programs, to copy them from:  make static && docker build -t containerpilot .
#
# Without containerpilot-tools:  docker build --target slim -t containerpilot:slim .
# For both architectures:  make dist && docker buildx build --platform linux/amd64,linux/arm64 -t containerpilot .
FROM scratch AS slim
# BuildKit sets it to the architecture of the image. A builder that does not takes the binary of this machine.
ARG TARGETARCH
COPY target/artifacts/containerpilot${TARGETARCH:+-$TARGETARCH} /bin/containerpilot
ENTRYPOINT ["/bin/containerpilot"]

FROM slim
ARG TARGETARCH
COPY target/artifacts/containerpilot-tools${TARGETARCH:+-$TARGETARCH} /bin/containerpilot-tools
