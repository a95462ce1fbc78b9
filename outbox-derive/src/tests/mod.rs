//! What the macros write, pretty-printed and compared with a file. `OUTBOX_EXPANSION=overwrite` renews the files;
//! read them like code.

mod aggregate;
mod event;
mod handler;

use std::{env, fs, path::Path};

use proc_macro2::TokenStream;

/// Compares an expansion with `tests/expanded/<name>.rs`.
#[track_caller]
fn check(name: &str, expansion: &TokenStream) {
    let file = syn::parse2(expansion.clone()).expect("an expansion is a list of items");
    let found = prettyplease::unparse(&file);
    let path =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("src/tests/expanded").join(name).with_extension("rs");
    if env::var_os("OUTBOX_EXPANSION").is_some_and(|what| what == "overwrite") {
        fs::write(&path, &found).expect("the expansion can be written");
    }
    let expected = fs::read_to_string(&path).unwrap_or_default();
    assert!(found == expected, "the expansion of {name} has changed:\n{found}\nIt was:\n{expected}");
}

/// The messages of an expansion, in order.
fn messages(expansion: TokenStream) -> Vec<String> {
    let file: syn::File = syn::parse2(expansion).expect("an expansion is a list of items");
    let message = |item| match item {
        syn::Item::Macro(item) if item.mac.path.segments.last()?.ident == "compile_error" => {
            Some(item.mac.parse_body::<syn::LitStr>().expect("a message").value())
        }
        _ => None,
    };
    file.items.into_iter().filter_map(message).collect()
}

/// Whether an expansion contains this text, white space aside.
fn contains(expansion: &TokenStream, text: &str) -> bool {
    let squeeze = |text: String| text.replace(char::is_whitespace, "");
    squeeze(expansion.to_string()).contains(&squeeze(text.to_owned()))
}
