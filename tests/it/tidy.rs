/// What is not written, and the words that are ours.
mod words;

use std::{collections::BTreeSet, fs, path::Path};

/// The crates that are published.
const PUBLISHED: [&str; 4] = ["outbox-cli", "outbox-core", "outbox-derive", "outbox-seaorm"];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the tests are a member of the workspace")
}

/// The paths of all files below a directory of the repository, from its root and in order.
fn paths(directory: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut waiting = vec![root().join(directory)];
    while let Some(directory) = waiting.pop() {
        for entry in fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_string_lossy();
            if !path.is_dir() {
                found.push(path.strip_prefix(root()).unwrap().to_string_lossy().into_owned());
            } else if name != "target" && !name.starts_with('.') {
                waiting.push(path);
            }
        }
    }
    found.sort();
    found
}

/// A file of the repository: its path from the root, and its text.
struct File {
    path: String,
    text: String,
}

/// All files below a directory of the repository, with one of these endings.
fn files(directory: &str, endings: &[&str]) -> Vec<File> {
    let read = |path: String| File { text: fs::read_to_string(root().join(&path)).unwrap(), path };
    let paths =
        paths(directory).into_iter().filter(|path| endings.iter().any(|ending| path.ends_with(ending)));
    let files: Vec<_> = paths.map(read).collect();
    assert!(!files.is_empty(), "no file of {endings:?} below {directory:?}");
    files
}

/// The lines of Rust that are no comments, with their numbers.
fn code(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let lines = text.lines().enumerate().map(|(index, line)| (index + 1, line));
    lines.filter(|(_, line)| !line.trim_start().starts_with("//"))
}

/// The sources of the published crates.
fn sources() -> impl Iterator<Item = File> {
    PUBLISHED.iter().flat_map(|package| files(&format!("{package}/src"), &[".rs"]))
}

#[track_caller]
fn none(rule: &str, broken: &[String]) {
    assert!(broken.is_empty(), "{rule}:\n  {}", broken.join("\n  "));
}

/// The dependencies that a manifest lists in a section, by name.
fn dependencies(package: &str, sections: &[&str]) -> BTreeSet<String> {
    let manifest = fs::read_to_string(root().join(package).join("Cargo.toml")).unwrap();
    let mut names = BTreeSet::new();
    let mut listed = false;
    for line in manifest.lines() {
        if let Some(section) = line.strip_prefix('[') {
            let section = section.trim_end_matches(']');
            listed = sections.contains(&section);
            // A table of its own would be overlooked here; the manifests have none.
            let own = sections.iter().any(|name| section.starts_with(&format!("{name}.")));
            assert!(!own, "{package}: write [{section}] as one line");
        } else if let Some((name, _)) = line.split_once('=').filter(|_| listed && !line.starts_with('#')) {
            let name = name.trim().trim_end_matches(".workspace");
            names.extend(name.starts_with(|c: char| c.is_ascii_lowercase()).then(|| name.to_owned()));
        }
    }
    names
}

const NORMAL: [&str; 2] = ["dependencies", "build-dependencies"];
const ALL: [&str; 3] = ["dependencies", "build-dependencies", "dev-dependencies"];

fn members() -> Vec<String> {
    let manifest = fs::read_to_string(root().join("Cargo.toml")).unwrap();
    let (_, rest) = manifest.split_once("members = [").unwrap();
    let (members, _) = rest.split_once(']').unwrap();
    let members = members.split(',').map(|member| member.trim().trim_matches('"').to_owned());
    members.filter(|member| !member.is_empty()).collect()
}

// What depends on what.

#[test]
fn the_macros_depend_on_the_three_crates_that_read_and_write_rust() {
    let allowed = ["proc-macro2", "quote", "syn"].map(str::to_owned);
    assert_eq!(dependencies("outbox-derive", &NORMAL), BTreeSet::from(allowed));
    // Not even for development: what the macros do is tested where users would use them.
    let all = dependencies("outbox-derive", &ALL);
    assert!(!all.iter().any(|name| name.starts_with("outbox-")), "{all:?}");
}

#[test]
fn the_core_depends_on_no_orm_no_database_and_no_http() {
    let foreign =
        ["sea-", "sqlx", "diesel", "postgres", "mysql", "rusqlite", "http", "hyper", "reqwest", "axum"];
    let broken: Vec<_> = dependencies("outbox-core", &ALL)
        .into_iter()
        .filter(|name| {
            *name != "outbox-derive"
                && (name.starts_with("outbox-") || foreign.iter().any(|f| name.starts_with(f)))
        })
        .collect();
    none("outbox-core must not depend on", &broken);
}

#[test]
fn nothing_that_is_published_depends_on_the_tests_or_the_examples() {
    let leaves = ["outbox-tests", "outbox-examples"];
    for package in members().iter().filter(|member| member.starts_with("outbox-")) {
        let all = dependencies(package, &ALL);
        assert!(!leaves.iter().any(|leaf| all.contains(*leaf)), "{package} depends on {all:?}");
    }
}

#[test]
fn nobody_who_uses_the_library_builds_the_command_line() {
    for package in ["outbox-core", "outbox-derive", "outbox-seaorm"] {
        let all = dependencies(package, &ALL);
        assert!(!all.contains("outbox-cli") && !all.contains("clap"), "{package} depends on {all:?}");
    }
}

#[test]
fn the_command_line_knows_no_sql() {
    let words = ["SELECT ", "INSERT INTO", "UPDATE ", "DELETE FROM", "Statement", "execute_unprepared"];
    none("outbox-cli asks the library", &lines_with(files("outbox-cli/src", &[".rs"]), &words));
}

#[test]
fn every_dependency_of_the_workspace_is_used_by_a_member() {
    let used: BTreeSet<_> = members().iter().flat_map(|member| dependencies(member, &ALL)).collect();
    let listed = dependencies("", &["workspace.dependencies"]);
    assert!(listed.len() > 10, "{listed:?}");
    let unused: Vec<_> = listed.difference(&used).cloned().collect();
    none("listed in the workspace and used by no member", &unused);
}

#[test]
fn the_core_names_no_orm_and_no_sql() {
    let words = ["sea_orm", "sea_query", "sqlx", "SELECT ", "INSERT INTO", "UPDATE "];
    none("outbox-core knows no database", &lines_with(files("outbox-core/src", &[".rs"]), &words));
}

#[test]
fn sql_of_one_backend_stays_in_the_dialects_and_the_migrations() {
    let words = [
        "SKIP LOCKED",
        "FOR UPDATE",
        "RETURNING",
        "ON CONFLICT",
        "ON DUPLICATE",
        "INSERT IGNORE",
        "INSERT OR",
        "JSON_TABLE",
        "json_each",
        "jsonb",
        "unnest(",
        "strftime",
        "julianday",
        "UTC_TIMESTAMP",
        "clock_timestamp",
        "GET_LOCK",
        "pg_advisory",
        "PRAGMA",
        "AUTOINCREMENT",
        "AUTO_INCREMENT",
        "information_schema",
        "sqlite_master",
    ];
    let exempt = ["outbox-seaorm/src/dialect/", "outbox-seaorm/src/migration/"];
    let elsewhere = sources().filter(|file| !exempt.iter().any(|path| file.path.starts_with(path)));
    none("text that only one backend reads", &lines_with(elsewhere, &words));
}

/// Each line of code that has one of the words, with its place.
fn lines_with(files: impl IntoIterator<Item = File>, words: &[&str]) -> Vec<String> {
    let mut found = Vec::new();
    for File { path, text } in files {
        for (number, line) in code(&text).filter(|(_, line)| words.iter().any(|word| line.contains(word))) {
            found.push(format!("{path}:{number}: {}", line.trim()));
        }
    }
    found
}

/// What a file names of its own crate: the first word behind each `crate::`.
fn names_of_crate(text: &str) -> BTreeSet<String> {
    let code: String = code(text).fold(String::new(), |code, (_, line)| code + line + "\n");
    let mut names = BTreeSet::new();
    for behind in code.split("crate::").skip(1) {
        match behind.strip_prefix('{') {
            Some(group) => names.extend(first_words_of_group(group)),
            None => names.extend(first_word(behind)),
        }
    }
    names
}

fn first_word(text: &str) -> Option<String> {
    let text = text.trim_start();
    let word: String = text.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
    (!word.is_empty()).then_some(word)
}

/// `a::{b, c}, d}` is `a` and `d`.
fn first_words_of_group(group: &str) -> Vec<String> {
    let mut depth = 0_usize;
    let mut items = vec![String::new()];
    for c in group.chars() {
        match c {
            '{' => depth += 1,
            '}' if depth == 0 => break,
            '}' => depth -= 1,
            ',' if depth == 0 => items.push(String::new()),
            _ => {}
        }
        items.last_mut().expect("there is always one").push(c);
    }
    items.iter().filter_map(|item| first_word(item.trim_start_matches(','))).collect()
}

#[test]
fn the_names_that_a_file_takes_from_its_crate_are_found() {
    let text = "use crate::{\n    a::{b, c},\n    D,\n    // crate::x,\n    e::f,\n};\n// crate::g\nfn f() { crate::h::i() }\n";
    let expected = ["D", "a", "e", "h"].map(str::to_owned);
    assert_eq!(names_of_crate(text), BTreeSet::from(expected));
}

#[test]
fn nothing_in_the_core_uses_the_relay_but_the_relay() {
    let relay = ["relay", "Relay", "RelayConfig", "RelayError"].map(str::to_owned);
    // The test kit is no part of what it tests.
    let above = ["outbox-core/src/relay/", "outbox-core/src/testing/", "outbox-core/src/lib.rs"];
    let others = files("outbox-core/src", &[".rs"])
        .into_iter()
        .filter(|file| !above.iter().any(|path| file.path.starts_with(path)));
    let broken: Vec<_> = others
        .filter(|file| names_of_crate(&file.text).iter().any(|name| relay.contains(name)))
        .map(|file| file.path)
        .collect();
    none("the relay stands above everything", &broken);
}

#[test]
fn what_is_pure_imports_neither_store_nor_relay() {
    let pure = ["event", "envelope", "row", "decide", "backoff", "buffer"];
    let effects =
        ["store", "OutboxStore", "StoreError", "relay", "Relay", "RelayConfig", "router", "handler"]
            .map(str::to_owned);
    let is_pure = |file: &File| {
        let path = file.path.trim_start_matches("outbox-core/src/");
        pure.iter().any(|module| path == format!("{module}.rs") || path.starts_with(&format!("{module}/")))
    };
    let files: Vec<_> = files("outbox-core/src", &[".rs"]).into_iter().filter(is_pure).collect();
    assert!(files.len() >= pure.len());
    let broken: Vec<_> = files
        .into_iter()
        .filter(|file| names_of_crate(&file.text).iter().any(|name| effects.contains(name)))
        .map(|file| file.path)
        .collect();
    none("pure before effectful", &broken);
}

// How large things are.

/// All that is written by hand, but the small cases of `tests/ui`, which would flatter the median.
fn written() -> Vec<File> {
    let written = files("", &[".rs"]).into_iter();
    written.filter(|file| !file.path.starts_with("tests/ui/") && !file.path.contains("/expanded/")).collect()
}

#[test]
fn no_file_is_longer_than_500_lines_and_the_median_is_at_most_150() {
    let mut lengths: Vec<_> =
        written().into_iter().map(|file| (file.text.lines().count(), file.path)).collect();
    lengths.sort();
    let long: Vec<_> =
        lengths.iter().filter(|(lines, _)| *lines > 500).map(|(n, path)| format!("{path}: {n}")).collect();
    none("longer than 500 lines", &long);
    let (median, _) = lengths[lengths.len() / 2];
    assert!(median <= 150, "the median of {} files is {median} lines", lengths.len());
}

/// The functions of a file that rustfmt has laid out, with their first line and how many they have: a body ends at the
/// first closing brace in the column where the function began.
fn functions(text: &str) -> Vec<(usize, usize)> {
    let lines: Vec<_> = text.lines().collect();
    let is_function = |line: &str| {
        let words = line.split([' ', '(', '<']).skip_while(|word| {
            matches!(*word, "pub" | "const" | "async" | "extern" | "default") || word.ends_with(')')
        });
        words.take(1).eq(["fn"])
    };
    let mut functions = Vec::new();
    for (start, line) in lines.iter().enumerate() {
        let body = line.trim_start();
        if !is_function(body) {
            continue;
        }
        let end = format!("{}}}", &line[..line.len() - body.len()]);
        // A declaration in a trait ends with a semicolon, before any brace is open at the end of a line.
        let opens = lines[start..].iter().position(|line| line.ends_with(['{', ';', '}'])).unwrap_or(0);
        let length = if lines[start + opens].ends_with('{') {
            let closes = lines[start..].iter().position(|line| *line == end);
            closes.unwrap_or_else(|| panic!("line {} has no end", start + 1)) + 1
        } else {
            opens + 1
        };
        functions.push((start + 1, length));
    }
    functions
}

#[test]
fn the_length_of_a_function_is_measured() {
    let text = "\
impl A {
    pub(crate) async fn one<T>(\n        a: &str,\n    ) {\n        if a {\n        }\n    }
    fn two();\n    const fn three() {}\n    fn four(\n    ) -> b;\n}
fn five() {\n    \"}\";\n}\n";
    assert_eq!(functions(text), [(2, 6), (8, 1), (9, 1), (10, 2), (13, 3)]);
}

#[test]
fn no_function_is_longer_than_70_lines() {
    let mut long = Vec::new();
    let mut count = 0;
    for File { path, text } in written() {
        let functions = functions(&text);
        count += functions.len();
        let of_file = functions.into_iter().filter(|(_, lines)| *lines > 70);
        long.extend(of_file.map(|(start, lines)| format!("{path}:{start}: {lines} lines")));
    }
    assert!(count > 500, "only {count} functions were found");
    none("longer than 70 lines", &long);
}

// What belongs together.

#[test]
fn every_mistake_of_the_compile_tests_stands_beside_what_the_compiler_says() {
    let paths: BTreeSet<_> =
        paths("tests/ui").into_iter().filter(|path| !path.starts_with("tests/ui/pass/")).collect();
    assert!(paths.len() > 50, "{paths:?}");
    let other_half = |path: &String| match path.strip_suffix(".rs") {
        Some(case) => format!("{case}.stderr"),
        None => path.replace(".stderr", ".rs"),
    };
    let alone: Vec<_> = paths.iter().filter(|path| !paths.contains(&other_half(path))).cloned().collect();
    none("without its other half", &alone);
}

#[test]
fn every_module_of_this_binary_says_what_belongs_into_it() {
    let main = fs::read_to_string(root().join("tests/it/main.rs")).unwrap();
    let lines: Vec<_> = main.lines().collect();
    let undocumented: Vec<_> = (1..lines.len())
        .filter(|line| lines[*line].starts_with("mod ") && !lines[line - 1].starts_with("/// "))
        .map(|line| lines[line].to_owned())
        .collect();
    none("without a sentence", &undocumented);
}

/// The words in backticks that are paths: they end like a file, or in a slash, or begin with a directory of the root.
fn paths_named(text: &str) -> Vec<&str> {
    let endings = [".rs", ".md", ".toml", ".sh", ".sql", ".yml", ".stderr", ".lock", "/"];
    let is_plain = |word: &&str| word.chars().all(|c| c.is_ascii_alphanumeric() || "-_./".contains(c));
    let in_root = |word: &str| {
        word.split_once('/').is_some_and(|(first, _)| !first.is_empty() && root().join(first).is_dir())
    };
    let is_path = |word: &&str| endings.iter().any(|ending| word.ends_with(ending)) || in_root(word);
    let quoted = text.lines().flat_map(|line| line.split('`').skip(1).step_by(2));
    quoted.filter(is_plain).filter(is_path).collect()
}

#[test]
fn every_path_that_the_architecture_names_exists() {
    let path = root().join("ARCHITECTURE.md");
    let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let all: Vec<_> = paths("").into_iter().map(|path| format!("/{path}")).collect();
    // A path may leave out the front: `store/claim.rs` is found as well as the whole.
    let exists = |named: &str| match named.strip_suffix('/') {
        Some(directory) => all.iter().any(|path| path.contains(&format!("/{directory}/"))),
        None => root().join(named).exists() || all.iter().any(|path| path.ends_with(&format!("/{named}"))),
    };
    let named = paths_named(&text);
    assert!(!named.is_empty(), "ARCHITECTURE.md names no file at all");
    let missing: Vec<_> = named.into_iter().filter(|named| !exists(named)).map(str::to_owned).collect();
    none("named in ARCHITECTURE.md and not there", &missing);
}
