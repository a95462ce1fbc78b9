//! Database rows → the core's types. A row that cannot be read is a typed error, never a panic.

use chrono::{DateTime, Utc};
use outbox_core::{
    Envelope, MessageId, OutboxRow, RowId, StoreError,
    row::{ClaimedRow, Lease, LeaseToken, Operated, Progress, UnreadableRow},
    store::{Claimed, StoreErrorKind},
};
use sea_orm::{DbErr, QueryResult, TryGetable};
use uuid::Uuid;

/// With what all statements for claimed rows begin, in this order. They are read by their place: to look up a name, and to
/// write it into an error where the column is NULL, was a tenth of what a row costs a relay.
const CLAIMED: [&str; 18] = [
    "id",
    "message_id",
    "event_type",
    "event_version",
    "aggregate_type",
    "aggregate_id",
    "aggregate_version",
    "ordering_key",
    "payload",
    "headers",
    "correlation_id",
    "causation_id",
    "occurred_at",
    "attempts",
    "claims",
    "available_at",
    "completed_handlers",
    "replay_of",
];

/// The place of a column in [`CLAIMED`], found by the compiler.
const fn place(column: &str) -> usize {
    let column = column.as_bytes();
    let mut place = 0;
    while place < CLAIMED.len() {
        let name = CLAIMED[place].as_bytes();
        let mut same = 0;
        while same < name.len() && same < column.len() && name[same] == column[same] {
            same += 1;
        }
        if same == name.len() && same == column.len() {
            return place;
        }
        place += 1;
    }
    panic!("statements for claimed rows have no such column")
}

/// A row of `find`, whole.
pub(crate) fn outbox_row(row: &QueryResult) -> Result<OutboxRow, StoreError> {
    let claimed = claimed_row(row)?;
    let reader = Reader { row, id: claimed.id };
    let mut whole = OutboxRow::pending(claimed.id, claimed.envelope, reader.get("available_at")?);
    whole.status = reader.parsed(&reader.get::<String>("status")?)?;
    whole.attempts = claimed.attempts;
    whole.claims = claimed.claims;
    whole.progress = claimed.progress;
    whole.created_at = reader.get("created_at")?;
    whole.finished_at = reader.get("finished_at")?;
    if let Some(token) = reader.get::<Option<Uuid>>("lease_token")? {
        whole.lease = Some(Lease {
            token: LeaseToken(token),
            claimed_by: reader.get("claimed_by")?,
            expires_at: reader.get("lease_expires_at")?,
            isolated: reader.get("isolated")?,
        });
    }
    if let Some(class) = reader.get::<Option<String>>("error_class")? {
        whole.last_error =
            Some((reader.parsed(&class)?, reader.get::<Option<String>>("last_error")?.unwrap_or_default()));
    }
    whole.replay_of = claimed.replay_of;
    let reason = reader.get("replay_reason")?;
    whole.operated = reader.get::<Option<String>>("replayed_by")?.map(|by| Operated { by, reason });
    whole.resolved_at = reader.get("resolved_at")?;
    Ok(whole)
}

/// A row of a claim, with the attempts and claims that it has in the result.
pub(crate) fn claimed_row(row: &QueryResult) -> Result<ClaimedRow, StoreError> {
    let reader = Reader::of(row)?;
    let progress = reader.at(const { place("completed_handlers") })?;
    Ok(ClaimedRow {
        id: reader.id,
        envelope: reader.envelope()?,
        attempts: reader.unsigned("attempts", reader.at(const { place("attempts") })?)?,
        claims: reader.at(const { place("claims") })?,
        progress: reader.progress(progress)?,
        replay_of: reader.at::<Option<i64>>(const { place("replay_of") })?.map(RowId),
    })
}

/// The progress of a row that is not read whole.
pub(crate) fn progress(row: &QueryResult, id: RowId) -> Result<Progress, StoreError> {
    let reader = Reader { row, id };
    reader.progress(reader.get("completed_handlers")?)
}

/// Puts a row among those that were claimed. `counted`: how many attempts and claims the claim itself adds. Returns
/// whether the row can be read.
pub(crate) fn add_claimed(
    claimed: &mut Claimed,
    row: &QueryResult,
    read: Result<ClaimedRow, StoreError>,
    counted: u32,
) -> Result<bool, StoreError> {
    match read {
        Ok(mut row) => {
            row.attempts += counted;
            row.claims += i64::from(counted);
            claimed.rows.push(row);
            Ok(true)
        }
        Err(error) => {
            claimed.unreadable.push(unreadable_row(row, counted, &error)?);
            Ok(false)
        }
    }
}

/// What is left of a claimed row that cannot be read. `counted`: how many attempts the claim itself adds.
pub(crate) fn unreadable_row(
    row: &QueryResult,
    counted: u32,
    error: &StoreError,
) -> Result<UnreadableRow, StoreError> {
    let reader = Reader::of(row)?;
    let attempts = reader.unsigned("attempts", reader.get("attempts")?)? + counted;
    Ok(UnreadableRow { id: reader.id, attempts, error: error.to_string() })
}

/// `orders.order-placed.v2`.
pub(crate) fn logical_name(row: &QueryResult) -> Result<String, DbErr> {
    let (event, version): (String, i32) = (row.try_get("", "event_type")?, row.try_get("", "event_version")?);
    Ok(format!("{event}.v{version}"))
}

/// When a claimed row became due, to bring the rows of a claim into order: RETURNING promises none.
pub(crate) fn due_at(row: &QueryResult) -> Result<DateTime<Utc>, StoreError> {
    row.try_get_by_index(const { place("available_at") })
        .map_err(|error| unreadable(&"?", "available_at", error))
}

/// The columns of one row.
pub(crate) struct Reader<'a> {
    row: &'a QueryResult,
    id: RowId,
}

impl<'a> Reader<'a> {
    /// Of a row whose id can be read.
    pub(crate) fn of(row: &'a QueryResult) -> Result<Self, StoreError> {
        let id = RowId(
            row.try_get_by_index(const { place("id") }).map_err(|error| unreadable(&"?", "id", error))?,
        );
        Ok(Self { row, id })
    }

    pub(crate) fn id(&self) -> RowId {
        self.id
    }

    pub(crate) fn get<T: TryGetable>(&self, column: &'static str) -> Result<T, StoreError> {
        self.row.try_get("", column).map_err(|error| unreadable(&self.id, column, error))
    }

    fn parsed<T: std::str::FromStr<Err: std::error::Error + Send + Sync + 'static>>(
        &self,
        text: &str,
    ) -> Result<T, StoreError> {
        text.parse().map_err(|error: T::Err| unreadable(&self.id, "status or error_class", error))
    }

    /// A column of a claimed row, by its place in [`CLAIMED`].
    fn at<T: TryGetable>(&self, place: usize) -> Result<T, StoreError> {
        self.row.try_get_by_index(place).map_err(|error| unreadable(&self.id, CLAIMED[place], error))
    }

    fn unsigned(&self, column: &'static str, number: i32) -> Result<u32, StoreError> {
        u32::try_from(number).map_err(|error| unreadable(&self.id, column, error))
    }

    fn json<T: serde::de::DeserializeOwned>(
        &self,
        column: &'static str,
        text: &str,
    ) -> Result<T, StoreError> {
        // serde's text may quote a header's value, so only its kind is kept.
        let broken =
            |error: serde_json::Error| unreadable(&self.id, column, format!("{:?} error", error.classify()));
        serde_json::from_str(text).map_err(broken)
    }

    fn envelope(&self) -> Result<Envelope, StoreError> {
        let version = u16::try_from(self.at::<i32>(const { place("event_version") })?);
        let version = version.map_err(|error| unreadable(&self.id, "event_version", error))?;
        let id = MessageId::from(self.at::<Uuid>(const { place("message_id") })?);
        let mut envelope = Envelope::stored(
            id,
            self.at(const { place("event_type") })?,
            version,
            self.at(const { place("payload") })?,
        );
        envelope.aggregate_type = self.at(const { place("aggregate_type") })?;
        envelope.aggregate_id = self.at(const { place("aggregate_id") })?;
        envelope.aggregate_version = self.at(const { place("aggregate_version") })?;
        envelope.ordering_key = self.at(const { place("ordering_key") })?;
        envelope.headers = self.json("headers", &self.at::<String>(const { place("headers") })?)?;
        envelope.correlation_id = self.at(const { place("correlation_id") })?;
        envelope.causation_id =
            self.at::<Option<Uuid>>(const { place("causation_id") })?.map(MessageId::from);
        envelope.occurred_at = self.at(const { place("occurred_at") })?;
        Ok(envelope)
    }

    fn progress(&self, text: Option<String>) -> Result<Progress, StoreError> {
        text.map_or(Ok(Progress::new()), |text| self.json("completed_handlers", &text))
    }
}

fn unreadable(
    id: &dyn std::fmt::Display,
    column: &str,
    error: impl Into<Box<dyn std::error::Error + Send + Sync>>,
) -> StoreError {
    let message =
        format!("outbox row {id} cannot be read: column {column}; a newer version may have written it");
    StoreError::new(StoreErrorKind::UnreadableRow, message).with_source(error)
}

/// The database's error as the relay sees it.
pub(crate) fn store_error(doing: &str, error: DbErr) -> StoreError {
    use crate::dialect::{Fault, fault};
    let kind = match fault(&error) {
        Fault::Conflict => StoreErrorKind::Conflict,
        Fault::Unavailable => StoreErrorKind::Unavailable,
        Fault::Schema => StoreErrorKind::Setup,
        Fault::Duplicate | Fault::Other => StoreErrorKind::Other,
    };
    let message = match kind {
        StoreErrorKind::Unavailable => {
            format!("the database cannot be reached to {doing}; check its address and that it runs")
        }
        StoreErrorKind::Setup => format!(
            "the outbox's tables are missing or older than this version, so it cannot {doing}; run the migrations (`outbox_seaorm::migrations()`)"
        ),
        _ => format!("the database refused to {doing}"),
    };
    StoreError::new(kind, message).with_source(error)
}
