//! Relays that live, and what they are told.

use super::{
    Case, Diagnosis, Finding, Found,
    words::{list, shell, time},
};
use outbox_core::{
    OutboxStore,
    store::{Control, LiveRelay, Pause},
};
use std::collections::BTreeSet;

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

/// Events that relays know alike and treat differently: each event once, however many relays differ in one way.
fn differences(relays: &[LiveRelay]) -> Vec<Finding> {
    let events: BTreeSet<&String> = relays.iter().flat_map(|relay| relay.handlers.keys()).collect();
    let mut findings = Vec::new();
    for event in events {
        let readers = || relays.iter().filter(|relay| relay.handlers.contains_key(event));
        let mut alike: Vec<(&BTreeSet<String>, Vec<&str>)> = Vec::new();
        for (relay, ids) in readers().filter_map(|relay| Some((relay, relay.handlers.get(event)?))) {
            match alike.iter_mut().find(|(others, _)| *others == ids) {
                Some((_, names)) => names.push(&relay.name),
                None => alike.push((ids, vec![&relay.name])),
            }
        }
        findings.extend((alike.len() > 1).then(|| handlers_differ(event, &alike)));
        let name = event.rsplit_once(".v").map_or(&**event, |(name, _)| name);
        let (proceed, block): (Vec<_>, Vec<_>) = readers().partition(|relay| relay.proceed.contains(name));
        if let (Some(one), Some(other)) = (proceed.first(), block.first()) {
            findings.push(on_dead_differs(event, one, other));
        }
    }
    findings
}

fn handlers_differ(event: &str, alike: &[(&BTreeSet<String>, Vec<&str>)]) -> Finding {
    let set = |(ids, names): &(&BTreeSet<String>, Vec<&str>)| {
        let more = match names.len() {
            1 => String::new(),
            n => format!(" and {} more", n - 1),
        };
        (format!("relay {}{more}", names[0]), list(*ids, ", "))
    };
    let mut sets = alike.iter().map(set);
    let (first, ids) = sets.next().unwrap_or_default();
    let others = list(sets.map(|(relays, ids)| format!("{relays} with [{ids}]")), ", ");
    Finding::error(
        "handlers-differ",
        format!("{first} handles {event} with [{ids}], {others}"),
        "whoever claims a row first marks it for all, so handlers are left out",
        format!("deploy the same handlers of {event} to all relays; the older ones are to be stopped first"),
    )
}

fn on_dead_differs(event: &str, proceeds: &LiveRelay, blocks: &LiveRelay) -> Finding {
    let (one, other) = (&proceeds.name, &blocks.name);
    Finding::warning(
        "on-dead-differs",
        format!("{event} has `on_dead = proceed` in relay {one} and not in relay {other}"),
        "a dead letter then holds up its ordering key or not, by which relay comes first",
        format!("deploy the same build of {event} to all relays"),
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
