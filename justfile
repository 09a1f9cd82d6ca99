# Every recipe is a plain cargo line, so that it can be run by hand where `just` is missing.

default:
    @just --list

# What a contributor runs before handing in.
check: fmt-check lint doc test

fmt:
    cargo fmt --all

fmt-check:
    cargo fmt --all -- --check

lint:
    cargo clippy --workspace --all-targets -- -D warnings

test:
    cargo test --workspace

# The tests of one crate: `just test-crate sql`.
test-crate crate:
    cargo test -p tidegate-{{crate}}

# The crates whose tests need no PostgreSQL.
test-pure:
    cargo test -p tidegate-oauth -p tidegate-server -p tidegate-tidy

# Clients that are not ours against the built binary: `just clients typescript`.
clients *names:
    tests/clients/run {{names}}

# GraphiQL from its npm packages into graphiql/dist, for the setting graphiql_dir; needs node and npm.
graphiql:
    cd graphiql && npm ci --ignore-scripts && npm run build

tidy:
    cargo test -p tidegate-tidy

doc:
    RUSTDOCFLAGS='-D warnings' cargo doc --workspace --no-deps

demo *args:
    cargo run --release -- demo {{args}}

bench *args:
    cargo run --release -p tidegate-bench -- {{args}}
