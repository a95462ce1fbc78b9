use outbox_core::Envelope;
use outbox_tests::{
    database::{Backend, TestDatabase},
    events::OrderPlaced,
    for_each_database,
    process::Process,
    subject::{Sql, Subject},
    wait::until,
};
use sea_orm::ConnectionTrait;
use std::sync::atomic::{AtomicI32, Ordering::Relaxed};

for_each_database! {
    an_effect_happens_once_when_its_relay_is_killed_at_any_statement,
    an_effect_happens_once_when_its_relay_is_killed_at_any_time,
    an_effect_happens_once_when_several_relays_are_killed,
    an_effect_of_a_handler_that_kills_its_process_is_undone,
    a_relay_that_was_stopped_past_its_lease_undoes_its_effect_when_it_resumes,
}

/// Orders whose handlers count them.
struct Counted<'a> {
    database: &'a TestDatabase,
    subject: Sql,
    orders: AtomicI32,
}

impl<'a> Counted<'a> {
    async fn new(database: &'a TestDatabase) -> Self {
        for sql in [
            // Without a key that would refuse the second effect.
            "CREATE TABLE effects (handler VARCHAR(20) NOT NULL, order_id INT NOT NULL)",
            "CREATE TABLE counter (n INT NOT NULL)",
            "CREATE TABLE waiting (order_id INT NOT NULL)",
            "CREATE TABLE gate (open INT NOT NULL)",
            "INSERT INTO counter (n) VALUES (0)",
        ] {
            database.db.execute_unprepared(sql).await.unwrap();
        }
        Self { database, subject: Sql::new(database), orders: AtomicI32::new(0) }
    }

    async fn place(&self, count: i32, total_cents: i64) -> Vec<Envelope> {
        let first = self.orders.fetch_add(count, Relaxed);
        let order = |n| Envelope::new(&OrderPlaced { order_id: first + n, total_cents }).unwrap();
        let envelopes: Vec<_> = (1..=count).map(order).collect();
        self.subject.append(&envelopes).await;
        envelopes
    }

    fn start(&self, mode: &str) -> Process {
        Process::start(&[mode, &self.database.url])
    }

    /// A relay that nobody kills finishes the rest, and everything happened once.
    async fn finish(&self, what: &str) {
        let output = self.start("count-drain").output().await;
        assert!(output.status.success(), "{what}: {}", String::from_utf8_lossy(&output.stderr));
        let orders = i64::from(self.orders.load(Relaxed));
        let count = async |from: &str| self.database.count(from).await;
        assert_eq!(count("outbox WHERE status = 'dispatched'").await, orders, "{what}");
        let distinct = "(SELECT DISTINCT handler, order_id FROM effects) AS seen";
        assert_eq!(count(distinct).await, 2 * orders, "nothing is lost: {what}");
        assert_eq!(count("effects").await, 2 * orders, "nothing is repeated: {what}");
        assert_eq!(count(&format!("counter WHERE n = {}", 2 * orders)).await, 1, "{what}");
    }
}

/// Two handlers of one row send six statements beside those that begin and end: two effects and the progress, each.
async fn an_effect_happens_once_when_its_relay_is_killed_at_any_statement(database: &TestDatabase) {
    let counted = Counted::new(database).await;
    let statements = (1..=6).map(|n| format!("count-statement:{n}"));
    let steps = ["claimed:1", "taken-over:1", "mark:1", "marked:1"].map(|step| format!("count-{step}"));
    for step in statements.chain(steps) {
        // The statements of one row come in order; of two rows they are mixed.
        for rows in [1, 2] {
            counted.place(rows, 1).await;
            let killed = counted.start(&step).output().await;
            // The very first take-over has nothing to take over.
            let reached = !killed.status.success() || step.starts_with("count-taken-over");
            assert!(reached, "{step}: {}", String::from_utf8_lossy(&killed.stderr));
        }
        counted.finish(&step).await;
    }
}

async fn an_effect_happens_once_when_its_relay_is_killed_at_any_time(database: &TestDatabase) {
    let counted = Counted::new(database).await;
    for round in 0..12_u32 {
        counted.place(40, 1).await;
        let relay = counted.start("count-drain");
        // Somewhere in the middle of its work, each time elsewhere.
        let before = database.count("effects").await;
        until("it works", || async {
            database.count("effects").await > before + i64::from(round * 5)
                || database.count("outbox WHERE finished_at IS NULL").await == 0
        })
        .await;
        relay.signal("KILL").await;
        drop(relay.output().await);
    }
    counted.finish("any time").await;
}

async fn an_effect_happens_once_when_several_relays_are_killed(database: &TestDatabase) {
    if database.backend == Backend::Sqlite {
        return; // One relay on SQLite.
    }
    let counted = Counted::new(database).await;
    for round in 0..6 {
        counted.place(60, 1).await;
        let relays = [(); 3].map(|()| counted.start("count-drain"));
        let before = database.count("effects").await;
        until("they work", || async { database.count("effects").await > before + round * 8 }).await;
        let [first, second, third] = relays;
        first.signal("KILL").await;
        until("the others work", || async { database.count("effects").await > before + round * 8 + 20 })
            .await;
        second.signal("KILL").await;
        for killed in [first, second] {
            drop(killed.output().await);
        }
        // Killed as well.
        drop(third);
    }
    counted.finish("several relays").await;
}

async fn an_effect_of_a_handler_that_kills_its_process_is_undone(database: &TestDatabase) {
    let counted = Counted::new(database).await;
    counted.place(1, -1).await;
    for _ in 0..3 {
        assert!(!counted.start("count-drain").output().await.status.success());
    }
    assert_eq!(database.count("effects").await, 0);
    assert_eq!(database.count("outbox WHERE claims = 3 AND finished_at IS NULL").await, 1);
}

async fn a_relay_that_was_stopped_past_its_lease_undoes_its_effect_when_it_resumes(database: &TestDatabase) {
    if database.backend == Backend::Sqlite {
        return; // A stopped writer stops every other one: nobody can take the row over.
    }
    let counted = Counted::new(database).await;
    // So that the effects of the two do not wait for each other.
    database.db.execute_unprepared("DELETE FROM counter").await.unwrap();
    let envelope = counted.place(1, -2).await.remove(0);
    let stale = counted.start("count-pass");
    until("the first relay's handler has had its effect", || async { database.count("waiting").await == 1 })
        .await;
    stale.signal("STOP").await;
    database.db.execute_unprepared("INSERT INTO gate (open) VALUES (1)").await.unwrap();
    let output = counted.start("count-drain").output().await;
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let finished = counted.subject.row(&envelope).await;
    stale.signal("CONT").await;
    let output = stale.output().await;
    let report = String::from_utf8_lossy(&output.stdout);
    assert!(report.contains("lost: 1"), "{report} {}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(counted.subject.row(&envelope).await, finished);
    assert_eq!(database.count("effects").await, 2, "one of each handler");
}
