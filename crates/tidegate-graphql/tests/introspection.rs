//! Introspection is tested with graphql-js in tests/clients; here is what needs no other program.
