//! Replaying many dead letters: first which, then for real.

use super::{ListFilter, ListRequest, ListedRow, OperateError, OutboxOperator, Replay, Standing};
use crate::row::RowId;
use chrono::{DateTime, Utc};

/// Dead letters that would be replayed. Nothing else can replay many at once, so a look at them comes first:
///
/// ```
/// use outbox_core::{ErrorClass, store::{ListFilter, OperateError, OutboxOperator, ReplayPlan}};
///
/// async fn replay_timeouts(store: &impl OutboxOperator) -> Result<(), OperateError> {
///     let mut filter = ListFilter::default();
///     filter.class = Some(ErrorClass::Timeout);
///     let plan = ReplayPlan::of(store, &filter, 500, None).await?;
///     println!("{} dead letters", plan.rows().len());                  // the dry run
///     for done in plan.carry_out(store, "ann", Some("the shop is back"), false).await? {
///         println!("{}: {:?}", done.dead, done.replayed);
///     }
///     Ok(())
/// }
/// ```
///
/// The plan names its rows one by one. What dies after it was made is not in it; what somebody else has replayed or
/// skipped meanwhile is refused.
#[derive(Clone, Debug, PartialEq)]
#[must_use = "nothing is replayed yet"]
pub struct ReplayPlan {
    rows: Vec<ListedRow>,
    is_complete: bool,
}

/// What became of one dead letter of a plan.
#[derive(Debug)]
pub struct Replayed {
    /// The dead letter.
    pub dead: RowId,
    /// Its replay, or why there is none.
    pub replayed: Result<RowId, OperateError>,
}

impl ReplayPlan {
    /// The first `limit` dead letters that the filter finds and that can be replayed, the oldest first. The filter's
    /// standing is not looked at. Nothing is changed.
    ///
    /// # Errors
    ///
    /// The store's error.
    pub async fn of(
        store: &impl OutboxOperator,
        filter: &ListFilter,
        limit: u32,
        now: Option<DateTime<Utc>>,
    ) -> Result<Self, OperateError> {
        let filter = ListFilter { standing: Standing::Replayable, ..filter.clone() };
        let mut plan = Self { rows: Vec::new(), is_complete: false };
        let mut after = None;
        loop {
            let missing = limit.saturating_sub(u32::try_from(plan.rows.len()).unwrap_or(u32::MAX));
            // One more than is wanted tells whether there are more.
            let limit = missing.saturating_add(1);
            let page = store.list(&ListRequest { after, limit, now, ..ListRequest::of(&filter) }).await?;
            after = page.next;
            let found = page.rows.len();
            plan.rows.extend(page.rows.into_iter().take(missing as usize));
            if found > missing as usize {
                return Ok(plan);
            }
            if after.is_none() {
                return Ok(Self { is_complete: true, ..plan });
            }
        }
    }

    /// What would be replayed.
    pub fn rows(&self) -> &[ListedRow] {
        &self.rows
    }

    /// Whether these are all that the filter finds; otherwise there are more than the limit.
    pub fn is_complete(&self) -> bool {
        self.is_complete
    }

    /// Replays them one by one, in their order, each under the guard of [`OutboxOperator::replay`]; one that is refused
    /// does not hold up the others. When the store fails, the last entry says so and the rest is not tried: a new plan
    /// has what is left.
    ///
    /// # Errors
    ///
    /// [`OperateError::Text`], before anything is written.
    ///
    /// # Cancel safety
    ///
    /// What was replayed before it is dropped stays replayed; a new plan has what is left.
    pub async fn carry_out(
        self,
        store: &impl OutboxOperator,
        by: &str,
        reason: Option<&str>,
        all_handlers: bool,
    ) -> Result<Vec<Replayed>, OperateError> {
        OperateError::check_texts(by, reason)?;
        let mut done = Vec::new();
        for row in self.rows {
            let replayed = store.replay(&Replay { id: row.id, by, reason, all_handlers }).await;
            let is_over = matches!(replayed, Err(OperateError::Store(_)));
            done.push(Replayed { dead: row.id, replayed });
            if is_over {
                break;
            }
        }
        Ok(done)
    }
}
