use outbox_core::{
    EventDescriptor, Ordering, OutboxEvent,
    catalog::{CatalogErrors, Check, Checked},
    event::{DecodeError, Payload, decode_json},
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::{fs, path::PathBuf};

/// Which changes break what, and which do not.
mod rules;

/// What the check does not understand, or cannot finish.
mod limits;

/// The file: what it holds, what is recorded in it, what is refused.
mod lock;

/// Whatever is called readable, serde reads.
mod differential;

/// The catalog as files.
mod export;

/// The event of these tests, in the shape that a build gives it. It is not in the binary's catalog.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
struct Placed<P>(P);

impl<P: Payload> OutboxEvent for Placed<P> {
    const EVENT_TYPE: &'static str = "catalog-tests.order-placed";
    const EVENT_VERSION: u16 = 1;
    const LOGICAL_NAME: &'static str = "catalog-tests.order-placed.v1";
    const ORDERING: Ordering = Ordering::None;

    fn decode(_: u16, payload: &str) -> Result<Self, DecodeError> {
        decode_json(payload)
    }
}

/// As the derive registers it; the tests are few, so it is never given back.
fn event<E: OutboxEvent>() -> &'static EventDescriptor {
    Box::leak(Box::new(EventDescriptor::new::<E>(module_path!(), "orders.rs", 7)))
}

fn payload<P: Payload>() -> &'static EventDescriptor {
    event::<Placed<P>>()
}

/// A lock of its own for each test.
struct LockFile(PathBuf);

impl LockFile {
    fn new(test: &str) -> Self {
        let directory = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("locks");
        fs::create_dir_all(&directory).unwrap();
        let path = directory.join(format!("{}.json", test.replace("::", "-")));
        drop(fs::remove_file(&path));
        Self(path)
    }

    fn check(&self, events: &[&'static EventDescriptor]) -> Result<Checked, CatalogErrors> {
        Check::new(&self.0).of_events(events.iter().copied()).updating(false).run()
    }

    fn update(&self, events: &[&'static EventDescriptor]) -> Result<Checked, CatalogErrors> {
        Check::new(&self.0).of_events(events.iter().copied()).updating(true).run()
    }

    fn text(&self) -> String {
        fs::read_to_string(&self.0).unwrap()
    }

    fn rewrite(&self, change: impl FnOnce(String) -> String) {
        fs::write(&self.0, change(self.text())).unwrap();
    }
}

/// Each difference as `rule path`, after a mark for whom it breaks: `<` the rows that are stored, `>` the build before.
fn differences(errors: &CatalogErrors) -> Vec<String> {
    use outbox_core::catalog::Breaks;
    let shown = |difference: &outbox_core::catalog::Difference| {
        let mark = match difference.breaks {
            Breaks::StoredRows => "<",
            Breaks::PreviousBuild => ">",
            Breaks::Itself => "=",
        };
        format!("{mark} {} {}", difference.rule, difference.path).trim_end().to_owned()
    };
    errors.errors().iter().flat_map(|error| error.differences().iter().map(shown)).collect()
}
