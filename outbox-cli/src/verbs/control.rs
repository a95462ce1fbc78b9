//! `outbox pause` and `outbox resume`.

use super::{Call, by};
use crate::{
    args,
    failure::{Exit, Failure},
    json,
};
use outbox_core::{
    OutboxStore,
    store::{OutboxOperator, Pause},
};
use serde_json::json;

fn what(said: &args::What) -> Pause {
    match (&said.event, &said.handler) {
        (Some(event), _) => Pause::Event(event.clone()),
        (_, Some(handler)) => Pause::Handler(handler.clone()),
        _ => Pause::All,
    }
}

/// An event is paused in all its versions, so a version is a mistake.
fn check(pause: &Pause) -> Result<(), Failure> {
    let Pause::Event(name) = pause else { return Ok(()) };
    match name.rsplit_once(".v") {
        Some((name, version)) if version.parse::<u16>().is_ok() => {
            Err(Failure::usage(format!("an event is paused in all its versions: say --event {name}")))
        }
        _ => Ok(()),
    }
}

pub(super) async fn pause(call: &mut Call<'_>, said: &args::Pause) -> Result<Exit, Failure> {
    let pause = what(&said.what);
    check(&pause)?;
    let by = by(said.who.by.as_deref())?;
    call.target.store.pause(&pause, &by, said.who.reason.as_deref()).await?;
    let note = if may_be_known(call, &pause).await? {
        ""
    } else {
        ". No relay that lives has it: is the name right?"
    };
    call.tell(
        || format!("{pause} is paused; relays follow within about a second, producers go on{note}"),
        || json!({ "paused": json::paused(&pause), "by": by }),
    );
    Ok(Exit::Fine)
}

/// Whether a live relay has what is paused; also when none lives, because nobody can tell then.
async fn may_be_known(call: &Call<'_>, pause: &Pause) -> Result<bool, Failure> {
    let relays = call.target.store.control(None).await?.relays;
    let mut events = relays.iter().flat_map(|relay| &relay.handlers);
    Ok(relays.is_empty()
        || match pause {
            Pause::Event(name) => {
                events.any(|(event, _)| event.rsplit_once(".v").is_some_and(|(of, _)| of == name))
            }
            Pause::Handler(id) => events.any(|(_, ids)| ids.contains(id)),
            _ => true,
        })
}

pub(super) async fn resume(call: &mut Call<'_>, said: &args::What) -> Result<Exit, Failure> {
    let pause = what(said);
    check(&pause)?;
    if !call.target.store.resume(&pause).await? {
        return Err(Failure::refused(format!("{pause} is not paused; `outbox status` tells what is")));
    }
    call.tell(|| format!("{pause} is resumed"), || json!({ "resumed": json::paused(&pause) }));
    Ok(Exit::Fine)
}
