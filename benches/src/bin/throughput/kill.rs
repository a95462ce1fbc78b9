//! Two processes work on a backlog, and one of them is killed in the middle of a batch.

use crate::{
    server::{Measured, Program, Server, number},
    subject::Subject,
};
use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};
use tokio::{
    sync::mpsc::{self, Receiver},
    time::{sleep, timeout},
};

/// The longest that the survivor may need; beyond it events are lost.
const PATIENCE: Duration = Duration::from_mins(3);
/// Who is silent for so long has nothing more to say.
const SILENCE: Duration = Duration::from_secs(1);

/// Kills the one that was heard last when a third of the events is handled. Settled is when every event has been
/// handled, and every row says so where the subject has rows that can.
pub(crate) async fn run(server: &Server, subject: &Subject) -> Result<Measured, String> {
    let fresh = server.fresh().await?;
    let mut fill = Program::start(subject, &["fill".to_owned(), subject.events.to_string()], &fresh.url)?;
    fill.child.wait().await.map_err(|error| error.to_string())?;
    let mut workers = Vec::new();
    for _ in 0..2 {
        let mut worker = Program::start(subject, &subject.arguments, &fresh.url)?;
        worker.until_ready().await?;
        workers.push(worker);
    }
    let before = fresh.cost().await;
    for worker in &mut workers {
        worker.go().await?;
    }
    let (mut children, mut heard) = listen(workers);
    let mut seen = BTreeMap::new();
    let speaker = hear(&mut heard, &mut seen, subject.events / 3).await;
    let victim = speaker.ok_or("nothing was handled")?;
    children[victim].start_kill().map_err(|error| error.to_string())?;
    let killed = Instant::now();
    hear(&mut heard, &mut seen, subject.events).await;
    while let Some(sql) = subject.unsettled {
        if number(&fresh.db, sql).await < 1.0 || killed.elapsed() > PATIENCE {
            break;
        }
        sleep(Duration::from_millis(20)).await;
    }
    let seconds = killed.elapsed();
    while let Ok(Some((_, event))) = timeout(SILENCE, heard.recv()).await {
        *seen.entry(event).or_insert(0) += 1;
    }
    let after = fresh.cost().await;
    for child in &mut children {
        child.kill().await.map_err(|error| error.to_string())?;
    }
    let lost = subject.events - seen.len();
    assert!(!subject.is_own() || lost == 0, "{lost} events were not handled {PATIENCE:?} after the kill");
    #[allow(clippy::cast_precision_loss)] // A benchmark's count.
    let count = |count: usize| count as f64;
    let mut measured: Measured = after.since(before, subject.events).collect();
    measured.insert("settled".to_owned(), seconds.as_secs_f64());
    measured.insert("twice".to_owned(), count(seen.values().filter(|times| **times > 1).count()));
    measured.insert("lost".to_owned(), count(lost));
    Ok(measured)
}

type Heard = Receiver<(usize, u64)>;

fn listen(workers: Vec<Program>) -> (Vec<tokio::process::Child>, Heard) {
    let (say, heard) = mpsc::channel(1_000);
    let mut children = Vec::new();
    for (n, Program { child, mut lines }) in workers.into_iter().enumerate() {
        let say = say.clone();
        children.push(child);
        tokio::spawn(async move {
            while let Ok(Some(line)) = lines.next_line().await {
                let event = line.strip_prefix("event ").and_then(|text| text.parse().ok());
                if let Some(event) = event {
                    let _ = say.send((n, event)).await;
                }
            }
        });
    }
    (children, heard)
}

/// Until so many different events were heard of; who said the last of them.
async fn hear(heard: &mut Heard, seen: &mut BTreeMap<u64, u32>, enough: usize) -> Option<usize> {
    let (started, mut last) = (Instant::now(), None);
    while seen.len() < enough {
        let rest = PATIENCE.saturating_sub(started.elapsed());
        let Ok(Some((worker, event))) = timeout(rest, heard.recv()).await else { break };
        *seen.entry(event).or_insert(0) += 1;
        last = Some(worker);
    }
    last
}
