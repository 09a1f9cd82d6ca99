//! The GraphQL API of a catalog schema.
