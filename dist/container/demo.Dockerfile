# The demo with a PostgreSQL inside:
#   docker build -f dist/container/demo.Dockerfile -t tidegate:demo .
#   docker run --rm -p 127.0.0.1:8080:8080 tidegate:demo
FROM rust:1.95-bookworm AS build
WORKDIR /src
COPY . .
RUN cargo build --profile dist --locked -p tidegate

FROM postgres:17-bookworm
COPY --from=build /src/target/dist/tidegate /usr/local/bin/tidegate
USER postgres
EXPOSE 8080
# Inside the container it has to listen on all addresses; publish the port on loopback.
ENV TIDEGATE_LISTEN=0.0.0.0:8080 \
    TIDEGATE_INSECURE_HTTP=true \
    TIDEGATE_DATA_DIR=/var/lib/postgresql/tidegate
ENTRYPOINT ["tidegate"]
CMD ["demo"]
