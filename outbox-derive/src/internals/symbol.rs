//! Every word that has a meaning in an attribute.

use std::fmt;

use syn::Path;

/// A word of an attribute, comparable with what the user wrote.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Symbol(pub(crate) &'static str);

// The attributes themselves.
pub(crate) const AGGREGATE: Symbol = Symbol("aggregate");
pub(crate) const HANDLER: Symbol = Symbol("handler");
pub(crate) const OUTBOX: Symbol = Symbol("outbox");

// Attributes of other derives that we read, but do not own.
pub(crate) const SCHEMARS: Symbol = Symbol("schemars");
pub(crate) const SERDE: Symbol = Symbol("serde");

// What stands inside them.
pub(crate) const ALIAS: Symbol = Symbol("alias");
pub(crate) const CRATE: Symbol = Symbol("crate");
pub(crate) const DESERIALIZE_WITH: Symbol = Symbol("deserialize_with");
pub(crate) const DRAFT: Symbol = Symbol("draft");
pub(crate) const EVENTS: Symbol = Symbol("events");
pub(crate) const ID: Symbol = Symbol("id");
pub(crate) const KEY: Symbol = Symbol("key");
pub(crate) const NAME: Symbol = Symbol("name");
pub(crate) const NONE: Symbol = Symbol("none");
pub(crate) const ON_DEAD: Symbol = Symbol("on_dead");
pub(crate) const ORDERING: Symbol = Symbol("ordering");
pub(crate) const ROOT: Symbol = Symbol("root");
pub(crate) const SCHEMA_WITH: Symbol = Symbol("schema_with");
pub(crate) const SENSITIVE: Symbol = Symbol("sensitive");
pub(crate) const SERIALIZE_WITH: Symbol = Symbol("serialize_with");
pub(crate) const TABLES: Symbol = Symbol("tables");
pub(crate) const UPCAST_FROM: Symbol = Symbol("upcast_from");
pub(crate) const UPCAST_JSON: Symbol = Symbol("upcast_json");
pub(crate) const VERSION: Symbol = Symbol("version");
pub(crate) const WITH: Symbol = Symbol("with");

impl PartialEq<Symbol> for Path {
    fn eq(&self, symbol: &Symbol) -> bool {
        self.is_ident(symbol.0)
    }
}

impl fmt::Display for Symbol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}
