//! Keys, and where they come from.

use chacha20poly1305::{KeyInit as _, XChaCha20Poly1305};
use std::{
    cell::RefCell,
    collections::BTreeMap,
    fmt,
    sync::{Arc, OnceLock},
};

/// A key of 256 bits with the id that is stored beside what it seals. Cheap to clone; wiped from memory with its last
/// clone.
#[derive(Clone)]
pub struct SealingKey {
    id: Arc<str>,
    pub(super) cipher: Arc<XChaCha20Poly1305>,
}

impl SealingKey {
    /// The key of this id. The id is stored in plaintext; the bytes must be random, not a password.
    pub fn new(id: &str, bytes: &[u8; 32]) -> Self {
        Self { id: id.into(), cipher: Arc::new(XChaCha20Poly1305::new(bytes.into())) }
    }

    /// The id.
    pub fn id(&self) -> &str {
        &self.id
    }
}

/// Shows the id only.
impl fmt::Debug for SealingKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SealingKey({:?})", self.id)
    }
}

/// Why a key is not there.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum KeyError {
    /// It may be there later, or in another process: an unknown id, a key service that does not answer.
    #[error("{0}")]
    Unavailable(String),
    /// It was destroyed on purpose; what it sealed can never be opened again.
    #[error("it was destroyed")]
    Destroyed,
}

/// Where keys come from. Asked while an event is written or a value is opened, so it must answer at once: fetch keys
/// from a key service beforehand, and keep them.
pub trait KeySource: Send + Sync + 'static {
    /// The key that new values are sealed with.
    ///
    /// # Errors
    ///
    /// When there is none; the event is then not saved.
    fn current(&self) -> Result<SealingKey, KeyError>;

    /// The key of this id, which may be an older one.
    ///
    /// # Errors
    ///
    /// When there is none; what it sealed is then not opened.
    fn find(&self, id: &str) -> Result<SealingKey, KeyError>;
}

/// A fixed set of keys.
///
/// ```
/// use outbox_core::sensitive::{KeyRing, SealingKey};
///
/// # let (newest, older) = ([1; 32], [2; 32]);
/// let keys = KeyRing::new(SealingKey::new("2026-02", &newest))
///     .with(SealingKey::new("2026-01", &older)) // still opens what it sealed
///     .with_destroyed("2025-12"); // what it sealed is gone for good
/// # let _ = keys;
/// ```
#[derive(Clone, Debug)]
pub struct KeyRing {
    current: SealingKey,
    others: BTreeMap<String, Option<SealingKey>>,
}

impl KeyRing {
    /// Seals with this key.
    pub fn new(current: SealingKey) -> Self {
        Self { current, others: BTreeMap::new() }
    }

    /// Opens what this key has sealed.
    pub fn with(mut self, key: SealingKey) -> Self {
        self.others.insert(key.id().to_owned(), Some(key));
        self
    }

    /// Remembers that this key was destroyed, so that handlers are told so, instead of waiting for it.
    pub fn with_destroyed(mut self, id: &str) -> Self {
        self.others.insert(id.to_owned(), None);
        self
    }
}

impl KeySource for KeyRing {
    fn current(&self) -> Result<SealingKey, KeyError> {
        Ok(self.current.clone())
    }

    fn find(&self, id: &str) -> Result<SealingKey, KeyError> {
        if id == self.current.id() {
            return self.current();
        }
        match self.others.get(id) {
            Some(Some(key)) => Ok(key.clone()),
            Some(None) => Err(KeyError::Destroyed),
            None => Err(KeyError::Unavailable("the key ring has no key of this id".to_owned())),
        }
    }
}

static INSTALLED: OnceLock<Arc<dyn KeySource>> = OnceLock::new();

thread_local! {
    static SCOPED: RefCell<Vec<Arc<dyn KeySource>>> = const { RefCell::new(Vec::new()) };
}

/// A process has one key source, and this was a second one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a key source is installed already; a process has one, and it is installed once, at the start")]
pub struct AlreadyInstalled;

/// Gives this process its keys. Call it at the start, before the first event is raised.
///
/// # Errors
///
/// When it was called before; the first source stays.
pub fn install(keys: impl KeySource) -> Result<(), AlreadyInstalled> {
    INSTALLED.set(Arc::new(keys)).map_err(|_| AlreadyInstalled)
}

/// Runs a closure with other keys, on this thread only: for tests.
pub fn with_keys<R>(keys: impl KeySource, run: impl FnOnce() -> R) -> R {
    struct Restore;
    impl Drop for Restore {
        fn drop(&mut self) {
            drop(SCOPED.with_borrow_mut(Vec::pop));
        }
    }
    SCOPED.with_borrow_mut(|scoped| scoped.push(Arc::new(keys)));
    let _restore = Restore;
    run()
}

/// The keys that hold here and now.
pub(super) fn source() -> Option<Arc<dyn KeySource>> {
    SCOPED.with_borrow(|scoped| scoped.last().cloned()).or_else(|| INSTALLED.get().cloned())
}
