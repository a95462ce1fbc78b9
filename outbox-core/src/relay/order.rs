//! Where a relay stands among the ordering keys.

/// Keys are taken in turn, so that a backlog of some does not hold up the others.
#[derive(Debug, Default)]
pub(crate) struct Order {
    /// The key after which the next claim goes on.
    after: Option<String>,
    /// Whether the last claim began in the middle of the keys: those before it were not looked at.
    began_in_the_middle: bool,
    /// Keys that wait for a row whose lease has expired.
    expired: Vec<String>,
    ordered_first: bool,
}

impl Order {
    /// Whether to claim ordered rows, twice: unordered ones come first every other time.
    pub(crate) fn both_kinds(&mut self) -> [bool; 2] {
        self.ordered_first = !self.ordered_first;
        [self.ordered_first, !self.ordered_first]
    }

    pub(crate) fn after(&self) -> Option<&str> {
        self.after.as_deref()
    }

    pub(crate) fn claimed(&mut self, next: Option<String>, expired: Vec<String>) {
        self.began_in_the_middle = self.after.is_some();
        self.after = next;
        for key in expired {
            if !self.expired.contains(&key) {
                self.expired.push(key);
            }
        }
    }

    /// Whether keys are left that the last claim has not looked at.
    pub(crate) fn has_more(&self) -> bool {
        self.after.is_some() || self.began_in_the_middle
    }

    pub(crate) fn expired(&self) -> &[String] {
        &self.expired
    }

    /// A take-over found none of them; claims tell again.
    pub(crate) fn nothing_expired(&mut self) {
        self.expired.clear();
    }
}
