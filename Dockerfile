# An image with only the binary, to copy it from:  make static && docker build -t containerpilot .
FROM scratch
COPY target/dist/containerpilot /bin/containerpilot
ENTRYPOINT ["/bin/containerpilot"]
