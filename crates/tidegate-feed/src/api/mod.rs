//! The public interface: feeds and subscriptions.

pub(crate) mod feed;
pub(crate) mod status;
pub(crate) mod subscribe;
pub(crate) mod subscription;
