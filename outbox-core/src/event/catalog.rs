//! All events of the binary, as the derives registered them.

use super::{Ordering, OutboxEvent, PayloadSchemas, Reader};
use std::any::{TypeId, type_name};

/// What is known of an event type at run time.
#[derive(Clone, Copy, Debug)]
pub struct EventDescriptor {
    /// The stored name without its version.
    pub event_type: &'static str,
    /// Version of the payload.
    pub event_version: u16,
    /// Name and version together.
    pub logical_name: &'static str,
    /// What order is kept.
    pub ordering: Ordering,
    /// Former names, under which rows may be stored.
    pub aliases: &'static [&'static str],
    /// Whether the payload may still change freely.
    pub is_draft: bool,
    /// Path of the module that declares it; for messages only, never stored.
    pub module: &'static str,
    /// Source file of the declaration.
    pub file: &'static str,
    /// Line in that file.
    pub line: u32,
    reader: fn(u16) -> Option<Reader>,
    schemas: fn() -> PayloadSchemas,
    type_id: fn() -> TypeId,
    rust_type: fn() -> &'static str,
}

impl EventDescriptor {
    /// The descriptor of `E`, declared at this place.
    pub const fn new<E: OutboxEvent>(module: &'static str, file: &'static str, line: u32) -> Self {
        Self {
            event_type: E::EVENT_TYPE,
            event_version: E::EVENT_VERSION,
            logical_name: E::LOGICAL_NAME,
            ordering: E::ORDERING,
            aliases: E::ALIASES,
            is_draft: E::IS_DRAFT,
            module,
            file,
            line,
            reader: E::reader,
            schemas: PayloadSchemas::of::<E>,
            type_id: TypeId::of::<E>,
            rust_type: type_name::<E>,
        }
    }

    /// The JSON Schemas of the payload: what is written, and what can be read.
    pub fn schemas(&self) -> PayloadSchemas {
        (self.schemas)()
    }

    /// The Rust type, for messages; it changes with refactorings and is never stored.
    pub fn rust_type(&self) -> &'static str {
        (self.rust_type)()
    }

    /// Whether a stored payload of `version` can be read as this event.
    pub fn reads(&self, version: u16) -> bool {
        self.reader(version).is_some()
    }

    /// What reads it.
    pub(crate) fn reader(&self, version: u16) -> Option<Reader> {
        (self.reader)(version)
    }

    /// Whether this is the type that a reader names.
    pub(crate) fn is_reader(&self, reader: Reader) -> bool {
        reader == Reader::Type((self.type_id)())
    }

    /// Its name and its former names.
    pub(crate) fn names(&self) -> impl Iterator<Item = &'static str> {
        std::iter::once(self.event_type).chain(self.aliases.iter().copied())
    }

    /// Where it is declared, for messages.
    pub(crate) fn place(&self) -> String {
        format!("{} ({}:{})", self.rust_type(), self.file, self.line)
    }

    /// Whether both describe the same Rust type.
    pub(crate) fn is_same_type(&self, other: &Self) -> bool {
        (self.type_id)() == (other.type_id)()
    }
}

inventory::collect!(EventDescriptor);

/// Every event that is linked into this binary, sorted by name, version and place.
///
/// A crate that is only named in `Cargo.toml` and never referred to is not linked; `use that_crate as _;` is enough.
pub fn catalog() -> Vec<&'static EventDescriptor> {
    let mut events: Vec<_> = inventory::iter::<EventDescriptor>.into_iter().collect();
    events.sort_by_key(|event| (event.event_type, event.event_version, event.file, event.line));
    events
}
