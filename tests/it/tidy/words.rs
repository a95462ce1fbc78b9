use super::{File, code, files, none, sources};
use std::collections::BTreeMap;

/// Text that must not stand in this file is put together from halves.
macro_rules! word {
    ($first:literal $second:literal) => {
        concat!($first, $second)
    };
}

#[test]
fn nothing_is_left_to_do_in_a_comment() {
    let words = [word!("TO" "DO"), word!("FIX" "ME"), word!("XX" "X:"), word!("HA" "CK")];
    let mut found = Vec::new();
    for File { path, text } in files("", &[".rs", ".toml", ".md", ".sh", ".sql", ".yml"]) {
        let lines = text.lines().enumerate().filter(|(_, line)| words.iter().any(|word| line.contains(word)));
        found.extend(lines.map(|(index, line)| format!("{path}:{}: {}", index + 1, line.trim())));
    }
    none("do it, or write it where plans are kept", &found);
}

#[test]
fn no_test_is_switched_off() {
    let mut found = Vec::new();
    for File { path, text } in files("", &[".rs"]) {
        let off = code(&text).filter(|(_, line)| line.contains(word!("#[ign" "ore")));
        found.extend(off.map(|(number, _)| format!("{path}:{number}")));
    }
    none("a test that does not run proves nothing", &found);
}

/// The parts of an identifier: `DeadLetter` and `dead_letter` are `dead` and `letter`.
fn parts(identifier: &str) -> Vec<String> {
    let mut spaced = String::new();
    for c in identifier.chars() {
        if c.is_uppercase() {
            spaced.push('_');
        }
        spaced.extend(c.to_lowercase());
    }
    spaced.split('_').filter(|part| !part.is_empty()).map(str::to_owned).collect()
}

/// What a line declares for everybody: the name behind `pub fn`, `pub struct` and so on, or a public field's.
fn declared(line: &str) -> Option<&str> {
    let declaration = line.trim_start().strip_prefix("pub ")?;
    let words = ["async ", "const ", "fn ", "struct ", "enum ", "trait ", "type ", "mod ", "static ", "use "];
    let mut name = declaration;
    while let Some(rest) = words.iter().find_map(|word| name.strip_prefix(word)) {
        name = rest;
    }
    let end = name.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(name.len());
    Some(&name[..end])
}

#[test]
fn a_concept_has_one_word() {
    assert_eq!(parts("DeadLetterQueue"), ["dead", "letter", "queue"]);
    assert_eq!(declared("    pub async fn nack(&self)"), Some("nack"));
    // Another word → the word that we use.
    let words = BTreeMap::from([
        ("ack", "mark"),
        ("nack", "mark"),
        ("poison", "dead letter"),
        ("dlq", "dead letter"),
        ("queue", "outbox"),
        ("requeue", "replay"),
        ("dedup", "inbox"),
        ("poller", "relay"),
        ("dispatcher", "relay"),
        ("bus", "router"),
        ("listener", "handler"),
        ("notification", "event"),
        ("job", "row"),
        ("phase", "status"),
        ("visibility", "lease"),
        ("vacuum", "purge"),
        ("delivered", "dispatched"),
    ]);
    let mut found = Vec::new();
    for File { path, text } in sources() {
        for (number, line) in code(&text) {
            for part in declared(line).map(parts).unwrap_or_default() {
                if let Some(ours) = words.get(part.as_str()) {
                    found.push(format!("{path}:{number}: say {ours:?} instead of {part:?}"));
                }
            }
        }
    }
    none("one word a concept", &found);
}

#[test]
fn the_applications_clock_is_read_where_an_event_is_raised_and_where_its_age_is_told() {
    let reads = |file: &File| {
        code(&file.text)
            .any(|(_, line)| line.contains(word!("Utc::" "now(")) || line.contains(word!("System" "Time")))
    };
    let found: Vec<_> = sources().filter(|file| !file.path.contains("/testing/")).filter(reads).collect();
    let found: Vec<_> = found.into_iter().map(|file| file.path).collect();
    assert_eq!(
        found,
        [
            "outbox-core/src/envelope.rs",
            "outbox-core/src/observe.rs",
            // Compared with the database's.
            "outbox-seaorm/src/doctor/server.rs",
        ]
    );
}
