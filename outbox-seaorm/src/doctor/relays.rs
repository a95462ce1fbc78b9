//! Relays that live, and what they are told.

use super::{
    Case, Diagnosis, Finding, Found,
    words::{list, shell, time},
};
use outbox_core::{
    OutboxStore,
    store::{Control, LiveRelay, Pause},
};

pub(super) async fn look(case: &Case<'_>, diagnosis: &mut Diagnosis) {
    match case.store.control(Some(case.at)).await {
        Ok(control) => {
            diagnosis.add("handlers of the live relays", Ok(differences(&control.relays)));
            diagnosis.add("pauses", Ok(pauses(case, &control)));
        }
        Err(error) => {
            let refused: Found = Err(error.into());
            diagnosis.add("live relays and pauses", refused);
        }
    }
}

/// Relays that know one event and differ in what they do with it.
fn differences(relays: &[LiveRelay]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (n, one) in relays.iter().enumerate() {
        for other in &relays[n + 1..] {
            for (event, handlers) in &one.handlers {
                let Some(others) = other.handlers.get(event) else { continue };
                findings.extend((handlers != others).then(|| handlers_differ(event, one, other)));
                let name = event.rsplit_once(".v").map_or(&**event, |(name, _)| name);
                let differ = one.proceed.contains(name) != other.proceed.contains(name);
                findings.extend(differ.then(|| on_dead_differs(event, one, other)));
            }
        }
    }
    // Many relays of two builds differ in one way.
    findings.sort_by(|a, b| (a.code, &a.what).cmp(&(b.code, &b.what)));
    findings.truncate(20);
    findings
}

fn handlers_differ(event: &str, one: &LiveRelay, other: &LiveRelay) -> Finding {
    let ids = |relay: &LiveRelay| list(relay.handlers.get(event).into_iter().flatten(), ", ");
    Finding::error(
        "handlers-differ",
        format!(
            "relay {} handles {event} with [{}], relay {} with [{}]",
            one.name,
            ids(one),
            other.name,
            ids(other)
        ),
        "whoever claims a row first marks it for all, so handlers are left out",
        format!("deploy the same handlers of {event} to both relays; the older one is to be stopped first"),
    )
}

fn on_dead_differs(event: &str, one: &LiveRelay, other: &LiveRelay) -> Finding {
    Finding::warning(
        "on-dead-differs",
        format!("relays {} and {} disagree whether {event} has `on_dead = proceed`", one.name, other.name),
        "a dead letter then holds up its ordering key or not, by which relay comes first",
        format!("deploy the same build of {event} to both relays"),
    )
}

fn pauses(case: &Case<'_>, control: &Control) -> Vec<Finding> {
    let paused = |entry: &outbox_core::store::PauseEntry| {
        let flag = match &entry.pause {
            Pause::Event(name) => format!("--event {}", shell(name)),
            Pause::Handler(id) => format!("--handler {}", shell(id)),
            _ => "--all".to_owned(),
        };
        let reason = entry.reason.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default();
        Finding::warning(
            "paused",
            format!("{} is paused since {} by {}{reason}", entry.pause, time(entry.since), entry.by),
            "its rows wait until somebody resumes it",
            case.words.outbox(format!("resume {flag}")),
        )
    };
    control.pauses.iter().map(paused).collect()
}
