//! The integration tests, one binary. Each module says in a sentence what belongs into it.

/// The store's contract, on all four stores.
mod conformance;

/// The save of an aggregate, on pools: rows and events, or nothing.
mod save;

/// What the derive gives an event at run time, and the buffer in which it waits for the save.
mod event;

/// The router: what is wrong is said at the start, and what a handler does stays within its row.
mod router;

/// The rules of the repository: what may depend on what, how long things are, which words are ours.
mod tidy;

/// Saves inside the caller's transactions, and saves whose commit is in doubt.
mod transactions;

/// Events without an aggregate's save.
mod append;

/// The relay's loop: late commits, wake-ups, polling, stopping, statement counts.
mod relay;

/// Relays in other processes, stopped and killed for real.
mod crash;

/// The tables: names, constraints, indexes, and many processes that migrate at once.
mod migration;

/// Saves inside an `OutboxTransaction`, which tells how it ended.
mod outbox_transaction;

/// Several aggregates saved as one.
mod unit_of_work;

/// Events of plain entities, raised from SeaORM's own hooks.
mod hooks;

/// Schemas, prefixes, odd names: every statement finds its tables.
mod names;

/// What a consumer has handled already: repetitions, copies at once, failures, the purge.
mod inbox;

/// Causes, correlation ids and trace context, from a handled message to what it leads to.
mod conversation;

/// Ordered events are written in the order in which their transactions commit.
mod ordering;

/// The protocol of ordered claims, in every interleaving of its steps.
mod protocol;

/// Wake-ups from process to process.
mod notify;

/// Claims and marks while there is more than a batch.
mod side_by_side;

/// Aggregates whose saves are counted in a column.
mod version;

/// What must not stop a relay: rows that cannot be read, marks that are refused, databases and handlers that hang.
mod faults;

/// Delivery that neither loses nor lies: renewal, circuits, pauses, retention, health.
mod delivery;

/// Random lives of many rows: the SQL stores do what the model in memory does, and both what was decided.
mod model;

/// What a claim costs: the same, whatever stands in its way.
mod cost;

/// Isolation levels: the relay's own, whatever the server's default is, and producers beside it.
mod isolation;

/// Databases that go away, come back, or only let themselves be read.
mod outage;

/// Handlers that are down, paused or uncertain: no attempt is lost, and nobody else waits.
mod circuits;

/// What may change in an event, and what the lock says of it.
mod catalog;
/// Order within a key: kept by several relays, through crashes, failures and replays.
mod order;

/// Rows of older versions, read as newer events.
mod upcast;

/// Values that are not stored as they are, and texts that must not show them.
mod sensitive;

/// What relays tell their observers, and what a monitor tells of an outbox.
mod observe;

/// OpenTelemetry: metrics that exist, alerts that use them, traces that go on.
mod otel;

/// Many relays, producers, purges and operators at once; ids of any size.
mod together;

/// Outboxes that were dumped and restored, and backlogs after an outage.
mod backlog;

/// Failures that were found by attacking the delivery, and must not come back.
mod attack;

/// Handlers with a transaction of their own, in relays that are killed for real.
mod kill;

/// Handlers with a transaction of their own, in this process.
mod tx;

/// The test kit: the relay in the hands of a test, crashes, and assertions that say what was there.
mod kit;

/// Layers of tower around handlers.
mod tower;

/// What a doctor finds, each fault from a fixture, and nothing on a healthy database.
mod doctor;

/// Plans of all statements, when the statistics are of another time.
mod plans;

/// The command line, as a process of its own: verbs, refusals, exit codes, JSON, what it must not show.
mod cli;
