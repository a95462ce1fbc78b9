//! What all three macros share.

pub(crate) mod attr;
pub(crate) mod ctxt;
pub(crate) mod names;
pub(crate) mod respan;
pub(crate) mod symbol;
pub(crate) mod typo;
pub(crate) mod vocabulary;
