# An image with only the binary, to copy it from:  make static && docker build -t containerpilot .
#
# For both architectures:  make dist && docker buildx build --platform linux/amd64,linux/arm64 -t containerpilot .
FROM scratch
# BuildKit sets it to the architecture of the image. A builder that does not takes the binary of this machine.
ARG TARGETARCH
COPY target/dist/containerpilot${TARGETARCH:+-$TARGETARCH} /bin/containerpilot
ENTRYPOINT ["/bin/containerpilot"]
