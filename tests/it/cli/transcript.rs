//! What `docs/cli.md` shows is what the command says. `OUTBOX_TRANSCRIPT=overwrite` renews it.

use super::{dead, dead_letter};
use outbox_core::{
    ErrorClass,
    store::{Announcement, HandlerSets, OrderedRequest, OutboxStore},
};
use outbox_tests::{
    command::{Ended, outbox},
    conformance::{mark, request},
    database::{Backend, TestDatabase},
    events::placed,
    subject::{Sql, Subject},
};
use std::{fs, path::Path, time::Duration};

const COMMANDS: [&[&str]; 11] = [
    &["status"],
    &["doctor"],
    &["list", "--replayable"],
    &["show", "1"],
    &["replay", "--event", "orders.order-placed", "--class", "timeout", "--dry-run"],
    &["replay", "1", "--by", "ann", "--reason", "the mail server is back"],
    &["skip", "2"],
    &["skip", "2", "--by", "ann", "--reason", "the order was cancelled", "--yes"],
    &["show", "1", "--json"],
    &["release", "3", "--yes"],
    &["migrate", "status"],
];
const BEGIN: &str =
    "<!-- Written by the commands themselves; see tests/it/cli/transcript.rs. -->\n\n```text\n";
const END: &str = "```\n";

/// A dead letter by itself, one that holds up its key, and what waits behind it.
async fn shop(database: &TestDatabase) {
    let subject = Sql::new(database);
    let handlers: HandlerSets =
        [("orders.order-placed.v1".to_owned(), ["mail.confirm-order".to_owned()].into())].into();
    let lasts = Duration::from_hours(1);
    let announcement = Announcement { relay: "shop-1", handlers: &handlers, proceed: &[], lasts, now: None };
    subject.store().announce(&announcement).await.unwrap();
    dead_letter(&subject, placed(1), ErrorClass::Timeout).await;
    let of_order = |n| placed(n).with_ordering_key("order 7");
    subject.append(&[of_order(2), of_order(3)]).await;
    let claim = request(1, None);
    let found = subject.store().claim_ordered(&OrderedRequest { claim, after: None }).await.unwrap();
    mark(&subject, claim.token, &found.claimed.rows, &dead(ErrorClass::Terminal), None).await;
}

/// Times, message ids and the place are always the same, and as long as the real ones.
fn normal(text: &str, place: &str) -> String {
    let text = text.replace(place, "shop.sqlite");
    let mut normal = String::with_capacity(text.len());
    let mut rest = &*text;
    'text: while let Some(first) = rest.chars().next() {
        for (shape, always) in [
            ("dddd-dd-dd dd:dd:dd", "2026-11-30 12:00:00"),
            ("dddd-dd-ddTdd:dd:dd.ddddddZ", "2026-11-30T12:00:00.000000Z"),
            ("xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx", "019ad4f0-0000-7000-8000-000000000000"),
        ] {
            if rest.len() >= shape.len() && shape.chars().zip(rest.chars()).all(|(shape, c)| fits(shape, c)) {
                normal.push_str(always);
                rest = &rest[shape.len()..];
                continue 'text;
            }
        }
        normal.push(first);
        rest = &rest[first.len_utf8()..];
    }
    normal
}

fn fits(shape: char, c: char) -> bool {
    match shape {
        'd' => c.is_ascii_digit(),
        'x' => c.is_ascii_hexdigit(),
        other => c == other,
    }
}

fn quoted(argument: &&str) -> String {
    if argument.contains(' ') { format!("'{argument}'") } else { (*argument).to_owned() }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_transcript_in_the_docs_is_what_the_commands_say() {
    let path = concat!(module_path!(), "::transcript");
    let database = TestDatabase::ready(Backend::Sqlite, path).await;
    shop(&database).await;
    let place = database.url.trim_start_matches("sqlite://").trim_end_matches("?mode=rwc");
    let mut transcript = String::new();
    for arguments in COMMANDS {
        let ended = outbox(&database, arguments).await;
        let words: Vec<_> = arguments.iter().map(quoted).collect();
        let code = ended.code.filter(|code| *code != 0).map(|code| format!("[exit code {code}]\n"));
        let code = code.unwrap_or_default();
        let Ended { out, err, .. } = ended;
        transcript.extend(["$ outbox ", &words.join(" "), "\n", &out, &err, &code, "\n"]);
    }
    let transcript = format!("{}\n", normal(&transcript, place).trim_end());
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/cli.md");
    let text = fs::read_to_string(&page).unwrap();
    let (before, rest) = text.split_once(BEGIN).expect("docs/cli.md has a place for the transcript");
    let (shown, after) = rest.split_once(END).unwrap();
    if std::env::var("OUTBOX_TRANSCRIPT").is_ok_and(|value| value == "overwrite") {
        fs::write(&page, format!("{before}{BEGIN}{transcript}{END}{after}")).unwrap();
    } else {
        assert_eq!(shown, transcript, "renew it with OUTBOX_TRANSCRIPT=overwrite, and read the difference");
    }
    database.drop().await;
}
