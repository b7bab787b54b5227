# An image of nothing but the binary, for others to copy from:  make static && docker build -t containerpilot .
FROM scratch
COPY target/dist/containerpilot /bin/containerpilot
ENTRYPOINT ["/bin/containerpilot"]
