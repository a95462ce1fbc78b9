//! One file a verb, or a few that are alike.

mod control;
mod doctor;
mod filter;
mod list;
mod migrate;
mod purge;
mod replay;
mod rows;
mod show;
mod status;

use crate::{
    args::{Arguments, Verb},
    connect::{Target, connect},
    console::Console,
    failure::{Exit, Failure},
};
use serde_json::Value;

/// What every verb gets.
pub(crate) struct Call<'a> {
    target: Target,
    console: &'a mut Console,
    json: bool,
}

impl Call<'_> {
    /// Tells the answer, in the form that was asked for.
    fn tell(&mut self, text: impl FnOnce() -> String, json: impl FnOnce() -> Value) {
        let told = if self.json { json().to_string() } else { text() };
        self.console.say(&told);
    }
}

pub(crate) async fn run(arguments: &Arguments, console: &mut Console) -> Result<Exit, Failure> {
    // What is wrong with a filter or a name is said before anybody waits for a database.
    check(&arguments.verb)?;
    let target = connect(&arguments.place).await?;
    let db = target.db.clone();
    let mut call = Call { target, console, json: arguments.place.json };
    let ended = match &arguments.verb {
        Verb::Status => status::run(&mut call).await,
        Verb::List(list) => list::run(&mut call, list).await,
        Verb::Show(show) => show::run(&mut call, show).await,
        Verb::Replay(replay) => replay::run(&mut call, replay).await,
        Verb::Skip(rows) => rows::skip(&mut call, rows).await,
        Verb::RetryNow(rows) => rows::retry_now(&mut call, rows).await,
        Verb::Release(rows) => rows::release(&mut call, rows).await,
        Verb::Purge(purge) => purge::run(&mut call, purge).await,
        Verb::Pause(pause) => control::pause(&mut call, pause).await,
        Verb::Resume(what) => control::resume(&mut call, what).await,
        Verb::Doctor(doctor) => doctor::run(&mut call, doctor).await,
        Verb::Migrate(migrate) => migrate::run(&mut call, migrate.step).await,
    };
    // Whatever there is to say was said.
    drop(db.close().await);
    ended
}

fn check(verb: &Verb) -> Result<(), Failure> {
    match verb {
        Verb::Replay(replay) => replay::check(replay),
        Verb::List(list) => filter::of(&list.filter).map(drop),
        _ => Ok(()),
    }
}

/// Who: as it was said, or the login name.
fn by(said: Option<&str>) -> Result<String, Failure> {
    match said {
        Some(said) => Ok(said.to_owned()),
        None => whoami::username().map_err(|error| {
            Failure::usage(format!("the login name is not known ({error}); say who you are with --by NAME"))
        }),
    }
}
