# Every recipe is a plain command, so that it can be run by hand where `just` is missing.

# The data of `just run`.
demo_dir := env("TIDEGATE_DEMO_DIR", "target/demo")

default:
    @just --list

# Format, lint, documents and all tests: run it before you hand in a change.
check: fmt-check lint doc test

fmt:
    cargo fmt --all

fmt-check:
    cargo fmt --all -- --check

lint:
    cargo clippy --workspace --all-targets --locked -- -D warnings

doc:
    RUSTDOCFLAGS='-D warnings' cargo doc --workspace --no-deps --locked

# All tests.
test:
    cargo test --workspace --locked

# The tests of one crate: `just test-crate sql`.
test-crate crate:
    cargo test -p tidegate-{{crate}} --locked

# The tests of one package whose path contains a text: `just test-one tidegate-plan golden`.
test-one package name:
    cargo test -p {{package}} --locked -- {{name}}

# Black-box tests by module or test: `just test-api sql_errors`.
test-api name:
    cargo test -p tidegate --locked --test api -- {{name}}

# The crates whose tests need no PostgreSQL.
test-pure:
    cargo test -p tidegate-identity -p tidegate-oauth -p tidegate-issuers -p tidegate-oidc -p tidegate-mail -p tidegate-docs -p tidegate-console -p tidegate-changelog -p tidegate-pool -p tidegate-rpc -p tidegate-http -p tidegate-pages -p tidegate-socket -p tidegate-server -p tidegate-tidy --locked

# The golden file of one crate (filter, graphql, methods, plan): prints how it differs.
golden crate:
    cargo test -p tidegate-{{crate}} --locked -- golden typescript:: sdl::

# The architecture: layers, sizes, licences, documents.
tidy:
    cargo test -p tidegate-tidy --locked

# Clients of others against the built binary: `just clients typescript`.
clients *names:
    tests/clients/run {{names}}

# Faults of a cluster at their full count, within an hour: NATS, nodes, Patroni, replicas and PostgreSQL 18.
soak:
    timeout 3600 tests/clients/soak

# The commands of the documents: `just book python`; TIDEGATE_TEST_REQUIRE=book leaves out nothing.
book *names:
    cargo build --locked -p tidegate
    cargo test -p tidegate-book --locked -- {{names}}

# A debug build of the demo, with its data in target/demo: `just run --fresh`.
run *args:
    cargo run --locked -- demo --data-dir {{demo_dir}} {{args}}

# psql in the database of a demo that `just run` started: `just psql -c 'TABLE artists'`.
[positional-arguments]
psql *args:
    psql "$(sed -n 's/^DATABASE_URL=//p' {{demo_dir}}/demo.env)" "$@"

# A release build of the demo, with its data in the user's data folder.
demo *args:
    cargo run --release --locked -- demo {{args}}

# The service beside pgbench: `just bench --only by-key` measures the cases of that name.
bench *args:
    cargo run --release --locked -p tidegate-bench -- {{args}}

# Whether every case of the bench works, in about a minute; the numbers mean nothing.
bench-check *args:
    cargo build --locked
    cargo run --locked -p tidegate-bench -- --quick --page-sign-ups 20 --subscribed-members 20 --others 20 --binary target/debug/tidegate {{args}}

# What a size needs of nodes, PostgreSQL and NATS: `just model --sockets 20000 --tenants 5`.
model *args:
    cargo run --locked -p tidegate-bench -- model {{args}}

# Whether the model predicts what one and three nodes need, in about two minutes; needs nats-server.
model-check:
    cargo build --locked
    cargo run --locked -p tidegate-bench -- model --check --binary target/debug/tidegate

# GraphiQL from its npm packages into graphiql/dist, for the setting graphiql_dir; needs node and npm.
graphiql:
    cd graphiql && npm ci --ignore-scripts && npm run build

# The console from its source into crates/tidegate-console/dist, which is kept in the repository; needs node and npm.
console:
    cd console && npm ci --ignore-scripts && npm run build

# Licences, sources, bans and advisories of dependencies; needs cargo-deny.
deny:
    cargo deny --locked check

# The workspace with the oldest Rust that the manifests promise; needs rustup.
minimum-rust:
    CARGO_TARGET_DIR=target/minimum cargo "+$(sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml)" check --workspace --all-targets --locked

# The files of a release: archive, .deb (needs cargo-deb), SBOM, checksums, in target/package.
release-files target="":
    dist/package {{target}}

# Packages every crate that is published, in the order of their dependencies; uploads nothing.
package:
    cargo package --workspace --exclude tidegate-bench --exclude tidegate-tidy --exclude tidegate-book --exclude tidegate-testkit --locked --no-verify
