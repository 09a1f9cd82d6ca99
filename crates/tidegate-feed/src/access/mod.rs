//! Access control of events: table and column privileges, and row level security.

pub(crate) mod fingerprint;
pub(crate) mod judgement;
pub(crate) mod member_rule;
pub(crate) mod old_rows;
pub(crate) mod policy_query;
pub(crate) mod privilege_loader;
pub(crate) mod privilege_query;
pub(crate) mod privileges;
pub(crate) mod rls;
pub(crate) mod rls_evaluators;
pub(crate) mod rls_policy;
