# The command and nothing else: docker build -t curfew .
# With a shell, for workers that run commands: docker build -t curfew-shell --target shell .
FROM golang:1.26 AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
# The folder .git is copied too: Go takes the version from it.
COPY . .
RUN CGO_ENABLED=0 go build -trimpath -ldflags "-s -w" -o /curfew ./cmd/curfew

FROM busybox:1.37 AS shell
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/
COPY --from=build /curfew /bin/curfew
USER 65532:65532
HEALTHCHECK --interval=30s --timeout=10s CMD ["/bin/curfew", "doctor", "--quick"]
ENTRYPOINT ["/bin/curfew"]

FROM scratch
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/
COPY --from=build /curfew /bin/curfew
USER 65532:65532
HEALTHCHECK --interval=30s --timeout=10s CMD ["/bin/curfew", "doctor", "--quick"]
ENTRYPOINT ["/bin/curfew"]
