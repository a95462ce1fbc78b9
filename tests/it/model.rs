use chrono::{DateTime, Utc};
use outbox_core::{
    Envelope, ErrorClass, MessageId, OutboxRow, OutboxStore, RetryPolicy, RowId, Status,
    decide::{Failure, HandlerReport, Transition, decide},
    row::{ClaimedRow, DeadLetter, LeaseToken},
    store::{
        ClaimRequest, Finished, Mark, OperateError, OrderedRequest, OutboxOperator, Purge, Renewal, Replay,
        Route, TakeOver,
    },
    testing::MemoryStore,
};
use outbox_tests::{
    conformance::at,
    database::TestDatabase,
    for_each_database,
    subject::{Sql, Subject},
};
use proptest::{
    collection::vec,
    prelude::{Just, Strategy, any, prop_oneof},
    test_runner::{Config, RngAlgorithm, TestRng, TestRunner},
};
use sea_orm::ConnectionTrait;
use std::{fmt::Debug, time::Duration};
use tokio::{runtime::Handle, task::block_in_place};

for_each_database! {
    a_database_does_what_the_model_does_whatever_happens_to_its_rows,
}

const LEASE: Duration = Duration::from_mins(1);
const POLICY: RetryPolicy =
    RetryPolicy { max_attempts: 3, base: Duration::from_secs(10), cap: Duration::from_secs(40) };
const EVENTS: [Route; 3] = [
    Route { event_type: "model.a", event_version: 1 },
    Route { event_type: "model.a", event_version: 2 },
    Route { event_type: "model.b", event_version: 1 },
];

const KEYS: [&str; 3] = ["x", "y", "z"];

/// Something that happens. Numbers choose among what there is, modulo its count.
#[derive(Clone, Debug)]
enum Op {
    Append { event: usize },
    AppendToKey { event: usize, key: usize },
    Wait { seconds: i64 },
    Claim { limit: u32, routes: usize },
    ClaimOrdered { limit: u32, routes: usize, proceed: bool },
    TakeOver { alone: bool },
    Mark { claim: usize, reports: Vec<Option<ErrorClass>>, deletes: bool },
    GiveBack { claim: usize },
    Renew { claim: usize },
    Replay { row: usize, all_handlers: bool },
    Skip { row: usize },
    RetryNow { row: usize },
    Release { row: usize },
    Purge { finished: Finished, seconds: u64 },
}

fn ops() -> impl Strategy<Value = Vec<Op>> {
    let class = prop_oneof![
        4 => Just(None),
        2 => Just(Some(ErrorClass::Transient)),
        1 => Just(Some(ErrorClass::Terminal)),
        1 => Just(Some(ErrorClass::Unavailable)),
    ];
    let op = prop_oneof![
        2 => (0..EVENTS.len()).prop_map(|event| Op::Append { event }),
        4 => (0..EVENTS.len(), 0..KEYS.len()).prop_map(|(event, key)| Op::AppendToKey { event, key }),
        3 => (0..90_i64).prop_map(|seconds| Op::Wait { seconds }),
        3 => (1..4_u32, 1..=EVENTS.len()).prop_map(|(limit, routes)| Op::Claim { limit, routes }),
        5 => (1..6_u32, 1..=EVENTS.len(), proptest::bool::weighted(0.1))
            .prop_map(|(limit, routes, proceed)| Op::ClaimOrdered { limit, routes, proceed }),
        2 => proptest::bool::weighted(0.8).prop_map(|alone| Op::TakeOver { alone }),
        6 => (any::<usize>(), vec(class, 0..3), any::<bool>())
            .prop_map(|(claim, reports, deletes)| Op::Mark { claim, reports, deletes }),
        1 => any::<usize>().prop_map(|claim| Op::GiveBack { claim }),
        1 => any::<usize>().prop_map(|claim| Op::Renew { claim }),
        1 => (any::<usize>(), any::<bool>()).prop_map(|(row, all_handlers)| Op::Replay { row, all_handlers }),
        1 => any::<usize>().prop_map(|row| Op::Skip { row }),
        1 => any::<usize>().prop_map(|row| Op::RetryNow { row }),
        1 => any::<usize>().prop_map(|row| Op::Release { row }),
        1 => (0..3_usize, 0..200_u64).prop_map(|(kind, seconds)| {
            let kinds = [Finished::Dispatched, Finished::Resolved, Finished::History];
            Op::Purge { finished: kinds[kind], seconds }
        }),
    ];
    vec(op, 1..60)
}

/// One row in both stores.
#[derive(Clone, Copy, Debug)]
struct Twin {
    ids: [RowId; 2],
    messages: [MessageId; 2],
}

/// A claim of one row, which the stores may have ended meanwhile.
#[derive(Clone, Debug)]
struct Held {
    twin: usize,
    token: LeaseToken,
    row: ClaimedRow,
}

/// Both stores, and what is known of them.
struct Model<'a> {
    memory: MemoryStore,
    sql: &'a Sql,
    twins: Vec<Twin>,
    held: Vec<Held>,
    /// Where the claims of ordered rows stand, and what they found to have expired.
    after: Option<String>,
    expired: Vec<String>,
    second: i64,
}

/// What a claimed row looks like in either store.
#[derive(Debug, PartialEq)]
struct Seen {
    twin: usize,
    attempts: u32,
    claims: i64,
    progress: outbox_core::row::Progress,
    replay_of: Option<usize>,
}

/// A row as it is compared: without what differs between the stores by nature.
#[derive(Debug, PartialEq)]
struct Shape {
    status: Status,
    attempts: u32,
    claims: i64,
    lease: Option<outbox_core::row::Lease>,
    finished_at: Option<DateTime<Utc>>,
    due: Option<DateTime<Utc>>,
    progress: outbox_core::row::Progress,
    last_error: Option<(ErrorClass, String)>,
    operated: Option<outbox_core::row::Operated>,
    resolved_at: Option<DateTime<Utc>>,
    replay_of: Option<usize>,
}

impl Model<'_> {
    fn now(&self) -> Option<DateTime<Utc>> {
        at(self.second)
    }

    fn twin_of(&self, store: usize, id: RowId) -> usize {
        self.twins.iter().position(|twin| twin.ids[store] == id).expect("a known row")
    }

    fn seen(&self, store: usize, row: &ClaimedRow) -> Seen {
        Seen {
            twin: self.twin_of(store, row.id),
            attempts: row.attempts,
            claims: row.claims,
            progress: row.progress.clone(),
            replay_of: row.replay_of.map(|id| self.twin_of(store, id)),
        }
    }

    /// Both stores must have claimed the same rows in the same order.
    fn hold(&mut self, token: LeaseToken, rows: [&[ClaimedRow]; 2]) {
        let [memory, sql] =
            [0, 1].map(|store| rows[store].iter().map(|row| self.seen(store, row)).collect::<Vec<_>>());
        assert_eq!(memory, sql);
        let held = rows[0].iter().map(|row| Held { twin: self.twin_of(0, row.id), token, row: row.clone() });
        let held: Vec<_> = held.collect();
        self.held.extend(held);
    }

    async fn step(&mut self, op: Op) {
        let now = self.now();
        match op {
            Op::Wait { seconds } => self.second += seconds,
            Op::Append { event } => self.store(&envelope(event)).await,
            Op::Claim { limit, routes } => {
                let request = request(&EVENTS[..routes], limit, now);
                let memory = self.memory.claim(&request).await.unwrap();
                let sql = self.sql.store().claim(&request).await.unwrap();
                self.hold(request.token, [&memory.rows, &sql.rows]);
            }
            Op::AppendToKey { event, key } => {
                let envelope = envelope(event).with_ordering_key(KEYS[key]);
                self.store(&envelope).await;
            }
            Op::ClaimOrdered { limit, routes, proceed } => {
                let proceed: &[&str] = if proceed { &["model.a"] } else { &[] };
                self.claim_ordered(ClaimRequest { proceed, ..request(&EVENTS[..routes], limit, now) }).await;
            }
            Op::TakeOver { alone } => {
                let claim = request(&EVENTS, 1, now);
                let keys = std::mem::take(&mut self.expired);
                let request = TakeOver { claim, keys: &keys, alone, max_attempts: POLICY.max_attempts };
                let [memory, sql] =
                    [self.memory.take_over(&request).await, self.sql.store().take_over(&request).await]
                        .map(Result::unwrap);
                let buried = |store: usize, letters: &[DeadLetter]| {
                    letters.iter().map(|letter| self.twin_of(store, letter.id)).collect::<Vec<_>>()
                };
                assert_eq!(buried(0, &memory.buried), buried(1, &sql.buried));
                self.hold(claim.token, [memory.row.as_slice(), sql.row.as_slice()]);
            }
            Op::Mark { claim, reports, deletes } => self.mark(claim, &reports, deletes).await,
            Op::GiveBack { claim } => self.write(claim, Transition::Release).await,
            Op::Renew { claim } => self.renew(claim).await,
            Op::Purge { finished, seconds } => {
                let purge = Purge { finished, older_than: Duration::from_secs(seconds), limit: 100, now };
                let [memory, sql] = [self.memory.purge(&purge).await, self.sql.store().purge(&purge).await];
                assert_eq!(memory.unwrap(), sql.unwrap());
            }
            verb => self.operate(verb).await,
        }
    }

    async fn store(&mut self, envelope: &Envelope) {
        let memory = self.memory.append(std::slice::from_ref(envelope)).unwrap()[0];
        let sql = self.sql.append(std::slice::from_ref(envelope)).await[0];
        self.twins.push(Twin { ids: [memory, sql], messages: [envelope.message_id; 2] });
    }

    async fn claim_ordered(&mut self, claim: ClaimRequest<'_>) {
        let after = self.after.take();
        let request = OrderedRequest { claim, after: after.as_deref() };
        let before = self.memory.rows();
        let memory = self.memory.claim_ordered(&request).await.unwrap();
        let sql = self.sql.store().claim_ordered(&request).await.unwrap();
        assert_eq!((&memory.next, &memory.expired), (&sql.next, &sql.expired));
        for row in &memory.claimed.rows {
            assert_eq!(overtaken(&before, &memory.claimed.rows, row, claim.proceed), [], "{row:?}");
        }
        self.hold(claim.token, [&memory.claimed.rows, &sql.claimed.rows]);
        (self.after, self.expired) = (memory.next, memory.expired);
    }

    async fn mark(&mut self, claim: usize, reports: &[Option<ErrorClass>], deletes: bool) {
        let Some(held) = pick(&self.held, claim) else { return };
        let owed = |handler: &String| !held.row.progress.contains_key(handler);
        let handlers = (0..reports.len()).map(|n| format!("model.h{n}"));
        let report = |(handler, class): (String, &Option<ErrorClass>)| HandlerReport {
            handler: Some(handler),
            result: class.map_or(Ok(()), |class| Err(Failure::new(class, "no"))),
        };
        let reports: Vec<_> =
            handlers.zip(reports).filter(|(handler, _)| owed(handler)).map(report).collect();
        let transition = match decide(&held.row, &reports, &POLICY, 0.5) {
            Transition::Dispatched if deletes => Transition::Deleted,
            transition => transition,
        };
        self.write(claim, transition).await;
    }

    /// Claims are marked more than once, and long after they were lost.
    async fn write(&mut self, claim: usize, transition: Transition) {
        let Some(held) = pick(&self.held, claim).cloned() else { return };
        let mark = |store: usize| Mark {
            id: self.twins[held.twin].ids[store],
            token: held.token,
            transition: transition.clone(),
            replay_of: held.row.replay_of.map(|id| self.twins[self.twin_of(0, id)].ids[store]),
        };
        let memory = self.memory.mark(&[mark(0)], self.now()).await.unwrap();
        let sql = self.sql.store().mark(&[mark(1)], self.now()).await.unwrap();
        assert_eq!(memory, sql, "{transition:?}");
    }

    async fn renew(&mut self, claim: usize) {
        let Some(held) = pick(&self.held, claim) else { return };
        let rows = |store: usize| [(self.twins[held.twin].ids[store], held.token)];
        let (memory, sql) = (rows(0), rows(1));
        let now = self.now();
        let memory = self.memory.renew(&Renewal { rows: &memory, lease: LEASE, now }).await.unwrap();
        let sql = self.sql.store().renew(&Renewal { rows: &sql, lease: LEASE, now }).await.unwrap();
        assert_eq!((memory.lost.len(), memory.passed_over.len()), (sql.lost.len(), sql.passed_over.len()));
    }

    async fn operate(&mut self, verb: Op) {
        let (Op::Replay { row, .. } | Op::Skip { row } | Op::RetryNow { row } | Op::Release { row }) = verb
        else {
            return;
        };
        let Some(twin) = pick(&self.twins, row).copied() else { return };
        let (memory, sql, now) = (&self.memory, self.sql.store(), self.now());
        match verb {
            Op::Replay { all_handlers, .. } => {
                let replay = |id| Replay { id, by: "ann", reason: None, all_handlers };
                let results =
                    [memory.replay(&replay(twin.ids[0])).await, sql.replay(&replay(twin.ids[1])).await];
                if let Some([memory, sql]) = both(results) {
                    let messages = [self.message_in_memory(memory), self.message_in_database(sql).await];
                    self.twins.push(Twin { ids: [memory, sql], messages });
                }
            }
            Op::Skip { .. } => {
                let _ = both([
                    memory.skip(twin.ids[0], "ann", Some("why"), now).await,
                    sql.skip(twin.ids[1], "ann", Some("why"), now).await,
                ]);
            }
            Op::RetryNow { .. } => {
                let results =
                    [memory.retry_now(twin.ids[0], now).await, sql.retry_now(twin.ids[1], now).await];
                let _ = both(results);
            }
            _ => {
                let _ = both([memory.release(twin.ids[0], now).await, sql.release(twin.ids[1], now).await]);
            }
        }
    }

    fn message_in_memory(&self, id: RowId) -> MessageId {
        let rows = self.memory.rows();
        rows.iter().find(|row| row.id == id).expect("the replay").envelope.message_id
    }

    async fn message_in_database(&self, id: RowId) -> MessageId {
        let db = self.sql.store().connection();
        let sql = format!("SELECT message_id FROM outbox WHERE id = {id}");
        let row = db.query_one_raw(sea_orm::Statement::from_string(db.get_database_backend(), sql)).await;
        row.unwrap().expect("the replay").try_get::<uuid::Uuid>("", "message_id").unwrap().into()
    }

    fn shape(&self, store: usize, row: OutboxRow) -> Shape {
        Shape {
            status: row.status,
            attempts: row.attempts,
            claims: row.claims,
            lease: row.lease,
            finished_at: row.finished_at,
            // A row that was never put off is due since it was stored, by different clocks.
            due: Some(row.available_at).filter(|due| *due >= at(0).unwrap()),
            progress: row.progress,
            last_error: row.last_error,
            operated: row.operated,
            resolved_at: row.resolved_at,
            replay_of: row.replay_of.map(|id| self.twin_of(store, id)),
        }
    }

    async fn compare(&self) {
        for twin in &self.twins {
            let memory = self.memory.find(twin.messages[0]).await.unwrap();
            let sql = self.sql.store().find(twin.messages[1]).await.unwrap();
            let [memory, sql] =
                [(0, memory), (1, sql)].map(|(store, row)| row.map(|row| self.shape(store, row)));
            assert_eq!(memory, sql, "{twin:?}");
        }
        let [memory, sql] =
            [(0, self.memory.history()), (1, self.sql.history().await)].map(|(store, history)| {
                let entry = |entry: &outbox_core::testing::HistoryEntry| {
                    (self.twin_of(store, entry.id), entry.attempt, entry.relay.clone(), entry.failed.clone())
                };
                history.iter().map(entry).collect::<Vec<_>>()
            });
        assert_eq!(memory, sql);
    }
}

/// Rows of the same key that a claimed row would overtake: stored before it, and neither dispatched, resolved, nor
/// claimed with it. What a dead letter holds up waits for it, but its own replay does not.
fn overtaken(before: &[OutboxRow], with_it: &[ClaimedRow], row: &ClaimedRow, proceed: &[&str]) -> Vec<RowId> {
    if row.replay_of.is_some() {
        return Vec::new();
    }
    let holds_up = |other: &&OutboxRow| match other.status {
        Status::Dispatched => false,
        Status::Dead => other.resolved_at.is_none() && !proceed.contains(&&*other.envelope.event_type),
        _ => other.replay_of.is_none() && !with_it.iter().any(|row| row.id == other.id),
    };
    let of_key = before.iter().filter(|other| other.envelope.ordering_key == row.envelope.ordering_key);
    of_key.filter(|other| other.id < row.id).filter(holds_up).map(|other| other.id).collect()
}

fn envelope(event: usize) -> Envelope {
    let Route { event_type, event_version } = EVENTS[event];
    Envelope::stored(MessageId::new(), event_type.into(), event_version, "{}".into())
}

fn request(routes: &[Route], limit: u32, now: Option<DateTime<Utc>>) -> ClaimRequest<'_> {
    ClaimRequest {
        claimed_by: "relay",
        token: LeaseToken::new(),
        lease: LEASE,
        limit,
        routes,
        proceed: &[],
        now,
    }
}

fn pick<T>(items: &[T], n: usize) -> Option<&T> {
    items.get(n.checked_rem(items.len())?)
}

/// Both verbs did it, or both refused for the same reason.
fn both<T: Debug>([memory, sql]: [Result<T, OperateError>; 2]) -> Option<[T; 2]> {
    match (memory, sql) {
        (Ok(memory), Ok(sql)) => Some([memory, sql]),
        (Err(OperateError::State { problem: memory, .. }), Err(OperateError::State { problem: sql, .. }))
            if memory == sql =>
        {
            None
        }
        (Err(OperateError::NotFound(_)), Err(OperateError::NotFound(_))) => None,
        (memory, sql) => panic!("in memory {memory:?}, in the database {sql:?}"),
    }
}

async fn a_database_does_what_the_model_does_whatever_happens_to_its_rows(database: &TestDatabase) {
    let sql = Sql::new(database);
    sql.store().check().await.unwrap();
    // The same cases in every run; with PROPTEST_CASES there are as many as one likes.
    let cases = std::env::var("PROPTEST_CASES").map_or(60, |cases| cases.parse().unwrap());
    let config = Config { cases, max_shrink_iters: 200, failure_persistence: None, ..Config::default() };
    let mut runner = TestRunner::new_with_rng(config, TestRng::deterministic_rng(RngAlgorithm::ChaCha));
    let run = |ops: Vec<Op>| {
        block_in_place(|| {
            Handle::current().block_on(async {
                for table in ["outbox", "outbox_attempts"] {
                    database.db.execute_unprepared(&format!("DELETE FROM {table}")).await.unwrap();
                }
                let memory = MemoryStore::default();
                let mut model = Model {
                    memory,
                    sql: &sql,
                    twins: vec![],
                    held: vec![],
                    after: None,
                    expired: vec![],
                    second: 0,
                };
                for op in ops {
                    model.step(op).await;
                }
                model.compare().await;
            });
        });
        Ok(())
    };
    if let Err(error) = runner.run(&ops(), run) {
        panic!("{error}");
    }
}
